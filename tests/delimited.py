"""CSV as it is read back."""

import csv
import io
from typing import Any


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def only(rows: list[dict[str, str]], **given: str) -> list[dict[str, str]]:
    return [row for row in rows if all(row[name] == value for name, value in given.items())]


def numbers(rows: list[dict[str, str]], *names: str) -> list[Any]:
    found = [tuple(float(row[name]) for name in names) for row in rows]
    return [each[0] for each in found] if len(names) == 1 else found
