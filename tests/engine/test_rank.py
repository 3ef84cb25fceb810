"""The directions of the cotangents: the exact rank, whatever the scales of the heads are."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from explorer.engine.gradients import gradients
from explorer.engine.rank import LIMIT, directions, scaled

EPS = {dtype: torch.finfo(dtype).eps for dtype in (torch.float32, torch.float64)}
every_dtype = pytest.mark.parametrize("dtype", EPS)


def family(
    heads: int, outputs: int, rank: int, seed: int = 0, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Rows of norm 1 that span so many directions."""
    generator = torch.Generator().manual_seed(seed)
    left = torch.randn(heads, rank, generator=generator, dtype=torch.float64)
    right = torch.linalg.qr(torch.randn(outputs, rank, generator=generator, dtype=torch.float64))[0]
    rows = left @ right.mT
    return (rows / rows.norm(dim=1, keepdim=True)).to(dtype)


def residuals(rows: Tensor, basis: Tensor) -> Tensor:
    """How far each row lies from the basis, in float64."""
    rows, basis = rows.double(), basis.double()
    missing = rows - torch.linalg.lstsq(basis.mT, rows.mT).solution.mT @ basis
    return missing.norm(dim=1)


# Directions.


@every_dtype
@pytest.mark.parametrize(
    "heads, outputs, rank",
    [(4, 4, 1), (4, 4, 3), (20, 5, 2), (5, 20, 2), (3, 400, 2), (400, 3, 2), (64, 64, 63)],
    ids=lambda each: str(each),
)
def test_rank_is_exact_and_the_basis_orthonormal(
    heads: int, outputs: int, rank: int, dtype: torch.dtype
) -> None:
    rows = family(heads, outputs, rank, dtype=dtype)
    basis = directions(rows, EPS[dtype])
    assert basis is not None and basis.shape == (rank, outputs) and basis.dtype == dtype
    torch.testing.assert_close(basis @ basis.mT, torch.eye(rank, dtype=dtype))
    assert residuals(rows, basis).amax() <= 2 * LIMIT * EPS[dtype] * math.sqrt(outputs)


@pytest.mark.parametrize("heads, outputs", [(1, 1), (1, 5), (5, 1), (0, 3), (3, 0)])
def test_one_row_or_one_entry_has_no_smaller_basis(heads: int, outputs: int) -> None:
    assert (
        directions(torch.ones(heads, outputs) / max(outputs, 1) ** 0.5, EPS[torch.float32]) is None
    )


@every_dtype
@pytest.mark.parametrize("heads, outputs", [(4, 4), (3, 50), (50, 3), (30, 31)])
def test_full_rank_has_no_smaller_basis(heads: int, outputs: int, dtype: torch.dtype) -> None:
    assert directions(family(heads, outputs, min(heads, outputs), dtype=dtype), EPS[dtype]) is None


@pytest.mark.parametrize("apart", [1e-11, 1e-9, 1e-6])
def test_a_small_difference_between_two_rows_is_a_direction(apart: float) -> None:
    """Above the rounding of a row nothing is dropped, however many rows agree."""
    rows = torch.zeros(10, 6, dtype=torch.float64)
    rows[:, 0] = 1
    rows[7, 1] = apart
    basis = directions(rows, EPS[torch.float64])
    assert basis is not None and len(basis) == 2
    # To the last digits of the row, that is 1e-5 of the smallest difference here.
    assert residuals(rows, basis).amax() < 1e-15


def test_difference_below_rounding_is_none() -> None:
    rows = torch.zeros(10, 6, dtype=torch.float64)
    rows[:, 0] = 1
    rows[7, 1] = 1e-16
    basis = directions(rows, EPS[torch.float64])
    assert basis is not None and len(basis) == 1


def test_every_row_is_bounded_not_their_mean() -> None:
    """One head among a thousand that has a direction of its own keeps it."""
    rows = family(1000, 20, 2)
    rows[500] = family(1, 20, 1, seed=9)[0]
    basis = directions(rows, EPS[torch.float64])
    assert basis is not None and len(basis) == 3
    assert residuals(rows, basis).amax() < 1e-13


@settings(max_examples=60, deadline=None)
@given(
    heads=st.integers(2, 12),
    outputs=st.integers(2, 30),
    rank=st.integers(1, 12),
    repeats=st.integers(0, 5),
    seed=st.integers(0, 100),
)
def test_rank_and_residual_of_any_family(
    heads: int, outputs: int, rank: int, repeats: int, seed: int
) -> None:
    rank = min(rank, heads, outputs)
    rows = family(heads, outputs, rank, seed)
    rows = torch.cat([rows, rows[:repeats]])
    basis = directions(rows, EPS[torch.float64])
    if rank < min(len(rows), outputs):
        assert basis is not None and len(basis) <= rank
        assert residuals(rows, basis).amax() <= 2 * LIMIT * EPS[torch.float64] * outputs**0.5
    else:
        assert basis is None or residuals(rows, basis).amax() <= 1e-13


def test_half_precision_rows_are_compared_with_their_own_digits() -> None:
    """Two directions in bfloat16 look like many, if its rounding is taken for information."""
    rows = family(12, 64, 2, dtype=torch.float32).bfloat16().float()
    rows /= rows.norm(dim=1, keepdim=True)
    basis = directions(rows, torch.finfo(torch.bfloat16).eps)
    assert basis is not None and len(basis) == 2
    finer = directions(rows, EPS[torch.float32])
    assert finer is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("outputs", [4, 64, 400, 5000])
def test_heads_at_a_y_of_half_precision_are_kept(outputs: int, dtype: torch.dtype) -> None:
    """A limit of 16·eps·√m is above 1 here, and would count every head as zero."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(3, outputs, generator=generator)
    heads = [lambda y, w=w: (y.float() * w).sum() for w in weights]
    found = gradients(lambda x: x.to(dtype), heads, torch.ones(outputs), path="low_rank_vjp")
    assert found.passes.backward == 3
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(torch.stack(found.gradients), weights, rtol=4 * eps, atol=4 * eps)


# Scaled.


@pytest.mark.parametrize("exponent", [-300, -200, -40, 0, 40, 200, 300])
def test_rows_of_any_size_come_to_norm_1(exponent: int) -> None:
    rows = family(3, 5, 3) * torch.tensor([[1.0], [10.0**exponent], [1e10]], dtype=torch.float64)
    found = scaled(rows)
    torch.testing.assert_close(found.unit, family(3, 5, 3))
    torch.testing.assert_close(found.norms[:, None] * found.unit, rows, rtol=1e-14, atol=0)
    assert found.regular == [0, 1, 2] and found.odd == []


def test_subnormal_rows_are_kept() -> None:
    rows = torch.tensor([[3e-310, 4e-310], [1.0, 0.0]], dtype=torch.float64)
    found = scaled(rows)
    assert found.regular == [0, 1]
    torch.testing.assert_close(found.norms[0], torch.tensor(5e-310, dtype=torch.float64))
    expected = torch.tensor([0.6, 0.8], dtype=torch.float64)
    torch.testing.assert_close(found.unit[0], expected, rtol=1e-12, atol=0)


def test_zero_and_not_finite_rows_are_set_apart() -> None:
    rows = torch.tensor([[1.0, 2.0], [0.0, 0.0], [math.inf, 1.0], [3.0, math.nan], [0.0, -3.0]])
    found = scaled(rows)
    assert found.regular == [0, 4] and found.odd == [2, 3]
    torch.testing.assert_close(found.unit[1:4], rows[1:4], equal_nan=True)
    assert found.norms.tolist() == [pytest.approx(math.sqrt(5)), 1, 1, 1, 3]


def test_rows_of_no_entries_are_zero_rows() -> None:
    found = scaled(torch.zeros(3, 0))
    assert found.regular == [] and found.odd == [] and found.norms.tolist() == [1, 1, 1]


def test_norms_are_constants_to_a_derivative() -> None:
    """Their product with the unit rows is then the row, and its derivative 1."""
    rows = family(2, 3, 2).requires_grad_()
    for factor in (1.0, 1e200):  # both ways of taking the norm
        found = scaled(rows * factor)
        assert not found.norms.requires_grad and found.unit.requires_grad
        (slope,) = torch.autograd.grad((found.unit * found.norms[:, None]).sum(), rows)
        torch.testing.assert_close(slope, torch.full_like(slope, factor))


# Heads.


def test_heads_of_very_different_scale_are_all_kept() -> None:
    """A cut at the largest singular value of the unscaled cotangents would lose all but exp."""
    x = torch.linspace(20.0, 100.0, 6, dtype=torch.float64)
    heads = [lambda y: y.exp().sum(), lambda y: y.sqrt().sum(), lambda y: (y**3).sum()]
    expected = [x.exp(), 0.5 / x.sqrt(), 3 * x**2]
    for path in ("low_rank_vjp", "auto"):
        found = gradients(lambda x: x * 1.0, heads, x, path=path)
        for gradient, each in zip(found.gradients, expected, strict=True):
            torch.testing.assert_close(gradient, each, rtol=1e-13, atol=0)
        assert found.passes.backward == 3


def test_repeated_heads_cost_one_pass_and_keep_their_sizes() -> None:
    heads = [lambda y, s=s: s * y.sum() for s in (1e-200, -1.0, 1e150, 3.0)]
    found = gradients(torch.sin, heads, torch.zeros(4, dtype=torch.float64), path="low_rank_vjp")
    assert found.passes.backward == found.plan.sizes.rank == 1
    for gradient, size in zip(found.gradients, (1e-200, -1.0, 1e150, 3.0), strict=True):
        torch.testing.assert_close(gradient / size, torch.ones_like(gradient), rtol=1e-14, atol=0)


def test_heads_that_are_zero_cost_none() -> None:
    heads = [torch.sum, lambda y: (y * 0).sum(), lambda y: 2 * y.sum()]
    found = gradients(torch.exp, heads, torch.zeros(4, dtype=torch.float64), path="low_rank_vjp")
    assert found.passes.backward == 1 and not found.gradients[1].any()


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_heads_that_are_not_finite_go_alone(bad: float) -> None:
    """A NaN in the matrix would spoil its decomposition, and all heads with it."""
    slopes = torch.tensor([bad, 1.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    heads = [torch.sum, lambda y: (y * slopes).sum(), lambda y: y[1:].sum(), lambda y: y[:1].sum()]
    f = lambda x: x * 1.0  # noqa: E731
    x = torch.ones(5, dtype=torch.float64)
    found = gradients(f, heads, x, path="low_rank_vjp")
    assert found.passes.backward == 3  # two directions of the finite ones
    torch.testing.assert_close(found.gradients[1], slopes, equal_nan=True)
    torch.testing.assert_close(found.gradients[2], torch.tensor([0.0, 1, 1, 1, 1]).double())
    torch.testing.assert_close(found.gradients[3], torch.tensor([1.0, 0, 0, 0, 0]).double())
