"""Result → a table behind each figure: the same numbers, exact where the figure is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from explorer import sentences, units
from explorer.result import (
    Array,
    HeadResult,
    Numbers,
    PathResult,
    Result,
    Scaling,
    ScalingPoint,
    ScalingPrediction,
)

NONE = "–"
"""What stands where there is no number."""

Cell = Callable[[ScalingPoint | None, ScalingPrediction], str]


@dataclass(frozen=True)
class Table:
    """A title, the names of the columns, and rows of as many cells; the first cell names a row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(result: Result) -> dict[str, Table]:
    """The tables by the names of the figures."""
    found = {
        "time": _time(result),
        "passes": _passes(result),
        "accuracy": _accuracy(sentences.few(result)),
        "norms": _norms(sentences.few(result)),
    }
    for along, scaling in result.scaling.items():
        kinds = "Forward + backward (+ forward-mode) passes"
        found[f"scaling-{along}-passes"] = _scaling(scaling, kinds, _passes_at)
        found[f"scaling-{along}-time"] = _scaling(scaling, "Time", _time_at)
    return found


def to_html(table: Table) -> str:
    """A semantic `<table>` with a caption and the scope of every heading; all text escaped."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in table.rows)
    return (
        f"<table><caption>{escape(table.title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _row(row: tuple[str, ...]) -> str:
    first, *rest = map(escape, row)
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest)


def _time(result: Result) -> Table:
    reference = sentences.baseline(result)
    columns = (
        "Path", "Median time", "Interquartile range", "Minimum", "Runs",
        f"Against {reference}" if reference else "Standing", "Saved for backward", "Peak memory",
    )  # fmt: skip
    rows = []
    for name, path in result.paths.items():
        seconds, standing = path.seconds, sentences.comparison(result, name)
        if seconds is not None:
            median, spread, least = map(
                units.seconds, (seconds.median, seconds.iqr, seconds.minimum)
            )
            runs = len(seconds.runs)
            cells = [median, spread if runs > 1 else NONE, least, str(runs)]
        elif path.status == "predicted" and path.predicted_seconds is not None:
            cells = [f"{units.seconds(path.predicted_seconds)} (predicted)", NONE, NONE, "0"]
        else:
            cells = [NONE, NONE, NONE, "0"]
        memory = units.size(path.saved_bytes), units.peak(path.peak_memory_bytes)
        rows.append((name, *cells, standing or NONE, *memory))
    return Table("Time and memory per path", columns, tuple(rows))


def _passes(result: Result) -> Table:
    rows = [
        (
            name if path.seconds is not None else f"{name} (expected)",
            str(path.forward_passes),
            str(path.backward_passes),
            str(path.forward_mode_passes),
            _plan(path),
        )
        for name, path in result.paths.items()
    ]
    columns = ("Path", "Forward", "Backward", "Forward mode", "Plan")
    return Table("Number of passes through f per path", columns, tuple(rows))


def _plan(path: PathResult) -> str:
    return f"{path.taken}: {path.plan}" if path.taken else path.plan or NONE


def _scaling(scaling: Scaling, what: str, cell: Cell) -> Table:
    """A row a count and a column a path; what is predicted stands in brackets."""
    rows = []
    for number, count in enumerate(scaling.counts):
        cells = []
        for path in scaling.paths.values():
            measured = {point.count: point for point in path.measured}
            cells.append(cell(measured.get(count), path.predicted[number]))
        rows.append((str(count), *cells))
    counted = sentences.ALONG[scaling.along]
    title = f"{what} against the number of {counted} (in brackets: predicted)"
    return Table(title, (f"{counted[0].upper()}{counted[1:]}", *scaling.paths), tuple(rows))


def _time_at(measured: ScalingPoint | None, predicted: ScalingPrediction) -> str:
    expected = f"({units.seconds(predicted.seconds)})"
    return f"{units.seconds(measured.seconds.median)} {expected}" if measured else expected


def _passes_at(measured: ScalingPoint | None, predicted: ScalingPrediction) -> str:
    """`1 + 10`: forward and backward, and forward mode where there is any."""
    seen = measured or predicted
    numbers = [seen.forward_passes, seen.backward_passes]
    numbers += [seen.forward_mode_passes] if seen.forward_mode_passes else []
    text = " + ".join(map(str, numbers))
    return text if measured else f"({text})"


def _accuracy(result: Result) -> Table:
    rows = [
        (
            name,
            path,
            _gradient(head.gradient.get(path)),
            _agreement(head, path),
            NONE if head.domain else _difference(head.error.get(path)),
            sentences.judgement(result, name, path),
        )
        for name, head in result.heads.items()
        for path in result.paths
    ]
    columns = (
        "Head", "Path", "Gradient dz/dx", "Agreement (relative)", "Error (relative)", "Verdict",
    )  # fmt: skip
    return Table("Agreement and error of the gradients", columns, tuple(rows))


def _gradient(numbers: Numbers | None) -> str:
    if numbers is None:
        return NONE
    if isinstance(numbers, Array):
        return f"norm {units.number(numbers.norm, 9)}, shape {'×'.join(map(str, numbers.shape))}"
    if len(numbers) == 1:
        return units.number(numbers[0], 9)
    return f"norm {units.number(math.hypot(*numbers), 9)}, {len(numbers)} entries"


def _agreement(head: HeadResult, path: str) -> str:
    if head.domain:
        return NONE
    if path in head.gradient and path == head.agreement_reference:
        return "reference"
    return _difference(head.agreement.get(path))


def _difference(value: float | None) -> str:
    return NONE if value is None else "exactly 0" if value == 0 else units.number(value)


def _norms(result: Result) -> Table:
    found = result.jacobian
    f = NONE if found.spectral_norm is None else units.number(found.spectral_norm)
    rows = [("f", f, NONE, NONE, NONE)]
    for name, head in result.heads.items():
        norms = None if head.domain else found.heads.get(name)
        numbers = (norms.spectral_norm, norms.composite, norms.bound) if norms else ()
        rows.append((name, NONE, *(map(units.number, numbers) if norms else (NONE, NONE, NONE))))
    columns = ("Function", "‖dy/dx‖", "‖dg/dy‖", "‖dz/dx‖", "Bound ‖dg/dy‖·‖dy/dx‖")
    return Table("Spectral norms", columns, tuple(rows))
