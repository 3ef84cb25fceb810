"""What the figures share: how a path looks, empty frames, annotations, and how text is written.

A figure sets no colour for text, grid and axes: `figures.css` does, from the page's theme.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, TypeGuard

import plotly.graph_objects as go

CONFIG: dict[str, Any] = {
    "responsive": True,
    "displaylogo": False,
    "showSendToCloud": False,
    "plotlyServerURL": "",  # nothing in a figure may lead, or ask, outside
    "modeBarButtonsToRemove": ["select2d", "lasso2d"],
}
"""plotly's configuration for every figure."""

PLOTLY = "application/vnd.plotly.v1+json"
"""The type of a figure in a bundle that a notebook displays."""

Kind = Literal["png", "svg"]
"""What a picture can be saved as."""

_SAVED = 1000  # units of a saved picture's width, twice as many pixels in a PNG: fits a slide


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

GREY = "#808080"
"""Of outlines and marks of no path: seen on black and on white."""

ROW = 46
"""Pixels of one row."""

CURVES = 260
"""Pixels of the axes of curves."""

LEFT_OUT = "left out here"
"""In the row of a head that is outside its domain, or not finite."""

LOG_FROM = 50.0
"""The largest over the smallest number from which their axis is logarithmic."""

_PIXELS = {"height", "size", "thickness", "ticklen", "xshift", "yshift"}
_PIXELS_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("line", "error_x", "error_y"), ("width",)),
    **dict.fromkeys(("margin", "pad"), ("l", "r", "t", "b")),
    "toImageButtonOptions": ("width",),
}
_CLEAR = "rgba(0,0,0,0)"
_FONT = "system-ui, sans-serif"
_LABEL = 18  # characters of a row's name, or a long typed head leaves no room for the picture
_SUBTITLE = 42  # characters of a line of the subtitle: what 360 pixels hold


def waiting() -> go.Figure:
    """The frame of the first figure, for before there is a Result.

    While it is drawn, a browser loads plotly, which is the slow part of a first picture.
    """
    figure = row_frame("Time per path", "not yet run", rows=())
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure


def saved(figure: go.Figure, kind: Kind) -> dict[str, Any]:
    """How a picture is saved, as plotly names it: its kind, size and pixels for a unit of it."""
    return {
        "format": kind,
        "width": _SAVED,
        "height": figure.layout.height,
        "scale": 2 if kind == "png" else 1,
    }


def config(figure: go.Figure, filename: str = "explorer", kind: Kind = "png") -> dict[str, Any]:
    """plotly's configuration with what the button in the figure's corner saves: a file of that
    kind and name, its ending left out."""
    return {**CONFIG, "toImageButtonOptions": {"filename": filename, **saved(figure, kind)}}


def mime_bundle(
    figure: go.Figure, filename: str = "explorer", kind: Kind = "png"
) -> dict[str, Any]:
    """What a notebook displays, as plain data: plotly's own type, with the file that its button
    saves, and the title as text."""
    drawing = json.loads(figure.to_json())
    return {
        PLOTLY: {**drawing, "config": config(figure, filename, kind)},
        "text/plain": drawing["layout"]["title"]["text"],
    }


def enlarged(bundle: dict[str, Any], factor: float) -> dict[str, Any]:
    """A bundle of `mime_bundle` with everything that is measured in pixels so many times as large:
    as a picture is that fits a width so many times as small."""
    if factor == 1:
        return bundle
    drawing = bundle[PLOTLY]
    parts = {name: _scaled(drawing[name], factor, name) for name in ("data", "layout", "config")}
    return {**bundle, PLOTLY: {**drawing, **parts}}


def _scaled(part: Any, factor: float, name: str, within: str = "") -> Any:
    """A part of a figure by that name, in the one of the name `within`."""
    if isinstance(part, dict):
        return {key: _scaled(each, factor, key, name) for key, each in part.items()}
    if isinstance(part, list):
        return [_scaled(each, factor, name, within) for each in part]
    pixels = name in _PIXELS or name in _PIXELS_OF.get(within, ())
    number = isinstance(part, int | float) and not isinstance(part, bool)
    return part * factor if pixels and number else part


def style(path: str) -> PathStyle:
    """The style of a path; grey for one that is not known."""
    return PATH_STYLE.get(path, _OTHER)


def row_frame(
    title: str,
    *subtitle: str,
    rows: Sequence[str],
    row: int = ROW,
    legend: int = 0,
    above: int = 0,
) -> go.Figure:
    """An empty figure with a named row for everything it compares, the first on top.

    `row` is the height of one in pixels, `above` the room between the titles and the rows, and
    `legend` the number of names in the legend.
    """
    figure = frame(title, *subtitle, height=row * max(2, len(rows)), above=above, legend=legend)
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[safe(shortened(row)) for row in rows],
        ticks="outside",
        ticklen=6,
        tickcolor=_CLEAR,  # room between a name and its row
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )
    return figure


def frame(title: str, *subtitle: str, height: int, above: int = 0, legend: int) -> go.Figure:
    """An empty figure; `height` is that of its axes in pixels."""
    # `n = 60` stays on one line.
    parts = [part.replace(" = ", "\xa0=\xa0") for part in subtitle]
    lines = [line for part in parts for line in textwrap.wrap(part, _SUBTITLE)]
    top = 44 + 16 * len(lines) + above
    # Two names to a line of the legend: what 360 pixels hold.
    bottom = 52 + (12 + 20 * math.ceil(legend / 2) if legend else 0)
    small = {"size": 12}
    figure = go.Figure()
    figure.update_layout(
        template=go.layout.Template(),
        title={
            "text": title,
            "subtitle": {"text": "<br>".join(map(safe, lines)), "font": small},
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
        paper_bgcolor="white",  # of a picture that is saved: the page's own shows on the page
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


def spread(
    below: Sequence[float], above: Sequence[float], *, thickness: float = 1, width: int = 3
) -> dict[str, Any]:
    """Whiskers of points, from so far below each to so far above it."""
    return {
        "type": "data", "symmetric": False, "array": list(above), "arrayminus": list(below),
        "color": GREY, "thickness": thickness, "width": width,
    }  # fmt: skip


def on_log_axis(value: float | None) -> TypeGuard[float]:
    """Whether a logarithmic axis has a place for it."""
    return value is not None and math.isfinite(value) and value > 0


def beside(x: float, y: float, text: str) -> dict[str, Any]:
    """An annotation on the right of the point (x, y)."""
    return {
        "x": x, "y": y, "text": text, "xanchor": "left", "xshift": 5, "align": "left",
        "showarrow": False, "font": {"size": 12},
    }  # fmt: skip


def remark(row: int, text: str, hover: str) -> dict[str, Any]:
    """An annotation in the place of a row's points."""
    return {
        "x": 0.5, "xref": "paper", "y": row, "text": text, "hovertext": safe(hover),
        "showarrow": False, "font": {"size": 12},
    }  # fmt: skip


def is_known(value: float | None) -> TypeGuard[float]:
    return value is not None and not math.isnan(value)


def precisely(value: float) -> str:
    return "exactly 0" if value == 0 else f"{value:.3g}"


def powers(low: float, high: float) -> tuple[list[float], list[str]]:
    """As many powers of ten between two numbers as 360 pixels have room for, and their names."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    step = max(1, math.ceil((last - first) / 4))
    exponents = range(-(-first // step) * step, last + 1, step)
    return [10.0**exponent for exponent in exponents], [power(each) for each in exponents]


def power(exponent: int) -> str:
    """`10⁻¹²`, and 1 for 10⁰."""
    if exponent == 0:
        return "1"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def several(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def shortened(text: str) -> str:
    """The name of a row or a line as far as there is room for it."""
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"


def safe(text: str) -> str:
    """Text that plotly, which reads some HTML in text, shows as it is."""
    return escape(text, quote=False)
