"""Result → a table behind each figure: the same numbers, exact where the figure is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from explorer import scaling_sentences, sentences, units
from explorer.costs import CostModel, fitted
from explorer.result import (
    Array,
    HeadResult,
    Numbers,
    PathResult,
    Result,
    Scaling,
)

NONE = "–"
"""What stands where there is no number."""

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
        **_further(sentences.few(result)),
    }
    for along, scaling in result.scaling.items():
        found[f"scaling-{along}-passes"] = _scaled_passes(scaling)
        found[f"scaling-{along}-time"] = _scaled_times(fitted(scaling, result.function.inputs))
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


def _scaled_passes(scaling: Scaling) -> Table:
    def cell(path: str, count: int) -> str:
        seen = scaling.paths[path]
        measured = {point.count: point for point in seen.measured}
        expected = seen.predicted[scaling.counts.index(count)]
        found = measured.get(count, expected)
        numbers = [found.forward_passes, found.backward_passes]
        numbers += [found.forward_mode_passes] if found.forward_mode_passes else []
        text = " + ".join(map(str, numbers))
        return text if count in measured else f"({text})"

    what = "Forward + backward (+ forward-mode) passes"
    return _scaling(scaling, what, "predicted", _by_count(scaling, cell))


def _scaled_times(model: CostModel) -> Table:
    """The times, and how far the fitted ones are from them."""
    scaling = model.scaling

    def cell(path: str, count: int) -> str:
        measured = {point.count: point.seconds.median for point in scaling.paths[path].measured}
        predicted = model.seconds(path, count)
        expected = f"({units.seconds(predicted)})" if predicted < math.inf else NONE
        return f"{units.seconds(measured[count])} {expected}" if count in measured else expected

    rows = _by_count(scaling, cell)
    if not model.misfits:
        return _scaling(scaling, "Time", "predicted", rows)
    off = model.typical
    last = [units.percent(off[path]) if path in off else NONE for path in scaling.paths]
    return _scaling(scaling, "Time", "fitted", [*rows, ("Fitted, off by (median)", *last)])


def _by_count(scaling: Scaling, cell: Callable[[str, int], str]) -> list[tuple[str, ...]]:
    """A row a count, with the cell of each path."""
    return [(str(n), *(cell(path, n) for path in scaling.paths)) for n in scaling.counts]


def _scaling(scaling: Scaling, what: str, in_brackets: str, rows: list[tuple[str, ...]]) -> Table:
    counted = scaling_sentences.ALONG[scaling.along]
    title = f"{what} against the number of {counted} (in brackets: {in_brackets})"
    return Table(title, (f"{counted[0].upper()}{counted[1:]}", *scaling.paths), tuple(rows))


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
    rows += [
        (sentences.TOGETHER, path, NONE, _difference(value), NONE, NONE)
        for path, value in sentences.together(result).items()
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


def _estimate(error: float) -> str:
    """The estimate of an error; that of a dense decomposition is 0, which still rounds."""
    return "rounding" if error == 0 else units.number(error)


def _norms(result: Result) -> Table:
    found = result.jacobian
    f = NONE if found.spectral_norm is None else units.number(found.spectral_norm)
    rows: list[tuple[str, ...]] = [("f", f, NONE, NONE, NONE, NONE)]
    for name, head in result.heads.items():
        norms = None if head.domain else found.heads.get(name)
        if norms is None:
            rows.append((name, *(NONE,) * 5))
            continue
        numbers = map(units.number, (norms.spectral_norm, norms.composite, norms.bound))
        part = sentences.tightness(norms)
        rows.append((name, NONE, *numbers, NONE if part is None else units.percent(part)))
    columns = ("Function", "‖dy/dx‖", "‖dg/dy‖", "‖dz/dx‖", "Bound ‖dg/dy‖·‖dy/dx‖", "Tightness")
    return Table("Spectral norms", columns, tuple(rows))


def _further(result: Result) -> dict[str, Table]:
    make = {
        "singular-values": _singular_values,
        "direction": _direction,
        "sizes": _sizes,
        "curvature": _curvature,
    }
    return {name: make[name](result) for name in sentences.views(result)}


def _singular_values(result: Result) -> Table:
    values = result.jacobian.singular_values
    rows = [
        (str(number), units.number(value, 9), units.number(value / values[0] if value else 0.0))
        for number, value in enumerate(values, 1)
    ]
    columns = ("Number", "Singular value", "Over the largest")
    return Table("Singular values of dy/dx", columns, tuple(rows))


def _direction(result: Result) -> Table:
    direction = result.jacobian.direction
    entries = direction.first if isinstance(direction, Array) else direction or ()
    rows = [(str(number), units.number(value, 9)) for number, value in enumerate(entries, 1)]
    cut = len(entries) < result.function.inputs
    first = f", the first {len(entries)} entries of {result.function.inputs}" if cut else ""
    title = f"Direction of x that is stretched most, of norm 1{first}"
    return Table(title, ("Entry of x", "Value"), tuple(rows))


def _sizes(result: Result) -> Table:
    found = result.jacobian.by_size
    heads = list(dict.fromkeys(name for each in found for name in each.heads))
    rows = [
        (
            *map(str, (each.size, each.inputs, each.outputs)),
            units.number(each.spectral_norm, 9),
            _estimate(each.error),
            *(units.number(each.heads[h], 9) if h in each.heads else NONE for h in heads),
        )
        for each in found
    ]
    columns = (
        "Size", "Entries of x", "Entries of y", "‖dy/dx‖", "Error (estimate)",
        *(f"‖dz/dx‖ of {name}" for name in heads),
    )  # fmt: skip
    return Table("Spectral norms by size", columns, tuple(rows))


def _curvature(result: Result) -> Table:
    rows = [
        (
            name,
            *(units.number(value, 9) for value in (each.smallest, each.largest)),
            _estimate(each.error),
            str(each.products),
        )
        for name, each in result.jacobian.curvature.items()
    ]
    columns = ("Head", "Smallest", "Largest", "Error (estimate)", "Products H·v")
    return Table("Curvature: extreme eigenvalues of ∂²z/∂x²", columns, tuple(rows))
