"""The state of the page: what was set, what is wrong with it, and the experiment it makes.

Nothing else on the page holds state; the controls are views of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from traitlets import Dict, HasTraits, Instance

from explorer.experiment import (
    DEFAULT_FUNCTION,
    Experiment,
    InvalidExperiment,
    check,
    from_query,
    missing,
    table,
    to_query,
    uninstalled,
)
from explorer.fields import FieldError
from explorer.functions import FUNCTIONS

PAGE_DEFAULTS: dict[str, Any] = {"budget": 60.0}
"""Where the page begins otherwise than the table: someone waits in front of it."""

Entry = str | tuple[str, ...]
"""A field as it was entered: text, or the names that are chosen."""


def defaults(function: str) -> dict[str, Entry]:
    """The entries of a function's fields that a page begins with."""
    entries: dict[str, Entry] = {}
    for name, field in table(function).items():
        value = PAGE_DEFAULTS.get(name, field.default)
        entries[name] = tuple(value) if field.kind == "choices" else field.text(value)
    entries["function"] = function
    return entries


class State(HasTraits):
    """`entries` holds what was entered, right or wrong, by field; `problems` a sentence for each
    field at fault; `experiment` what the entries make, None while any is wrong."""

    entries = Dict()
    problems = Dict()
    experiment = Instance(Experiment, allow_none=True)

    def __init__(self, function: str = DEFAULT_FUNCTION) -> None:
        super().__init__()
        self._devices: tuple[str, ...] = ()
        self._first = function
        self.reset()

    def reset(self) -> None:
        """Everything as a fresh page has it."""
        self._take(defaults(self._first))

    def set(self, name: str, entry: Entry) -> None:
        """Takes one entry, right or wrong. Another function brings its own parameters along;
        what both have is kept, but a size that the other does not allow."""
        if self.entries.get(name) == entry:
            return
        entries = {**self.entries, name: entry}
        if name == "function" and entry in FUNCTIONS:
            entries = self._with_function(str(entry))
        self._take(entries)

    def _with_function(self, function: str) -> dict[str, Entry]:
        """The entries with another function: what it does not allow, and what was as it came
        with the last one, is as the other has it."""
        before, fresh, fields = self.entries, defaults(function), table(function)
        old = defaults(before["function"]) if before["function"] in FUNCTIONS else {}
        entries = {**fresh, **{name: before[name] for name in fresh if name in before}}
        for name in ("size", "heads", "dtype"):
            try:
                fields[name].parse(entries[name])
                untouched = name != "size" and before[name] == old.get(name)
            except FieldError:
                untouched = True
            if untouched:
                entries[name] = fresh[name]
        entries["function"] = function
        return entries

    def set_devices(self, names: Sequence[str]) -> None:
        """Tells which devices are there; until then any is taken to be."""
        self._devices = tuple(names)
        self._take(self.entries)

    def load(self, query: str) -> list[str]:
        """Takes the values of a link as if they had been entered, wrong ones as they are.

        Returns a sentence for each name in the link that is no field; these are left out.
        """
        given = from_query(query)
        function = given.get("function", self._first)
        known = function if function in FUNCTIONS else self._first
        entries = defaults(known)
        entries["function"] = function
        _, problems = check(given)
        for name, field in table(known).items():
            if name in given:
                text = given[name]
                many = field.kind == "choices"
                entries[name] = (tuple(field.split(text)) if text else ()) if many else text
        self._take(entries)
        return [problem for name, problem in problems.items() if name not in entries]

    @property
    def query(self) -> str:
        """The query string of a link to this state; empty where it is a fresh page's or wrong."""
        if self.experiment is None or self.entries == defaults(self._first):
            return ""
        return to_query(self.experiment.values)

    def _take(self, entries: Mapping[str, Entry]) -> None:
        _, problems = check(entries)
        device = entries["device"]
        if self._devices and "device" not in problems:
            problem = missing(str(device), self._devices)
            if problem:
                problems["device"] = problem
        lacking = uninstalled(entries["paths"]) if "paths" not in problems else ""
        if lacking:
            problems["paths"] = lacking
        experiment = None
        if not problems:
            try:
                experiment = Experiment.from_values(entries)
            except InvalidExperiment as error:
                problems = error.problems
        with self.hold_trait_notifications():  # who observes one finds all three in step
            self.entries = dict(entries)
            self.problems = problems
            self.experiment = experiment
