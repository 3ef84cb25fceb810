"""The statistics are those of the runs, and saved bytes are counted to the byte."""

import statistics as python
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.measure import saved_bytes, statistics, timed


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


N = 1000


def leaf(size: int = N, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.linspace(0.1, 1.0, size, dtype=dtype).requires_grad_()


def size_of(run: Callable[[], object]) -> int:
    with saved_bytes() as saved:
        run()
    return saved.size


GRAPHS: dict[str, tuple[Callable[[Tensor], object], int]] = {
    "nothing": (lambda x: x + 1, 0),
    "output": (lambda x: x.exp(), 8 * N),
    "input": (lambda x: x.sin(), 8 * N),
    "input of two": (lambda x: (x.sin(), x.cos()), 8 * N),
    "input twice": (lambda x: x * x, 8 * N),
    "chain": (lambda x: x.exp().sin(), 8 * N),  # the output of one is the input of the other
    "two tensors": (lambda x: x.sin().sin(), 2 * 8 * N),
    "view": (lambda x: (x.sin(), x[: N // 2].sin()), 8 * N),
    "float32": (lambda x: x.float().exp(), 4 * N),
}


@pytest.mark.parametrize("graph", GRAPHS)
def test_saved_bytes_of_a_known_graph(graph: str) -> None:
    f, size = GRAPHS[graph]
    x = leaf()
    assert size_of(lambda: f(x)) == size


def test_nothing_is_saved_where_nothing_needs_a_gradient() -> None:
    assert size_of(lambda: torch.ones(N).exp()) == 0
    with torch.no_grad():
        assert size_of(lambda: leaf().exp()) == 0


@pytest.mark.parametrize("f", [torch.sin, torch.exp], ids=["saves its input", "saves its output"])
def test_of_graphs_one_after_the_other_the_largest_counts(f: Callable[[Tensor], Tensor]) -> None:
    def run() -> None:
        for size in (N, 3 * N, 2 * N):
            f(leaf(size))  # dropped at once, without a backward

    assert size_of(run) == 3 * 8 * N


def test_graphs_side_by_side_add_up() -> None:
    assert size_of(lambda: [leaf(size).exp() for size in (N, 3 * N, 2 * N)]) == 6 * 8 * N


def test_backward_frees_what_was_saved() -> None:
    def run() -> None:
        x = leaf()
        y = x.exp().sum()
        torch.autograd.grad(y, x)
        z = leaf(2 * N).exp().sum()  # y is still there; what it had saved is not
        torch.autograd.backward(z)

    assert size_of(run) == 2 * 8 * N


def test_gradients_are_right_while_bytes_are_counted() -> None:
    x = leaf()
    with saved_bytes():
        (gradient,) = torch.autograd.grad((x.exp() * x.sin()).sum(), x)
    torch.testing.assert_close(gradient, (x.exp() * (x.sin() + x.cos())).detach())
