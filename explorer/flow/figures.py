"""Flow → plotly figures: the gradients, the norm of every step, and the fan of their products.

What was before a change is drawn faint and dashed. A number that is not finite leaves a gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import plotly.graph_objects as go

from explorer.drawing import CURVES, GREY, LOG_FROM, frame, powers, precisely, safe, shortened
from explorer.flow import sentences
from explorer.flow.result import Flow

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#A89B00")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")
_FAINT = 0.7
_NAMED = 8  # steps up to which their names have room below the axis
_BAND = "rgba(0,114,178,0.25)"


def figures(flow: Flow, before: Flow | None = None) -> dict[str, go.Figure]:
    """The figures by name, in the order they are shown: `gradients`, `steps`, `fan`."""
    return {
        "gradients": _gradients(flow, before),
        "steps": _steps(flow, before),
        "fan": _fan(flow, before),
    }


def _gradients(flow: Flow, before: Flow | None) -> go.Figure:
    values = [value for each in _both(flow, before) for rows in each.gradients.values()
              for value in rows]  # fmt: skip
    figure = _curves(
        "Gradient at every state",
        *_subtitle(flow, before),
        *_gaps(values, logarithmic=True),
        flow=flow,
        first=0,
        axis="‖∂L/∂h<sub>t</sub>‖",
        legend=sum(len(each.gradients) for each in _both(flow, before)),
    )
    zero = _logarithmic(figure, values)
    for each, faint in _drawn(flow, before):
        for number, (name, rows) in enumerate(each.gradients.items()):
            figure.add_trace(
                _line(
                    f"{shortened(name)}{', before' if faint else ''}",
                    range(len(rows)), rows, number=_number(flow, name, number), faint=faint,
                    zero=zero, what=f"{name}: ‖∂L/∂h<sub>t</sub>‖",
                )
            )  # fmt: skip
    return figure


def _number(flow: Flow, name: str, number: int) -> int:
    """A loss keeps its look in the picture of before, wherever it stands among the others."""
    names = list(flow.gradients)
    return names.index(name) if name in names else len(names) + number


def _steps(flow: Flow, before: Flow | None) -> go.Figure:
    values = [value for each in _both(flow, before) for value in each.steps]
    finite = [value for value in values if 0 < value < math.inf]
    logarithmic = bool(finite) and max(finite) > LOG_FROM * min(finite)
    figure = _curves(
        "Norm of every step",
        "spectral norm: the most that a step stretches; dotted: 1, neither more nor less",
        *_gaps(values, logarithmic),
        flow=flow,
        first=1,
        axis="‖∂h<sub>t</sub>/∂h<sub>t−1</sub>‖",
        legend=2 if before is not None else 0,
    )
    zero = 0.0
    if logarithmic:
        zero = _logarithmic(figure, [*values, 1.0])
    else:
        figure.update_yaxes(range=[0, 1.15 * max([1.0, *finite])], nticks=6)
    figure.add_shape(
        type="line", x0=0, x1=1, xref="paper", y0=1, y1=1,
        line={"color": GREY, "width": 1.5, "dash": "dot"}, layer="below",
    )  # fmt: skip
    for each, faint in _drawn(flow, before):
        figure.add_trace(
            _line(
                "before" if faint else "now",
                range(1, len(each.steps) + 1), each.steps, number=0, faint=faint, zero=zero,
                what="norm", steps=each.names,
            )
        )  # fmt: skip
    return figure


def _fan(flow: Flow, before: Flow | None) -> go.Figure:
    fan = flow.fan
    kinds: list[Sequence[float | None]] = [flow.bound]
    if fan is not None:
        kinds += [fan.largest, fan.upper, fan.median, fan.lower, fan.smallest]
    if before is not None and before.fan is not None:
        kinds += [before.fan.largest, before.fan.median]
    values = [value for kind in kinds for value in kind if value is not None]
    why = flow.without_fan if fan is None else "a line ends where rounding hides the value"
    figure = _curves(
        "Singular values of ∂h<sub>T</sub>/∂h<sub>t</sub>",
        why,
        "dashed: the product of the step norms, which bounds the largest",
        *_gaps(values, logarithmic=True),
        flow=flow,
        first=0,
        axis="singular values",
        legend=(5 if fan else 1) + (2 if before is not None and before.fan else 0),
    )
    zero = _logarithmic(figure, values)
    if before is not None and before.fan is not None:
        for name, kind, number in (("largest", before.fan.largest, 1),
                                   ("median", before.fan.median, 0)):  # fmt: skip
            figure.add_trace(
                _line(f"{name}, before", before.fan.times, kind, number=number, faint=True,
                      zero=zero, what=name)
            )  # fmt: skip
    if fan is not None:
        for trace in _band(fan.times, fan.upper, fan.lower, zero):
            figure.add_trace(trace)
        for name, kind, number in (("largest", fan.largest, 1), ("median", fan.median, 0),
                                   ("smallest", fan.smallest, 2)):  # fmt: skip
            figure.add_trace(
                _line(name, fan.times, kind, number=number, faint=False, zero=zero, what=name)
            )
    bound = _line("product of norms", range(len(flow.bound)), flow.bound, number=0, faint=False,
                  zero=zero, what="product of the step norms")  # fmt: skip
    bound.update(mode="lines", line={"color": GREY, "dash": "dash", "width": 2})
    figure.add_trace(bound)
    return figure


def _band(
    times: Sequence[int],
    upper: Sequence[float | None],
    lower: Sequence[float | None],
    zero: float,
) -> Iterable[go.Scatter]:
    """The middle half of the singular values, where both quartiles are known."""
    known = [
        (t, high or zero, low or zero)
        for t, high, low in zip(times, upper, lower, strict=True)
        if high is not None and low is not None and math.isfinite(high) and math.isfinite(low)
    ]
    x = [t for t, _, _ in known]
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "x": x}
    yield go.Scatter(name="", y=[high for _, high, _ in known], showlegend=False, **edge)
    yield go.Scatter(
        name="middle half", y=[low for _, _, low in known], fill="tonexty", fillcolor=_BAND,
        **edge,
    )  # fmt: skip


# What the figures share.


def _both(flow: Flow, before: Flow | None) -> list[Flow]:
    return [flow] if before is None else [flow, before]


def _drawn(flow: Flow, before: Flow | None) -> list[tuple[Flow, bool]]:
    """(a Flow, whether it is faint), in the order they are drawn: what is now lies on top."""
    return [(each, each is not flow) for each in reversed(_both(flow, before))]


def _subtitle(flow: Flow, before: Flow | None) -> list[str]:
    words = [f"{sentences.samples(flow)}, {flow.dtype}"]
    return words + (["faint and dashed: before the change"] if before is not None else [])


def _gaps(values: Iterable[float], logarithmic: bool) -> list[str]:
    """What a curve cannot show, in words."""
    values = list(values)
    said = []
    if logarithmic and 0 in values:
        said.append("on the lower edge: exactly 0")
    if not all(map(math.isfinite, values)):
        said.append("a gap: not finite")
    return said


def _curves(
    title: str, *subtitle: str, flow: Flow, first: int, axis: str, legend: int
) -> go.Figure:
    """An empty figure with the steps along the first axis, from `first` on."""
    figure = frame(title, *subtitle, height=CURVES, above=12, legend=legend)
    figure.update_xaxes(title_text="step t", nticks=6)
    if flow.experiment is None and len(flow.names) <= _NAMED:
        named = [f"{t} {shortened(name)}" for t, name in enumerate(flow.names, 1)]
        places = list(range(first, len(flow.names) + 1))
        words = (["0 (x)"] if first == 0 else []) + [safe(each) for each in named]
        # Leaning to the left: plotly leaves out a name that would end beyond the picture.
        figure.update_xaxes(tickvals=places, ticktext=words, tickangle=-45)
    figure.update_yaxes(title_text=axis, title_font={"size": 12})
    return figure


def _logarithmic(figure: go.Figure, values: Iterable[float]) -> float:
    """Makes the second axis logarithmic, wide enough for the values; returns where 0 stands."""
    values = list(values)
    finite = [value for value in values if 0 < value < math.inf] or [1.0]
    # Below the least by a tenth of the picture, or a power of ten.
    low, high = math.log10(min(finite)), math.log10(max(finite))
    zero = max(low - max(1.0, (high - low) / 10), -320.0)
    bottom = zero if 0 in values else low - max(0.1, (high - low) / 20)
    top = high + max(0.1, (high - low) / 20)
    places, words = powers(10**low, 10 ** min(high, 308.0))
    if len(places) < 3:
        places = [
            digit * 10.0**exponent
            for exponent in range(math.floor(bottom), math.ceil(top) + 1)
            for digit in (1, 2, 5)
        ]
        words = [f"{place:g}" for place in places]
    figure.update_yaxes(type="log", range=[bottom, top], tickvals=places, ticktext=words)
    return float(10**zero)


def _line(
    name: str,
    times: Iterable[int],
    values: Sequence[float | None],
    *,
    number: int,
    faint: bool,
    zero: float,
    what: str,
    steps: Sequence[str] = (),
) -> go.Scatter:
    """One curve; an exact 0 stands at `zero`."""
    times, colour = list(times), _COLOURS[number % len(_COLOURS)]
    before = ", before" if faint else ""
    hover = []
    for place, (t, value) in enumerate(zip(times, values, strict=True)):
        step = f" ({safe(steps[place])})" if steps else ""
        words = "" if value is None else precisely(value)
        hover.append(f"t = {t}{step}{before}<br>{safe(what)} {words}")
    return go.Scatter(
        name=safe(name),
        mode="lines+markers",
        x=times,
        y=[None if value is None or not math.isfinite(value) else value or zero
           for value in values],
        line={"color": colour, "width": 2, "dash": "dash" if faint else "solid"},
        marker={
            "symbol": f"{_SYMBOLS[number % len(_SYMBOLS)]}{'-open' if faint else ''}",
            "size": 7,
            "maxdisplayed": 10,
        },
        opacity=_FAINT if faint else 1.0,
        hovertext=hover,
        hoverinfo="text",
    )  # fmt: skip
