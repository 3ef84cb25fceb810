"""Spectral norms, and what else there is to see of the Jacobians."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from explorer.drawing import GREY, LEFT_OUT, LOG_FROM, powers, precisely, remark, row_frame, safe
from explorer.result import Result

_BOUND = "bound"
_NORMS = {
    "‖dy/dx‖": ("#009E73", "square"),
    "‖dg/dy‖": ("#56B4E9", "circle"),
    "‖dz/dx‖": ("#CC79A7", "diamond"),
    _BOUND: (GREY, "line-ns-open"),
}


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
        "‖dy/dx‖": {"f": found.spectral_norm},
        "‖dg/dy‖": {name: norms.spectral_norm for name, norms in heads.items()},
        "‖dz/dx‖": {name: norms.composite for name, norms in heads.items()},
        _BOUND: {name: norms.bound for name, norms in heads.items()},
    }
    every = [value for each in values.values() for value in each.values()]
    finite = [value for value in every if 0 < value < math.inf]
    logarithmic = bool(finite) and max(finite) > LOG_FROM * min(finite)
    zero = min(finite) / 10 if logarithmic else 0.0
    places, words = powers(min(finite), max(finite)) if logarithmic else (None, None)
    for quantity, by_row in values.items():
        figure.add_trace(_norm_points(quantity, by_row, rows, zero))
    for row, name in enumerate(rows):
        numbers = [by_row[name] for by_row in values.values() if name in by_row]
        if name in left_out:
            figure.add_annotation(**remark(row, LEFT_OUT, result.heads[name].domain))
        elif any(not math.isfinite(number) for number in numbers):
            figure.add_annotation(**remark(row, "not finite here", ""))
    figure.update_xaxes(
        title_text="spectral norm (no unit)",
        type="log" if logarithmic else "linear",
        rangemode="normal" if logarithmic else "tozero",
        tickvals=places,
        ticktext=words,
        nticks=6,
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
