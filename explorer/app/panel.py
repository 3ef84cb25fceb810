"""What the panels of the page share: the run bar, the link, and what goes between the parts."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import Any, Protocol

import ipywidgets as widgets

from explorer.app.control import hint
from explorer.app.downloads import OF_A_RUN, Downloads
from explorer.app.part import Part
from explorer.app.pictures import Cards
from explorer.app.runner import Runner
from explorer.app.sharing import Sharing
from explorer.app.state import PAGE_DEFAULTS, Entries
from explorer.events import Device
from explorer.units import seconds

AUTO = 0.5  # seconds up to which a change runs by itself
TOLD = 3  # oddities of a link that are told one by one
PROJECTED = 1.75  # times the size of a picture that is readable from the last row
LONGEST = PAGE_DEFAULTS["budget"]  # seconds up to which the first experiment does


class Controlling(Protocol):
    """The controls of a panel."""

    widget: widgets.Widget

    def set_devices(self, devices: tuple[Device, ...]) -> None: ...


class Picturing(Protocol):
    """The pictures of a panel."""

    widget: widgets.Widget
    cards: Cards

    def announce(self, sentence: str) -> None: ...
    def mark(self, experiment: Any) -> None: ...
    def prepare(self) -> None: ...
    def show(self, result: Any) -> None: ...


class Panel(Part):
    """A panel's controls and pictures, its buttons, and what goes between them and the run that is
    under way; `widget` is the whole. `build` makes the controls and pictures of its kind, and
    `expected` says how many seconds an experiment will take.

    Args:
        query: the query string of the link that opened it, "" for none.
    """

    controls: Controlling
    pictures: Picturing
    kinds = OF_A_RUN  # of files to download

    def __init__(self, state: Entries, runner: Runner, query: str = "") -> None:
        super().__init__()
        self.state = state
        self.runner = runner
        self._loading = True
        self._link_problems = state.load(query)
        self.build()
        self.downloads = Downloads(self._guarded, lambda: self.runner.result, self.kinds)
        self.run = widgets.Button(description="Run", button_style="primary")
        self.cancel = widgets.Button(description="Cancel", disabled=True)
        self.reset = widgets.Button(description="Reset", tooltip="Everything as at the beginning")
        self.progress = widgets.FloatProgress(min=0.0, max=1.0)
        self._message = widgets.HTML()
        self._hint = widgets.HTML()
        self.sharing = Sharing(state, self._guarded)
        self.widget = self._layout()
        self._connect()

    def start(self) -> None:
        """Starts the work in the background, with the first experiment unless the link is wrong."""
        self._loading = False
        self.runner.start()
        self._tell_link()
        experiment = self.state.experiment
        if experiment is None or self._link_problems or self.state.asked:
            self.pictures.announce("The link was not run: see what is marked, then press Run.")
        elif self.expected(experiment) > LONGEST:
            self.pictures.announce("The link was not run, since it takes long: press Run.")
        else:
            self.pictures.announce("The first experiment is on its way…")
            self.runner.request(experiment)
        if self._link_problems:
            first, more = self._link_problems[:TOLD], len(self._link_problems) - TOLD
            rest = f" And {more} more like it." if more > 0 else ""
            self._show_fault(f"In the link: {' '.join(first)}{rest}")

    def build(self) -> None:
        raise NotImplementedError

    def expected(self, experiment: Any) -> float:
        raise NotImplementedError

    def _layout(self) -> widgets.Widget:
        buttons = widgets.HBox([self.run, self.cancel, self.reset])
        buttons.add_class("explorer-buttons")
        going = widgets.VBox(
            [
                *(buttons, self.sharing.widget, self._hint),
                *(self.progress, self._message, self._fault),
            ]
        )
        going.add_class("explorer-run")
        left = widgets.VBox([going, self.controls.widget])
        left.add_class("explorer-left")
        right = widgets.VBox([self.pictures.widget, self.downloads.widget])
        right.add_class("explorer-right")
        body = widgets.Box([left, right])
        body.add_class("explorer-body")
        whole = widgets.VBox([style(), body])
        whole.add_class("explorer")
        return whole

    def _connect(self) -> None:
        guarded = self._guarded
        self.run.on_click(guarded(lambda button: self._request()))
        self.cancel.on_click(guarded(lambda button: self.runner.cancel()))
        self.reset.on_click(guarded(lambda button: self._reset()))
        self.state.observe(guarded(lambda change: self._changed()), ["experiment", "problems"])
        self.state.observe(guarded(lambda change: self._arrange()), "lesson")
        self.runner.observe(guarded(self._show_result), "result")
        self.runner.observe(guarded(lambda change: self._show_status()), "status")
        self.runner.observe(guarded(lambda change: self._show_message(change["new"])), "message")
        self.runner.observe(guarded(self._show_fraction), "fraction")
        self.runner.observe(guarded(self._show_devices), "devices")
        self.runner.observe(guarded(self._show_problems), "problems")
        self._arrange()
        self._changed()

    # What a person does.

    def _request(self) -> None:
        self._fault.value = ""
        if self.state.experiment is not None:
            self.runner.request(self.state.experiment)

    def _reset(self) -> None:
        self.runner.cancel()
        self.state.reset()
        self._fault.value = ""
        experiment = self.state.experiment
        if experiment is not None and self.expected(experiment) <= LONGEST:  # a link's may be long
            self.runner.request(experiment)

    def _changed(self) -> None:
        """Follows the state: the link, what Run may do, and a run by itself where it is quick."""
        experiment = self.state.experiment
        self.pictures.mark(experiment)
        self.run.disabled = experiment is None
        if experiment is None:
            self._hint.value = hint("Put right what is marked below.")
            return
        expected = self.expected(experiment)
        self._hint.value = hint(_expectation(expected))
        if not self._loading:
            self._tell_link()
            if expected < AUTO:
                self.runner.request(experiment)

    def _arrange(self) -> None:
        """Follows what the link, or the Projector button, asks of the page."""
        project(self.widget, self.pictures.cards, self.state.lesson.projector)
        if not self._loading:
            self._tell_link()

    def _tell_link(self) -> None:
        """The state for the address bar and for Copy link; a wrong one is not told, so that a
        reload has what was entered last and was right."""
        if self.state.experiment is not None:
            self.sharing.tell()

    # What the runner tells.

    def _show_result(self, change: Any) -> None:
        self.pictures.show(change["new"])
        self.downloads.offer()
        self.pictures.mark(self.state.experiment)

    def _show_status(self) -> None:
        running = self.runner.status == "running"
        self.cancel.disabled = not running
        self.progress.bar_style = {"done": "success", "failed": "danger"}.get(
            self.runner.status, ""
        )
        if self.runner.status in ("failed", "cancelled") and self.runner.result is None:
            self.pictures.announce("There is no result yet: see what is said beside the controls.")

    def _show_fraction(self, change: Any) -> None:
        self.progress.value = change["new"]

    def _show_message(self, message: str) -> None:
        self._message.value = (
            f'<span class="explorer-message" role="status">{escape(message)}</span>'
        )

    def _show_devices(self, change: Any) -> None:
        # The worker is up. Any sooner, loading plotly would hold the controls up.
        self.pictures.prepare()
        self.controls.set_devices(change["new"])
        self.state.set_devices([device.name for device in change["new"]])

    def _show_problems(self, change: Any) -> None:
        """The worker's problems, beside the controls at fault until the next change."""
        self.state.problems = {**self.state.problems, **change["new"]}


def _expectation(expected: float) -> str:
    if expected < AUTO:
        return "Changes run by themselves."
    return f"Press Run: about {seconds(expected)}."


def project(widget: widgets.DOMWidget, cards: Cards, projector: bool) -> None:
    """Has a panel in the size for a projector, or in that of a page."""
    if projector:
        widget.add_class("explorer-projector")
    else:
        widget.remove_class("explorer-projector")
    cards.enlarge(PROJECTED if projector else 1.0)


def style() -> widgets.HTML:
    """What the widgets of a panel look like."""
    return widgets.HTML(f"<style>{asset('style.css')}{asset('../figures.css')}</style>")


def asset(name: str) -> str:
    return files("explorer.app").joinpath(name).read_text(encoding="utf-8")
