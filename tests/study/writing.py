"""Points of a sweep that nobody measured, to be written."""

from explorer.study.point import Point
from explorer.study.sweep import Sweep
from tests.results import every_field

SWEEP = Sweep({"repeats": 2}, ["size=2:1001:lin1000"])
"""A sweep over a thousand sizes."""


def finished(number: int) -> Point:
    """The point of that number, with a Result."""
    place = SWEEP.places[number]
    return Point.of(SWEEP.key, place.key, dict(place.at), 0.25, _RESULT)


_RESULT = every_field()
