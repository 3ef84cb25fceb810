"""The exponential of a matrix, with a backward that needs no second exponential.

Forward: scaling and squaring with the Taylor polynomial of degree 18 in five products of Bader,
Blanes and Casas, Computing the matrix exponential with an optimized Taylor polynomial
approximation, Mathematics 7 (2019) 1174. The number s of squarings is the least for which
max(‖A²‖₁^(1/2), ‖A³‖₁^(1/3)) / 2ˢ is within the polynomial's reach; that this bounds its backward
error as ‖A‖₁ does is theorem 4.2 of Al-Mohy and Higham, A new scaling and squaring algorithm for
the matrix exponential, SIAM J. Matrix Anal. Appl. 31 (2009) 970.

Derivative: every product C = A·B of the forward has dC = dA·B + A·dB, along the same polynomial
and squarings (Al-Mohy and Higham, Computing the Fréchet derivative of the matrix exponential,
SIAM J. Matrix Anal. Appl. 30 (2009) 1639). The gradient is the derivative at Aᴴ.

Higher derivatives are those of a matrix A + Σ εⱼ·Eⱼ + εⱼ·εₖ·Eⱼₖ + … with εⱼ² = 0: a list of 2ᵐ
parts, the part of ε₀ε₂ at index 0b101. None stands for a part that is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, Literal

import torch
from torch import Tensor

Parts = list[Tensor | None]

# The polynomial as published, with X₆ = X³·X³ and coefficients of (I, X, X², X³, X₆):
# M = B₁·B₅ + B₄, and exp X ≈ B₂ + (B₃ + M)·M.
# Here B₃ and M go without their parts of I, whose product is 1: beside an entry of the size of 1
# the sums of a small X would lose digits. What these parts multiply is added to B₂, as far as it is
# a polynomial of X, and as `_SHIFT`·M: exp X ≈ I + B₂ + `_SHIFT`·M + (B₃ + M)·M.
_I3, _I4 = -1.09676396052962061844e01, -9.04316832390810593223e-02
_SHIFT = _I3 + 2 * _I4
_B1 = (-1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0.0)
_B3 = (
    *(1.68015813878906206114e00, 5.71779846478865511061e-02),
    *(-6.98210122488052056106e-03, 3.34975017086070470649e-05),
)
_B4 = (
    *(-6.76404519071381882256e-02, 6.75961301770459654925e-02),
    *(2.95552570429315521194e-02, -1.39180257516060693404e-05),
)
_B5 = (0.0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05)
_B2 = (
    3.97849749499645077844e-01 + _I4 * _B3[0],
    1.36783778460411720168e00 + _I4 * _B3[1],
    4.98289622525382669416e-01 + _I4 * _B3[2],
    -6.37898194594723280150e-04 + _I4 * _B3[3],
)


@dataclass(frozen=True)
class _Format:
    """What the precision of a real dtype decides."""

    reach: float  # of the polynomial: the norm up to which its backward error is one rounding
    widest: int  # exponents beyond ± this are not scaled away, so that 2^exponent is normal
    largest: int  # log₂ of what X is scaled down to even where X² is small: X³ stays finite
    integer: torch.dtype
    bias: int
    fraction: int


_FORMATS = {
    torch.float32: _Format(3.010066362817634, 100, 30, torch.int32, 127, 23),
    torch.float64: _Format(1.090863719290036, 1000, 200, torch.int64, 1023, 52),
}


def matrix_exp(A: Tensor, *, save: Literal["result", "all"] = "result") -> Tensor:
    """exp(A) = Σ Aᵏ/k!, in 5 + s matrix products, s the number of squarings.

    Gradients to any order, in both modes, and under the transforms of torch.func. A backward
    takes no product where the cotangent is a multiple of the identity, what a trace sends back;
    else 2(5 + s), and with `save="result"` the powers of A again, 4 + s. A second derivative
    takes 8(5 + s) − 3, and the powers again. The error does not depend on the cotangent's size.

    Args:
        A: `(..., n, n)`, float32, float64, complex64 or complex128; each matrix of a batch is
            scaled by its own norm. Where one has an entry that is not finite its exponential
            is NaN.
        save: what a backward finds. "result": A and exp(A) alone. "all": also 7 + s matrices, so
            that each cotangent takes 2(5 + s) products; under vmap over A they are not kept.

    Returns:
        `(..., n, n)` in A's dtype.

    Raises:
        TypeError: `A` is no tensor of these dtypes.
        ValueError: `A` is not square, or `save` is neither of the two.
    """
    if not isinstance(A, Tensor):
        raise TypeError(f"`A` is a {type(A).__name__}. Give a tensor.")
    if A.dtype.to_real() not in _FORMATS:
        raise TypeError(f"`A` has dtype {A.dtype}. Give float32, float64, complex64 or complex128.")
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"`A` has shape {tuple(A.shape)}. Give square matrices, (..., n, n).")
    if save not in ("result", "all"):
        raise ValueError(f"`save` is {save!r}. Give 'result' or 'all'.")
    return _apply(_Exponential, save == "all" and torch.is_grad_enabled(), A)[0]


def _apply(function: type[torch.autograd.Function], *args: Any) -> tuple[Tensor, ...]:
    apply: Callable[..., tuple[Tensor, ...]] = function.apply
    if torch.compiler.is_compiling():  # the number of squarings depends on the data
        apply = torch.compiler.disable(apply)  # type: ignore[no-untyped-call]
    return apply(*args)


class _Exponential(torch.autograd.Function):
    """(keep, A) → (exp(A), *kept): the plan's tensors and the factors, none unless `keep`."""

    @staticmethod
    def forward(keep: bool, A: Tensor) -> tuple[Tensor, ...]:
        if not A.numel():
            return (A.new_zeros(A.shape),)
        with torch.autocast(A.device.type, enabled=False):
            plan, factors = _scaled(A, _Buffers(reuse=not keep))
            kept = [plan.order, plan.squarings] if keep else []
            for factor in islice(factors, 7 + len(plan.counts)):
                if keep:
                    kept.append(factor)
                del factor  # or it would outlive its use
            result = _unsorted(next(factors), plan.order)
        return result.reshape(A.shape), *kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(inputs[1], *output)
        ctx.save_for_forward(inputs[1], *output)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor | None, *_: None) -> tuple[None, Tensor | None]:
        if cotangent is None:
            return None, None
        A, *known = ctx.saved_tensors
        return None, _derivative(True, [A.mH, cotangent], known)[0]

    @staticmethod
    def jvp(ctx: Any, _: None, tangent: Tensor) -> tuple[Tensor | None, ...]:
        A, *known = ctx.saved_tensors
        return _derivative(False, [A, tangent], known)[0], *[None] * (len(known) - 1)

    @staticmethod
    def vmap(info: Any, in_dims: Any, keep: bool, A: Tensor) -> tuple[tuple[Tensor, ...], int]:
        return _apply(_Exponential, False, A.movedim(in_dims[1], 0)), 0


class _Derivative(torch.autograd.Function):
    """(turned, 2ᵐ, *parts, *known) → the parts with εₘ₋₁ of exp of these parts, 2ᵐ⁻¹ tensors.

    With m = 1 the derivative of exp at parts[0] in the direction parts[1]. Known of A are exp(A)
    and, where they were kept, its plan and factors; parts[0] is A, or Aᴴ if `turned`. The batch
    dimensions of the parts broadcast.
    """

    @staticmethod
    def forward(turned: bool, count: int, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        parts = tensors[:count]
        result, *kept = (each for each in tensors[count:] if each is not None)
        direction = parts[1]
        if count == 2 and direction is not None:
            multiple = _multiple_of_identity(direction)
            if multiple is not None:
                return (multiple * (result.mH if turned else result),)
        return _along_forward(turned, parts, kept)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.turned, ctx.count, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        count, saved = ctx.count, ctx.saved_tensors
        known = saved[count:]
        parts = [None if part is None else part.mH for part in saved[:count]]
        gradients: Parts = [None] * len(saved)
        needed = [part for part in range(count) if ctx.needs_input_grad[2 + part]]
        if not needed or all(each is None for each in cotangents):
            return None, None, *gradients
        if count == 2 and needed == [1]:
            (gradients[1],) = _derivative(not ctx.turned, [parts[0], *cotangents], known)
            return None, None, *gradients
        # Σ Re tr(Hᴴ·dY) is the part with every ε of Re tr(H̃·dY), where H̃ has each Hᴴ at the
        # complement, and there factors may be turned round: tr(H̃·D[dX]) = tr(D[H̃]·dX).
        opposite = [*reversed(cotangents), *[None] * (count // 2)]
        found = _derivative(not ctx.turned, [*parts, *opposite], known)
        for part in needed:
            gradients[part] = found[~part].sum_to_size(saved[part].shape)
        return None, None, *gradients

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *tangents: Tensor | None) -> tuple[Tensor | None, ...]:
        saved, count = ctx.saved_tensors, int(ctx.count)
        moved = tangents[:count]
        if all(each is None for each in moved):
            return (None,) * (count // 2)
        found = _derivative(ctx.turned, [*saved[:count], *moved], saved[count:])
        return found[count // 2 :]

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, turned: bool, count: int, *tensors: Tensor | None
    ) -> tuple[tuple[Tensor, ...], int]:
        dims = in_dims[2:]
        most = max(
            each.ndim - (dim is not None)
            for each, dim in zip(tensors[:count], dims, strict=False)
            if each is not None
        )

        def in_front(each: Tensor | None, dim: int | None) -> Tensor | None:
            if each is None or dim is None:
                return each
            each = each.movedim(dim, 0)
            return each.reshape(each.shape[:1] + (1,) * (most + 1 - each.ndim) + each.shape[1:])

        moved = [in_front(each, dim) for each, dim in zip(tensors, dims, strict=True)]
        return _apply(_Derivative, turned, count, *moved), 0


def _derivative(
    turned: bool, parts: Sequence[Tensor | None], known: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """`_Derivative`, or plain operations where `is_grads_batched` hides a batch from it."""
    if any(each is not None and _hides_batch(each) for each in parts):
        return _along_forward(turned, parts, () if torch.is_grad_enabled() else known[1:])
    return _apply(_Derivative, turned, len(parts), *parts, *known)


def _hides_batch(tensor: Tensor) -> bool:
    return torch._C._functorch.is_legacy_batchedtensor(tensor)


def _multiple_of_identity(matrix: Tensor) -> Tensor | None:
    """c, `(..., 1, 1)`, where every matrix is c·I, else None; of a full matrix at once."""
    n = matrix.shape[-1]
    if not matrix.numel() or (n > 1 and matrix[..., 0, 1].any()):
        return None
    diagonal = matrix.diagonal(dim1=-2, dim2=-1)
    first = diagonal[..., :1]
    same = (diagonal == first).all() & (matrix.count_nonzero() == diagonal.count_nonzero())
    return first[..., None] if same else None


@dataclass(frozen=True)
class _Plan:
    """How the B matrices of a batch are squared: in an order in which fewer and fewer remain.

    Args:
        order: the place in the batch of each matrix, `(B,)`, those with most squarings first.
        squarings: for each matrix in this order, `(B,)`; for a single one `()`.
        counts: for each squaring the number of matrices that take it.
    """

    order: Tensor
    squarings: Tensor
    counts: list[int]


class _Buffers:
    """Matrices that were let go, to be written to: allocators leave gaps between so large ones."""

    def __init__(self, reuse: bool) -> None:
        self._reuse = reuse
        self._free: list[Tensor] = []

    def take(self, shape: torch.Size) -> Tensor | None:
        """One of this shape, or None, with which an operation makes its own."""
        if self._free and self._free[-1].shape == shape:
            return self._free.pop()
        return None

    def give(self, *matrices: Tensor | None) -> None:
        """From here on no one reads these."""
        if self._reuse:
            self._free.extend(each for each in matrices if each is not None)


def _scaled(A: Tensor, buffers: _Buffers) -> tuple[_Plan, Iterator[Tensor]]:
    """(plan, factors) of X = A/2ˢ: in the plan's order `(B, n, n)`, or `(n, n)` if B is 1."""
    n = A.shape[-1]
    x = A.reshape(-1, n, n) if A.numel() > n * n else A.reshape(n, n)
    form = _FORMATS[x.dtype.to_real()]
    exponent, finite = _exponent(x)
    x = x.resolve_conj().contiguous() * _power_of_two(-exponent, x.dtype)  # or X² could overflow
    x2 = x @ x
    x3 = x @ x2
    with torch.no_grad():
        norm = torch.maximum(_norm(x2) ** (1 / 2), _norm(x3) ** (1 / 3))
        needed = (exponent + (norm / form.reach).log2()).ceil().clamp(min=0.0)
        squarings = torch.where(finite, needed, 0.0).to(exponent.dtype)
        squarings = torch.maximum(squarings, exponent - form.largest)
        if x.ndim == 2:
            plan = _Plan(squarings.new_zeros(1), squarings, [1] * int(squarings))
        else:
            squarings, order = squarings.sort(descending=True, stable=True)
            *remaining, _ = accumulate(reversed(squarings.bincount().tolist()))
            plan = _Plan(order, squarings, remaining[::-1])
            exponent, finite = (each[order] for each in (exponent, finite))
        scale = _power_of_two(exponent - plan.squarings, x.dtype)
        scale = torch.where(finite[..., None, None], scale, torch.nan)
    x, x2, x3 = (_sorted(each, plan.order) for each in (x, x2, x3))
    x, x2, x3 = (_times(*each) for each in ((x, scale), (x2, scale**2), (x3, scale**3)))
    return plan, _factors(x, x2, x3, plan.counts, buffers)


def _times(matrix: Tensor, scale: Tensor) -> Tensor:
    """In place, unless the product is to be differentiated."""
    return matrix * scale if torch.is_grad_enabled() else matrix.mul_(scale)


def _factors(
    x: Tensor, x2: Tensor, x3: Tensor, counts: list[int], buffers: _Buffers
) -> Iterator[Tensor]:
    """The factors of every product, each computed when it is asked for, and then exp(2ˢ·X).

    X, X², X³, B₁, B₅, B₃ + M, M, and for each squaring the matrices that take it. Each may be
    written over when the next but one is asked for.
    """
    yield x
    yield x2
    yield x3
    powers = [x, x2, x3, x3 @ x3]
    b1, result, n, m, b5 = (
        _combined(zip(each, powers, strict=True), buffers) for each in (_B1, _B2, _B3, _B4, _B5)
    )
    buffers.give(x, x2, powers[3])
    del x, x2, powers
    yield b1
    buffers.give(x3)
    del x3
    yield b5
    m = _plus_product(m, b1, b5, buffers)
    n.add_(m)
    buffers.give(b1)
    del b1
    yield n
    buffers.give(b5)
    del b5
    yield m
    result = _plus_product(result.add_(m, alpha=_SHIFT), n, m, buffers)
    result.diagonal(dim1=-2, dim2=-1).add_(1)
    buffers.give(n)
    last = m
    del n, m
    for count in counts:
        base = result if result.ndim == 2 else result[:count]
        yield base
        buffers.give(last)
        squared = _plus_product(None, base, base, buffers)
        last = result
        result = squared if base.ndim == 2 else torch.cat([squared, result[count:]])
        del base, squared
    yield result


def _along_forward(
    turned: bool, parts: Sequence[Tensor | None], kept: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """The upper half of the parts of exp of these parts, in the shape to which they broadcast.

    What is `kept`, and how many squarings there are, is that of A, where parts[0] is Aᴴ if
    `turned`.
    """
    A = parts[0]
    assert A is not None
    there = [each for each in parts if each is not None]
    shape = torch.broadcast_shapes(*(each.shape for each in there))  # type: ignore[no-untyped-call]
    if not math.prod(shape):
        return tuple(A.new_zeros(shape) for _ in parts[1::2])
    if shape[len(shape) - A.ndim :] != A.shape:
        A = A.expand(shape)
    buffers = _Buffers(not torch.is_grad_enabled() and not any(map(_hides_batch, there)))
    with torch.autocast(A.device.type, enabled=False):
        if kept:
            order, squarings, *factors = kept
            source, taken = iter(factors), len(factors) - 7
        else:
            plan, source = _scaled(A.mH if turned else A, buffers)
            order, squarings, taken = plan.order, plan.squarings, len(plan.counts)
        if turned:
            source = (factor.mH for factor in source)
        n, batch = shape[-1], math.prod(A.shape[:-2])
        extra = math.prod(shape[: len(shape) - A.ndim])
        layout = [count for count in (extra, batch) if count > 1]
        moved: Parts = [None]
        exponent = torch.zeros_like(squarings)
        for part in parts[1:]:
            if part is not None:
                part = _sorted(part.expand(shape).reshape(*layout, n, n), order)
                if len(parts) == 2 and not _hides_batch(part):
                    exponent, _ = _exponent(part)  # or a huge one could overflow on the way
                part = part * _power_of_two(-exponent - squarings, A.dtype)
                part = part.resolve_conj().contiguous()
            moved.append(part)
        del part
        found = _recurrence(moved, source, taken, buffers)[len(parts) // 2 :]
        scale = _power_of_two(exponent, A.dtype)
        whole = (None if each is None else _unsorted(_times(each, scale), order) for each in found)
        return tuple(A.new_zeros(shape) if each is None else each.reshape(shape) for each in whole)


def _recurrence(
    parts: Parts, factors: Iterator[Tensor], squarings: int, buffers: _Buffers
) -> Parts:
    """The parts of exp from those of A/2ˢ; parts[0] is not looked at, its factors stand for it.

    The parts are written over.
    """

    def combined(coefficients: Sequence[float], base: Tensor | None = None) -> Parts:
        found: Parts = [base]
        for each in powers:
            terms = [(c, p) for c, p in zip(coefficients, each, strict=True) if p is not None]
            found.append(_combined(terms, buffers) if terms else None)
        return found

    x = [next(factors), *parts[1:]]
    x2 = _product(x, x, buffers)
    x2[0] = next(factors)
    x3 = _product(x, x2, buffers)
    x3[0] = next(factors)
    b1 = next(factors)  # now, that the powers behind it can go
    powers = list(zip(x, x2, x3, _product(x3, x3, buffers), strict=True))[1:]
    del parts, x, x2, x3
    left, right = combined(_B1, b1), combined(_B5, next(factors))
    m = _product(left, right, buffers, combined(_B4))
    buffers.give(*left[1:], *right[1:])
    del b1, left, right
    n = combined(_B3, next(factors))
    m[0] = next(factors)
    found = combined(_B2)
    for each in powers:
        buffers.give(*each)
    powers.clear()
    for one, other, more in zip(n[1:], found[1:], m[1:], strict=True):
        if one is not None and other is not None and more is not None:
            one.add_(more)
            other.add_(more, alpha=_SHIFT)
    found = _product(n, m, buffers, found)
    buffers.give(*n[1:], *m[1:])
    del n, m
    for base in islice(factors, squarings):
        active = [base, *(_first(each, base) for each in found[1:])]
        squared = _product(active, active, buffers)
        if base.ndim == 2:
            buffers.give(*found[1:])
        found = [_with_rest(*each) for each in zip(squared, found, strict=True)]
        del base, active, squared
    return found


def _product(a: Parts, b: Parts, buffers: _Buffers, more: Parts | None = None) -> Parts:
    """more + a·b but for the part without ε, (a·b)_S = Σ over T ⊆ S of a_T·b_S∖T."""
    found: Parts = [None] * len(a) if more is None else more
    for part in range(1, len(a)):
        for left in range(part + 1):
            one, other = a[left], b[part ^ left]
            if left & part == left and one is not None and other is not None:
                found[part] = _plus_product(found[part], one, other, buffers)
    return found


def _plus_product(total: Tensor | None, a: Tensor, b: Tensor, buffers: _Buffers) -> Tensor:
    """total + a·b, in place where the total is a matrix or a batch of them as a and b are."""
    alike = a.ndim == b.ndim <= 3
    if total is None:
        return torch.matmul(a, b, out=buffers.take(b.shape) if alike else None)
    if any(_hides_batch(each) for each in (total, a, b)) or not (alike and total.ndim == a.ndim):
        return total + a @ b
    return total.addmm_(a, b) if total.ndim == 2 else total.baddbmm_(a, b)


def _combined(terms: Iterable[tuple[float, Tensor]], buffers: _Buffers) -> Tensor:
    """c₁·P₁ + c₂·P₂ + …, new; those with c = 0 are not looked at."""
    (first, power), *others = (term for term in terms if term[0])
    total = torch.mul(power, first, out=buffers.take(power.shape))
    for coefficient, power in others:
        total.add_(power, alpha=coefficient)
    return total


def _first(part: Tensor | None, base: Tensor) -> Tensor | None:
    """The matrices of a batch that have yet to be squared: as many as in `base`."""
    return part if part is None or base.ndim == 2 else part.narrow(-3, 0, len(base))


def _with_rest(squared: Tensor | None, part: Tensor | None) -> Tensor | None:
    """The matrices that were squared, and those that no longer were."""
    if squared is None or part is None or squared.shape == part.shape:
        return squared
    done = squared.shape[-3]
    return torch.cat([squared, part.narrow(-3, done, part.shape[-3] - done)], dim=-3)


def _sorted(batch: Tensor, order: Tensor) -> Tensor:
    return batch.index_select(-3, order) if len(order) > 1 else batch


def _unsorted(batch: Tensor, order: Tensor) -> Tensor:
    return batch.index_select(-3, order.argsort()) if len(order) > 1 else batch


def _norm(x: Tensor) -> Tensor:
    """The 1-norm of matrices whose entries are far from overflow."""
    size = torch.view_as_real(x).square().sum(-1).sqrt() if x.is_complex() else x.abs()
    return size.sum(-2).amax(-1)


def _exponent(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """(e with |real and imaginary parts| < 2ᵉ, 0 unless all are finite; whether they are)."""
    matrix = matrix.detach().resolve_conj()
    parts = torch.view_as_real(matrix).flatten(-2) if matrix.is_complex() else matrix
    largest = parts.abs().amax((-2, -1))
    finite = largest.isfinite()
    widest = _FORMATS[largest.dtype].widest
    return torch.where(finite, largest.frexp().exponent.clamp(-widest, widest), 0), finite


def _power_of_two(exponent: Tensor, dtype: torch.dtype) -> Tensor:
    """2^exponent to the last bit, `(..., 1, 1)` in a real dtype; torch.exp2 may round."""
    form = _FORMATS[dtype.to_real()]
    bits = (exponent.to(form.integer) + form.bias) << form.fraction
    return bits.view(dtype.to_real())[..., None, None]
