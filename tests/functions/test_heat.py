"""The heat equation: the sine's decay, a banded solver, and the solution of the equation."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import solve_banded

from explorer.engine.gradients import jacobian
from explorer.engine.saved import saved_bytes
from explorer.functions.heat import FUNCTION
from tests.estimates import require_calls
from tests.test_functions import DTYPES, build, setting


def heat(size: int, dtype: str = "float64", **given: Any) -> Any:
    return build("heat_equation", size, dtype, **given)


@pytest.mark.parametrize(("size", "outputs"), [(1, 1), (2, 5), (9, 9), (40, 3)])
@pytest.mark.parametrize("steps", [1, 6])
@pytest.mark.parametrize("start", ["sine", "step"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_is_what_the_steps_compute(
    dtype: str, start: str, steps: int, size: int, outputs: int
) -> None:
    problem = heat(size, dtype, start=start, steps=steps, outputs=outputs)
    # The condition number of a step's matrix, at κ = 3/2, for every step and a few roundings.
    condition = 1 + 1.5 * 0.1 / steps * 4 * (size + 1) ** 2
    tolerance = 10 * steps * condition * torch.finfo(problem.x.dtype).eps
    found = problem.f(problem.x).double(), jacobian(problem.f, problem.x).double()
    expected = problem.exact.value, problem.exact.jacobian
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_sine_keeps_its_shape_and_loses_a_factor_in_each_step() -> None:
    n, steps = 30, 8
    problem = heat(n, steps=steps, outputs=n)  # as many sensors as points: they coincide
    growth = 0.1 / steps * 4 * (n + 1) ** 2 * math.sin(math.pi / (2 * (n + 1))) ** 2
    profile = torch.sin(math.pi * torch.arange(1, n + 1).double() / (n + 1))
    expected = profile / (1 + growth * problem.x).prod()
    torch.testing.assert_close(problem.f(problem.x), expected, rtol=1e-12, atol=1e-14)
    by_step = -growth / (1 + growth * problem.x)
    torch.testing.assert_close(
        jacobian(problem.f, problem.x), expected[:, None] * by_step, rtol=1e-11, atol=1e-14
    )


def test_step_start_is_what_a_banded_solver_finds() -> None:
    n, steps = 31, 5
    problem = heat(n, start="step", steps=steps, outputs=n)
    u = np.array([1.0 if abs(j / (n + 1) - 0.5) < 0.25 else 0.0 for j in range(1, n + 1)])
    for diffusivity in problem.x.tolist():
        r = diffusivity * 0.1 / steps * (n + 1) ** 2
        bands = np.array([np.full(n, -r), np.full(n, 1 + 2 * r), np.full(n, -r)])
        u = solve_banded((1, 1), bands, u)
    torch.testing.assert_close(problem.f(problem.x), torch.from_numpy(u), rtol=1e-12, atol=1e-14)


def test_sine_nears_the_solution_with_the_step() -> None:
    errors = []
    for steps in (50, 100, 200):
        problem = heat(400, steps=steps, outputs=1)  # one sensor, in the middle
        solution = math.exp(-(math.pi**2) * 0.1 * problem.x.mean().item())
        errors.append(problem.exact.value.item() / solution - 1)
    for before, after in itertools.pairwise(errors):
        assert before / after == pytest.approx(2, rel=0.1)
    assert 0 < errors[-1] < 0.005


def test_sensors_read_between_the_points() -> None:
    sparse, dense = heat(3, outputs=7), heat(3, outputs=3)
    at_points = torch.nn.functional.pad(dense.f(dense.x), (1, 1))
    between = (at_points[1:] + at_points[:-1]) / 2
    found = sparse.f(sparse.x)
    torch.testing.assert_close(found[1::2], at_points[1:-1])
    torch.testing.assert_close(found[0::2], between)


def test_memory_is_that_of_two_matrices_a_step() -> None:
    chosen = setting("heat_equation", 100, steps=40)
    problem = FUNCTION.build(chosen)
    x = problem.x.clone().requires_grad_()
    with saved_bytes() as saved:
        problem.f(x)
    assert saved.size is not None
    assert saved.size < FUNCTION.cost(chosen).memory_bytes < 1.5 * saved.size


@pytest.mark.parametrize("steps", [1, 20, 50])
def test_operators_are_as_many_as_estimated(steps: int) -> None:
    require_calls(FUNCTION, setting("heat_equation", 10, steps=steps))
