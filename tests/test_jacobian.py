"""Spectral norms are the largest singular values."""

import math

import pytest
import torch

from explorer.heads import HEADS, Head
from explorer.jacobian import head_gradients, spectral_norm


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (3, 5), (5, 3), (4, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_spectral_norm_is_the_largest_singular_value(
    shape: tuple[int, int], dtype: torch.dtype
) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u, s, vh = torch.linalg.svd(matrix, full_matrices=False)
    s = torch.linspace(3.0, 1.0, len(s), dtype=torch.float64)
    known = (u * s @ vh).to(dtype)
    rel = 1e-6 if dtype == torch.float32 else 1e-14
    assert spectral_norm(known, shape[0]) == pytest.approx(3.0, rel=rel)


def test_spectral_norm_folds_the_shapes_of_y_and_x() -> None:
    jacobian = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    expected = torch.linalg.matrix_norm(jacobian.reshape(6, 20), 2).item()
    assert spectral_norm(jacobian, 6) == pytest.approx(expected, rel=1e-6)
    assert spectral_norm(torch.tensor(-2.0), 1) == 2.0


@pytest.mark.parametrize("scale", [1e-30, 1e25])
@pytest.mark.parametrize("shape", [(1, 2), (2, 2)])
def test_spectral_norm_does_not_overflow_or_vanish(scale: float, shape: tuple[int, int]) -> None:
    expected = scale * math.sqrt(2) if shape == (1, 2) else 2 * scale
    assert spectral_norm(torch.full(shape, scale), shape[0]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("entry", [math.nan, math.inf])
@pytest.mark.parametrize("shape", [(1, 3), (3, 3)])
def test_spectral_norm_of_what_is_not_finite_is_nan(entry: float, shape: tuple[int, int]) -> None:
    matrix = torch.ones(shape)
    matrix[0, 1] = entry
    assert math.isnan(spectral_norm(matrix, shape[0]))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3, 3), (1, 3)])
def test_spectral_norm_of_zero_and_of_nothing(shape: tuple[int, int]) -> None:
    assert spectral_norm(torch.zeros(shape), shape[0]) == 0.0


def test_head_gradients() -> None:
    y, x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([5.0])
    product = Head("product", "x Σ y²", lambda y, x: (x * y * y).sum(), takes_x=True)
    with torch.no_grad():
        by_y, by_x = head_gradients(HEADS["square"], y, x)
        torch.testing.assert_close(by_y, 2 * y)
        assert by_x is None
        by_y, by_x = head_gradients(product, y, x)
        torch.testing.assert_close(by_y, 10 * y)
        assert by_x is not None and by_x.tolist() == [30.0]
    assert not y.requires_grad and not x.requires_grad


def test_head_that_does_not_depend_on_y_has_no_gradient() -> None:
    y, x = torch.ones(2), torch.ones(3)
    constant = Head("one", "1", lambda y: torch.tensor(1.0))
    of_x = Head("x", "Σ x", lambda y, x: x.sum(), takes_x=True)
    by_y, by_x = head_gradients(constant, y, x)
    assert by_y.tolist() == [0.0, 0.0] and by_x is None
    by_y, by_x = head_gradients(of_x, y, x)
    assert by_y.tolist() == [0.0, 0.0]
    assert by_x is not None and by_x.tolist() == [1.0, 1.0, 1.0]
