"""The integral is a sum over its points, and the grid's sum is the integral where it is fine."""

import math
from typing import Any

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.engine.gradients import jacobian
from explorer.functions.description import Setting
from explorer.functions.integral import FUNCTION, nodes, points
from tests.test_functions import DTYPES, build, setting

FACTORISING = ("gaussian", "oscillatory")


def integral(size: int, dtype: str = "float64", seed: int = 0, **given: Any) -> Any:
    return build("integral", size, dtype, seed, **given)


def gaussian(a: Tensor) -> Tensor:
    """∫ exp(−Σ aᵢ tᵢ²) dt over the unit cube."""
    return (torch.sqrt(math.pi / a) / 2 * torch.erf(a.sqrt())).prod()


def gaussian_gradient(a: Tensor) -> Tensor:
    factor = torch.sqrt(math.pi / a) / 2 * torch.erf(a.sqrt())
    return gaussian(a) / factor * (torch.exp(-a) - factor) / (2 * a)


def oscillatory(a: Tensor) -> Tensor:
    """∫ cos(Σ aᵢ tᵢ) dt over the unit cube: a product of sines."""
    half = a / 2
    return torch.cos(half.sum()) * (half.sin() / half).prod()


def oscillatory_gradient(a: Tensor) -> Tensor:
    half = a / 2
    shape = (half.sin() / half).prod()
    turn = -torch.sin(half.sum()) * shape / 2
    return turn + oscillatory(a) * (1 / half.tan() - 1 / half) / 2


CLOSED = {
    "gaussian": (gaussian, gaussian_gradient),
    "oscillatory": (oscillatory, oscillatory_gradient),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("dimensions", "size"), [(3, 1000), (3, 9000), (5, 100_000)])
@pytest.mark.parametrize("integrand", FACTORISING)
def test_ten_nodes_give_the_closed_form(
    integrand: str, dimensions: int, size: int, seed: int
) -> None:
    problem = integral(size, seed=seed, dimensions=dimensions, integrand=integrand)
    value, gradient = (of(problem.x) for of in CLOSED[integrand])
    for found in (problem.f(problem.x), problem.exact.value):
        torch.testing.assert_close(found, value, rtol=1e-13, atol=1e-14)
    for found in (jacobian(problem.f, problem.x), problem.exact.jacobian):
        torch.testing.assert_close(found, gradient, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("size", [1, 8, 100])
@pytest.mark.parametrize("dimensions", [3, 4])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("integrand", FACTORISING)
def test_exact_is_that_of_the_sum_with_few_nodes_too(
    integrand: str, dtype: str, dimensions: int, size: int
) -> None:
    problem = integral(size, dtype, dimensions=dimensions, integrand=integrand)
    # No term is above 1, and the weights add up to 1.
    tolerance = 50 * torch.finfo(problem.x.dtype).eps
    found = problem.f(problem.x).double(), jacobian(problem.f, problem.x).double()
    expected = problem.exact.value, problem.exact.jacobian
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


def test_one_node_is_the_midpoint() -> None:
    problem = integral(7)
    assert problem.f(problem.x).item() == pytest.approx(
        math.exp(-problem.x.sum().item() / 4), rel=1e-15
    )


def test_yukawa_is_the_integral_of_its_formula() -> None:
    problem = integral(8000, integrand="yukawa")
    a = problem.x.tolist()

    def potential(*t: float) -> Any:
        r = mpmath.sqrt(1 + sum(each * at * at for each, at in zip(a, t, strict=True)))
        return mpmath.exp(-r) / r

    mpmath.mp.dps = 15
    reference = mpmath.quad(potential, *[[0, 1]] * 3, maxdegree=3, method="gauss-legendre")
    assert problem.f(problem.x).item() == pytest.approx(float(reference), rel=1e-12)
    assert problem.exact is None


@pytest.mark.parametrize("integrand", FACTORISING)
def test_monte_carlo_is_within_its_standard_error(integrand: str) -> None:
    size = 200_000
    problem = integral(size, method="monte_carlo", integrand=integrand, seed=3)
    value, gradient = (of(problem.x) for of in CLOSED[integrand])
    # The integrand lies in [−1, 1], and its derivative by aᵢ too: their variance is at most 1.
    error = 5 / math.sqrt(size)
    torch.testing.assert_close(problem.f(problem.x), value, rtol=0, atol=error)
    torch.testing.assert_close(jacobian(problem.f, problem.x), gradient, rtol=0, atol=error)
    assert problem.exact is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_monte_carlo_is_the_mean_over_the_seeds_points(dtype: str) -> None:
    problem = integral(50, dtype, seed=5, method="monte_carlo", integrand="yukawa", dimensions=4)
    generator = torch.Generator().manual_seed(5)
    a = (0.5 + 1.5 * torch.rand(4, generator=generator)).double()
    t = torch.rand(50, 4, generator=generator).double()
    assert torch.equal(problem.x.double(), a)
    r = torch.sqrt(1 + (t**2) @ a)
    expected = (torch.exp(-r) / r).mean()
    tolerance = 10 * torch.finfo(problem.x.dtype).eps
    torch.testing.assert_close(problem.f(problem.x).double(), expected, rtol=tolerance, atol=0)


@given(
    size=st.integers(1, int(FUNCTION.size.maximum)),
    dimensions=st.integers(3, 8),
    method=st.sampled_from(["gauss_legendre", "monte_carlo"]),
)
def test_points_are_as_many_as_the_size_allows(size: int, dimensions: int, method: str) -> None:
    chosen = Setting(
        size, {"dimensions": dimensions, "method": method, "integrand": "gaussian"}, "float64"
    )
    assert nodes(chosen) ** dimensions <= size < (nodes(chosen) + 1) ** dimensions
    assert 1 <= points(chosen) <= size
    # What is refused for want of memory goes by the points that there are.
    assert FUNCTION.cost(chosen).memory_bytes >= 3 * 8 * points(chosen)


def test_estimate_grows_with_what_monte_carlo_holds() -> None:
    cost = [
        FUNCTION.cost(setting("integral", 10**8, method="monte_carlo", dimensions=d)).memory_bytes
        for d in (3, 8)
    ]
    assert cost[1] - cost[0] > 5 * 8 * 10**8
