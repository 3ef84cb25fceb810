"""The recurrent network is torch's cells, applied again and again, and has their costs."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.engine.gradients import jacobian
from explorer.engine.saved import saved_bytes
from explorer.experiment import DTYPES, Experiment
from explorer.functions.description import Problem, Setting
from explorer.functions.recurrent import FUNCTION
from tests.estimates import require_flops

CELLS = ("tanh", "relu", "gru", "lstm")
STARTS = ("default", "orthogonal", "identity")
every_cell = pytest.mark.parametrize("cell", CELLS)
every_start = pytest.mark.parametrize("start", STARTS)


def setting(size: int, dtype: str = "float64", seed: int = 0, **given: Any) -> Setting:
    return Experiment("recurrent_network", size, given, dtype=dtype, seed=seed).setting


def build(size: int, dtype: str = "float64", seed: int = 0, **given: Any) -> Problem:
    return FUNCTION.build(setting(size, dtype, seed, **given))


def by_torch(n: int, steps: int, cell: str, start: str, seed: int) -> tuple[Tensor, Tensor]:
    """(x, y) in float64, by torch's module of the cell."""
    gates = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}[cell]
    bound = 1 / math.sqrt(n)
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.empty(shape).uniform_(-bound, bound, generator=generator)

    x = torch.randn(n * (1 + (cell == "lstm")), generator=generator).double()
    inputs = torch.randn(steps, n, generator=generator).double()
    state = {"bias_ih": uniform(gates * n), "bias_hh": uniform(gates * n)}
    state["weight_ih"] = uniform(gates * n, n)
    if start == "default":
        state["weight_hh"] = uniform(gates * n, n)
    else:
        blocks = [torch.eye(n) for _ in range(gates)]
        if start == "orthogonal":
            blocks = [torch.nn.init.orthogonal_(each, generator=generator) for each in blocks]
        state["weight_hh"] = torch.cat(blocks)
    module: Any = {
        "gru": lambda: torch.nn.GRUCell(n, n),
        "lstm": lambda: torch.nn.LSTMCell(n, n),
    }.get(cell, lambda: torch.nn.RNNCell(n, n, nonlinearity=cell))()
    module.load_state_dict(state)
    module.double()
    h = tuple(x.split(n)) if cell == "lstm" else x
    with torch.no_grad():
        for each in inputs:
            h = module(each, h)
    return x, torch.cat(h) if cell == "lstm" else h


@every_cell
@every_start
@pytest.mark.parametrize("n, steps, seed", [(1, 1, 0), (5, 1, 1), (4, 6, 2), (30, 40, 3)])
def test_is_the_cell_of_torch_again_and_again(
    cell: str, start: str, n: int, steps: int, seed: int
) -> None:
    problem = build(n, seed=seed, steps=steps, cell=cell, start=start)
    x, y = by_torch(n, steps, cell, start, seed)
    assert torch.equal(problem.x, x)
    torch.testing.assert_close(problem.f(problem.x), y, rtol=1e-12, atol=1e-12)


def test_recurrent_weights_are_as_the_start_has_them() -> None:
    weights = {}
    for start in STARTS:
        problem = build(40, steps=1, start=start)
        y = problem.f(problem.x)
        weights[start] = jacobian(problem.f, problem.x) / (1 - y * y)[:, None]  # tanh′ = 1 − tanh²
    one = torch.eye(40, dtype=torch.float64)
    torch.testing.assert_close(weights["identity"], one)
    orthogonal = weights["orthogonal"]
    torch.testing.assert_close(orthogonal @ orthogonal.T, one, rtol=0, atol=1e-5)  # of float32
    assert (orthogonal - one).norm() > 1
    bound = 1 / math.sqrt(40)
    assert bound * 0.98 < weights["default"].abs().max() < bound * (1 + 1e-12)


# The closed form of ReLU and the identity.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, steps", [(1, 1), (6, 3), (50, 20), (200, 100)])
@pytest.mark.parametrize("seed", [0, 1])
def test_reflected_walk_is_exact(n: int, steps: int, seed: int, dtype: str) -> None:
    problem = build(n, dtype, seed, steps=steps, cell="relu", start="identity")
    assert problem.exact is not None
    y, eps = problem.f(problem.x), torch.finfo(problem.x.dtype).eps
    # Each of the steps rounds a sum that is no larger than the walk is far from where it began.
    error = (y.double() - problem.exact.value).abs().max().item()
    assert error <= steps * eps * max(1.0, problem.exact.value.abs().max().item())
    # Zeros and ones, which no rounding moves unless a walk ends within it of 0.
    assert torch.equal(jacobian(problem.f, problem.x).double(), problem.exact.jacobian)


def test_reflected_walk_forgets_its_start_where_it_was_reflected() -> None:
    exact = build(50, steps=20, cell="relu", start="identity").exact
    assert exact is not None
    slopes = exact.jacobian.diagonal()
    assert set(slopes.tolist()) == {0.0, 1.0}
    assert torch.equal(exact.jacobian, torch.diag(slopes))


@every_cell
@every_start
def test_nothing_else_has_a_closed_form(cell: str, start: str) -> None:
    exact = build(3, steps=2, cell=cell, start=start).exact
    assert (exact is not None) == (cell == "relu" and start == "identity")


def test_gradients_vanish_from_torchs_start_and_not_from_the_identity() -> None:
    def norm(cell: str, start: str, steps: int) -> float:
        problem = build(30, steps=steps, cell=cell, start=start)
        return float(torch.linalg.matrix_norm(jacobian(problem.f, problem.x), 2))

    # Uniform entries within ±1/√n have a spectral radius of about 1/√3.
    assert norm("tanh", "default", 40) < 3**-16
    assert norm("relu", "identity", 40) == 1
    for cell in CELLS:
        for start in ("orthogonal", "identity"):
            assert norm(cell, start, 40) > 10 * norm(cell, "default", 40)


# Seeds and dtypes.


@every_cell
@every_start
def test_is_one_function_in_both_dtypes(cell: str, start: str) -> None:
    narrow, wide = (
        build(20, dtype, seed=3, steps=30, cell=cell, start=start) for dtype in DTYPES
    )
    assert torch.equal(narrow.x.double(), wide.x)
    torch.testing.assert_close(narrow.f(narrow.x).double(), wide.f(wide.x), rtol=1e-4, atol=1e-5)


@every_cell
def test_seed_decides_and_the_start_changes_its_weights_alone(cell: str) -> None:
    one, same, other = (build(6, seed=seed, cell=cell) for seed in (1, 1, 2))
    assert torch.equal(one.f(one.x), same.f(same.x))
    assert not torch.equal(one.x, other.x)
    rest = build(6, seed=1, cell=cell, start="identity")
    assert torch.equal(one.x, rest.x)
    assert not torch.equal(one.f(one.x), rest.f(rest.x))
    # From h = 0 no recurrent weight counts in the first step.
    first = [build(6, seed=1, steps=1, cell=cell, start=start) for start in STARTS]
    found = [each.f(torch.zeros_like(each.x)) for each in first]
    for each in found[1:]:
        torch.testing.assert_close(each, found[0])


# Its cost.


@every_cell
@pytest.mark.parametrize("steps", [1, 7])
def test_costs_two_operations_a_weight_and_step(cell: str, steps: int) -> None:
    require_flops(FUNCTION, setting(6, steps=steps, cell=cell))


@every_cell
@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_is_the_weights_the_inputs_and_twice_what_is_kept(cell: str, dtype: str) -> None:
    n, steps = 20, 500  # the steps keep more than drawing the weights takes
    chosen = setting(n, dtype, steps=steps, cell=cell)
    problem = FUNCTION.build(chosen)
    x = problem.x.clone().requires_grad_()
    with saved_bytes() as saved:
        problem.f(x)
    item = x.itemsize
    gates = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}[cell]
    assert saved.size is not None
    weights, u = gates * n * n * item, steps * gates * n * item
    expected = weights + u + 2 * (saved.size - weights)
    assert FUNCTION.cost(chosen).memory_bytes == pytest.approx(expected, rel=0.02)


@every_cell
@pytest.mark.parametrize("dtype", DTYPES)
def test_estimates_grow_with_the_steps(cell: str, dtype: str) -> None:
    costs = [FUNCTION.cost(setting(50, dtype, steps=steps, cell=cell)) for steps in (1, 10, 100)]
    for smaller, larger in itertools.pairwise(costs):
        assert 0 < smaller.forward.seconds < larger.forward.seconds
        assert 0 < smaller.backward.seconds < larger.backward.seconds
        assert 0 < smaller.memory_bytes < larger.memory_bytes
