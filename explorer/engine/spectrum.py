"""Singular values of J = dy/dx from products J·v and Jᵀ·u alone: no matrix is formed.

    >>> x = torch.tensor([3.0, 4.0], dtype=torch.float64)
    >>> spectral_norm(lambda x: x**2, x).value  # of diag(2x)
    8.0

f is run once. Jᵀ·u is a backward pass; it is linear in u, so that differentiating it in u along v
gives J·v, by a backward pass through the backward pass. A complex entry of x or y counts as its
two real parts: the singular values of a holomorphic f then come in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from explorer.engine import krylov
from explorer.engine.krylov import Triple
from explorer.engine.paths import cut
from explorer.engine.structure import Inputs, Layout
from explorer.engine.trunk import Counter, Graph, SlowFunction, warn, without_autocast
from explorer.fields import shown

T = TypeVar("T")

SMALL = 64
"""The smaller of m and n up to which J is formed, in as many products, and decomposed."""

_TO_FORM = 3  # products for each of k values that the iteration takes at the least, or about it

_ROUNDINGS = 10  # of a product with each of two functions, as far as their difference is resolved


@dataclass(frozen=True)
class SpectralNorm:
    """‖J‖₂, the largest singular value of J = dy/dx.

    Attributes:
        value: NaN where a product with J is not finite.
        error: the estimate of its error: the residual, within which there is a singular value.
            0 where J was formed, which only rounds.
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
    """‖dy/dx‖₂ of y = f(x), without the matrix; f is run once.

    Where f's backward cannot be differentiated, J·v is taken in forward mode, one run of f each,
    and a note says so.

    Args:
        f: takes x to a tensor, or to several in tuples, lists and dicts, real or complex.
        x: a tensor, several in a structure, or a module, which stands for its parameters.
        rtol: the relative error of the norm, by its estimate. In float32 1e-6 is about the least.
        proceed: asked after each pair of products; when False it ends with what it has.

    Raises:
        TypeError, ValueError: what is wrong with f, x or y, as `gradients` says it; or with rtol.
        RuntimeError: f can neither be differentiated twice nor in forward mode.

    Warns where the error is above rtol after 300 pairs of products, or when 1 GB is full of the
    vectors of the iteration.
    """
    require_rtol(rtol)
    with torch.inference_mode(False), torch.enable_grad():
        return _norm(Derivative(f, x), rtol, proceed)


def jacobian_distance(
    f: Callable[[Any], Any], g: Callable[[Any], Any], x: Any, *, rtol: float = 1e-6
) -> SpectralNorm:
    """‖J_f − J_g‖₂ at x, for two functions of the same x with y of the same size: how far two ways
    to compute one function differ in their whole derivative.

    What is below the rounding of the two is not resolved further; where they are random, g gets
    the random numbers of f. Arguments, errors and warnings are those of `spectral_norm`; each
    product with the difference counts two.

    Raises:
        ValueError: the two give y of different sizes.
    """
    require_rtol(rtol)
    with torch.inference_mode(False), torch.enable_grad():
        one = Derivative(f, x)
        one.rewind()
        return _norm(_Difference(one, Derivative(g, x, "g")), rtol, lambda: True)


def singular_values(
    f: Callable[[Any], Any], x: Any, k: int, *, rtol: float = 1e-6
) -> SingularValues:
    """The k largest singular values of dy/dx, repeated ones as often as they are there.

    Arguments, errors and warnings are those of `spectral_norm`; f is run once. Those that were
    not reached within 300 pairs of products are NaN.

    Raises:
        ValueError: k is not a whole number from 1 to the smaller of the sizes of y and x.
    """
    require_rtol(rtol)
    with torch.inference_mode(False), torch.enable_grad():
        operator = Derivative(f, x)
        smaller = min(operator.rows, operator.columns)
        if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= smaller:
            raise ValueError(f"`k` is {shown(k)}. Allowed: a whole number from 1 to {smaller}.")
        if smaller <= max(SMALL, _TO_FORM * k):
            every, _ = decomposed(tried(operator, operator.matrix))
            values = tuple(every[:k].tolist())
            return SingularValues(values, (0.0,) * k, operator.products, operator.notes)
        triples, notes = _leading(operator, k, rtol)
        missing = math.nan if triples is None or notes else 0.0
        found = triples or []
        rest = k - len(found)
        return SingularValues(
            (*(each.value for each in found), *(rest * (missing,))),
            (*(each.error for each in found), *(rest * (missing,))),
            operator.products,
            (*operator.notes, *notes),
        )


def decomposed(matrix: Tensor) -> tuple[Tensor, Tensor | None]:
    """(all singular values of an m×n matrix from the largest, the unit vector `(n,)` that it
    stretches most; None for a matrix that is zero or not finite, whose values are then NaN).

    Scaled, so that nothing overflows or underflows on the way; the values are float64 on the CPU,
    as a norm may be larger than all that a float32 entry can be.
    """
    matrix = matrix.detach()
    largest = matrix.abs().max().item() if matrix.numel() else 0.0
    if not 0 < largest < math.inf:
        value = 0.0 if largest == 0 else math.nan
        return torch.full((min(matrix.shape),), value, dtype=torch.float64), None
    scaled = matrix / largest
    if min(matrix.shape) == 1:  # one row or column: its 2-norm, with no decomposition
        norm = torch.linalg.vector_norm(scaled)
        v = scaled[0] / norm if len(matrix) == 1 else norm.new_ones(1)
        return largest * norm[None].cpu().double(), v
    wide = len(scaled) < len(scaled.mT)
    tall = scaled.mT if wide else scaled
    if len(tall) > 2 * len(tall.mT):  # its R has the same values, and takes far less than it does
        tall = torch.linalg.qr(tall, mode="r").R
    _, values, rights = torch.linalg.svd(tall, full_matrices=False)
    v = scaled.mT @ rights[0] if wide else rights[0]
    return largest * values.cpu().double(), v / torch.linalg.vector_norm(v)


class Derivative:
    """J = dy/dx at one x as an operator; x and y lie end to end as real vectors."""

    def __init__(self, f: Callable[[Any], Any], x: Any, name: str = "f") -> None:
        self.inputs = Inputs.of(x, "x")
        self._own = cut(self.inputs.tensors, False)
        counter = Counter()
        self._function = SlowFunction(f, self.inputs, counter)
        y = self._function(self._own)
        self._graph = Graph(y.tensors, self._own, counter)
        self._x = Layout(self._own)
        self._y = self._graph.layout
        self.rows, self.columns = self._y.size, self._x.size
        require_entries(self.columns, "`x` has")
        require_entries(self.rows, f"`{name}` returned a y that has")
        self.dtype = torch.promote_types(self._x.dtype, self._y.dtype)
        self.device = self._y.device
        self.rounding = 0.0
        tensors = (*self._own, *y.tensors)
        self._eps = max(torch.finfo(each.dtype).eps for each in tensors)
        self.products = 0
        self._notes: list[str] = []
        self._name = name
        self._backward: tuple[Tensor, list[Tensor]] | None = None  # u, and Jᵀ·u as its function
        self._forward_mode = False
        self._checked = False
        self._unchecked: tuple[Tensor, Tensor] | None = None  # v and J·v

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._function.notes, *self._notes)

    def rewind(self) -> None:
        """Puts random numbers and buffers back to what f found, where it changed them."""
        self._function.rewind()

    def transposed_times(self, u: Tensor) -> Tensor:
        self.products += 1
        found = self._graph.back(u.to(self._y.dtype), keep=True)
        product = self._x.rows([found])[0].to(self.dtype)
        if self._unchecked is not None:
            self._check(*self._unchecked, u, product)
        return product

    def times(self, v: Tensor) -> Tensor:
        self.products += 1
        product = self._in_forward_mode(v) if self._forward_mode else self._through_backward(v)
        if not self._checked:
            self._unchecked = v, product
            if not product.any():  # and no Jᵀ·u may follow
                self.transposed_times(krylov.random(self.rows, self))
        return product

    def _check(self, v: Tensor, forward: Tensor, u: Tensor, back: Tensor) -> None:
        """Holds uᵀ·(J·v) against (Jᵀ·u)ᵀ·v, once: a backward of a person's own may detach what J·v
        is taken from."""
        self._checked, self._unchecked = True, None
        if adjoint(forward, u, back, v, self._eps):
            return
        if not self._forward_mode:
            raise NoSecondDerivative("it gives another J·v than Jᵀ·u")
        self._notes.append(
            f"Backward and forward mode of {self._name} do not agree, so that no value here can be "
            "trusted: a derivative of one's own in it may be wrong, or it rounds to few digits."
        )

    def _through_backward(self, v: Tensor) -> Tensor:
        """J·v as the derivative of Jᵀ·u in u.

        Raises:
            NoSecondDerivative: f's backward cannot be differentiated.
        """
        try:
            return self._derived(v)
        except RuntimeError as error:  # NotImplementedError is one
            raise NoSecondDerivative(first_line(error)) from error

    def _derived(self, v: Tensor) -> Tensor:
        if self._backward is None:
            graph = Graph(self._graph.outputs, self._own, Counter(), create_graph=True)
            # Not zero: a backward may take a shorter way there, with another derivative.
            u = krylov.random(self.rows, self).to(self._y.dtype).requires_grad_()
            self._backward = u, graph.back(u, keep=True)
        u, found = self._backward
        pairs = [
            (each, part)
            for each, part in zip(found, self._x.tensors(v.to(self._x.dtype)), strict=True)
            if each.requires_grad
        ]
        if not pairs:
            raise RuntimeError("it does not depend on the cotangent")
        products, parts = zip(*pairs, strict=True)
        with without_autocast(self.device.type):
            (product,) = torch.autograd.grad(products, u, parts, retain_graph=True)
        return product.to(self.dtype)

    def go_forward(self, why: str) -> None:
        """From now on J·v is taken in forward mode."""
        self._forward_mode = True
        self._checked, self._unchecked, self._backward = False, None, None
        self._notes.append(
            f"J·v was taken in forward mode, with a run of {self._name} each, since the backward "
            f"of {self._name} cannot be differentiated: {why}."
        )

    def _in_forward_mode(self, v: Tensor) -> Tensor:
        tangents = dict(enumerate(self._x.tensors(v.to(self._x.dtype))))
        try:
            _, found = self._function.along(self._own, tangents, create_graph=False)
        except RuntimeError as error:
            raise RuntimeError(
                f"`{self._name}` can neither be differentiated twice nor in forward mode "
                f"({first_line(error)}), so there are no products J·v."
            ) from error
        return self._y.rows([found])[0].to(self.dtype)

    def matrix(self) -> Tensor:
        """J `(m, n)` itself, by a product for each row, or column where these are fewer."""
        by_rows = self.rows <= self.columns
        unit = torch.eye(min(self.rows, self.columns), dtype=self.dtype, device=self.device)
        if by_rows:
            return torch.stack([self.transposed_times(each) for each in unit])
        whole = self.times(krylov.random(self.columns, self))
        if not self._checked:  # by all columns: a single one may be zero
            self.transposed_times(whole / whole.abs().amax())
        return torch.stack([self.times(each) for each in unit], dim=1)

    def direction(self, v: Tensor) -> Any:
        """A vector `(n,)` in x's structure."""
        return self.inputs.build(self._x.tensors(v.to(self._x.dtype)))


class _Difference:
    """J_f − J_g as an operator."""

    def __init__(self, one: Derivative, other: Derivative) -> None:
        if one.rows != other.rows:
            raise ValueError(
                f"`g` returned {other.rows} real numbers, and `f` {one.rows}. "
                "Give two functions with y of one size."
            )
        self._one, self._other = one, other
        self.rows, self.columns = one.rows, one.columns
        self.dtype, self.device = torch.promote_types(one.dtype, other.dtype), one.device
        self.direction = one.direction
        self.rounding = 0.0

    @property
    def products(self) -> int:
        return self._one.products + self._other.products

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._one.notes, *self._other.notes)))

    def times(self, v: Tensor) -> Tensor:
        return self._apart(self._one.times(v), self._other.times(v))

    def transposed_times(self, u: Tensor) -> Tensor:
        return self._apart(self._one.transposed_times(u), self._other.transposed_times(u))

    def _apart(self, one: Tensor, other: Tensor) -> Tensor:
        size = float(torch.linalg.vector_norm(one))
        self.rounding = max(self.rounding, _ROUNDINGS * torch.finfo(self.dtype).eps * size)
        return one - other

    def matrix(self) -> Tensor:
        return self._one.matrix() - self._other.matrix()

    def go_forward(self, why: str) -> None:
        self._one.go_forward(why)
        self._other.go_forward(why)


class NoSecondDerivative(Exception):
    """A backward pass cannot be differentiated, for the reason that the message gives."""


def _norm(
    operator: Derivative | _Difference, rtol: float, proceed: Callable[[], bool]
) -> SpectralNorm:
    if min(operator.rows, operator.columns) <= SMALL:
        values, v = decomposed(tried(operator, operator.matrix))
        direction = None if v is None else operator.direction(v)
        value = float(values[0])
        return SpectralNorm(value, 0.0 * value, operator.products, direction, operator.notes)
    found = tried(operator, lambda: krylov.singular(operator, 1, rtol, proceed))
    if not found.triples:
        value = 0.0 if found.finite else math.nan
        return SpectralNorm(value, value, operator.products, None, operator.notes)
    (best,) = found.triples
    notes = (*operator.notes, *unconverged(found.converged, rtol, proceed))
    return SpectralNorm(
        best.value, best.error, operator.products, operator.direction(best.v), notes
    )


def _leading(operator: Derivative, k: int, rtol: float) -> tuple[list[Triple] | None, list[str]]:
    """The k largest triples, fewer where the rest is zero, None where a product is not finite."""
    known: list[Triple] = []
    while True:
        run = partial(krylov.singular, operator, k, rtol, lambda: True, known)
        found = tried(operator, run)
        if not found.finite:
            return None, []
        before = [each.value for each in known[:k]]
        known = sorted((*known, *found.triples), key=lambda each: each.value, reverse=True)
        if not found.converged:
            return known[:k], unconverged(False, rtol)
        enough = len(before) == k and (
            not found.triples or found.triples[0].value <= before[-1] * (1 + rtol)
        )
        if enough or not found.triples:
            return known[:k], []


def adjoint(forward: Tensor, u: Tensor, back: Tensor, v: Tensor, eps: float) -> bool:
    """Whether uᵀ·(J·v) and (Jᵀ·u)ᵀ·v are one, but for rounding in numbers of that eps; and where a
    product is not finite, which tells nothing."""
    largest = torch.maximum(forward.abs().amax(), back.abs().amax())
    if not largest:
        return True
    forward, back = forward / largest, back / largest  # no square over- or underflows
    one, other = u @ forward, back @ v
    norm = torch.linalg.vector_norm
    size = norm(forward) * norm(u) + norm(back) * norm(v)
    near = (one - other).abs() <= eps**0.5 * size
    return bool(near | ~(one.isfinite() & other.isfinite()))


class TakesForwardMode(Protocol):
    """An operator that can take its products in forward mode instead."""

    def go_forward(self, why: str) -> None: ...


def tried(operator: TakesForwardMode, run: Callable[[], T]) -> T:
    """What a run gives, in forward mode where a backward pass cannot be differentiated."""
    try:
        return run()
    except NoSecondDerivative as error:
        operator.go_forward(str(error))
        return run()


def unconverged(
    converged: bool, rtol: float, proceed: Callable[[], bool] = lambda: True
) -> list[str]:
    """That the error is larger than was asked for, as a warning and a note; [] where it is not."""
    if converged or not proceed():  # who ended it knows
        return []
    note = (
        f"The singular values did not converge to {rtol:.0e}, as where many lie close together: "
        "see the estimates of their errors."
    )
    warn(note)
    return [note]


def require_entries(count: int, whose: str) -> None:
    if not count:
        raise ValueError(f"{whose} no entries. Allowed: one or more.")


def require_rtol(rtol: float) -> None:
    number = isinstance(rtol, (int, float)) and not isinstance(rtol, bool)
    if not number or not 0 < rtol < 1:
        raise ValueError(f"`rtol` is {shown(rtol)}. Allowed: a number above 0 and below 1.")


def first_line(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
