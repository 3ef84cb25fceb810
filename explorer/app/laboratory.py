"""The page: its panels, one of them on show. `page()` is all a notebook calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import ipywidgets as widgets
from IPython.display import Javascript, display

from explorer import own
from explorer.app.code import CodePart
from explorer.app.controls import Controls
from explorer.app.files import File, Files
from explorer.app.panel import Panel, asset
from explorer.app.part import Part
from explorer.app.pictures import Pictures
from explorer.app.runner import Runner
from explorer.app.state import State
from explorer.experiment import Experiment
from explorer.link import read
from explorer.pace import Pace
from explorer.result import Result
from explorer.worker import Worker

_ASKED = 10  # times that a kernel started ahead asks for its visitor's query

PANELS = {"Heads on f": "", "Sweep": "sweep", "Gradient flow": "flow", "Compare": "compare"}
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


class Page(Part):
    """A switch between the panels, and the one on show below it. Each has a runner of its own, so
    that its run goes on while another is on show; a panel is built when it is first opened.

    Args:
        query: the query string of the link that opened it, "" for none.
    """

    def __init__(self, worker: Worker, query: str = "") -> None:
        super().__init__()
        self._worker = worker
        self._panels: dict[str, Part] = {}
        first = read(query)[0].get("panel", "")
        self.switch = widgets.ToggleButtons(
            options=list(PANELS.items()),
            value=first if first in PANELS.values() else "",
            style={"button_width": ""},
        )
        self.switch.add_class("explorer-switch")
        self._files = Files(self._guarded, self._take)
        self.widget = widgets.VBox()
        self.widget.add_class("explorer")
        self.widget.add_class("explorer-page")
        self._open(self.switch.value, query)
        self._on_show = self.panel
        if "panels" in self.panel.state.lesson.hidden:
            self.switch.layout.display = "none"
        self.switch.observe(self._switched, "value")

    @property
    def panel(self) -> Part:
        """The panel on show."""
        return self._panels[self.switch.value]

    def start(self) -> None:
        """Starts the work of the panel on show in the background."""
        self.panel.start()

    def _open(self, name: str, query: str) -> None:
        if name in self._panels:
            _renew(self._panels[name].widget)
        else:
            self._panels[name] = self._built(name, query)
        # One at a time: plotly draws into what is hidden at no width, and the script that follows
        # the state finds one.
        self.widget.children = (
            *(self.switch, self._fault, self._panels[name].widget),
            self._files.widget,
        )

    def _built(self, name: str, query: str) -> Part:
        if name == "compare":
            from explorer.app.compare import ComparePanel

            return ComparePanel(self._last, query)
        runner = Runner(self._worker)
        if name == "flow":
            from explorer.app.flow import FlowPanel  # it must not delay the first page

            return FlowPanel(runner, query)
        if name == "sweep":
            from explorer.app.sweep import SweepPanel

            return SweepPanel(runner, query)
        return Laboratory(State(), runner, query)

    def _last(self) -> Result | None:
        """What the panel of the heads on f has on show."""
        heads = self._panels.get("")
        found = heads.runner.result if isinstance(heads, Panel) else None
        return found if isinstance(found, Result) else None

    def _take(self, files: Sequence[File], first: bool) -> None:
        """Opens the comparisons with files that were chosen, or dropped anywhere on the page."""
        from explorer.app.compare import ComparePanel

        self.switch.value = "compare"
        if isinstance(self.panel, ComparePanel):
            self.panel.take(files, first)

    def _switched(self, change: Any) -> None:
        self._guarded(self._show)(change["new"])

    def _show(self, name: str) -> None:
        fresh, before = name not in self._panels, self._on_show
        self._open(name, f"panel={name}" if name else "")
        self._on_show = self.panel
        state = self.panel.state
        state.lesson = replace(state.lesson, projector=before.state.lesson.projector)
        if fresh:
            self.start()
        self._fault.value = ""


class Laboratory(Panel):
    """The panel of the heads on f."""

    state: State
    controls: Controls
    pictures: Pictures

    def build(self) -> None:
        self._pace = Pace()
        self.controls = Controls(self.state, self._guarded, self.runner.try_heads)
        self.pictures = Pictures(self._guarded)
        self.code = CodePart(self.state, self.runner, self._guarded)
        self.pictures.widget.children = (*self.pictures.widget.children, self.code.widget)
        self.runner.observe(
            self._guarded(lambda change: self.controls.heads.retry()), "linearized"
        )
        self.runner.observe(self._guarded(self._learn), "result")

    def expected(self, experiment: Experiment) -> float:
        return self._pace.seconds(experiment)

    def _reset(self) -> None:
        super()._reset()
        self.pictures.reset()

    def _learn(self, change: Any) -> None:
        if change["new"].status == "done":
            self._pace.learn(change["new"])


def _renew(widget: widgets.Widget) -> None:
    """Sends the pictures in a widget again. plotly's renderer leaves a still of each behind, and
    shows that to whoever comes back."""
    for child in getattr(widget, "children", ()):
        _renew(child)
    if isinstance(widget, widgets.Output):
        outputs, widget.outputs = widget.outputs, ()
        widget.outputs = outputs


def _query() -> str:
    """The query string of the page's link, which Voila hands over; "" elsewhere.

    A kernel that Voila started ahead of its visitor waits here for one."""
    if os.environ.get("VOILA_PREHEAT") == "True":
        from voila.utils import get_query_string

        # None: a busy machine did not answer in time.
        answers = (get_query_string() for _ in range(_ASKED))
        return next((query for query in answers if query is not None), "")
    return os.environ.get("QUERY_STRING", "")
