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
    """(exp(A), L(A, E)) rounded from 70 digits, the blocks of the exponential of [[A, E], [0, A]].

    (Najfeld and Havel, Derivatives of the matrix exponential and their computation, 1995.)
    """
    n = len(a)
    size = float(direction.abs().max()) or 1.0
    with mpmath.workdps(70):
        block = mpmath.zeros(2 * n)
        for i in range(n):
            for j in range(n):
                block[i, j] = block[n + i, n + j] = mpmath.mpmathify(a[i, j].item())
                block[i, n + j] = mpmath.mpmathify(direction[i, j].item()) / size
        halvings = 8 + math.ceil(math.log2(1 + float(mpmath.mnorm(block, 1))))
        block /= mpmath.mpf(2) ** halvings
        total = term = mpmath.eye(2 * n)
        for k in range(1, 24):
            term = term * block / k
            total += term
        for _ in range(halvings):
            total *= total

        def rounded(row: int, column: int, scale: float) -> Tensor:
            entries = [
                [complex(total[row + i, column + j] * scale) for j in range(n)] for i in range(n)
            ]
            found = torch.tensor(entries, dtype=torch.complex128)
            return found if a.is_complex() else found.real

        return rounded(0, 0, 1.0), rounded(0, n, size)


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
