"""Agreement and error of the gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import plotly.graph_objects as go

from explorer import sentences
from explorer.drawing import (
    GREY,
    LEFT_OUT,
    ROW,
    is_known,
    powers,
    precisely,
    remark,
    row_frame,
    safe,
    style,
)
from explorer.result import HeadResult, Result


@dataclass(frozen=True)
class _Scale:
    """A logarithmic axis of relative differences, with a place for an exact 0 at its left."""

    zero: float
    """Where 0 stands: a tenth of eps, or of the smallest difference where that is less."""
    limit: float
    """The tolerance: up to here a gradient is right."""
    top: float
    """The right end, where an infinite difference stands."""

    @classmethod
    def of(cls, result: Result) -> _Scale:
        heads = result.heads.values()
        values = [v for head in heads for v in (*head.agreement.values(), *head.error.values())]
        values += result.jacobian.agreement.values()
        finite = [v for v in values if v is not None and 0 < v < math.inf]
        dtype = result.experiment.dtype
        zero = min([sentences.EPSILON[dtype], *finite]) / 10
        return cls(zero, sentences.tolerance(dtype), 10 * max([1.0, *finite]))

    def place(self, value: float) -> float:
        return min(max(value, self.zero), self.top)

    def ticks(self) -> tuple[list[float], list[str]]:
        """0, and powers of ten."""
        places, words = powers(self.zero * 10**1.5, self.top)
        return [self.zero, *places], ["0", *words]


def accuracy(result: Result) -> go.Figure:
    scale = _Scale.of(result)
    figure = row_frame(
        "Agreement and error of the gradients",
        *_compared_with(result),
        rows=[*result.heads, *([sentences.TOGETHER] if sentences.together(result) else [])],
        row=max(ROW, 11 * len(result.paths)),
        legend=len(result.paths),
        above=16,
    )
    for number, path in enumerate(result.paths):
        lane = (number - (len(result.paths) - 1) / 2) * 0.8 / max(3, len(result.paths))
        error = _differences(result, path, "error", scale, lane)
        agreement = _differences(result, path, "agreement", scale, lane)
        agreement.showlegend = not error.x
        figure.add_traces([agreement, error])
    for row, head in enumerate(result.heads.values()):
        figure.add_annotation(**remark(row, _why_no_points(head), head.domain))
    _mark_tolerance(figure, scale)
    places, words = scale.ticks()
    figure.update_xaxes(
        title_text="relative difference (no unit)",
        type="log",
        tickvals=places,
        ticktext=words,
        range=[math.log10(scale.zero) - 0.6, math.log10(scale.top)],
    )
    return figure


def _compared_with(result: Result) -> tuple[str, str]:
    """The two lines that say what the hollow and the filled markers are held against."""
    head = next(iter(result.heads.values()))
    naive = head.agreement_reference
    agreement = f"hollow: agreement with {naive}" if naive else "no naive path: no agreement"
    errors = (error for each in result.heads.values() for error in each.error.values())
    if any(map(is_known, errors)):
        return agreement, f"filled: error against {head.error_reference}"
    return agreement, f"error not known: {head.error_reference.removeprefix('none: ')}"


def _differences(
    result: Result, path: str, kind: Literal["agreement", "error"], scale: _Scale, lane: float
) -> go.Scatter:
    """A path's agreement (hollow) or error (filled), a point a head.

    The reference of the agreement is not held against itself.
    """
    look, hollow = style(path), kind == "agreement"
    points = []
    for row, head in enumerate(result.heads.values()):
        value = (head.agreement if hollow else head.error).get(path)
        itself = hollow and path == head.agreement_reference
        if not head.domain and not itself and is_known(value):
            points.append((row + lane, value))
    whole = sentences.together(result).get(path)
    if hollow and is_known(whole):
        points.append((len(result.heads) + lane, whole))
    return go.Scatter(
        name=safe(path),
        legendgroup=path,
        mode="markers",
        x=[scale.place(value) for _, value in points],
        y=[row for row, _ in points],
        marker={
            "color": look.colour,
            "symbol": look.symbol + ("-open" if hollow else ""),
            "size": 14 if hollow else 9,
            "line": {"color": look.colour if hollow else GREY, "width": 2 if hollow else 1},
        },
        hovertext=[f"{safe(path)}<br>{kind} {precisely(value)}" for _, value in points],
        hoverinfo="text",
        cliponaxis=False,
    )


def _why_no_points(head: HeadResult) -> str:
    """What stands in the row of a head without points; empty where there are some."""
    if head.domain:
        return LEFT_OUT
    if not head.gradient:
        return "not yet run"
    known = any(map(is_known, (*head.agreement.values(), *head.error.values())))
    return "" if known else "not known"


def _mark_tolerance(figure: go.Figure, scale: _Scale) -> None:
    """The band of wrong gradients, named above the rows, and the place of 0 set apart."""
    figure.add_shape(
        type="rect", x0=scale.limit, x1=scale.top, y0=0, y1=1, yref="paper",
        fillcolor=GREY, opacity=0.16, line_width=0, layer="below",
    )  # fmt: skip
    for x, dash in ((scale.limit, "solid"), (scale.zero * 4, "dot")):
        figure.add_shape(
            type="line", x0=x, x1=x, y0=0, y1=1, yref="paper",
            line={"color": GREY, "width": 1.5, "dash": dash}, layer="below",
        )  # fmt: skip
    for words, anchor in (("right ", "right"), (" wrong", "left")):
        figure.add_annotation(
            x=math.log10(scale.limit), y=1, yref="paper", text=words, xanchor=anchor,
            yanchor="bottom", showarrow=False, font_size=12,
        )  # fmt: skip
