"""Differences are relative 2-norms, and the exact gradient is the exact one."""

import math

import pytest
import torch

from explorer.accuracy import exact_gradient, relative_difference
from explorer.functions.description import Exact
from explorer.heads import HEADS, Head

NAN, INF = math.nan, math.inf
X = torch.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "value, reference, expected",
    [
        ([3.0, 4.0], [3.0, 4.0], 0.0),
        ([3.0, 4.0], [0.0, 4.0], 0.75),
        ([0.0, 0.0], [3.0, 4.0], 1.0),
        ([-3.0, -4.0], [3.0, 4.0], 2.0),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([-0.0], [0.0], 0.0),
        ([1e-300], [0.0], INF),
        ([1.1e200, 1.1e200], [1e200, 1e200], 0.1),
        ([1.1e-200, 1.1e-200], [1e-200, 1e-200], 0.1),
        ([1e10], [1e-300], INF),
        ([], [], 0.0),
        ([NAN, 1.0], [1.0, 1.0], NAN),
        ([1.0, 1.0], [1.0, INF], NAN),
        ([INF], [INF], NAN),
        ([NAN], [NAN], NAN),
    ],
)
def test_relative_difference(value: list[float], reference: list[float], expected: float) -> None:
    found = relative_difference(
        torch.tensor(value, dtype=torch.float64), torch.tensor(reference, dtype=torch.float64)
    )
    assert found == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_relative_difference_between_dtypes_is_taken_in_float64() -> None:
    wide = torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.float64)
    found = relative_difference(wide.float(), wide)
    assert found == pytest.approx(((wide.float().double() - wide).norm() / wide.norm()).item())
    assert 0 < found < 1e-7


def test_relative_difference_of_scalars() -> None:
    assert relative_difference(torch.tensor(-1.0), torch.tensor(-2.0)) == 0.5


def test_exact_gradient_of_a_scalar() -> None:
    exact = Exact(torch.tensor(4.0, dtype=torch.float64), torch.tensor(-3.0, dtype=torch.float64))
    assert exact_gradient(HEADS["square"], exact, X).item() == -24.0
    assert exact_gradient(HEADS["sqrt"], exact, X).item() == -0.75


def test_exact_gradient_is_infinite_only_where_y_depends_on_x() -> None:
    exact = Exact(torch.tensor([0.0, 1.0], dtype=torch.float64), torch.eye(2, dtype=torch.float64))
    assert exact_gradient(HEADS["sqrt"], exact, X).tolist() == [INF, 0.5]


def test_exact_gradient_contracts_over_y() -> None:
    y = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    jacobian = torch.arange(6, dtype=torch.float64).reshape(1, 2, 3)
    with torch.no_grad():
        found = exact_gradient(HEADS["square"], Exact(y, jacobian), X)
    assert found.tolist() == [2 * 0 + 4 * 3, 2 * 1 + 4 * 4, 2 * 2 + 4 * 5]


def test_exact_gradient_of_a_head_that_takes_x_has_both_terms() -> None:
    y = torch.tensor([2.0], dtype=torch.float64)
    head = Head("both", "y² Σ x", lambda y, x: y.square().sum() * x.sum(), takes_x=True)
    found = exact_gradient(head, Exact(y, torch.ones(1, 3, dtype=torch.float64)), X)
    assert found.dtype == torch.float64
    assert found.tolist() == [2 * 2 * 6 + 4] * 3
