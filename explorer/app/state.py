"""The state of the page: what was set, what is wrong with it, and the experiment it makes.

Nothing else on the page holds state; the controls are views of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from traitlets import Any, Dict, HasTraits

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
from explorer.fields import Field, FieldError
from explorer.flow import experiment as flow
from explorer.flow.experiment import FlowExperiment
from explorer.functions import FUNCTIONS
from explorer.study.axis import NOT_SWEPT, AxisField, axis
from explorer.study.sweep import TOTAL, Sweep

PAGE_DEFAULTS: dict[str, float] = {"budget": 60.0}
"""Where the page begins otherwise than the table: someone waits in front of it."""

SWEEP_QUERY = "panel=sweep"
"""The link that opens the panel of the sweeps."""

AXES = ("over1", "over2", "over3")

SWEEP_FIELDS: dict[str, Field] = {
    **{
        name: AxisField(name, "choice", f"Axis {number}", "", optional=number > 1, empty="no axis",
                        help="a field and its values")
        for number, name in enumerate(AXES, 1)
    },
    "total": TOTAL,
}  # fmt: skip
"""What a link to a sweep has beside the fields of its experiments."""

SWEEP_DEFAULTS: dict[str, Entry] = {
    "over1": "size=16:128:log4", "over2": "heads=1,2,4,8", "over3": "", "total": "300.0",
    "repeats": "3", "budget": "10.0",
}  # fmt: skip
"""Where the panel begins otherwise than the tables."""

FLOW_QUERY = "panel=flow"
"""The link that opens the panel of the gradient flow."""

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


class Entries(HasTraits):
    """What a panel's controls are views of.

    `entries` holds what was entered, right or wrong, by field; `problems` a sentence for each
    field at fault; `experiment` what the entries make, None while any is wrong."""

    entries = Dict()
    problems = Dict()
    experiment = Any(allow_none=True)

    def __init__(self) -> None:
        super().__init__()
        self._devices: tuple[str, ...] = ()
        self.reset()

    def reset(self) -> None:
        """Everything as a fresh page has it."""
        self.take(self._fresh())

    def set(self, name: str, entry: Entry) -> None:
        """Takes one entry, right or wrong."""
        if self.entries.get(name) != entry:
            self.take({**self.entries, name: entry})

    def set_devices(self, names: Sequence[str]) -> None:
        """Tells which devices are there; until then any is taken to be."""
        self._devices = tuple(names)
        self.take(self.entries)

    def load(self, query: str) -> list[str]:
        """Takes the values of a link as if they had been entered, wrong ones as they are.

        Returns a sentence for each name in the link that is no field; these are left out.
        """
        raise NotImplementedError

    @property
    def query(self) -> str:
        """The query string of a link to this state; empty where it is a fresh page's or wrong."""
        raise NotImplementedError

    def take(self, entries: Mapping[str, Entry]) -> None:
        """Takes all entries at once."""
        _, problems = self._check(entries)
        if self._devices and "device" not in problems:
            device = self._device(entries)
            problem = missing(device, self._devices) if device else ""
            if problem:
                problems["device"] = problem
        experiment = None
        if not problems:
            try:
                experiment = self._made(entries)
            except InvalidExperiment as error:
                problems = error.problems
        with self.hold_trait_notifications():  # who observes one finds all three in step
            self.entries = dict(entries)
            self.problems = problems
            self.experiment = experiment

    def _device(self, entries: Mapping[str, Entry]) -> str:
        """The device that has to be there, empty for none."""
        return str(entries["device"])

    def _fresh(self) -> dict[str, Entry]:
        raise NotImplementedError

    def _check(self, entries: Mapping[str, Entry]) -> tuple[dict[str, object], dict[str, str]]:
        raise NotImplementedError

    def _made(self, entries: Mapping[str, Entry]) -> object:
        raise NotImplementedError


def entered(field: Field, text: str) -> Entry:
    """The text of a link as an entry of that field."""
    if field.kind != "choices":
        return text
    return tuple(field.split(text)) if text else ()


class State(Entries):
    """What the panel of the heads on f holds."""

    def __init__(self, function: str = DEFAULT_FUNCTION) -> None:
        self._first = function
        super().__init__()

    def set(self, name: str, entry: Entry) -> None:
        """Takes one entry, right or wrong. Another function brings its own parameters along;
        what both have is kept, but a size that the other does not allow."""
        if self.entries.get(name) == entry:
            return
        entries = {**self.entries, name: entry}
        if name == "function" and entry in FUNCTIONS:
            entries = self._with_function(str(entry))
        self.take(entries)

    def _with_function(self, function: str) -> dict[str, Entry]:
        """The entries with another function: what it does not allow, and what was as it came
        with the last one, is as the other has it."""
        before, fresh, fields = self.entries, self._defaults(function), table(function)
        old = self._defaults(before["function"]) if before["function"] in FUNCTIONS else {}
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

    def load(self, query: str) -> list[str]:
        given = from_query(query)
        function = given.get("function", self._first)
        known = function if function in FUNCTIONS else self._first
        entries = self._defaults(known)
        entries["function"] = function
        _, problems = check(given)
        for name, field in table(known).items():
            if name in given:
                entries[name] = entered(field, given[name])
        self.take(entries)
        return [problem for name, problem in problems.items() if name not in entries]

    @property
    def query(self) -> str:
        if self.experiment is None or self.entries == self._fresh():
            return ""
        return to_query(self.experiment.values)

    def _fresh(self) -> dict[str, Entry]:
        return self._defaults(self._first)

    def _defaults(self, function: str) -> dict[str, Entry]:
        """What a fresh page has with a function."""
        return defaults(function)

    def _check(self, entries: Mapping[str, Entry]) -> tuple[dict[str, object], dict[str, str]]:
        parsed, problems = check(entries)
        if "paths" in parsed and (lacking := uninstalled(parsed["paths"])):
            problems["paths"] = lacking
        return parsed, problems

    def _made(self, entries: Mapping[str, Entry]) -> object:
        return Experiment.from_values(entries)


class SweepState(State):
    """What the panel of the sweeps holds: the fields of the experiments, and those of the sweep."""

    def load(self, query: str) -> list[str]:
        given = from_query(query)
        own = {name: given.pop(name) for name in SWEEP_FIELDS if name in given}
        given.pop("panel", None)
        told = super().load(urlencode(given))
        self.take({**self.entries, **own})
        return told

    @property
    def query(self) -> str:
        if self.experiment is None or self.entries == self._fresh():
            return SWEEP_QUERY
        texts = {
            name: entry if isinstance(entry, str) else ",".join(entry)
            for name, entry in self.entries.items()
            if name not in self.left_out
        }
        return f"{SWEEP_QUERY}&{urlencode(texts, safe=',:')}"

    @property
    def left_out(self) -> frozenset[str]:
        """The fields of an experiment that are not set, since they are swept or mean nothing here.

        Where functions are swept, that holds for the parameters of the one that was chosen before.
        """
        return _left_out(self.entries)

    def _defaults(self, function: str) -> dict[str, Entry]:
        return {**super()._defaults(function), **SWEEP_DEFAULTS}

    def _device(self, entries: Mapping[str, Entry]) -> str:
        return "" if "device" in _left_out(entries) else super()._device(entries)

    def _check(self, entries: Mapping[str, Entry]) -> tuple[dict[str, object], dict[str, str]]:
        function = self._function(entries)
        left_out = _left_out(entries)
        apart = left_out | SWEEP_FIELDS.keys()
        rest = {name: entry for name, entry in entries.items() if name not in apart}
        parsed, found = super()._check({"function": function, **rest})
        # The default of what is left out may not go with the rest.
        problems = {name: each for name, each in found.items() if name not in left_out}
        fields = table(function if function in FUNCTIONS else self._first)
        seen: set[str] = set()
        for name in AXES:
            if not str(entries[name]).strip():
                continue
            try:
                read = axis(str(entries[name]), fields)
            except FieldError as error:
                problems[name] = str(error)
                continue
            if read.name in seen:
                problems[name] = f"{read.name} is an axis already."
            elif read.name == "paths" and (lacking := uninstalled(list(map(str, read.values)))):
                problems[name] = lacking
            seen.add(read.name)
        try:
            TOTAL.parse(entries["total"])
        except FieldError as error:
            problems["total"] = str(error)
        return parsed, problems

    def _function(self, entries: Mapping[str, Entry]) -> str:
        """The function whose fields the experiments have: of those that are swept, the first."""
        for written in map(str, map(entries.__getitem__, AXES)):
            name, _, values = written.partition("=")
            first = values.partition(",")[0].strip()
            if name.strip() == "function" and first in FUNCTIONS:
                return first
        return str(entries["function"])

    def _made(self, entries: Mapping[str, Entry]) -> Sweep:
        apart = _left_out(entries) | SWEEP_FIELDS.keys()
        given = {name: entry for name, entry in entries.items() if name not in apart}
        over = [str(entries[name]) for name in AXES if str(entries[name]).strip()]
        try:
            return Sweep(given, over, total=str(entries["total"]))
        except InvalidExperiment as error:
            problems = dict(error.problems)
            if "over" in problems:
                problems[AXES[0]] = problems.pop("over")
            raise InvalidExperiment(problems) from None


def _left_out(entries: Mapping[str, Entry]) -> frozenset[str]:
    swept = {str(entries[name]).partition("=")[0].strip() for name in AXES}
    names = {*swept - {""}, *NOT_SWEPT}
    if "function" in swept and entries["function"] in FUNCTIONS:
        names |= {each.name for each in FUNCTIONS[str(entries["function"])].parameters}
    return frozenset(names)


class FlowState(Entries):
    """What the panel of the gradient flow holds."""

    def load(self, query: str) -> list[str]:
        given = {name: text for name, text in from_query(query).items() if name != "panel"}
        _, problems = flow.check(given)
        entries = self._fresh()
        for name, field in flow.FIELDS.items():
            if name in given:
                entries[name] = entered(field, given[name])
        self.take(entries)
        return [problem for name, problem in problems.items() if name not in entries]

    def enter(self, experiment: FlowExperiment) -> None:
        """Takes what makes this experiment."""
        self.take(_entries(experiment.values))

    @property
    def query(self) -> str:
        """The same, with the panel that it opens; that alone for a fresh or a wrong state."""
        if self.experiment is None or self.entries == self._fresh():
            return FLOW_QUERY
        values = self.experiment.values
        texts = {name: field.text(values[name]) for name, field in flow.FIELDS.items()}
        return f"{FLOW_QUERY}&{urlencode(texts, safe=',:')}"

    def _fresh(self) -> dict[str, Entry]:
        return _entries({name: field.default for name, field in flow.FIELDS.items()})

    def _check(self, entries: Mapping[str, Entry]) -> tuple[dict[str, object], dict[str, str]]:
        return flow.check(entries)

    def _made(self, entries: Mapping[str, Entry]) -> FlowExperiment:
        return FlowExperiment.from_values(entries)


def _entries(values: Mapping[str, object]) -> dict[str, Entry]:
    return {name: entered(field, field.text(values[name])) for name, field in flow.FIELDS.items()}
