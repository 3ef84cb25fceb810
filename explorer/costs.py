"""The cost model of a scaling: seconds of one pass through f of each kind and of one head, fitted.

What a path takes is a sum of passes and heads (`predicted_seconds`), linear in what each of them
costs. So the costs are those, none negative, of which the sums are nearest to the measured medians:
non-negative least squares of the relative distances (C. L. Lawson and R. J. Hanson, *Solving Least
Squares Problems*, 1974, chapter 23), reweighted until a point farther off than 10% counts by its
distance and not by the square (P. J. Huber, *Robust Statistics*, 1981), so that a disturbed one
moves little. Along the entries of y a cost stays, or grows evenly with their number. Nothing here
imports torch.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from explorer import scan
from explorer.engine.plan import (
    AUTOMATIC,
    NAIVE,
    PATHS,
    PEER,
    Costs,
    Sizes,
    candidate_seconds,
    predicted_seconds,
)
from explorer.experiment import Along
from explorer.result import BreakEven, Scaling, ScalingPoint

_NAMES = tuple(each.name for each in fields(Costs))
_OF_F = ("forward", "backward", "forward_mode", "batch", "batched")
_ALONE = 1e-3  # weight of a prediction from passes timed alone, beside 1 of a measured point
_BEYOND = 0.3  # its weight at a number of entries of y to which no point reaches
_POINTS = 1.5  # for each cost in them, from which points are fitted
_NEAR = 0.1  # of a median: up to there a distance counts by its square
_ROUNDS = 20  # of the reweighting: by then no cost moves by more than a thousandth
_LONGEST = 1000  # steps of one solution, of which a few per cost are usual
_ROUNDING = 1e-6  # of a cost of 1: what the points seem to leave open of it, and do not


@dataclass(frozen=True, order=True)
class Misfit:
    """By which part of a measured median the model is off, and where."""

    part: float
    path: str
    count: int


@dataclass(frozen=True)
class CostModel:
    """What every path takes at every count of a scaling, in seconds.

    Attributes:
        scaling: what was measured, and predicted from passes timed alone.
        inputs: entries of x.
        low, high: the costs at the first and at the last count.
        determined: the costs that the points determine by themselves; where they determine only
            the sum of a forward and a backward pass, "forward + backward".
        misfits: of every measured point.
        candidates: what `auto` chooses from: the paths that were measured, or all without a point.
        impossible: paths that cannot run at all; they take forever.
    """

    scaling: Scaling
    inputs: int
    low: Costs
    high: Costs
    determined: frozenset[str]
    candidates: tuple[str, ...]
    impossible: frozenset[str]
    misfits: tuple[Misfit, ...] = ()

    def seconds(self, path: str, count: int) -> float:
        """Seconds of one execution of a path at a count."""
        if path in self.impossible:
            return math.inf
        costs = scan.between(self.low, self.high, _share(self.scaling, count))
        sizes = _sizes(self.scaling, self.inputs, count)
        if path == "auto":
            return min(candidate_seconds(each, sizes, costs) for each in self.candidates)
        return predicted_seconds(path, sizes, costs)

    def slower(self, factor: float) -> CostModel:
        """The model of an f that takes so many times as long, under the same heads."""
        low, high = (
            replace(costs, **{name: factor * getattr(costs, name) for name in _OF_F})
            for costs in (self.low, self.high)
        )
        return replace(self, low=low, high=high)

    @property
    def break_even(self) -> BreakEven | None:
        """Where a path that is not naive overtakes the naive reference."""
        return scan.break_even(tuple(self.scaling.paths), self.scaling.counts, self.seconds)

    @property
    def reference(self) -> str | None:
        """The naive path that the others are held against; None where there is none."""
        return scan.reference(self.scaling.paths)

    @property
    def throughout(self) -> tuple[str, ...]:
        """The paths that beat the naive reference at every count; a peer does not count."""
        if self.reference is None:
            return ()
        counts = self.scaling.counts
        naive = {count: self.seconds(self.reference, count) for count in counts}
        return tuple(
            path
            for path in self.scaling.paths
            if path not in (*NAIVE, PEER)
            and all(scan.faster(self.seconds(path, count), naive[count]) for count in counts)
        )

    def outputs_up_to(self, heads: int, reference: str) -> int | None:
        """The most entries of y with which `reuse` beats a naive path, where a pass through f costs
        what it does at the first count; 0 for none, None where the points do not tell it."""
        needed = {"backward"} | ({"forward"} if reference == "recompute" else set())
        backward = self.low.backward
        if not needed <= self.determined or backward == 0:
            return None
        naive, bare = (
            predicted_seconds(path, Sizes(heads, outputs, self.inputs), self.low)
            for path, outputs in ((reference, 1), ("reuse", 0))
        )
        most = max(0, math.ceil((naive - bare) / backward))
        while most and not scan.faster(bare + most * backward, naive):
            most -= 1
        return most

    def ends(self, cost: str) -> tuple[float, float]:
        """A cost, or the sum of several with + between them, at the first and the last count."""
        names = cost.split(" + ")
        low, high = (sum(getattr(c, name) for name in names) for c in (self.low, self.high))
        return low, high

    @property
    def misfit(self) -> float:
        """The median part by which a point is missed; there has to be one."""
        return statistics.median(each.part for each in self.misfits)

    @property
    def typical(self) -> dict[str, float]:
        """By path, the median part by which its points are missed."""
        parts: dict[str, list[float]] = {}
        for each in self.misfits:
            parts.setdefault(each.path, []).append(each.part)
        return {path: statistics.median(every) for path, every in parts.items()}


def fitted(scaling: Scaling, inputs: int) -> CostModel:
    """The model of a scaling, finished or partial, of an f at x of so many entries.

    What the points leave open follows the predictions from passes that were timed alone. As long as
    there are few points for the costs that they share, these predictions are all there is; then
    `misfits` is empty.
    """
    points = _points(scaling)
    measured = [
        _row(scaling, inputs, point.taken or path, point.count, bool(point.taken))
        / point.seconds.median
        for path, point in points
    ]
    paid = np.count_nonzero(np.any(np.array(measured) > 0, axis=0)) if measured else 0
    if len(points) < _POINTS * paid:
        points, measured = [], []
    predictions = _predictions(scaling, points)
    alone = [
        weight * _row(scaling, inputs, path, count) / seconds
        for path, count, seconds, weight in predictions
    ]
    weights = [weight for *_, weight in predictions]
    rows = np.array([*measured, *alone]).reshape(-1, 2 * len(_NAMES))
    low, high = _costs(rows, np.array([1.0] * len(measured) + weights))
    known = {point.taken or path for path, point in points}
    model = CostModel(
        scaling=scaling,
        inputs=inputs,
        low=low,
        high=high,
        determined=_determined(rows[: len(measured)], scaling.along),
        candidates=tuple(path for path in AUTOMATIC if path in known) or AUTOMATIC,
        impossible=frozenset(
            path
            for path, seen in scaling.paths.items()
            if path not in PATHS or any(each.seconds == math.inf for each in seen.predicted)
        ),
    )
    misfits = (
        Misfit(abs(model.seconds(path, point.count) / point.seconds.median - 1), path, point.count)
        for path, point in points
    )
    return replace(model, misfits=tuple(misfits))


def _points(scaling: Scaling) -> list[tuple[str, ScalingPoint]]:
    """The points that tell something, each with its path: not what a later version measured, nor
    what auto took without a word."""
    return [
        (path, point)
        for path, seen in scaling.paths.items()
        for point in seen.measured
        if path in PATHS
        and (point.taken or path) in PATHS
        and (point.taken or path) != "auto"
        and 0 < point.seconds.median < math.inf
    ]


def _predictions(
    scaling: Scaling, points: list[tuple[str, ScalingPoint]]
) -> list[tuple[str, int, float, float]]:
    """(path, count, seconds, weight) of what is predicted from passes timed alone.

    Points on a part of the way tell badly how costs grow along the outputs: beyond them a
    prediction weighs more, but for a batch, of which nothing is timed alone. How a pass in forward
    mode grows, only `jvp` tells.
    """
    reach = {
        forward_mode: max(
            (p.count for path, p in points if ((p.taken or path) == "jvp") == forward_mode),
            default=math.inf,
        )
        for forward_mode in (True, False)
    }
    found = []
    for path, seen in scaling.paths.items():
        if path == "auto" or path not in PATHS:  # which path auto took, a prediction does not say
            continue
        for count, each in zip(scaling.counts, seen.predicted, strict=True):
            if 0 < each.seconds < math.inf:
                beyond = count > reach[path == "jvp"] and path != "batched_vjp"
                weight = _BEYOND if beyond and scaling.along == "outputs" else _ALONE
                found.append((path, count, each.seconds, weight))
    return found


def _row(
    scaling: Scaling, inputs: int, path: str, count: int, chosen: bool = False
) -> NDArray[np.float64]:
    """How often each cost is paid in one execution: what it is at the first count, then what it
    grows by up to the last one. `chosen` where `auto` took the path."""
    predicted = candidate_seconds if chosen else predicted_seconds
    sizes = _sizes(scaling, inputs, count)
    nothing = Costs(*(0.0,) * len(_NAMES))
    times = np.array([predicted(path, sizes, replace(nothing, **{n: 1.0})) for n in _NAMES])
    return np.concatenate([times, _share(scaling, count) * times])


def _costs(rows: NDArray[np.float64], aims: NDArray[np.float64]) -> tuple[Costs, Costs]:
    """The costs, none negative, with which the rows come nearest to their aims."""
    from scipy.optimize import nnls  # half a second, which only who looks at a scaling waits

    scale = np.linalg.norm(rows, axis=0)
    paid = scale > 0
    found = np.zeros(rows.shape[1])
    if paid.any():
        scaled, weights = rows[:, paid] / scale[paid], np.ones(len(rows))
        for _ in range(_ROUNDS):
            found[paid] = nnls(scaled * weights[:, None], aims * weights, maxiter=_LONGEST)[0]
            distances = np.abs(scaled @ found[paid] - aims)
            weights = (_NEAR / np.maximum(distances, _NEAR)) ** 0.5
        found[paid] /= scale[paid]
    first, growth = np.split(found, 2)
    ends = []
    for values in (first, first + growth):
        known = {n: float(v) for n, v, u in zip(_NAMES, values, paid, strict=False) if u}
        usual = Costs.of(*(known.get(name, 0.0) for name in ("forward", "backward", "head")))
        ends.append(replace(usual, **known))
    return ends[0], ends[1]


def _determined(rows: NDArray[np.float64], along: Along) -> frozenset[str]:
    """The costs on which the rows alone leave no choice: those of which a sum of rows is made."""
    scale = np.linalg.norm(rows, axis=0)
    paid = scale > 0
    scaled = rows / np.where(paid, scale, 1.0)
    made = np.linalg.pinv(scaled) @ scaled  # onto all sums of rows

    def is_one(*names: str) -> bool:
        every = []
        for end in (0, 1) if along == "outputs" else (0,):
            places = [_NAMES.index(name) + end * len(_NAMES) for name in names]
            wanted = np.zeros(len(scale))
            wanted[places] = 1 / scale[places] if paid[places].all() else np.nan
            left = np.linalg.norm(made @ wanted - wanted)
            every.append(left < _ROUNDING * np.linalg.norm(wanted))
        return all(every)

    found = {name for name in _NAMES if is_one(name)}
    if found.isdisjoint(("forward", "backward")) and is_one("forward", "backward"):
        found.add("forward + backward")
    return frozenset(found)


def _share(scaling: Scaling, count: int) -> float:
    """How far a count is on the way from the first to the last; along the heads, nowhere."""
    if scaling.along == "heads":
        return 0.0
    first, last = scaling.counts[0], scaling.counts[-1]
    return (count - first) / max(1, last - first)


def _sizes(scaling: Scaling, inputs: int, count: int) -> Sizes:
    return Sizes(
        count if scaling.heads is None else scaling.heads,
        count if scaling.outputs is None else scaling.outputs,
        inputs,
    )
