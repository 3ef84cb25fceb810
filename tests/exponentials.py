"""Matrices with hard exponentials, these exponentials to 70 digits, and a count of products."""

import math
from collections.abc import Iterator
from typing import Any

import mpmath
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

FAMILIES = ("random", "skew-Hermitian", "negative definite", "nilpotent", "Jordan blocks")
REACH = {torch.float32: 3.010066362817634, torch.float64: 1.090863719290036}


def member(family: str, n: int, norm: float, dtype: torch.dtype, seed: int = 0) -> Tensor:
    """A matrix of the family with this 1-norm."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(n, n, dtype=dtype, generator=generator)
    if family == "skew-Hermitian":
        a = a - a.mH
    elif family == "negative definite":
        a = -a @ a.mH
    elif family == "nilpotent":
        a = a.triu(1)
    elif family == "Jordan blocks":
        ones = torch.ones(n - 1, dtype=dtype)
        ones[n // 2] = 0
        a = torch.diag(ones, 1) + a[0, 0].sgn() * torch.eye(n, dtype=dtype)
    a = a / torch.linalg.matrix_norm(a, 1) * norm
    return a.resolve_conj()


def exact(a: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    """(exp(A), L(A, E)) rounded from 70 digits: exp(A + ε·E), with ε² = 0, by Taylor's series."""
    n = len(a)
    size = float(direction.abs().max()) or 1.0
    Pair = tuple[mpmath.matrix, mpmath.matrix]

    def times(one: Pair, other: Pair) -> Pair:
        return one[0] * other[0], one[0] * other[1] + one[1] * other[0]

    with mpmath.workdps(70):
        halvings = 8 + math.ceil(math.log2(2 + n * float(a.abs().max())))
        scaled = tuple(
            mpmath.matrix(each.tolist()) / mpmath.mpf(by) / mpmath.mpf(2) ** halvings
            for each, by in ((a, 1), (direction, size))
        )
        total = term = (mpmath.eye(n), mpmath.zeros(n))
        for k in range(1, 24):
            term = tuple(each / k for each in times(term, scaled))
            total = tuple(one + other for one, other in zip(total, term, strict=True))
        for _ in range(halvings):
            total = times(total, total)
        found = []
        for each, by in zip(total, (1, size), strict=True):
            rows = [[complex(entry) for entry in row] for row in (each * by).tolist()]
            rounded = torch.tensor(rows, dtype=torch.complex128)
            found.append(rounded if a.is_complex() else rounded.real)
        return found[0], found[1]


def squarings(a: Tensor) -> int:
    """The least s with max(‖A²‖₁^(1/2), ‖A³‖₁^(1/3)) / 2ˢ within the polynomial's reach."""
    powers = {k: torch.linalg.matrix_power(a, k) for k in (2, 3)}
    norm = max(torch.linalg.matrix_norm(power, 1).item() ** (1 / k) for k, power in powers.items())
    return max(0, math.ceil(math.log2(norm / REACH[a.dtype.to_real()])))


class Products(TorchDispatchMode):
    """Counts the products of matrices of size n that run in it, each of a batch for itself."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        found = operation(*args, **(kwargs or {}))
        name = operation.overloadpacket.__name__.rstrip("_")
        if name in ("mm", "bmm", "addmm", "baddbmm"):
            self.count += math.prod(found.shape[:-1]) // found.shape[-1]
        return found


class Live(TorchDispatchMode):
    """The most bytes of tensors that its operations made and that were there at one time."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self._storages: list[tuple[int, StorageWeakRef]] = []

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = {
            each.untyped_storage()._cdata
            for each in tree_leaves((args, kwargs))
            if isinstance(each, Tensor)
        }
        found = operation(*args, **(kwargs or {}))
        for each in tree_leaves(found):
            if isinstance(each, Tensor) and each.untyped_storage()._cdata not in given:
                storage = each.untyped_storage()
                self._storages.append((storage.nbytes(), StorageWeakRef(storage)))
        self._storages = [each for each in self._storages if not each[1].expired()]
        self.peak = max(self.peak, sum(size for size, _ in self._storages))
        return found


def cotangents(shape: tuple[int, ...], dtype: torch.dtype, count: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        yield torch.randn(shape, dtype=dtype, generator=generator)
