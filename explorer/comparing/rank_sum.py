"""The Mann–Whitney test, and what it says of the ratio of two samples of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

LEVEL = 0.05
"""The probability up to which a difference this large is not put down to chance."""


@dataclass(frozen=True)
class Shift:
    """How a sample of differences lies against 0: the Hodges–Lehmann estimate, the interval of the
    shifts that the test does not reject at `LEVEL`, and the test's p of no shift.

    `low` and `high` are None where the samples are too small for the test to reject anything.
    """

    value: float
    low: float | None
    high: float | None
    p: float


def shift(one: Sequence[float], other: Sequence[float]) -> Shift:
    """By how much `other` lies above `one`, both finite and not empty.

    The interval is closed and its ends are differences of the samples, so that it leaves out 0
    exactly where p ≤ `LEVEL`. A pair that is equal counts against a difference.
    """
    m, n = len(one), len(other)
    differences = np.subtract.outer(np.asarray(other), np.asarray(one)).ravel()
    not_above = int(np.count_nonzero(differences <= 0))
    not_below = int(np.count_nonzero(differences >= 0))
    p = p_value(min(not_above, not_below), m, n)
    rejected = _rejected(m, n)
    last = m * n - 1
    places = (last // 2, m * n // 2, max(rejected - 1, 0), last - max(rejected - 1, 0))
    differences.partition(places)  # of a million, sorting takes four times as long
    left, right, low, high = (float(differences[place]) for place in places)
    value = (left + right) / 2
    return Shift(value, low, high, p) if rejected else Shift(value, None, None, p)


@lru_cache(maxsize=4096)
def p_value(below: int, m: int, n: int) -> float:
    """The two-sided p of samples of m and n where in `below` of the m·n pairs the second one's
    entry is the smaller."""
    from scipy.stats import mannwhitneyu  # a second that neither the page's start nor help waits

    # scipy takes samples alone; no two entries of these are equal, and their U is as wanted.
    below = min(below, m * n // 2)
    whole, part = divmod(below, m)
    one = np.arange(m, dtype=float)
    other = m + np.arange(n, dtype=float)
    other[:whole] = -1.0 - np.arange(whole)
    if part:
        other[whole] = m - part - 0.5
    return float(mannwhitneyu(one, other, alternative="two-sided").pvalue)


@lru_cache(maxsize=256)
def _rejected(m: int, n: int) -> int:
    """How many counts `below`, from 0 on, the test rejects."""
    low, high = 0, m * n // 2 + 1
    while low < high:
        middle = (low + high) // 2
        if p_value(middle, m, n) <= LEVEL:
            low = middle + 1
        else:
            high = middle
    return low
