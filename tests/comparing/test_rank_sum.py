"""The test is scipy's, and the interval is that of the test."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import comb
from scipy.stats import mannwhitneyu

from explorer.comparing.rank_sum import LEVEL, p_value, shift

numbers = st.floats(-100, 100, allow_nan=False)
samples = st.lists(numbers, min_size=1, max_size=12)


@pytest.mark.parametrize("m", [1, 3, 4, 8, 9, 20])
@pytest.mark.parametrize("n", [2, 5, 9])
def test_p_is_that_of_scipy(m: int, n: int) -> None:
    random = np.random.default_rng(m * 100 + n)
    for offset in (0.0, 0.5, 3.0):
        one, other = random.normal(size=m), random.normal(size=n) + offset
        found = shift(one.tolist(), other.tolist())
        assert found.p == pytest.approx(mannwhitneyu(one, other).pvalue, rel=1e-12)


@pytest.mark.parametrize("runs", [3, 4, 5, 8])
def test_apart_samples_have_the_p_of_one_of_all_orders_either_way(runs: int) -> None:
    assert p_value(0, runs, runs) == pytest.approx(2 / comb(2 * runs, runs), rel=1e-12)


def test_three_against_three_decide_nothing() -> None:
    found = shift([1.0, 2.0, 3.0], [101.0, 102.0, 103.0])
    assert found.p == pytest.approx(0.1) and found.low is None and found.high is None
    assert shift([1.0, 2.0, 3.0, 4.0], [101.0, 102.0, 103.0, 104.0]).low == 97.0


@settings(deadline=None)
@given(samples, samples)
def test_the_interval_leaves_out_0_exactly_where_the_test_finds_a_difference(
    one: list[float], other: list[float]
) -> None:
    found = shift(one, other)
    if found.low is None or found.high is None:
        assert found.p > LEVEL
    else:
        assert found.low <= found.value <= found.high
        assert (found.p <= LEVEL) == (not found.low <= 0 <= found.high)


@settings(deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=4, max_size=9, unique=True),
       st.lists(st.integers(-50, 50), min_size=4, max_size=9, unique=True),
       st.integers(-20, 20))  # fmt: skip
def test_a_shift_is_found_again_and_changes_nothing_else(
    one: list[int], other: list[int], by: int
) -> None:
    plain, moved = shift(one, other), shift(one, [each + by for each in other])
    assert moved.value == plain.value + by
    assert plain.low is not None and plain.high is not None
    assert (moved.low, moved.high) == (plain.low + by, plain.high + by)


def test_the_interval_is_the_one_of_the_textbooks() -> None:
    # Hollander and Wolfe, Nonparametric Statistical Methods, table 4.1: the permeability of the
    # amniochorion; for 10 against 5 the interval at 95% has the 9th and the 42nd difference.
    term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
    early = [1.15, 0.88, 0.90, 0.74, 1.21]
    found = shift(early, term)
    differences = sorted(a - b for a in term for b in early)
    assert found.value == pytest.approx(0.305)
    assert (found.low, found.high) == pytest.approx((differences[8], differences[41]))
    assert found.p == pytest.approx(0.2544, abs=1e-4)


def test_equal_samples_do_not_differ() -> None:
    found = shift([1.0] * 8, [1.0] * 8)
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0) and found.p > 0.9


def test_the_interval_covers_the_truth_in_19_of_20_cases() -> None:
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        one, other = random.normal(size=6), random.normal(size=7) + 1.5
        found = shift(one.tolist(), other.tolist())
        assert found.low is not None and found.high is not None
        hits += found.low <= 1.5 <= found.high
    # Binomial: six standard deviations below 95%.
    assert hits >= 400 * 0.95 - 6 * math.sqrt(400 * 0.95 * 0.05)
