"""A point of a sweep: what one experiment showed, as one line of JSON of at most 10 kB.

The line has what pictures and sentences need in a short form, and the Result without its gradients,
of which only the norms are kept. Importing this module imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, PrivateAttr
from pydantic_core import from_json

from explorer import sentences
from explorer.result import Array, Count, Data, HeadResult, Number, Numbers, Result, Seconds, number
from explorer.study.axis import Value

SCHEMA: Final = 1
MOST_BYTES = 10_000
"""Bytes of a line, its end included."""

_KEPT = ((12, 50, 6), (6, 50, 6), (3, 30, 3), (1, 10, 0))
"""Heads, runs of each path, and notes: the first of these that there is room for."""

_SINGULAR_VALUES = 4
_NOTE = 240  # characters of a note, which may repeat what f raised
_PROBLEM = 1000


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
        problem: why there is no result, empty where there is one.
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
            sweep=sweep, point=point, at=at, seconds=seconds, problem=problem[:_PROBLEM], **shown
        )
        head = seen.model_dump_json(by_alias=True, exclude_defaults=True)
        # What is left out as a default is read as one; the schema is told all the same.
        head = f'{{"schema":{SCHEMA},{head[1:-1]},"result":'
        room = MOST_BYTES - len(head.encode()) - 2  # of what closes the line
        seen._line = f"{head}{'null' if result is None else compact(result, room)}}}\n".encode()
        return seen

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
            seconds=None if seconds is None else seconds.median,
            low=low,
            high=high,
            predicted=path.predicted_seconds,
            forward=path.forward_passes,
            backward=path.backward_passes,
            forward_mode=path.forward_mode_passes,
            error=_largest(head.error.get(name) for head in counted),
            agreement=_largest(head.agreement.get(name) for head in counted),
            wrong=name in wrong,
            taken=path.taken,
            note=path.note[:_NOTE],
        )
    seen = result.environment
    threads = f"{seen.threads} thread{'' if seen.threads == 1 else 's'}"
    return {
        "heads": len(result.heads),
        "outputs": result.function.outputs,
        "inputs": result.function.inputs,
        "norm": result.jacobian.spectral_norm,
        "where": f"{seen.host}, {seen.device_name}, {threads}",
        "paths": paths,
    }


def _largest(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    # Python's max() passes over NaN, which is the worst of all.
    return next(filter(math.isnan, known), max(known)) if known else None


def compact(result: Result, room: int) -> str:
    """The Result as JSON of at most `room` bytes: without gradients, of which the norms stay, and
    with as many heads and runs as there is room for, those with something wrong first."""
    text = ""
    for kept in _KEPT:
        text = _slim(result, *kept).model_dump_json(by_alias=True, exclude_defaults=True)
        # The schema is a default too.
        text = f'{{"schema":{result.schema_version},{text[1:]}'
        if len(text.encode()) <= room:
            return text
    raise ValueError(f"A Result takes {len(text.encode())} bytes. Allowed: {room}.")


def _slim(result: Result, most_heads: int, most_runs: int, most_notes: int) -> Result:
    few = sentences.few(result, most_heads)
    notes = [note[:_NOTE] for note in few.notes[:most_notes]]
    if len(few.heads) < len(result.heads):
        notes.append(f"{len(few.heads)} of {len(result.heads)} heads are kept one by one.")
    found = few.jacobian
    return few.model_copy(
        update={
            "paths": {
                name: path.model_copy(
                    update={
                        "seconds": path.seconds and _thinned(path.seconds, most_runs),
                        "note": path.note[:_NOTE],
                    }
                )
                for name, path in few.paths.items()
            },
            "heads": {name: _without_gradients(head) for name, head in few.heads.items()},
            "jacobian": found.model_copy(
                update={
                    "direction": None,
                    "singular_values": found.singular_values[:_SINGULAR_VALUES],
                }
            ),
            "function": few.function.model_copy(
                update={
                    "value": _norm(few.function.value),
                    "exact_value": _norm(few.function.exact_value),
                }
            ),
            "notes": tuple(notes),
        }
    )


def _thinned(seconds: Seconds, most: int) -> Seconds:
    """The runs to five digits; of many, some that are evenly placed among all in their order."""
    runs = list(seconds.runs)
    if len(runs) > most:
        runs.sort()
        last = len(runs) - 1
        runs = [runs[round(number * last / (most - 1))] for number in range(most)]
    return seconds.model_copy(update={"runs": tuple(float(f"{run:.5g}") for run in runs)})


def _without_gradients(head: HeadResult) -> HeadResult:
    return head.model_copy(
        update={
            "gradient": {path: _norm(gradient) for path, gradient in head.gradient.items()},
            "exact_gradient": _norm(head.exact_gradient),
            "error_reference": head.error_reference[:_NOTE],
            "domain": head.domain[:_NOTE],
        }
    )


def _norm(numbers: float | Numbers | None) -> float | Array | None:
    """The norm alone of more than one number."""
    if isinstance(numbers, Array):
        return numbers.model_copy(update={"first": ()})
    if isinstance(numbers, tuple):
        return Array(norm=math.hypot(*numbers), shape=(len(numbers),), first=())
    return numbers
