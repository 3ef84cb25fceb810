"""Where an f makes a path impossible, or its repetition wrong: right values, and words."""

import functools
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.engine import paths
from explorer.engine.gradients import Gradients, gradients, plan
from explorer.engine.plan import NAIVE, PATHS

DOUBLE = torch.float64
every_path = pytest.mark.parametrize("path", PATHS)
Heads = list[Callable[..., Tensor]]


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def vector(size: int = 4, seed: int = 0, dtype: torch.dtype = DOUBLE) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def weights(count: int, size: int) -> Heads:
    return [lambda y, w=vector(size, k): (y * w).sum() for k in range(count)]  # noqa: B008


def noted(found: Gradients, words: str) -> bool:
    return any(words in note for note in found.plan.notes)


def places(caught: pytest.WarningsRecorder) -> list[str]:
    """The files that the engine's warnings point to; torch's own are of other categories."""
    return [each.filename for each in caught if each.category is UserWarning]


# Random f's.


@every_path
def test_dropout_is_one_function_in_all_passes(path: str) -> None:
    x, heads = vector(20), weights(3, 20)
    state = torch.get_rng_state()
    with pytest.warns(UserWarning, match="`f` is random") as caught:
        found = gradients(lambda x: torch.dropout(x.sin(), 0.5, True), heads, x, path=path)
    assert places(caught) == [__file__]
    assert noted(found, "`f` is random") and len(found.plan.notes) == 1
    after = torch.get_rng_state()
    torch.set_rng_state(state)
    leaf = x.clone().requires_grad_()
    y = torch.dropout(leaf.sin(), 0.5, True)
    # As one call of f leaves it.
    assert torch.equal(torch.get_rng_state(), after)
    for head, gradient in zip(heads, found.gradients, strict=True):
        (expected,) = torch.autograd.grad(head(y), leaf, retain_graph=True)
        torch.testing.assert_close(gradient, expected)


def test_plan_says_that_f_is_random() -> None:
    with pytest.warns(UserWarning, match="`f` is random"):
        found = plan(lambda x: torch.dropout(x, 0.5, True), [torch.sum], vector())
    assert any("random" in note for note in found.notes)


@every_path
def test_random_heads_are_as_they_are(path: str) -> None:
    """Only f is repeated, so that a head may draw what it likes."""
    found = gradients(torch.sin, [lambda y: (y * torch.rand(4)).sum()], vector(), path=path)
    assert found.gradients[0].all() and not found.plan.notes


# f's with state.


class Normed(torch.nn.Module):
    """Batch norm in training mode, of which the running mean is a part of y too."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3, dtype=DOUBLE)

    def forward(self, x: Tensor) -> Tensor:
        before: Tensor = self.norm.running_mean.clone()
        return self.norm(x) * x.sin() + before


@every_path
@pytest.mark.parametrize("how", ["itself", "closure", "method", "partial"])
def test_buffers_are_as_one_call_leaves_them(path: str, how: str) -> None:
    net, single = Normed(), Normed()
    x = vector(12).reshape(4, 3)
    heads: Heads = [lambda y: (y**2).sum(), lambda y: y[:2].sum(), lambda y: y.exp().sum()]
    f: Callable[[Tensor], Tensor] = {
        "itself": net,
        "closure": lambda x: net(x),
        "method": net.forward,
        "partial": functools.partial(Normed.forward, net),
    }[how]
    with pytest.warns(UserWarning, match="`f` keeps state .a buffer") as caught:
        found = gradients(f, heads, x, path=path)
    assert places(caught) == [__file__]
    leaf = x.clone().requires_grad_()
    y = single(leaf)
    for key, buffer in single.named_buffers():
        torch.testing.assert_close(dict(net.named_buffers())[key], buffer)
    for head, gradient in zip(heads, found.gradients, strict=True):
        (expected,) = torch.autograd.grad(head(y), leaf, retain_graph=True)
        torch.testing.assert_close(gradient, expected)


@every_path
def test_buffers_of_a_module_that_is_x(path: str) -> None:
    net, single = Normed(), Normed()
    batch = vector(12).reshape(4, 3)
    heads: Heads = [lambda y: (y**2).sum(), lambda y: y[:2].sum(), lambda y: y.exp().sum()]
    with pytest.warns(UserWarning, match="keeps state"):
        found = gradients(lambda net: net(batch), heads, net, path=path)
    y = single(batch)
    for head, gradient in zip(heads, found.gradients, strict=True):
        expected = torch.autograd.grad(head(y), list(single.parameters()), retain_graph=True)
        torch.testing.assert_close(list(gradient.values()), list(expected))
    assert int(net.norm.num_batches_tracked) == 1
    torch.testing.assert_close(net.norm.running_mean, single.norm.running_mean)


def test_batch_norm_that_is_not_training_says_nothing() -> None:
    net = Normed().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = gradients(net, weights(2, 3), vector(12).reshape(4, 3), path="recompute")
    assert not found.plan.notes


@pytest.mark.parametrize("path", ["recompute", "jvp"])
def test_hidden_state_is_seen_where_f_runs_again(path: str) -> None:
    calls: list[int] = []

    def f(x: Tensor) -> Tensor:
        calls.append(1)
        return x * len(calls)

    with pytest.warns(UserWarning, match="`f` gave another y when it was called again") as caught:
        found = gradients(f, weights(3, 4), vector(), path=path)
    assert places(caught) == [__file__]
    assert noted(found, "it keeps state: the passes of this result are of different functions")


def test_buffers_where_forward_mode_is_tried_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph of the first call is gone back through after further calls."""
    monkeypatch.setattr("explorer.engine.combination.choose", prefer("jvp"))
    net, single = Normed(), Normed()
    x, heads = vector(12).reshape(4, 3), weights(2, 3)
    with pytest.warns(UserWarning, match="keeps state"):
        found = gradients(lambda x: looking(net(x)), heads, x)
        exact = gradients(lambda x: single(x).exp(), heads, x, path="retain_graph")
    assert noted(found, "Forward mode was tried and left")
    torch.testing.assert_close(found.gradients, exact.gradients)
    torch.testing.assert_close(net.state_dict(), single.state_dict())


@every_path
def test_f_that_rounds_is_no_other_function(path: str) -> None:
    """Its second y may differ in the last digits, as those of a parallel sum do."""
    calls: list[int] = []

    def f(x: Tensor) -> Tensor:
        calls.append(1)
        return x.sin() * (1 + 1e-15 * len(calls))

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = gradients(f, weights(3, 4), vector(), path=path)
    assert not found.plan.notes


@every_path
def test_f_that_changes_x_in_place_is_refused(path: str) -> None:
    x = vector()
    with pytest.raises(ValueError, match=r"`f` changes `x` in place.*x\.clone"):
        gradients(lambda x: x.mul_(2).sum(), [torch.sin], x, path=path)
    assert torch.equal(x, vector())


# Autocast.


@every_path
def test_autocast_is_for_f_alone(path: str) -> None:
    """The gradients are as good as bfloat16 lets y be; what combines them is not rounded to it."""
    layer = torch.nn.Linear(6, 3)
    x = vector(6, dtype=torch.float32)
    heads: Heads = [lambda y: y.float().square().sum(), torch.sum, lambda y: 1000 * y.float().sum()]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = gradients(layer, heads, x, path=path)
        assert torch.is_autocast_enabled("cpu")
    assert noted(found, "`f` ran under autocast, so y is bfloat16")
    exact = gradients(layer, heads, x, path="retain_graph")
    for one, other in zip(found.gradients, exact.gradients, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=0.05, atol=0.02 * other.abs().max().item())
    assert not exact.plan.notes


@pytest.mark.parametrize("path", ["reuse", "low_rank_vjp", "jvp"])
def test_products_under_autocast_are_in_full_precision(path: str) -> None:
    matrix, x = vector(9, dtype=torch.float32).reshape(3, 3), vector(3, dtype=torch.float32)
    heads: Heads = [lambda y, s=s: s * y[0] + y[1] for s in (0.1, 1.234567, 7.7)]

    def f(x: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            return (matrix.t() * x).sum(1)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = gradients(f, heads, x, path=path)
    assert not found.plan.notes
    for gradient, s in zip(found.gradients, (0.1, 1.234567, 7.7), strict=True):
        torch.testing.assert_close(gradient, s * matrix[:, 0] + matrix[:, 1], rtol=1e-6, atol=1e-6)


# Compiled f's.


@every_path
def test_compiled_f(path: str) -> None:
    compiled = torch.compile(lambda x: x.sin() * x.sum(), backend="aot_eager")
    x, heads = vector(), weights(3, 4)
    found = gradients(compiled, heads, x, path=path)
    exact = gradients(lambda x: x.sin() * x.sum(), heads, x, path="retain_graph")
    torch.testing.assert_close(found.gradients, exact.gradients)
    if path == "auto":
        assert noted(found, "`f` is compiled")
        told = plan(compiled, heads, x)
        assert told.notes == found.plan.notes
        assert {"batched_vjp", "jvp"}.isdisjoint(told.seconds)


# vmap and forward mode that cannot.


class Looking(torch.autograd.Function):
    """exp, with a backward that looks at a value: vmap cannot, nor is there a forward mode."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return cotangent * y if cotangent.sum().item() != 12345.0 else cotangent


looking: Callable[[Tensor], Tensor] = Looking.apply


@pytest.mark.parametrize("chunk", [None, 2])
def test_batch_falls_back_to_one_after_the_other(chunk: int | None) -> None:
    heads = weights(3, 4)
    found = gradients(looking, heads, vector(), path="batched_vjp", chunk_size=chunk)
    exact = gradients(torch.exp, heads, vector(), path="retain_graph")
    torch.testing.assert_close(found.gradients, exact.gradients)
    assert found.passes.backward == 3
    assert noted(found, "one after the other: vmap cannot take `f` (")
    assert noted(found, "item") and len(found.plan.notes) == 1


def prefer(path: str) -> Callable[..., Any]:
    """`choose` as if one path were always predicted to be the quickest."""
    choose = paths.Combination.decide.__globals__["choose"]

    def chosen(*args: Any, candidates: dict[str, float], **kwargs: Any) -> Any:
        only = {path: candidates[path]} if path in candidates else candidates
        return choose(*args, candidates=only, **kwargs)

    return chosen


def test_auto_falls_back_from_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.engine.combination.choose", prefer("batched_vjp"))
    heads = weights(3, 9)
    found = gradients(looking, heads, vector(9))
    exact = gradients(torch.exp, heads, vector(9), path="retain_graph")
    torch.testing.assert_close(found.gradients, exact.gradients)
    assert found.plan.path == "low_rank_vjp" and found.passes.backward == 3
    assert noted(found, "vmap cannot take `f`")


def test_auto_takes_a_batch_where_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.engine.combination.choose", prefer("batched_vjp"))
    heads = weights(3, 9)
    found = gradients(torch.exp, [*heads, lambda y: 2 * heads[0](y)], vector(9))
    exact = gradients(torch.exp, heads, vector(9), path="retain_graph")
    torch.testing.assert_close(found.gradients[:3], exact.gradients)
    assert found.plan.path == "batched_vjp" and found.passes.backward == 3  # the rank, not 4


def test_auto_takes_a_y_with_a_constant_by_forward_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.engine.combination.choose", prefer("jvp"))
    heads: Heads = [lambda y: (y[0] * y[1]).sum(), lambda y: y[0].prod()]
    found = gradients(lambda x: (x.square(), torch.ones(4)), heads, vector())
    assert found.plan.path == "jvp" and not found.plan.notes
    torch.testing.assert_close(found.gradients[0], 2 * vector())


def test_path_jvp_needs_forward_mode() -> None:
    with pytest.raises(RuntimeError, match=r"cannot be passed through in forward mode: .* 'jvp'"):
        gradients(looking, [torch.sum], vector(), path="jvp")


def test_auto_falls_back_from_forward_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.engine.combination.choose", prefer("jvp"))
    heads = weights(3, 4)
    found = gradients(lambda x: looking(x.sum() * vector(4)), heads, torch.tensor(0.5).double())
    exact = gradients(
        lambda x: torch.exp(x.sum() * vector(4)), heads, torch.tensor(0.5).double(), path="reuse"
    )
    torch.testing.assert_close(found.gradients, exact.gradients)
    assert found.plan.path != "jvp" and noted(found, "Forward mode was tried and left")
    assert found.passes.forward_mode == 0


def test_auto_takes_forward_mode_where_that_is_fewest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.engine.combination.choose", prefer("jvp"))
    found = gradients(lambda x: x * vector(9), weights(5, 9), torch.tensor(0.5, dtype=DOUBLE))
    exact = gradients(
        lambda x: x * vector(9), weights(5, 9), torch.tensor(0.5, dtype=DOUBLE), path="reuse"
    )
    torch.testing.assert_close(found.gradients, exact.gradients)
    assert found.plan.path == "jvp"
    assert found.passes == found.plan.passes
    assert (found.passes.forward_mode, found.passes.backward) == (1, 0)


@every_path
def test_an_error_of_f_s_own_backward_is_passed_on(path: str) -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, cotangent: Tensor) -> Tensor:
            raise ZeroDivisionError("from within")

        @staticmethod
        def jvp(ctx: Any, tangent: Tensor) -> Tensor:
            raise ZeroDivisionError("from within")

    with pytest.raises(ZeroDivisionError, match="from within"):
        gradients(Broken.apply, weights(3, 4), vector(), path=path)


@every_path
def test_retain_grad_inside_f(path: str) -> None:
    """vmap cannot write .grad; nor may it stay in there."""

    def f(x: Tensor) -> Tensor:
        inner = x.sin()
        if inner.requires_grad:
            inner.retain_grad()
        return inner.exp()

    heads = weights(3, 4)
    found = gradients(f, heads, vector(), path=path)
    exact = gradients(lambda x: x.sin().exp(), heads, vector(), path="retain_graph")
    torch.testing.assert_close(found.gradients, exact.gradients)


@every_path
def test_retain_grad_on_y(path: str) -> None:
    kept: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        y = x.sin()
        if y.requires_grad:
            y.retain_grad()
        kept.append(y)
        return y

    heads = weights(3, 4)
    found = gradients(f, heads, vector(), path=path)
    exact = gradients(torch.sin, heads, vector(), path="retain_graph")
    torch.testing.assert_close(found.gradients, exact.gradients)


# Memory and chunks.


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_chunks_equal_the_whole(chunk: int) -> None:
    heads = weights(5, 7)
    found = gradients(torch.sin, heads, vector(7), path="batched_vjp", chunk_size=chunk)
    exact = gradients(torch.sin, heads, vector(7), path="retain_graph")
    torch.testing.assert_close(found.gradients, exact.gradients)
    assert found.passes.backward == 5 and not found.plan.notes


def test_memory_limit_that_nothing_fits_says_what_is_needed() -> None:
    with pytest.raises(ValueError, match=r"`memory_limit` is 1 bytes, and .* needs about \d+"):
        gradients(torch.sin, weights(3, 9), vector(9), memory_limit=1)
    with pytest.raises(ValueError, match="`memory_limit` is 1 bytes"):
        plan(torch.sin, weights(3, 9), vector(9), memory_limit=1)


def test_memory_limit_excludes_what_does_not_fit() -> None:
    """Three gradients of nine float64, 216 bytes; dy/dx would be 648 more."""
    heads = weights(3, 9)
    found = gradients(torch.sin, heads, vector(9), memory_limit=300)
    assert set(found.plan.seconds) <= {"low_rank_vjp", "batched_vjp"}
    assert {"reuse", "jvp"}.isdisjoint(found.plan.seconds)
    exact = gradients(torch.sin, heads, vector(9), path="retain_graph")
    torch.testing.assert_close(found.gradients, exact.gradients)


@pytest.mark.parametrize("limit", [10**3, 10**4, 10**9])
def test_a_batch_within_a_memory_limit(limit: int) -> None:
    heads = weights(5, 7)
    found = gradients(torch.sin, heads, vector(7), path="batched_vjp", memory_limit=limit)
    exact = gradients(torch.sin, heads, vector(7), path="retain_graph")
    torch.testing.assert_close(found.gradients, exact.gradients)


# What is missing, and what is not allowed.


def test_torchjd_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(paths, "find_spec", lambda name: None if name == "torchjd" else find(name))
    with pytest.raises(ModuleNotFoundError, match="pip install torchjd"):
        gradients(torch.sin, [torch.sum], vector(), path="torchjd")


@pytest.mark.parametrize("name", ["chunk_size", "memory_limit"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "2", True])
def test_wrong_number_is_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"`{name}` is .* Allowed: a whole number above 0"):
        gradients(torch.sin, [torch.sum], vector(), **{name: value})


@pytest.mark.parametrize("path", ["Auto", "", None, 3, "low_rank"])
def test_wrong_path_is_named(path: Any) -> None:
    with pytest.raises(ValueError, match=r"`path` is .*Allowed: recompute, retain_graph, reuse"):
        gradients(torch.sin, [torch.sum], vector(), path=path)


@pytest.mark.parametrize("path", NAIVE)
def test_naive_paths_take_no_notice_of_chunks(path: str) -> None:
    found = gradients(torch.sin, [torch.sum], vector(), path=path, chunk_size=1, memory_limit=1)
    torch.testing.assert_close(found.gradients[0], vector().cos())
