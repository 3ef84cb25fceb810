"""One point measured: here, or wherever an executor takes it.

What is sent to an executor is plain: the experiment as JSON, and a person's own code as bytes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from explorer import sending
from explorer.events import Cancelled, Done, Ending, Failed, Progress, Queued
from explorer.experiment import Experiment, InvalidExperiment
from explorer.result import Result
from explorer.study.point import Point
from explorer.study.sweep import Place, Sweep
from explorer.worker import Run, Worker

_LOOK = 0.2  # seconds between two looks at the time that a point has left
_PATIENCE = 2.0, 1.0  # of a point's budget, and seconds, after which its run is ended

_EVERY_POINT = frozenset({"device", "paths"})
"""What a run refuses that no other point would do better: a device or a package is missing."""


class Ended(Exception):
    """The point was cancelled: there is nothing to be kept of it."""


@dataclass(frozen=True)
class Task:
    """A point to be measured, as it is sent."""

    sweep: str
    place: Place
    plain: dict[str, Any]
    packed: bytes

    @classmethod
    def of(cls, sweep: Sweep, place: Place) -> Task:
        """Raises InvalidExperiment where a person's own code cannot be sent."""
        experiment = sweep.experiment(place.at)
        return cls(sweep.key, place, experiment.to_json(), sending.pack(experiment))


class Measuring:
    """Measures points in a process of their own, each after its turn on this machine.

    `tell` is called with what is being done.
    """

    def __init__(self, worker: Worker, tell: Callable[[str], None] = lambda text: None) -> None:
        self._worker = worker
        self._tell = tell
        self._run: Run | None = None
        self._ended = False
        self._lock = threading.Lock()

    def __call__(self, task: Task) -> Point:
        """The point. One thread at a time.

        Raises:
            InvalidExperiment: no point of the sweep can run here; `.problems` says why.
            Ended: it was cancelled.
        """
        sending.unpack(task.packed)
        experiment = Experiment.from_json(task.plain)
        self._tell("")
        with self._lock:
            if self._ended:
                raise Ended
            self._run = run = self._worker.submit(experiment)
        ending, seconds, late = self._follow(run, experiment.budget)
        with self._lock:
            self._run = None
            if self._ended:
                raise Ended
        if isinstance(ending, Failed) and _EVERY_POINT & set(ending.problems):
            raise InvalidExperiment(ending.problems)
        return _point(task, ending, seconds, late, experiment.budget)

    def cancel(self) -> None:
        """Ends the point that is measured, at once, and every later one."""
        with self._lock:
            self._ended = True
            if self._run is not None:
                self._run.cancel()

    def _follow(self, run: Run, budget: float | None) -> tuple[Ending, float, bool]:
        """(how it ended, its seconds, whether that was for taking too long)."""
        begun: float | None = None
        late = False
        seconds = 0.0
        for event in run.events(heartbeat=_LOOK):
            if isinstance(event, Queued):
                self._tell(f"another measurement has this machine, place {event.place}")
                continue
            if isinstance(event, Progress):
                self._tell(event.text)
                if begun is None and event.text == "starting":
                    continue
            begun = begun or time.monotonic()
            seconds = time.monotonic() - begun
            if budget is not None and seconds > _PATIENCE[0] * budget + _PATIENCE[1] and not late:
                late = True
                run.cancel()
            if isinstance(event, (Done, Cancelled, Failed)):
                return event, seconds, late and isinstance(event, Cancelled)
        raise AssertionError("a run's events end with an Ending")


def _point(task: Task, ending: Ending, seconds: float, late: bool, budget: float | None) -> Point:
    problem = ""
    if late:
        problem = f"The point was ended after {seconds:.3g} s: its budget is {budget:g} s."
    elif isinstance(ending, Failed):
        problem = ending.message
    elif isinstance(ending, Cancelled):
        raise Ended
    result = ending.result
    assert result is None or isinstance(result, Result)
    place = task.place
    return Point.of(task.sweep, place.key, place.at, seconds, result, problem)


def measure(task: Task) -> Point:
    """The point, measured on the machine that an executor chose. Raises as Measuring does."""
    return Measuring(_worker())(task)


@cache
def _worker() -> Worker:
    """One for all points that this process takes."""
    return Worker()
