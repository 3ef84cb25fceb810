"""A sweep: experiments that differ along up to three axes, in the order they are measured.

Plain data, checked when it is made; importing this module imports no torch.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from explorer.experiment import DEFAULT_FUNCTION, Experiment, InvalidExperiment, check, table
from explorer.fields import Field, FieldError
from explorer.functions import FUNCTIONS
from explorer.study.axis import MOST_POINTS, NOT_SWEPT, Axis, Value, axis, axis_of, entry, text

TOTAL = Field(
    "total", "number", "Time for all points", None, minimum=0, maximum=30 * 86_400,
    exclusive_minimum=True, unit="seconds", optional=True, empty="no limit",
    help="seconds after which no further point is begun",
)  # fmt: skip
"""The field of a sweep that no experiment has: of its own, as it changes no point."""

MOST_AXES = 3
MOST_SETTING = 2000
"""Characters of an experiment as JSON: what a line of the file has room for."""

_TOLD = 3  # sentences on points, of which thousands may be wrong for one reason
_TOGETHER = ("function", "dtype", "device")  # whether one value is allowed depends on the others


@dataclass(frozen=True)
class Place:
    """A point to be measured: its values on the axes, and the hash of its experiment."""

    at: dict[str, Value]
    key: str


class Sweep:
    """The experiments that have the values `given`, and each combination of values of the axes.

    Attributes:
        given: the other fields' values by name, those left out having their defaults.
        axes: one to three, of fields that are not given.
        total: seconds after which no point is begun, None for no limit; it changes no point.

    Raises:
        InvalidExperiment: a value or an axis is not allowed; `.problems` says which and what is,
            that of the axes and their combinations under `over`.
    """

    def __init__(
        self,
        given: Mapping[str, Any],
        over: Sequence[str] | Mapping[str, Any],
        *,
        total: float | str | None = None,
    ) -> None:
        self.given = {name: value for name, value in given.items() if name not in NOT_SWEPT}
        problems = {
            name: f"{name} cannot be part of a sweep: {reason}."
            for name, reason in NOT_SWEPT.items()
            if given.get(name) and given[name] != table()[name].default
        }
        if "function" in given:  # by whose table the axes are read
            problems |= check({"function": given["function"]})[1]
        try:
            self.total: float | None = TOTAL.parse(total)
        except FieldError as error:
            problems["total"] = str(error)
        if problems:
            raise InvalidExperiment(problems)
        self.axes = self._axes(over)
        self._templates = self._checked()

    def __len__(self) -> int:
        return _product(self.axes)

    @cached_property
    def key(self) -> str:
        """The hash that tells this sweep from any other, whatever the budget in all."""
        plain = {name: _plain(values) for name, values in self._templates.items()}
        axes = [[each.name, list(each.values)] for each in self.axes]
        return _hash([plain, axes])

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Every point, in an order that shows the shape early: the ends of every numeric axis,
        then the middles of what is between; of equals the first values first."""
        levels = [_levels(each) for each in self.axes]
        indices = itertools.product(*(range(len(each.values)) for each in self.axes))

        def rank(index: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
            found = [level[i] for level, i in zip(levels, index, strict=True)]
            return max(found), sum(found), index

        return tuple(self._place(index) for index in sorted(indices, key=rank))

    def experiment(self, at: Mapping[str, Value]) -> Experiment:
        """The experiment at a point."""
        return Experiment.from_values(self._values(at))

    def _place(self, index: tuple[int, ...]) -> Place:
        at = {each.name: each.values[i] for each, i in zip(self.axes, index, strict=True)}
        return Place(at, _hash(_plain(self._values(at))))

    def _values(self, at: Mapping[str, Value]) -> dict[str, Any]:
        template = self._templates[str(at.get("function", next(iter(self._templates))))]
        return {**template, **{name: entry(name, value) for name, value in at.items()}}

    # What is checked.

    def _axes(self, over: Sequence[str] | Mapping[str, Any]) -> tuple[Axis, ...]:
        """The axes, read one by one; the functions first, on which the other fields depend."""
        written: list[tuple[str, Any]]
        over = (over,) if isinstance(over, str) else over  # its letters would be axes
        if isinstance(over, Mapping):
            written = [
                (name, f"{name}={values}" if isinstance(values, str) else values)
                for name, values in over.items()
            ]
        else:
            written = [(each.partition("=")[0].strip(), each) for each in over]
        if not written:
            raise _wrong(f"A sweep has no axis. Give 1 to {MOST_AXES}, such as size=50:800:log5.")
        if len(written) > MOST_AXES:
            raise _wrong(f"A sweep over {len(written)} axes. Allowed: at most {MOST_AXES}.")
        names = [name for name, _ in written]
        for name in names:
            if names.count(name) > 1:
                raise _wrong(f"{name} is an axis more than once.")
        if "heads" in names and self.given.get("heads"):
            raise _wrong("heads=K is the first K of the powers set: leave other heads out.")
        for name in names:
            if name in self.given:
                raise _wrong(f"{name} is given, and an axis too: leave the one or the other out.")
        read: dict[str, Axis] = {}
        problems = []
        for name, values in sorted(written, key=lambda each: each[0] != "function"):
            try:
                read[name] = _read(name, values, self._fields(read.get("function")))
            except FieldError as error:
                problems.append(str(error))
        if problems:
            raise _wrong(*problems)
        axes = tuple(read[name] for name in names)
        if _product(axes) > MOST_POINTS:
            raise _wrong(f"A sweep of {_product(axes)} points. Allowed: at most {MOST_POINTS}.")
        return axes

    def _fields(self, functions: Axis | None) -> Mapping[str, Any]:
        """The table of the first function that there is."""
        first = functions.values[0] if functions else self.given.get("function", DEFAULT_FUNCTION)
        return table(str(first) if first in FUNCTIONS else DEFAULT_FUNCTION)

    def _checked(self) -> dict[str, dict[str, Any]]:
        """By function, the values of all fields at the first point; raises InvalidExperiment.

        Whether a value is allowed depends on few others, so that not every point needs a look.
        """
        problems: dict[str, str] = {}
        seen: dict[str, dict[str, Value]] = {}  # where each sentence is first told
        swept = {each.name for each in self.axes}
        templates: dict[str, dict[str, Any]] = {}
        together = [each for each in self.axes if each.name in _TOGETHER]
        apart = [each for each in self.axes if each.name not in _TOGETHER]
        first = {each.name: entry(each.name, each.values[0]) for each in self.axes}
        for chosen in itertools.product(*(each.values for each in together)):
            fixed = {each.name: value for each, value in zip(together, chosen, strict=True)}
            varied: list[dict[str, Value]] = [{}, *({a.name: v} for a in apart for v in a.values)]
            for one in varied:
                at = fixed | one
                entries = {name: entry(name, value) for name, value in at.items()}
                _, wrong = check({**self.given, **first, **entries})
                for field, sentence in wrong.items():
                    if field in swept:
                        seen.setdefault(sentence, at)
                    else:
                        problems[field] = sentence
            if not problems and not seen:
                experiment = Experiment.from_values({**self.given, **first, **fixed})
                templates.setdefault(experiment.function, experiment.values)
        if seen:
            sentences = [f"At {told(at)}: {each}" if at else each for each, at in seen.items()]
            more = f" And {len(seen) - _TOLD} more." if len(seen) > _TOLD else ""
            problems["over"] = " ".join(sentences[:_TOLD]) + more
        if problems:
            raise InvalidExperiment(problems)
        length = max(len(json.dumps(_plain(values))) for values in templates.values())
        if length > MOST_SETTING:
            raise InvalidExperiment(
                {"heads": f"The experiment takes {length} characters as JSON. Allowed in a sweep: "
                 f"{MOST_SETTING}. Take a set of heads, such as powers(16)."}
            )  # fmt: skip
        return templates


def told(at: Mapping[str, Value]) -> str:
    """`size=50, heads=4`."""
    return ", ".join(f"{name}={text(value)}" for name, value in at.items())


def _read(name: str, values: Any, fields: Mapping[str, Any]) -> Axis:
    if isinstance(values, str):
        return axis(values, fields)
    if not isinstance(values, (list, tuple)):
        raise FieldError(f"{name} has the values {values!r}. Give a list, or text such as 1,2.")
    return axis_of(name, values, fields)


def _wrong(*sentences: str) -> InvalidExperiment:
    return InvalidExperiment({"over": " ".join(sentences)})


def _product(axes: Sequence[Axis]) -> int:
    number = 1
    for each in axes:
        number *= len(each.values)
    return number


def _levels(axis: Axis) -> list[int]:
    """By value, in how many halvings of the axis its turn comes; all at once where the values
    have no order."""
    count = len(axis.values)
    levels = [0] * count
    if not axis.numeric:
        return levels
    rising = sorted(range(count), key=lambda index: axis.values[index])
    waiting = [(0, count - 1, 1)]
    while waiting:
        low, high, level = waiting.pop()
        if high - low > 1:
            middle = (low + high) // 2
            levels[rising[middle]] = level
            waiting += [(low, middle, level + 1), (middle, high, level + 1)]
    return levels


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _hash(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
