"""The panel's network shows its lesson, and only what is chosen changes."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.experiment import DTYPES
from explorer.flow.experiment import FIELDS, LOSSES, FlowExperiment
from explorer.flow.network import Network, network
from explorer.recurrence import GATES

CELLS = FIELDS["cell"].choices
STARTS = FIELDS["start"].choices


def build(**values: Any) -> Network:
    return network(FlowExperiment(**values))


def states(built: Network) -> list[Tensor]:
    found = [built.x.clone().requires_grad_()]
    for step in built.steps:
        found.append(step(found[-1]))
    return found


def left(**values: Any) -> float:
    """‖∂L/∂h_0‖ / ‖∂L/∂h_T‖, the geometric mean over the losses."""
    built = build(**values)
    seen = states(built)
    product = 1.0
    for loss in built.losses.values():
        first, last = torch.autograd.grad(loss(seen[-1]), (seen[0], seen[-1]), retain_graph=True)
        product *= float(first.norm() / last.norm())
    return product ** (1 / len(built.losses))


def test_cells_of_the_field_are_those_there_are() -> None:
    assert tuple(GATES) == CELLS


@pytest.mark.parametrize("seed", range(5))
def test_default_start_vanishes_and_the_orthogonal_one_and_gates_do_not(seed: int) -> None:
    default = left(seed=seed)
    assert 0.5 < default ** (1 / 40) < 0.68
    assert left(seed=seed, start="orthogonal") > 0.1
    assert left(seed=seed, start="identity") > 0.1
    assert left(seed=seed, cell="relu", start="identity") > 0.1
    for cell in ("gru", "lstm"):
        assert left(seed=seed, cell=cell) > 0.03
    # Uniform within ±1/√n is a spectral radius of 1/√3.
    assert left(seed=seed, start="gain", gain=1.7) > 1e5 * default


@pytest.mark.parametrize("cell", CELLS)
def test_start_changes_the_recurrent_weights_alone(cell: str) -> None:
    all_of_them = [build(cell=cell, start=start, gain=2.0, size=7, steps=3) for start in STARTS]
    first = all_of_them[0]
    for other in all_of_them[1:]:
        assert torch.equal(first.x, other.x)
        zero = torch.zeros_like(first.x)
        for one, step in zip(first.steps, other.steps, strict=True):  # W·0 is 0 for every W
            torch.testing.assert_close(one(zero), step(zero))
        for name, loss in first.losses.items():
            assert torch.equal(loss(first.x), other.losses[name](first.x))
        assert not torch.equal(states(first)[-1], states(other)[-1])


def test_seed_decides() -> None:
    one, same, other = (states(build(seed=seed, size=5, steps=2)) for seed in (1, 1, 2))
    assert torch.equal(one[-1], same[-1])
    assert not torch.equal(one[-1], other[-1])


@pytest.mark.parametrize("cell", CELLS)
def test_is_one_network_in_both_dtypes(cell: str) -> None:
    narrow, wide = (build(cell=cell, dtype=dtype, size=9, steps=20) for dtype in DTYPES)
    assert narrow.x.dtype == torch.float32 and torch.equal(narrow.x.double(), wide.x)
    ends = states(narrow)[-1], states(wide)[-1]
    torch.testing.assert_close(ends[0].double(), ends[1], rtol=1e-4, atol=1e-6)
    for name in LOSSES:
        found = narrow.losses[name](ends[0]).double()
        torch.testing.assert_close(found, wide.losses[name](ends[1]), rtol=1e-4, atol=1e-6)


def test_losses_are_as_their_formulas_have_them() -> None:
    built = build(cell="lstm", size=6, losses=tuple(LOSSES))
    state = torch.randn(12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h = state[:6]
    assert built.losses["energy"](state) == pytest.approx(float(h @ h / 2))
    for name, loss in built.losses.items():
        gradient = torch.func.grad(loss)(state)
        assert torch.equal(gradient[6:], torch.zeros(6, dtype=torch.float64)), name
        assert gradient.norm() > 0
    w = torch.func.grad(built.losses["readout"])(state)[:6]
    assert float(w.norm()) == pytest.approx(1, rel=1e-6)
    assert built.losses["readout"](state) == pytest.approx(float(w @ h))
    # At h = 0 all ten classes are as likely.
    assert built.losses["class"](0 * state) == pytest.approx(math.log(10))
    assert list(build(losses=("class",)).losses) == ["class"]


@pytest.mark.parametrize("steps", [1, 2, 30])
def test_gates_keep_the_state_for_up_to_as_many_steps_as_there_are(steps: int) -> None:
    """σ(log U) = U/(1 + U), with U from 1 to T−1."""
    n, most = 200, max(1, steps - 1)
    lstm = build(cell="lstm", size=n, steps=steps, input_scale=0.0)
    c = torch.cat([torch.zeros(n), torch.ones(n)]).double()  # with h = 0, c' = f·c and i·tanh(0)
    kept = lstm.steps[0](c)[n:]
    assert kept.min() >= 0.5 - 1e-7 and kept.max() <= most / (1 + most) + 1e-7
    gru = build(cell="gru", size=n, steps=steps, input_scale=0.0)
    by_h = torch.func.jacrev(gru.steps[0])(torch.zeros(n).double()).diagonal()
    assert by_h.mean() > kept.mean() - 0.1
    if steps > 2:
        assert kept.max() > 0.9 * most / (1 + most)
