"""Singular values and extreme eigenvalues from products alone, of matrices of known ones."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import svds
from torch import Tensor

from explorer.engine import krylov
from explorer.engine.krylov import Extremes, Found

DOUBLE = torch.float64
EPS = torch.finfo(DOUBLE).eps


pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass
class Products:
    """A matrix that counts its products, and gives NaN or inf from one of them on."""

    matrix: Tensor
    spoilt: float | None = None
    after: int = 0
    rounding: float = 0.0
    forward: int = 0
    backward: int = 0

    def __post_init__(self) -> None:
        self.rows, self.columns = self.matrix.shape
        self.size = self.rows
        self.dtype, self.device = self.matrix.dtype, self.matrix.device

    def times(self, v: Tensor) -> Tensor:
        self.forward += 1
        return self._told(self.matrix @ v)

    def transposed_times(self, u: Tensor) -> Tensor:
        self.backward += 1
        return self._told(self.matrix.mT @ u)

    def _told(self, product: Tensor) -> Tensor:
        if self.spoilt is not None and self.forward + self.backward > self.after:
            product[-1] = self.spoilt
        return product


def going_on() -> bool:
    return True


def largest(matrix: Tensor, k: int = 1, rtol: float = 1e-6) -> Found:
    return krylov.singular(Products(matrix), k, rtol, going_on)


def extremes(matrix: Tensor, rtol: float = 1e-6) -> Extremes:
    return krylov.extremes(Products(matrix), rtol, going_on)


def orthonormal(rows: int, columns: int, seed: int) -> Tensor:
    drawn = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
    return torch.linalg.qr(drawn)[0]


def with_values(values: list[float], rows: int, columns: int, seed: int = 0) -> Tensor:
    """A matrix `(rows, columns)` with these singular values, and zeros."""
    left = orthonormal(rows, len(values), 2 * seed)
    right = orthonormal(columns, len(values), 2 * seed + 1)
    return left * torch.tensor(values, dtype=DOUBLE) @ right.mT


def symmetric(values: list[float], seed: int = 0) -> Tensor:
    vectors = orthonormal(len(values), len(values), seed)
    found = vectors * torch.tensor(values, dtype=DOUBLE) @ vectors.mT
    return (found + found.mT) / 2


def below(top: float, count: int) -> list[float]:
    return [top * (1 - i / count) for i in range(count)]


SPECTRA: dict[str, list[float]] = {
    "uniform": below(1, 100),
    "geometric": [0.9**i for i in range(100)],
    "all equal": [1.0] * 100,
    "two equal": [1.0, 1.0, *below(0.9, 90)],
    "three equal, then two": [3.0, 3.0, 3.0, 2.0, 2.0, *below(1, 90)],
    "one": [1.0],
    "one, many small": [1.0] + [1e-9] * 50,
    **{f"gap of {gap:.0e}": [1.0, 1 - gap, *below(0.9, 98)]
       for gap in (1e-2, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)},
    "cluster of ten": [1 - 1e-5 * i for i in range(10)] + below(0.9, 90),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("shape", [(100, 130), (130, 100), (110, 110)])
def test_largest_singular_value(name: str, shape: tuple[int, int]) -> None:
    value = SPECTRA[name][0]
    (found,) = largest(with_values(SPECTRA[name], *shape)).triples
    assert found.value == pytest.approx(value, rel=1e-6)
    assert found.value <= value * (1 + 100 * EPS)
    assert abs(found.value - value) <= 10 * max(found.error, 100 * EPS * value)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gap", [1e-3, 5e-4, 2e-4, 1e-4, 3e-5])
def test_two_close_values_are_not_taken_for_one(gap: float, seed: int) -> None:
    """residual²/gap is met here at a value between the two, 100 times as far off as asked for."""
    matrix = with_values([1.0, 1 - gap, *below(0.8, 198)], 200, 210, seed)
    (found,) = largest(matrix).triples
    assert found.value == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("dtype, height", [(DOUBLE, 2e-5), (torch.float32, 3e-5)])
def test_value_that_stands_apart_from_equal_ones(dtype: torch.dtype, height: float) -> None:
    """What the first residual shows of it is less than what is asked for."""
    values = torch.ones(1000, dtype=dtype)
    values[300] += height
    (found,) = largest(torch.diag(values)).triples
    assert found.value == pytest.approx(values[300].item(), rel=1e-6)
    assert extremes(torch.diag(values)).largest == pytest.approx(values[300].item(), rel=1e-6)


def test_vectors_of_a_value_that_stands_apart() -> None:
    matrix = with_values([2.0, *below(1, 80)], 90, 100)
    (found,) = largest(matrix, rtol=1e-9).triples
    assert torch.linalg.vector_norm(found.v) == pytest.approx(1)
    torch.testing.assert_close(matrix @ found.v, found.value * found.u, rtol=0, atol=1e-8)
    torch.testing.assert_close(matrix.mT @ found.u, found.value * found.v, rtol=0, atol=1e-8)


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    k=st.integers(1, 3),
    seed=st.integers(0, 1000),
    power=st.sampled_from([-200, -100, -1, 0, 1, 100, 200]),
    decay=st.floats(0, 1),
)
def test_values_and_their_errors(
    rows: int, columns: int, k: int, seed: int, power: int, decay: float
) -> None:
    smaller = min(rows, columns)
    k = min(k, smaller)
    values = [10.0**power * (1 - 0.9 * decay * i / smaller) for i in range(smaller)]
    found = largest(with_values(values, rows, columns, seed), k)
    assert found.converged and found.finite
    best = found.triples[0]
    assert best.value == pytest.approx(values[0], rel=1e-6)
    for each in found.triples:  # near one of the values: equal ones are met once
        nearest = min(values, key=lambda value: abs(value - each.value))
        assert abs(each.value - nearest) <= 10 * max(each.error, 100 * EPS * values[0])


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1000), shape=st.sampled_from([(30, 20), (20, 30), (25, 25)]))
def test_transpose_orthogonal_maps_and_scale(seed: int, shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
    turned = orthonormal(shape[0], shape[0], seed) @ matrix @ orthonormal(shape[1], shape[1], seed)
    value = torch.linalg.svdvals(matrix)[0].item()
    for each, expected in ((matrix.mT, value), (turned, value), (-2.5 * matrix, 2.5 * value)):
        assert largest(each).triples[0].value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_scale_in_float64(scale: float) -> None:
    (found,) = largest(with_values([2.0, *below(1, 70)], 80, 90) * scale).triples
    assert found.value == pytest.approx(2 * scale, rel=1e-6, abs=0)


@pytest.mark.parametrize("scale", [1e-36, 1e-25, 1e-5, 1e25, 1e36])
def test_scale_in_float32(scale: float) -> None:
    matrix = (with_values([2.0, *below(1, 70)], 80, 90) * scale).float()
    (found,) = largest(matrix).triples
    assert found.value == pytest.approx(2 * scale, rel=5e-6, abs=0)


def test_zero_has_no_triples() -> None:
    operator = Products(torch.zeros(70, 80, dtype=DOUBLE))
    assert krylov.singular(operator, 1, 1e-6, going_on) == Found([])
    assert (operator.forward, operator.backward) == (1, 0)


def test_rank_one_takes_two_pairs_at_most() -> None:
    operator = Products(with_values([3.0], 70, 80))
    found = krylov.singular(operator, 1, 1e-6, going_on)
    assert found.triples[0].value == pytest.approx(3, rel=1e-14)
    assert operator.forward == operator.backward <= 2


@pytest.mark.parametrize("shape", [(20, 40), (40, 20), (20, 21), (1, 2)])
def test_every_pair_there_is(shape: tuple[int, int]) -> None:
    """No residual is left to be small: of fewer rows than columns not before one pair more."""
    values = below(1, min(shape))
    matrix = with_values(values, *shape)
    found = largest(matrix, len(values), rtol=1e-15)
    assert [each.value for each in found.triples][: len(values)] == pytest.approx(values, rel=1e-12)


@pytest.mark.parametrize("shape", [(1, 50), (50, 1), (1, 1)])
def test_one_row_or_column(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    expected = torch.linalg.vector_norm(matrix).item()
    assert largest(matrix).triples[0].value == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("spoilt", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("after", [0, 1, 2, 7])
def test_product_that_is_not_finite(spoilt: float, after: int) -> None:
    operator = Products(with_values(below(1, 70), 80, 90), spoilt, after)
    assert krylov.singular(operator, 1, 1e-6, going_on) == Found([], finite=False)
    operator = Products(symmetric(below(1, 70)), spoilt, after)
    found = krylov.extremes(operator, 1e-6, going_on)
    assert all(map(math.isnan, (found.smallest, found.largest, found.error)))


def test_proceed_is_asked_after_each_pair_and_ends_it() -> None:
    asked: list[int] = []
    operator = Products(with_values(below(1, 90), 90, 90))

    def proceed() -> bool:
        asked.append(operator.backward)
        return len(asked) < 4

    found = krylov.singular(operator, 1, 1e-12, proceed)
    assert asked == [1, 2, 3, 4] and not found.converged
    (best,) = found.triples
    assert 0.5 < best.value < 1 and best.error > 1e-3


def test_most_pairs_and_then_not_converged() -> None:
    """Of the second difference, whose values lie closest where they are largest."""
    size = 1000
    operator = Stencil(size)
    found = krylov.singular(operator, 1, 1e-9, going_on)
    assert operator.products == 600 and not found.converged
    exact = 4 * math.sin(size * math.pi / (2 * (size + 1))) ** 2
    (best,) = found.triples
    assert 0 < exact - best.value <= 10 * best.error
    assert 1e-9 < best.error < 1e-2


class Stencil:
    """(−1, 2, −1), with the values 4·sin²(jπ/(2(n + 1)))."""

    dtype, device, rounding = DOUBLE, torch.device("cpu"), 0.0

    def __init__(self, size: int) -> None:
        self.rows = self.columns = size
        self.products = 0

    def times(self, v: Tensor) -> Tensor:
        self.products += 1
        found = 2 * v
        found[1:] -= v[:-1]
        found[:-1] -= v[1:]
        return found

    transposed_times = times


@pytest.mark.parametrize("seed", range(5))
def test_products_that_a_two_layer_network_takes(seed: int) -> None:
    """At most 40 pairs at 1e-6, where m = n = 1000; scipy as a second reference."""
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.randn(2, 1000, 1000, generator=generator, dtype=DOUBLE) / 1000**0.5
    h = torch.tanh(first @ torch.randn(1000, generator=generator, dtype=DOUBLE))
    y = torch.tanh(second @ h)
    matrix = (1 - y**2)[:, None] * second @ ((1 - h**2)[:, None] * first)
    operator = Products(matrix)
    (found,) = krylov.singular(operator, 1, 1e-6, going_on).triples
    start = np.random.default_rng(0).standard_normal(1000)
    reference = svds(matrix.numpy(), k=1, v0=start, return_singular_vectors=False, tol=1e-12)[0]
    assert found.value == pytest.approx(reference, rel=1e-6)
    assert operator.forward == operator.backward <= 40


def test_what_is_known_is_left_out() -> None:
    matrix = with_values([3.0, 3.0, 2.0, *below(1, 70)], 80, 90)
    first = largest(matrix, 2)
    again = krylov.singular(Products(matrix), 2, 1e-6, going_on, first.triples)
    assert [each.value for each in first.triples] == pytest.approx([3, 2], rel=1e-6)
    assert again.triples[0].value == pytest.approx(3, rel=1e-6)


@pytest.mark.parametrize("shape", [(100, 130), (130, 100)])
def test_starts_beside_what_is_known_find_every_repeated_value(shape: tuple[int, int]) -> None:
    """Also where v has a part that J takes to zero, so that the last u is but rounding."""
    values = [3.0, 3.0, 3.0, 2.0, 2.0]
    operator = Products(with_values(values, *shape))
    known: list[krylov.Triple] = []
    while found := krylov.singular(operator, 9, 1e-6, going_on, known).triples:
        known += found
    assert sorted((each.value for each in known), reverse=True) == pytest.approx(values, rel=1e-9)


def test_nothing_beside_all_that_is_known() -> None:
    matrix = torch.diag(torch.tensor([3.0, 2.0], dtype=DOUBLE))
    known = largest(matrix, 2).triples
    operator = Products(matrix)
    assert krylov.singular(operator, 1, 1e-6, going_on, known) == Found([])
    assert operator.forward == 0


EIGENVALUES: dict[str, list[float]] = {
    "one": [3.0],
    "definite": below(1, 100),
    "indefinite": [*below(1, 50), *(-2 * each for each in below(1, 50))],
    "smallest is larger": [-5.0, *below(1, 99)],
    "two equal at both ends": [2.0, 2.0, *below(1, 60), -1.0, -1.0],
    "close at both ends": [2.0, 2 - 1e-4, *below(1, 60), -1 + 1e-4, -1.0],
    "identity": [1.0] * 70,
    "rank one": [-4.0] + [0.0] * 70,
    "small beside large": [1.0, -1e-5] + [0.0] * 60,
}


@pytest.mark.parametrize("name", EIGENVALUES)
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_extreme_eigenvalues(name: str, scale: float) -> None:
    values = EIGENVALUES[name]
    found = extremes(symmetric(values) * scale)
    norm = scale * max(map(abs, values))
    assert found.converged
    for value, expected in ((found.largest, max(values)), (found.smallest, min(values))):
        assert abs(value - scale * expected) <= 1e-6 * norm
        assert abs(value - scale * expected) <= 10 * max(found.error, 100 * EPS * norm)


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=30),
    seed=st.integers(0, 100),
)
@example([1e-6, -0.5, 0.0, 0.0], 0)
def test_any_eigenvalues(values: list[float], seed: int) -> None:
    matrix = symmetric(values, seed)
    exact = torch.linalg.eigvalsh(matrix)
    norm = exact.abs().max().item()
    found = extremes(matrix)
    assert found.smallest == pytest.approx(exact[0].item(), rel=0, abs=1e-6 * norm)
    assert found.largest == pytest.approx(exact[-1].item(), rel=0, abs=1e-6 * norm)


def test_eigenvalues_of_zero() -> None:
    assert extremes(torch.zeros(70, 70, dtype=DOUBLE)) == Extremes(0.0, 0.0, 0.0)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 40])
def test_basis_grows_and_stays_orthonormal(count: int) -> None:
    like = Products(torch.zeros(1, 60, dtype=DOUBLE))
    rows = orthonormal(60, 60, 0).mT
    basis = krylov.Basis(60, like, [rows[-1]])
    for each in rows[:count]:
        basis.append(each)
    torch.testing.assert_close(basis.combined(torch.eye(count, dtype=DOUBLE)), rows[:count])
    apart = basis.apart(rows.sum(0))
    torch.testing.assert_close(apart, rows[count:-1].sum(0))
