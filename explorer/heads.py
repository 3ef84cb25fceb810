"""The heads g: cheap functions of y, each to one number; elementwise ones are summed.

A head's description is plain data and imports no torch: the formulas are tensor methods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def _norm(y: Tensor) -> Tensor:
    import torch

    norm: Tensor = torch.linalg.vector_norm(y)
    return norm


@dataclass(frozen=True)
class Head:
    """A head by its name, formula and domain; calling it takes y of any shape to a scalar.

    `inside` is True for each entry of y in the domain, None where every real y is.
    """

    name: str
    formula: str
    apply: Callable[[Tensor], Tensor]
    domain: str = "every real y"
    inside: Callable[[Tensor], Tensor] | None = None

    def __call__(self, y: Tensor) -> Tensor:
        return self.apply(y)


HEADS: dict[str, Head] = {
    head.name: head
    for head in (
        Head("square", "Σ y²", lambda y: (y * y).sum()),
        Head("sqrt", "Σ √y", lambda y: y.sqrt().sum(), "y ≥ 0", lambda y: y >= 0),
        Head("log", "Σ log y", lambda y: y.log().sum(), "y > 0", lambda y: y > 0),
        Head("exp", "Σ exp y", lambda y: y.exp().sum()),
        Head("sin", "Σ sin y", lambda y: y.sin().sum()),
        Head("norm", "‖y‖₂", _norm),
        Head("mean", "mean of y", lambda y: y.mean()),
        Head("logsumexp", "log Σ exp y", lambda y: y.flatten().logsumexp(0)),
    )
}
