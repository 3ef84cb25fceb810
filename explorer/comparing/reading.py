"""Bytes → Result, or a sentence that names the file and says what is wrong with it."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from explorer.comparing.comparison import MOST
from explorer.fields import shown
from explorer.functions import FUNCTIONS
from explorer.result import SCHEMA, Result
from explorer.units import size

LARGEST = 50_000_000
"""Bytes up to which a file is read; a Result has some 5 kB, and with long gradients some MB."""


class Unreadable(ValueError):
    """What cannot be compared; the message is a sentence that names it and says why."""


def read(name: str, data: bytes) -> Result:
    """The Result that a file of that name holds.

    Raises:
        Unreadable: it holds none that this version reads.
    """
    return _result(name, _json(name, data))


def read_file(path: str) -> bytes:
    """The bytes of a file, or of a pipe.

    Raises:
        Unreadable: it cannot be read, or is larger than `LARGEST`.
    """
    try:
        if Path(path).is_dir():
            raise Unreadable(f"{path} is a folder. Give the files in it.")
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise Unreadable(f"There is no file {path}.") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        if isinstance(error, Unreadable):
            raise
        why = getattr(error, "strerror", None) or error
        raise Unreadable(f"{path} cannot be read: {why}.") from None
    return data


def _json(name: str, data: bytes) -> Any:
    if len(data) > LARGEST:
        raise Unreadable(f"{name} is larger than {size(LARGEST)}, up to which a file is read.")
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.strip():
        raise Unreadable(f"{name} is empty.")
    try:
        data.decode()
    except UnicodeDecodeError:
        raise Unreadable(f"{name} is no text, so that it can hold no Result.") from None
    if data.lstrip().startswith(b"<"):
        raise Unreadable(
            f"{name} is a page or another marked-up text. Take the file of --json, not of --html."
        )
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError as error:
        words = str(error)
    if words.startswith("EOF"):
        raise Unreadable(
            f"{name} breaks off in the middle: it was not written, or not copied, to its end."
        )
    if words.startswith("trailing characters"):
        raise Unreadable(
            f"{name} holds more than one JSON text, as the file of a sweep does. Take files of "
            "`explorer run --json`."
        )
    raise Unreadable(f"{name} is not JSON: {words}.")


def _result(name: str, plain: Any) -> Result:
    if isinstance(plain, dict) and plain.get("kind") == "gradient flow":
        raise Unreadable(
            f"{name} is of a gradient flow, which has no paths to compare. Take files of "
            "`explorer run --json`."
        )
    schema = plain.get("schema") if isinstance(plain, dict) else None
    if schema is None or isinstance(schema, bool) or not isinstance(schema, int):
        raise Unreadable(
            f"{name} is JSON, but no Result of explorer. Take files of `explorer run --json`."
        )
    if schema > SCHEMA:
        raise Unreadable(
            f"{name} was written by a newer explorer, in schema {schema}; this one reads schema "
            f"{SCHEMA}. Bring explorer up to date."
        )
    if schema < SCHEMA:
        raise Unreadable(
            f"{name} was written by an older explorer, in schema {schema}; this one reads schema "
            f"{SCHEMA}. Run the experiment again."
        )
    function = plain["experiment"].get("function") if _has_experiment(plain) else None
    if isinstance(function, str) and function not in FUNCTIONS:
        raise Unreadable(
            f"{name} is of the function {shown(function)}, which explorer does not have. Where it "
            "is defined, in Python, explorer.compare takes its Results."
        )
    try:
        return Result.model_validate(plain)
    except ValidationError as error:
        raise Unreadable(f"{name} is no Result as explorer writes it: {_first(error)}") from None


def _has_experiment(plain: dict[str, Any]) -> bool:
    return isinstance(plain.get("experiment"), dict)


_LONGEST = 200  # characters of a reason that a file brings along


def _first(error: ValidationError) -> str:
    """The first problem with its place, and how many more there are."""
    first, *more = error.errors(include_url=False, include_input=False)
    place = ".".join(map(str, first["loc"]))
    words = f"{place}: {first['msg'].removeprefix('Value error, ').rstrip('.')}"
    words = words if len(words) <= _LONGEST else words[:_LONGEST] + "…"
    return f"{words}{f' (and {len(more)} more)' if more else ''}."


class Collection:
    """The Results that are to be compared, by distinct names, in the order in which they came."""

    def __init__(self) -> None:
        self.results: dict[str, Result] = {}

    def add(self, name: str, result: Result) -> None:
        """Takes one more; where the name is taken, with a number behind it.

        Raises:
            Unreadable: it is among them, or there are as many as can be compared.
        """
        same = next((each for each, other in self.results.items() if other == result), None)
        if same is not None:
            twice = "is given twice" if same == name else f"is the same Result as {same}"
            raise Unreadable(f"{name} {twice}, and counts once.")
        if len(self.results) >= MOST:
            raise Unreadable(f"{name} is left out: at most {MOST} Results are compared.")
        self.results[_distinct(name, self.results)] = result

    def remove(self, name: str) -> None:
        del self.results[name]


def short_names(paths: Iterable[str]) -> list[str]:
    """What each file is called: its name without the ending, with its folder where another file
    has that name too."""
    every = [Path(path) for path in paths]
    stems = [path.stem for path in every]
    return [
        stem if stems.count(stem) == 1 or not path.parent.name else f"{path.parent.name}/{stem}"
        for stem, path in zip(stems, every, strict=True)
    ]


def _distinct(name: str, taken: Iterable[str]) -> str:
    known, number, found = set(taken), 2, name
    while found in known:
        found, number = f"{name} ({number})", number + 1
    return found
