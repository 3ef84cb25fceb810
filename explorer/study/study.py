"""A Study: the points of a sweep that are there so far, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

from explorer.result import Data
from explorer.study.axis import Axis
from explorer.study.point import Point


class Study(Data):
    """What a sweep has shown.

    Attributes:
        key: the hash of the sweep.
        given: the values that all points share, as far as they were given.
        axes: with all their values, those of points that are not there yet too.
        points: in the order of the file.
        planned: how many points the whole sweep has.
        status: "done" when all planned points are there; "cancelled" when it ended before.
        notes: what to mind.
    """

    key: str
    given: Mapping[str, Any]
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    planned: int
    status: Literal["running", "done", "cancelled"]
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Strict JSON of the points in their short form, without the Results."""
        return self.model_dump_json(exclude_defaults=True)

    def _ipython_display_(self) -> None:
        # By name, in a notebook alone: what computes a Study, or prints it, needs no widgets.
        import_module("explorer.app.display").show_study(self)

    @property
    def left_out(self) -> int:
        """How many of the planned points are not there."""
        return self.planned - len(self.points)

    def paths(self) -> tuple[str, ...]:
        """The paths that any point has, in their order."""
        return tuple(dict.fromkeys(path for point in self.points for path in point.paths))
