"""The statistics are those of the runs, and the clock waits for what it times."""

import statistics as python
import time
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.measure import statistics, timed


@pytest.mark.parametrize(
    "runs, median, iqr",
    [
        ([3.0], 3.0, 0.0),
        ([1.0, 2.0], 1.5, 0.5),
        ([3.0, 1.0, 2.0], 2.0, 1.0),
        ([5.0, 1.0, 3.0, 2.0, 4.0], 3.0, 2.0),
        ([1.0, 1.0, 1.0, 100.0], 1.0, 24.75),
    ],
)
def test_statistics_of_known_runs(runs: list[float], median: float, iqr: float) -> None:
    seconds, _ = statistics(runs)
    assert seconds.median == pytest.approx(median)
    assert seconds.iqr == pytest.approx(iqr)
    assert seconds.minimum == min(runs)
    assert seconds.runs == tuple(runs)


@given(st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=20))
def test_statistics_are_those_of_python(runs: list[float]) -> None:
    seconds, _ = statistics(runs)
    low, median, high = python.quantiles(runs, n=4, method="inclusive")
    assert seconds.median == pytest.approx(median, rel=1e-6)
    assert seconds.iqr == pytest.approx(high - low, rel=1e-5, abs=1e-5 * max(runs))


@pytest.mark.parametrize(
    "spread, words",
    [
        (0.08, ""),
        (0.12, "could indicate system fluctuation"),
        (0.24, "could indicate system fluctuation"),
        (0.27, "suggests significant environmental influence"),
    ],
)
def test_noise_is_told_from_a_tenth_and_from_a_quarter_of_the_median(
    spread: float, words: str
) -> None:
    _, noise = statistics([1 - spread / 2, 1 - spread / 2, 1.0, 1 + spread / 2, 1 + spread / 2])
    assert words in noise
    assert bool(noise) == bool(words)
    assert not words or f"{100 * spread:.0f}% of the median" in noise


def test_one_run_has_no_noise() -> None:
    assert statistics([1.0])[1] == ""


def slowly() -> str:
    time.sleep(0.05)
    return "done"


def test_timed_gives_wall_seconds_and_the_result() -> None:
    seconds, result = timed(slowly)
    assert result == "done"
    assert seconds >= 0.05


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_timed_waits_for_the_gpu() -> None:
    a = torch.randn(4096, 4096, device="cuda")
    torch.linalg.matrix_power(a, 20)
    event: Any = torch.cuda.Event
    start, end = (event(enable_timing=True) for _ in range(2))

    def run() -> None:
        start.record()
        torch.linalg.matrix_power(a, 20)
        end.record()

    seconds, _ = timed(run)
    assert seconds >= start.elapsed_time(end) / 1000
