"""The heads on the page: those there are, sets of them, and typed ones, tried as they are typed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import ipywidgets as widgets

from explorer import expression, units
from explorer.app.control import Guard, Several, hint, problem
from explorer.app.state import Entry, State
from explorer.events import Trial
from explorer.experiment import DEFAULT_FUNCTION, table
from explorer.expression import ExpressionError
from explorer.fields import Field, FieldError
from explorer.functions import FUNCTIONS
from explorer.heads import HEADS, SETS, set_of

Try = Callable[[Sequence[str]], dict[str, Trial | str]]
"""What heads give at the y of the last run; empty before one."""

_WAIT = "after the next run, its value and gradient stand here"


class HeadsControl(Several):
    """A check box a head, those added by hand behind the others; below, what adds one."""

    def __init__(self, state: State, guard: Guard, try_heads: Try) -> None:
        super().__init__(state, guard, "heads", "Heads")
        self._added: list[str] = []
        self.text = widgets.Text(
            placeholder="y**2 + sin(y)",
            description="Type a head",
            tooltip=expression.GRAMMAR,
            style={"description_width": "initial"},
        )
        self.add = widgets.Button(description="Add", tooltip="Add the head that is typed")
        self.told = widgets.HTML()
        self._set = widgets.Dropdown(
            options=[(f"{name}: {words}", name) for name, words in SETS.items()],
            description="Or a set",
            style={"description_width": "initial"},
        )
        self._members = widgets.Text(
            value="8", description="of K =", style={"description_width": "initial"}
        )
        add_set = widgets.Button(description="Add set", tooltip="Add the set of heads")
        self._set_problem = widgets.HTML()
        typing = widgets.HBox([self.text, self.add])
        choosing = widgets.VBox([self._set, widgets.HBox([self._members, add_set])])
        for box in (typing, choosing):
            box.add_class("explorer-adding")
        self.widget.children = (
            *(*self.widget.children, typing, self.told),
            *(choosing, self._set_problem),
        )
        self._trier = _Trier(try_heads, self._tell)
        self.text.observe(guard(lambda change: self.retry()), "value")
        self.text.on_msg(guard(self._message))
        self.add.on_click(guard(lambda button: self._add_typed()))
        add_set.on_click(guard(lambda button: self._add_set()))

    def show(self, entry: Entry) -> None:
        function = FUNCTIONS.get(str(self._state.entries["function"]))
        own = {head.name: head.formula for head in function.heads} if function else {}
        known = own | {
            head.name: head.formula + (f", {head.domain}" if head.inside is not None else "")
            for head in HEADS.values()
        }
        self._added = [each for each in self._added if each not in known]
        self._added += [each for each in entry if each not in known and each not in self._added]
        self.offer(known | {each: _words(each) for each in self._added})
        super().show(entry)

    def retry(self) -> None:
        """Tries what is typed, at the y of the last run."""
        self._trier.request("")  # first, so that what is tried yet is not told over this
        try:
            entry = self._field.parse([self.text.value])[0] if self.text.value.strip() else ""
        except FieldError as error:
            self.told.value = problem(str(error))
            return
        if not entry:
            self.told.value = ""
        elif entry in self._offered:
            self.told.value = hint("It stands above.")
        elif set_of(entry):
            self.told.value = hint("A set: press Add.")
        else:
            self.told.value = hint(f"{_words(entry)}: {_WAIT}.")
            self._trier.request(entry)

    @property
    def _field(self) -> Field:
        function = str(self._state.entries["function"])
        return table(function if function in FUNCTIONS else DEFAULT_FUNCTION)["heads"]

    def _tell(self, entry: str, trial: Trial | str | None) -> None:
        """Shows what a head gave; called from the thread that tried it."""
        if isinstance(trial, str):
            self.told.value = problem(trial)
        elif trial is not None:
            self.told.value = (
                f'<span class="explorer-trial">{escape(trial.formula)} = '
                f"{units.number(trial.value)}, {escape(_gradient(trial))}</span>"
            )

    def _message(self, widget: Any, content: Any, buffers: Any) -> None:
        if content.get("event") == "submit":  # the Enter key
            self._add_typed()

    def _add_typed(self) -> None:
        if not self.text.value.strip():
            self.told.value = problem(f"Type a head first, such as {self.text.placeholder}.")
        elif self._enter(self.text.value, self.told):
            self.text.value = ""

    def _add_set(self) -> None:
        self._set_problem.value = ""
        self._enter(f"{self._set.value}({self._members.value.strip()})", self._set_problem)

    def _enter(self, text: str, place: widgets.HTML) -> bool:
        """Adds a head to the entries, or says at a place what is wrong with it; whether it did."""
        entries = self._state.entries["heads"]
        try:
            *_, entry = self._field.parse([*entries, text])
        except FieldError as error:
            place.value = problem(str(error))
            return False
        self._state.set("heads", (*entries, entry))
        return True


class _Trier:
    """Tries heads in a thread of its own, and tells only of the latest that was asked for.

    It tells while it holds the lock: once `request` returns, nothing of before is told.
    """

    def __init__(self, try_heads: Try, tell: Callable[[str, Trial | str | None], None]) -> None:
        self._try, self._tell = try_heads, tell
        self._wake = threading.Condition()
        self._latest = ""
        self._due = False  # whether the latest is yet to be tried
        self._thread: threading.Thread | None = None

    def request(self, entry: str) -> None:
        """Tries an entry as soon as the one that is tried is done; "" for none."""
        with self._wake:
            self._latest, self._due = entry, bool(entry)
            if self._thread is None and entry:
                self._thread = threading.Thread(target=self._loop, daemon=True)
                self._thread.start()
            self._wake.notify()

    def _loop(self) -> None:
        while True:
            with self._wake:
                while not self._due:
                    self._wake.wait()
                entry, self._due = self._latest, False
            found: Trial | str | None
            try:
                found = self._try([entry]).get(entry)
            except Exception as error:
                logging.getLogger(__name__).exception("a head could not be tried")
                found = f"The head could not be tried: {error}"
            with self._wake:
                if entry == self._latest and not self._due:
                    self._tell(entry, found)


def _words(entry: str) -> str:
    """A head that was added, as it was understood."""
    if found := set_of(entry):
        return SETS[found[0]]
    try:
        return expression.read(entry).formula
    except ExpressionError:
        return ""


def _gradient(trial: Trial) -> str:
    """`dz/dx = -14.2`, or its entries or norm."""
    if len(trial.entries) == 1:
        return f"dz/dx = {units.number(trial.entries[0])}"
    if trial.entries:
        return f"dz/dx = ({', '.join(map(units.number, trial.entries))})"
    return f"‖dz/dx‖ = {units.number(trial.norm)}"
