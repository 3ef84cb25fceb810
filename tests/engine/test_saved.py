"""What autograd saves for backward is counted to the byte."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from explorer.engine.saved import saved_bytes

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
