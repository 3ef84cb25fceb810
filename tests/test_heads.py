"""Each head is its formula, for y of any shape, within its stated domain."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from explorer.heads import HEADS

# Each formula again, entry by entry and without torch.
FORMULAS: dict[str, Callable[[list[float]], float]] = {
    "square": lambda y: sum(v * v for v in y),
    "sqrt": lambda y: sum(math.sqrt(v) for v in y),
    "log": lambda y: sum(math.log(v) for v in y),
    "exp": lambda y: sum(math.exp(v) for v in y),
    "sin": lambda y: sum(math.sin(v) for v in y),
    "norm": lambda y: math.hypot(*y),
    "mean": lambda y: math.fsum(y) / len(y),
    "logsumexp": lambda y: math.log(sum(math.exp(v) for v in y)),
}
every_head = pytest.mark.parametrize("name", HEADS)


def sample(shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=dtype) + 0.2


def test_every_head_has_its_formula_here() -> None:
    assert list(HEADS) == list(FORMULAS)
    assert all(head.name == name and head.formula for name, head in HEADS.items())


@every_head
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_value_is_the_formula(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    y = sample(shape, dtype)
    z = HEADS[name](y)
    assert z.shape == () and z.dtype == dtype
    rel = 1e-6 if dtype == torch.float32 else 1e-13
    assert z.item() == pytest.approx(FORMULAS[name](y.flatten().tolist()), rel=rel)


@every_head
@pytest.mark.parametrize("shape", [(), (4,), (2, 2)])
def test_gradient_is_that_of_finite_differences(name: str, shape: tuple[int, ...]) -> None:
    assert torch.autograd.gradcheck(HEADS[name], sample(shape).requires_grad_())


@every_head
@pytest.mark.parametrize("y", [-2.0, -0.0, 0.0, 1e-300, 0.5, 300.0])
def test_value_is_finite_exactly_in_the_domain(name: str, y: float) -> None:
    head, at = HEADS[name], torch.tensor([y, 1.0], dtype=torch.float64)
    inside = head.inside is None or bool(head.inside(at).all())
    assert bool(head(at).isfinite()) == inside


@pytest.mark.parametrize("name, inside", [("sqrt", [0.0, 2.0]), ("log", [1e-9, 2.0])])
def test_domain_tells_each_entry(name: str, inside: list[float]) -> None:
    head = HEADS[name]
    assert head.inside is not None and head.domain != "every real y"
    y = torch.tensor([-1.0, *inside])
    assert head.inside(y).tolist() == [False, True, True]


def test_heads_without_a_test_of_the_domain_take_every_real_y() -> None:
    assert {name for name, head in HEADS.items() if head.domain != "every real y"} == {
        name for name, head in HEADS.items() if head.inside is not None
    }


def test_logsumexp_does_not_overflow() -> None:
    assert HEADS["logsumexp"](torch.tensor([1000.0, 1000.0])).item() == pytest.approx(
        1000 + math.log(2)
    )
