"""Every loss's gradient on a graph that is there already: what training loops call."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.engine.gradients import Gradients, gradients, pullback
from explorer.engine.plan import Passes

DOUBLE = torch.float64
KNOWN = ("retain_graph", "reuse", "batched_vjp", "low_rank_vjp", "auto")
CUT = KNOWN[1:]
every_path = pytest.mark.parametrize("path", KNOWN)
cut_path = pytest.mark.parametrize("path", CUT)


def network(*widths: int, seed: int = 0) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    layers: list[torch.nn.Module] = []
    for one, other in itertools.pairwise(widths):
        layers += [torch.nn.Linear(one, other), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers).to(DOUBLE)


def vector(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def separately(losses: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """K backward passes through everything, as people write them."""
    return [
        torch.autograd.grad(
            z, list(inputs), retain_graph=True, allow_unused=True, materialize_grads=True
        )
        for z in losses
    ]


def agree(found: Gradients, expected: Sequence[Sequence[Tensor]]) -> None:
    assert len(found.gradients) == len(expected)
    for one, other in zip(found.gradients, expected, strict=True):
        given = list(one.values()) if isinstance(one, dict) else one
        given = [given] if isinstance(given, Tensor) else list(given)
        torch.testing.assert_close(given, list(other), rtol=1e-10, atol=1e-12)


@contextmanager
def entries(*tensors: Tensor) -> Iterator[list[int]]:
    """Counts the cotangents that go back beyond these tensors."""
    seen: list[int] = []
    nodes = [each.grad_fn for each in tensors]
    handles = [node.register_prehook(lambda _: seen.append(1)) for node in nodes if node]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# The same as K backward passes.


@every_path
@pytest.mark.parametrize("heads", [1, 3, 9])
@pytest.mark.parametrize("width", [1, 4])
def test_equals_separate_backwards_and_gradients(path: str, width: int, heads: int) -> None:
    trunk, batch = network(3, 5, width), vector(2, 3)
    targets = vector(heads, 2, width, seed=1)
    gs = [lambda y, t=t: (y - t).square().mean() for t in targets]
    features = trunk(batch)
    losses = [g(features) for g in gs]
    expected = separately(losses, list(trunk.parameters()))
    found = pullback(losses, features, trunk, path=path)
    agree(found, expected)
    assert list(found.gradients[0]) == [name for name, _ in trunk.named_parameters()]
    torch.testing.assert_close(found.values, tuple(z.detach() for z in losses))
    whole = gradients(lambda net: net(batch), gs, trunk, path=path)
    torch.testing.assert_close(whole.gradients, found.gradients)
    assert not any(each.requires_grad for each in found.gradients[0].values())


@cut_path
def test_passes_are_the_rank_at_most(path: str) -> None:
    trunk = network(3, 4)
    features = trunk(vector(1, 3))
    a, b = vector(4, seed=1), vector(4, seed=2)
    losses = [(features * w).sum() for w in (a, b, a + b, 2 * a, -b)]
    expected = separately(losses, list(trunk.parameters()))
    with entries(features) as seen:
        found = pullback(losses, features, trunk, path=path)
    agree(found, expected)
    passes = {"reuse": 4, "batched_vjp": 5}.get(path, 2)
    assert found.passes == found.plan.passes == Passes(0, passes)
    # The losses' own gradients end at the features; a batch enters them once.
    assert len(seen) == (1 if path == "batched_vjp" else passes)


@every_path
def test_losses_that_use_the_inputs_beside_the_features(path: str) -> None:
    """The direct term is kept, and no pass is counted for it."""
    x = vector(4).requires_grad_()
    features = x.sin()
    losses = [
        (features * x).sum(),
        features.sum(),
        x.square().sum(),  # the features play no part in it
        (features.exp() + x.cos()).sum(),
    ]
    expected = separately(losses, [x])
    found = pullback(losses, features, x, path=path)
    agree(found, expected)
    dependent = 3
    assert found.passes.backward == (4 if path == "reuse" else dependent)
    assert x.grad is None


@every_path
def test_weight_decay_on_the_trunk(path: str) -> None:
    trunk = network(3, 4, 2)
    features = trunk(vector(5, 3))
    decay = sum(each.square().sum() for each in trunk.parameters())
    losses = [features.square().mean() + decay, features.sum(), 0.1 * decay]
    expected = separately(losses, list(trunk.parameters()))
    agree(pullback(losses, features, trunk, path=path), expected)


@every_path
def test_skip_connection_around_the_features(path: str) -> None:
    first, second = network(3, 4), network(4, 4, seed=1)
    early = first(vector(2, 3))
    features = second(early)
    losses = [(features + early).square().sum(), (features * early).sum(), features.sum()]
    inputs = [*first.parameters(), *second.parameters()]
    expected = separately(losses, inputs)
    agree(pullback(losses, features, inputs, path=path), expected)


@every_path
def test_losses_that_share_more_than_the_features(path: str) -> None:
    trunk, neck = network(3, 4), network(4, 4, seed=1)
    features = trunk(vector(2, 3))
    shared = neck(features).square()
    losses = [shared.sum(), shared.exp().mean(), (shared * features).sum()]
    expected = separately(losses, list(trunk.parameters()))
    by_neck = separately(losses, list(neck.parameters()))
    found = pullback(losses, features, trunk, path=path, head_parameters=[neck] * 3)
    agree(found, expected)
    for one, other in zip(found.head_gradients, by_neck, strict=True):
        torch.testing.assert_close(list(one.values()), list(other))


# Features of every kind.


@every_path
def test_features_are_several_tensors(path: str) -> None:
    x = vector(4).requires_grad_()
    features = {"a": x.sin(), "b": [x.exp().sum(), torch.fft.rfft(x)]}
    a, (b, c) = features["a"], features["b"]
    losses = [(a * b).sum(), c.abs().square().sum(), (a * x).sum() + b]
    expected = separately(losses, [x])
    agree(pullback(losses, features, x, path=path), expected)


@every_path
def test_features_are_outputs_of_one_node(path: str) -> None:
    x = vector(6).requires_grad_()
    one, other = torch.split(x.sin() * x.sum(), 3)
    losses = [(one * other).sum(), one.sum(), other.square().sum(), (one * x[:3]).sum()]
    expected = separately(losses, [x])
    agree(pullback(losses, (one, other), x, path=path), expected)


@every_path
def test_one_of_the_outputs_of_a_node_is_no_feature(path: str) -> None:
    """What goes through it is a direct term."""
    x = vector(6).requires_grad_()
    one, other = torch.split(x.sin() * x.sum(), 3)
    losses = [(one * other).sum(), one.sum() + other.prod(), one.exp().sum()]
    expected = separately(losses, [x])
    agree(pullback(losses, one, x, path=path), expected)


@every_path
def test_one_feature_is_computed_from_another(path: str) -> None:
    """The cotangent of the first is with the second held fixed; the pass joins them."""
    x = vector(4).requires_grad_()
    first = x.sin()
    second = first.exp() * x.sum()
    losses = [(first * second).sum(), second.sum(), first.prod(), (first + second + x).prod()]
    expected = separately(losses, [x])
    for features in ([first, second], [second, first]):
        agree(pullback(losses, features, x, path=path, retain_graph=True), expected)


@every_path
def test_features_are_the_inputs_themselves(path: str) -> None:
    x = vector(4).requires_grad_()
    losses = [x.sin().sum(), x.prod(), (x * x).sum()]
    expected = separately(losses, [x])
    agree(pullback(losses, x, x, path=path), expected)


@every_path
def test_inputs_that_are_no_leaves(path: str) -> None:
    before = vector(4).requires_grad_()
    x = before.exp()
    features = x.sin()
    losses = [features.sum(), (features * x).sum()]
    expected = separately(losses, [x])
    agree(pullback(losses, features, x, path=path), expected)
    assert before.grad is None


@every_path
def test_the_features_twice(path: str) -> None:
    x = vector(3).requires_grad_()
    y = x.sin()
    losses = [y.sum(), y.prod()]
    expected = separately(losses, [x])
    agree(pullback(losses, [y, y], x, path=path), expected)


@every_path
def test_some_losses_do_not_use_the_features(path: str) -> None:
    x = vector(3).requires_grad_()
    features = x.sin()
    constant = torch.tensor(2.0, dtype=DOUBLE)
    other = vector(2).requires_grad_().sum()
    losses = [features.sum(), constant, other, x.sum()]
    found = pullback(losses, features, x, path=path)
    torch.testing.assert_close(found.gradients[0], x.detach().cos())
    assert not found.gradients[1].any() and not found.gradients[2].any()
    torch.testing.assert_close(found.gradients[3], torch.ones_like(x))


# The heads' own parameters.


@every_path
@pytest.mark.parametrize("as_dict", [False, True])
def test_head_parameters(path: str, as_dict: bool) -> None:
    trunk = network(3, 4)
    heads = [torch.nn.Linear(4, 1, dtype=DOUBLE) for _ in range(3)]
    heads[2].bias.requires_grad_(False)
    features = trunk(vector(5, 3))
    losses = [head(features).square().mean() for head in heads]
    own = [[each for each in head.parameters() if each.requires_grad] for head in heads]
    expected = [separately([z], each)[0] for z, each in zip(losses, own, strict=True)]
    given: list[Any] = [
        {name: each for name, each in head.named_parameters() if each.requires_grad}
        if as_dict
        else head
        for head in heads
    ]
    found = pullback(losses, features, trunk, path=path, head_parameters=given)
    for one, other in zip(found.head_gradients, expected, strict=True):
        torch.testing.assert_close(list(one.values()), list(other))
    assert [sorted(each) for each in found.head_gradients] == [
        ["bias", "weight"], ["bias", "weight"], ["weight"]
    ]  # fmt: skip
    assert all(each.grad is None for head in heads for each in head.parameters())


def test_training_reaches_the_weights_of_plain_backward() -> None:
    """The sum of the losses' gradients is the gradient of their sum."""

    def models() -> tuple[torch.nn.Module, list[torch.nn.Module]]:
        trunk = network(3, 8, 4)
        return trunk, [network(4, 1, seed=seed) for seed in (1, 2, 3)]

    batch, targets = vector(16, 3), vector(3, 16, 1, seed=1)

    def losses_of(features: Tensor, heads: list[torch.nn.Module]) -> list[Tensor]:
        return [
            (head(features) - target).square().mean()
            for head, target in zip(heads, targets, strict=True)
        ]

    trunk, heads = models()
    optimizer = torch.optim.Adam([*trunk.parameters(), *torch.nn.ModuleList(heads).parameters()])
    for _ in range(5):
        features = trunk(batch)
        found = pullback(losses_of(features, heads), features, trunk, head_parameters=heads)
        for name, each in trunk.named_parameters():
            each.grad = sum(gradient[name] for gradient in found.gradients)
        for head, own in zip(heads, found.head_gradients, strict=True):
            for name, each in head.named_parameters():
                each.grad = own[name]
        optimizer.step()
    plain, others = models()
    optimizer = torch.optim.Adam([*plain.parameters(), *torch.nn.ModuleList(others).parameters()])
    for _ in range(5):
        optimizer.zero_grad()
        torch.stack(losses_of(plain(batch), others)).sum().backward()
        optimizer.step()
    for one, other in zip([trunk, *heads], [plain, *others], strict=True):
        torch.testing.assert_close(one.state_dict(), other.state_dict(), rtol=1e-9, atol=1e-11)


# The graph, and what is beside it.


def graph() -> tuple[Tensor, Tensor, list[Tensor]]:
    x = vector(4).requires_grad_()
    features = x.exp().sin()
    return x, features, [features.sum(), features.prod(), (features * x).sum()]


def test_the_graph_is_freed_by_default() -> None:
    x, features, losses = graph()
    result = pullback(losses, features, x, path="low_rank_vjp")
    with pytest.raises(RuntimeError, match="second time"):
        features.sum().backward()
    with pytest.raises(RuntimeError, match="retain_graph=True to add losses later"):
        result.add(features.exp().sum())


@every_path
def test_the_graph_stays_where_it_is_to(path: str) -> None:
    x, features, losses = graph()
    expected = separately(losses, [x])
    for _ in range(2):
        agree(pullback(losses, features, x, path=path, retain_graph=True), expected)
    losses[0].backward()
    torch.testing.assert_close(x.grad, expected[0][0])


@every_path
def test_a_graph_that_is_gone_says_what_to_do(path: str) -> None:
    x, features, losses = graph()
    features.sum().backward()
    with pytest.raises(RuntimeError, match=r"graph of `\w+` was already freed.*retain_graph=True"):
        pullback(losses, features, x, path=path)


@every_path
def test_losses_whose_own_graph_is_gone_say_what_to_do(path: str) -> None:
    x, features, losses = graph()
    torch.autograd.grad(losses[1], features)
    with pytest.raises(RuntimeError, match="graph of `losses` was already freed"):
        pullback(losses, features, x, path=path)


def test_retain_graph_path_frees_with_the_last_loss() -> None:
    x, features, losses = graph()
    pullback(losses, features, x, path="retain_graph")
    with pytest.raises(RuntimeError, match="second time"):
        features.sum().backward()


@every_path
def test_grad_of_tensors_is_left_alone(path: str) -> None:
    x, features, _ = graph()
    features.retain_grad()
    x.grad = torch.full_like(x, 7.0)
    features.grad = torch.full_like(features, 5.0)
    losses = [features.sum(), (features * x).sum()]
    pullback(losses, features, x, path=path, retain_graph=True)
    assert torch.equal(x.grad, torch.full_like(x, 7.0))
    assert torch.equal(features.grad, torch.full_like(features, 5.0))
    losses[0].backward()
    assert torch.equal(features.grad, torch.full_like(features, 6.0))


@every_path
def test_retained_grad_between_features_and_inputs(path: str) -> None:
    """vmap cannot write it, so that a batch falls back; what it holds after is not ours to say."""
    x = vector(4).requires_grad_()
    inner = x.exp()
    inner.retain_grad()
    features = inner.sin()
    losses = [features.sum(), features.prod()]
    expected = separately(losses, [x])
    agree(pullback(losses, features, x, path=path), expected)


def test_further_losses() -> None:
    x, features, losses = graph()
    expected = separately(losses, [x])
    result = pullback(losses[:1], features, x, retain_graph=True)
    more = result.add(*losses[1:])
    agree(more, expected)
    assert more.passes.backward == 3 and len(result.gradients) == 1


def test_further_losses_need_no_graph_where_the_jacobian_is_known() -> None:
    x, features, losses = graph()
    expected = separately(losses, [x])
    inner = pullback(losses[:1], features, x, path="reuse")
    # Those without a direct term: for that the graph would have to be there.
    more = inner.add(losses[1])
    agree(more, expected[:2])
    assert more.passes == inner.passes
    slopes = (x.exp().cos() * x.exp()).detach()
    torch.testing.assert_close(inner.jacobian, torch.diag(slopes))


def test_surrogate_of_a_pullback() -> None:
    x, features, losses = graph()
    result = pullback(losses, features, x, path="reuse", retain_graph=True)
    leaf = x.detach().clone().requires_grad_()
    y = result.surrogate(leaf)
    assert torch.equal(y.detach(), features.detach())
    y.square().sum().backward()
    (expected,) = torch.autograd.grad(features.square().sum(), x)
    torch.testing.assert_close(leaf.grad, expected)


@every_path
def test_create_graph(path: str) -> None:
    x = vector(3).requires_grad_()
    features = x.sin()
    losses = [features.square().sum(), (features * x).sum(), features.prod()]
    found = pullback(losses, features, x, path=path, create_graph=True)
    penalty = sum((g.square().sum() for g in found.gradients), torch.zeros((), dtype=DOUBLE))
    (second,) = torch.autograd.grad(penalty, x)
    leaf = x.detach().clone().requires_grad_()
    y = leaf.sin()
    firsts = [
        torch.autograd.grad(z, leaf, create_graph=True)[0]
        for z in (y.square().sum(), (y * leaf).sum(), y.prod())
    ]
    (expected,) = torch.autograd.grad(torch.stack(firsts).square().sum(), leaf)
    torch.testing.assert_close(second, expected)
    torch.testing.assert_close(found.gradients, tuple(firsts))


@every_path
def test_works_where_gradients_are_off(path: str) -> None:
    x, features, losses = graph()
    expected = separately(losses, [x])
    with torch.no_grad():
        found = pullback(losses, features, x, path=path)
        assert not torch.is_grad_enabled()
    agree(found, expected)


# What is refused.


@cut_path
def test_features_that_no_loss_was_computed_from(path: str) -> None:
    x, _, losses = graph()
    with pytest.raises(ValueError, match="`features` are not part of the graph of any"):
        pullback(losses, x.exp().sin(), x, path=path)


@cut_path
def test_features_that_do_not_depend_on_the_inputs(path: str) -> None:
    _, features, losses = graph()
    with pytest.raises(ValueError, match="`features` do not depend on `inputs`"):
        pullback(losses, features, vector(2).requires_grad_(), path=path)


WRONG: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "path calls f": (lambda x, y, z: pullback(z, y, x, path="jvp"), ValueError, "`path` is 'jvp'"),
    "path misspelt": (lambda x, y, z: pullback(z, y, x, path="aut"), ValueError, "mean auto"),
    "features detached": (
        lambda x, y, z: pullback(z, y.detach(), x), ValueError, "`features.*not require grad"
    ),
    "inputs detached": (
        lambda x, y, z: pullback(z, y, x.detach()), ValueError, "`inputs.*not require grad"
    ),
    "one loss": (lambda x, y, z: pullback(z[0], y, x), TypeError, "`losses` is a Tensor"),
    "no loss": (lambda x, y, z: pullback([], y, x), ValueError, "`losses` is empty"),
    "a vector": (lambda x, y, z: pullback([z[0], y], y, x), ValueError, r"loss 2 .*\(4,\)"),
    "a number": (lambda x, y, z: pullback([1.0], y, x), TypeError, "loss 1 returned a float"),
    "complex": (lambda x, y, z: pullback([z[0] * 1j], y, x), TypeError, "loss 1 .*complex"),
    "integer inputs": (
        lambda x, y, z: pullback(z, y, torch.arange(2)), TypeError, "`inputs` has dtype"
    ),
    "features a text": (lambda x, y, z: pullback(z, "y", x), TypeError, "`features` is a str"),
    "parameters": (
        lambda x, y, z: pullback(z, y, x, head_parameters=[None]), ValueError, "1 entries for 3"
    ),
    "frozen parameters": (
        lambda x, y, z: pullback(z[:1], y, x, head_parameters=[{"w": torch.ones(1)}]),
        ValueError,
        "loss 1: w is no tensor that requires grad",
    ),
    "devices": (
        lambda x, y, z: pullback(z, [y, y.to("meta")], x), ValueError, "`features` has .*several"
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_argument_is_named(wrong: str) -> None:
    call, kind, message = WRONG[wrong]
    with pytest.raises(kind, match=message):
        call(*graph())


# Hooks.


@every_path
def test_hooks_of_features_and_inputs_see_each_whole_gradient_once(path: str) -> None:
    """They need not be linear, as one that clips is not."""

    def losses(x: Tensor) -> tuple[Tensor, list[Tensor]]:
        y = (x * 2).sin()
        y.register_hook(lambda gradient: 2 * gradient.clamp(-1, 1))
        return y, [y.sum() + (x**3).sum(), (3 * y**2).sum(), 5 * y.prod()]

    x = vector(4).requires_grad_()
    seen: list[Tensor] = []
    x.register_hook(lambda gradient: seen.append(gradient) or gradient.clamp(-0.5, 0.5))
    y, zs = losses(x)
    expected = separately(zs, [x])
    before = len(seen)
    y, zs = losses(x)
    found = pullback(zs, y, x, path=path, retain_graph=True)
    agree(found, expected)
    assert len(seen) - before == 3
    if path in CUT:
        agree(found.add(zs[1]), [*expected, expected[1]])
    y.sum().backward()  # the hooks are there again
    assert len(seen) - before == (5 if path in CUT else 4)
