"""The directions of y along which the heads depend on it: a basis of their cotangents.

With C the K cotangents as rows (K×m), of rank r, and V (r×m) an orthonormal basis of them,
C·J = (C·Vᵀ)·(V·J): r products with J in the place of K. (The singular value decomposition;
Golub and Van Loan, Matrix Computations, 2.4.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

LIMIT = 16.0
"""Times eps·√m: how far from a basis a row of norm 1 may lie and be counted as in it.

That is for the rounding of the decomposition, with eps of the dtype that it is taken in; rows of
a half precision are rounded by its spacing themselves, each entry by a part of its own size.
"""


@dataclass(frozen=True)
class Scaled:
    """Cotangents at norm 1: `c_k = norms[k] · unit[k]`.

    f's backward need not be linear in floating point (that of a matrix exponential scales its
    argument by the size of the cotangent), and is best at norm 1.

    Attributes:
        unit: the rows `(K, m)`; those of norm 0 or not finite are as they were.
        norms: 2-norms `(K,)`, 1 for the rows that are as they were.
        regular: the numbers of the rows that are finite and not zero.
        odd: the numbers of the rows that are not finite.
    """

    unit: Tensor
    norms: Tensor
    regular: list[int]
    odd: list[int]


def scaled(cotangents: Tensor) -> Scaled:
    """The cotangents `(K, m)` at norm 1. The norms are constants to a later derivative."""
    with torch.no_grad():
        norms = torch.linalg.vector_norm(cotangents, dim=1)
        seen = norms.tolist()
        limits = torch.finfo(norms.dtype)
        # Beyond, the squares under the root overflow, or lose digits.
        if all(limits.tiny**0.5 / limits.eps < norm < limits.max**0.5 for norm in seen):
            with torch.enable_grad():
                unit = cotangents / norms[:, None]
            return Scaled(unit, norms, list(range(len(seen))), [])
        largest = cotangents.abs().amax(dim=1) if cotangents.shape[1] else norms
        safe = torch.where(largest > 0, largest, 1.0)
        norms = largest * torch.linalg.vector_norm(cotangents / safe[:, None], dim=1)
        seen = norms.tolist()
        regular = [row for row, norm in enumerate(seen) if 0 < norm < math.inf]
        odd = [row for row, norm in enumerate(seen) if not norm < math.inf]
        norms = torch.where((norms > 0) & norms.isfinite(), norms, 1.0)
    return Scaled(cotangents / norms[:, None], norms, regular, odd)


def directions(unit: Tensor, digits: float) -> Tensor | None:
    """An orthonormal basis `(r, m)` of the rows `(K, m)` of norm 1, with r < min(K, m).

    r is the least with which every single row lies in the basis but for a part of the size of
    rounding: `LIMIT`·eps·√m, or `digits` if that is more, the spacing of the numbers at 1 in the
    dtype that the rows were computed in. None where there is no such r.
    """
    heads, outputs = unit.shape
    if min(heads, outputs) < 2:
        return None
    if _independent(unit):
        return None
    limit = max(LIMIT * torch.finfo(unit.dtype).eps * outputs**0.5, digits)
    left, sizes, right = _decomposed(unit)
    # The squared distance of row k from the first r directions is Σ_{j≥r} (U_kj·S_j)².
    beyond = ((left * sizes) ** 2).flip(1).cumsum(1).flip(1)
    rank = int((beyond.amax(0).sqrt() > limit).sum())
    if rank >= min(heads, outputs):
        return None
    basis = right[:rank]
    missing = unit - (unit @ basis.mT) @ basis
    found = torch.linalg.vector_norm(missing, dim=1).amax()
    return basis if found <= 2 * limit else None


def _independent(rows: Tensor) -> bool:
    """Whether the rows, or the columns where they are fewer, are far from dependent.

    Told by their Gram matrix alone, whose least eigenvalue is the square of the least singular
    value: far cheaper than a decomposition, but blind below the square root of the precision.
    """
    gram = rows @ rows.mT if len(rows) <= rows.shape[1] else rows.mT @ rows
    least = 1e3 * len(gram) * torch.finfo(gram.dtype).eps
    identity = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    return bool(torch.linalg.cholesky_ex(gram - least * identity).info == 0)


def _decomposed(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The thin singular value decomposition; of a wide matrix through its QR, which is faster."""
    heads, outputs = rows.shape
    if outputs <= 2 * heads:
        left, sizes, right = torch.linalg.svd(rows, full_matrices=False)
        return left, sizes, right
    tall, square = torch.linalg.qr(rows.mT)
    left, sizes, right = torch.linalg.svd(square.mT, full_matrices=False)
    return left, sizes, right @ tall.mT


def seconds(heads: int, outputs: int) -> float:
    """A rough guess of what `directions` takes on a few cores: some ten operations an entry of
    the larger side for each pair of the smaller, at 1e10 a second, and the calls."""
    least = min(heads, outputs)
    return 1e-4 + 1e-9 * heads * outputs * least
