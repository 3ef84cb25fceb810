"""An axis of a sweep: a field of an experiment, and the values that it takes.

    >>> axis("size=50:800:log5", table()).values
    (50, 100, 200, 400, 800)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from explorer.fields import Field, FieldError, shown, suggestion
from explorer.heads import MOST

MOST_POINTS = 10_000
"""Points of a sweep, and so values of an axis."""

NOT_SWEPT = {
    "scaling": "it measures many numbers of heads in each run: sweep heads instead",
    "cutoff": "it ends a scaling, and a sweep has none: give a budget",
}
"""The fields that no sweep has, with the reason."""

HEADS = Field("heads", "integer", "Number of heads K", minimum=1, maximum=MOST)
"""The axis of the heads: the first K of the set of powers."""


class AxisField(Field):
    """An axis as it is written, in a text box."""

    @property
    def allowed(self) -> str:
        return "NAME=A,B,C, NAME=LOW:HIGH:logN or NAME=LOW:HIGH:linN, for example size=50:800:log5"


_RANGE = re.compile(r"([^:]*):([^:]*):\s*(log|lin)([0-9]{1,9})\s*")

Value = int | float | bool | str
T = TypeVar("T")


@dataclass(frozen=True)
class Axis:
    """A field's name, its label, and its values: typed, distinct, in the order they were given."""

    name: str
    label: str
    values: tuple[Value, ...]

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, which have distances."""
        return is_number(self.values[0])

    def __str__(self) -> str:
        return f"{self.name}={','.join(map(text, self.values))}"


def is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def text(value: Value) -> str:
    """A value as a person writes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if isinstance(value, str) or float(short) == value else repr(value)


def evenly(items: Sequence[T], most: int) -> Sequence[T]:
    """Of more than `most` items so many that are evenly placed, the first and the last among them;
    `most` is at least 2."""
    last = len(items) - 1
    if last < most:
        return items
    return [items[round(number * last / (most - 1))] for number in range(most)]


def entry(name: str, value: Value) -> Any:
    """What an experiment's field has at a value of its axis."""
    if name == "heads":
        return (f"powers({value})",)
    return (value,) if name == "paths" else value


def axis(written: str, fields: Mapping[str, Field]) -> Axis:
    """Reads `name=a,b,c`, `name=low:high:logN` or `name=low:high:linN`.

    Args:
        fields: the table of the experiments.

    Raises:
        FieldError: what is wrong with it, and what is allowed.
    """
    name, equals, rest = written.partition("=")
    if not equals:
        allowed = AxisField("over", "choice", "Axis").allowed
        raise FieldError(f"{shown(written)} is no axis. Allowed: {allowed}.")
    field = _field(name.strip(), fields)
    if field.kind in ("integer", "number") and ":" in rest:
        return _axis(field, _range(field, rest))
    return _axis(field, rest.split(","))


def axis_of(name: str, values: Sequence[Any], fields: Mapping[str, Field]) -> Axis:
    """The axis of a field and its values; raises FieldError as `axis` does."""
    return _axis(_field(name, fields), values)


def _field(name: str, fields: Mapping[str, Field]) -> Field:
    if name in NOT_SWEPT:
        raise FieldError(f"{name} is no axis: {NOT_SWEPT[name]}.")
    if name == "heads":
        return HEADS
    if name not in fields:
        allowed = [each for each in fields if each not in NOT_SWEPT]
        raise FieldError(
            f"{shown(name)} is not a field. {suggestion(name, allowed)}"
            f"Allowed: {', '.join(allowed)}."
        )
    return fields[name]


def _axis(field: Field, given: Sequence[Any]) -> Axis:
    if len(given) > MOST_POINTS:
        raise FieldError(f"{field.name} has {len(given)} values. Allowed: at most {MOST_POINTS}.")
    needed = replace(field, optional=False)  # a value that is left out is no place on an axis
    values: list[Any] = []
    for each in given:
        plain = each.strip() if isinstance(each, str) else each
        values.extend(needed.parse((plain,)) if field.kind == "choices" else [needed.parse(plain)])
    if not values:
        raise FieldError(f"{field.name} has no values. Give some, such as {field.name}=1,2.")
    if len(set(values)) < len(values):
        twice, _ = Counter(values).most_common(1)[0]
        raise FieldError(f"{field.name} has the value {text(twice)} more than once.")
    return Axis(field.name, field.label, tuple(values))


def _range(field: Field, rest: str) -> list[Any]:
    """The values of LOW:HIGH:logN and linN, whole where the field takes whole numbers."""
    found = _RANGE.fullmatch(rest)
    if not found:
        raise FieldError(
            f"{field.name}={shown(rest)} is no range. Allowed: LOW:HIGH:logN or LOW:HIGH:linN, "
            "for example 50:800:log5."
        )
    low, high = field.parse(found[1]), field.parse(found[2])
    kind, count = found[3], int(found[4])
    if low >= high:
        raise FieldError(f"{field.name} goes from {low} to {high}. The first has to be smaller.")
    if not 2 <= count <= MOST_POINTS:
        raise FieldError(f"{kind}{count} has {count} values. Allowed: 2 to {MOST_POINTS}.")
    if kind == "log" and low <= 0:
        raise FieldError(f"{field.name} goes from {low} in even ratios. Start above 0, or use lin.")
    shares = [number / (count - 1) for number in range(1, count - 1)]
    # Neither the ratio nor the difference of the ends, which may be too large for a float.
    if kind == "log":
        between = [low ** (1 - share) * high**share for share in shares]
    else:
        between = [low * (1 - share) + high * share for share in shares]
    if field.kind == "integer":
        return _rising(low, map(round, between), high)
    short = _rising(low, (float(f"{each:.6g}") for each in between), high)
    return short if len(short) == count else _rising(low, between, high)


def _rising(low: Any, between: Iterable[Any], high: Any) -> list[Any]:
    """Both ends and what lies between them: neighbours may have been rounded to the same."""
    values = [low]
    for each in between:
        if values[-1] < each < high:
            values.append(each)
    return [*values, high]
