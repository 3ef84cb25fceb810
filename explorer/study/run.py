"""A sweep from Python: run to its end, whatever takes its points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from explorer.events import Done, Ending, Failed
from explorer.experiment import InvalidExperiment
from explorer.study.journal import Journal
from explorer.study.running import Running
from explorer.study.study import Study
from explorer.study.sweep import Sweep


def sweep(
    over: Sequence[str] | Mapping[str, Any],
    *,
    file: str | Path | None = None,
    executor: Executor | None = None,
    at_once: int = 8,
    total: float | None = None,
    **fields: Any,
) -> Study:
    """Runs one experiment for each combination of the values of up to three fields.

    Args:
        over: the axes, by name the values or a text, such as `{"size": "50:800:log5", "heads":
            [1, 4, 16]}`, or as the command takes them, `["size=50:800:log5", "heads=1,4,16"]`.
        file: where every point is written as soon as it is measured, a line of JSON each; what is
            there is not measured again. None to keep them in memory alone.
        executor: what takes the points; by default they are measured here, one after the other.
            Each machine measures one at a time.
        at_once: points that are given to the executor at a time.
        total: seconds after which no further point is begun.
        fields: the other fields of the experiments, such as `function="ode"`, `repeats=3`.

    Raises:
        InvalidExperiment: a field or an axis is not allowed; `.problems` says which and what is.
        JournalError: the file is of another sweep, or of none.
        OSError: the file cannot be read or written.
        RuntimeError: the points could not be measured; the message says why.
    """
    wanted = Sweep(fields, over, total=total)
    with nullcontext() if file is None else Journal(file, wanted) as journal:
        running = Running(wanted, journal=journal, executor=executor, at_once=at_once)
        for event in running.events():
            if isinstance(event, Failed):
                if event.kind == "invalid":
                    raise InvalidExperiment(event.problems)
                raise RuntimeError(event.message)
            if isinstance(event, Done):
                assert isinstance(event.result, Study)
                return event.result
    raise AssertionError(f"a sweep's events end with one of {Ending}")
