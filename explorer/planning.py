"""What each path will take, before it runs: passes through f and, from the cost of one, time.

Plain arithmetic on counts; nothing here imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass

PATHS: dict[str, str] = {
    "recompute": "naive: f again for every head, and a backward through it",
    "retain_graph": "naive: f once, then a backward through it for every head",
    "reuse": "dy/dx once, then the chain rule with each head's own gradient",
}
"""The paths by name, each with the words that say what it does."""

NAIVE = ("recompute", "retain_graph")
"""The naive paths, in the order in which they serve as the reference of an agreement."""


@dataclass(frozen=True)
class PassCost:
    """Seconds of one forward and of one backward pass through f."""

    forward: float
    backward: float


def expected_passes(path: str, heads: int, outputs: int) -> tuple[int, int]:
    """(forward, backward) passes through f of a path for K heads and m entries of y."""
    return {
        "recompute": (heads, heads),
        "retain_graph": (1, heads),
        "reuse": (1, outputs),
    }[path]


def predicted_seconds(path: str, heads: int, outputs: int, cost: PassCost) -> float:
    """Seconds of one execution of a path, as its passes through f take them.

    The heads are cheap by definition and left out.
    """
    forward, backward = expected_passes(path, heads, outputs)
    return forward * cost.forward + backward * cost.backward
