"""Singular values without the matrix hold against dense decompositions of the same Jacobian."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer import (
    hessian_eigenvalues,
    jacobian_distance,
    singular_values,
    spectral_norm,
)
from explorer.engine.spectrum import SMALL, decomposed

Map = Callable[[Tensor], Tensor]


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def rotation(n: int, seed: int) -> Tensor:
    return torch.linalg.qr(normal(n, n, seed=seed))[0]


def with_values(values: Tensor, rows: int, columns: int) -> Tensor:
    """A matrix with these singular values and random singular vectors."""
    k = len(values)
    return rotation(rows, 1)[:, :k] @ torch.diag(values) @ rotation(columns, 2)[:k]


def linear(matrix: Tensor) -> Map:
    return lambda x: matrix @ x


SHAPES = [(1, 9), (9, 1), (1, 1), (SMALL, 90), (90, SMALL), (SMALL + 1, 90), (90, SMALL + 1)]


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_norm_is_the_largest_singular_value(m: int, n: int) -> None:
    matrix = normal(m, n)
    values = torch.linalg.svdvals(matrix)
    found = spectral_norm(linear(matrix), normal(n, seed=3))
    assert found.value == pytest.approx(values[0].item(), rel=1e-6)
    assert found.direction.norm().item() == pytest.approx(1)
    assert (matrix @ found.direction).norm().item() == pytest.approx(found.value, rel=1e-6)
    several = singular_values(linear(matrix), normal(n, seed=3), min(m, n, 4))
    assert several.values == pytest.approx(values[:4].tolist(), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_forty_pairs_are_enough_for_a_thousand(seed: int) -> None:
    first, second = (normal(1000, 1000, seed=10 * seed + k) / 1000**0.5 for k in (1, 2))

    def f(x: Tensor) -> Tensor:
        return torch.tanh(second @ torch.tanh(first @ x))

    x = 0.3 * normal(1000, seed=seed)
    found = spectral_norm(f, x)
    exact = torch.linalg.svdvals(torch.func.jacrev(f)(x))[0].item()
    assert found.products <= 80
    assert abs(found.value - exact) <= min(1e-6 * exact, found.error)


def test_f_is_run_once() -> None:
    calls = []

    def f(x: Tensor) -> Tensor:
        calls.append(1)
        return x**3

    assert spectral_norm(f, torch.linspace(1, 2, 100)).value == pytest.approx(12, rel=1e-6)
    assert len(calls) == 1


REPEATED = {
    "a rotation": torch.ones(80),
    "pairs and threes": torch.cat([torch.tensor([3.0, 3, 3, 2, 2]), torch.linspace(0, 1, 75)]),
    "clusters": torch.cat([1 + 1e-8 * torch.arange(5), 0.5 + 1e-4 * torch.arange(75)]),
    "rank one": torch.cat([torch.ones(1), torch.zeros(79)]),
    "rank three": torch.cat([torch.tensor([1.0, 1, 0.1]), torch.zeros(77)]),
    "even": torch.linspace(0, 1, 80),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_and_clustered_values(name: str) -> None:
    values = REPEATED[name].double().sort(descending=True).values
    found = singular_values(linear(with_values(values, 80, 80)), normal(80), 6)
    expected = values[:6].tolist()
    assert found.values == pytest.approx(expected, rel=2e-6, abs=1e-12)


@pytest.mark.parametrize("n", [5, 200])
def test_zero(n: int) -> None:
    found = spectral_norm(lambda x: 0 * x, normal(n))
    assert (found.value, found.error, found.direction) == (0.0, 0.0, None)
    assert singular_values(lambda x: 0 * x, normal(n), 2).values == (0.0, 0.0)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_matrix_that_is_not_finite(wrong: float) -> None:
    values, direction = decomposed(torch.diag(torch.tensor([1.0, wrong, 2.0])))
    assert values.isnan().all()
    assert direction is None


def test_infinite_derivative_is_not_a_number() -> None:
    x = torch.linspace(0, 1, 100, dtype=torch.float64)
    found = spectral_norm(torch.sqrt, x)
    assert math.isnan(found.value)
    assert found.direction is None


@given(
    st.integers(0, 1000),
    st.sampled_from([1e-200, 1e-30, 1.0, 1e30, 1e150]),
    st.sampled_from([(70, 70), (66, 120), (120, 66), (10, 20)]),
)
def test_scaling_transpose_and_rotation(seed: int, scale: float, shape: tuple[int, int]) -> None:
    m, n = shape
    matrix = normal(m, n, seed=seed)
    exact = torch.linalg.svdvals(matrix)[0].item()
    near = pytest.approx(exact, rel=1e-5)
    assert spectral_norm(linear(scale * matrix), normal(n)).value / scale == near
    assert spectral_norm(linear(matrix.mT), normal(m)).value == near
    turned = rotation(m, seed) @ matrix
    assert spectral_norm(linear(turned), normal(n)).value == near


@given(st.integers(0, 1000))
def test_composition_and_sum_are_bounded(seed: int) -> None:
    f, g = (linear(normal(70, 70, seed=2 * seed + k)) for k in (0, 1))
    x = normal(70)
    one, other = spectral_norm(f, x).value, spectral_norm(g, x).value
    assert spectral_norm(lambda x: g(f(x)), x).value <= one * other * (1 + 1e-6)
    assert spectral_norm(lambda x: f(x) + g(x), x).value <= (one + other) * (1 + 1e-6)


def test_complex_values_come_in_pairs() -> None:
    matrix = normal(90, 90, dtype=torch.complex128)
    exact = torch.linalg.svdvals(matrix)
    found = singular_values(lambda z: matrix @ z, normal(90, dtype=torch.complex128), 4)
    assert found.values == pytest.approx(exact[[0, 0, 1, 1]].tolist(), rel=1e-6)


def test_structures() -> None:
    a, b = normal(90, 40), normal(90, 50, seed=1)
    x = {"a": normal(40), "b": [normal(50)]}

    def f(x: Any) -> tuple[Tensor, Tensor]:
        y = a @ x["a"] + b @ x["b"][0]
        return y[:30], y[30:]

    exact = torch.linalg.svdvals(torch.cat([a, b], dim=1))[0].item()
    found = spectral_norm(f, x)
    assert found.value == pytest.approx(exact, rel=1e-6)
    assert [found.direction["a"].shape, found.direction["b"][0].shape] == [(40,), (50,)]


class _Once(torch.autograd.Function):
    """sin, of which the backward cannot be differentiated, with a forward mode of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x.sin()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] * ctx.saved_tensors[0].cos()

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Tensor:
        return tangents[0] * ctx.saved_tensors[0].cos()


class _OnlyBack(_Once):
    """The same without forward mode."""

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Tensor:
        raise NotImplementedError("no forward mode here")


def test_forward_mode_where_backward_is_not_differentiable() -> None:
    x = torch.linspace(0.1, 1, 100, dtype=torch.float64)
    found = spectral_norm(lambda x: _Once.apply(x), x)
    assert found.value == pytest.approx(math.cos(0.1), rel=1e-6)
    assert "forward mode" in found.notes[0]
    with pytest.raises(RuntimeError, match="neither be differentiated twice nor in forward mode"):
        spectral_norm(lambda x: _OnlyBack.apply(x), x)


def test_distance_of_two_functions() -> None:
    one, other = normal(80, 80), normal(80, 80, seed=1)
    x = normal(80)
    exact = torch.linalg.svdvals(one - other)[0].item()
    assert jacobian_distance(linear(one), linear(other), x).value == pytest.approx(exact, rel=1e-6)
    assert jacobian_distance(linear(one), linear(one), x).value == 0
    with pytest.raises(ValueError, match="`g` returned 40 real numbers, and `f` 80"):
        jacobian_distance(linear(one), linear(other[:40]), x)


def test_what_does_not_converge_is_said() -> None:
    """The one-dimensional Laplacian, whose largest values 4·sin²(kπ/2(n+1)) crowd below 4."""
    n = 5000

    def laplacian(x: Tensor) -> Tensor:
        zero = x.new_zeros(1)
        return 2 * x - torch.cat([x[1:], zero]) - torch.cat([zero, x[:-1]])

    with pytest.warns(UserWarning, match="did not converge to 1e-12"):
        found = spectral_norm(laplacian, normal(n), rtol=1e-12)
    exact = 4 * math.sin(n * math.pi / (2 * (n + 1))) ** 2
    assert exact - found.value <= found.error
    assert "did not converge" in found.notes[-1]


@pytest.mark.parametrize("rtol", [0, 1, -1e-6, math.nan, "1e-6", True, None])
def test_wrong_tolerance(rtol: Any) -> None:
    with pytest.raises(ValueError, match=r"`rtol` is .* Allowed: a number above 0 and below 1"):
        spectral_norm(torch.sin, normal(3), rtol=rtol)


@pytest.mark.parametrize("k", [0, 4, -1, 1.0, True, "2", None])
def test_wrong_number_of_values(k: Any) -> None:
    with pytest.raises(ValueError, match=r"`k` is .* Allowed: a whole number from 1 to 3"):
        singular_values(torch.sin, normal(3), k)


@pytest.mark.parametrize("n", [2, 30, 150])
def test_quadratic_form(n: int) -> None:
    matrix = normal(n, n)
    matrix = matrix + matrix.mT - 3 * torch.eye(n, dtype=torch.float64)
    exact = torch.linalg.eigvalsh(matrix)
    found = hessian_eigenvalues(lambda x: x @ matrix @ x / 2, normal(n, seed=1))
    allowed = 1e-5 * exact.abs().max().item()
    assert found.largest == pytest.approx(exact[-1].item(), abs=allowed)
    assert found.smallest == pytest.approx(exact[0].item(), abs=allowed)


def test_rosenbrock_at_its_minimum() -> None:
    """H = [[802, −400], [−400, 200]]."""
    x = torch.ones(2, dtype=torch.float64)
    found = hessian_eigenvalues(lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2, x)
    middle, root = 501, math.sqrt(301**2 + 400**2)
    assert (found.smallest, found.largest) == pytest.approx((middle - root, middle + root))


def test_linear_function_has_no_curvature() -> None:
    found = hessian_eigenvalues(torch.sum, normal(5))
    assert (found.smallest, found.largest) == (0.0, 0.0)
