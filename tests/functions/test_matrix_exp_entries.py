"""All entries of exp(Σ x_k·G_k), and the derivative that torch or explorer takes of it."""

import inspect
from typing import Any

import mpmath
import pytest
import torch
from torch import Tensor

from explorer.functions import FUNCTIONS
from explorer.functions.description import Problem
from tests.test_functions import build, setting

NAME = "matrix_exp_entries"


def generators(problem: Problem) -> Tensor:
    found: dict[str, Any] = dict(inspect.getclosurevars(problem.f).nonlocals)
    matrices: Tensor = found["matrices"]
    return matrices


@pytest.mark.parametrize("derivative", ["torch", "fast"])
@pytest.mark.parametrize("count", [1, 3])
def test_value_and_derivatives_are_those_of_many_digits(derivative: str, count: int) -> None:
    problem = build(NAME, 3, generators=count, derivative=derivative, scale=2.0)
    matrices, n = generators(problem), 3
    a = torch.tensordot(problem.x, matrices, 1)
    y = problem.f(problem.x)
    jacobian = torch.autograd.functional.jacobian(problem.f, problem.x)
    assert y.shape == (n, n) and jacobian.shape == (n, n, count)
    assert problem.exact is not None
    with mpmath.workdps(40):
        for k, g in enumerate(matrices):
            block = torch.zeros(2 * n, 2 * n, dtype=torch.float64)
            block[:n, :n], block[n:, n:], block[:n, n:] = a, a, g
            found = mpmath.expm(mpmath.matrix(block.tolist()))
            whole = torch.tensor(found.tolist(), dtype=torch.float64)
            for expected, value, exact in (
                (whole[:n, :n], y, problem.exact.value),
                (whole[:n, n:], jacobian[..., k], problem.exact.jacobian[..., k]),
            ):
                assert (value - expected).norm() < 1e-14 * expected.norm()
                assert (exact - expected).norm() < 4e-15 * expected.norm()


def test_one_generator_at_scale_zero_is_the_identity_and_the_generator() -> None:
    problem = build(NAME, 4, generators=1, scale=0.0)
    assert torch.equal(problem.f(problem.x), torch.eye(4, dtype=torch.float64))
    jacobian = torch.autograd.functional.jacobian(problem.f, problem.x)
    torch.testing.assert_close(jacobian[..., 0], generators(problem)[0])


def test_the_derivative_changes_what_a_backward_costs_and_nothing_else() -> None:
    described = FUNCTIONS[NAME]
    slow, fast = (
        described.cost(setting(NAME, 100, derivative=each)) for each in ("torch", "fast")
    )
    assert slow.forward.flops == fast.forward.flops
    assert fast.backward.flops == 3 / 8 * slow.backward.flops
    assert fast.memory_bytes < slow.memory_bytes
