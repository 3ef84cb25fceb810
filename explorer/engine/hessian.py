"""The product of a Hessian with a vector, and the extreme eigenvalues that come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import optree
import torch
from torch import Tensor
from torch.autograd import forward_ad

from explorer.engine import krylov
from explorer.engine.heads import scalar
from explorer.engine.paths import cut
from explorer.engine.spectrum import (
    NoSecondDerivative,
    adjoint,
    first_line,
    require_entries,
    require_rtol,
    tried,
    unconverged,
)
from explorer.engine.structure import Inputs, Layout
from explorer.engine.trunk import (
    Counter,
    Graph,
    SlowFunction,
    dual_level,
    heeding_no_grad,
    without_autocast,
)


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
        # No create_graph: for that a once_differentiable backward drops the tangents.
        with without_autocast(z.device.type):
            first = torch.autograd.grad(z, duals, allow_unused=True, materialize_grads=True)
        tangents = [unpack_dual(each)[1] for each in first]
        return inputs.build(
            [
                torch.zeros_like(tensor) if tangent is None else tangent.detach()
                for tensor, tangent in zip(inputs.tensors, tangents, strict=True)
            ]
        )


@dataclass(frozen=True)
class HessianEigenvalues:
    """The extreme eigenvalues of H = ∂²f/∂x².

    Attributes:
        largest: NaN, as all three, where a product with H is not finite.
        error: the larger of the two errors, as they are estimated.
        products: the products H·v that were taken.
        notes: what to mind, as sentences.
    """

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
    """The largest and the smallest eigenvalue of the Hessian of a scalar f at x, by Lanczos.

    f is run once; a product H·v differentiates the gradient along v. Where the gradient cannot be
    differentiated, `hvp` is taken, with a run of f each, and a note says so.

        >>> x = torch.tensor([1.0, -2.0], dtype=torch.float64)
        >>> found = hessian_eigenvalues(lambda x: (x**3).sum(), x)  # of diag(6x)
        >>> round(found.smallest, 9), round(found.largest, 9)
        (-12.0, 6.0)

    Args:
        f: takes x to one real number.
        x: a real floating tensor, several in a structure, or a module for its parameters.
        rtol: the errors of both relative to the larger of their absolute values.
        proceed: asked after each product; when False it ends with what it has.

    Raises:
        TypeError, ValueError: as `hvp` does; or `rtol` is no number above 0 and below 1.
        RuntimeError: f can neither be differentiated twice nor in forward mode.

    Warns where the error is above rtol after 300 products.
    """
    require_rtol(rtol)
    with torch.inference_mode(False), torch.enable_grad():
        hessian = _Hessian(f, x)
        found = tried(hessian, lambda: krylov.extremes(hessian, rtol, proceed))
        notes = (*hessian.notes, *unconverged(found.converged, rtol, proceed))
        return HessianEigenvalues(
            found.largest, found.smallest, found.error, hessian.products, notes
        )


class _Hessian:
    """H = ∂²f/∂x² as an operator; x lies end to end as one vector."""

    def __init__(self, f: Callable[[Any], Tensor], x: Any) -> None:
        self._x = x
        self._inputs = Inputs.of(x, "x")
        if any(each.is_complex() for each in self._inputs.tensors):
            raise ValueError("`x` is complex. Give its real and imaginary parts.")
        require_entries(sum(each.numel() for each in self._inputs.tensors), "`x` has")
        self._own = cut(self._inputs.tensors, False)
        counter = Counter()
        function = SlowFunction(f, self._inputs, counter)
        y = function(self._own)
        z = scalar(y.build(y.tensors), "`f`")
        graph = Graph([z], self._own, counter, create_graph=True)
        self._first = graph.back(torch.ones(1, dtype=z.dtype, device=z.device), keep=True)
        varying = [each for each in self._first if each.requires_grad]
        graphs = [graph, Graph(varying, self._own, counter)] if varying else [graph]
        self._once = any(each.once_differentiable for each in graphs)
        self._layout = Layout(self._own)
        self.size, self.dtype = self._layout.size, self._layout.dtype
        self.device = z.device
        self.products = 0
        self._notes: list[str] = []
        self._function = function
        self._forward_mode = False
        self._eps = max(torch.finfo(each.dtype).eps for each in (*self._own, z))
        self._checked = False
        self._unchecked: tuple[Tensor, Tensor] | None = None  # v and H·v

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._function.notes, *self._notes)

    def times(self, v: Tensor) -> Tensor:
        self.products += 1
        product = self._times(v)
        if self._unchecked is not None:
            self._check(*self._unchecked, v, product)
        elif not self._checked:
            self._unchecked = v, product
        return product

    def _check(self, u: Tensor, along_u: Tensor, v: Tensor, along_v: Tensor) -> None:
        """Holds uᵀ·(H·v) against vᵀ·(H·u), once: what a person's own backward gives may be the
        gradient of no function, and its derivative not symmetric."""
        self._checked, self._unchecked = True, None
        if not adjoint(along_v, u, along_u, v, self._eps):
            self._notes.append(
                "The second derivative of f is not symmetric, so that no value here can be "
                "trusted: a backward of one's own in it may be wrong, or it rounds to few digits."
            )

    def _times(self, v: Tensor) -> Tensor:
        parts = self._layout.tensors(v)
        if self._forward_mode:
            structure = self._inputs.build(parts)
            try:
                found = hvp(self._function.repeated, self._x, structure)
            except RuntimeError as error:
                raise RuntimeError(
                    "`f` can neither be differentiated twice nor in forward mode "
                    f"({first_line(error)}), so there are no products H·v."
                ) from error
            return self._layout.rows([Inputs.of(found, "H·v").tensors])[0]
        if self._once:
            raise NoSecondDerivative("a function in it can be differentiated once only")
        pairs = [(one, part) for one, part in zip(self._first, parts, strict=True)
                 if one.requires_grad]  # fmt: skip
        if not pairs:  # the gradient is constant, or its derivative is not known
            raise NoSecondDerivative("it does not depend on x")
        gradients, vectors = zip(*pairs, strict=True)
        try:
            with without_autocast(self.device.type):
                found = torch.autograd.grad(
                    gradients, self._own, vectors, retain_graph=True, allow_unused=True
                )
        except RuntimeError as error:  # NotImplementedError is one
            raise NoSecondDerivative(first_line(error)) from error
        return self._layout.rows([found])[0]

    def go_forward(self, why: str) -> None:
        """From now on H·v is taken by `hvp`."""
        self._forward_mode = True
        self._checked, self._unchecked = False, None
        self._notes.append(
            "H·v was taken in forward mode, with a run of f each, since the gradient of f cannot "
            f"be differentiated: {why}."
        )
