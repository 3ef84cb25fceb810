"""The built-in functions are what their formulas say, in every dtype and size."""

import itertools
import math
from typing import Any

import pytest
import torch

from explorer.engine.gradients import jacobian
from explorer.experiment import Experiment
from explorer.functions import FUNCTIONS
from explorer.functions.description import Problem, Setting
from tests.estimates import require_flops

DTYPES = ("float32", "float64")


def setting(
    function: str, size: int, dtype: str = "float64", seed: int = 0, **given: Any
) -> Setting:
    return Experiment(function, size, given, dtype=dtype, seed=seed).setting


def build(function: str, size: int, dtype: str = "float64", seed: int = 0, **given: Any) -> Problem:
    return FUNCTIONS[function].build(setting(function, size, dtype, seed, **given))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [2, 5])
def test_inputs_outputs_and_dtype_are_as_described(name: str, dtype: str, size: int) -> None:
    described, chosen = FUNCTIONS[name], setting(name, size, dtype)
    problem = described.build(chosen)
    y = problem.f(problem.x)
    assert problem.x.numel() == described.inputs(chosen)
    assert y.numel() == described.outputs(chosen)
    assert y.dtype == problem.x.dtype == getattr(torch, dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_defaults_are_allowed_and_help_is_there(name: str) -> None:
    described = FUNCTIONS[name]
    assert described.name == name
    assert described.size.parse(described.size.default) == described.size.default
    for field in described.parameters:
        assert field.parse(field.default) == field.default
        assert field.help and field.label
    assert described.formula and described.why_slow and described.inaccuracy


@pytest.mark.parametrize("n", [2, 3, 30, 100])
@pytest.mark.parametrize("x", [-1.0, 0.0, 0.3, 1.0, 2.5])
def test_matrix_exp_trace_has_its_closed_form(n: int, x: float) -> None:
    problem = build("matrix_exp_trace", n, x=x)
    leaf = problem.x.clone().requires_grad_()
    y = problem.f(leaf)
    (gradient,) = torch.autograd.grad(y, leaf)
    assert problem.exact is not None
    assert y.item() == pytest.approx(n - 1 + math.cos(n * x), rel=1e-11)
    assert gradient.item() == pytest.approx(-n * math.sin(n * x), rel=1e-9, abs=1e-9)
    assert problem.exact.value.item() == pytest.approx(y.item(), rel=1e-11)
    assert problem.exact.jacobian.item() == pytest.approx(gradient.item(), rel=1e-9, abs=1e-9)


def test_matrix_exp_trace_of_size_1000_is_known() -> None:
    exact = build("matrix_exp_trace", 1000).exact
    assert exact is not None
    assert exact.value.item() == pytest.approx(999.5623790762907, rel=1e-15)
    assert exact.jacobian.item() == pytest.approx(-826.8795405320025, rel=1e-13)


def test_exact_value_is_taken_where_x_lies_in_its_dtype() -> None:
    x = torch.tensor(0.1).item()  # 0.1 in float32 is another number
    exact = build("matrix_exp_trace", 50, "float32", x=0.1).exact
    assert exact is not None
    assert exact.value.dtype == torch.float64
    assert exact.value.item() == pytest.approx(49 + math.cos(50 * x), rel=1e-15)
    assert exact.value.item() != pytest.approx(49 + math.cos(5.0), rel=1e-10)


def test_tanh_network_is_tanh_of_weights_times_x() -> None:
    n, m, gain, seed = 5, 3, 0.7, 4
    problem = build("tanh_network", n, seed=seed, outputs=m, layers=2, gain=gain)
    generator = torch.Generator().manual_seed(seed)
    first, last = (
        (gain / math.sqrt(n) * torch.randn(rows, n, generator=generator)).double()
        for rows in (n, m)
    )
    x = torch.randn(n, generator=generator).double()
    assert torch.equal(problem.x, x)
    torch.testing.assert_close(problem.f(x), torch.tanh(last @ torch.tanh(first @ x)))
    assert problem.exact is None


@pytest.mark.parametrize("layers", [1, 4])
def test_tanh_network_is_one_function_in_both_dtypes(layers: int) -> None:
    narrow = build("tanh_network", 20, "float32", seed=3, layers=layers)
    wide = build("tanh_network", 20, "float64", seed=3, layers=layers)
    assert torch.equal(narrow.x.double(), wide.x)
    torch.testing.assert_close(narrow.f(narrow.x).double(), wide.f(wide.x), rtol=1e-5, atol=1e-6)
    # The weights themselves are the same to the last bit: a narrow network widened is the wide one.
    if layers == 1:
        weights = jacobian(wide.f, torch.zeros_like(wide.x))  # tanh′(0) = 1
        assert torch.equal(weights.float().double(), weights)


def test_seed_decides_the_tanh_network() -> None:
    one, same, other = (build("tanh_network", 6, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.f(one.x), same.f(same.x))
    assert not torch.equal(one.x, other.x)
    assert not torch.equal(one.f(one.x), other.f(one.x))


@pytest.mark.parametrize("outputs", [None, 1, 3, 9])
@pytest.mark.parametrize("layers", [1, 3])
def test_tanh_network_costs_two_operations_a_weight(outputs: int | None, layers: int) -> None:
    chosen = setting("tanh_network", 6, outputs=outputs, layers=layers)
    problem = FUNCTIONS["tanh_network"].build(chosen)
    assert problem.f(problem.x).shape == (outputs or 6,)
    require_flops(FUNCTIONS["tanh_network"], chosen)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_estimates_grow_with_the_size(name: str, dtype: str) -> None:
    field = FUNCTIONS[name].size
    low, high = int(field.minimum), int(field.maximum)
    sizes = [max(low, high // divisor) for divisor in (1000, 100, 10, 1)]
    costs = [FUNCTIONS[name].cost(setting(name, size, dtype)) for size in dict.fromkeys(sizes)]
    for smaller, larger in itertools.pairwise(costs):
        assert 0 < smaller.forward.seconds < larger.forward.seconds
        assert 0 < smaller.backward.seconds < larger.backward.seconds
        assert 0 < smaller.memory_bytes < larger.memory_bytes


def test_matrix_exp_trace_costs_a_squaring_for_every_doubling_of_x() -> None:
    described = FUNCTIONS["matrix_exp_trace"]
    costs = [
        described.cost(setting("matrix_exp_trace", 100, x=x)).forward.flops for x in (1.0, 2.0, 4.0)
    ]
    product = 8 * 100**3
    assert [b - a for a, b in itertools.pairwise(costs)] == [product, product]
    at_zero = described.cost(setting("matrix_exp_trace", 100, x=0.0))
    assert at_zero.forward.flops == 5 * product


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_the_same_on_a_gpu(name: str) -> None:
    here = build(name, 20)
    there = FUNCTIONS[name].build(Experiment(name, 20, dtype="float64", device="cuda:0").setting)
    torch.testing.assert_close(there.f(there.x).cpu(), here.f(here.x))
