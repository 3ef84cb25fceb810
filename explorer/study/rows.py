"""Study → one table as CSV: a row for each path at each point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from explorer.delimited import Cell, written
from explorer.study.axis import text
from explorer.study.point import PathPoint
from explorer.study.study import Study

COLUMNS = (
    *("path", "median_seconds", "lower_quartile_seconds", "upper_quartile_seconds"),
    *("predicted_seconds", "forward_passes", "backward_passes", "forward_mode_passes"),
    *("error", "agreement", "wrong", "taken", "note"),
    *("head_count", "y_entries", "x_entries", "dy_dx_norm", "point_seconds", "problem", "where"),
)
"""The columns behind the axes and the other values that were given."""

_PATH = COLUMNS.index("head_count")  # the columns that are a path's


def to_csv(study: Study) -> str:
    """The axes in the first columns, then the values that all points share as far as they were
    given, then `COLUMNS`. A point without a result has one row, with the reason as its `problem`.
    The points stand in the order of the file."""
    given = {name: value for name, value in study.given.items() if _plain(value) is not None}
    names = (*(axis.name for axis in study.axes), *given)
    return written((*names, *COLUMNS), _rows(study, [_plain(each) for each in given.values()]))


def _rows(study: Study, given: list[Cell]) -> Iterator[list[Cell]]:
    for point in study.points:
        at = [_plain(point.at[axis.name]) for axis in study.axes]
        counts = (point.heads, point.outputs, point.inputs) if point.paths else (None,) * 3
        of_point = (*counts, point.norm, point.seconds, point.problem, point.where)
        for row in [_path(*each) for each in point.paths.items()] or [[None] * _PATH]:
            yield [*at, *given, *row, *of_point]


def _path(name: str, seen: PathPoint) -> list[Cell]:
    return [
        *(name, seen.seconds, seen.low, seen.high),
        *(seen.predicted, seen.forward, seen.backward, seen.forward_mode),
        *(seen.error, seen.agreement, "yes" if seen.wrong else "no", seen.taken, seen.note),
    ]


def _plain(value: Any) -> Cell:
    """A field's value as a cell: several with commas, a switch as "on" or "off"."""
    if isinstance(value, (tuple, list)):
        return ",".join(map(str, value)) if value else None
    return text(value) if isinstance(value, bool) else value
