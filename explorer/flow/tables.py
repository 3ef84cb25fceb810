"""Flow → a table behind each figure, and one of what both ways took."""

from __future__ import annotations

from collections.abc import Sequence

from explorer import units
from explorer.flow import sentences
from explorer.flow.result import Flow
from explorer.result import Seconds
from explorer.tables import NONE, Table

_DIGITS = 6
_BEFORE = " (before)"


def tables(flow: Flow, before: Flow | None = None) -> dict[str, Table]:
    """The tables by the names of the figures, and `ways`; with the columns of `before` beside."""
    return {
        "gradients": _gradients(flow, before),
        "steps": _steps(flow, before),
        "fan": _fan(flow, before),
        "ways": _ways(flow),
    }


def thinned(table: Table, rows: int) -> Table:
    """The table with at most so many of its rows, evenly spread from the first to the last."""
    if len(table.rows) <= rows:
        return table
    last = len(table.rows) - 1
    chosen = sorted({round(last * number / (rows - 1)) for number in range(rows)})
    title = f"{table.title} ({len(chosen)} of {len(table.rows)} rows)"
    return Table(title, table.columns, tuple(table.rows[row] for row in chosen))


def _number(value: float | None) -> str:
    return NONE if value is None else "exactly 0" if value == 0 else units.number(value, _DIGITS)


def _at(values: Sequence[float | None], place: int) -> str:
    return _number(values[place]) if 0 <= place < len(values) else NONE


def _gradients(flow: Flow, before: Flow | None) -> Table:
    every = [(name, rows) for name, rows in flow.gradients.items()]
    if before is not None:
        every += [(name + _BEFORE, rows) for name, rows in before.gradients.items()]
    count = max(len(rows) for _, rows in every)
    rows = [(str(t), *(_at(values, t) for _, values in every)) for t in range(count)]
    columns = ("t", *(name for name, _ in every))
    return Table("Norm of ∂L/∂h_t for each loss L", columns, tuple(rows))


def _steps(flow: Flow, before: Flow | None) -> Table:
    flows = [flow, before] if before is not None else [flow]
    rows = [
        (
            str(t),
            flow.names[t - 1] if t <= len(flow.names) else NONE,
            *(_at(each.steps, t - 1) for each in flows),
        )
        for t in range(1, max(len(each.steps) for each in flows) + 1)
    ]
    norm = "‖∂h_t/∂h_{t−1}‖"
    columns = ("t", "Step", norm, norm + _BEFORE)[: 2 + len(flows)]
    return Table("Spectral norm of the Jacobian of every step", columns, tuple(rows))


def _fan(flow: Flow, before: Flow | None) -> Table:
    columns = [
        *("t", "Largest", "Upper quartile", "Median", "Lower quartile", "Smallest"),
        "Product of the norms",
    ]
    if before is not None:
        columns += [f"Largest{_BEFORE}", f"Median{_BEFORE}", f"Product of the norms{_BEFORE}"]
    flows = [each for each in (flow, before) if each is not None]
    times = sorted({t for each in flows for t in _times(each)})
    rows = []
    for t in times:
        row = [str(t), *_values(flow, t)]
        if before is not None:
            largest, _, median, _, _, bound = _values(before, t)
            row += [largest, median, bound]
        rows.append(tuple(row))
    title = "Singular values of ∂h_T/∂h_t, and the product of the step norms"
    return Table(title, tuple(columns), tuple(rows))


def _times(flow: Flow) -> Sequence[int]:
    return flow.fan.times if flow.fan is not None else range(len(flow.bound))


def _values(flow: Flow, t: int) -> list[str]:
    """The cells of the fan at t, and of the bound."""
    fan = flow.fan
    place = fan.times.index(t) if fan is not None and t in fan.times else -1
    kinds: Sequence[Sequence[float | None]] = (
        (fan.largest, fan.upper, fan.median, fan.lower, fan.smallest) if fan else ((),) * 5
    )
    return [*(_at(values, place) for values in kinds), _at(flow.bound, t)]


def _ways(flow: Flow) -> Table:
    found, count = flow.ways, len(flow.gradients)
    kinds: tuple[tuple[str, Seconds | None], ...] = (
        ("naive: a backward pass for each loss", found.naive if found else None),
        ("reuse, the Jacobians of all steps", found.jacobians if found else None),
        ("reuse, the chain for all losses", found.chain if found else None),
        ("reuse, together", sentences.reuse(flow)),
    )
    rows = []
    for name, seconds in kinds:
        if seconds is None:
            rows.append((name, NONE, NONE, NONE, "0"))
            continue
        runs = len(seconds.runs)
        spread = units.seconds(seconds.iqr) if runs > 1 else NONE
        times = units.seconds(seconds.median), spread, units.seconds(seconds.minimum)
        rows.append((name, *times, str(runs)))
    columns = ("Way", "Median time", "Interquartile range", "Minimum", "Runs")
    losses = "1 loss" if count == 1 else f"{count} losses"
    return Table(f"Time of both ways to all ∂L/∂h_t of {losses}", columns, tuple(rows))
