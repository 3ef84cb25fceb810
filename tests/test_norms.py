"""The agreement of the gradients of all heads, as one matrix."""

import math

import pytest
import torch
from torch import Tensor

from explorer import norms

PLENTY = {"left": math.inf, "spare": 1e9}


def rows(seed: int, heads: int = 3, shape: tuple[int, ...] = (2, 2)) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(heads)]


def stacked(gradients: list[Tensor]) -> Tensor:
    return torch.stack([each.flatten() for each in gradients])


def test_agreement_is_the_norm_of_the_difference_over_that_of_the_reference() -> None:
    naive, other = rows(0), rows(1)
    found = norms.agreement({"recompute": naive, "reuse": other}, "recompute", **PLENTY)
    part, whole = (
        torch.linalg.svdvals(each)[0] for each in (stacked(other) - stacked(naive), stacked(naive))
    )
    assert found == {"recompute": 0.0, "reuse": pytest.approx((part / whole).item(), rel=1e-12)}


def test_agreement_with_zero_and_with_what_is_not_finite() -> None:
    zero, some, broken = [torch.zeros(3)], [torch.ones(3)], [torch.full((3,), math.inf)]
    found = norms.agreement({"a": zero, "b": some, "c": broken}, "a", **PLENTY)
    assert found["a"] == 0 and found["b"] == math.inf
    assert found["c"] is not None and math.isnan(found["c"])
    found = norms.agreement({"a": broken, "b": some}, "a", **PLENTY)
    assert all(each is not None and math.isnan(each) for each in found.values())


def test_agreement_does_not_overflow() -> None:
    large = [torch.full((2,), 1e300, dtype=torch.float64)]
    half = [each / 2 for each in large]
    found = norms.agreement({"a": large, "b": half}, "a", **PLENTY)
    assert found["b"] == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("limits", [{"left": 0.0, "spare": 1e9}, {"left": 1.0, "spare": 100.0}])
def test_agreement_that_takes_too_much_is_left_out(limits: dict[str, float]) -> None:
    found = norms.agreement({"a": rows(0), "b": rows(1)}, "a", **limits)
    assert found == {"a": None, "b": None}
