"""Study → plotly figures: times, the speed-up, errors and norms against the axes of a sweep.

The first axis lies along the pictures. In the speed-up every combination of the others has a curve:
colour stands for the second axis, the dash for the third. The other pictures, where colour stands
for the path, are of one value of each further axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from explorer import units
from explorer.drawing import CURVES, GREY, frame, on_log_axis, safe, spread, style
from explorer.study import sentences
from explorer.study.axis import Axis, Value, evenly, text
from explorer.study.point import PathPoint, Point
from explorer.study.study import Study

_MARKED = 600  # points of a picture up to which each has a mark and its spread
_CURVES = 200  # curves of a picture, whose lines a browser moves at once
_NAMED = 12  # curves up to which each has its name in the legend
_DECADES = 8.0  # the largest over the smallest value from which the first axis is logarithmic
_FINE = 3  # powers of ten up to which an axis has ticks between them
_SCALE, _SHADES = "Viridis", 1001
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")


def chosen(study: Study, choice: Mapping[str, Value] | None = None) -> dict[str, Value]:
    """The values of the axes behind the first that the pictures by path are of: by default the
    largest number, and the first of what has no order."""
    at: dict[str, Value] = {}
    for axis in study.axes[1:]:
        largest = max(axis.values) if axis.numeric else axis.values[0]
        value = (choice or {}).get(axis.name, largest)
        at[axis.name] = value if value in axis.values else largest
    return at


def figures(study: Study, choice: Mapping[str, Value] | None = None) -> dict[str, go.Figure]:
    """The figures by name: `speed-up`, `time`, `passes`, `error`, `norm`.

    `choice` has values of the axes behind the first, for the pictures that show one of each.
    """
    at = chosen(study, choice)
    points = [p for p in study.points if all(p.at[name] == value for name, value in at.items())]
    return {
        "speed-up": _speed_up(study),
        "time": _by_path(
            study, points, at, "Time by path", "time of one execution",
            lambda path: path.seconds, _time_words, units.seconds, whiskers=True,
        ),
        "passes": _by_path(
            study, points, at, "Passes through f by path", "forward, backward, forward mode",
            lambda path: path.forward + path.backward + path.forward_mode, _passes_words,
            "{:g}".format,
        ),
        "error": _by_path(
            study, points, at, "Error of the gradients", "largest relative error of a head",
            lambda path: path.error, _error_words, "{:.0e}".format,
        ),
        "norm": _norm(study),
    }  # fmt: skip


def _speed_up(study: Study) -> go.Figure:
    """How many times as fast as the naive path the fastest other one was, at every point."""
    curves, some = _few(_curves_of(study))
    gains = [
        [(p, each) for p in points if (each := sentences.gain(p)) is not None]
        for _, points, *_ in curves
    ]
    wrong = any(each.wrong for found in gains for _, each in found)
    figure = _frame(
        study,
        "Speed-up over the naive path",
        "of the fastest path with right gradients"
        + ("; open mark: the naive ones are wrong" if wrong else ""),
        some,
        axis="naive time over the fastest",
        legend=len(curves) if 1 < len(curves) <= _NAMED else 0,
    )
    marked = _is_marked(curves)
    for (at, _, colour, dash, symbol), found in zip(curves, gains, strict=True):
        name = ", ".join(f"{name}={text(value)}" for name, value in at.items()) or "speed-up"
        figure.add_trace(
            go.Scatter(
                name=safe(name),
                x=[_place(study.axes[0], point) for point, _ in found],
                y=[each.ratio for _, each in found],
                mode="lines+markers" if marked else "lines",
                line={"color": colour, "dash": dash, "width": 2},
                marker={
                    "color": colour,
                    "size": 8,
                    "symbol": _each(
                        marked, [f"{symbol}-open" if each.wrong else symbol for _, each in found]
                    ),
                    "line": {"color": colour, "width": 1.5},
                },
                hovertext=[_gain_words(point, each) for point, each in found],
                hoverinfo="text",
                showlegend=1 < len(curves) <= _NAMED,
                cliponaxis=False,
            )
        )
    if len(curves) > _NAMED:
        figure.add_trace(_colour_bar(study.axes[1]))
    figure.add_hline(y=1, line={"color": GREY, "dash": "dot", "width": 1.5}, layer="below")
    _logarithmic(figure, "{:g}".format)
    return figure


def _norm(study: Study) -> go.Figure:
    """‖dy/dx‖₂ at every point."""
    different: dict[tuple[Any, ...], Curve] = {}  # the number of heads, say, is nothing to it
    for curve in _curves_of(study):
        values = tuple((_place(study.axes[0], point), point.norm) for point in curve[1])
        different.setdefault(values, curve)
    curves, some = _few(list(different.values()))
    figure = _frame(
        study, "Spectral norm of dy/dx", _gaps(point.norm for point in study.points), some,
        axis="‖dy/dx‖₂", legend=len(curves) if 1 < len(curves) <= _NAMED else 0,
    )  # fmt: skip
    marked = _is_marked(curves)
    for at, points, colour, dash, symbol in curves:
        found = [p for p in points if on_log_axis(p.norm)]
        name = ", ".join(f"{name}={text(value)}" for name, value in at.items()) or "‖dy/dx‖₂"
        figure.add_trace(
            go.Scatter(
                name=safe(name),
                x=[_place(study.axes[0], point) for point in found],
                y=[point.norm for point in found],
                mode="lines+markers" if marked else "lines",
                line={"color": colour, "dash": dash, "width": 2},
                marker={"color": colour, "size": 7, "symbol": symbol},
                hovertext=[f"{_at(p)}<br>{units.number(p.norm or 0.0)}" for p in found],
                hoverinfo="text",
                showlegend=1 < len(curves) <= _NAMED,
            )
        )
    if len(curves) > _NAMED:
        figure.add_trace(_colour_bar(study.axes[1]))
    _logarithmic(figure, "{:g}".format)
    return figure


Curve = tuple[dict[str, Value], list[Point], str, str, str]
"""The values of the further axes, the points along the first, colour, dash and symbol."""


def _is_marked(curves: Sequence[Curve]) -> bool:
    return sum(len(points) for _, points, *_ in curves) <= _MARKED


def _curves_of(study: Study) -> list[Curve]:
    """One for each combination of the further axes that has points."""
    found: dict[tuple[Value, ...], list[Point]] = {}
    names = [axis.name for axis in study.axes[1:]]
    for point in study.points:
        found.setdefault(tuple(point.at[name] for name in names), []).append(point)
    curves = []
    places = [{value: n for n, value in enumerate(axis.values)} for axis in study.axes[1:]]
    orders = {
        values: tuple(place[v] for place, v in zip(places, values, strict=True)) for values in found
    }
    for values, order in sorted(orders.items(), key=lambda each: each[1]):
        colour, dash, symbol = style("reuse").colour, _DASHES[0], _SYMBOLS[0]
        if order:
            colour = _colour(study.axes[1], order[0])
        if len(order) > 1:
            dash = _DASHES[order[1] % len(_DASHES)]
            symbol = _SYMBOLS[order[1] % len(_SYMBOLS)]
        points = sorted(found[values], key=lambda p: _index(study.axes[0], p))
        curves.append((dict(zip(names, values, strict=True)), points, colour, dash, symbol))
    return curves


def _few(curves: list[Curve]) -> tuple[Sequence[Curve], str]:
    """(the curves that are drawn, what is said of the others)."""
    shown = evenly(curves, _CURVES)
    return shown, f"{len(shown)} of {len(curves)} curves" if len(shown) < len(curves) else ""


def _each(marked: bool, symbols: list[str]) -> list[str] | None:
    """The symbols of a curve with marks. plotly checks them one by one, though none be drawn."""
    return symbols if marked else None


def _index(axis: Axis, point: Point) -> float:
    value = point.at[axis.name]
    return float(value) if axis.numeric else axis.values.index(value)


def _colour(axis: Axis, index: int) -> str:
    share = index / max(1, len(axis.values) - 1)
    return _shades()[round(share * (_SHADES - 1))]


@cache
def _shades() -> list[str]:
    """Evenly spaced in a scale that is read in dark and light: its two ends are left out. All at
    once, since plotly looks the scale up anew at every call."""
    places = [0.25 + 0.6 * number / (_SHADES - 1) for number in range(_SHADES)]
    return [str(colour) for colour in sample_colorscale(_SCALE, places)]


def _colour_bar(axis: Axis) -> go.Scatter:
    """An empty trace that brings the scale of the second axis."""
    last = len(axis.values) - 1
    shown = sorted({0, last // 2, last})
    return go.Scatter(
        x=[None], y=[None], mode="markers", showlegend=False, hoverinfo="skip",
        marker={
            "color": [0],
            "cmin": 0,
            "cmax": max(1, last),
            "colorscale": [[i / 10, _colour(axis, round(last * i / 10))] for i in range(11)],
            "showscale": True,
            "colorbar": {
                "title": {"text": safe(axis.name), "font": {"size": 12}},
                "tickvals": shown,
                "ticktext": [safe(text(axis.values[i])) for i in shown],
                "thickness": 12,
                "len": 0.9,
            },
        },
    )  # fmt: skip


def _by_path(
    study: Study,
    points: Sequence[Point],
    at: Mapping[str, Value],
    title: str,
    axis: str,
    value: Callable[[PathPoint], float | None],
    words: Callable[[PathPoint], str],
    tick: Callable[[float], str],
    *,
    whiskers: bool = False,
) -> go.Figure:
    """A curve a path along the first axis; marks of wrong gradients are crosses."""
    paths = study.paths()
    where = ", ".join(f"{name}={text(each)}" for name, each in at.items())
    left_out = _gaps(value(path) for point in points for path in point.paths.values())
    figure = _frame(study, title, where, left_out, axis=axis, legend=len(paths))
    along = sorted(points, key=lambda point: _index(study.axes[0], point))
    marked = len(along) * len(paths) <= _MARKED
    for number, name in enumerate(paths):
        found = [
            (point, path)
            for point in along
            if (path := point.paths.get(name)) is not None and on_log_axis(value(path))
        ]
        look = style(name)
        trace = go.Scatter(
            name=safe(name),
            x=[_place(study.axes[0], point) for point, _ in found],
            y=[value(path) for _, path in found],
            mode="lines+markers" if marked else "lines",
            line={"color": look.colour, "dash": look.dash, "width": 2},
            marker={
                "color": look.colour,
                "symbol": _each(
                    marked, ["x-thin" if p.wrong else f"{look.symbol}-open" for _, p in found]
                ),
                "size": max(6, 13 - 2 * number),
                "line": {"color": look.colour, "width": 2},
            },
            hovertext=[f"{safe(name)}, {_at(point)}<br>{words(path)}" for point, path in found],
            hoverinfo="text",
            showlegend=True,
            cliponaxis=False,
        )
        if whiskers and marked:
            trace.error_y = spread(
                [(p.seconds or 0.0) - (p.low or 0.0) for _, p in found],
                [(p.high or 0.0) - (p.seconds or 0.0) for _, p in found],
            )
        figure.add_trace(trace)
    _logarithmic(figure, tick)
    return figure


def _logarithmic(figure: go.Figure, words: Callable[[float], str]) -> None:
    """A logarithmic second axis whose ticks are at 1, 2 and 5 times the powers of ten, or at some
    of the powers, as there is room for them."""
    values = [y for trace in figure.data for y in trace.y or () if on_log_axis(y)]
    figure.update_yaxes(type="log")
    if not values:
        return
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    steps = (1, 2, 5) if high - low <= _FINE else (1,)
    every = max(1, math.ceil((high - low) / 6))
    ticks = [step * 10.0**power for power in range(low, high + 1, every) for step in steps]
    figure.update_yaxes(tickvals=ticks, ticktext=[words(tick) for tick in ticks])


def _gaps(values: Iterable[float | None]) -> str:
    """That some have no place on a logarithmic axis."""
    every = all(value is None or on_log_axis(value) for value in values)
    return "" if every else "not drawn: 0, or no finite value"


def _frame(study: Study, title: str, *subtitle: str, axis: str, legend: int) -> go.Figure:
    along = study.axes[0]
    figure = frame(
        title, sentences.setting(study), *filter(None, subtitle), height=CURVES, legend=legend
    )
    figure.update_xaxes(title_text=safe(along.label), fixedrange=False)
    figure.update_yaxes(title_text=axis, title_font={"size": 12}, fixedrange=False)
    if not along.numeric:
        figure.update_xaxes(type="category", categoryarray=[safe(text(v)) for v in along.values])
    elif _spans_decades(along):
        values = sorted(map(float, along.values))
        few = values[:: max(1, math.ceil(len(values) / 6))]
        figure.update_xaxes(
            type="log",
            tickvals=few,
            ticktext=[text(value) for value in few],
            range=[math.log10(values[0]) - 0.08, math.log10(values[-1]) + 0.08],
        )
    return figure


def _spans_decades(axis: Axis) -> bool:
    low, high = min(map(float, axis.values)), max(map(float, axis.values))
    return low > 0 and high / low >= _DECADES


def _place(axis: Axis, point: Point) -> Value:
    value = point.at[axis.name]
    return value if axis.numeric else safe(text(value))


def _at(point: Point) -> str:
    return safe(", ".join(f"{name}={text(value)}" for name, value in point.at.items()))


def _gain_words(point: Point, gain: sentences.Gain) -> str:
    wrong = f"<br>{safe(gain.reference)} gives wrong gradients" if gain.wrong else ""
    return (
        f"{_at(point)}<br>{safe(gain.path)}: {units.ratio(gain.ratio)} times as fast as "
        f"{safe(gain.reference)}{wrong}"
    )


def _time_words(path: PathPoint) -> str:
    assert path.seconds is not None
    taken = f", by {safe(path.taken)}" if path.taken else ""
    wrong = "<br>wrong gradients" if path.wrong else ""
    return f"{units.seconds(path.seconds)}{taken}<br>{_passes_words(path)}{wrong}"


def _passes_words(path: PathPoint) -> str:
    words = f"{path.forward} forward, {path.backward} backward"
    return words + (f", {path.forward_mode} forward mode" if path.forward_mode else "")


def _error_words(path: PathPoint) -> str:
    return units.relative(path.error or 0.0) + ("<br>wrong gradients" if path.wrong else "")
