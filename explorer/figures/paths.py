"""Time of each path, and its passes through f."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import plotly.graph_objects as go

from explorer import sentences, units
from explorer.drawing import ROW, PathStyle, beside, row_frame, safe, several, spread, style
from explorer.result import PathResult, Result, Seconds


def time(result: Result) -> go.Figure:
    environment = result.environment
    threads = several(environment.threads, "thread")
    reference = sentences.baseline(result)
    figure = row_frame(
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
    below, above = whiskers(path.seconds)
    words = "predicted, not run:" if path.seconds is None else "median"
    return go.Bar(
        name=safe(name),
        orientation="h",
        x=[length],
        y=[row],
        width=0.62,
        marker=_fill([look], hatched=[path.seconds is None], faint=wrong),
        error_x={
            **spread([below], [above], thickness=1.5, width=6),
            "visible": above + below > 0,
        },
        hovertext=[f"{safe(name)}<br>{words} {units.seconds(length)}"],
        hoverinfo="text",
        showlegend=False,
    )


def _length(path: PathResult) -> float:
    """Seconds that a path's bar shows: the median, what was predicted, or nothing yet."""
    if path.seconds is not None:
        return path.seconds.median
    return (path.predicted_seconds or 0.0) if path.status == "predicted" else 0.0


def whiskers(seconds: Seconds | None) -> tuple[float, float]:
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
    return beside(length + whiskers(path.seconds)[1], row, "<br>".join(lines))


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
        hovertext=[f"{safe(name)}<br>one run {units.seconds(run)}" for name, run in runs],
        hoverinfo="text",
        visible="legendonly",
    )


def passes(result: Result) -> go.Figure:
    paths = result.paths
    ways = {
        "forward": [path.forward_passes for path in paths.values()],
        "backward": [path.backward_passes for path in paths.values()],
        "forward mode": [path.forward_mode_passes for path in paths.values()],
    }
    if not any(ways["forward mode"]):
        del ways["forward mode"]
    heads = several(len(result.heads), "head")
    outputs = several(result.function.outputs, "output")
    figure = row_frame(
        "Passes through f per path",
        f"exact counts; {heads}, f with {outputs}",
        rows=list(paths),
        row=ROW if len(ways) == 2 else 3 * ROW // 2,
    )
    height = 0.8 / len(ways)
    for number, (way, counts) in enumerate(ways.items()):
        lane = (number - (len(ways) - 1) / 2) * height
        figure.add_trace(_counts(result, way, counts, lane, 0.9 * height))
        for row, count in enumerate(counts):
            if count or way != "forward mode":
                figure.add_annotation(**beside(count, row + lane, f"<b>{count}</b> {way}"))
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
            f"{safe(name)}<br>{count} {way}{' (expected)' if waits else ''}"
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


def _fill(looks: Iterable[PathStyle], hatched: Sequence[bool], faint: bool) -> dict[str, Any]:
    """The marker of bars; those that stand for no measurement are hatched."""
    colours = [look.colour for look in looks]
    return {
        "color": colours,
        "line": {"color": colours, "width": 1.5},
        "pattern": {"shape": ["/" if hatch else "" for hatch in hatched], "solidity": 0.25},
        "opacity": 0.5 if faint else 1.0,
    }
