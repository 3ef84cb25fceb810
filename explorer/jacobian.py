"""Spectral norms of Jacobians that are there as matrices."""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.heads import Head


def spectral_norm(jacobian: Tensor, outputs: int) -> float:
    """The largest singular value of a Jacobian of shape `(*y.shape, *x.shape)`.

    `outputs` is the number of entries of y. NaN where an entry is not finite; 0 for no entries.
    """
    if jacobian.numel() == 0:
        return 0.0
    matrix = jacobian.detach().reshape(outputs, -1)
    if not matrix.isfinite().all():
        return float("nan")
    largest = matrix.abs().max().item()
    if largest == 0:
        return 0.0
    scaled = matrix / largest  # or the squares overflow, in float32 from 2e19
    if min(matrix.shape) == 1:  # one row or column: its 2-norm, with no decomposition
        return float(largest * torch.linalg.vector_norm(scaled))
    return float(largest * torch.linalg.svdvals(scaled)[0])


def head_gradients(head: Head, y: Tensor, x: Tensor) -> tuple[Tensor, Tensor | None]:
    """(dg/dy of y's shape, ∂g/∂x of x's with y held fixed, None of a head that is not given x)."""
    inputs = [y.detach().requires_grad_()]
    if head.takes_x:
        inputs.append(x.detach().requires_grad_())
    with torch.enable_grad():
        z = head.apply(*inputs)
        if not z.requires_grad:
            return torch.zeros_like(y), None
        found = torch.autograd.grad(z, inputs, materialize_grads=True)
    return found[0], found[1] if head.takes_x else None
