"""How far a gradient is from another, and what the exact one is.

Agreement between paths is not accuracy: two paths can agree and both be wrong, and disagree while
one is right. So each gradient is held against a naive path's and against the exact one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.engine.linear import chain
from explorer.functions.description import Exact
from explorer.heads import Head
from explorer.jacobian import head_gradients


def relative_difference(value: Tensor, reference: Tensor) -> float:
    """‖value − reference‖₂ / ‖reference‖₂, in float64 on the CPU.

    0 where both are zero; NaN where either is not finite.
    """
    value, reference = wide(value), wide(reference)
    if not (value.isfinite().all() and reference.isfinite().all()):
        return float("nan")
    difference = value - reference
    if not difference.any():
        return 0.0
    if not reference.any():
        return float("inf")
    largest = reference.abs().max()  # or the squares of a norm overflow
    norm = torch.linalg.vector_norm
    return float(norm(difference / largest) / norm(reference / largest))


def exact_gradient(head: Head, exact: Exact, x: Tensor) -> Tensor:
    """dz/dx of a head at the exact y, through the exact dy/dx: float64, of x's shape."""
    by_y, by_x = head_gradients(head, exact.value, wide(x))
    through_y = chain(by_y, exact.jacobian)
    return through_y if by_x is None else through_y + by_x


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float64 on the CPU, apart from any graph."""
    found: Tensor = tensor.detach().to("cpu", torch.float64)
    return found
