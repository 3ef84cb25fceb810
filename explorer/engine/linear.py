"""y as a linear function of x, as far as passes through f have told: J = dy/dx and products of it.

What was once sent through f answers for every later cotangent in its span, at the cost of a
small matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from explorer.engine import rank
from explorer.engine.structure import Layout
from explorer.engine.trunk import Graph, without_autocast


class Linear:
    """The products `rows` of some directions of y with J, and the graph for others.

    Args:
        layout: how the m entries of y lie as one vector.
        rows: for each tensor of x the products `(r, *shape)`.
        basis: the directions `(r, m)` of the rows, orthonormal; None where the rows are J itself,
            one for each entry of y.
        graph: for further products; None where it was not kept.
    """

    def __init__(
        self,
        layout: Layout,
        rows: Sequence[Tensor] | None = None,
        basis: Tensor | None = None,
        graph: Graph | None = None,
    ) -> None:
        self.layout = layout
        self.rows = rows
        self.basis = basis
        self._graph = graph

    @property
    def complete(self) -> bool:
        """Whether J is known, so that no cotangent needs a pass."""
        return self.rows is not None and self.basis is None

    def products(self, cotangents: Tensor) -> list[Tensor]:
        """c·J for each row c of `(K, m)` and each tensor of x: `(K, *shape)`, in the wider dtype.

        The rows must lie in the basis.
        """
        assert self.rows is not None
        with without_autocast(self.layout.device.type):
            coefficients = cotangents
            if self.basis is not None:
                coefficients = cotangents @ self.basis.to(cotangents).mT
            return [combined(coefficients, rows) for rows in self.rows]

    def further(self, cotangents: Tensor, missing: str) -> list[Tensor]:
        """The same for any cotangents: those that lie outside of what is known are sent back.

        Raises:
            RuntimeError: that is needed, and the graph was not kept; `missing` is the message.
        """
        if self.complete:
            return self.products(cotangents)
        scaled = rank.scaled(cotangents)
        known = [self._spans(row) for row in scaled.unit]
        rows = []
        for row, cotangent in enumerate(cotangents):
            if known[row]:
                rows.append([each[0] for each in self.products(cotangent[None])])
            elif self._graph is None:
                raise RuntimeError(missing)
            else:
                rows.append(sent_back(self._graph, scaled, row, keep=True))
        return [torch.stack(each) for each in zip(*rows, strict=True)]

    def _spans(self, unit: Tensor) -> bool:
        """Whether a cotangent of norm 1, or zero, lies in the basis but for rounding."""
        if not unit.isfinite().all():
            return False
        if self.basis is None or self.rows is None:
            return not unit.any()
        basis = self.basis.to(unit)
        missing = unit - (basis @ unit) @ basis
        limit = rank.LIMIT * torch.finfo(unit.dtype).eps * unit.numel() ** 0.5
        return bool(torch.linalg.vector_norm(missing) <= limit)


def sent_back(graph: Graph, scaled: rank.Scaled, row: int, *, keep: bool) -> list[Tensor]:
    """One cotangent back through f at norm 1, and the result back at its size."""
    found = graph.back(scaled.unit[row], keep=keep)
    norm = scaled.norms[row]
    return [restored(each, norm) for each in found]


def restored(product: Tensor, norm: Tensor, *, own: bool = False) -> Tensor:
    """The product at its size: in the wider dtype, or a small product of a large cotangent would
    overflow on the way.

    With `own` the product is no one else's, and may be written over: it can be as large as a
    network.
    """
    wide = product.to(torch.promote_types(product.dtype, norm.dtype))
    scale = norm.reshape(norm.shape + (1,) * (product.ndim - norm.ndim)).to(product.device)
    return wide.mul_(scale) if own else wide * scale


def combined(coefficients: Tensor, rows: Tensor) -> Tensor:
    """Σ_j a_kj · w_j, `(K, *shape)`, for coefficients `(K, r)` and rows `(r, *shape)`.

    In the wider dtype: narrowed first, a large coefficient of a small row would overflow. Of
    coefficients that are not finite an exact 0 in the rows stays 0: f has no edge there for them
    to go along.
    """
    wide = torch.promote_types(coefficients.dtype, rows.dtype)
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:])).to(wide)
    coefficients = coefficients.to(flat.device, wide)
    found = coefficients @ flat
    if not found.isfinite().all():
        finite = coefficients.isfinite().all(dim=1)
        found = torch.where(finite[:, None], coefficients, 0.0) @ flat
        for row in (~finite).nonzero().flatten().tolist():
            found[row] = torch.where(flat == 0, 0.0, coefficients[row][:, None] * flat).sum(0)
    return found.reshape((len(coefficients), *rows.shape[1:]))


def chain(cotangent: Tensor, jacobian: Tensor) -> Tensor:
    """dz/dx, Σ_j c_j · J_jk over the entries j of y, from c = dz/dy and J = dy/dx.

    `cotangent` has y's shape, `jacobian` the shape `(*y.shape, *x.shape)` on x's device. The
    result has x's shape and the wider dtype of the two: narrowed first, a large cotangent that
    meets a small J would overflow. Where J is exactly 0 its product is 0 even with an infinite
    cotangent: f has no edge there for it to go along.
    """
    layout = Layout([cotangent])
    row = layout.rows([[cotangent]])
    shape = jacobian.shape[cotangent.ndim :]
    (found,) = Linear(layout, [jacobian.reshape((layout.size, *shape))]).products(row)
    return found[0]
