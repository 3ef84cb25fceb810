"""A Result on the page: sentences, verdicts, pictures, and a table behind each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from typing import Any

import ipywidgets as widgets
import plotly.graph_objects as go

from explorer import scaling_sentences, sentences
from explorer.app.control import Guard
from explorer.app.downloads import picture_kind
from explorer.comparing.comparison import Comparison
from explorer.drawing import PLOTLY, enlarged, mime_bundle, waiting
from explorer.events import Seen
from explorer.experiment import Experiment
from explorer.figures import figures, scaling_times
from explorer.filenames import stem
from explorer.result import Result
from explorer.tables import Table, tables, to_html

NAMES = ("time", "passes", "accuracy", "norms")
_LISTED = 6  # verdicts up to which all are in sight
_ABSOLUTE = "absolute, in seconds"


class Pictures:
    """Built once, empty; `show` fills it. The cards of the Jacobians and of a scaling come with
    what they show."""

    def __init__(self, guard: Guard) -> None:
        self._heading = widgets.HTML()
        self._summary = widgets.HTML()
        self._plan = widgets.HTML()
        self._verdicts = widgets.HTML()
        self._notes = widgets.HTML()
        self.cards = Cards(guard, self._redraw)
        self._result: Result | None = None
        self._of: Experiment | None = None
        grid = grid_of(self.cards[name] for name in NAMES)
        self._jacobian = grid_of(())
        self._jacobian_words = widgets.HTML()
        self._jacobian_part = widgets.VBox(
            [self._jacobian_words, self._jacobian], layout={"display": "none"}
        )
        self._jacobian_part.add_class("explorer-jacobian")
        self._scaling = grid_of(())
        self._scaling_words = widgets.HTML()
        self.relative_to = widgets.Dropdown(
            description="Times of the scaling",
            options=[(_ABSOLUTE, "")],
            tooltip="in seconds, or relative to a path",
            style={"description_width": "initial"},
        )
        self.relative_to.observe(guard(lambda change: self._redraw()), "value")
        self.slower = widgets.FloatLogSlider(
            description="Were f so many times slower",
            value=1,
            min=0,  # powers of ten
            max=3,
            step=0.05,
            readout_format=".1f",
            tooltip="f so many times slower, under the same heads",
            style={"description_width": "initial"},
        )
        self.slower.observe(guard(lambda change: self._suppose()), "value")
        self._scaling_part = widgets.VBox(
            [self._scaling_words, self.relative_to, self.slower, self._scaling],
            layout={"display": "none"},
        )
        self._scaling_part.add_class("explorer-scaling")
        self.widget = widgets.VBox(
            [
                *(self._heading, self._summary, self._plan, self._verdicts, grid),
                *(self._jacobian_part, self._scaling_part, self._notes, self.cards.kind),
            ]
        )
        self.widget.add_class("explorer-pictures")

    def reset(self) -> None:
        """The choices of how a scaling is drawn as at the beginning."""
        self.slower.value = 1
        self.relative_to.value = ""

    def announce(self, sentence: str) -> None:
        """Says in the place of the summary why there is no picture yet."""
        self._summary.value = status(sentence)

    def mark(self, experiment: Experiment | None) -> None:
        """Marks the pictures if they are of another experiment than this one."""
        if self._of in (None, experiment):
            self.widget.remove_class("explorer-stale")
        else:
            self.widget.add_class("explorer-stale")

    def prepare(self) -> None:
        """Draws an empty frame, so that the browser loads plotly while the first run goes."""
        if self._result is None:
            self.cards[NAMES[0]].draw(mime_bundle(waiting()))

    def show(self, result: Result) -> None:
        """Draws a result; what has not changed since the last one is left as it is."""
        self._of = result.experiment
        self._result = None  # what the dropdown's options choose meanwhile draws nothing
        self._offer(result)
        self._result = result
        self._heading.value = _heading(result.experiment)
        self._summary.value = status(sentences.summary(result))
        self._plan.value = paragraph("explorer-plan", sentences.plan(result))
        self._verdicts.value = _verdicts(result)
        self._notes.value = listed(sentences.notes(result))
        for name, table in tables(result).items():
            self.cards[name].tabulate(table)
        self._jacobian_words.value = '<span class="explorer-caption">Jacobians</span>' + listed(
            sentences.jacobian(result)
        )
        self._redraw()

    def _offer(self, result: Result) -> None:
        """The paths of the scaling to choose from; what was chosen stays, where it is there."""
        paths = dict.fromkeys(path for each in result.scaling.values() for path in each.paths)
        options = [(_ABSOLUTE, ""), *((f"relative to {path}", path) for path in paths)]
        if list(self.relative_to.options) != options:
            chosen = self.relative_to.value
            self.relative_to.options = options
            self.relative_to.value = chosen if chosen in paths else ""

    def _redraw(self) -> None:
        """Draws the result on show."""
        if self._result is None:
            return
        self._say_scaling(self._result)
        drawn = figures(self._result, self.relative_to.value, self.slower.value)
        self.cards.draw(self._result, drawn)
        further = [name for name in drawn if name not in NAMES]
        scaling = [name for name in further if name.startswith("scaling-")]
        self._place(self._jacobian_part, self._jacobian, [n for n in further if n not in scaling])
        self._place(self._scaling_part, self._scaling, scaling)

    def _suppose(self) -> None:
        """Draws what a slower f changes, and nothing else: the slider is on its way."""
        if self._result is not None:
            self._say_scaling(self._result)
            times = scaling_times(self._result, self.relative_to.value, self.slower.value)
            self.cards.move(self._result, times)

    def _say_scaling(self, result: Result) -> None:
        self._scaling_words.value = '<span class="explorer-caption">Scaling</span>' + listed(
            sentence
            for along in result.scaling
            for sentence in scaling_sentences.scaling(result, along, self.slower.value)
        )

    def _place(self, part: widgets.Box, grid: widgets.Box, names: list[str]) -> None:
        """Puts the cards into their part of the page, which is there while it has some."""
        cards = [self.cards[name].widget for name in names]
        if list(grid.children) != cards:
            grid.children = cards
        part.layout.display = None if cards else "none"


class Card:
    """A picture with its table behind it."""

    def __init__(self, name: str) -> None:
        # A figure goes through an Output: the renderer is a static file that the browser caches,
        # where a FigureWidget would send 5 MB for each picture.
        self._plot = widgets.Output(layout={"min_height": "320px"})
        self._table = widgets.HTML()
        self._moved = widgets.HTML(layout={"display": "none"})
        self._shown: dict[str, Any] | None = None
        self._factor = 1.0
        self.widget = widgets.VBox([self._plot, self._moved, self._table])
        self.widget.add_class("explorer-card")
        self.widget.add_class(f"explorer-card-{name}")

    def draw(self, bundle: dict[str, Any]) -> None:
        if bundle != self._shown:
            self._shown = bundle
            self._redraw()

    def move(self, bundle: dict[str, Any]) -> None:
        """Draws a picture like the one on show in its place: a new output would blink."""
        if bundle != self._shown:
            self._shown = bundle
            figure = json.dumps(enlarged(bundle, self._factor)[PLOTLY])
            self._moved.value = (
                f'<span class="explorer-moved" data-figure="{escape(figure)}"></span>'
            )

    def enlarge(self, factor: float) -> None:
        """Draws the picture, and those to come, so many times larger."""
        if factor != self._factor:
            self._factor = factor
            self._redraw()

    def _redraw(self) -> None:
        if self._shown is None:
            return
        bundle = enlarged(self._shown, self._factor)
        height = bundle[PLOTLY]["layout"]["height"]
        self._moved.value = ""
        self._plot.layout.min_height = f"{height}px"
        self._plot.outputs = ({"output_type": "display_data", "data": bundle, "metadata": {}},)

    def tabulate(self, table: Table) -> None:
        title = escape(table.title)
        self._table.value = f"<details><summary>Table: {title}</summary>{to_html(table)}</details>"


class Cards:
    """The cards of a panel, each made when it is first asked for, all in the same size; and `kind`,
    the choice of what the button in a picture's corner saves.

    Args:
        redraw: draws what is on show again.
    """

    def __init__(self, guard: Guard, redraw: Callable[[], None]) -> None:
        self._cards: dict[str, Card] = {}
        self._factor = 1.0
        self.kind = picture_kind(guard, lambda kind: redraw())

    def __getitem__(self, name: str) -> Card:
        if name not in self._cards:
            self._cards[name] = Card(name)
            self._cards[name].enlarge(self._factor)
        return self._cards[name]

    def enlarge(self, factor: float) -> None:
        """Draws every picture so many times larger, those to come too."""
        self._factor = factor
        for card in self._cards.values():
            card.enlarge(factor)

    def draw(self, seen: Seen | Comparison, drawn: Mapping[str, go.Figure]) -> None:
        """Draws the figures of what was seen, by the names of their cards."""
        for name, bundle in self._bundles(seen, drawn):
            self[name].draw(bundle)

    def move(self, seen: Seen | Comparison, drawn: Mapping[str, go.Figure]) -> None:
        """Draws them in the place of like ones that are on show, many times a second."""
        for name, bundle in self._bundles(seen, drawn):
            self[name].move(bundle)

    def _bundles(
        self, seen: Seen | Comparison, drawn: Mapping[str, go.Figure]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, figure in drawn.items():
            yield name, mime_bundle(figure, f"{stem(seen)}-{name}", self.kind.value)


def grid_of(cards: Iterable[Card]) -> widgets.Box:
    grid = widgets.Box([card.widget for card in cards])
    grid.add_class("explorer-grid")
    return grid


def _heading(experiment: Experiment) -> str:
    """What the pictures are of, and the words that `mark` brings to light."""
    given = {"n": experiment.size, **experiment.parameters}
    setting = [f"{name} = {value}" for name, value in given.items() if value is not None]
    setting += [experiment.dtype, experiment.device]
    what = escape(f"{experiment.described.title}: {', '.join(setting)}")
    since = '<span class="explorer-since"> – the controls have changed since</span>'
    return f'<p class="explorer-heading">{what}{since}</p>'


def status(sentence: str) -> str:
    return f'<p class="explorer-summary" role="status" aria-live="polite">{escape(sentence)}</p>'


def _verdicts(result: Result) -> str:
    items = "".join(
        f"<li><strong>{escape(sentences.title(result, name))}</strong>: "
        f"{escape(sentences.verdict(result, name))}</li>"
        for name in sentences.few(result).heads
    )
    every = f'<ul class="explorer-verdicts">{items}</ul>'
    if len(result.heads) <= _LISTED:
        return every
    return f"<details><summary>Verdicts on the heads</summary>{every}</details>"


def paragraph(name: str, sentence: str) -> str:
    return f'<p class="{name}">{escape(sentence)}</p>' if sentence else ""


def listed(notes: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="explorer-notes">{items}</ul>' if items else ""
