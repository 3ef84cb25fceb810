"""How far a gradient is from another, and what the exact one is.

Agreement between paths is not accuracy: two paths can agree and both be wrong, and disagree while
one is right. So each gradient is held against a naive path's and against the exact one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from explorer.engine.linear import chain
from explorer.functions.description import Exact


def relative_difference(value: Tensor, reference: Tensor) -> float:
    """‖value − reference‖₂ / ‖reference‖₂, in float64 on the CPU.

    0 where both are zero; NaN where either is not finite.
    """
    value, reference = _wide(value), _wide(reference)
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


def exact_gradient(head: Callable[[Tensor], Tensor], exact: Exact) -> Tensor:
    """dz/dx of a head at the exact y, through the exact dy/dx: float64, of x's shape."""
    y = exact.value.detach().requires_grad_()
    with torch.enable_grad():
        (cotangent,) = torch.autograd.grad(head(y), y)
    return chain(cotangent, exact.jacobian)


def _wide(tensor: Tensor) -> Tensor:
    wide: Tensor = tensor.detach().to("cpu", torch.float64)
    return wide
