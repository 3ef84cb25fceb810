"""Step Jacobians, gradients both ways, norms and products, held against closed forms."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from explorer.engine import flow
from explorer.engine.flow import Walk, bound, chain, fan, lengths, spectral_norms
from explorer.engine.spectrum import SpectralNorm

DOUBLE = torch.float64
EPS = torch.finfo(DOUBLE).eps
Step = Callable[[Tensor], Tensor]


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=DOUBLE)


def walk(steps: list[Any], x: Tensor, batch: bool = False) -> Walk:
    return Walk(steps, [f"step {t}" for t in range(1, len(steps) + 1)], x, batch)


def linear(*weights: Tensor) -> list[Step]:
    return [lambda h, w=w: w @ h for w in weights]  # type: ignore[misc]


def jacobians(walked: Walk) -> list[Tensor]:
    return [walked.jacobian(t) for t in range(1, len(walked) + 1)]


def orthogonal(n: int, seed: int = 0) -> Tensor:
    return torch.linalg.qr(normal(n, n, seed=seed))[0]


# Jacobians.


def test_step_of_a_linear_recurrence_has_its_matrix() -> None:
    w = normal(6, 6)
    for each in jacobians(walk(linear(w, w, w), normal(6))):
        assert torch.equal(each, w[None])


def test_step_of_a_tanh_layer_is_its_slope_times_its_matrix() -> None:
    weights = [normal(5, 5, seed=seed) / 2 for seed in range(4)]
    walked = walk([lambda h, w=w: torch.tanh(w @ h) for w in weights], normal(5))
    for w, h, found in zip(weights, walked.states[1:], jacobians(walked), strict=True):
        torch.testing.assert_close(found[0], (1 - h.detach() ** 2)[:, None] * w)


@settings(max_examples=40, deadline=None)
@given(
    widths=st.lists(st.integers(1, 9), min_size=2, max_size=6),
    samples=st.one_of(st.none(), st.integers(1, 4)),
    dtype=st.sampled_from([torch.float32, DOUBLE]),
    seed=st.integers(0, 1000),
)
def test_stacks_of_any_widths(
    widths: list[int], samples: int | None, dtype: torch.dtype, seed: int
) -> None:
    """Of every sample, that of autograd.functional; and both ways give the same gradients."""
    batch = samples is not None
    count = len(widths) - 1
    weights = [normal(widths[t + 1], widths[t], seed=seed + t).to(dtype) for t in range(count)]
    steps: list[Step] = [lambda h, w=w: torch.tanh(h @ w.T) for w in weights]  # type: ignore[misc]
    x = normal(*([samples] if batch else []), widths[0], seed=seed + 50).to(dtype)
    walked = walk(steps, x, batch)
    found = jacobians(walked)
    for t, step in enumerate(steps):
        for sample, h in enumerate(walked.states[t].detach().reshape(-1, widths[t])):
            expected = torch.autograd.functional.jacobian(step, h)
            torch.testing.assert_close(found[t][sample], expected)
    cotangents = [walked.cotangent(loss, "loss") for loss in (torch.sum, lambda h: (h**3).sum())]
    naive = [walked.naive(each) for each in cotangents]
    flat = [each.reshape(walked.samples, -1) for each in cotangents]
    together = chain(found, torch.stack(flat))
    for number, rows in enumerate(naive):
        for one, other in zip(rows, together, strict=True):
            torch.testing.assert_close(one, other[number])


def test_states_of_any_shape_and_steps_that_change_their_input_in_place() -> None:
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(0), nn.Linear(8, 3)
    ).double()
    x = normal(1, 6, 6)
    walked = walk(list(net), x)
    product = torch.linalg.multi_dot([each[0] for each in reversed(jacobians(walked))])
    expected = torch.autograd.functional.jacobian(net, x).reshape(3, 36)
    torch.testing.assert_close(product, expected)
    assert not x.requires_grad and walked.notes == []


def test_jacobian_in_chunks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    w = normal(7, 4)
    whole = walk(linear(w), normal(4)).jacobian(1)
    monkeypatch.setattr(flow, "_CHUNK", 3 * 7 * 8)  # three cotangents at a time, the last alone
    assert torch.equal(walk(linear(w), normal(4)).jacobian(1), whole)


class Opaque(torch.autograd.Function):
    """A square whose backward leaves torch, so that vmap cannot go through it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return torch.from_numpy(gradient.numpy() * 2 * x.numpy())


def test_where_vmap_cannot_go_the_cotangents_go_one_by_one() -> None:
    x = normal(4)
    walked = walk([Opaque.apply], x)
    for _ in range(2):
        assert torch.equal(walked.jacobian(1)[0], torch.diag(2 * x))
    (note,) = walked.notes
    assert note.startswith("The cotangents went back through step 1 one after the other: vmap")


def test_half_precision_gives_jacobians_in_float32() -> None:
    walked = walk([lambda h: 2 * h], normal(3).bfloat16())
    assert torch.equal(walked.jacobian(1)[0], 2 * torch.eye(3))
    assert walked.epsilon == torch.finfo(torch.bfloat16).eps


def test_runs_under_no_grad_too() -> None:
    with torch.no_grad():
        walked = walk(linear(normal(3, 3)), normal(3))
        assert torch.equal(walked.jacobian(1)[0], normal(3, 3))
        assert torch.equal(walked.cotangent(torch.sum, "loss"), torch.ones(3, dtype=DOUBLE))


# Gradients.


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(1, 12), st.integers(0, 1000))
def test_gradients_of_a_linear_recurrence_are_powers_of_its_matrix(
    n: int, steps: int, seed: int
) -> None:
    w, c = normal(n, n, seed=seed) / math.sqrt(n), normal(n, seed=seed + 1)
    walked = walk(linear(*[w] * steps), normal(n, seed=seed + 2))
    cotangent = walked.cotangent(lambda h: c @ h, "loss")
    naive, reuse = walked.naive(cotangent), chain(jacobians(walked), cotangent[None, None])
    for t in range(steps + 1):
        expected = c @ torch.linalg.matrix_power(w, steps - t)
        for found in (naive[t][0], reuse[t][0, 0]):
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    "loss",
    [
        lambda h: torch.zeros(()),
        lambda h: torch.ones(1, requires_grad=True).sum(),
        lambda h: 0 * h.sum(),
    ],
)
def test_loss_that_does_not_depend_on_the_end_has_no_gradient(loss: Step) -> None:
    walked = walk(linear(normal(3, 3)), normal(3))
    cotangent = walked.cotangent(loss, "loss")
    assert not cotangent.any()
    assert not any(each.any() for each in walked.naive(cotangent))


@pytest.mark.parametrize(
    "loss, error, words",
    [
        (lambda h: h, ValueError, r"loss energy returned shape \(3,\)\. Return one number"),
        (lambda h: 1.0, TypeError, "loss energy returned a float"),
        (lambda h: (h + 1j).sum(), TypeError, "loss energy returned dtype torch.complex128"),
    ],
)
def test_loss_that_is_no_number(loss: Any, error: type[Exception], words: str) -> None:
    walked = walk(linear(normal(3, 3)), normal(3))
    with pytest.raises(error, match=words):
        walked.cotangent(loss, "loss energy")


def test_loss_may_change_its_input() -> None:
    walked = walk(linear(normal(3, 3)), normal(3))
    end = walked.states[-1].detach().clone()
    assert torch.equal(walked.cotangent(lambda h: h.mul_(2).square().sum(), "loss"), 8 * end)
    assert torch.equal(walked.states[-1], end)


# Batches.


def test_batch_has_the_jacobian_of_every_sample() -> None:
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 2)).double()
    x = normal(5, 4)
    together = jacobians(walk(list(net), x, batch=True))
    for sample in range(5):
        alone = jacobians(walk(list(net), x[sample], batch=False))
        for one, other in zip(together, alone, strict=True):
            torch.testing.assert_close(one[sample], other[0])


@pytest.mark.parametrize(
    "mixing",
    [nn.BatchNorm1d(4).double(), lambda h: h - h.mean(0), lambda h: h.flip(0), lambda h: h[:1] + h],
)
def test_step_that_mixes_samples_is_refused(mixing: Any) -> None:
    walked = walk([nn.Linear(4, 4).double(), mixing], normal(3, 4), batch=True)
    walked.jacobian(1)
    words = r"step 2 mixes the samples of the batch.*\.eval\(\), or give one sample"
    with pytest.raises(ValueError, match=words):
        walked.jacobian(2)


def test_batch_norm_is_no_trouble_in_eval_or_as_one_sample() -> None:
    norm, x = nn.BatchNorm1d(4).double(), normal(3, 4)
    assert walk([norm], x).jacobian(1).shape == (1, 12, 12)
    norm.eval()
    found = walk([norm], x, batch=True).jacobian(1)
    slope = 1 / (norm.running_var + norm.eps).sqrt()
    torch.testing.assert_close(found, torch.diag(slope).expand(3, -1, -1))


# What is no step.


@pytest.mark.parametrize(
    "step, batch, error, words",
    [
        (lambda h: (h, h), False, TypeError, "step 1 returned a tuple. Let every step take one"),
        (lambda h: h > 0, False, TypeError, "step 1 returned dtype torch.bool"),
        (lambda h: h[:0], False, ValueError, r"step 1 returned shape \(0, 4\)"),
        (lambda h: h.detach(), False, ValueError, "step 1 returned a tensor that is cut off"),
        (lambda h: h.sum(), True, ValueError, r"returned shape \(\) for 3 samples"),
        (lambda h: h.T, True, ValueError, r"returned shape \(4, 3\) for 3 samples"),
    ],
)
def test_what_a_step_may_not_return(
    step: Any, batch: bool, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        walk([step], normal(3, 4), batch)


def test_step_that_depends_on_its_parameters_alone_is_cut_off() -> None:
    weight = torch.ones(3, requires_grad=True)
    walked = walk([lambda h: h, lambda h: weight * 2], normal(3))
    with pytest.raises(ValueError, match="step 2 returned a tensor that is cut off"):
        walked.jacobian(2)


def test_error_of_a_step_says_which() -> None:
    with pytest.raises(RuntimeError) as caught:
        walk([nn.Linear(3, 3), nn.Linear(4, 4)], torch.ones(3))
    assert caught.value.__notes__ == ["It was raised in step 2."]


def test_what_is_not_finite_is_told_and_stays_so() -> None:
    walked = walk([lambda h: h, lambda h: h.log(), lambda h: 2 * h], -torch.ones(2))
    assert walked.notes == [
        "h_2 is not finite (step 2): what is computed from there on is not finite either."
    ]
    norms = list(spectral_norms([each * torch.nan for each in jacobians(walked)]))
    assert all(each.isnan().all() for each in norms)


# Norms.


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(0, 1000),
    st.sampled_from([0, -320, 300]),
)
def test_norms_of_matrices_of_any_shape(
    shapes: list[tuple[int, int]], samples: int, seed: int, exponent: int
) -> None:
    scale = 10.0**exponent
    matrices = [normal(samples, *shape, seed=seed) for shape in shapes]
    found = list(spectral_norms([each * scale for each in matrices]))
    assert len(found) == len(matrices)
    for norm, matrix in zip(found, matrices, strict=True):
        expected = torch.linalg.matrix_norm(matrix, 2)
        # Below the normal numbers the entries themselves are rounded to multiples of 5e-324.
        atol = 50 * 5e-324 if exponent < -300 else 0.0
        torch.testing.assert_close(norm, expected * scale, rtol=1e-13, atol=atol)


def test_norm_of_zero_and_of_what_is_not_finite() -> None:
    matrices = torch.stack([torch.zeros(3, 3), torch.eye(3), torch.full((3, 3), torch.nan)])
    matrices[1, 0, 0] = torch.inf
    (found,) = spectral_norms([matrices])
    assert found[0] == 0 and found[1:].isnan().all()


def test_orthogonal_steps_keep_every_norm() -> None:
    walked = walk(linear(*[orthogonal(8, seed) for seed in range(20)]), normal(8))
    found = jacobians(walked)
    norms = list(spectral_norms(found))
    torch.testing.assert_close(torch.cat(norms), torch.ones(20, dtype=DOUBLE), rtol=1e-14, atol=0)
    product = torch.cat(bound(norms))
    torch.testing.assert_close(product, torch.ones(21, dtype=DOUBLE), rtol=1e-13, atol=0)
    cotangent = walked.cotangent(lambda h: h @ h / 2, "loss")
    sizes = [float(lengths(each)) for each in walked.naive(cotangent)]
    assert sizes == pytest.approx([float(normal(8).norm())] * 21, rel=1e-13)
    for spread in fan(found, range(21), EPS):
        values = (spread.largest, spread.upper, spread.median, spread.lower, spread.smallest)
        assert values == pytest.approx([1.0] * 5, rel=1e-13)


@pytest.mark.parametrize("factor", [1e-200, 3.0, 1e200])
def test_length_of_what_squares_would_not_hold(factor: float) -> None:
    vectors = torch.tensor([[3.0, 4.0], [0.0, 0.0]], dtype=DOUBLE) * factor
    assert lengths(vectors).tolist() == pytest.approx([5 * factor, 0.0], rel=1e-14)
    assert lengths(torch.tensor([torch.inf, 1.0])) == torch.inf
    assert lengths(torch.tensor([torch.nan, 1.0])).isnan()


# Products.


def test_fan_of_a_diagonal_recurrence_is_powers_of_its_entries() -> None:
    steps, entries = 12, torch.tensor([1.5, 1.0, 0.9, 0.5, 0.01], dtype=DOUBLE)
    found = list(fan([torch.diag(entries)[None]] * steps, range(0, steps + 1, 3), EPS))
    assert [each.time for each in found] == [12, 9, 6, 3, 0]
    for spread in found:
        powers = (entries ** (steps - spread.time)).tolist()
        values = (spread.largest, spread.upper, spread.median, spread.lower, spread.smallest)
        hidden = [power < 5 * EPS * powers[0] for power in powers]
        for value, power, hide in zip(values, powers, hidden, strict=True):
            assert value is None if hide else value == pytest.approx(power, rel=1e-12)
    assert found[-1].smallest is None and found[0].smallest == 1.0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=2, max_size=7), st.integers(0, 1000))
def test_fan_of_a_stack_is_the_singular_values_of_the_products(
    widths: list[int], seed: int
) -> None:
    steps = len(widths) - 1
    factors = [normal(2, widths[t + 1], widths[t], seed=seed + t) for t in range(steps)]
    for spread in fan(factors, range(steps + 1), EPS):
        product = torch.eye(widths[-1], dtype=DOUBLE).expand(2, -1, -1)
        for t in range(steps - 1, spread.time - 1, -1):
            product = product @ factors[t]
        values = torch.linalg.svdvals(product)
        assert spread.largest == pytest.approx(float(values[:, 0].mean()), rel=1e-10)
        expected = torch.quantile(values, 0.5, dim=1).mean()
        if spread.median is not None:
            assert spread.median == pytest.approx(float(expected), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
@pytest.mark.parametrize("factor", [1e-20, 1e20])
def test_products_pass_through_what_no_number_holds(dtype: torch.dtype, factor: float) -> None:
    """100 steps down and 100 up again: 10^±2000 in the middle, 1 in the end."""
    n, half = 4, 100
    shrink = (orthogonal(n) * factor).to(dtype)
    grow = torch.linalg.inv(shrink.double()).to(dtype)
    factors = [grow[None]] * half + [shrink[None]] * half
    middle, start = fan(factors, (0, half), torch.finfo(dtype).eps)
    assert middle.largest == (0 if factor < 1 else math.inf)
    tolerance = 1e-10 if dtype == DOUBLE else 1e-3
    assert (start.largest, start.smallest) == pytest.approx((1, 1), rel=tolerance)
    product = bound(list(spectral_norms(factors)))
    assert product[half] == (0 if factor < 1 else math.inf)
    assert float(product[0]) == pytest.approx(1, rel=tolerance)


def test_products_with_a_zero_and_with_what_is_not_finite() -> None:
    one, zero = torch.eye(3, dtype=DOUBLE)[None], torch.zeros(1, 3, 3, dtype=DOUBLE)
    first, *_, last = fan([one, zero, one], range(4), EPS)
    assert (first.largest, first.smallest) == (1.0, 1.0)
    assert (last.largest, last.smallest) == (0.0, 0.0)
    assert [float(each) for each in bound([torch.ones(1), torch.zeros(1)])] == [0, 0, 1]
    spreads = list(fan([one, one * torch.nan, one], range(4), EPS))
    assert [math.isnan(each.largest) for each in spreads] == [False, False, True, True]
    assert spreads[-1].median is None


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(1, 8), st.integers(0, 1000))
def test_bound_is_at_least_the_norm_of_the_product(n: int, steps: int, seed: int) -> None:
    factors = [normal(2, n, n, seed=seed + t) for t in range(steps)]
    most = bound(list(spectral_norms(factors)))
    for spread in fan(factors, range(steps + 1), EPS):
        assert spread.largest <= float(most[spread.time].mean()) * (1 + 1e-12)


# Without the matrix.


def dense(f: Step, x: Tensor, **options: Any) -> SpectralNorm:
    matrix = torch.autograd.functional.jacobian(f, x).reshape(-1, x.numel())
    return SpectralNorm(float(torch.linalg.matrix_norm(matrix, 2)), 0.0, 0, None, ("a note",))


@pytest.mark.parametrize("batch", [False, True])
def test_norms_without_the_matrix_are_of_the_same_step(
    batch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked of spectral_norm; its own tests hold it against dense matrices."""
    monkeypatch.setattr(flow, "spectral_norm", dense)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True)).double()
    walked = walk(list(net), normal(3, 4), batch)
    for t in (1, 2):
        norms, notes = walked.norms_without(t)
        (expected,) = spectral_norms([walked.jacobian(t)])
        torch.testing.assert_close(norms, expected)
        assert notes == ["a note"]


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_norms_without_the_matrix_refuse_what_mixes_samples(scale: float) -> None:
    walked = walk([lambda h: h - h.mean(0)], scale * normal(3, 4), batch=True)
    with pytest.raises(ValueError, match="step 1 mixes the samples"):
        walked.norms_without(1)


def test_step_that_is_another_when_it_is_called_again_for_its_norm() -> None:
    factors = iter(range(1, 10))
    walked = walk([lambda h: next(factors) * h], normal(4))
    norms, notes = walked.norms_without(1)
    assert norms.tolist() == pytest.approx([2])
    assert notes[-1].startswith("The step gave another state when it was called again")
    walked = walk([lambda h: next(factors) * h], normal(3, 4), batch=True)
    with pytest.raises(ValueError, match="step 1 gives another state each time it is called"):
        walked.norms_without(1)
