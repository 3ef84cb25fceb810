"""Rows → CSV that pandas, R and a spreadsheet read alike."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from explorer.result import Environment, Seconds

Cell = str | float | None
"""None where it does not apply: nothing is written."""

Row = dict[str, Any]
"""The cells of what applies, by the names of the columns."""

ENVIRONMENT = ("device_name", "threads", "torch", "host", "started")
"""The columns of where something was measured."""

# What a spreadsheet would read as a formula, in the letters of East Asia too.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def written(columns: Sequence[str], rows: Iterable[Iterable[Cell]]) -> str:
    """One table as RFC 4180 has it: a header, rows that end in CR LF, quotes where needed.

    What is not finite is NaN, Inf or -Inf, as pandas and R read it, and numbers lose no digit. Text
    that a spreadsheet would run as a formula, such as a head typed as -y, has an apostrophe before
    it; a number has not, typed or not.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(map(_cell, columns))
    writer.writerows(map(_cell, row) for row in rows)
    return text.getvalue()


def placed(columns: Sequence[str], rows: Iterable[Row], same: Row) -> str:
    """The table of rows that have what applies, and `same` in all of them."""
    return written(columns, ([{**same, **row}.get(name) for name in columns] for row in rows))


def environment(seen: Environment) -> Row:
    return {name: getattr(seen, name) for name in ENVIRONMENT}


def runs(row: Row, seconds: Seconds | None) -> Iterator[Row]:
    """The row once for each of the runs, with its number and seconds."""
    for number, run in enumerate(seconds.runs if seconds else (), 1):
        yield {**row, "run": number, "seconds": run}


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) and not _is_number(value) else value
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
    return repr(value)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
