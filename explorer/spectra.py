"""What a run takes of its Jacobians, by which way, and how long it is expected to take.

Plain arithmetic on sizes and seconds; nothing here imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from explorer.engine.plan import Costs, Sizes, predicted_seconds
from explorer.experiment import Experiment
from explorer.functions.description import BANDWIDTH, Setting, decomposition_seconds
from explorer.heads import count

LEADING = 12
"""Singular values that a Result lists."""

CURVED = 16
"""Heads whose curvature is taken; it goes through f for each apart."""

SIZES = 8
"""Sizes at which the norms are taken, the experiment's own among them."""

LINES = 6
"""Heads whose norms are taken at every size."""

FEW = 4
"""Backward passes that are too few for a norm from products; for fewer none is begun."""

_PAIRS = 30  # of products J·v and Jᵀ·u that a norm takes: as many as there is a basis for, at most
_PAIR = 3.0  # backward passes that one takes: J·v differentiates a backward pass
_CURVED_PRODUCT = 4.0  # backward passes of one product with a Hessian

WAIT = 1.0
"""Seconds within which all singular values are taken, and not the largest alone."""

CostsAt = Callable[[int], Costs]
"""The costs of one pass through f at a size."""


@dataclass(frozen=True)
class Way:
    """How the norm of an m×n Jacobian is found, and the seconds that this is expected to take:
    by all singular values of the matrix (`dense`), or by products alone."""

    dense: bool
    seconds: float


def way(
    outputs: int,
    inputs: int,
    costs: Costs,
    *,
    formed: bool = False,
    fits: bool = True,
    wait: float = WAIT,
    left: float = math.inf,
) -> Way:
    """The quicker way; the dense one, which tells more, if it takes no longer than `wait` too.

    `formed` says whether the matrix is there already, else it takes a backward pass an entry of
    y; `fits` says whether there is room for it, and `left` how many seconds there are.
    """
    dense = decomposition_seconds(outputs, inputs)
    pairs = min(_PAIRS, outputs, inputs)
    if formed:  # the products are with the matrix then
        products = pairs * 2 * 8.0 * outputs * inputs / BANDWIDTH
    else:
        dense += predicted_seconds("reuse", Sizes(0, outputs, inputs), costs)
        products = costs.forward + pairs * _PAIR * costs.backward
    if (formed or fits) and dense <= min(max(products, wait), left):
        return Way(True, dense)
    return Way(False, products)


def curvature_seconds(heads: int, inputs: int, costs: Costs) -> float:
    """Of the extreme eigenvalues of the heads' Hessians."""
    products = min(2 * _PAIRS, inputs) * _CURVED_PRODUCT * costs.backward
    return min(heads, CURVED) * (costs.forward + products)


def sizes(experiment: Experiment) -> tuple[int, ...]:
    """At most `SIZES` sizes up to the experiment's, even in their logarithm.

    Empty where the experiment's is the smallest that there is.
    """
    low, high = int(experiment.described.size.minimum), experiment.size
    if low >= high:
        return ()
    first = max(1, low)
    steps = (first * (high / first) ** (step / (SIZES - 1)) for step in range(SIZES))
    return tuple(sorted({max(low, round(size)) for size in steps} | {high}))


def setting(experiment: Experiment, size: int) -> Setting:
    """What f is built from at a size."""
    return replace(experiment.setting, size=size)


def sizes_seconds(experiment: Experiment, every: Iterable[int], costs: CostsAt) -> float:
    """Of the norms at some sizes; those at the experiment's own are there."""
    return sum(
        _size_seconds(experiment, size, costs(size)) for size in every if size != experiment.size
    )


def _size_seconds(experiment: Experiment, size: int, costs: Costs) -> float:
    described, at = experiment.described, setting(experiment, size)
    outputs, inputs = described.outputs(at), described.inputs(at)
    heads = min(count(experiment.heads), LINES)
    gradients = predicted_seconds("auto", Sizes(heads, outputs, inputs), costs)
    return costs.forward + gradients + way(outputs, inputs, costs, wait=0).seconds
