"""The controls: a view of the state, one widget a field of the table, its problem beside it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import ipywidgets as widgets

from explorer.app.state import Entry, State
from explorer.engine.plan import PATHS, PEER
from explorer.events import Device
from explorer.experiment import DTYPES, lacking, table, uninstalled
from explorer.fields import Field
from explorer.functions import FUNCTIONS
from explorer.heads import HEADS

Guard = Callable[[Callable[..., None]], Callable[..., None]]
"""Wraps a callback so that what it raises is shown on the page."""


class Controls:
    """All controls, built once; the function's own parameters change with the function."""

    def __init__(self, state: State, guard: Guard) -> None:
        self._state = state
        self._guard = guard
        self._devices: tuple[Device, ...] = (Device("cpu", ""),)
        self._about = widgets.HTML()
        self._function = self._row("function", self._dropdown("function", list(FUNCTIONS.items())))
        self._size = self._row("size", _SizeControl(state, guard))
        self._parameters = widgets.VBox()
        self._device = self._dropdown("device", [])
        self._rows = {
            "dtype": self._row("dtype", _DtypeControl(state, guard)),
            "device": self._row("device", self._device),
            "heads": self._row("heads", _Several(state, guard, "heads", _head_labels())),
            "paths": self._row("paths", _Several(state, guard, "paths", PATHS, _not_offered())),
            **{name: self._row(name, self._text(name)) for name in ("repeats", "seed", "budget")},
            "scaling": self._row("scaling", _Several(state, guard, "scaling", _ALONG)),
            "cutoff": self._row("cutoff", self._text("cutoff")),
        }
        self.widget = widgets.VBox(
            [self._function.box, self._about, self._size.box, self._parameters]
            + [row.box for row in self._rows.values()]
        )
        self.widget.add_class("explorer-controls")
        self._own: dict[str, _Row] = {}
        self._own_of = ""
        state.observe(guard(self._show), ["entries", "problems"])
        self._show()

    def set_devices(self, devices: tuple[Device, ...]) -> None:
        """The devices to choose from."""
        self._devices = devices
        self._show()

    def _show(self, change: Any = None) -> None:
        """Brings every control to what the state holds."""
        entries, problems = self._state.entries, self._state.problems
        if entries["function"] in FUNCTIONS:
            self._show_function(entries["function"])
        names = [device.name for device in self._devices]
        options = [(f"{d.name} ({d.title})" if d.title else d.name, d.name) for d in self._devices]
        if entries["device"] not in names:  # kept on show, with its problem beside it
            options.append((entries["device"], entries["device"]))
        self._device.offer(options)
        rows = {"function": self._function, "size": self._size, **self._own, **self._rows}
        for name, row in rows.items():
            row.show(entries[name], problems.get(name, ""))

    def _show_function(self, name: str) -> None:
        """The function's formula and the rows of its parameters, made when it is another one."""
        if name == self._own_of:
            return
        self._own_of = name
        function = FUNCTIONS[name]
        self._about.value = (
            f'<p class="explorer-formula">{escape(function.formula)}</p>'
            f'<p class="explorer-hint">Slow because {escape(function.why_slow)}</p>'
        )
        self._own = {
            field.name: self._row(field.name, self._text(field.name))
            for field in function.parameters
        }
        self._parameters.children = [row.box for row in self._own.values()]

    def _row(self, name: str, control: _Control) -> _Row:
        return _Row(name, control)

    def _text(self, name: str) -> _Control:
        return _TextControl(self._state, self._guard, self._field(name))

    def _dropdown(self, name: str, options: list[tuple[str, Any]]) -> _DropdownControl:
        control = _DropdownControl(self._state, self._guard, self._field(name))
        control.offer([(getattr(each, "title", key), key) for key, each in options])
        return control

    def _field(self, name: str) -> Field:
        function = self._state.entries["function"]
        return table(function if function in FUNCTIONS else next(iter(FUNCTIONS)))[name]


class _Control:
    """A widget that shows one entry of the state and enters what a person sets."""

    widget: widgets.Widget

    def show(self, entry: Entry) -> None:
        raise NotImplementedError


class _Row:
    """A control with the place for its problem."""

    def __init__(self, name: str, control: _Control) -> None:
        self._control = control
        self._problem = widgets.HTML()
        self.box = widgets.VBox([control.widget, self._problem])
        self.box.add_class("explorer-row")
        self.box.add_class(f"explorer-row-{name}")

    def show(self, entry: Entry, problem: str) -> None:
        self._control.show(entry)
        self._problem.value = (
            f'<span class="explorer-problem" role="alert">{escape(problem)}</span>'
            if problem
            else ""
        )
        self._problem.layout.display = None if problem else "none"


class _TextControl(_Control):
    """A text box, which keeps what was typed."""

    def __init__(self, state: State, guard: Guard, field: Field) -> None:
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


class _DropdownControl(_Control):
    """A choice of one."""

    def __init__(self, state: State, guard: Guard, field: Field) -> None:
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


class _SizeControl(_Control):
    """A text box for the size, and a slider beside it whose steps are even in log size."""

    def __init__(self, state: State, guard: Guard) -> None:
        self._state = state
        self._guard = guard
        self._text = _TextControl(state, guard, table()["size"])
        self._slider: _SizeSlider | None = None
        self._slider_of = ""
        self.widget = widgets.VBox([self._text.widget])

    def show(self, entry: Entry) -> None:
        self._text.show(entry)
        function = self._state.entries["function"]
        if function not in FUNCTIONS:
            return
        if function != self._slider_of:
            self._slider_of = function
            if self._slider is not None:
                self._slider.close()
            self._slider = _SizeSlider(self._state, self._guard, FUNCTIONS[function].size)
            self.widget.children = [self._text.widget, self._slider.widget]
        if self._slider is not None and "size" not in self._state.problems:
            self._slider.show(FUNCTIONS[function].size.parse(entry))


class _SizeSlider:
    """A slider over whole sizes. What was typed is one of them, or the browser would move the
    slider to the nearest one and send that back as if a person had chosen it."""

    def __init__(self, state: State, guard: Guard, field: Field) -> None:
        self._state = state
        self._sizes = steps(int(field.minimum), int(field.maximum))
        self._showing = False
        self.widget = widgets.SelectionSlider(
            options=self._sizes, readout=False, tooltip="size n, in even steps of log n"
        )
        self.widget.observe(guard(self._moved), "value")

    def show(self, size: int) -> None:
        self._showing = True
        try:
            # Held, or the browser would see the new options with the old choice.
            with self.widget.hold_sync():
                if size not in self.widget.options:
                    self.widget.options = _with(self._sizes, size)
                self.widget.value = size
        finally:
            self._showing = False

    def close(self) -> None:
        """Takes it off the page; a move that is still on its way changes nothing."""
        self.widget.unobserve_all()
        self.widget.close()

    def _moved(self, change: Any) -> None:
        if not self._showing:
            self._state.set("size", str(change["new"]))


def steps(low: int, high: int) -> tuple[int, ...]:
    """At most 121 whole numbers from `low` to `high`, about even in their logarithm."""
    left = min(121, high - low + 1)
    found = [low]
    while left > 1:
        left -= 1
        last = found[-1]
        found.append(max(last + 1, round(last * (high / last) ** (1 / left))))
    return tuple(found)


def _with(sizes: tuple[int, ...], size: int) -> tuple[int, ...]:
    """The sizes with one in the place of the nearest: their number, which the browser's slider
    goes by, stays."""
    nearest = min(range(len(sizes)), key=lambda index: abs(sizes[index] - size))
    return (*sizes[:nearest], size, *sizes[nearest + 1 :])


class _DtypeControl(_Control):
    """A button a dtype; one that the chosen device lacks is disabled, with the reason."""

    def __init__(self, state: State, guard: Guard) -> None:
        self._state = state
        self._buttons = {name: widgets.ToggleButton(description=name) for name in DTYPES}
        for name, button in self._buttons.items():
            button.observe(guard(lambda change, name=name: self._pressed(name)), "value")
        self._reason = widgets.HTML()
        buttons = widgets.HBox(list(self._buttons.values()))
        self.widget = widgets.VBox([_caption("Data type"), buttons, self._reason])
        self._showing = False

    def show(self, entry: Entry) -> None:
        self._showing = True
        try:
            reasons = []
            for name, button in self._buttons.items():
                reason = lacking(name, str(self._state.entries["device"]))
                button.value = name == entry
                button.disabled = bool(reason)
                button.tooltip = reason or f"compute in {name}"
                reasons += [reason] if reason else []
            self._reason.value = f'<span class="explorer-hint">{escape(" ".join(reasons))}</span>'
        finally:
            self._showing = False

    def _pressed(self, name: str) -> None:
        if self._showing:
            return
        self._state.set("dtype", name)
        self.show(self._state.entries["dtype"])  # pressing the chosen one again leaves it chosen


class _Several(_Control):
    """A check box a choice; one of `not_offered` is shown only while the entry names it."""

    def __init__(
        self,
        state: State,
        guard: Guard,
        name: str,
        labels: dict[str, str],
        not_offered: tuple[str, ...] = (),
    ) -> None:
        self._state, self._name = state, name
        self._lines: dict[str, widgets.HBox] = {}
        self._not_offered = not_offered
        self._boxes = {
            key: widgets.Checkbox(description=key, tooltip=words, indent=False)
            for key, words in labels.items()
        }
        for box in self._boxes.values():
            box.observe(guard(self._ticked), "value")
        for key, words in labels.items():
            note = widgets.HTML(f'<span class="explorer-hint">{escape(words)}</span>')
            self._boxes[key].add_class(f"explorer-{name}-{key}")
            self._lines[key] = widgets.HBox([self._boxes[key], note])
        self.widget = widgets.VBox([_caption(_CAPTIONS[name]), *self._lines.values()])
        self.widget.add_class("explorer-several")
        self._showing = False

    def show(self, entry: Entry) -> None:
        self._showing = True
        try:
            for key, box in self._boxes.items():
                box.value = key in entry
            for key in self._not_offered:
                self._lines[key].layout.display = None if key in entry else "none"
        finally:
            self._showing = False

    def _ticked(self, change: Any) -> None:
        if not self._showing:
            chosen = tuple(key for key, box in self._boxes.items() if box.value)
            self._state.set(self._name, chosen)


def _caption(text: str) -> widgets.HTML:
    return widgets.HTML(f'<span class="explorer-caption">{escape(text)}</span>')


_CAPTIONS = {"heads": "Heads", "paths": "Paths", "scaling": "Scaling, measured against"}
_ALONG = {"heads": "number of heads, 1 to 1000", "outputs": "number of entries of y"}


def _not_offered() -> tuple[str, ...]:
    """The paths that cannot be run here."""
    return (PEER,) if uninstalled([PEER]) else ()


def _head_labels() -> dict[str, str]:
    return {
        head.name: head.formula + (f", {head.domain}" if head.inside is not None else "")
        for head in HEADS.values()
    }
