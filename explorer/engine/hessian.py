"""The product of a Hessian with a vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import optree
import torch
from torch import Tensor
from torch.autograd import forward_ad

from explorer.engine.heads import scalar
from explorer.engine.structure import Inputs
from explorer.engine.trunk import dual_level, heeding_no_grad


def hvp(f: Callable[[Any], Tensor], x: Any, v: Any) -> Any:
    """H·v with H = ∂²f/∂x² of a scalar f, forward mode over reverse: no matrix is formed.

    It takes a forward and a backward pass through f, each with the tangent v. (The product v·∇f
    that a vector-Jacobian product of a scalar f gives is no Hessian–vector product.)

        >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64)
        >>> hvp(lambda x: (x**3).sum(), x, torch.ones_like(x)).tolist()  # 6x
        [6.0, 12.0]

    Args:
        f: takes x to one real number.
        x: a real floating tensor of any shape, or several in a structure; a module stands for its
            parameters that require grad.
        v: the vector, in x's structure and shapes; for a module, a dict by parameter name.

    Returns:
        H·v in x's structure and dtypes.

    Raises:
        TypeError: `x` or `v` is no floating tensor, or f gives no real number.
        ValueError: `v` has other shapes than `x`, x is complex, or f gives more than one number
            or one that does not depend on x.
        RuntimeError: some operation of f has no forward mode.

    Pearlmutter, Fast exact multiplication by the Hessian, Neural Computation 6 (1994).
    """
    inputs, vector = Inputs.of(x, "x"), Inputs.of(v, "v")
    structure, other = (
        optree.tree_structure(each.build(each.tensors)) for each in (inputs, vector)
    )
    if structure != other:
        raise ValueError(f"`v` has the structure {other}. Give it that of `x`, {structure}.")
    shapes, given = (
        [tuple(each.shape) for each in tensors] for tensors in (inputs.tensors, vector.tensors)
    )
    if shapes != given:
        raise ValueError(
            f"`v` has the shapes {given}, and `x` has {shapes}. Give `v` those of `x`."
        )
    if any(each.is_complex() for each in inputs.tensors + vector.tensors):
        raise ValueError("`x` or `v` is complex. Give their real and imaginary parts.")
    with torch.inference_mode(False), torch.enable_grad(), dual_level():
        make_dual: Callable[[Tensor, Tensor], Tensor] = forward_ad.make_dual
        unpack_dual: Callable[[Tensor], tuple[Tensor, Tensor | None]] = forward_ad.unpack_dual
        duals = [
            make_dual(one.detach().clone().requires_grad_(), other.detach().to(one))
            for one, other in zip(inputs.tensors, vector.tensors, strict=True)
        ]
        with heeding_no_grad():
            z = scalar(inputs.call(f, duals), "`f`")
        if not z.requires_grad:
            raise ValueError("`f` gives a number that does not depend on `x`.")
        first = torch.autograd.grad(
            z, duals, create_graph=True, allow_unused=True, materialize_grads=True
        )
        tangents = [unpack_dual(each)[1] for each in first]
        return inputs.build(
            [
                torch.zeros_like(tensor) if tangent is None else tangent.detach()
                for tensor, tangent in zip(inputs.tensors, tangents, strict=True)
            ]
        )


@dataclass(frozen=True)
class HessianEigenvalues:
    """The extreme eigenvalues of H = ∂²f/∂x², the larger of their error estimates, and the
    products H·v that were taken. NaN where a product is not finite."""

    largest: float
    smallest: float
    error: float
    products: int
    notes: tuple[str, ...] = ()


def hessian_eigenvalues(
    f: Callable[[Any], Tensor],
    x: Any,
    *,
    rtol: float = 1e-6,
    proceed: Callable[[], bool] = lambda: True,
) -> HessianEigenvalues:
    """The largest and the smallest eigenvalue of the Hessian of a scalar f at x; f is run once."""
    raise NotImplementedError
