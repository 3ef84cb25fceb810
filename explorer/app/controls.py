"""The controls: a view of the state, one widget a field of the table, its problem beside it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import ipywidgets as widgets

from explorer.app.control import (
    Control,
    DropdownControl,
    Guard,
    Row,
    Several,
    SwitchControl,
    TextControl,
    caption,
    hint,
)
from explorer.app.heads import HeadsControl, Try
from explorer.app.state import SHOWN, Entry, State
from explorer.engine.plan import PATHS, PEER
from explorer.events import Device
from explorer.experiment import DEFAULT_FUNCTION, DTYPES, lacking, table, uninstalled
from explorer.fields import Field
from explorer.functions import FUNCTIONS


class Controls:
    """All controls, built once; the function's own parameters change with the function."""

    def __init__(self, state: State, guard: Guard, try_heads: Try) -> None:
        self._state = state
        self._guard = guard
        self._devices: tuple[Device, ...] = (Device("cpu", ""),)
        self._about = widgets.HTML()
        titles = [(function.title, name) for name, function in FUNCTIONS.items()]
        self._function = self._row("function", self._dropdown("function", titles))
        self._size = self._row("size", _SizeControl(state, guard))
        self._parameters = widgets.VBox()
        self._device = self._dropdown("device", [])
        scaling = Several(state, guard, "scaling", "Scaling, measured against")
        scaling.offer(_ALONG)
        self.heads = HeadsControl(state, guard, try_heads)
        self._rows = {
            "dtype": self._row("dtype", _DtypeControl(state, guard)),
            "device": self._row("device", self._device),
            "compile": self._row("compile", self._control("compile")),
            "heads": self._row("heads", self.heads),
            "paths": self._row("paths", _PathsControl(state, guard)),
            **{
                name: self._row(name, self._control(name)) for name in ("repeats", "seed", "budget")
            },
            "scaling": self._row("scaling", scaling),
            **{
                name: self._row(name, self._control(name))
                for name in ("cutoff", "sizes", "curvature")
            },
        }
        self.widget = widgets.VBox(
            [self._function.box, self._about, self._size.box, self._parameters]
            + [row.box for row in self._rows.values()]
        )
        self.widget.add_class("explorer-controls")
        self._own: dict[str, Row] = {}
        self._own_of = ""
        self._left_out: frozenset[str] = frozenset()
        state.observe(guard(self._show), SHOWN)
        self._show()

    def set_devices(self, devices: tuple[Device, ...]) -> None:
        """The devices to choose from."""
        self._devices = devices
        self._show()

    def leave_out(self, names: Iterable[str]) -> None:
        """The fields whose controls are not shown."""
        if self._left_out != frozenset(names):
            self._left_out = frozenset(names)
            self._show()

    def _show(self, change: Any = None) -> None:
        """Brings every control to what the state holds."""
        entries = self._state.entries
        if entries["function"] in FUNCTIONS:
            self._show_function(entries["function"])
        names = [device.name for device in self._devices]
        options = [(f"{d.name} ({d.title})" if d.title else d.name, d.name) for d in self._devices]
        if entries["device"] not in names:  # kept on show, with its problem beside it
            options.append((entries["device"], entries["device"]))
        self._device.offer(options)
        rows = {"function": self._function, "size": self._size, **self._own, **self._rows}
        for name, row in rows.items():
            row.show(self._state)
            hidden = name in self._left_out or (name == "size" and self._has_one_size)
            row.box.layout.display = "none" if hidden else None

    @property
    def _has_one_size(self) -> bool:
        """Whether the size of the function on show is no choice."""
        size = FUNCTIONS[self._own_of].size
        return size.minimum == size.maximum

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
            field.name: self._row(field.name, self._control(field.name))
            for field in function.parameters
        }
        self._parameters.children = [row.box for row in self._own.values()]

    def _row(self, name: str, control: Control) -> Row:
        return Row(name, control)

    def _control(self, name: str) -> Control:
        """The control of a field by its kind."""
        field = self._field(name)
        if field.kind == "choice":
            return self._dropdown(name, [(choice, choice) for choice in field.choices])
        kind = SwitchControl if field.kind == "switch" else TextControl
        return kind(self._state, self._guard, field)

    def _dropdown(self, name: str, options: list[tuple[str, str]]) -> DropdownControl:
        control = DropdownControl(self._state, self._guard, self._field(name))
        control.offer(options)
        return control

    def _field(self, name: str) -> Field:
        function = self._state.entries["function"]
        return table(function if function in FUNCTIONS else DEFAULT_FUNCTION)[name]


class _SizeControl(Control):
    """A text box for the size, and a slider beside it whose steps are even in log size."""

    def __init__(self, state: State, guard: Guard) -> None:
        self._state = state
        self._guard = guard
        self._text = TextControl(state, guard, table()["size"])
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
            field = FUNCTIONS[function].size
            self._text.widget.description = field.label
            self._text.widget.tooltip = f"{field.help}: {field.allowed}"
            if self._slider is not None:
                self._slider.close()
            self._slider = _SizeSlider(self._state, self._guard, field)
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


class _DtypeControl(Control):
    """A button a dtype; one that the chosen device lacks is disabled, with the reason."""

    def __init__(self, state: State, guard: Guard) -> None:
        self._state = state
        self._buttons = {name: widgets.ToggleButton(description=name) for name in DTYPES}
        for name, button in self._buttons.items():
            button.observe(guard(lambda change, name=name: self._pressed(name)), "value")
        self._reason = widgets.HTML()
        buttons = widgets.HBox(list(self._buttons.values()))
        self.widget = widgets.VBox([caption("Data type"), buttons, self._reason])
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
            self._reason.value = hint(" ".join(reasons))
        finally:
            self._showing = False

    def _pressed(self, name: str) -> None:
        if self._showing:
            return
        self._state.set("dtype", name)
        self.show(self._state.entries["dtype"])  # pressing the chosen one again leaves it chosen


class _PathsControl(Several):
    """A check box a path; one whose package is not installed only while a link names it."""

    def __init__(self, state: State, guard: Guard) -> None:
        super().__init__(state, guard, "paths", "Paths")

    def show(self, entry: Entry) -> None:
        lacking = PEER if uninstalled([PEER]) and PEER not in entry else ""
        self.offer({name: words for name, words in PATHS.items() if name != lacking})
        super().show(entry)


_ALONG = {"heads": "number of heads, 1 to 1000", "outputs": "number of entries of y"}
