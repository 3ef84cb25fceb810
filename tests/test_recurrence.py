"""The cells are those of torch, step by step."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from explorer.recurrence import GATES, driven, parts, recurrent_weights, uniform, unrolled

DOUBLE = torch.float64
every_cell = pytest.mark.parametrize("cell", GATES)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def module(cell: str, n: int, **state: Tensor) -> Any:
    """torch's cell with these weights."""
    made: Any = {
        "gru": lambda: torch.nn.GRUCell(n, n),
        "lstm": lambda: torch.nn.LSTMCell(n, n),
    }.get(cell, lambda: torch.nn.RNNCell(n, n, nonlinearity=cell))().double()
    made.load_state_dict(state)
    return made


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(GATES)), st.integers(1, 9), st.integers(1, 5), st.integers(0, 1000))
def test_every_step_is_that_of_torchs_cell(cell: str, n: int, steps: int, seed: int) -> None:
    drawn = generator(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=drawn, dtype=DOUBLE)

    rows = GATES[cell] * n
    bias, recurrent_bias, inputs = normal(rows), normal(rows), normal(steps, n)
    input_weights, weights = normal(rows, n), normal(rows, n)
    cell_of_torch = module(
        cell,
        n,
        weight_ih=input_weights,
        weight_hh=weights,
        bias_ih=bias,
        bias_hh=recurrent_bias,
    )
    state = expected = tuple(normal(n) for _ in range(parts(cell)))
    u = driven(cell, inputs, input_weights, bias, recurrent_bias)
    for step, a in zip(unrolled(cell, u, weights, recurrent_bias), inputs, strict=True):
        state = step(*state)
        found = cell_of_torch(a, expected if len(expected) == 2 else expected[0])
        expected = found if isinstance(found, tuple) else (found,)
        for one, other in zip(state, expected, strict=True):
            torch.testing.assert_close(one, other.detach(), rtol=1e-12, atol=1e-12)


@every_cell
def test_starts_are_what_they_say_for_each_gate(cell: str) -> None:
    n = 30
    weights = {
        start: recurrent_weights(cell, start, n, generator(), gain=3.0)
        for start in ("default", "gain", "orthogonal", "identity")
    }
    assert {each.shape for each in weights.values()} == {(GATES[cell] * n, n)}
    assert torch.equal(weights["default"], uniform(generator(), n, GATES[cell] * n, n))
    assert torch.equal(weights["gain"], 3 * weights["default"])
    bound = 1 / math.sqrt(n)
    assert 0.95 * bound < weights["default"].abs().max() <= bound
    blocks = weights["orthogonal"].double().split(n)
    for block in blocks:
        torch.testing.assert_close(block @ block.T, torch.eye(n, dtype=DOUBLE), rtol=0, atol=1e-5)
    assert all(torch.dist(blocks[0], block) > 1 for block in blocks[1:])
    for block in weights["identity"].split(n):
        assert torch.equal(block, torch.eye(n))
