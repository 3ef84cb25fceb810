"""What leaves the page as a link: Copy link, the size for a projector, and a link for a class."""

from __future__ import annotations

from dataclasses import replace
from html import escape

import ipywidgets as widgets

from explorer import link
from explorer.app.control import Guard, caption, hint
from explorer.app.state import Entries
from explorer.functions import FUNCTIONS
from explorer.link import PARTS, SERVERS, Lesson


class Copying:
    """A button that copies a link, and the word that it did. The page's script does both: a kernel
    has no clipboard. Where there is no page that a link opens, as in JupyterLab, it copies the
    query alone, and says so.

    Args:
        name: of the class of the element that has the query, for who follows it.
    """

    def __init__(self, description: str, tooltip: str, name: str) -> None:
        self.button = widgets.Button(description=description, tooltip=tooltip)
        self.button.add_class("explorer-copy-link")
        self._tooltip, self._name = tooltip, name
        self.query = widgets.HTML()
        self.said = widgets.HTML('<span class="explorer-copied" role="status"></span>')

    def tell(self, query: str) -> None:
        """The query of the link to copy."""
        self.query.value = (
            f'<span class="{self._name}" data-query="{escape(query, quote=True)}" '
            f'data-servers="{" ".join(SERVERS)}" hidden></span>'
        )

    def refuse(self, reason: str) -> None:
        """Why there is nothing to copy; empty where there is."""
        self.button.disabled = bool(reason)
        self.button.tooltip = reason or self._tooltip


class Sharing:
    """The row below the buttons of a run."""

    def __init__(self, state: Entries, guard: Guard) -> None:
        self._state = state
        self.copying = Copying("Copy link", "Copy a link to this state", "explorer-state")
        self.projector = widgets.ToggleButton(
            description="Projector", tooltip="Larger type and pictures"
        )
        self.opener = widgets.ToggleButton(
            description="For a class…", tooltip="Make a link that hides and locks controls"
        )
        self._guard = guard
        self.form: ClassForm | None = None
        buttons = widgets.HBox([self.copying.button, self.projector, self.opener])
        buttons.add_class("explorer-buttons")
        self.widget = widgets.VBox([buttons, self.copying.query, self.copying.said])
        self.widget.add_class("explorer-sharing")
        self.projector.observe(guard(self._projected), "value")
        self.opener.observe(guard(lambda change: self._opened()), "value")
        state.observe(guard(lambda change: self._show()), ["experiment", "lesson"])
        self._show()

    def tell(self) -> None:
        """The link to the state, for the button and for the address bar."""
        self.copying.tell(self._state.query)

    def _show(self) -> None:
        state = self._state
        self.projector.value = state.lesson.projector
        self.copying.refuse(_reason(state))
        if "link" in state.lesson.hidden:
            self.widget.add_class("explorer-absent")
        if self.form is not None and self.opener.value:
            self.form.show()

    def _projected(self, change: dict[str, object]) -> None:
        self._state.lesson = replace(self._state.lesson, projector=bool(change["new"]))

    def _opened(self) -> None:
        """Shows the form or takes it away; it is built when it is first asked for."""
        if self.form is None:
            self.form = ClassForm(self._state, self._guard)
        rest = [each for each in self.widget.children if each is not self.form.widget]
        self.widget.children = [*rest, self.form.widget] if self.opener.value else rest
        self.form.show()


class ClassForm:
    """Which controls a class does not see, and which values it cannot go beyond; the link of it.

    It begins with what the link that opened the page has of these."""

    def __init__(self, state: Entries, guard: Guard) -> None:
        self._state, self._guard = state, guard
        self.hide: dict[str, widgets.Checkbox] = {}
        self.lock: dict[str, widgets.Checkbox] = {}
        self._fields = widgets.VBox()
        self._lines: dict[str, widgets.HBox] = {}
        self.parts = {
            name: self._box(f"hide {words}", f"hide {words}", name in state.lesson.hidden)
            for name, words in PARTS.items()
        }
        self.projector = self._box(
            "projector", "begin in the size for a projector", state.lesson.projector
        )
        self.copying = Copying("Copy the link", "Copy the link for the class", "explorer-class")
        self.widget = widgets.VBox(
            [
                caption("A link for a class"),
                widgets.HTML(
                    hint(
                        "It opens this state. What is hidden keeps its value. A number that is "
                        "locked can be no larger than it is now, other choices no others. "
                        "Reset comes back to this state."
                    )
                ),
                *(self._fields, *self.parts.values(), self.projector),
                *(self.copying.button, self.copying.query, self.copying.said),
            ]
        )
        self.widget.add_class("explorer-class-form")

    @property
    def lesson(self) -> Lesson:
        """What is ticked, locked at the present values."""
        state = self._state
        fields = state.fields(state.entries)
        hidden = [name for name in fields if self.hide[name].value]
        hidden += [name for name, box in self.parts.items() if box.value]
        limits = {
            name: link.amount(known, known.parse(state.entries[name]))
            for name, known in fields.items()
            if self.lock[name].value
        }
        return Lesson(tuple(hidden), limits, self.projector.value)

    def show(self) -> None:
        """Brings the form to the state: its fields, and the link."""
        state, lesson = self._state, self._state.lesson
        self.copying.refuse(_reason(state))
        if state.experiment is None:
            return
        fields = state.fields(state.entries)
        for name, known in fields.items():
            if name not in self._lines:
                self.hide[name] = self._box("hide", f"hide {known.label}", name in lesson.hidden)
                self.lock[name] = self._box("lock", f"lock {known.label}", name in lesson.limits)
                line = widgets.HBox([widgets.HTML(), self.hide[name], self.lock[name]])
                self._lines[name] = line
            limit = link.allowed(known, link.amount(known, known.parse(state.entries[name])))
            words = f'{escape(known.label)} <span class="explorer-hint">{escape(limit)}</span>'
            self._lines[name].children[0].value = words
        self._fields.children = [self._lines[name] for name in fields]
        self._tell()

    def _tell(self) -> None:
        if self._state.experiment is not None:
            self.copying.tell(self._state.link(self.lesson))

    def _box(self, description: str, tooltip: str, value: bool) -> widgets.Checkbox:
        box = widgets.Checkbox(description=description, tooltip=tooltip, value=value, indent=False)
        box.observe(self._guard(lambda change: self._tell()), "value")
        return box


def _reason(state: Entries) -> str:
    """Why there is no link to a state; empty where there is one."""
    function = FUNCTIONS.get(str(state.entries.get("function")))
    if function is not None and function.own:
        return "A link cannot bring a function of your own: it is in this notebook alone."
    return "" if state.experiment is not None else "Put right what is marked first."
