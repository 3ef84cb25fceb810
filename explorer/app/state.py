"""The state of the page: what was set, what is wrong with it, and the experiment it makes.

Nothing else on the page holds state; the controls are views of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from traitlets import Any, Dict, HasTraits, Instance

from explorer import link
from explorer.experiment import (
    DEFAULT_FUNCTION,
    Experiment,
    InvalidExperiment,
    check,
    missing,
    table,
    uninstalled,
)
from explorer.fields import Field, FieldError, shown
from explorer.flow import experiment as flow
from explorer.flow.experiment import FlowExperiment
from explorer.functions import FUNCTIONS
from explorer.heads import HeadsField
from explorer.link import Lesson
from explorer.study.axis import NOT_SWEPT, AxisField, axis, entry
from explorer.study.sweep import TOTAL, Sweep

PAGE_DEFAULTS: dict[str, float] = {"budget": 60.0}
"""Where the page begins otherwise than the table: someone waits in front of it."""

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

SHOWN = ["entries", "problems", "asked", "lesson"]
"""What controls are views of."""

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
    field at fault; `experiment` what the entries make, None while any is wrong. `asked` has a
    sentence for each field of which the link asked for more than was taken, until it changes;
    `lesson` is what the link asks of the page: an entry beyond its limits is a problem too."""

    entries = Dict()
    problems = Dict()
    asked = Dict()
    experiment = Any(allow_none=True)
    lesson = Instance(Lesson, ())

    panel = ""
    """The name by which a link opens the panel; "" for the one that a plain link opens."""

    def __init__(self) -> None:
        super().__init__()
        self._devices: tuple[str, ...] = ()
        self._begun: dict[str, Entry] | None = None
        self.reset()

    def reset(self) -> None:
        """Everything as a fresh page has it, or as the link of a class that opened it."""
        self.take(self._fresh() if self._begun is None else self._begun)

    def set(self, name: str, entry: Entry) -> None:
        """Takes one entry, right or wrong."""
        if self.entries.get(name) != entry:
            self.take({**self.entries, name: entry})

    def set_devices(self, names: Sequence[str]) -> None:
        """Tells which devices are there; until then any is taken to be."""
        self._devices = tuple(names)
        self.take(self.entries)

    def load(self, query: str) -> list[str]:
        """Takes the values of a link as if they had been entered: a number out of range as the
        nearest allowed, anything else that is wrong as it is.

        Returns a sentence for each oddity that belongs to no field, such as a name that none has;
        these are left out.
        """
        values, told = link.read(query)
        asks = {name: values.pop(name) for name in link.ASKS if name in values}
        if self.panel and values.get("panel") == self.panel:
            del values["panel"]
        entries, asked = self._opened(values), {}
        fields = self.fields(entries)
        for name, known in fields.items():
            if name in values:
                entries[name], words = link.taken(known, values[name])
                if words:
                    asked[name] = words
        unknown = {name: text for name, text in values.items() if name not in fields}
        parsed, problems = self._check({**entries, **unknown})
        told += [problem for name, problem in problems.items() if name in unknown]
        lesson, wrong = link.read_lesson(asks, fields, parsed)
        for name, limit in lesson.limits.items():
            known, value = fields[name], parsed.get(name)
            # Another function has other fields: its name is left as it is, and refused.
            if name in parsed and name != "function" and link.exceeds(known, limit, value):
                before, entries[name] = entries[name], _brought(known, limit, value, entries[name])
                if entries[name] != before:
                    asked[name] = _exceeding(known, limit, value, values.get(name))
        self.lesson = lesson
        self._begun = None
        if lesson.hidden or lesson.limits:
            wrong_ones = [name for name in entries if name not in parsed]
            self._begun = entries | self._defaults_of(wrong_ones, values)
        self.take(entries, asked)
        return told + wrong

    @property
    def query(self) -> str:
        """The query string of a link to this state; of a wrong one, to a fresh page."""
        return self.link(self.lesson)

    def _defaults_of(self, names: Sequence[str], values: Mapping[str, str]) -> dict[str, Entry]:
        """What fields have that a link with these values gives wrongly."""
        opened = self._opened(values)
        # The link's function is in there as it was given.
        return {name: self._fresh()[name] if name == "function" else opened[name] for name in names}

    def link(self, lesson: Lesson) -> str:
        """The same with a lesson of its own."""
        texts = {"panel": self.panel} if self.panel else {}
        fields = self.fields(self.entries)
        if self.experiment is not None and self.entries != self._fresh():
            texts |= self._texts()
        return link.write(texts | link.lesson_texts(lesson, fields))

    def _texts(self) -> dict[str, str]:
        """The fields as a link has them."""
        assert self.experiment is not None
        return link.texts(self.fields(self.entries), self.experiment.values)

    def limit(self, name: str) -> str:
        """What the link allows of a field, as a sentence; empty where it is not locked."""
        known = self.fields(self.entries).get(name)
        if known is None or name not in self.lesson.limits:
            return ""
        return f"The link allows {link.allowed(known, self.lesson.limits[name])}."

    def is_fixed(self, name: str) -> bool:
        """Whether the link allows one value of a field alone."""
        known = self.fields(self.entries).get(name)
        return known is not None and name in self.lesson.limits and link.is_only(known)

    def take(self, entries: Mapping[str, Entry], asked: Mapping[str, str] | None = None) -> None:
        """Takes all entries at once, with what a link asked for in the place of some."""
        if asked is None:
            asked = {
                name: words
                for name, words in self.asked.items()
                if entries.get(name) == self.entries.get(name)
            }
        parsed, problems = self._check(entries)
        if self._devices and "device" not in problems:
            device = self._device(entries)
            problem = missing(device, self._devices) if device else ""
            if problem:
                problems["device"] = problem
        problems |= self._refused(entries, {
            name: value for name, value in parsed.items() if name not in problems
        })  # fmt: skip
        experiment = None
        if not problems:
            try:
                experiment = self._made(entries)
            except InvalidExperiment as error:
                problems = error.problems
        with self.hold_trait_notifications():  # who observes one finds all in step
            self.entries = dict(entries)
            self.problems = problems
            self.asked = dict(asked)
            self.experiment = experiment

    def _refused(
        self, entries: Mapping[str, Entry], parsed: Mapping[str, object]
    ) -> dict[str, str]:
        """A sentence for each right value that the link does not allow."""
        fields = self.fields(entries)
        return {
            name: _refusal(fields[name], limit, parsed[name])
            for name, limit in self.lesson.limits.items()
            if name in fields and name in parsed and link.exceeds(fields[name], limit, parsed[name])
        }

    def _device(self, entries: Mapping[str, Entry]) -> str:
        """The device that has to be there, empty for none."""
        return str(entries["device"])

    def fields(self, entries: Mapping[str, Entry]) -> Mapping[str, Field]:
        """The fields that these entries are of, by name."""
        raise NotImplementedError

    def _opened(self, values: Mapping[str, str]) -> dict[str, Entry]:
        """The entries that a link with these values begins with."""
        return self._fresh()

    def _fresh(self) -> dict[str, Entry]:
        raise NotImplementedError

    def _check(self, entries: Mapping[str, Entry]) -> tuple[dict[str, object], dict[str, str]]:
        raise NotImplementedError

    def _made(self, entries: Mapping[str, Entry]) -> object:
        raise NotImplementedError


def entered(field: Field, text: str) -> Entry:
    """The text of a value as an entry of its field."""
    if field.kind != "choices":
        return text
    return tuple(field.split(text)) if text else ()


def _brought(field: Field, limit: object, value: object, entry: Entry) -> Entry:
    """The entry that a limit allows, or the one that there is where none is known."""
    allowed = link.brought(field, limit, value)
    if isinstance(allowed, tuple):
        return allowed
    return entry if allowed is None else field.text(allowed)


def _refusal(field: Field, limit: object, value: object) -> str:
    """Why the link does not allow a value."""
    if isinstance(field, HeadsField):
        given = f"These are {link.amount(field, value)} heads"
    else:
        given = _given(field, value)
    return f"{given}. The link allows {link.allowed(field, limit)}."


def _exceeding(field: Field, limit: object, value: object, text: str | None) -> str:
    """That a link asks for more than it allows itself, by its text, or a fresh page has more."""
    allowed = link.allowed(field, limit)
    if text is None:
        return f"{_given(field, value)} by default. The link allows {allowed}; that was taken."
    return f"{field.label} is {shown(text)} in the link, which allows {allowed}; that was taken."


def _given(field: Field, value: object) -> str:
    text = field.text(value)
    return f"{field.label} is {shown(text) if text else 'empty'}"


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
            entries = self._within(self._with_function(str(entry)))
        self.take(entries)

    def _within(self, entries: dict[str, Entry]) -> dict[str, Entry]:
        """The entries as near as the limits allow: what another function begins with may exceed
        them, which nobody entered."""
        fields = self.fields(entries)
        parsed, _ = self._check(entries)
        for name, limit in self.lesson.limits.items():
            known, value = fields.get(name), parsed.get(name)
            if known is None or name == "function" or name not in parsed:
                continue
            if link.exceeds(known, limit, value):
                entries[name] = _brought(known, limit, value, entries[name])
        return entries

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

    def fields(self, entries: Mapping[str, Entry]) -> Mapping[str, Field]:
        function = entries["function"]
        return table(str(function) if function in FUNCTIONS else self._first)

    def _opened(self, values: Mapping[str, str]) -> dict[str, Entry]:
        function = values.get("function", self._first)
        return {
            **self._defaults(function if function in FUNCTIONS else self._first),
            "function": function,
        }

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

    panel = "sweep"

    def fields(self, entries: Mapping[str, Entry]) -> Mapping[str, Field]:
        swept = self._swept(entries)
        own = {name: swept.get(name, known) for name, known in super().fields(entries).items()}
        return {**own, **SWEEP_FIELDS}

    def _swept(self, entries: Mapping[str, Entry]) -> Mapping[str, Field]:
        """The fields that an axis may be of."""
        return super().fields({**entries, "function": self._function(entries)})

    def _opened(self, values: Mapping[str, str]) -> dict[str, Entry]:
        axes = {name: values[name] for name in AXES if name in values}
        return {**super()._opened(values), **axes}

    def _texts(self) -> dict[str, str]:
        return {
            name: entry if isinstance(entry, str) else ",".join(entry)
            for name, entry in self.entries.items()
            if name not in self.left_out
        }

    @property
    def left_out(self) -> frozenset[str]:
        """The fields of an experiment that are not set, since they are swept or mean nothing here.

        Where functions are swept, that holds for the parameters of the one that was chosen before.
        """
        return _left_out(self.entries)

    def _defaults(self, function: str) -> dict[str, Entry]:
        return {**super()._defaults(function), **SWEEP_DEFAULTS}

    def _refused(
        self, entries: Mapping[str, Entry], parsed: Mapping[str, object]
    ) -> dict[str, str]:
        """Of an axis every value counts."""
        refused = super()._refused(entries, parsed)
        fields = self.fields(entries)
        for name in AXES:
            if not parsed.get(name):
                continue
            swept = axis(str(entries[name]), self._swept(entries))
            if swept.name not in fields or swept.name not in self.lesson.limits:
                continue
            known, limit = fields[swept.name], self.lesson.limits[swept.name]
            values = (entry(swept.name, value) for value in swept.values)
            beyond = [value for value in values if link.exceeds(known, limit, value)]
            if beyond:
                refused[name] = _refusal(known, limit, beyond[-1])
        return refused

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
        fields = self._swept(entries)
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
            parsed["total"] = TOTAL.parse(entries["total"])
        except FieldError as error:
            problems["total"] = str(error)
        right = {name: entries[name] for name in AXES if name not in problems}
        return {**parsed, **right}, problems

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


class CompareState(Entries):
    """What the panel of the comparisons holds: no field, since its Results stay with the person
    who has them, but what a link asks of the page."""

    panel = "compare"

    def fields(self, entries: Mapping[str, Entry]) -> Mapping[str, Field]:
        return {}

    def _fresh(self) -> dict[str, Entry]:
        return {}

    def _check(self, entries: Mapping[str, Entry]) -> tuple[dict[str, object], dict[str, str]]:
        return {}, {name: f"{shown(name)} is not a field of a comparison." for name in entries}

    def _made(self, entries: Mapping[str, Entry]) -> object:
        return ()


class FlowState(Entries):
    """What the panel of the gradient flow holds."""

    panel = "flow"

    def fields(self, entries: Mapping[str, Entry]) -> Mapping[str, Field]:
        return flow.FIELDS

    def enter(self, experiment: FlowExperiment) -> None:
        """Takes what makes this experiment."""
        self.take(_entries(experiment.values))

    def _fresh(self) -> dict[str, Entry]:
        return _entries({name: field.default for name, field in flow.FIELDS.items()})

    def _check(self, entries: Mapping[str, Entry]) -> tuple[dict[str, object], dict[str, str]]:
        return flow.check(entries)

    def _made(self, entries: Mapping[str, Entry]) -> FlowExperiment:
        return FlowExperiment.from_values(entries)


def _entries(values: Mapping[str, object]) -> dict[str, Entry]:
    return {name: entered(field, field.text(values[name])) for name, field in flow.FIELDS.items()}
