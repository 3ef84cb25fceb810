"""The matrix exponential: its values, its gradients of every order, and what they take."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from explorer import exponential, matrix_exp
from explorer.engine.gradients import gradients
from tests.exponentials import FAMILIES, Live, Products, cotangents, exact, member, squarings

Save = Literal["result", "all"]
SAVES: tuple[Save, ...] = ("result", "all")
REAL, COMPLEX = torch.float64, torch.complex128
DTYPES = (torch.float32, REAL, torch.complex64, COMPLEX)
EPS = torch.finfo(REAL).eps

each_save = pytest.mark.parametrize("save", SAVES)
each_wide = pytest.mark.parametrize("dtype", [REAL, COMPLEX], ids=["float64", "complex128"])
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def normal(*shape: int, dtype: torch.dtype = REAL, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def error(found: Tensor, true: Tensor) -> float:
    """The relative error in the Frobenius norm."""
    return float((found - true).norm() / true.norm())


def back(
    f: Callable[[Tensor], Tensor], a: Tensor, cotangent: Tensor, **options: Any
) -> tuple[Tensor, Tensor]:
    """(f(a), its gradient)."""
    a = a.detach().clone().requires_grad_()
    y = f(a)
    (found,) = torch.autograd.grad(y, a, cotangent, **options)
    return y.detach(), found


# The polynomial


def test_polynomial_is_that_of_taylor() -> None:
    """Expanded without rounding, the coefficient of Xᵏ is 1/k!, as far as 64 bits can say it."""

    def times(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
        found = [Fraction(0)] * (len(a) + len(b) - 1)
        for i, left in enumerate(a):
            for j, right in enumerate(b):
                found[i + j] += left * right
        return found

    def plus(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
        size = max(len(a), len(b))
        a, b = (each + [Fraction(0)] * (size - len(each)) for each in (a, b))
        return [left + right for left, right in zip(a, b, strict=True)]

    def expanded(coefficients: tuple[float, ...]) -> list[Fraction]:
        c1, c2, c3, c6 = map(Fraction, coefficients)
        zero = Fraction(0)
        return [zero, c1, c2, c3, zero, zero, c6]

    names = ("_B1", "_B2", "_B3", "_B4", "_B5")
    b1, b2, b3, b4, b5 = (expanded(getattr(exponential, name)) for name in names)
    m = plus(times(b1, b5), b4)
    shifted = plus(b3, plus(m, [Fraction(exponential._SHIFT)]))
    found = plus([Fraction(1)], plus(b2, times(shifted, m)))
    while not found[-1]:
        found.pop()
    assert len(found) == 19
    for k, coefficient in enumerate(found):
        assert abs(coefficient * math.factorial(k) - 1) < 40 * EPS


# Values


@each_dtype
@pytest.mark.parametrize("n", [1, 2, 30, 400])
@pytest.mark.parametrize("c", [-0.7, 1e-5, 2.0])
def test_exponential_of_ones(n: int, c: float, dtype: torch.dtype) -> None:
    """exp(c·𝟙/n) = I + (e^c − 1)/n·𝟙."""
    found = matrix_exp(torch.full((n, n), c / n, dtype=dtype))
    true = torch.eye(n, dtype=dtype) + math.expm1(c) / n
    squared = dtype.to_real() == REAL and c > 1.09  # each entry of 𝟙² is rounded n times alike
    assert error(found, true) < (4 + 0.3 * n * squared) * torch.finfo(dtype).eps
    assert found.dtype == dtype


@pytest.mark.parametrize("angle", [1e-9, 0.01, 1.0, 50.0])
def test_exponential_of_a_rotation(angle: float) -> None:
    found = matrix_exp(torch.tensor([[0.0, -angle], [angle, 0.0]], dtype=REAL))
    c, s = math.cos(angle), math.sin(angle)
    assert error(found, torch.tensor([[c, -s], [s, c]], dtype=REAL)) < 2 * EPS * max(2.0, angle)


def test_exponential_of_what_is_diagonal() -> None:
    entries = torch.tensor([-700.0, -3.0, -1e-9, 0.0, 1e-200, 2.0], dtype=REAL)
    found = matrix_exp(entries.diag())
    assert torch.equal(found.diagonal().diag(), found)
    torch.testing.assert_close(found.diagonal(), entries.exp(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("size", [1e-300, 1e-8, 1.0, 1e8, 1e150, 1e300])
def test_exponential_of_what_is_nilpotent_at_any_size(size: float) -> None:
    a = torch.tensor([[0.0, size], [0.0, 0.0]], dtype=REAL)
    torch.testing.assert_close(matrix_exp(a), torch.eye(2, dtype=REAL) + a, rtol=4 * EPS, atol=0)


@pytest.mark.parametrize("size", [1e3, 1e30, 1e200, 1.7e308])
def test_exponential_of_what_is_huge_ends(size: float) -> None:
    eye = torch.eye(2, dtype=REAL)
    assert torch.equal(matrix_exp(-size * eye), torch.zeros_like(eye))
    assert not matrix_exp(size * eye).diagonal().isfinite().any()
    turned = torch.tensor([[0.0, -size], [size, 0.0]], dtype=REAL)
    assert len(matrix_exp(turned)) == 2  # no digit of it is right, but it ends


def bounds(families: tuple[str, ...], norms: tuple[float, ...], dtype: torch.dtype) -> Any:
    """For each family and norm the largest errors over seeds: forward and gradient, torch's too."""
    for family in families:
        for norm in norms:
            worst = {matrix_exp: [0.0, 0.0], torch.matrix_exp: [0.0, 0.0]}
            for seed in range(3):
                size = norm / 2 if family in ("random", "Jordan blocks") else norm  # no overflow
                a = member(family, 4, size, dtype, seed)
                (cotangent,) = cotangents((4, 4), dtype, 1)
                result, gradient = exact(a.mH.resolve_conj(), cotangent)
                for f, errors in worst.items():
                    found = back(f, a, cotangent)
                    for k, true in enumerate((result.mH, gradient)):
                        errors[k] = max(errors[k], error(found[k], true))
            yield family, norm, worst[matrix_exp], worst[torch.matrix_exp]


@each_wide
def test_error_is_within_three_times_that_of_torch(dtype: torch.dtype) -> None:
    for family, norm, own, other in bounds(FAMILIES, (1.0, 10.0, 100.0, 1000.0), dtype):
        for name, mine, theirs in zip(("forward", "gradient"), own, other, strict=True):
            assert mine <= max(1e-15, 3 * theirs), (family, norm, name, mine, theirs)


@each_wide
def test_error_is_a_rounding_where_torch_is_wrong(dtype: torch.dtype) -> None:
    for family, norm, own, _ in bounds(FAMILIES, (3.5e-4, 0.004, 0.05), dtype):
        assert max(own) <= 1e-15, (family, norm, own)


@pytest.mark.parametrize("norm", [1e-3, 0.06, 0.5, 5.0])
@each_save
def test_single_precision(norm: float, save: Save) -> None:
    for dtype, wide in ((torch.float32, REAL), (torch.complex64, COMPLEX)):
        a = member("random", 20, norm, dtype)
        cotangent = normal(20, 20, dtype=dtype)
        found = back(partial(matrix_exp, save=save), a, cotangent)
        true = back(matrix_exp, a.to(wide), cotangent.to(wide))
        for one, other in zip(found, true, strict=True):
            assert one.dtype == dtype
            assert error(one, other) < 1e-6


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 6),
    norm=st.floats(0, 3),
    dtype=st.sampled_from([REAL, COMPLEX]),
)
def test_properties_of_the_exponential(
    seed: int, n: int, norm: float, dtype: torch.dtype
) -> None:
    a = normal(n, n, dtype=dtype, seed=seed)
    a = a / torch.linalg.matrix_norm(a, 1) * norm
    found, eye = matrix_exp(a), torch.eye(n, dtype=dtype)
    assert error(found @ matrix_exp(-a), eye) < 1e-12
    for view in (lambda x: x.T, lambda x: x.mH, lambda x: x.conj()):
        assert error(matrix_exp(view(a)), view(found)) < 1e-13
    assert float((torch.linalg.det(found) - torch.exp(a.trace())).abs()) < 1e-11
    basis = torch.linalg.qr(normal(n, n, dtype=dtype, seed=seed + 1))[0]
    assert error(matrix_exp(basis @ a @ basis.mH), basis @ found @ basis.mH) < 1e-12


# Batches


@each_wide
@each_save
def test_batch_is_each_matrix_by_itself(dtype: torch.dtype, save: Save) -> None:
    """Each is scaled by its own norm: a small one beside a large one keeps its digits."""
    norms = torch.tensor([[1e-3, 900.0, 1.0], [30.0, 0.0, 1e-9]], dtype=REAL)
    a = normal(2, 3, 5, 5, dtype=dtype)
    a = a / torch.linalg.matrix_norm(a, 1)[..., None, None] * norms[..., None, None] / 2
    cotangent = normal(2, 3, 5, 5, dtype=dtype, seed=1)
    found = back(partial(matrix_exp, save=save), a, cotangent)
    assert all(each.shape == a.shape for each in found)
    for i in range(2):
        for j in range(3):
            alone = back(partial(matrix_exp, save=save), a[i, j], cotangent[i, j])
            for one, other in zip(found, alone, strict=True):
                assert error(one[i, j], other) < 1e-15 * max(1.0, float(norms[i, j]))


@each_dtype
@each_save
@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0), (1, 1), (1, 1, 3, 3), (4, 1, 1)])
def test_empty_and_smallest(shape: tuple[int, ...], dtype: torch.dtype, save: Save) -> None:
    a = normal(*shape, dtype=dtype)
    found, gradient = back(partial(matrix_exp, save=save), a, torch.ones_like(a))
    assert found.shape == gradient.shape == shape
    assert found.dtype == gradient.dtype == dtype
    if shape[-1] == 1:
        torch.testing.assert_close(found, a.exp())
        torch.testing.assert_close(gradient, a.exp().conj())


def test_strides_and_conjugate_views() -> None:
    a = normal(6, 6, dtype=COMPLEX)
    true = matrix_exp(a[::2, ::2].clone())
    assert torch.equal(matrix_exp(a[::2, ::2]), true)
    assert torch.equal(matrix_exp(a.conj()[::2, ::2]), true.conj())
    assert error(matrix_exp(a.mH[::2, ::2]), true.mH) < 1e-14
    row = normal(3)
    torch.testing.assert_close(matrix_exp(row.expand(3, 3)), matrix_exp(row.expand(3, 3).clone()))
    cotangent = normal(3, 3, dtype=COMPLEX, seed=1)
    small = a[:3, :3]
    for view in (lambda x: x.mH, lambda x: x.conj(), lambda x: x.T):
        found = back(lambda x, view=view: matrix_exp(view(x)), small, cotangent)[1]
        other = back(lambda x, view=view: torch.matrix_exp(view(x)), small, cotangent)[1]
        assert error(found, other) < 1e-14
        turned = back(matrix_exp, small, view(cotangent))[1]
        assert error(turned, back(torch.matrix_exp, small, view(cotangent).clone())[1]) < 1e-14


# Gradients


@each_wide
@each_save
@pytest.mark.parametrize("shape", [(3, 3), (3, 2, 2)])
def test_gradcheck(shape: tuple[int, ...], dtype: torch.dtype, save: Save) -> None:
    a = (2 * normal(*shape, dtype=dtype)).requires_grad_()
    f = partial(matrix_exp, save=save)
    assert gradcheck(
        f, a, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    )


@each_wide
@each_save
@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 2)])
def test_gradgradcheck(shape: tuple[int, ...], dtype: torch.dtype, save: Save) -> None:
    a = (2 * normal(*shape, dtype=dtype)).requires_grad_()
    f = partial(matrix_exp, save=save)
    assert gradgradcheck(f, a, check_fwd_over_rev=True, check_batched_grad=True)


@each_save
def test_gradcheck_of_a_multiple_of_the_identity(save: Save) -> None:
    """The cotangent that takes no product is differentiated like any other."""
    a = normal(2, 2, dtype=COMPLEX).requires_grad_()

    def f(a: Tensor) -> Tensor:
        return matrix_exp(a, save=save).diagonal().sum() ** 2

    assert gradcheck(f, a, check_forward_ad=True)
    assert gradgradcheck(f, a, check_fwd_over_rev=True)
    c = torch.tensor(0.7 + 0.2j, dtype=COMPLEX).requires_grad_()

    def with_cotangent(a: Tensor, cotangent: Tensor) -> Tensor:
        (found,) = torch.autograd.grad(matrix_exp(a, save=save), a, cotangent, create_graph=True)
        return found

    eye = torch.eye(2, dtype=COMPLEX)
    assert gradcheck(with_cotangent, (a, (c * eye).detach().requires_grad_()))
    assert gradcheck(lambda c: with_cotangent(a, c * eye), c)


@each_wide
@each_save
@settings(deadline=None, max_examples=20)
@given(exponent=st.integers(-900, 900), seed=st.integers(0, 1000))
def test_error_is_the_same_at_any_size_of_the_cotangent(
    dtype: torch.dtype, save: Save, exponent: int, seed: int
) -> None:
    """Times a power of two, the gradient is the same to the last bit."""
    a = member("random", 4, 5.0, dtype, seed)
    cotangent = normal(4, 4, dtype=dtype, seed=seed + 1)
    f = partial(matrix_exp, save=save)
    one, other = (back(f, a, each)[1] for each in (cotangent, cotangent * 2.0**exponent))
    assert torch.equal(one * 2.0**exponent, other)


@pytest.mark.parametrize("size", [1e-36, 1e30, 1e36])
def test_large_cotangent_in_single_precision(size: float) -> None:
    a = member("random", 10, 30.0, torch.float32)
    cotangent = normal(10, 10, dtype=torch.float32) * size
    true = back(matrix_exp, a.double() - 8 * torch.eye(10), cotangent.double())[1]
    found = back(matrix_exp, a - 8 * torch.eye(10), cotangent)[1]
    assert error(found.double(), true) < 1e-5


@each_wide
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 1000), norm=st.floats(1e-3, 20.0))
def test_backward_is_linear_and_adjoint_to_forward_mode(
    dtype: torch.dtype, seed: int, norm: float
) -> None:
    a = member("random", 4, norm, dtype, seed)
    one, other, tangent = (normal(4, 4, dtype=dtype, seed=seed + k) for k in (1, 2, 3))
    first, second, both = (back(matrix_exp, a, g)[1] for g in (one, other, 3 * one - 1e5 * other))
    assert error(both, 3 * first - 1e5 * second) < 1e-13
    _, moved = jvp(matrix_exp, (a,), (tangent,))
    left, right = (one.conj() * moved).sum().real, (first.conj() * tangent).sum().real
    assert abs(float(left - right)) <= 1e-12 * float(first.norm() * tangent.norm())


# What it takes


def products(run: Callable[[], Any]) -> int:
    with Products() as found:
        run()
    return found.count


@each_wide
@pytest.mark.parametrize("norm", [1e-3, 1.0, 30.0, 1000.0])
def test_products_of_a_forward_and_a_backward(norm: float, dtype: torch.dtype) -> None:
    a = member("random", 12, norm, dtype).requires_grad_()
    s, cotangent, eye = squarings(a.detach()), normal(12, 12, dtype=dtype), torch.eye(12)
    assert products(lambda: matrix_exp(a)) == products(lambda: matrix_exp(a, save="all")) == 5 + s
    for size in (1e-200, 1.0, 1e200):
        for save, taken in (("all", 2 * (5 + s)), ("result", 4 + s + 2 * (5 + s))):
            y = matrix_exp(a, save=save)
            for _ in range(2):  # every further cotangent takes as many
                run = partial(torch.autograd.grad, y, a, size * cotangent, retain_graph=True)
                assert products(run) == taken
                run = partial(torch.autograd.grad, y, a, size * eye.to(dtype), retain_graph=True)
                assert products(run) == 0


def test_products_of_all_gradients_of_a_trace() -> None:
    a = member("random", 12, 30.0, REAL)
    heads = [lambda y, k=k: torch.sin(y / k) for k in range(1, 17)]
    taken = products(lambda: gradients(lambda a: matrix_exp(a).trace(), heads, a))
    assert taken == 5 + squarings(a)


@each_save
def test_products_of_a_batch(save: Save) -> None:
    norms = (1.0, 1000.0, 30.0, 30.0)
    a = torch.stack([member("random", 6, norm, REAL, seed=k) for k, norm in enumerate(norms)])
    steps = [5 + squarings(each) for each in a]
    assert len(set(steps)) > 2
    a.requires_grad_()
    y = matrix_exp(a, save=save)
    assert products(lambda: matrix_exp(a)) == sum(steps)
    again = 0 if save == "all" else sum(steps) - sum(step == max(steps) for step in steps)
    taken = products(lambda: torch.autograd.grad(y, a, normal(4, 6, 6), retain_graph=True))
    if save == "all":
        assert taken == 2 * sum(steps)
    else:  # of the powers again, only the last of all squarings is not needed
        assert taken == 2 * sum(steps) + again
    eye = torch.eye(6, dtype=REAL) * torch.arange(4.0)[:, None, None]
    assert products(lambda: torch.autograd.grad(y, a, eye)) == 0


@each_save
def test_products_of_second_derivatives(save: Save) -> None:
    a = member("random", 12, 30.0, REAL).requires_grad_()
    step = 5 + squarings(a.detach())
    cotangent = normal(12, 12).requires_grad_()
    known = step - 1 if save == "result" else 0
    y = matrix_exp(a, save=save)
    (first,) = torch.autograd.grad(y, a, cotangent, create_graph=True)
    again = partial(torch.autograd.grad, first, retain_graph=True, grad_outputs=normal(12, 12))
    # Of two directions nothing has both before the square: 3 of the 8 products are not needed.
    assert products(lambda: again(inputs=(a, cotangent))) == 8 * step - 3 + known
    _, backward = vjp(partial(matrix_exp, save=save), a.detach())
    assert products(lambda: vjp(backward, cotangent)[1]((a,))) == 2 * (2 * step + known)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(a.detach(), normal(12, 12))
        assert products(lambda: matrix_exp(dual, save=save)) == 3 * step + known


@each_wide
@pytest.mark.parametrize("norm", [1.0, 30.0, 1000.0])
def test_memory_of_a_forward_and_a_backward(norm: float, dtype: torch.dtype) -> None:
    """In matrices beside A and the cotangent; "result" needs as many at any norm."""
    a = member("random", 60, norm, dtype)
    cotangent = normal(60, 60, dtype=dtype)
    for save, most in (("result", 13), ("all", 15 + squarings(a))):
        leaf = a.clone().requires_grad_()
        with Live() as live:
            torch.autograd.grad(matrix_exp(leaf, save=save), leaf, cotangent)
        assert live.peak / a.nbytes < most + 0.1


def test_vmapped_cotangents_share_the_powers() -> None:
    a = member("random", 3, 30.0, REAL)
    step = 5 + squarings(a)
    assert products(lambda: jacrev(partial(matrix_exp, save="all"))(a)) == (1 + 2 * 9) * step
    assert products(lambda: jacrev(matrix_exp)(a)) == (2 + 2 * 9) * step - 1


def test_full_cotangent_is_told_from_the_identity_at_once() -> None:
    seen = []

    class Operations(Products):
        def __torch_dispatch__(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(operation.overloadpacket.__name__)
            return super().__torch_dispatch__(operation, *args, **kwargs)

    a = member("random", 12, 1.0, REAL).requires_grad_()
    for cotangent, looked_at in ((torch.ones(12, 12), False), (torch.eye(12), True)):
        y = matrix_exp(a)
        seen.clear()
        with Operations():
            torch.autograd.grad(y, a, cotangent.double())
        assert ("count_nonzero" in seen) == looked_at


@pytest.mark.parametrize("place", [(0, 0), (0, 1), (2, 0), (3, 3)])
@each_save
def test_what_is_almost_a_multiple_of_the_identity(place: tuple[int, int], save: Save) -> None:
    a = member("random", 4, 5.0, REAL)
    cotangent = torch.eye(4, dtype=REAL)
    cotangent[place] += 1e-3
    found = back(partial(matrix_exp, save=save), a, cotangent)[1]
    assert error(found, exact(a.mT.clone(), cotangent)[1]) < 3e-15


@each_save
def test_saved_matrices_are_all_seen_by_hooks(save: Save) -> None:
    """And nothing else holds them: what hooks move away is not kept beside."""
    n, packed = 8, []

    def pack(tensor: Tensor) -> int:
        packed.append(tensor.numpy().copy())
        return len(packed) - 1

    a = member("random", n, 30.0, REAL).requires_grad_()
    cotangent = normal(n, n)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda k: torch.from_numpy(packed[k])):
        y = matrix_exp(a, save=save)
    matrices = sum(each.size == n * n for each in packed)
    assert matrices == (2 if save == "result" else 2 + 7 + squarings(a.detach()))
    (found,) = torch.autograd.grad(y, a, cotangent)
    assert torch.equal(found, back(partial(matrix_exp, save=save), a, cotangent)[1])


# Transforms


def weighted(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A scalar that depends on every entry of f(A) in its own way."""
    return lambda a: (f(a).sin() * torch.arange(9.0, dtype=REAL).reshape(3, 3)).sum()


@pytest.fixture
def batch() -> Tensor:
    return normal(4, 3, 3) * torch.tensor([0.3, 0.7, 1.0, 2.0], dtype=REAL)[:, None, None]


def test_hessian_has_its_closed_form() -> None:
    """Of tr exp(A), at a diagonal A: the divided difference of exp at (aᵢ, aⱼ), entry (ij, ji)."""
    entries = torch.tensor([0.3, -1.0, 2.0], dtype=REAL)
    spread = entries[:, None] - entries
    difference = entries.exp()[:, None] - entries.exp()
    divided = torch.where(spread == 0, entries.exp(), difference / spread.where(spread != 0, 1.0))
    true = torch.zeros(3, 3, 3, 3, dtype=REAL)
    for i in range(3):
        for j in range(3):
            true[i, j, j, i] = divided[i, j]
    for f in (hessian, lambda f: jacrev(jacrev(f)), lambda f: jacfwd(jacfwd(f))):
        found = f(lambda a: matrix_exp(a).trace())(entries.diag())
        assert error(found, true) < 1e-14


@each_save
def test_transforms_agree_with_torch(save: Save, batch: Tensor) -> None:
    f, other, a = partial(matrix_exp, save=save), torch.matrix_exp, batch[1]
    every = lambda of: torch.stack([of(each) for each in batch])  # noqa: E731
    second = jacrev(jacrev(other))(a)
    curvature = partial(torch.autograd.functional.hessian, weighted(other))
    for found, true in (
        (vmap(f)(batch), other(batch)),
        (vmap(f, in_dims=2, out_dims=1)(batch.movedim(0, 2)), other(batch).movedim(0, 1)),
        (vmap(vmap(f))(batch.reshape(2, 2, 3, 3)), other(batch).reshape(2, 2, 3, 3)),
        (grad(weighted(f))(a), grad(weighted(other))(a)),
        (vjp(f, a)[1](a)[0], vjp(other, a)[1](a)[0]),
        (jvp(f, (a,), (a + 1,))[1], jvp(other, (a,), (a + 1,))[1]),
        (vmap(grad(weighted(f)))(batch), every(grad(weighted(other)))),
        (grad(lambda b: vmap(weighted(f))(b).sum())(batch), every(grad(weighted(other)))),
        (jacrev(f)(a), jacrev(other)(a)),
        (jacfwd(f)(a), jacrev(other)(a)),
        (vmap(jacrev(f))(batch), every(jacrev(other))),
        (vmap(jacfwd(f))(batch), every(jacrev(other))),
        (jacrev(jacrev(f))(a), second),
        (jacfwd(jacrev(f))(a), second),
        (jacrev(jacfwd(f))(a), second),
        (jacfwd(jacfwd(f))(a), second),
        (hessian(weighted(f))(a), curvature(a)),
        (vmap(hessian(weighted(f)))(batch), every(curvature)),
    ):
        assert error(found, true) < 1e-12


@each_save
def test_third_derivatives(save: Save, batch: Tensor) -> None:
    f, a = weighted(partial(matrix_exp, save=save)), batch[1]
    found = jacrev(jacfwd(jacrev(f)))(a)
    assert error(found, jacfwd(jacfwd(jacfwd(f)))(a)) < 1e-13
    step = 1e-5
    moved = torch.zeros(3, 3, dtype=REAL)
    moved[0, 1] = step
    difference = (hessian(f)(a + moved) - hessian(f)(a - moved)) / (2 * step)
    assert error(found[..., 0, 1], difference) < 1e-8


@each_wide
@each_save
def test_batched_cotangents(dtype: torch.dtype, save: Save) -> None:
    f = partial(matrix_exp, save=save)
    for shape in ((3, 3), (4, 3, 3)):
        a = (normal(*shape, dtype=dtype) * torch.linspace(0.1, 9, math.prod(shape[:-2]), dtype=REAL)
             .reshape(*shape[:-2], 1, 1)).requires_grad_()  # fmt: skip
        rows = normal(5, *shape, dtype=dtype, seed=1)
        y = f(a)
        back_once = partial(torch.autograd.grad, retain_graph=True)
        (found,) = back_once(y, a, rows, is_grads_batched=True)
        loop = torch.stack([back_once(y, a, row)[0] for row in rows])
        assert error(found, loop) < 1e-14
        (graph,) = back_once(y, a, rows, is_grads_batched=True, create_graph=True)
        (second,) = back_once((graph * rows.flip(0)).sum().real, a)
        parts = [back_once(y, a, row, create_graph=True)[0] for row in rows]
        (other,) = back_once((torch.stack(parts) * rows.flip(0)).sum().real, a)
        assert error(second, other) < 1e-13


@each_save
def test_compiled_code_may_call_it(save: Save) -> None:
    def f(a: Tensor) -> Tensor:
        return matrix_exp(a * 2, save=save).sin()

    a, cotangent = normal(3, 3), normal(3, 3, seed=1)
    found = back(torch.compile(f, backend="eager"), a, cotangent)
    for one, other in zip(found, back(f, a, cotangent), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


# Modes and edges


@each_dtype
@each_save
def test_autocast_does_not_narrow_it(dtype: torch.dtype, save: Save) -> None:
    a, cotangent = normal(5, 5, dtype=dtype), normal(5, 5, dtype=dtype, seed=1)
    f = partial(matrix_exp, save=save)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = back(f, a, cotangent)
    for one, other in zip(inside, back(f, a, cotangent), strict=True):
        assert torch.equal(one, other)
        assert one.dtype == dtype


@each_save
def test_without_a_graph(save: Save) -> None:
    a = normal(3, 3).requires_grad_()
    with torch.no_grad():
        assert not matrix_exp(a, save=save).requires_grad
    with torch.inference_mode():
        assert matrix_exp(a, save=save).is_inference()
    assert not matrix_exp(a.detach(), save=save).requires_grad


@each_save
def test_several_backwards_and_none(save: Save) -> None:
    a = normal(3, 3).requires_grad_()
    y = matrix_exp(a, save=save)
    first, second = (
        torch.autograd.grad(y, a, torch.ones_like(y), retain_graph=True)[0] for _ in range(2)
    )
    assert torch.equal(first, second)
    zero = torch.zeros_like(y)
    (found,) = torch.autograd.grad(y, a, zero, retain_graph=True)
    assert torch.equal(found, zero)
    y.sum().backward()
    torch.testing.assert_close(a.grad, first)
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


@each_dtype
@each_save
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("n", [1, 4])
def test_nan_stays_in_its_matrix(bad: float, n: int, dtype: torch.dtype, save: Save) -> None:
    a = normal(3, n, n, dtype=dtype)
    alone = back(partial(matrix_exp, save=save), a[[0, 2]], torch.ones(2, n, n, dtype=dtype))
    a[1, n // 2, 0] = bad
    for cotangent in (torch.ones_like(a), torch.eye(n, dtype=dtype).expand(a.shape)):
        found, gradient = back(partial(matrix_exp, save=save), a, cotangent)
        assert found[1].isnan().all() and gradient[1].isnan().all()
        assert found[[0, 2]].isfinite().all() and gradient[[0, 2]].isfinite().all()
        torch.testing.assert_close(found[[0, 2]], alone[0])
        single = back(partial(matrix_exp, save=save), a[1], cotangent[1])
        assert all(each.isnan().all() for each in single)


@each_save
def test_nan_in_the_cotangent_comes_out(save: Save) -> None:
    a = normal(2, 4, 4)
    for place in ((0, 0), (2, 1)):
        cotangent = torch.eye(4, dtype=REAL).repeat(2, 1, 1)
        cotangent[(1, *place)] = math.nan
        _, gradient = back(partial(matrix_exp, save=save), a, cotangent)
        assert gradient[1].isnan().all() and gradient[0].isfinite().all()


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex32]
)
def test_dtype_that_it_does_not_take(dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=rf"`A` has dtype {dtype}\. Give float32, float64"):
        matrix_exp(torch.zeros(2, 2, dtype=dtype))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (4, 3, 2)])
def test_shape_that_it_does_not_take(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"`A` has shape \(.*\)\. Give square matrices"):
        matrix_exp(torch.zeros(shape))


def test_arguments_that_it_does_not_take() -> None:
    with pytest.raises(TypeError, match="`A` is a list"):
        matrix_exp([[1.0]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`save` is 'some'\. Give 'result' or 'all'"):
        matrix_exp(torch.zeros(2, 2), save="some")  # type: ignore[arg-type]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@each_wide
@each_save
def test_it_is_the_same_on_a_gpu(dtype: torch.dtype, save: Save) -> None:
    a, cotangent = normal(3, 20, 20, dtype=dtype), normal(3, 20, 20, dtype=dtype, seed=1)
    f = partial(matrix_exp, save=save)
    found = back(f, a.cuda(), cotangent.cuda())
    for one, other in zip(found, back(f, a, cotangent), strict=True):
        torch.testing.assert_close(one.cpu(), other)
