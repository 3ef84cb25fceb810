"""Passes and time against the number of heads, or of outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from explorer import scaling_sentences, sentences, units
from explorer.costs import fitted
from explorer.drawing import CURVES, GREY, frame, on_log_axis, safe, several, spread, style
from explorer.figures.paths import whiskers
from explorer.result import BreakEven, Result, Scaling, ScalingPath


def passes(scaling: Scaling) -> go.Figure:
    figure = _curves(
        "Passes",
        scaling,
        "forward, backward and forward mode together; marker: counted, line: expected",
        axis="passes through f (number)",
    )
    for number, (name, path) in enumerate(scaling.paths.items()):
        figure.add_trace(
            _curve(name, scaling.counts, [sentences.all_passes(each) for each in path.predicted])
        )
        figure.add_trace(
            _measured(
                name,
                number,
                [point.count for point in path.measured],
                [sentences.all_passes(point) for point in path.measured],
                [sentences.passes(point) for point in path.measured],
            )
        )
    return figure


def time(result: Result, scaling: Scaling, relative_to: str, slower: float) -> go.Figure:
    reference = scaling.paths.get(relative_to)
    model = fitted(scaling, result.function.inputs).slower(slower)
    threads = several(result.environment.threads, "thread")
    figure = _curves(
        "Relative time" if reference else "Time",
        scaling,
        f"{result.environment.device_name}, {threads}, {result.experiment.dtype}",
        f"marker: median; line: {scaling_sentences.line(model, slower)}",
        axis=f"time over that of {safe(relative_to)}" if reference else "time of one execution",
    )
    counts = scaling.counts
    unit = [model.seconds(relative_to, count) if reference else 1.0 for count in counts]
    for number, (name, path) in enumerate(scaling.paths.items()):
        times = [
            model.seconds(name, count) / other if other else math.nan
            for count, other in zip(counts, unit, strict=True)
        ]
        figure.add_trace(_curve(name, counts, times))
        figure.add_trace(_measured_times(name, number, path, reference))
    if reference is None:
        figure.update_yaxes(tickformat="~s", ticksuffix="s")
    _mark_break_even(figure, scaling, model.break_even)
    return figure


def _measured_times(
    name: str, number: int, path: ScalingPath, reference: ScalingPath | None
) -> go.Scatter:
    """The medians, with the middle half of the runs; of the counts that the reference has too."""
    base = {point.count: point.seconds.median for point in reference.measured} if reference else {}
    points = [
        (point, base.get(point.count, 1.0))
        for point in path.measured
        if reference is None or base.get(point.count)
    ]
    halves = [tuple(part / unit for part in whiskers(point.seconds)) for point, unit in points]
    words = [
        units.seconds(point.seconds.median)
        + (f", by {safe(point.taken)}" if point.taken else "")
        + (f"<br>{point.seconds.median / unit:.3g} times the reference" if reference else "")
        for point, unit in points
    ]
    trace = _measured(
        name,
        number,
        [point.count for point, _ in points],
        [point.seconds.median / unit for point, unit in points],
        words,
    )
    trace.error_y = spread([below for below, _ in halves], [above for _, above in halves])
    return trace


def _curves(title: str, scaling: Scaling, *subtitle: str, axis: str) -> go.Figure:
    """An empty figure with two logarithmic axes, the counts along the first."""
    figure = frame(
        f"{title} by number of {scaling.along}",
        scaling_sentences.scanned(scaling),
        *subtitle,
        height=CURVES,
        above=16,
        legend=len(scaling.paths),
    )
    figure.update_xaxes(
        title_text=f"{scaling_sentences.ALONG[scaling.along]} (number)",
        type="log",
        tickvals=[count for count in scaling.counts if str(count)[0] == "1"],
        ticktext=[f"{count}" for count in scaling.counts if str(count)[0] == "1"],
        range=[math.log10(scaling.counts[0]) - 0.1, math.log10(scaling.counts[-1]) + 0.1],
    )
    figure.update_yaxes(title_text=axis, title_font={"size": 12}, type="log", dtick=1)
    return figure


def _curve(name: str, counts: Sequence[int], values: Sequence[float]) -> go.Scatter:
    """What is predicted of a path."""
    look = style(name)
    return go.Scatter(
        name=safe(name),
        legendgroup=name,
        mode="lines",
        x=list(counts),
        y=[value if on_log_axis(value) else None for value in values],
        line={"color": look.colour, "dash": look.dash, "width": 2},
        hoverinfo="skip",
        showlegend=False,
    )


def _measured(
    name: str, number: int, counts: Sequence[int], values: Sequence[float], words: Sequence[str]
) -> go.Scatter:
    """What was measured of a path. Markers of paths that coincide lie in each other, the first
    path's outside."""
    look = style(name)
    nothing = [] if counts else [None]  # a path without a point yet has its place in the legend
    return go.Scatter(
        name=safe(name),
        legendgroup=name,
        mode="markers",
        x=[*counts, *nothing],
        y=[*values, *nothing],
        marker={
            "color": look.colour,
            "symbol": f"{look.symbol}-open",
            "size": max(6, 15 - 2 * number),
            "line": {"color": look.colour, "width": 2},
        },
        hovertext=[
            f"{safe(name)}, {count}<br>{each}" for count, each in zip(counts, words, strict=True)
        ],
        hoverinfo="text",
        showlegend=True,
        cliponaxis=False,
    )


def _mark_break_even(figure: go.Figure, scaling: Scaling, found: BreakEven | None) -> None:
    """A line at the number where the first path overtakes the naive reference, and its words."""
    if found is None:
        return
    place = math.log10(found.count)
    figure.add_shape(
        type="line", x0=found.count, x1=found.count, y0=0, y1=1, yref="paper",
        line={"color": GREY, "width": 1.5, "dash": "dot"}, layer="below",
    )  # fmt: skip
    first, last = math.log10(scaling.counts[0]), math.log10(scaling.counts[-1])
    share = (place - first) / (last - first) if last > first else 0.0
    words = f"break-even: {safe(found.path)} {found.side} {found.count}"
    figure.add_annotation(
        # Where the words end within 360 pixels.
        x=place, xanchor="left" if share < 0.2 else "center" if share < 0.6 else "right",
        y=1, yref="paper", yanchor="bottom", text=words, showarrow=False, font_size=12,
    )  # fmt: skip
