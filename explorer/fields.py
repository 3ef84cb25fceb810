"""A field: one value that a person sets, with its type, range, default, unit and label.

The fields of an experiment make the page's controls, the command line's options, the link's
query string and the validation, so that all of them say the same. Nothing here imports torch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal

Kind = Literal["integer", "number", "switch", "choice", "choices"]

_SHOWN = 60  # characters of a wrong value that a message repeats


class FieldError(ValueError):
    """A value that a field does not allow; the message is a sentence for the person."""


def suggestion(name: str, known: Sequence[str]) -> str:
    """`Did you mean square? ` for a misspelt name, else an empty string."""
    # Comparing takes time with the length, and nothing near a known name is so long.
    start = name[:_SHOWN].lower()
    near = get_close_matches(start, known, n=1)
    if not near and len(start) > 2:
        near = [each for each in known if each.startswith(start)]
    return f"Did you mean {near[0]}? " if near else ""


def shown(value: object) -> str:
    """The value as a message repeats it: quoted unless it is one plain word, cut when long."""
    try:
        text = str(value)
        if not re.fullmatch(r"[A-Za-z0-9.:+-]+", text):
            text = repr(value)
    except ValueError:  # Python does not write out a whole number of more than 4300 digits
        return "a number of too many digits"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


@dataclass(frozen=True)
class Field:
    """One value that a person sets.

    `optional` fields may be left empty, which reads as None, of `choices` as (); `empty` then says
    what that means.
    `minimum` and `maximum` are inclusive unless `exclusive_minimum`.
    """

    name: str
    kind: Kind
    label: str
    default: Any = None
    minimum: float = -math.inf
    maximum: float = math.inf
    exclusive_minimum: bool = False
    choices: tuple[str, ...] = ()
    unit: str = ""
    help: str = ""
    optional: bool = False
    empty: str = ""

    @property
    def allowed(self) -> str:
        """What the field takes, as the end of the sentence "Allowed: …"."""
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        if self.kind == "choices":
            nothing = f", or nothing ({self.empty})" if self.optional else ""
            return "one or more of " + ", ".join(self.choices) + nothing
        if self.kind == "switch":
            return "on or off"
        noun = "a whole number" if self.kind == "integer" else "a number"
        unit = f" {self.unit}" if self.unit else ""
        if self.exclusive_minimum:
            low = f"above {self.minimum:g}"
            text = f"{noun} {low}"
            if not math.isinf(self.maximum):
                text += f" and up to {self.maximum:g}"
        elif math.isinf(self.minimum) and math.isinf(self.maximum):
            text = noun
        else:
            text = f"{noun} from {_plain(self.minimum)} to {_plain(self.maximum)}"
        return text + unit + (f", or nothing ({self.empty})" if self.optional else "")

    def parse(self, value: Any) -> Any:
        """The value in the field's type, from text (a text box, a link, an option) or as it is.

        Raises:
            FieldError: the value is not allowed; the message names it and says what is.
        """
        if self.optional and _is_empty(value):
            return () if self.kind == "choices" else None
        parsers: dict[Kind, Callable[[Any], Any]] = {
            "integer": self._integer,
            "number": self._number,
            "switch": self._switch,
            "choice": self._choice,
            "choices": self._choices,
        }
        return parsers[self.kind](value)

    def text(self, value: Any) -> str:
        """The value as a text box or a link shows it; `parse` reads it back."""
        if value is None:
            return ""
        if self.kind == "choices":
            return ",".join(value)
        if self.kind == "switch":
            return "on" if value else "off"
        return repr(value) if isinstance(value, float) else str(value)

    def nearest(self, text: str) -> float | None:
        """The allowed number nearest to one that is out of range; None for any other text, and
        where the range has no end of its own."""
        if self.kind not in ("integer", "number") or "_" in text or not text.isascii():
            return None
        try:
            number = float(text)
        except ValueError:
            return None
        if number > self.maximum:
            end = self.maximum
        elif number < self.minimum and not self.exclusive_minimum:
            end = self.minimum
        else:
            return None
        return int(end) if self.kind == "integer" else float(end)

    def split(self, text: str) -> list[str]:
        """The entries of a text of `choices`, unchecked."""
        return text.split(",")

    def _refuse(self, value: Any) -> FieldError:
        if _is_empty(value):
            return FieldError(f"{self.label} is empty. Allowed: {self.allowed}.")
        return FieldError(f"{self.label} is {shown(value)}. Allowed: {self.allowed}.")

    def _integer(self, value: Any) -> int:
        if isinstance(value, str):
            text = value.strip()
            # int() also reads "1_000" and other scripts' digits, which nobody means here.
            if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 20):
                raise self._refuse(value)
            number = int(text)
        else:
            whole = value.is_integer() if isinstance(value, float) else isinstance(value, Integral)
            if not whole or isinstance(value, bool):
                raise self._refuse(value)
            number = int(value)  # NumPy's too
        return int(self._within(number, value))

    def _number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (str, Real)):
            raise self._refuse(value)
        if isinstance(value, str) and ("_" in value or not value.isascii()):
            raise self._refuse(value)
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise self._refuse(value) from None
        return float(self._within(number, value))

    def _within(self, number: float, value: Any) -> float:
        low = number > self.minimum if self.exclusive_minimum else number >= self.minimum
        # math.isfinite raises on a whole number that no float holds.
        finite = isinstance(number, int) or math.isfinite(number)
        if not (finite and low and number <= self.maximum):
            raise self._refuse(value)
        return number

    def _switch(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        text = value.strip().lower() if isinstance(value, str) else ""
        if text not in ("on", "off"):
            raise self._refuse(value)
        return text == "on"

    def _choice(self, value: Any) -> str:
        if isinstance(value, str) and value in self.choices:
            return value
        hint = suggestion(value, self.choices) if isinstance(value, str) else ""
        raise FieldError(
            f"{self.label} {shown(value)} is not known. {hint}Allowed: {self.allowed}."
        )

    def _choices(self, value: Any) -> tuple[str, ...]:
        names = self.split(value) if isinstance(value, str) else value
        if not isinstance(names, (list, tuple)):
            raise self._refuse(value)
        names = [name.strip() if isinstance(name, str) else name for name in names]
        if not any(names):
            raise FieldError(f"No {self.label.lower()} is chosen. Allowed: {self.allowed}.")
        chosen = tuple(self._choice(name) for name in names)
        for name in chosen:
            if chosen.count(name) > 1:
                raise FieldError(f"{self.label} {name} is chosen more than once.")
        return chosen


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, (list, tuple)) and not value)


def _plain(number: float) -> str:
    return f"{number:.0f}" if float(number).is_integer() else f"{number:g}"
