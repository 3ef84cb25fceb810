"""The page: two panels, one of them on show. `page()` is all a notebook calls."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import ipywidgets as widgets
from IPython.display import Javascript, display

from explorer import own
from explorer.app.autorun import Pace
from explorer.app.control import problem
from explorer.app.controls import Controls
from explorer.app.panel import Panel, asset
from explorer.app.pictures import Pictures
from explorer.app.runner import Runner
from explorer.app.state import FLOW_QUERY, State
from explorer.experiment import Experiment
from explorer.link import read
from explorer.worker import Worker

_ASKED = 10  # times that a kernel started ahead asks for its visitor's query

PANELS = {"Heads on f": "", "Gradient flow": "flow"}
"""The panels by what the switch says, with the name that a link opens each by."""


def page() -> None:
    """Shows the laboratory below the cell: in JupyterLab, or as a web page through Voila."""
    worker = Worker()  # first of all: it imports torch while the page is built
    built = Page(worker, _query())
    _display(built.widget)
    built.start()


def lab(f: Callable[..., Any], gs: Sequence[Any] = (), x: Any = None) -> None:
    """Shows the laboratory on a function of one's own, below the cell of a notebook.

    Args:
        f: `f(x)` is y: a tensor, or several in tuples, lists and dicts. Parameters behind x that
            have a number, a switch or a `Literal` for a default become controls.
        gs: the heads, g(y) or g(y, x), each to one number; names and expressions of heads too.
        x: a tensor, several in a structure, a module of which the parameters are meant, or a
            function that makes it; by default the default of f's first parameter.

    Raises:
        TypeError, ValueError: what is wrong with an argument, and what is allowed.
    """
    state = State(own.register(f, x, gs).name)
    built = Laboratory(state, Runner(Worker()))
    _display(built.widget)
    built.start()


def _display(widget: widgets.Widget) -> None:
    # JupyterLab has no template of ours: the sliders get their names from the same script.
    display(widget, Javascript(asset("page.js")))  # type: ignore[no-untyped-call]


class Page:
    """A switch between the panels, and the one on show below it. Each has a runner of its own, so
    that its run goes on while another is on show; a panel is built when it is first opened.

    Args:
        query: the query string of the link that opened it, "" for none.
    """

    def __init__(self, worker: Worker, query: str = "") -> None:
        self._worker = worker
        self._panels: dict[str, Panel] = {}
        first = read(query)[0].get("panel") == "flow"
        self.switch = widgets.ToggleButtons(
            options=list(PANELS.items()), value="flow" if first else "", style={"button_width": ""}
        )
        self.switch.add_class("explorer-switch")
        self._fault = widgets.HTML()
        self.widget = widgets.VBox()
        self.widget.add_class("explorer")
        self._open(self.switch.value, query)
        if "panels" in self.panel.state.lesson.hidden:
            self.switch.layout.display = "none"
        self.switch.observe(self._switched, "value")

    @property
    def panel(self) -> Panel:
        """The panel on show."""
        return self._panels[self.switch.value]

    def start(self) -> None:
        """Starts the work of the panel on show in the background."""
        self.panel.start()

    def _open(self, name: str, query: str) -> None:
        if name not in self._panels:
            self._panels[name] = self._built(name, query)
        # One at a time: plotly draws into what is hidden at no width, and the script that follows
        # the state finds one.
        self.widget.children = (self.switch, self._fault, self._panels[name].widget)

    def _built(self, name: str, query: str) -> Panel:
        runner = Runner(self._worker)
        if name == "flow":
            from explorer.app.flow import FlowPanel  # it must not delay the first page

            return FlowPanel(runner, query)
        return Laboratory(State(), runner, query)

    def _switched(self, change: Any) -> None:
        name = change["new"]
        fresh = name not in self._panels
        projector = self._panels[change["old"]].state.lesson.projector
        try:
            self._open(name, FLOW_QUERY if name == "flow" else "")
            state = self.panel.state
            state.lesson = replace(state.lesson, projector=projector)
            if fresh:
                self.start()
            self._fault.value = ""
        except Exception as error:
            logging.getLogger(__name__).exception("a panel could not be opened")
            self._fault.value = problem(f"The page failed: {type(error).__name__}: {error}.")


class Laboratory(Panel):
    """The panel of the heads on f."""

    state: State
    controls: Controls
    pictures: Pictures

    def build(self) -> None:
        self._pace = Pace()
        self.controls = Controls(self.state, self._guarded, self.runner.try_heads)
        self.pictures = Pictures(self._guarded)
        self.runner.observe(
            self._guarded(lambda change: self.controls.heads.retry()), "linearized"
        )
        self.runner.observe(self._guarded(self._learn), "result")

    def expected(self, experiment: Experiment) -> float:
        return self._pace.seconds(experiment)

    def _learn(self, change: Any) -> None:
        if change["new"].status == "done":
            self._pace.learn(change["new"])


def _query() -> str:
    """The query string of the page's link, which Voila hands over; "" elsewhere.

    A kernel that Voila started ahead of its visitor waits here for one."""
    if os.environ.get("VOILA_PREHEAT") == "True":
        from voila.utils import get_query_string

        # None: a busy machine did not answer in time.
        answers = (get_query_string() for _ in range(_ASKED))
        return next((query for query in answers if query is not None), "")
    return os.environ.get("QUERY_STRING", "")
