"""The kinds of controls: each a widget that shows one entry of the state and enters another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import ipywidgets as widgets

from explorer.app.state import Entries, Entry
from explorer.fields import Field

Guard = Callable[[Callable[..., None]], Callable[..., None]]
"""Wraps a callback so that what it raises is shown on the page."""


class Control:
    """A widget that shows one entry of the state and enters what a person sets."""

    widget: widgets.Widget

    def show(self, entry: Entry) -> None:
        raise NotImplementedError


class Row:
    """A control with the place for what is said of it: its problem, what a link asked for in the
    place of what it has, what the link allows. Where the link hides the control, only a problem
    brings it to light."""

    def __init__(self, name: str, control: Control) -> None:
        self._name, self._control = name, control
        self._said = widgets.HTML()
        self.box = widgets.VBox([control.widget, self._said])
        self.box.add_class("explorer-row")
        self.box.add_class(f"explorer-row-{name}")

    def show(self, state: Entries) -> None:
        name = self._name
        self._control.show(state.entries[name])
        wrong, limit = state.problems.get(name, ""), state.limit(name)
        hidden = name in state.lesson.hidden
        if self._control.widget.has_trait("disabled"):  # as a control of one value has
            self._control.widget.disabled = state.is_fixed(name) and not wrong
        said = problem(wrong) or problem(state.asked.get(name, ""))
        if limit and not wrong and not hidden:
            said += hint(limit)
        self._said.value = said
        self._said.layout.display = None if said else "none"
        if hidden and not wrong:
            self.box.add_class("explorer-hidden")
        else:
            self.box.remove_class("explorer-hidden")


class TextControl(Control):
    """A text box, which keeps what was typed."""

    def __init__(self, state: Entries, guard: Guard, field: Field) -> None:
        unit = f" ({field.unit})" if field.unit else ""
        self.widget = widgets.Text(
            description=field.label + unit,
            placeholder=field.empty,
            tooltip=f"{field.help}: {field.allowed}",
            style={"description_width": "initial"},
        )
        self.widget.observe(guard(lambda change: state.set(field.name, change["new"])), "value")

    def show(self, entry: Entry) -> None:
        self.widget.value = str(entry)


class DropdownControl(Control):
    """A choice of one."""

    def __init__(self, state: Entries, guard: Guard, field: Field) -> None:
        self._known: list[tuple[str, str]] = []
        self.widget = widgets.Dropdown(
            description=field.label, tooltip=field.help, style={"description_width": "initial"}
        )
        self._showing = False
        self._state, self._name = state, field.name
        self.widget.observe(guard(self._entered), "value")

    def offer(self, options: list[tuple[str, str]]) -> None:
        """The options, as (label, entry)."""
        if options != self._known:
            self._known = options
            self._set(self.widget.value)

    def show(self, entry: Entry) -> None:
        if entry != self.widget.value:
            self._set(str(entry))

    def _set(self, entry: str | None) -> None:
        options = list(self._known)
        if entry is not None and entry not in [value for _, value in options]:
            options.append((entry, entry))  # a link's unknown name, its problem beside it
        self._showing = True
        try:
            self.widget.options = options
            self.widget.value = entry
        finally:
            self._showing = False

    def _entered(self, change: Any) -> None:
        if not self._showing and change["new"] is not None:
            self._state.set(self._name, change["new"])


class SwitchControl(Control):
    """A check box for what is on or off."""

    def __init__(self, state: Entries, guard: Guard, field: Field) -> None:
        self.widget = widgets.Checkbox(description=field.label, tooltip=field.help, indent=False)
        self._showing = False

        def ticked(change: Any) -> None:
            if not self._showing:
                state.set(field.name, field.text(change["new"]))

        self._field = field
        self.widget.observe(guard(ticked), "value")

    def show(self, entry: Entry) -> None:
        self._showing = True
        try:
            self.widget.value = entry == self._field.text(True)
        finally:
            self._showing = False


class Several(Control):
    """A check box a choice, in the order in which they are offered."""

    def __init__(self, state: Entries, guard: Guard, name: str, title: str) -> None:
        self._state, self._guard, self._name = state, guard, name
        self._lines: dict[str, widgets.HBox] = {}
        self._boxes: dict[str, widgets.Checkbox] = {}
        self._offered: tuple[str, ...] = ()
        self._choices = widgets.VBox()
        self.widget = widgets.VBox([caption(title), self._choices])
        self.widget.add_class("explorer-several")
        self._showing = False

    def offer(self, labels: Mapping[str, str]) -> None:
        """The choices, each with the words beside its box."""
        for key, words in labels.items():
            if key not in self._boxes:
                box = widgets.Checkbox(description=key, tooltip=words, indent=False)
                box.observe(self._guard(self._ticked), "value")
                if key.isidentifier():
                    box.add_class(f"explorer-{self._name}-{key}")
                self._boxes[key] = box
                self._lines[key] = widgets.HBox([box, widgets.HTML(hint(words))])
        self._offered = tuple(labels)
        lines = tuple(self._lines[key] for key in labels)
        if self._choices.children != lines:
            self._choices.children = lines

    def show(self, entry: Entry) -> None:
        self._showing = True
        try:
            for key, box in self._boxes.items():
                box.value = key in entry
        finally:
            self._showing = False

    def _ticked(self, change: Any) -> None:
        if not self._showing:
            chosen = tuple(key for key in self._offered if self._boxes[key].value)
            self._state.set(self._name, chosen)


def caption(text: str) -> widgets.HTML:
    return widgets.HTML(f'<span class="explorer-caption">{escape(text)}</span>')


def hint(text: str) -> str:
    """Small words beside a control, as HTML."""
    return f'<span class="explorer-hint">{escape(text)}</span>'


def problem(text: str) -> str:
    """What is wrong, as HTML; empty for nothing."""
    return f'<span class="explorer-problem" role="alert">{escape(text)}</span>' if text else ""
