"""Results that differ by a known factor, for what compares them."""

from __future__ import annotations

from typing import Any

from explorer.result import HeadResult, PathResult, Result
from tests.results import good, head, result, seconds, timed

SPREAD = (0.98, 0.99, 1.0, 1.01, 1.02)
"""The runs of a path, over their median."""


def paths(factor: float = 1.0, spread: tuple[float, ...] = SPREAD) -> dict[str, PathResult]:
    """recompute at 10 s and reuse at 1 s, times a factor."""
    return {
        "recompute": timed(*(10 * factor * each for each in spread), forward=10, backward=10),
        "reuse": timed(*(factor * each for each in spread)),
    }


def square(gradient: float = 2.0) -> dict[str, HeadResult]:
    """The head y², right by both paths."""
    right = {"recompute": 1e-13, "reuse": 1e-13}
    numbers = {name: (gradient,) for name in right}
    return {"square": head(dict.fromkeys(right, 0.0), right, gradient=numbers)}


def measured(factor: float = 1.0, gradient: float = 2.0, **more: Any) -> Result:
    """A Result whose paths take a factor of the time of the plain one."""
    return result(paths(factor), square(gradient), **more)


def elsewhere(factor: float = 0.4, **changes: Any) -> Result:
    """The same on another machine."""
    seen = measured(factor, device_name="NVIDIA H200", device="cuda")
    away = {"host": "there", "threads": 16, **changes}
    return seen.model_copy(update={"environment": seen.environment.model_copy(update=away)})


def with_runs(*runs: float) -> Result:
    """The good Result with these runs of reuse."""
    plain = good()
    own = plain.paths["reuse"].model_copy(update={"seconds": seconds(*runs)})
    return plain.model_copy(update={"paths": {**plain.paths, "reuse": own}})
