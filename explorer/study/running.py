"""A sweep under way: its points measured one after the other, each kept as soon as it is there."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass
from typing import Literal

from explorer.events import Cancelled, Done, Event, Failed, Partial, Progress
from explorer.experiment import Experiment, InvalidExperiment
from explorer.pace import Pace
from explorer.study.journal import Journal
from explorer.study.measuring import Ended, Measuring, Task, measure
from explorer.study.point import Point
from explorer.study.study import Study
from explorer.study.sweep import Place, Sweep, told
from explorer.units import roughly
from explorer.worker import Worker

_SHOW_EVERY = 0.5  # seconds between two Partials
_FORECAST_EVERY = 2.0  # seconds between two estimates of what is left
_SAMPLE = 64  # points that stand for all that are left
_POINT = 0.03  # seconds that a point takes beside its run
_BEYOND = 3.0  # budgets of a point that its forward pass may be expected to take: estimates err
_FAILURES = 3  # points in a row that an executor fails to measure


class Running:
    """One sweep under way. One thread reads `events`; any may `cancel`.

    Args:
        journal: where every point is written at once, open; the points that it has are not measured
            again. None to keep them in memory alone.
        executor: what takes the points; by default they are measured here, in processes of their
            own, which a cancel ends at once. Elsewhere it lets the points that have begun go on.
        at_once: points that are given to the executor at a time.
    """

    def __init__(
        self,
        sweep: Sweep,
        worker: Worker | None = None,
        *,
        journal: Journal | None = None,
        executor: Executor | None = None,
        at_once: int = 8,
    ) -> None:
        self._sweep = sweep
        self._journal = journal
        self._total = math.inf if sweep.total is None else sweep.total
        self._points: list[Point] = list(journal.points) if journal else []
        self._notes = [journal.told] if journal and journal.told else []
        self._doing = ""
        self._cancelled = threading.Event()
        self._own: Measuring | None = None
        if executor is None:
            self._own = Measuring(worker or Worker(), self._tell)
            # The next point starts while the last one is being written.
            executor, at_once = ThreadPoolExecutor(1), 2
        self._executor = executor
        self._at_once = at_once
        self._forecast = _Forecast(sweep)

    def cancel(self) -> None:
        """Ends it at once; the last event is then Cancelled, with the points there are, if any."""
        self._cancelled.set()
        if self._own is not None:
            self._own.cancel()

    def events(self, heartbeat: float | None = None) -> Iterator[Event]:
        """Measures the points and yields what is going on; the last event is an Ending, its result
        a Study. With a `heartbeat` in seconds a Progress comes at least as often."""
        try:
            yield from self._events(heartbeat)
        finally:
            if self._own is not None:
                self._own.cancel()
                self._executor.shutdown()

    def _events(self, heartbeat: float | None) -> Iterator[Event]:
        done = {point.point for point in self._points}
        waiting = [place for place in self._sweep.places if place.key not in done]
        waiting.reverse()  # so that the next one is the last
        going: dict[Future[Point], Place] = {}
        start = shown = time.monotonic()
        if self._points:
            yield Partial(self._study("running"))
        failures = 0
        while waiting or going:
            try:
                self._begin(waiting, going, self._total - (time.monotonic() - start))
            except (InvalidExperiment, OSError) as error:
                yield _failed(error, self._study("cancelled"))
                return
            if not going:
                continue
            yield self._progress(going, waiting, self._total - (time.monotonic() - start))
            ended = self._next(going, heartbeat, start)
            if self._cancelled.is_set():
                for future in going:
                    future.cancel()
                yield Cancelled(self._study("cancelled") if self._points else None)
                return
            for future in ended:
                place = going.pop(future)
                try:
                    self._keep(future.result())
                    failures = 0
                except (InvalidExperiment, OSError) as error:
                    yield _failed(error, self._study("cancelled"))
                    return
                except Ended:
                    self._note_total()
                except Exception as error:
                    failures += 1
                    self._note(
                        f"The point {told(place.at)} was not measured: "
                        f"{type(error).__name__}: {error}."
                    )
                    if failures == _FAILURES or isinstance(error, BrokenExecutor):
                        yield Failed("crash", self._notes[-1], {}, self._study("cancelled"))
                        return
            if ended and time.monotonic() - shown > _SHOW_EVERY:
                yield Partial(self._study("running"))
                shown = time.monotonic()
        whole = len(self._points) == len(self._sweep)
        yield Done(self._study("done" if whole else "cancelled"))

    def _begin(self, waiting: list[Place], going: dict[Future[Point], Place], left: float) -> None:
        """Gives the next points to the executor, as far as there is room and time for them."""
        while waiting and len(going) < self._at_once:
            place = waiting.pop()
            experiment = self._sweep.experiment(place.at)
            if self._forecast.begin(place, experiment) > left:
                self._note_total()
                continue
            forward, budget = self._forecast.forward(experiment), experiment.budget
            if budget is not None and forward > _BEYOND * budget:
                self._keep(
                    Point.of(
                        self._sweep.key,
                        place.key,
                        place.at,
                        0.0,
                        None,
                        f"It was not run: one forward pass would take about {roughly(forward)}, "
                        f"more than the point's budget of {roughly(budget)}.",
                    )
                )
                continue
            task = Task.of(self._sweep, place)
            call = measure if self._own is None else self._own
            going[self._executor.submit(call, task)] = place

    def _next(
        self, going: dict[Future[Point], Place], heartbeat: float | None, start: float
    ) -> set[Future[Point]]:
        """The points that have ended since, after a heartbeat at most."""
        left = self._total - (time.monotonic() - start)
        if left <= 0 and self._own is not None:
            self._own.cancel()
        seconds = min(heartbeat or math.inf, max(left, 0.05), 3600.0)
        return wait(going, timeout=seconds, return_when=FIRST_COMPLETED).done

    def _keep(self, point: Point) -> None:
        if self._journal is not None:
            self._journal.append(point)
        self._points.append(point)
        self._forecast.learn(point)

    def _tell(self, text: str) -> None:
        self._doing = text

    def _note_total(self) -> None:
        self._note(
            f"The {roughly(self._total)} for all points left some out: the same sweep goes on with "
            "them, if its points are kept in a file."
        )

    def _note(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)

    def _progress(
        self, going: dict[Future[Point], Place], waiting: list[Place], most: float
    ) -> Progress:
        """What is being done, and the seconds left, which `most` ends at the latest."""
        number = len(self._points) + 1
        at = told(next(iter(going.values())).at)
        doing = f": {self._doing}" if self._doing else ""
        hosts = len({point.where.partition(",")[0] for point in self._points} - {""}) or 1
        left = self._forecast.remaining([*going.values(), *waiting]) / hosts
        left = max(0.0, min(left, most))
        return Progress(f"point {number} of {len(self._sweep)}, {at}{doing}", left)

    def _study(self, status: Literal["running", "done", "cancelled"]) -> Study:
        return Study(
            key=self._sweep.key,
            given=self._sweep.given,
            axes=self._sweep.axes,
            points=tuple(self._points),
            planned=len(self._sweep),
            status=status,
            notes=tuple(self._notes),
        )


def _failed(error: InvalidExperiment | OSError, study: Study) -> Failed:
    if isinstance(error, InvalidExperiment):
        return Failed("invalid", str(error), error.problems, study)
    return Failed("error", str(error), {}, study)


def expected_seconds(sweep: Sweep) -> float:
    """Seconds to expect of a whole sweep, before any of it was measured."""
    seconds = _Forecast(sweep).remaining(list(sweep.places))
    return seconds if sweep.total is None else min(seconds, sweep.total)


@dataclass
class _Estimate:
    seconds: float
    begun: float


class _Forecast:
    """The seconds of what is left, from the cost estimates and from what points took so far."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._pace = Pace()
        self._begun: dict[str, _Estimate] = {}
        self._taken = self._expected = 0.0
        self._each = math.nan  # seconds of a typical point
        self._next = -math.inf

    def forward(self, experiment: Experiment) -> float:
        return self._pace.forward(experiment)

    def begin(self, place: Place, experiment: Experiment) -> float:
        """Seconds to expect of a point that is about to begin."""
        seconds = self._seconds(experiment)
        self._begun[place.key] = _Estimate(seconds, time.monotonic())
        return self._factor * seconds

    def learn(self, point: Point) -> None:
        """Takes from a point how far off the estimates are."""
        estimate = self._begun.pop(point.point, None)
        if estimate is None or point.problem:
            return
        self._taken = 0.8 * self._taken + point.seconds
        self._expected = 0.8 * self._expected + estimate.seconds
        result = point.result
        if result is not None and result.status == "done":
            self._pace.learn(result)

    def remaining(self, places: list[Place]) -> float:
        """Seconds until all of these are measured, the first of them having begun."""
        now = time.monotonic()
        if now > self._next and places:
            step = max(1, len(places) // _SAMPLE)
            sample = [self._seconds(self._sweep.experiment(p.at)) for p in places[::step]]
            self._each = sum(sample) / len(sample)
            self._next = now + _FORECAST_EVERY
        first = self._begun.get(places[0].key) if places else None
        since = min(now - first.begun, first.seconds * self._factor) if first else 0.0
        return max(0.0, self._factor * self._each * len(places) - since)

    @property
    def _factor(self) -> float:
        return min(5.0, max(0.2, self._taken / self._expected)) if self._expected else 1.0

    def _seconds(self, experiment: Experiment) -> float:
        return _POINT + self._pace.seconds(experiment)
