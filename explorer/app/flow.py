"""The panel of the gradient flow: its controls, its pictures, and the changes that it offers."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets as widgets

from explorer.app.control import (
    Control,
    DropdownControl,
    Guard,
    Row,
    Several,
    TextControl,
)
from explorer.app.panel import AUTO, Panel
from explorer.app.pictures import Cards, grid_of, listed, paragraph, status
from explorer.app.runner import Runner
from explorer.app.state import SHOWN, FlowState
from explorer.events import Device
from explorer.flow import sentences
from explorer.flow.experiment import FIELDS, LOSSES, FlowExperiment
from explorer.flow.figures import figures
from explorer.flow.result import Flow
from explorer.flow.tables import tables
from explorer.functions.description import decomposition_seconds
from explorer.recurrence import GATES, parts
from explorer.tables import to_html

NAMES = ("gradients", "steps", "fan")
_FORMULA = (
    "h<sub>t</sub> = cell(h<sub>t−1</sub>, u<sub>t</sub>) for t = 1 … T, with inputs u and losses "
    "L of h<sub>T</sub>: how much of a gradient comes back to h<sub>0</sub>, and why."
)
_STEP = 4e-4, 1e-4  # seconds of one step in one round of all ways: any cell, and each gate
_OPERATION = 4e-11  # seconds of one floating-point operation in its Jacobian
_DECOMPOSITION = 2e-3  # seconds of the singular values of a matrix, however small
_FAN = 40  # products that are decomposed
_START = 0.06  # seconds that any run takes


class FlowPanel(Panel):
    """The panel; `remedies` are the buttons of the changes that would help."""

    state: FlowState

    def __init__(self, runner: Runner, query: str = "") -> None:
        self._compared: tuple[FlowExperiment, Flow] | None = None  # (after, before)
        super().__init__(FlowState(), runner, query)

    def build(self) -> None:
        self.controls: FlowControls = FlowControls(self.state, self._guarded)
        self.pictures: FlowPictures = FlowPictures(self._guarded, self._remedy, self._before)
        self._pace: dict[tuple[str, str], float] = {}
        self.runner.observe(self._guarded(self._learn), "result")

    def expected(self, experiment: FlowExperiment) -> float:
        width = parts(experiment.cell) * experiment.size
        one = _DECOMPOSITION + decomposition_seconds(width, width)
        spectra = (experiment.steps + min(_FAN, experiment.steps)) * one
        rounds = (experiment.repeats + 2) * _round(experiment)
        return _START + self._pace.get(_kind(experiment), 1.0) * (rounds + spectra)

    def _learn(self, change: Any) -> None:
        """Takes from a finished run how much slower than estimated this machine is."""
        flow = change["new"]
        if flow.status == "done" and flow.ways is not None and flow.experiment is not None:
            ways = flow.ways.naive, flow.ways.jacobians, flow.ways.chain
            measured = sum(way.minimum for way in ways)
            self._pace[_kind(flow.experiment)] = measured / _round(flow.experiment)

    def _remedy(self, changed: FlowExperiment) -> None:
        """Runs a change, to be shown over what is on show."""
        before = self.pictures.flow
        assert before is not None
        self._compared = changed, before
        self.state.enter(changed)
        if self.expected(changed) >= AUTO:  # else the changed state has asked for it
            self.runner.request(changed)

    def _before(self, flow: Flow) -> Flow | None:
        """What a Flow is compared with: only what a button changed has something before it."""
        if self._compared is None or flow.experiment != self._compared[0]:
            return None
        return self._compared[1]


class FlowControls:
    """One widget a field, its problem beside it."""

    def __init__(self, state: FlowState, guard: Guard) -> None:
        self._state, self._guard = state, guard
        self._devices: tuple[Device, ...] = (Device("cpu", ""),)
        self._device = DropdownControl(state, guard, FIELDS["device"])
        self.rows = {name: Row(name, self._control(name)) for name in FIELDS}
        formula = widgets.HTML(f'<p class="explorer-formula">{_FORMULA}</p>')
        self.widget = widgets.VBox([formula, *(row.box for row in self.rows.values())])
        self.widget.add_class("explorer-controls")
        state.observe(guard(lambda change: self._show()), SHOWN)
        self._show()

    def set_devices(self, devices: tuple[Device, ...]) -> None:
        self._devices = devices
        self._show()

    def _control(self, name: str) -> Control:
        field = FIELDS[name]
        if name == "device":
            return self._device
        if field.kind == "choices":
            several = Several(self._state, self._guard, name, "Losses")
            several.offer(LOSSES)
            return several
        if field.kind == "choice":
            dropdown = DropdownControl(self._state, self._guard, field)
            dropdown.offer([(choice, choice) for choice in field.choices])
            return dropdown
        return TextControl(self._state, self._guard, field)

    def _show(self) -> None:
        entries, problems = self._state.entries, self._state.problems
        self._device.offer(
            [(f"{each.name} ({each.title})" if each.title else each.name, each.name)
             for each in self._devices]
        )  # fmt: skip
        for row in self.rows.values():
            row.show(self._state)
        # It counts for one start alone; a wrong one has to be seen.
        counts = entries["start"] == "gain" or "gain" in problems
        self.rows["gain"].box.layout.display = None if counts else "none"


class FlowPictures:
    """Built once, empty; `show` fills it.

    Args:
        remedy: what a button of a change calls with the changed experiment.
        before: what a Flow is drawn over, None for nothing.
    """

    def __init__(self, guard: Guard, remedy: Any, before: Any) -> None:
        self.flow: Flow | None = None
        self._guard, self._remedy, self._before = guard, remedy, before
        self._heading, self._summary, self._compared = (widgets.HTML() for _ in range(3))
        self._cause, self._ways, self._notes = (widgets.HTML() for _ in range(3))
        self.remedies = widgets.HBox()
        self.remedies.add_class("explorer-remedies")
        self.cards = Cards(guard, self._draw)
        self.widget = widgets.VBox(
            [
                *(self._heading, self._summary, self._compared, self._cause, self.remedies),
                *(grid_of(self.cards[name] for name in NAMES), self._ways, self._notes),
                self.cards.kind,
            ]
        )
        self.widget.add_class("explorer-pictures")

    def announce(self, sentence: str) -> None:
        """Says in the place of the summary why there is no picture yet."""
        self._summary.value = status(sentence)

    def mark(self, experiment: FlowExperiment | None) -> None:
        """Marks the pictures if they are of another experiment than this one."""
        if self.flow is None or self.flow.experiment in (None, experiment):
            self.widget.remove_class("explorer-stale")
        else:
            self.widget.add_class("explorer-stale")

    def prepare(self) -> None:
        """Nothing: the first pictures come with the first run."""

    def show(self, flow: Flow) -> None:
        """Draws a Flow, over what was before where there is something."""
        self.flow, before = flow, self._before(flow)
        experiment = flow.experiment
        self._heading.value = _heading(experiment)
        self._summary.value = status(sentences.summary(flow))
        compared = sentences.compared(before, flow) if before is not None else ""
        self._compared.value = paragraph("explorer-compared", compared)
        self._cause.value = paragraph("explorer-cause", sentences.cause(flow))
        self._draw()
        found = tables(flow, before)
        for name in NAMES:
            self.cards[name].tabulate(found[name])
        ways = found["ways"]
        behind = f"<details><summary>Table: {escape(ways.title)}</summary>{to_html(ways)}</details>"
        said = sentences.ways(flow)
        self._ways.value = paragraph("explorer-ways", said) + behind if said else ""
        self._notes.value = listed(sentences.notes(flow))
        done = experiment is not None and flow.status == "done"
        self._offer(sentences.remedies(experiment, flow) if done and experiment else [])

    def _draw(self) -> None:
        """Draws the Flow on show."""
        if self.flow is None:
            return
        self.cards.draw(self.flow, figures(self.flow, self._before(self.flow)))

    def _offer(self, changes: list[tuple[str, FlowExperiment]]) -> None:
        for old in self.remedies.children:
            old.close()
        buttons = []
        for label, changed in changes:
            button = widgets.Button(description=label, tooltip=f"{label}, and compare")
            button.on_click(self._guard(lambda pressed, changed=changed: self._remedy(changed)))
            buttons.append(button)
        self.remedies.children = buttons


def _round(experiment: FlowExperiment) -> float:
    """Seconds, as estimated, of all ways once."""
    gates, size = GATES[experiment.cell], experiment.size
    operations = 2 * gates * size * size * parts(experiment.cell) * size
    step = _STEP[0] + gates * _STEP[1] + _OPERATION * operations
    return experiment.steps * step


def _kind(experiment: FlowExperiment) -> tuple[str, str]:
    return experiment.dtype, experiment.device


def _heading(experiment: FlowExperiment | None) -> str:
    """What the pictures are of, and the words that `mark` brings to light."""
    if experiment is None:
        return ""
    what = sentences.setting(experiment)
    since = '<span class="explorer-since"> – the controls have changed since</span>'
    return f'<p class="explorer-heading">{escape(what)}{since}</p>'
