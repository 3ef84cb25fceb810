"""Singular values of dy/dx from products J·v and Jᵀ·u alone: no matrix is formed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class SpectralNorm:
    """‖J‖₂, the largest singular value of J = dy/dx.

    Attributes:
        value: NaN where a product with J is not finite.
        error: the estimate of its error.
        products: the products J·v and Jᵀ·u that were taken, each counted one.
        direction: the x that J stretches most, of norm 1, in x's structure; None where J is zero
            or not finite.
        notes: what to mind, as sentences.
    """

    value: float
    error: float
    products: int
    direction: Any
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SingularValues:
    """The k largest singular values, from the largest, with the estimates of their errors."""

    values: tuple[float, ...]
    errors: tuple[float, ...]
    products: int
    notes: tuple[str, ...] = ()


def spectral_norm(
    f: Callable[[Any], Any],
    x: Any,
    *,
    rtol: float = 1e-6,
    proceed: Callable[[], bool] = lambda: True,
) -> SpectralNorm:
    """‖dy/dx‖₂ of y = f(x); f is run once. With `proceed` false it ends early with what it has."""
    raise NotImplementedError


def singular_values(
    f: Callable[[Any], Any], x: Any, k: int, *, rtol: float = 1e-6
) -> SingularValues:
    """The k largest singular values of dy/dx."""
    raise NotImplementedError


def jacobian_distance(
    f: Callable[[Any], Any], g: Callable[[Any], Any], x: Any, *, rtol: float = 1e-6
) -> SpectralNorm:
    """‖J_f − J_g‖₂ at x."""
    raise NotImplementedError


def decomposed(matrix: Tensor) -> tuple[Tensor, Tensor | None]:
    """(all singular values of an m×n matrix from the largest, the unit vector `(n,)` that it
    stretches most; None for a matrix that is zero or not finite, whose values are then NaN).

    Scaled so that nothing overflows or underflows on the way.
    """
    raise NotImplementedError
