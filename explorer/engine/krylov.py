"""The leading singular values, and the extreme eigenvalues, of an operator of which products with
vectors are all that is known.

Golub and Kahan's bidiagonalisation: with orthonormal V and U, J·V_q = U_q·B_q for an upper
bidiagonal B_q, whose singular values approach those of J from below, the largest first. Lanczos'
tridiagonalisation is the same for a symmetric operator. Every new vector is orthogonalised
against all before it, twice; without that, rounding finds the same value again and again.

(Golub and Kahan, SIAM Journal on Numerical Analysis 2 (1965); Golub and Van Loan, Matrix
Computations, 10.1 and 10.4. Within the residual ρ of its vector there is a value: Parlett, The
Symmetric Eigenvalue Problem, 4.5. The sharper ρ²/gap needs the gap to the nearest other value, and
two close ones are seen as one, far from others, until ρ is less than what is between them.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

_MOST = 300  # pairs of products after which an iteration ends with what it has
_ROOM = 1_000_000_000  # bytes of basis vectors with which it does
_ROUGH = 1e-2  # relative error at which a value counts as less than one so much larger
_LOOK = 40  # pairs up to which each is looked at; up to twice as many every second, and so on


class Vectors(Protocol):
    """What vectors an operator takes and gives."""

    dtype: torch.dtype
    device: torch.device


class Operator(Vectors, Protocol):
    """A real m×n matrix J by its products.

    `rounding` is what a product with a vector of norm 1 may be wrong by, beyond what its own size
    tells.
    """

    rows: int
    columns: int
    rounding: float

    def times(self, v: Tensor) -> Tensor:
        """J·v `(m,)`."""

    def transposed_times(self, u: Tensor) -> Tensor:
        """Jᵀ·u `(n,)`."""


class Symmetric(Vectors, Protocol):
    """A real symmetric matrix by its products."""

    size: int

    def times(self, v: Tensor) -> Tensor:
        """H·v `(size,)`."""


@dataclass(frozen=True)
class Triple:
    """A singular value with the estimate of its error, and unit vectors with J·v ≈ value·u."""

    value: float
    error: float
    v: Tensor
    u: Tensor


@dataclass(frozen=True)
class Found:
    """Triples from the largest value: fewer than asked for where all others are zero.

    `converged` says whether all are within the tolerance; `finite` is False where a product was
    not, and then there are no triples.
    """

    triples: list[Triple]
    converged: bool = True
    finite: bool = True


@dataclass(frozen=True)
class Extremes:
    """The extreme eigenvalues and the larger of their error estimates; NaN where a product was."""

    smallest: float
    largest: float
    error: float
    converged: bool = True


class Basis:
    """Orthonormal vectors of one length, which grow in number behind the first, `known` ones."""

    def __init__(self, size: int, like: Vectors, known: Sequence[Tensor] = ()) -> None:
        room = len(known) + 16
        self._rows = torch.empty(room, size, dtype=like.dtype, device=like.device)
        self._known = len(known)
        self._count = 0
        for vector in known:
            self.append(vector)

    def append(self, vector: Tensor) -> None:
        if self._count == len(self._rows):
            self._rows = torch.cat([self._rows, torch.empty_like(self._rows)])
        self._rows[self._count] = vector
        self._count += 1

    def apart(self, vector: Tensor) -> Tensor:
        """What of a vector is orthogonal to all of these; once more for what rounding left."""
        vectors = self._rows[: self._count]
        for _ in range(2):
            vector = vector - vectors.mT @ (vectors @ vector)
        return vector

    def combined(self, coefficients: Tensor) -> Tensor:
        """Sums of the vectors behind the known, for each column of `(count, k)`: `(k, size)`."""
        return coefficients.to(self._rows).mT @ self._rows[self._known : self._count]


def singular(
    operator: Operator,
    k: int,
    rtol: float,
    proceed: Callable[[], bool],
    known: Sequence[Triple] = (),
) -> Found:
    """The k largest singular values of what an operator does beside `known` triples.

    A single start meets each repeated value once; further starts beside what is known find the
    others. With k or more `known` it may end as soon as no value can be among the k largest.
    """
    right = Basis(operator.columns, operator, [each.v for each in known])
    left = Basis(operator.rows, operator, [each.u for each in known])
    limit = sorted(each.value for each in known)[-k] if len(known) >= k else 0.0
    if len(known) >= min(operator.rows, operator.columns):
        return Found([])
    every = operator.columns - len(known)  # of fewer rows, one pair more than there are tells all
    most = min(every, _most(operator, operator.rows + operator.columns))
    # Another start each time: what is known lies in the span of the last.
    v = _unit(right.apart(random(operator.columns, operator, seed=len(known))))[0]
    diagonal: list[float] = []
    above: list[float] = []
    scale = max((each.value for each in known), default=0.0)
    top = 1.0 if known else 0.0
    while True:
        p = operator.times(v)
        if not scale:  # so that no square over- or underflows
            scale = float(p.abs().amax())
            if scale == 0:  # for a random v: J is zero
                return Found([])
            if not math.isfinite(scale):
                return Found([], finite=False)
        u, alpha = _unit(left.apart(p / scale))
        right.append(v)
        left.append(u)
        v, beta = _unit(right.apart(operator.transposed_times(u) / scale))
        # The one copy of a pair from the device.
        along, beyond = torch.stack([alpha, beta]).tolist()
        if not math.isfinite(along + beyond):
            return Found([], finite=False)
        diagonal.append(along)
        above.append(beyond)
        pairs, top = len(diagonal), max(top, along)
        nothing = 10 * _eps(operator) * top
        # In a first β, however small, may stand what is left of a value apart from all others.
        whole = pairs == every or along <= nothing or beyond <= (nothing if pairs > 1 else 0)
        end = whole or pairs >= most or not proceed()
        if not (end or pairs % (1 + pairs // _LOOK) == 0):
            continue
        lefts, values, rights = _decomposed(diagonal, above)
        # The vector (u, v)/√2 of the symmetric operator that maps (u, v) to (J·v, Jᵀ·u) has the
        # residual (0, β·last)/√2.
        errors = (0.0 if whole else above[-1]) * lefts[-1].abs() / math.sqrt(2)
        near = errors <= max(rtol, 10 * _eps(operator)) * values + operator.rounding / scale
        beneath = (errors <= _ROUGH * values) & (values * (1 + _ROUGH) < limit / scale)
        good = whole or (pairs >= max(k, 2) and bool((near | beneath)[:k].all()))
        if end or good:
            # The u of a zero is rounding, and would hide what lies along it from a later start.
            some = min(k, int((values > nothing).sum()))
            vs, us = right.combined(rights[:, :some]), left.combined(lefts[:, :some])
            found = zip((scale * values).tolist(), (scale * errors).tolist(), vs, us, strict=False)
            return Found([Triple(*each) for each in found], converged=good)


def extremes(operator: Symmetric, rtol: float, proceed: Callable[[], bool]) -> Extremes:
    """The smallest and the largest eigenvalue of a symmetric operator, to rtol of its norm."""
    basis = Basis(operator.size, operator)
    most = min(operator.size, _most(operator, operator.size))
    v = random(operator.size, operator)
    diagonal: list[float] = []
    beside: list[float] = []
    scale = 0.0
    before = False
    while True:
        w = operator.times(v)
        if not diagonal:
            scale = float(w.abs().amax())
            if scale == 0:
                return Extremes(0.0, 0.0, 0.0)
            if not math.isfinite(scale):
                return Extremes(math.nan, math.nan, math.nan)
        w = w / scale
        alpha = v @ w
        basis.append(v)
        v, beta = _unit(basis.apart(w))
        along, beyond = torch.stack([alpha, beta]).tolist()
        if not math.isfinite(along + beyond):
            return Extremes(math.nan, math.nan, math.nan)
        diagonal.append(along)
        beside.append(beyond)
        count = len(diagonal)
        largest = max(map(abs, (*diagonal, *beside[:-1])))
        nothing = 10 * _eps(operator) * largest if count > 1 else 0.0  # as for singular values
        whole = count == operator.size or beyond <= nothing
        end = whole or count >= most or not proceed()
        if not (end or count % (1 + count // _LOOK) == 0):
            continue
        values, vectors = torch.linalg.eigh(_tridiagonal(diagonal, beside))
        errors = ((0.0 if whole else beside[-1]) * vectors[-1].abs())[[0, -1]]
        allowed = max(rtol, 10 * _eps(operator)) * values.abs().max()
        near = bool((errors <= allowed).all())
        good, before = whole or (near and before), near
        if end or good:
            low, high = (scale * values[[0, -1]]).tolist()
            return Extremes(low, high, scale * float(errors.max()), converged=good)


def random(size: int, like: Vectors, seed: int = 0) -> Tensor:
    """A vector of norm 1, the same each time."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(size, generator=generator, dtype=torch.float64)
    return drawn.div_(torch.linalg.vector_norm(drawn)).to(like.device, like.dtype)


def _unit(vector: Tensor) -> tuple[Tensor, Tensor]:
    """(the vector at norm 1, its norm); a vector of zeros stays one."""
    norm = torch.linalg.vector_norm(vector)
    return vector / torch.where(norm > 0, norm, 1.0), norm


def _eps(vectors: Vectors) -> float:
    return torch.finfo(vectors.dtype).eps


def _most(vectors: Vectors, size: int) -> int:
    """How many pairs of products there is time and room for, of vectors of so many numbers."""
    item = torch.finfo(vectors.dtype).bits // 8
    return max(2, min(_MOST, _ROOM // (size * item)))


def _decomposed(diagonal: list[float], above: list[float]) -> tuple[Tensor, Tensor, Tensor]:
    """(left vectors, values, right vectors as columns) of the bidiagonal matrix."""
    matrix = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
    matrix += torch.diag(torch.tensor(above[:-1], dtype=torch.float64), 1)
    lefts, values, rights = torch.linalg.svd(matrix)
    return lefts, values, rights.mT


def _tridiagonal(diagonal: list[float], beside: list[float]) -> Tensor:
    rest = torch.diag(torch.tensor(beside[:-1], dtype=torch.float64), 1)
    return torch.diag(torch.tensor(diagonal, dtype=torch.float64)) + rest + rest.mT
