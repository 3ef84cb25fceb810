"""Whatever f, the heads, the shapes and dtypes are: every path has every gradient to rounding.

The reference is c_k·J, with J from torch.autograd.functional.jacobian and c_k the cotangent that
autograd gives for the head alone.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from explorer.engine.gradients import gradients, plan
from explorer.engine.plan import NAIVE, PATHS
from tests.passes import counting

DOUBLE = torch.float64
CUT = tuple(path for path in PATHS if path not in (*NAIVE, "torchjd"))
TOLERANCE = {torch.float32: 1e-4, DOUBLE: 1e-10}
"""Times ‖J‖₂·‖c_k‖."""

seeds = st.integers(0, 10_000)
sides = st.integers(1, 7)
dtypes = st.sampled_from([torch.float32, DOUBLE])
of_jacobian: Callable[..., Any] = torch.autograd.functional.jacobian


def randn(*shape: int, seed: int, dtype: torch.dtype = DOUBLE) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=DOUBLE).to(dtype)


def matrix(rows: int, columns: int, rank: int, seed: int) -> Tensor:
    """A random matrix of at most this rank."""
    return randn(rows, rank, seed=seed) @ randn(rank, columns, seed=seed + 1)


def layers(outputs: int, inputs: int, rank: int, seed: int, f: str) -> Callable[[Tensor], Tensor]:
    inner, outer = matrix(outputs, inputs, rank, seed), matrix(outputs, outputs, outputs, seed + 2)
    return {
        "linear": lambda x: inner.to(x) @ x,
        "tanh": lambda x: outer.to(x) @ torch.tanh(inner.to(x) @ x),
        "quadratic": lambda x: (inner.to(x) @ x) * x.sum(),
        "partly flat": lambda x: torch.relu(inner.to(x) @ x) + 0 * x.sum(),
    }[f]


names = st.sampled_from(["linear", "tanh", "quadratic", "partly flat"])


def within(found: Tensor, expected: Tensor, size: float, dtype: torch.dtype) -> None:
    """‖Δ‖ ≤ tolerance · ‖J‖₂·‖c_k‖."""
    assert found.dtype == dtype
    error = torch.linalg.vector_norm((found.to(expected) - expected) / (size or 1.0)).item()
    assert error <= TOLERANCE[dtype], (error, found, expected)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.tuples(sides, sides),
    rank=sides,
    f=names,
    heads=st.integers(1, 9),
    directions=sides,
    nonlinear=st.booleans(),
    dtype=dtypes,
    seed=seeds,
)
def test_low_rank_families_of_heads(
    sizes: tuple[int, int],
    rank: int,
    f: str,
    heads: int,
    directions: int,
    nonlinear: bool,
    dtype: torch.dtype,
    seed: int,
) -> None:
    """Heads that depend on y through few directions only, linearly or not."""
    outputs, inputs = sizes
    function = layers(outputs, inputs, rank, seed, f)
    weights = matrix(heads, outputs, min(directions, heads), seed + 5)
    x = randn(inputs, seed=seed + 7, dtype=dtype)
    # In x's dtype too: where f is ill-conditioned in float32, its own dy/dx is what can be had.
    y, jacobian = function(x), of_jacobian(function, x).double()
    bends: list[Callable[[Tensor], Tensor]] = [torch.sin, torch.square, lambda u: u]
    bend = bends[seed % 3] if nonlinear else bends[2]
    gs = [lambda y, w=w: bend((w.to(y) * y).sum()) for w in weights]
    leaf = y.clone().requires_grad_()
    cotangents = [torch.autograd.grad(g(leaf), leaf)[0].double() for g in gs]
    norm = torch.linalg.matrix_norm(jacobian, 2).item()
    fewest = int(torch.linalg.matrix_rank(torch.stack(cotangents))) if dtype == DOUBLE else None
    for path in PATHS:
        found = gradients(function, gs, x, path=path)
        for gradient, cotangent in zip(found.gradients, cotangents, strict=True):
            within(gradient, cotangent @ jacobian, norm * cotangent.norm().item(), dtype)
        passes = found.passes
        if path in ("low_rank_vjp", "auto"):
            assert passes.backward <= min(heads, outputs)
        if path == "low_rank_vjp" and fewest is not None and not nonlinear:
            assert passes.backward == min(fewest, heads, outputs)


exponents = st.lists(st.integers(-200, 200), min_size=1, max_size=6)


@settings(max_examples=50, deadline=None)
@given(
    exponents=exponents,
    sizes=st.tuples(sides, sides),
    zeros=st.integers(0, 2),
    repeats=st.integers(0, 3),
    f=names,
    directions=sides,
    seed=seeds,
)
def test_heads_of_any_scale_zero_and_repeated(
    exponents: list[int],
    sizes: tuple[int, int],
    zeros: int,
    repeats: int,
    f: str,
    directions: int,
    seed: int,
) -> None:
    """The error of each head is relative to that head, be the others 400 decades away."""
    outputs, inputs = sizes
    function = layers(outputs, inputs, inputs, seed, f)
    x = randn(inputs, seed=seed + 7)
    jacobian = of_jacobian(function, x)
    norm = torch.linalg.matrix_norm(jacobian, 2).item()
    unit = matrix(len(exponents), outputs, directions, seed + 5)
    scales = 10.0 ** torch.tensor(exponents, dtype=DOUBLE)[:, None]
    weights = torch.cat(
        [unit * scales, torch.zeros(zeros, outputs), -2 * (unit * scales)[:repeats]]
    )
    gs = [lambda y, w=w: (w * y).sum() for w in weights]
    for path in CUT:
        found = gradients(function, gs, x, path=path)
        for gradient, w in zip(found.gradients, weights, strict=True):
            largest = w.abs().max().item() or 1.0
            within(
                gradient / largest,
                (w / largest) @ jacobian,
                norm * (w / largest).norm().item(),
                DOUBLE,
            )
        if path == "low_rank_vjp":
            assert found.passes.backward <= min(directions, len(exponents), outputs)


@settings(max_examples=40, deadline=None)
@given(
    bad=st.lists(st.sampled_from([math.inf, -math.inf, math.nan]), min_size=1, max_size=3),
    heads=st.integers(0, 4),
    outputs=st.integers(2, 6),
    seed=seeds,
)
def test_a_head_with_an_infinite_slope_spoils_no_other(
    bad: list[float], heads: int, outputs: int, seed: int
) -> None:
    """f is diagonal, so that an entry of y and its slope concern one entry of x."""
    slopes = randn(heads + len(bad), outputs, seed=seed)
    for row, value in enumerate(bad):
        slopes[row, (seed + row) % outputs] = value
    x = randn(outputs, seed=seed + 1)
    gs = [lambda y, s=s: (y * s).sum() for s in slopes]
    for path in (*NAIVE, *CUT):  # torchjd sends zeros along with a NaN
        found = gradients(torch.sin, gs, x, path=path)
        for gradient, slope in zip(found.gradients, slopes, strict=True):
            expected = slope * x.cos()
            torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-10, equal_nan=True)


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(1, 4),
    heads=st.integers(1, 5),
    dtype=st.sampled_from([DOUBLE, torch.complex128]),
    complex_y=st.booleans(),
    seed=seeds,
)
def test_complex_and_structured(
    size: int, heads: int, dtype: torch.dtype, complex_y: bool, seed: int
) -> None:
    """Every path is the gradient that one plain backward of the whole gives."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.complex128 if complex_y else dtype
    outer = torch.randn(size, size, generator=generator, dtype=kind)
    x = {
        "a": torch.randn(size, generator=generator, dtype=dtype),
        "b": (torch.randn(2, size, generator=generator, dtype=DOUBLE),),
    }

    def f(x: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
        mixed = outer @ (x["a"] * x["b"][0].sum(0)).to(kind)
        return mixed, {"part": (x["b"][0] * x["a"].abs().square()).sum(1)}

    weights = torch.randn(heads, size, generator=generator, dtype=torch.complex128)
    weights[-1] = weights[0]

    def head(weight: Tensor) -> Callable[[Any], Tensor]:
        return lambda y: (y[0] * weight).abs().square().sum() + y[1]["part"].sum().sin()

    gs = [head(weight) for weight in weights]
    leaves = [x["a"].clone().requires_grad_(), x["b"][0].clone().requires_grad_()]
    y = f({"a": leaves[0], "b": (leaves[1],)})
    expected = [torch.autograd.grad(g(y), leaves, retain_graph=True) for g in gs]
    for path in PATHS:
        if path == "torchjd" and dtype.is_complex:
            continue
        found = gradients(f, gs, x, path=path)
        for gradient, (a, b) in zip(found.gradients, expected, strict=True):
            torch.testing.assert_close(gradient, {"a": a, "b": (b,)}, rtol=1e-10, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(
    heads=st.integers(1, 12),
    outputs=st.integers(1, 12),
    inputs=st.integers(1, 12),
    directions=st.integers(1, 6),
    seed=seeds,
)
def test_passes_are_those_that_are_promised(
    heads: int, outputs: int, inputs: int, directions: int, seed: int
) -> None:
    """By the gate inside f, and as the plan says before: r for low_rank, the fewest for auto."""
    directions = min(directions, heads, outputs)
    weights = matrix(heads, outputs, directions, seed)
    assume(torch.linalg.matrix_rank(weights) == directions)
    mix = randn(outputs, inputs, seed=seed + 3)
    gs = [lambda y, w=w: (w * y).sum() for w in weights]
    x = randn(inputs, seed=seed + 9)
    inner, count = counting(lambda x: mix @ x)
    found = gradients(inner, gs, x, path="low_rank_vjp")
    assert found.passes.backward == count.backward == directions
    assert found.plan.passes == found.passes and count.forward == 1
    inner, count = counting(lambda x: mix @ x)
    found = gradients(inner, gs, x, path="auto")
    assert found.passes.backward <= min(heads, outputs) and count.forward <= 2
    assert count.backward <= found.passes.backward  # a batch passes the gate once
    inner, count = counting(lambda x: mix @ x)
    promised = plan(inner, gs, x)
    assert count.backward == count.forward_mode == 0 and count.forward == 1
    assert promised.passes.backward <= min(heads, outputs)


@settings(max_examples=25, deadline=None)
@given(chunk=st.integers(1, 9), heads=st.integers(1, 6), outputs=st.integers(1, 6), seed=seeds)
def test_chunks_of_any_size_give_the_same(chunk: int, heads: int, outputs: int, seed: int) -> None:
    function = layers(outputs, 3, 3, seed, "tanh")
    weights = randn(heads, outputs, seed=seed)
    gs = [lambda y, w=w: (w * y).sum().sin() for w in weights]
    x = randn(3, seed=seed)
    one = gradients(function, gs, x, path="batched_vjp", chunk_size=chunk)
    other = gradients(function, gs, x, path="retain_graph")
    torch.testing.assert_close(one.gradients, other.gradients, rtol=1e-12, atol=1e-12)
    assert one.passes.backward == heads


def test_nothing_warns_of_an_ordinary_f() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for path in PATHS:
            gradients(torch.sin, [torch.sum, torch.mean], randn(3, seed=0), path=path)


@pytest.mark.parametrize("path", CUT)
def test_steep_f_at_a_small_cotangent(path: str) -> None:
    """c·J of moderate size from factors at the two ends of float64's range."""
    weights = torch.tensor([1e-180, 3e-170], dtype=DOUBLE)
    heads = [lambda y: (y * 1e-180).sum(), lambda y: (y * weights).sum()]
    found = gradients(lambda x: x * 1e180, heads, torch.ones(2, dtype=DOUBLE), path=path)
    torch.testing.assert_close(found.gradients[0], torch.ones(2, dtype=DOUBLE), rtol=1e-13, atol=0)
    torch.testing.assert_close(found.gradients[1], weights * 1e180, rtol=1e-13, atol=0)
