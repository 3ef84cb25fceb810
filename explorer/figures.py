"""Result → plotly figures: time, passes through f, accuracy, spectral norms, and the scaling.

A figure needs a Result alone, finished or partial, and fits from 360 px to a projector. It sets
no colour for text, grid and axes: `figures.css` does, from the page's theme. Colour, marker and
dash stand for a path, the same in every figure.
"""

from __future__ import annotations

import itertools
import json
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, TypeGuard

import plotly.graph_objects as go

from explorer import sentences, units
from explorer.result import HeadResult, PathResult, Result, Scaling, ScalingPath, Seconds

CONFIG: dict[str, Any] = {
    "responsive": True,
    "displaylogo": False,
    "showSendToCloud": False,
    "plotlyServerURL": "",  # nothing in a figure may lead, or ask, outside
    "modeBarButtonsToRemove": ["select2d", "lasso2d"],
}
"""plotly's configuration for every figure."""


@dataclass(frozen=True)
class PathStyle:
    """How a path looks: an Okabe-Ito colour, a marker, a dash for lines."""

    colour: str
    symbol: str
    dash: str


PATH_STYLE: dict[str, PathStyle] = {
    "recompute": PathStyle("#D55E00", "circle", "solid"),
    "retain_graph": PathStyle("#E69F00", "square", "dash"),
    "reuse": PathStyle("#0072B2", "diamond", "dot"),
    "batched_vjp": PathStyle("#56B4E9", "triangle-up", "dashdot"),
    "low_rank_vjp": PathStyle("#009E73", "triangle-down", "longdashdot"),
    # Okabe and Ito's yellow, darkened: theirs is not seen on white.
    "jvp": PathStyle("#A89B00", "cross", "8px,2px"),
    "auto": PathStyle("#CC79A7", "star", "2px,2px"),
    "torchjd": PathStyle("#777777", "hexagon", "2px,6px"),
}
_OTHER = PathStyle("#999999", "x", "longdash")  # of a path that this version does not know

_GREY = "#808080"  # outlines and marks of no path: seen on black and on white
_CLEAR = "rgba(0,0,0,0)"
_FONT = "system-ui, sans-serif"

_LABEL = 18  # characters of a row's name, or a long typed head leaves no room for the picture
_ROW = 46  # pixels of one row
_CURVES = 260  # pixels of the axes of curves
_SUBTITLE = 42  # characters of a line of the subtitle: what 360 pixels hold
_LEFT_OUT = "left out here"  # a head outside its domain, or not finite
_LOG_FROM = 50.0  # largest over smallest norm from which their axis is logarithmic


def figures(result: Result, relative_to: str = "") -> dict[str, go.Figure]:
    """The figures by name, in the order they are shown: time, passes, accuracy, norms, and two of
    every scaling, `scaling-heads-passes` and `scaling-heads-time`.

    The times of a scaling are in seconds, or relative to those of a path.
    """
    drawn = {
        "time": _time(result),
        "passes": _passes(result),
        "accuracy": _accuracy(sentences.few(result)),
        "norms": _norms(sentences.few(result)),
    }
    for along, scaling in result.scaling.items():
        drawn[f"scaling-{along}-passes"] = _scaling_passes(scaling)
        drawn[f"scaling-{along}-time"] = _scaling_time(result, scaling, relative_to)
    return drawn


def waiting() -> go.Figure:
    """The frame of the first figure, for before there is a Result.

    While it is drawn, a browser loads plotly, which is the slow part of a first picture.
    """
    figure = _figure("Time per path", "not yet run", rows=())
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure


def mime_bundle(figure: go.Figure) -> dict[str, Any]:
    """What a notebook displays, as plain data: plotly's own type, and the title as text."""
    drawing = json.loads(figure.to_json())
    return {
        "application/vnd.plotly.v1+json": {**drawing, "config": CONFIG},
        "text/plain": drawing["layout"]["title"]["text"],
    }


def style(path: str) -> PathStyle:
    """The style of a path; grey for one that is not known."""
    return PATH_STYLE.get(path, _OTHER)


# Time.


def _time(result: Result) -> go.Figure:
    environment = result.environment
    threads = _several(environment.threads, "thread")
    reference = sentences.baseline(result)
    figure = _figure(
        "Time per path",
        f"{environment.device_name}, {threads}, {result.experiment.dtype}",
        "bar: median; whisker: middle half of runs",
        *([f"faster and slower: than {reference}"] if reference else []),
        rows=list(result.paths),
        legend=1 if sentences.measured(result) else 0,
    )
    wrong = sentences.wrong_paths(result)
    for row, (name, path) in enumerate(result.paths.items()):
        figure.add_trace(_time_bar(row, name, path, name in wrong))
        figure.add_annotation(**_time_label(row, result, name))
    figure.add_trace(_every_run(result))
    figure.update_xaxes(
        title_text="wall time of one execution",
        tickformat="~s",
        ticksuffix="s",
        rangemode="tozero",
        nticks=6,
    )
    return figure


def _time_bar(row: int, name: str, path: PathResult, wrong: bool) -> go.Bar:
    look, length = style(name), _length(path)
    below, above = _middle_half(path.seconds)
    words = "predicted, not run:" if path.seconds is None else "median"
    return go.Bar(
        name=_safe(name),
        orientation="h",
        x=[length],
        y=[row],
        width=0.62,
        marker=_fill([look], hatched=[path.seconds is None], faint=wrong),
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [above],
            "arrayminus": [below],
            "color": _GREY,
            "thickness": 1.5,
            "width": 6,
            "visible": above + below > 0,
        },
        hovertext=[f"{_safe(name)}<br>{words} {units.seconds(length)}"],
        hoverinfo="text",
        showlegend=False,
    )


def _length(path: PathResult) -> float:
    """Seconds that a path's bar shows: the median, what was predicted, or nothing yet."""
    if path.seconds is not None:
        return path.seconds.median
    return (path.predicted_seconds or 0.0) if path.status == "predicted" else 0.0


def _middle_half(seconds: Seconds | None) -> tuple[float, float]:
    """How far the lower and the upper quartile of the runs lie from their median."""
    if seconds is None or len(seconds.runs) < 2:
        return 0.0, 0.0
    low, high = sentences.middle_half(seconds)
    return max(0.0, seconds.median - low), max(0.0, high - seconds.median)


def _time_label(row: int, result: Result, name: str) -> dict[str, Any]:
    """`13.2 ms` over `9.6× faster`, behind the whisker of the bar."""
    path = result.paths[name]
    length = _length(path)
    took = f"<b>{units.seconds(length)}</b>" if length else ""
    lines = filter(None, (took, sentences.comparison(result, name)))
    return _beside(length + _middle_half(path.seconds)[1], row, "<br>".join(lines))


def _every_run(result: Result) -> go.Scatter:
    """The raw runs as points, shown by a click on the legend."""
    rows = {name: row for row, name in enumerate(result.paths)}
    runs = [
        (name, run) for name, seconds in sentences.measured(result).items() for run in seconds.runs
    ]
    return go.Scatter(
        name="every run (click to show)",
        mode="markers",
        x=[run for _, run in runs],
        y=[rows[name] for name, _ in runs],
        marker={
            "color": [style(name).colour for name, _ in runs],
            "symbol": [style(name).symbol for name, _ in runs],
            "size": 9,
            "line": {"color": "white", "width": 1.5},  # apart from the bar of the same colour
        },
        hovertext=[f"{_safe(name)}<br>one run {units.seconds(run)}" for name, run in runs],
        hoverinfo="text",
        visible="legendonly",
    )


# Passes through f.


def _passes(result: Result) -> go.Figure:
    paths = result.paths
    ways = {
        "forward": [path.forward_passes for path in paths.values()],
        "backward": [path.backward_passes for path in paths.values()],
        "forward mode": [path.forward_mode_passes for path in paths.values()],
    }
    if not any(ways["forward mode"]):
        del ways["forward mode"]
    heads = _several(len(result.heads), "head")
    outputs = _several(result.function.outputs, "output")
    figure = _figure(
        "Passes through f per path",
        f"exact counts; {heads}, f with {outputs}",
        rows=list(paths),
        row=_ROW if len(ways) == 2 else 3 * _ROW // 2,
    )
    height = 0.8 / len(ways)
    for number, (way, counts) in enumerate(ways.items()):
        lane = (number - (len(ways) - 1) / 2) * height
        figure.add_trace(_counts(result, way, counts, lane, 0.9 * height))
        for row, count in enumerate(counts):
            if count or way != "forward mode":
                figure.add_annotation(**_beside(count, row + lane, f"<b>{count}</b> {way}"))
    figure.update_xaxes(
        title_text="passes through f (number)",
        rangemode="tozero",
        tick0=0,
        dtick=_whole_step(max(max(counts) for counts in ways.values())),
    )
    return figure


def _counts(result: Result, way: str, counts: Sequence[int], lane: float, height: float) -> go.Bar:
    """One way through f, a bar a path; backward in full colour, the others faint."""
    waiting = [path.seconds is None for path in result.paths.values()]
    return go.Bar(
        name=way,
        orientation="h",
        x=list(counts),
        y=[row + lane for row in range(len(counts))],
        width=height,
        marker=_fill(map(style, result.paths), hatched=waiting, faint=way != "backward"),
        hovertext=[
            f"{_safe(name)}<br>{count} {way}{' (expected)' if waits else ''}"
            for name, count, waits in zip(result.paths, counts, waiting, strict=True)
        ],
        hoverinfo="text",
        showlegend=False,
    )


def _whole_step(largest: int) -> int:
    """The distance of at most five ticks up to a count: 1, 2 or 5 times a power of ten."""
    step, growth = 1, itertools.cycle((2, 2.5, 2))
    while 5 * step < largest:
        step = int(step * next(growth))
    return step


# Accuracy.


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
        finite = [v for v in values if v is not None and 0 < v < math.inf]
        dtype = result.experiment.dtype
        zero = min([sentences.EPSILON[dtype], *finite]) / 10
        return cls(zero, sentences.tolerance(dtype), 10 * max([1.0, *finite]))

    def place(self, value: float) -> float:
        return min(max(value, self.zero), self.top)

    def ticks(self) -> tuple[list[float], list[str]]:
        """0, and powers of ten."""
        places, words = _powers(self.zero * 10**1.5, self.top)
        return [self.zero, *places], ["0", *words]


def _accuracy(result: Result) -> go.Figure:
    scale = _Scale.of(result)
    figure = _figure(
        "Agreement and error of the gradients",
        *_compared_with(result),
        rows=list(result.heads),
        row=max(_ROW, 11 * len(result.paths)),
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
        figure.add_annotation(**_remark(row, _why_no_points(head), head.domain))
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
    if any(map(_is_known, errors)):
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
        if not head.domain and not itself and _is_known(value):
            points.append((row + lane, value))
    return go.Scatter(
        name=_safe(path),
        legendgroup=path,
        mode="markers",
        x=[scale.place(value) for _, value in points],
        y=[row for row, _ in points],
        marker={
            "color": look.colour,
            "symbol": look.symbol + ("-open" if hollow else ""),
            "size": 14 if hollow else 9,
            "line": {"color": look.colour if hollow else _GREY, "width": 2 if hollow else 1},
        },
        hovertext=[f"{_safe(path)}<br>{kind} {_precisely(value)}" for _, value in points],
        hoverinfo="text",
        cliponaxis=False,
    )


def _why_no_points(head: HeadResult) -> str:
    """What stands in the row of a head without points; empty where there are some."""
    if head.domain:
        return _LEFT_OUT
    if not head.gradient:
        return "not yet run"
    known = any(map(_is_known, (*head.agreement.values(), *head.error.values())))
    return "" if known else "not known"


def _mark_tolerance(figure: go.Figure, scale: _Scale) -> None:
    """The band of wrong gradients, named above the rows, and the place of 0 set apart."""
    figure.add_shape(
        type="rect", x0=scale.limit, x1=scale.top, y0=0, y1=1, yref="paper",
        fillcolor=_GREY, opacity=0.16, line_width=0, layer="below",
    )  # fmt: skip
    for x, dash in ((scale.limit, "solid"), (scale.zero * 4, "dot")):
        figure.add_shape(
            type="line", x0=x, x1=x, y0=0, y1=1, yref="paper",
            line={"color": _GREY, "width": 1.5, "dash": dash}, layer="below",
        )  # fmt: skip
    for words, anchor in (("right ", "right"), (" wrong", "left")):
        figure.add_annotation(
            x=math.log10(scale.limit), y=1, yref="paper", text=words, xanchor=anchor,
            yanchor="bottom", showarrow=False, font_size=12,
        )  # fmt: skip


# Spectral norms.

_BOUND = "bound"
_NORMS = {
    "‖dy/dx‖": ("#009E73", "square"),
    "‖dg/dy‖": ("#56B4E9", "circle"),
    "‖dz/dx‖": ("#CC79A7", "diamond"),
    _BOUND: (_GREY, "line-ns-open"),
}


def _norms(result: Result) -> go.Figure:
    found = result.jacobian
    rows = ["f", *result.heads]
    bound = "bound on ‖dz/dx‖: ‖dg/dy‖·‖dy/dx‖"
    figure = _figure("Spectral norms", found.method, bound, rows=rows, legend=len(_NORMS))
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
    logarithmic = bool(finite) and max(finite) > _LOG_FROM * min(finite)
    zero = min(finite) / 10 if logarithmic else 0.0
    places, words = _powers(min(finite), max(finite)) if logarithmic else (None, None)
    for quantity, by_row in values.items():
        figure.add_trace(_norm_points(quantity, by_row, rows, zero))
    for row, name in enumerate(rows):
        numbers = [by_row[name] for by_row in values.values() if name in by_row]
        if name in left_out:
            figure.add_annotation(**_remark(row, _LEFT_OUT, result.heads[name].domain))
        elif any(not math.isfinite(number) for number in numbers):
            figure.add_annotation(**_remark(row, "not finite here", ""))
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
            "line": {"color": _GREY, "width": 3 if bound else 1},
        },
        hovertext=[f"{_safe(rows[row])}<br>{quantity} {_precisely(v)}" for row, v in points],
        hoverinfo="text",
        cliponaxis=False,
    )


# Scaling.


def _scaling_passes(scaling: Scaling) -> go.Figure:
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


def _scaling_time(result: Result, scaling: Scaling, relative_to: str) -> go.Figure:
    reference = scaling.paths.get(relative_to)
    threads = _several(result.environment.threads, "thread")
    figure = _curves(
        "Relative time" if reference else "Time",
        scaling,
        f"{result.environment.device_name}, {threads}, {result.experiment.dtype}",
        "marker: median; line: predicted from the passes",
        axis=f"time over that of {_safe(relative_to)}" if reference else "time of one execution",
    )
    for number, (name, path) in enumerate(scaling.paths.items()):
        predicted = [each.seconds for each in path.predicted]
        if reference:
            pairs = zip(predicted, (each.seconds for each in reference.predicted), strict=True)
            predicted = [own / other if other else math.nan for own, other in pairs]
        figure.add_trace(_curve(name, scaling.counts, predicted))
        figure.add_trace(_measured_times(name, number, path, reference))
    if reference is None:
        figure.update_yaxes(tickformat="~s", ticksuffix="s")
    _mark_break_even(figure, scaling)
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
    spread = [tuple(part / unit for part in _middle_half(point.seconds)) for point, unit in points]
    words = [
        units.seconds(point.seconds.median)
        + (f", by {_safe(point.taken)}" if point.taken else "")
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
    trace.error_y = {
        "type": "data",
        "symmetric": False,
        "array": [above for _, above in spread],
        "arrayminus": [below for below, _ in spread],
        "color": _GREY,
        "thickness": 1,
        "width": 3,
    }
    return trace


def _curves(title: str, scaling: Scaling, *subtitle: str, axis: str) -> go.Figure:
    """An empty figure with two logarithmic axes, the counts along the first."""
    figure = _frame(
        f"{title} by number of {scaling.along}",
        sentences.scanned(scaling),
        *subtitle,
        height=_CURVES,
        above=16,
        legend=len(scaling.paths),
    )
    figure.update_xaxes(
        title_text=f"{sentences.ALONG[scaling.along]} (number)",
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
        name=_safe(name),
        legendgroup=name,
        mode="lines",
        x=list(counts),
        y=[value if math.isfinite(value) and value > 0 else None for value in values],
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
        name=_safe(name),
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
            f"{_safe(name)}, {count}<br>{each}" for count, each in zip(counts, words, strict=True)
        ],
        hoverinfo="text",
        showlegend=True,
        cliponaxis=False,
    )


def _mark_break_even(figure: go.Figure, scaling: Scaling) -> None:
    """A line at the number where the first path overtakes the naive reference, and its words."""
    found = scaling.break_even
    if found is None:
        return
    place = math.log10(found.count)
    figure.add_shape(
        type="line", x0=found.count, x1=found.count, y0=0, y1=1, yref="paper",
        line={"color": _GREY, "width": 1.5, "dash": "dot"}, layer="below",
    )  # fmt: skip
    left = place < math.log10(scaling.counts[-1]) / 2
    words = f"break-even: {_safe(found.path)} {found.side} {found.count}"
    figure.add_annotation(
        x=place, y=1, yref="paper", text=words,
        xanchor="left" if left else "right", yanchor="bottom", showarrow=False, font_size=12,
    )  # fmt: skip


# What the figures share.


def _figure(
    title: str,
    *subtitle: str,
    rows: Sequence[str],
    row: int = _ROW,
    legend: int = 0,
    above: int = 0,
) -> go.Figure:
    """An empty figure with a named row for everything it compares, the first on top.

    `row` is the height of one in pixels, `above` the room between the titles and the rows, and
    `legend` the number of names in the legend.
    """
    figure = _frame(title, *subtitle, height=row * max(2, len(rows)), above=above, legend=legend)
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[_safe(row if len(row) <= _LABEL else row[: _LABEL - 1] + "…") for row in rows],
        ticks="outside",
        ticklen=6,
        tickcolor=_CLEAR,  # room between a name and its row
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )
    return figure


def _frame(title: str, *subtitle: str, height: int, above: int = 0, legend: int) -> go.Figure:
    """An empty figure; `height` is that of its axes in pixels."""
    lines = [line for part in subtitle for line in textwrap.wrap(part, _SUBTITLE)]
    top = 44 + 16 * len(lines) + above
    # Two names to a line of the legend: what 360 pixels hold.
    bottom = 52 + (12 + 20 * math.ceil(legend / 2) if legend else 0)
    small = {"size": 12}
    figure = go.Figure()
    figure.update_layout(
        template=go.layout.Template(),
        title={
            "text": title,
            "subtitle": {"text": "<br>".join(map(_safe, lines)), "font": small},
            "x": 0,
            "xref": "container",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 8, "t": 10},
            "font": {"size": 16},
        },
        autosize=True,
        height=top + bottom + height,
        margin={"l": 8, "r": 12, "t": top, "b": bottom},
        font={"family": _FONT, "size": 13},
        hoverlabel={"font": {"family": _FONT, "size": 12}},
        paper_bgcolor=_CLEAR,
        plot_bgcolor=_CLEAR,
        barmode="overlay",
        showlegend=legend > 0,
        legend={
            "orientation": "h",
            "x": 0,
            "xref": "container",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "bgcolor": _CLEAR,
            "font": small,
        },
        dragmode=False,  # a finger on a phone scrolls the page
        hovermode="closest",
    )
    figure.update_xaxes(fixedrange=True, automargin=True, title_font=small, tickfont=small)
    figure.update_yaxes(fixedrange=True, automargin=True)
    return figure


def _fill(looks: Iterable[PathStyle], hatched: Sequence[bool], faint: bool) -> dict[str, Any]:
    """The marker of bars; those that stand for no measurement are hatched."""
    colours = [look.colour for look in looks]
    return {
        "color": colours,
        "line": {"color": colours, "width": 1.5},
        "pattern": {"shape": ["/" if hatch else "" for hatch in hatched], "solidity": 0.25},
        "opacity": 0.5 if faint else 1.0,
    }


def _beside(x: float, y: float, text: str) -> dict[str, Any]:
    """An annotation on the right of the point (x, y)."""
    return {
        "x": x, "y": y, "text": text, "xanchor": "left", "xshift": 5, "align": "left",
        "showarrow": False, "font": {"size": 12},
    }  # fmt: skip


def _remark(row: int, text: str, hover: str) -> dict[str, Any]:
    """An annotation in the place of a row's points."""
    return {
        "x": 0.5, "xref": "paper", "y": row, "text": text, "hovertext": _safe(hover),
        "showarrow": False, "font": {"size": 12},
    }  # fmt: skip


def _is_known(value: float | None) -> TypeGuard[float]:
    return value is not None and not math.isnan(value)


def _precisely(value: float) -> str:
    return "exactly 0" if value == 0 else f"{value:.3g}"


def _powers(low: float, high: float) -> tuple[list[float], list[str]]:
    """As many powers of ten between two numbers as 360 pixels have room for, and their names."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    step = max(1, math.ceil((last - first) / 4))
    exponents = range(-(-first // step) * step, last + 1, step)
    return [10.0**exponent for exponent in exponents], [_power(each) for each in exponents]


def _power(exponent: int) -> str:
    """`10⁻¹²`, and 1 for 10⁰."""
    if exponent == 0:
        return "1"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _safe(text: str) -> str:
    """Text that plotly, which reads some HTML in text, shows as it is."""
    return escape(text, quote=False)
