"""The Mann–Whitney test, and what it says of the ratio of two samples of times."""

from __future__ import annotations

import statistics
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
    differences = np.sort(np.subtract.outer(np.asarray(other), np.asarray(one)), axis=None)
    not_above = int(np.searchsorted(differences, 0.0, side="right"))
    not_below = m * n - int(np.searchsorted(differences, 0.0, side="left"))
    p = p_value(min(not_above, not_below), m, n)
    rejected = _rejected(m, n)
    value = statistics.median(differences.tolist())
    if rejected == 0:
        return Shift(value, None, None, p)
    return Shift(value, float(differences[rejected - 1]), float(differences[-rejected]), p)


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
