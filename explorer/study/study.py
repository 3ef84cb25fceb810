"""A Study: the points of a sweep that are there so far, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from explorer.experiment import DEFAULT_FUNCTION, table
from explorer.functions import FUNCTIONS
from explorer.result import Data
from explorer.study import journal
from explorer.study.axis import HEADS, Axis, Value, is_number
from explorer.study.point import Point


class Study(Data):
    """What a sweep has shown.

    Attributes:
        given: the values that all points share, as far as they were given.
        axes: with all their values, those of points that are not there yet too.
        points: in the order of the file.
        planned: how many points the whole sweep has.
        status: "done" when all planned points are there; "cancelled" when it ended before.
        notes: what to mind.
    """

    given: Mapping[str, Any]
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    planned: int
    status: Literal["running", "done", "cancelled"]
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> Study:
        """The study of a file that a sweep wrote, whether or not it came to its end.

        Raises:
            JournalError: it is no file of a sweep.
            OSError: it cannot be read.
        """
        points = tuple(journal.read(path))
        first = points[0].result if points else None
        given = first.experiment.values if first is not None else {}
        axes = _axes(points, given.get("function", DEFAULT_FUNCTION))
        rest = {name: v for name, v in given.items() if name not in {each.name for each in axes}}
        return cls(given=rest, axes=axes, points=points, planned=len(points), status="done")

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


def _axes(points: Sequence[Point], function: str) -> tuple[Axis, ...]:
    """The axes as the points tell them."""
    if not points:
        return ()
    names = list(points[0].at)
    function = str(points[0].at.get("function", function))
    fields = table(function if function in FUNCTIONS else DEFAULT_FUNCTION)
    return tuple(
        Axis(
            name,
            HEADS.label if name == "heads" else fields[name].label if name in fields else name,
            _values(point.at[name] for point in points),
        )
        for name in names
    )


def _values(found: Iterable[Value]) -> tuple[Value, ...]:
    values = tuple(dict.fromkeys(found))
    return tuple(sorted(values)) if all(map(is_number, values)) else values
