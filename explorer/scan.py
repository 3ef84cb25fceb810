"""What the Scaling view scans: the counts, where a path is cut off, and the break-even.

Plain arithmetic on the plan's predictions; nothing here imports torch.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import cache
from itertools import pairwise

from explorer.engine.plan import NAIVE, PEER, Costs, Sizes, predicted_seconds
from explorer.experiment import Along, Experiment
from explorer.functions.description import Setting
from explorer.result import BreakEven

MOST_HEADS = MOST_OUTPUTS = 1000
HEADS = 16  # while the entries of y are counted
RUNS = 3  # timed runs of a point, at most
LONG = 0.1  # seconds from which a point's first run is its only one
_ROUNDING = 1e-9

CostsAt = Callable[[int], Costs]
"""The costs of one pass and one head at a count."""


def counts(experiment: Experiment, along: Along) -> tuple[int, ...]:
    """1, 2, 5, 10, … up to 1000 heads, or to the most entries of y that f can have, 1000 where its
    description sets no limit.

    Empty where f has no parameter for the entries of y.
    """
    most = MOST_HEADS
    if along == "outputs":
        own = {field.name: field for field in experiment.described.parameters}
        if "outputs" not in own:
            return ()
        limit = own["outputs"].maximum
        most = int(limit) if math.isfinite(limit) else MOST_OUTPUTS
    powers = (10**exponent for exponent in range(len(str(most))))
    return tuple(n for power in powers for n in (power, 2 * power, 5 * power) if n <= most)


def setting(experiment: Experiment, along: Along, count: int) -> Setting:
    """What f is built from at a count."""
    if along == "heads":
        return experiment.setting
    parameters = {**experiment.parameters, "outputs": count}
    return replace(experiment.setting, parameters=parameters)


def sizes(experiment: Experiment, along: Along, count: int) -> Sizes:
    """K heads, m and n at a count; the heads of the view have the highest rank there is."""
    described, at = experiment.described, setting(experiment, along, count)
    if along == "heads":
        return Sizes(count, described.outputs(at), described.inputs(at))
    return Sizes(HEADS, count, described.inputs(at))


def executions(first: float, repeats: int) -> int:
    """How often a point is run whose first run takes so many seconds, that one included."""
    return 1 if first > LONG else 1 + min(repeats, RUNS)


def seconds(experiment: Experiment, along: Along, costs: CostsAt) -> float:
    """Seconds to expect of a whole scan."""
    total = 0.0
    for path in experiment.paths:
        for count in counts(experiment, along):
            once = predicted_seconds(path, sizes(experiment, along, count), costs(count))
            if once > experiment.cutoff:
                break
            total += once * executions(once, experiment.repeats)
    return total


def between(low: Costs, high: Costs, share: float) -> Costs:
    """The costs that lie at a share from 0 to 1 of the way from one to the other."""
    ends = ((getattr(low, each.name), getattr(high, each.name)) for each in fields(Costs))
    return Costs(*(a + share * (b - a) for a, b in ends))


def reference(paths: Iterable[str]) -> str | None:
    """The naive path that the others are held against; None where there is none."""
    given = set(paths)
    return next((path for path in NAIVE if path in given), None)


def faster(own: float, other: float) -> bool:
    """Whether predicted seconds are less than others by more than rounding: the same passes are
    the same time."""
    return own < other * (1 - _ROUNDING)


def break_even(
    paths: Sequence[str], counts: Sequence[int], predicted: Callable[[str, int], float]
) -> BreakEven | None:
    """The first count at which a path overtakes the naive reference; a peer does not count.

    Else the last one before the reference overtakes it; None where neither happens between the
    first and the last of `counts`, or no naive path is there to compare with. A path that is ahead
    at two neighbours of `counts` is taken to be ahead between them.
    """
    naive = reference(paths)
    if naive is None:
        return None

    @cache
    def ahead(path: str, count: int) -> bool:
        return faster(predicted(path, count), predicted(naive, count))

    found = []
    for path in paths:
        if path in (*NAIVE, PEER):
            continue
        first = ahead(path, counts[0])
        for low, high in pairwise(counts):
            if ahead(path, high) != first:
                steps = range(low, high + 1)
                turned = bisect_left(steps, True, key=lambda n: ahead(path, n) != first)
                found.append((first, steps[turned] - first, path))
                break
    if not found:
        return None
    loses, count, path = min(found, key=lambda each: each[:2])
    return BreakEven(path=path, reference=naive, count=count, side="up to" if loses else "from")
