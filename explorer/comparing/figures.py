"""Comparison → plotly figures: the ratios of the times, the times, and the scalings overlaid.

Colour and marker stand for a path, as everywhere; which Result it is, the row says, or in a scaling
the dash. The first Result's markers are filled, the others' open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import plotly.graph_objects as go

from explorer import sentences as of_result
from explorer import units
from explorer.comparing import sentences
from explorer.comparing.comparison import Comparison, Ratio
from explorer.comparing.tables import scalings
from explorer.drawing import (
    CURVES,
    GREY,
    frame,
    on_log_axis,
    row_frame,
    safe,
    shortened,
    spread,
    style,
)
from explorer.experiment import Along
from explorer.figures.paths import whiskers
from explorer.result import Seconds
from explorer.scaling_sentences import ALONG

_ROW = 24  # pixels of a row: there are many
_TALL = 34  # of one with words above its mark
_POINTS = 100  # runs of a row that are drawn
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_ROOM = 0.55  # of the drawn decades, beyond the last point, for the words beside it
_FEW = 0.3  # decades from which ticks at 1, 2 and 5 are enough
_TICKS, _TIMES = 6, 4  # that 360 pixels have room for, of numbers and of times


def figures(comparison: Comparison) -> dict[str, go.Figure]:
    """The figures by name: `ratio`, `time`, and `scaling-heads` and `scaling-outputs` where two of
    the Results have one."""
    return {
        "ratio": _ratio(comparison),
        "time": _time(comparison),
        **{f"scaling-{along}": _scaling(comparison, along) for along in scalings(comparison)},
    }


Row = tuple[str, str]
"""A path, and the name of a Result; "" in the row that names the path."""


def _ratio(comparison: Comparison) -> go.Figure:
    rows = _rows((path, name) for path, found in comparison.ratios.items() for name in found)
    figure = _frame(
        "Ratio of the times",
        f"time over that in {comparison.first}; left of 1: faster",
        "whisker: 95% confidence interval; faint: no significant difference",
        rows=rows,
        row=_TALL,
    )
    values, marks, words = [1.0], [], []
    for row, (path, name) in enumerate(rows):
        if not name:
            continue
        ratio = comparison.ratios[path][name]
        low, high = ratio.low or ratio.value, ratio.high or ratio.value
        values += [low, ratio.value, high]
        marks.append(_ratio_mark(row, path, name, ratio))
        # Above the mark: beside a long whisker there is no room.
        words.append({
            "x": 1, "xref": "paper", "xanchor": "right", "y": row, "yshift": 12,
            "text": sentences.standing(ratio), "showarrow": False, "font": {"size": 12},
        })  # fmt: skip
    _draw(figure, marks, words)
    figure.add_shape(
        type="line", x0=1, x1=1, y0=0, y1=1, yref="paper",
        line={"color": GREY, "width": 1.5, "dash": "dot"}, layer="below",
    )  # fmt: skip
    _logarithmic(figure, values, room=0.08)
    figure.update_xaxes(title_text="ratio of the times (no unit)")
    return figure


def _ratio_mark(row: int, path: str, name: str, ratio: Ratio) -> go.Scatter:
    ends = sentences.interval(ratio)
    words = (
        f"{safe(path)}, {safe(name)}<br>{units.number(ratio.value)} times the time in "
        f"{safe(ratio.against)}<br>{f'95% interval {ends}, ' if ends else ''}p = "
        f"{units.number(ratio.p, 2)}"
    )
    trace = _mark(row, path, ratio.value, words, filled=ratio.significant)
    trace.opacity = 1.0 if ratio.significant else 0.6
    if ratio.low is not None and ratio.high is not None:
        trace.error_x = _whiskers(ratio.value - ratio.low, ratio.high - ratio.value)
    return trace


def _time(comparison: Comparison) -> go.Figure:
    times = {
        (path, name): seconds
        for path in comparison.paths
        for name, result in comparison.results.items()
        if (seconds := of_result.measured(result).get(path)) is not None
    }
    rows = _rows(times)
    figure = _frame(
        "Time per path and Result",
        "marker: median; whisker: middle half of runs; point: a run",
        rows=rows,
    )
    marks, words = [_every_run(rows, times)], []
    for row, (path, name) in enumerate(rows):
        if name:
            seconds = times[path, name]
            below, above = whiskers(seconds)
            hover = f"{safe(path)}, {safe(name)}<br>median {units.seconds(seconds.median)}"
            trace = _mark(row, path, seconds.median, hover, filled=name == comparison.first)
            trace.error_x = _whiskers(below, above)
            wrong = path in comparison.wrong.get(name, ())
            trace.opacity = 0.5 if wrong else 1.0
            marks.append(trace)
            said = units.seconds(seconds.median) + (", wrong" if wrong else "")
            furthest = max((seconds.median + above, *filter(math.isfinite, seconds.runs)))
            words.append(_beside(furthest, row, said))
    _draw(figure, marks, words)
    every = [run for seconds in times.values() for run in seconds.runs]
    _logarithmic(figure, every, room=_ROOM, most=_TIMES, words=units.seconds)
    figure.update_xaxes(title_text="wall time of one execution")
    return figure


def _every_run(rows: Sequence[Row], times: dict[Row, Seconds]) -> go.Scatter:
    """The raw runs as small points, below the markers; of very many, evenly spaced ones."""
    place = {row: number for number, row in enumerate(rows)}
    runs = [
        (row, run)
        for row, seconds in times.items()
        for run in seconds.runs[:: 1 + (len(seconds.runs) - 1) // _POINTS]
    ]
    return go.Scatter(
        mode="markers",
        x=[run for _, run in runs],
        y=[place[row] for row, _ in runs],
        marker={"color": [style(path).colour for (path, _), _ in runs], "size": 4, "opacity": 0.6},
        hovertext=[
            f"{safe(path)}, {safe(name)}<br>one run {units.seconds(run)}"
            for (path, name), run in runs
        ],
        hoverinfo="text",
        showlegend=False,
    )


def _scaling(comparison: Comparison, along: Along) -> go.Figure:
    found = {
        name: result.scaling[along]
        for name, result in comparison.results.items()
        if along in result.scaling
    }
    paths = dict.fromkeys(path for each in found.values() for path in each.paths)
    figure = frame(
        f"Time by number of {along}, overlaid",
        "colour and marker: the path; dash: the Result",
        height=CURVES,
        above=16,
        legend=len(paths) + len(found),
    )
    values, counts = [], []
    for path in paths:
        figure.add_trace(_legend(path, style(path).colour, style(path).symbol, "solid"))
        for number, (name, scaling) in enumerate(found.items()):
            points = scaling.paths[path].measured if path in scaling.paths else ()
            look = style(path)
            figure.add_trace(
                go.Scatter(
                    x=[point.count for point in points],
                    y=[_drawn(point.seconds.median) for point in points],
                    mode="lines+markers",
                    line={"color": look.colour, "dash": _dash(number), "width": 2},
                    marker={
                        "color": look.colour,
                        "symbol": look.symbol + ("-open" if number else ""),
                        "size": 8,
                    },
                    hovertext=[
                        f"{safe(path)}, {safe(name)}, {point.count}<br>"
                        f"{units.seconds(point.seconds.median)}"
                        for point in points
                    ],
                    hoverinfo="text",
                    showlegend=False,
                    cliponaxis=False,
                )
            )
            values += [point.seconds.median for point in points]
            counts += [point.count for point in points]
    for number, name in enumerate(found):
        figure.add_trace(_legend(shortened(name), GREY, "", _dash(number)))
    figure.update_yaxes(title_text="time of one execution", title_font={"size": 12}, type="log",
                        dtick=1, tickformat="~s", ticksuffix="s")  # fmt: skip
    every = sorted(set(counts))
    powers = [count for count in every if str(count)[0] == "1"]
    ticks = powers if len(powers) > 1 else every
    figure.update_xaxes(
        title_text=f"{ALONG[along]} (number)", type="log",
        tickvals=ticks, ticktext=[str(tick) for tick in ticks],
    )  # fmt: skip
    return figure


def _legend(name: str, colour: str, symbol: str, dash: str) -> go.Scatter:
    """A name in the legend without a point in the picture."""
    return go.Scatter(
        name=safe(name),
        x=[None],
        y=[None],
        mode="markers" if symbol else "lines",
        marker={"color": colour, "symbol": symbol or "circle", "size": 9},
        line={"color": colour, "dash": dash, "width": 2},
        showlegend=True,
    )


def _dash(number: int) -> str:
    return _DASHES[number % len(_DASHES)]


# What the figures share.


def _rows(pairs: Iterable[Row]) -> list[Row]:
    """The rows in the order of the paths, before those of each the row that names it."""
    found: dict[str, list[Row]] = {}
    for path, name in pairs:
        found.setdefault(path, []).append((path, name))
    return [row for path, rows in found.items() for row in ((path, ""), *rows)]


def _frame(title: str, *subtitle: str, rows: Sequence[Row], row: int = _ROW) -> go.Figure:
    labels = [name or path for path, name in rows]
    figure = row_frame(title, *subtitle, rows=labels, row=row)
    figure.update_yaxes(
        ticktext=[
            safe(shortened(name)) if name else f"<b>{safe(shortened(path))}</b>"
            for path, name in rows
        ]
    )
    return figure


def _draw(
    figure: go.Figure, marks: Sequence[go.Scatter], words: Sequence[dict[str, Any]]
) -> None:
    """All at once: plotly takes the longer for one more, the more there are."""
    figure.add_traces(marks)
    figure.update_layout(annotations=words)


def _mark(row: int, path: str, value: float, words: str, *, filled: bool) -> go.Scatter:
    look = style(path)
    return go.Scatter(
        name=safe(path),
        mode="markers",
        x=[_drawn(value)],
        y=[row],
        marker={
            "color": look.colour,
            "symbol": look.symbol + ("" if filled else "-open"),
            "size": 11,
            "line": {"color": look.colour, "width": 2},
        },
        hovertext=[words],
        hoverinfo="text",
        showlegend=False,
    )


def _whiskers(below: float, above: float) -> dict[str, Any]:
    return spread([below], [above], thickness=1.5, width=5)


def _drawn(value: float) -> float | None:
    """The value where it has a place."""
    return value if on_log_axis(value) else None


def _beside(x: float, row: int, words: str) -> dict[str, Any]:
    """Words on the right of a point of a logarithmic axis."""
    place = math.log10(x) if on_log_axis(x) else 0.0
    return {
        "x": place, "y": row, "text": words, "xanchor": "left", "xshift": 8, "showarrow": False,
        "font": {"size": 12},
    }  # fmt: skip


def _logarithmic(
    figure: go.Figure,
    values: Iterable[float],
    *,
    room: float,
    most: int = _TICKS,
    words: Callable[[float], str] = "{:.4g}".format,
) -> None:
    """A logarithmic first axis, with room beyond the last value, and ticks as there is room."""
    places = [math.log10(value) for value in values if on_log_axis(value)] or [0.0]
    low, high = min(places), max(places)
    span = max(high - low, math.log10(1.1))
    figure.update_xaxes(type="log", range=[low - 0.08 * span, high + room * span])
    ticks = _ticks(10 ** (low - 0.08 * span), 10 ** (high + 0.08 * span), most)
    figure.update_xaxes(tickvals=ticks, ticktext=[words(tick) for tick in ticks])


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from `low` to `high`: evenly spaced in a narrow range, else the powers of ten
    with as many between them as there is room for."""
    decades = math.log10(high / low)
    if decades < _FEW:
        step = 10 ** math.floor(math.log10((high - low) / 2))
        step *= next(times for times in (1, 2, 5, 10) if (high - low) / (times * step) < most - 1)
        first, last = math.ceil(low / step), math.floor(high / step)
        return [number * step for number in range(first, last + 1)]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    between = [(1, (1, 2, 5)), (1, (1, 3)), *((every, (1,)) for every in range(1, last - first))]
    for every, digits in between:
        exponents = range(-(-first // every) * every, last + 1, every)
        found = [digit * 10.0**exponent for exponent in exponents for digit in digits]
        found = [tick for tick in found if low <= tick <= high]
        if len(found) <= most:
            break
    return found
