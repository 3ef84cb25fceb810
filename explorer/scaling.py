"""The Scaling view's measurement: every path against the number of heads, or of entries of y.

At each count every path runs once to warm up and a few times for its time. Beside the points goes
a prediction, from one forward, one backward and one head timed alone (and one forward-mode pass
where `jvp` is among the paths): it says how long the scan takes and where a path is cut off, and
is what there is before the points; these give the cost model (`costs`) its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from explorer import scan, units
from explorer.costs import fitted
from explorer.engine.gradients import gradients
from explorer.engine.plan import Costs, Passes, Sizes, expected_passes, predicted_seconds
from explorer.experiment import Along, Experiment
from explorer.functions.description import Problem
from explorer.heads import random
from explorer.measure import SLOW, statistics, timed
from explorer.result import BreakEven, Scaling, ScalingPath, ScalingPoint, ScalingPrediction

T = TypeVar("T")

_TRIES = 3  # of a pass that is timed alone, after one to warm up; the least counts


class Scan:
    """One scan along the number of heads, or of entries of y; `result` is what is known so far.

    Args:
        problem: the experiment's own f, of `outputs` entries.
        costs: of one pass through it, as far as they are known; measured anew by `run`.
        left: seconds that are left of the budget.
        spare: bytes of memory that a larger f may take beside the experiment's own.
    """

    def __init__(
        self,
        experiment: Experiment,
        along: Along,
        problem: Problem,
        outputs: int,
        costs: Costs,
        left: Callable[[], float],
        spare: float,
    ) -> None:
        self._experiment = experiment
        self._along = along
        self._problem = problem
        self._outputs = outputs
        self._low = self._high = costs
        self._left = left
        self._counts = scan.counts(experiment, along)
        self._fit = [count for count in self._counts if self._need(count) <= spare]
        self._points: dict[str, list[ScalingPoint]] = {path: [] for path in experiment.paths}
        self._ended = dict.fromkeys(experiment.paths, "")
        self._impossible = {"jvp"} & set(experiment.paths) if experiment.compile else set()
        for path in self._impossible:
            self._ended[path] = "forward mode does not go through a compiled f"
        self._break_even: BreakEven | None = None

    def run(self) -> Iterator[str | Scaling]:
        """Measures; yields what is measured next, in words, and what is known after each count."""
        yield from self._run()
        self._break_even = fitted(self.result, self._problem.x.numel()).break_even

    def _run(self) -> Iterator[str | Scaling]:
        self._break_even = self._turn()
        if self._costly():
            return
        yield f"scaling along {self._along}: one pass of each kind"
        self._low = self._costs(self._counts[0])
        self._high = self._costs(self._fit[-1]) if self._along == "outputs" else self._low
        self._break_even = self._turn()
        yield self.result
        for count in self._counts:
            if count not in self._fit:
                self._end_all(f"{self._named(count)} would take more memory than is free")
                return
            problem = self._at(count)
            with torch.no_grad():
                y = problem.f(problem.x)
            sizes = self._sizes(count)
            every = random(sizes.heads, y, self._experiment.seed)
            for path, points in self._points.items():
                if not self._ended[path]:
                    self._ended[path] = self._why_not(path, count)
                if not self._ended[path]:
                    yield f"scaling, {self._named(count)}: {path}"
                    points.append(self._measure(path, count, problem, every))
            yield self.result

    @property
    def remaining(self) -> float:
        """Seconds until the scan ends, as is predicted."""
        total = 0.0
        for path, points in self._points.items():
            for count in self._counts[len(points) :]:
                once = self._expected(path, count)
                if self._ended[path] or once > self._experiment.cutoff:
                    break
                total += once * scan.executions(once, self._experiment.repeats)
        return total

    @property
    def result(self) -> Scaling:
        """What is known so far."""
        sizes = self._sizes(1)
        return Scaling(
            along=self._along,
            counts=self._counts,
            heads=None if self._along == "heads" else sizes.heads,
            outputs=None if self._along == "outputs" else sizes.outputs,
            paths={
                path: ScalingPath(
                    measured=tuple(points),
                    predicted=tuple(self._prediction(path, count) for count in self._counts),
                    ended=self._ended[path],
                )
                for path, points in self._points.items()
            },
            break_even=self._break_even,
        )

    # What is predicted.

    def _sizes(self, count: int) -> Sizes:
        if self._along == "heads":  # as they are: of one's own f the description does not know
            return Sizes(count, self._outputs, self._problem.x.numel())
        return scan.sizes(self._experiment, self._along, count)

    def _costs_at(self, count: int) -> Costs:
        """The costs of one pass at a count: along the entries of y they grow evenly with these."""
        first, last = self._counts[0], self._fit[-1] if self._fit else self._counts[-1]
        return scan.between(self._low, self._high, (count - first) / max(1, last - first))

    def _predicted(self, path: str, count: int) -> float:
        if path in self._impossible:
            return math.inf
        return predicted_seconds(path, self._sizes(count), self._costs_at(count))

    def _turn(self) -> BreakEven | None:
        return scan.break_even(self._experiment.paths, self._counts, self._predicted)

    def _prediction(self, path: str, count: int) -> ScalingPrediction:
        sizes, costs = self._sizes(count), self._costs_at(count)
        passes = expected_passes(path, sizes, costs)
        return ScalingPrediction(
            seconds=self._predicted(path, count),
            forward_passes=passes.forward,
            backward_passes=passes.backward,
            forward_mode_passes=passes.forward_mode,
        )

    def _expected(self, path: str, count: int) -> float:
        """Seconds to expect of a run: what is predicted, put right by the last measurement."""
        predicted, points = self._predicted(path, count), self._points[path]
        if not points:
            return predicted
        last = self._predicted(path, points[-1].count)
        return predicted * points[-1].seconds.minimum / last if last else predicted

    def _why_not(self, path: str, count: int) -> str:
        """Why a path is not run at a count; empty where it is."""
        once, cutoff, left = self._expected(path, count), self._experiment.cutoff, self._left()
        about = f"{self._named(count)} would take about {units.seconds(once)}"
        if once > cutoff:
            return f"{about}, more than the cut-off of {units.seconds(cutoff)}"
        if once > left:
            return f"{about}, more than is left of the budget"
        return ""

    def _costly(self) -> bool:
        """Whether not even the passes alone fit the budget, which then ends every path."""
        if not self._fit:
            self._end_all(f"{self._named(self._counts[0])} would take more memory than is free")
        elif self._low.forward + self._low.backward > self._left():
            self._end_all("one pass through f and back would take more than is left of the budget")
        return all(self._ended.values())

    def _end_all(self, why: str) -> None:
        self._ended = {path: ended or why for path, ended in self._ended.items()}

    def _named(self, count: int) -> str:
        noun = {"heads": "head", "outputs": "output"}[self._along]
        return f"{count} {noun}{'' if count == 1 else 's'}"

    # What is measured.

    def _at(self, count: int) -> Problem:
        if self._along == "heads":
            return self._problem
        setting = scan.setting(self._experiment, self._along, count)
        return self._experiment.described.build(setting)

    def _need(self, count: int) -> float:
        """Bytes that f takes at a count, beyond what it takes in the experiment."""
        cost = self._experiment.described.cost
        more = cost(scan.setting(self._experiment, self._along, count)).memory_bytes
        return more if self._along == "outputs" else 0.0

    def _costs(self, count: int) -> Costs:
        """Seconds of one pass of each kind, and of one head with its gradient, timed alone."""
        problem = self._at(count)
        f, x = problem.f, problem.x.detach().requires_grad_()
        forward, y = _least(lambda: f(x))
        one = torch.ones_like(y)
        backward, _ = _least(lambda: torch.autograd.grad(y, x, one, retain_graph=True))
        cut = y.detach().requires_grad_()
        (head,) = random(1, y, self._experiment.seed)
        single, _ = _least(lambda: torch.autograd.grad(head(cut), cut))
        costs = Costs.of(forward, backward, single)
        if self._ended.get("jvp", "not asked for"):
            return costs
        x = problem.x.detach()
        forward_mode, _ = _least(lambda: torch.func.jvp(f, (x,), (torch.ones_like(x),)))
        return replace(costs, forward_mode=forward_mode)

    def _measure(
        self, path: str, count: int, problem: Problem, every: list[Callable[[Tensor], Tensor]]
    ) -> ScalingPoint:
        def once() -> tuple[Passes, str]:
            found = gradients(problem.f, every, problem.x, path=path)
            return found.passes, found.plan.path

        expected = self._expected(path, count)
        first, (passes, taken) = timed(once)
        more = scan.executions(first, self._experiment.repeats) - 1
        if first <= SLOW and first > 2 * expected:  # it may have imported what it needs
            more = max(1, more)
        runs = [timed(once)[0] for _ in range(more)] or [first]
        seconds, _ = statistics(runs)
        return ScalingPoint(
            count=count,
            seconds=seconds,
            forward_passes=passes.forward,
            backward_passes=passes.backward,
            forward_mode_passes=passes.forward_mode,
            taken=taken if path == "auto" else "",
        )


def _least(run: Callable[[], T]) -> tuple[float, T]:
    """(the least seconds of a few runs, or those of a slow one; what it returned)."""
    seconds, found = timed(run)
    if seconds > SLOW:
        return seconds, found
    return min(timed(run)[0] for _ in range(_TRIES)), found
