"""Spectral norms, and what else there is to see of the Jacobians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from explorer import sentences, units
from explorer.drawing import (
    CURVES,
    GREY,
    LEFT_OUT,
    LOG_FROM,
    beside,
    frame,
    power,
    powers,
    precisely,
    remark,
    row_frame,
    safe,
    shortened,
)
from explorer.result import Array, Result

_F = "‖dy/dx‖"
_BOUND = "bound"
_NOTHING = 1e-6  # of the largest eigenvalue: less than that stands near 0
_NORMS = {
    _F: ("#009E73", "square"),
    "‖dg/dy‖": ("#56B4E9", "circle"),
    "‖dz/dx‖": ("#CC79A7", "diamond"),
    _BOUND: (GREY, "line-ns-open"),
}


# Of the heads' lines, in their order.
_LINES = (
    ("#CC79A7", "diamond", "dot"),
    ("#0072B2", "circle", "dash"),
    ("#D55E00", "triangle-up", "dashdot"),
    ("#56B4E9", "triangle-down", "longdash"),
    ("#E69F00", "cross", "longdashdot"),
    ("#777777", "star", "2px,4px"),
)


def further(result: Result) -> dict[str, go.Figure]:
    """What there is to show of the Jacobians beside the norms, by name."""
    draw = {
        "singular-values": _singular_values,
        "direction": _direction,
        "sizes": _sizes,
        "curvature": _curvature,
    }
    return {name: draw[name](result) for name in sentences.views(result)}


def norms(result: Result) -> go.Figure:
    found = result.jacobian
    rows = ["f", *result.heads]
    bound = "bound on ‖dz/dx‖: ‖dg/dy‖·‖dy/dx‖"
    figure = row_frame("Spectral norms", found.method, bound, rows=rows, legend=len(_NORMS))
    if found.spectral_norm is None:
        for axis in (figure.update_xaxes, figure.update_yaxes):
            axis(visible=False)
        figure.add_annotation(
            x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False,
            text="not yet run" if result.status == "running" else "not computed",
        )  # fmt: skip
        return figure
    left_out = {name for name, head in result.heads.items() if head.domain}
    heads = {name: norms for name, norms in found.heads.items() if name not in left_out}
    values: dict[str, dict[str, float]] = {
        _F: {"f": found.spectral_norm},
        "‖dg/dy‖": {name: norms.spectral_norm for name, norms in heads.items()},
        "‖dz/dx‖": {name: norms.composite for name, norms in heads.items()},
        _BOUND: {name: norms.bound for name, norms in heads.items()},
    }
    every = [value for each in values.values() for value in each.values()]
    finite = [value for value in every if 0 < value < math.inf]
    logarithmic = bool(finite) and max(finite) > LOG_FROM * min(finite)
    zero = min(finite) / 10 if logarithmic else 0.0
    places, words = powers(min(finite), max(finite)) if logarithmic else (None, None)
    if places and words and len(places) > 3:  # the words beside the points take room from them
        places, words = places[::2], words[::2]
    for quantity, by_row in values.items():
        figure.add_trace(_norm_points(quantity, by_row, rows, zero))
    for row, name in enumerate(rows):
        numbers = [by_row[name] for by_row in values.values() if name in by_row]
        if name in left_out:
            figure.add_annotation(**remark(row, LEFT_OUT, result.heads[name].domain))
        elif any(not math.isfinite(number) for number in numbers):
            figure.add_annotation(**remark(row, "not finite here", ""))
        elif name in heads and (part := sentences.tightness(heads[name])) is not None:
            end = max(numbers)
            text = f"{units.percent(part)} of the bound"
            place = math.log10(end) if logarithmic else end
            figure.add_annotation(**beside(place, row, text) | {"xshift": 9})
    figure.update_xaxes(
        title_text="spectral norm (no unit)",
        type="log" if logarithmic else "linear",
        rangemode="normal" if logarithmic else "tozero",
        tickvals=places,
        ticktext=words,
        nticks=6,
        tickangle=0,
    )
    return figure


def _norm_points(
    quantity: str, by_row: dict[str, float], rows: Sequence[str], zero: float
) -> go.Scatter:
    """One quantity, a point a row; `zero` is where an exact 0 stands."""
    colour, symbol = _NORMS[quantity]
    points = [(rows.index(name), v) for name, v in by_row.items() if math.isfinite(v)]
    bound = quantity == _BOUND
    return go.Scatter(
        name=quantity,
        mode="markers",
        x=[value or zero for _, value in points],
        y=[row for row, _ in points],
        marker={
            "color": colour,
            "symbol": symbol,
            "size": 22 if bound else 12,
            "line": {"color": GREY, "width": 3 if bound else 1},
        },
        hovertext=[f"{safe(rows[row])}<br>{quantity} {precisely(v)}" for row, v in points],
        hoverinfo="text",
        cliponaxis=False,
    )


def _singular_values(result: Result) -> go.Figure:
    found = result.jacobian
    values = found.singular_values
    smaller = min(result.function.inputs, result.function.outputs)
    of = f"the largest {len(values)} of {smaller}" if len(values) < smaller else "all there are"
    condition = found.condition
    figure = frame(
        "Singular values of dy/dx",
        of,
        *([f"condition number {units.number(condition, 3)}"] if condition is not None else []),
        height=CURVES,
        legend=0,
    )
    figure.add_trace(
        go.Scatter(
            mode="lines+markers",
            x=list(range(1, len(values) + 1)),
            y=[value if math.isfinite(value) else None for value in values],
            line={"color": _NORMS[_F][0], "width": 1},
            marker={"symbol": _NORMS[_F][1], "size": 9},
            hovertext=[f"{number}: {precisely(v)}" for number, v in enumerate(values, 1)],
            hoverinfo="text",
            cliponaxis=False,
        )
    )
    figure.update_xaxes(title_text="number of the value, from the largest", dtick=1)
    _norm_axis(figure, values)
    return figure


def _direction(result: Result) -> go.Figure:
    """The entries of x's direction in their order: of an Array, the first."""
    direction = result.jacobian.direction
    assert direction is not None  # or there is no such view
    entries = direction.first if isinstance(direction, Array) else direction
    inputs = result.function.inputs
    part = f"the first {len(entries)} of {inputs} entries" if len(entries) < inputs else ""
    figure = frame(
        "Direction of x that is stretched most",
        "of norm 1, its sign so that the largest entry is positive",
        *([part] if part else []),
        height=CURVES,
        legend=0,
    )
    figure.add_trace(
        go.Bar(
            x=list(range(1, len(entries) + 1)),
            y=list(entries),
            marker={"color": _NORMS[_F][0]},
            hovertext=[f"entry {number}: {v:.3g}" for number, v in enumerate(entries, 1)],
            hoverinfo="text",
        )
    )
    figure.update_xaxes(title_text="entry of x (number)", nticks=8)
    figure.update_yaxes(
        title_text="entry of the direction", title_font={"size": 12}, tickformat="~g"
    )
    return figure


def _sizes(result: Result) -> go.Figure:
    found = result.jacobian.by_size
    heads = list(dict.fromkeys(name for each in found for name in each.heads))[: len(_LINES)]
    size = result.experiment.described.size
    sizes = [each.size for each in found]
    lines = {_F: ([each.spectral_norm for each in found], (*_NORMS[_F], "solid"))}
    for name, (colour, symbol, dash) in zip(heads, _LINES, strict=False):
        lines[name] = [each.heads.get(name, math.nan) for each in found], (colour, symbol, dash)
    subtitle = ["‖dy/dx‖, and ‖dz/dx‖ of the heads" if heads else _F]
    if not all(0 < value < math.inf for values, _ in lines.values() for value in values):
        subtitle.append("a gap: 0, or no finite value")
    figure = frame("Norms by size", *subtitle, height=CURVES, legend=len(lines))
    for name, (values, (colour, symbol, dash)) in lines.items():
        figure.add_trace(
            go.Scatter(
                name=safe(shortened(name)),
                mode="lines+markers",
                x=sizes,
                y=[value if 0 < value < math.inf else None for value in values],
                line={"color": colour, "dash": dash, "width": 2},
                marker={"color": colour, "symbol": symbol, "size": 9},
                hovertext=[
                    f"{safe(name)}, size {at}<br>{precisely(v)}"
                    for at, v in zip(sizes, values, strict=True)
                ],
                hoverinfo="text",
                cliponaxis=False,
            )
        )
    shown = sizes[::-2][::-1]
    figure.update_xaxes(
        title_text=size.label, type="log", tickvals=shown, ticktext=[str(each) for each in shown]
    )
    _norm_axis(figure, [v for values, _ in lines.values() for v in values], always=True)
    return figure


def _norm_axis(figure: go.Figure, values: Sequence[float], always: bool = False) -> None:
    """The second axis for norms: logarithmic where they are far apart, or `always`."""
    finite = [value for value in values if 0 < value < math.inf]
    far = bool(finite) and max(finite) > LOG_FROM * min(finite)
    figure.update_yaxes(
        title_text="spectral norm (no unit)" if always else "singular value (no unit)",
        title_font={"size": 12},
        type="log" if far or (always and finite) else "linear",
    )
    if far:
        places, words = powers(min(finite), max(finite))
        figure.update_yaxes(tickvals=places, ticktext=words)
    elif always:
        figure.update_yaxes(dtick="D2")  # 1, 2 and 5
    else:
        figure.update_yaxes(rangemode="tozero")


def _curvature(result: Result) -> go.Figure:
    found = result.jacobian.curvature
    rows = list(found)
    scale = _Signed.of([v for each in found.values() for v in (each.smallest, each.largest)])
    figure = row_frame(
        "Curvature of the heads", "extreme eigenvalues of ∂²z/∂x²", rows=rows, legend=2
    )
    for row, each in enumerate(found.values()):
        if not math.isfinite(each.smallest + each.largest):
            figure.add_annotation(**remark(row, "not finite here", ""))
            continue
        ends = scale.place(each.smallest), scale.place(each.largest)
        figure.add_shape(
            type="line", x0=ends[0], x1=ends[1], y0=row, y1=row,
            line={"color": GREY, "width": 3}, layer="below",
        )  # fmt: skip
        words = dict.fromkeys(units.number(v, 3) for v in (each.smallest, each.largest))
        text = " … ".join(words)
        figure.add_annotation(**beside(ends[1], row, text) | {"xshift": 9})
    for name, symbol, colour in (
        ("smallest", "triangle-left", "#0072B2"),
        ("largest", "triangle-right", "#D55E00"),
    ):
        values = [getattr(each, name) for each in found.values()]
        points = [(row, v) for row, v in enumerate(values) if math.isfinite(v)]
        figure.add_trace(
            go.Scatter(
                name=name,
                mode="markers",
                x=[scale.place(v) for _, v in points],
                y=[row for row, _ in points],
                marker={"color": colour, "symbol": symbol, "size": 13},
                hovertext=[f"{safe(rows[row])}<br>{name} {v:.6g}" for row, v in points],
                hoverinfo="text",
                cliponaxis=False,
            )
        )
    places, powers_of_ten = scale.ticks()
    figure.update_xaxes(
        title_text="eigenvalue", tickvals=places, ticktext=powers_of_ten, nticks=6
    )
    return figure


@dataclass(frozen=True)
class _Signed:
    """An axis for numbers of both signs: linear, or where they are far apart linear up to `unit`
    and logarithmic beyond."""

    unit: float | None
    largest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> _Signed:
        sizes = [abs(v) for v in values if v and math.isfinite(v)]
        largest = max(sizes, default=1.0)
        smallest = max(min(sizes, default=1.0), _NOTHING * largest)
        return cls(smallest if largest > LOG_FROM * smallest else None, largest)

    def place(self, value: float) -> float:
        if self.unit is None:
            return value
        return math.copysign(math.log10(1 + abs(value) / self.unit), value)

    def ticks(self) -> tuple[list[float] | None, list[str] | None]:
        """0 and two powers of ten on either side; plotly's own where the axis is linear."""
        if self.unit is None:
            return None, None
        exponents = [round(math.log10(each)) for each in powers(self.unit, self.largest)[0]]
        found = {0.0: "0"}
        for exponent in {exponents[len(exponents) // 2], exponents[-1]}:
            for sign, mark in ((-1, "−"), (1, "")):
                found[self.place(sign * 10.0**exponent)] = f"{mark}{power(exponent)}"
        return list(found), list(found.values())
