"""The panel of the sweeps: its controls, and its pictures, which fill as points arrive."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets as widgets

from explorer.app.control import Control, Guard, Row, TextControl, hint
from explorer.app.controls import Controls
from explorer.app.downloads import OF_A_STUDY
from explorer.app.panel import Panel
from explorer.app.pictures import Cards, grid_of, listed, status
from explorer.app.runner import Runner
from explorer.app.state import SHOWN, SWEEP_FIELDS, SweepState
from explorer.events import Device
from explorer.study import sentences
from explorer.study.axis import Value, text
from explorer.study.figures import chosen, figures
from explorer.study.running import expected_seconds
from explorer.study.study import Study
from explorer.study.sweep import Sweep
from explorer.study.tables import table
from explorer.tables import to_html

NAMES = ("speed-up", "time", "passes", "error", "norm")


class SweepPanel(Panel):
    """The panel."""

    state: SweepState
    kinds = OF_A_STUDY

    def __init__(self, runner: Runner, query: str = "") -> None:
        super().__init__(SweepState(), runner, query)

    def build(self) -> None:
        self.controls: SweepControls = SweepControls(self.state, self._guarded)
        self.pictures: StudyPictures = StudyPictures(self._guarded)

    def expected(self, experiment: Sweep) -> float:
        return expected_seconds(experiment)


class SweepControls:
    """The axes, then the controls of the experiments but those that are swept."""

    def __init__(self, state: SweepState, guard: Guard) -> None:
        self._state = state
        self._controls = Controls(state, guard, lambda entries: {})
        self.rows = {
            name: Row(name, self._control(field, guard)) for name, field in SWEEP_FIELDS.items()
        }
        about = widgets.HTML(hint(
            "Experiments for all combinations of the values of one to three fields: "
            "size=50:800:log5 is five sizes in even ratios, lin5 in even steps, "
            "heads=1,4,16 the first 1, 4 and 16 powers of y."
        ))  # fmt: skip
        self.widget = widgets.VBox(
            [about, *(row.box for row in self.rows.values()), self._controls.widget]
        )
        self.widget.add_class("explorer-controls")
        state.observe(guard(lambda change: self._show()), SHOWN)
        self._show()

    def set_devices(self, devices: tuple[Device, ...]) -> None:
        self._controls.set_devices(devices)

    def _control(self, field: Any, guard: Guard) -> Control:
        return TextControl(self._state, guard, field)

    def _show(self) -> None:
        for row in self.rows.values():
            row.show(self._state)
        self._controls.leave_out(self._state.left_out)


class StudyPictures:
    """Built once, empty; `show` fills it."""

    def __init__(self, guard: Guard) -> None:
        self.study: Study | None = None
        self._guard = guard
        self._of: Sweep | None = None
        self._heading, self._summary, self._table, self._notes = (widgets.HTML() for _ in range(4))
        self.cards = Cards(guard, self._redraw)
        self._grid = grid_of(self.cards[name] for name in NAMES)
        self.choices = widgets.HBox()
        self.choices.add_class("explorer-choices")
        self._offered: dict[str, tuple[Value, ...]] = {}
        self.widget = widgets.VBox(
            [
                *(self._heading, self._summary, self.choices),
                *(self._grid, self._table, self._notes, self.cards.kind),
            ]
        )
        self.widget.add_class("explorer-pictures")

    def announce(self, sentence: str) -> None:
        """Says in the place of the summary why there is no picture yet."""
        self._summary.value = status(sentence)

    def mark(self, experiment: Sweep | None) -> None:
        """Marks the pictures if they are of another sweep than this one."""
        shown = self.study
        if shown is None or experiment is None or shown.key == experiment.key:
            self.widget.remove_class("explorer-stale")
        else:
            self.widget.add_class("explorer-stale")

    def prepare(self) -> None:
        """Nothing: the first pictures come with the first points."""

    def show(self, study: Study) -> None:
        """Draws the points that are there."""
        self.study = study
        self._offer(study)
        since = '<span class="explorer-since"> – the controls have changed since</span>'
        what = escape(sentences.setting(study))
        self._heading.value = f'<p class="explorer-heading">{what}{since}</p>'
        self._summary.value = status(sentences.summary(study))
        found = table(study)
        title = escape(found.title)
        self._table.value = (
            f'<details class="explorer-points"><summary>Table: {title}</summary>{to_html(found)}'
            "</details>"
        )
        self._notes.value = listed(sentences.notes(study))
        self._redraw()

    def _offer(self, study: Study) -> None:
        """A choice for each further axis of what the pictures by path are of."""
        offered = {axis.name: axis.values for axis in study.axes[1:]}
        if offered == self._offered:
            return
        self._offered = offered
        for old in self.choices.children:
            old.close()
        chosen_ = chosen(study)
        boxes = []
        for name, values in offered.items():
            box = widgets.Dropdown(
                description=f"Shown by path: {name}",
                options=[(text(value), value) for value in values],
                value=chosen_[name],
                style={"description_width": "initial"},
            )
            box.observe(self._guard(lambda change: self._redraw()), "value")
            boxes.append(box)
        self.choices.children = boxes

    def _redraw(self) -> None:
        if self.study is None:
            return
        # Pictures of the sweep before this one would pass for its own.
        self._grid.layout.display = None if self.study.points else "none"
        if not self.study.points:
            return
        names = [axis.name for axis in self.study.axes[1:]]
        choice = {name: box.value for name, box in zip(names, self.choices.children, strict=True)}
        self.cards.draw(self.study, figures(self.study, choice))
