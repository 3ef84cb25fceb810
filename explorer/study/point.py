"""A point of a sweep: what one experiment showed, as one line of JSON of at most 10 kB.

The line has what pictures and sentences need in a short form, and the Result without its gradients,
of which only the norms are kept. Importing this module imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PrivateAttr
from pydantic_core import from_json, to_json

from explorer import sentences
from explorer.result import Array, Count, Data, HeadResult, Number, Numbers, Result, Seconds, number
from explorer.study.axis import Value

SCHEMA: Final = 1
MOST_BYTES = 10_000
"""Bytes of a line, its end included."""

_END = "}\n"

_SINGULAR_VALUES = 4
_DIGITS = 6  # of the numbers of a path
_PROBLEM, _WHERE, _NOTE = 400, 120, 80  # bytes of a point's texts, which may repeat what f raised


class _Kept(NamedTuple):
    """How many of a Result's heads, runs of each path, notes and smaller sizes are kept, and how
    many bytes of each of its texts and digits of its numbers."""

    heads: int
    runs: int
    notes: int
    sizes: int
    text: int
    digits: int = 17  # all there are


_KEPT = (
    _Kept(12, 50, 6, 12, 240),
    _Kept(6, 50, 6, 12, 240),
    _Kept(3, 30, 3, 6, 120),
    _Kept(1, 10, 1, 0, 60),
    _Kept(1, 3, 0, 0, 20, 6),
)
"""The first of these that there is room for is taken."""


class PathPoint(Data):
    """One path at a point.

    `seconds` is the median of its runs and `low` and `high` are their quartiles, all None where it
    was not timed, for the reason in `note`; then `predicted` is what it would take. `error` and
    `agreement` are the largest over the heads. `taken` is the path that `auto` took.
    """

    seconds: Number | None = None
    low: Number | None = None
    high: Number | None = None
    predicted: Number | None = None
    forward: Count
    backward: Count
    forward_mode: Count = 0
    error: Number | None = None
    agreement: Number | None = None
    wrong: bool = False
    taken: str = ""
    note: str = ""


class Point(Data):
    """What was seen at one point.

    Attributes:
        sweep, point: the hashes of the sweep and of the point's experiment.
        at: the values on the axes by name.
        seconds: from the start of the run to its end.
        problem: why there is no result, or not a whole one; empty where there is.
        heads, outputs, inputs: K, and the numbers of entries of y and x.
        norm: ‖dy/dx‖₂, None where it was not taken.
        where: host, device and threads.
    """

    schema_version: Annotated[Literal[1], BeforeValidator(number)] = Field(
        default=SCHEMA, alias="schema"
    )
    sweep: str
    point: str
    at: dict[str, Value] = Field(min_length=1)
    seconds: Number
    problem: str = ""
    heads: Count = 0
    outputs: Count = 0
    inputs: Count = 0
    norm: Number | None = None
    where: str = ""
    paths: dict[str, PathPoint] = Field(default_factory=dict)
    _line: bytes = PrivateAttr(b"")

    @property
    def line(self) -> bytes:
        """The line of the file that holds it, its end included."""
        return self._line

    @property
    def result(self) -> Result | None:
        """What the run showed, without its gradients; None where there is no result.

        Raises:
            ValueError: it is of a function of someone's own, which is not there.
        """
        plain = from_json(self._line)["result"]
        return None if plain is None else Result.model_validate(plain)

    @classmethod
    def of(
        cls,
        sweep: str,
        point: str,
        at: dict[str, Value],
        seconds: float,
        result: Result | None,
        problem: str = "",
    ) -> Point:
        """The point of a run that ended: with a Result, or with the sentence why there is none."""
        shown = {} if result is None else _shown(result)
        seen = cls(
            sweep=sweep, point=point, at=at, seconds=seconds, problem=_short(problem, _PROBLEM),
            **shown,
        )  # fmt: skip
        head, whole = seen._head(), "null"
        if result is not None:
            kept = compact(result, MOST_BYTES - len(head.encode()) - len(_END))
            if kept is None:
                why = problem or "the whole Result takes more than a line has room for."
                seen = seen.model_copy(update={"problem": _short(why, _PROBLEM)})
                head = seen._head()
            else:
                whole = kept
        seen._line = f"{head}{whole}{_END}".encode()
        return seen

    def _head(self) -> str:
        """The line as far as the Result."""
        plain = self.model_dump_json(by_alias=True, exclude_defaults=True)
        # What is left out as a default is read as one; the schema is told all the same.
        return f'{{"schema":{SCHEMA},{plain[1:-1]},"result":'

    @classmethod
    def read(cls, line: bytes) -> Point:
        """The point of a line; raises ValueError for what is none, and cannot be one.

        The Result in it is read by `result` alone: pictures of thousands of points do without.
        """
        plain = from_json(line, allow_inf_nan=False)
        if not isinstance(plain, dict) or "result" not in plain or "schema" not in plain:
            raise ValueError("the line is no point of a sweep")
        del plain["result"]
        seen = cls.model_validate(plain)
        seen._line = line
        return seen


def _shown(result: Result) -> dict[str, Any]:
    wrong = sentences.wrong_paths(result)
    counted = [head for head in result.heads.values() if not head.domain]
    paths = {}
    for name, path in result.paths.items():
        seconds = path.seconds
        low, high = sentences.middle_half(seconds) if seconds else (None, None)
        paths[name] = PathPoint(
            **_rounded(
                {
                    "seconds": None if seconds is None else seconds.median,
                    "low": low,
                    "high": high,
                    "predicted": path.predicted_seconds,
                    "error": largest(head.error.get(name) for head in counted),
                    "agreement": largest(head.agreement.get(name) for head in counted),
                },
                _DIGITS,
            ),
            forward=path.forward_passes,
            backward=path.backward_passes,
            forward_mode=path.forward_mode_passes,
            wrong=name in wrong,
            taken=path.taken,
            note=_short(path.note, _NOTE),
        )
    seen = result.environment
    threads = f"{seen.threads} thread{'' if seen.threads == 1 else 's'}"
    return {
        "heads": len(result.heads),
        "outputs": result.function.outputs,
        "inputs": result.function.inputs,
        "norm": result.jacobian.spectral_norm,
        "where": _short(f"{seen.host}, {seen.device_name}, {threads}", _WHERE),
        "paths": paths,
    }


def largest(values: Iterable[float | None]) -> float | None:
    """NaN where one is; None where none is known."""
    known = [value for value in values if value is not None]
    # Python's max() passes over NaN, which is the worst of all.
    return next(filter(math.isnan, known), max(known)) if known else None


def compact(result: Result, room: int) -> str | None:
    """The Result as JSON of at most `room` bytes: without gradients, of which the norms stay, and
    with as many heads and runs as there is room for, those with something wrong first. None where
    the least of it takes more."""
    for kept in _KEPT:
        plain = _slim(result, kept).model_dump(by_alias=True, exclude_defaults=True)
        short = _rounded(plain, kept.digits) | {"experiment": plain["experiment"]}
        # The schema is a default too.
        text = to_json({"schema": result.schema_version, **short}, inf_nan_mode="strings")
        if len(text) <= room:
            return text.decode()
    return None


def _slim(result: Result, kept: _Kept) -> Result:
    few = sentences.few(result, kept.heads)
    notes = [_short(note, kept.text) for note in few.notes[: kept.notes]]
    if len(few.heads) < len(result.heads):
        notes.append(f"{len(few.heads)} of {len(result.heads)} heads are kept one by one.")
    found, seen = few.jacobian, few.environment
    return few.model_copy(
        update={
            "paths": {
                name: path.model_copy(
                    update={
                        "seconds": path.seconds and _thinned(path.seconds, kept.runs),
                        **_shortened(path, kept.text, "note", "noise", "plan"),
                    }
                )
                for name, path in few.paths.items()
            },
            "heads": {name: _without_gradients(h, kept.text) for name, h in few.heads.items()},
            "jacobian": found.model_copy(
                update={
                    "direction": None,
                    "singular_values": found.singular_values[:_SINGULAR_VALUES],
                    "by_size": tuple(
                        each.model_copy(update={"heads": _of(each.heads, few)})
                        for each in found.by_size[len(found.by_size) - kept.sizes :]
                    ),
                    **_shortened(found, kept.text, "method"),
                }
            ),
            "function": few.function.model_copy(
                update={
                    "value": _norm(few.function.value),
                    "exact_value": _norm(few.function.exact_value),
                }
            ),
            "environment": seen.model_copy(
                update=_shortened(seen, kept.text, "torch", "python", "device_name", "host")
            ),
            "notes": tuple(notes),
        }
    )


def _short(text: str, most: int) -> str:
    """As much of a text as takes `most` bytes of JSON, a `?` for what is no character."""
    short = text[:most].encode(errors="replace").decode()
    while (over := len(to_json(short)) - 2 - most) > 0:  # its quotes do not count
        short = short[: -max(1, over // 6)]  # a character takes six bytes at most
    return short


def _rounded(value: Any, digits: int) -> Any:
    """The same with every number in it to so many significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {name: _rounded(each, digits) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(each, digits) for each in value]
    return value


def _shortened(data: Data, most: int, *names: str) -> dict[str, str]:
    return {name: _short(getattr(data, name), most) for name in names}


def _of(norms: dict[str, float], few: Result) -> dict[str, float]:
    return {name: norm for name, norm in norms.items() if name in few.heads}


def _thinned(seconds: Seconds, most: int) -> Seconds:
    """The runs to five digits; of many, some that are evenly placed among all in their order."""
    runs = list(seconds.runs)
    if len(runs) > most:
        runs.sort()
        last = len(runs) - 1
        runs = [runs[round(number * last / (most - 1))] for number in range(most)]
    return seconds.model_copy(update={"runs": tuple(float(f"{run:.5g}") for run in runs)})


def _without_gradients(head: HeadResult, most: int) -> HeadResult:
    return head.model_copy(
        update={
            "gradient": {path: _norm(gradient) for path, gradient in head.gradient.items()},
            "exact_gradient": _norm(head.exact_gradient),
            **_shortened(head, most, "error_reference", "domain", "formula"),
        }
    )


def _norm(numbers: float | Numbers | None) -> float | Array | None:
    """The norm alone of more than one number."""
    if isinstance(numbers, Array):
        return numbers.model_copy(update={"first": ()})
    if isinstance(numbers, tuple):
        return Array(norm=math.hypot(*numbers), shape=(len(numbers),), first=())
    return numbers
