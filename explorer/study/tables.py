"""Study → the table behind its pictures."""

from __future__ import annotations

from explorer import units
from explorer.study import sentences
from explorer.study.axis import evenly, text
from explorer.study.point import PathPoint, Point, largest
from explorer.study.study import Study
from explorer.tables import NONE, Table

ROWS = 60
"""Points up to which a table on a page has a row for each."""


def table(study: Study, most: int = ROWS) -> Table:
    """A row a point, along the axes; of many points, some that are evenly placed."""
    points = _sorted(study)
    shown = evenly(points, most)
    paths = study.paths()
    columns = (
        *(axis.name for axis in study.axes),
        *(f"Time, {path}" for path in paths),
        *("Speed-up", "Largest error", "‖dy/dx‖₂"),
    )
    rows = tuple(_row(study, point, paths) for point in shown)
    cut = f" ({len(shown)} of {len(points)} points)" if len(shown) < len(points) else ""
    return Table(f"Points of the sweep{cut}", columns, rows)


def _sorted(study: Study) -> list[Point]:
    places = [{value: number for number, value in enumerate(a.values)} for a in study.axes]

    def place(point: Point) -> list[int]:
        return [where[point.at[a.name]] for a, where in zip(study.axes, places, strict=True)]

    return sorted(study.points, key=place)


def _row(study: Study, point: Point, paths: tuple[str, ...]) -> tuple[str, ...]:
    gain = sentences.gain(point)
    error = largest(path.error for path in point.paths.values())
    return (
        *(text(point.at[axis.name]) for axis in study.axes),
        *(_time(point.paths.get(path)) for path in paths),
        NONE if gain is None else f"{units.ratio(gain.ratio)} ({gain.path})",
        NONE if error is None else units.relative(error),
        NONE if point.norm is None else units.number(point.norm),
    )


def _time(path: PathPoint | None) -> str:
    if path is None:
        return NONE
    if path.seconds is None:
        return NONE if path.predicted is None else f"({units.seconds(path.predicted)} expected)"
    return units.seconds(path.seconds) + (" (wrong)" if path.wrong else "")
