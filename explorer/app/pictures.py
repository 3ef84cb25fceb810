"""A Result on the page: a sentence, verdicts, four pictures, and a table behind each."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets as widgets

from explorer import sentences
from explorer.experiment import Experiment
from explorer.figures import figures, mime_bundle, waiting
from explorer.result import Result
from explorer.tables import tables, to_html

NAMES = ("time", "passes", "accuracy", "norms")


class Pictures:
    """Built once, empty; `show` fills it."""

    def __init__(self) -> None:
        self._heading = widgets.HTML()
        self._summary = widgets.HTML()
        self._verdicts = widgets.HTML()
        self._notes = widgets.HTML()
        # A figure goes through an Output: the renderer is a static file that the browser caches,
        # where a FigureWidget would send 5 MB for each picture.
        self._plots = {name: widgets.Output(layout={"min_height": "320px"}) for name in NAMES}
        self._tables = {name: widgets.HTML() for name in NAMES}
        self._shown: dict[str, Any] = {}
        self._of: Experiment | None = None
        cards = []
        for name in NAMES:
            card = widgets.VBox([self._plots[name], self._tables[name]])
            card.add_class("explorer-card")
            card.add_class(f"explorer-card-{name}")
            cards.append(card)
        grid = widgets.Box(cards)
        grid.add_class("explorer-grid")
        self.widget = widgets.VBox(
            [self._heading, self._summary, self._verdicts, grid, self._notes]
        )
        self.widget.add_class("explorer-pictures")

    def announce(self, sentence: str) -> None:
        """Says in the place of the summary why there is no picture yet."""
        self._summary.value = _status(sentence)

    def mark(self, experiment: Experiment | None) -> None:
        """Marks the pictures if they are of another experiment than this one."""
        if self._of in (None, experiment):
            self.widget.remove_class("explorer-stale")
        else:
            self.widget.add_class("explorer-stale")

    def prepare(self) -> None:
        """Draws an empty frame, so that the browser loads plotly while the first run goes."""
        if not self._shown:
            self._draw(NAMES[0], mime_bundle(waiting()))

    def show(self, result: Result) -> None:
        """Draws a result; what has not changed since the last one is left as it is."""
        self._of = result.experiment
        self._heading.value = _heading(result.experiment)
        self._summary.value = _status(sentences.summary(result))
        self._verdicts.value = _verdicts(result)
        self._notes.value = _notes(sentences.notes(result))
        drawn, rows = figures(result), tables(result)
        for name in NAMES:
            bundle = mime_bundle(drawn[name])
            if self._shown.get(name) != bundle:
                self._draw(name, bundle)
            table = to_html(rows[name])
            self._tables[
                name
            ].value = (
                f"<details><summary>Table: {escape(rows[name].title)}</summary>{table}</details>"
            )

    def _draw(self, name: str, bundle: dict[str, Any]) -> None:
        self._shown[name] = bundle
        height = bundle["application/vnd.plotly.v1+json"]["layout"]["height"]
        self._plots[name].layout.min_height = f"{height}px"
        self._plots[name].outputs = (
            {"output_type": "display_data", "data": bundle, "metadata": {}},
        )


def _heading(experiment: Experiment) -> str:
    """What the pictures are of, and the words that `mark` brings to light."""
    given = {"n": experiment.size, **experiment.parameters}
    setting = [f"{name} = {value}" for name, value in given.items() if value is not None]
    setting += [experiment.dtype, experiment.device]
    what = escape(f"{experiment.described.title}: {', '.join(setting)}")
    since = '<span class="explorer-since"> – the controls have changed since</span>'
    return f'<p class="explorer-heading">{what}{since}</p>'


def _status(sentence: str) -> str:
    return f'<p class="explorer-summary" role="status" aria-live="polite">{escape(sentence)}</p>'


def _verdicts(result: Result) -> str:
    items = "".join(
        f"<li><strong>{escape(name)}</strong>: {escape(sentences.verdict(result, name))}</li>"
        for name in result.heads
    )
    return f'<ul class="explorer-verdicts">{items}</ul>'


def _notes(notes: list[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="explorer-notes">{items}</ul>' if items else ""
