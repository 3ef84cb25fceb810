"""Every path gives every dz_i/dx, in the passes it promises, and leaves x as it was."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import explorer
from explorer.engine.gradients import gradients, jacobian
from explorer.engine.linear import chain
from explorer.engine.plan import NAIVE, PATHS
from tests.passes import Count, counting

Heads = list[Callable[..., Tensor]]

every_path = pytest.mark.parametrize("path", PATHS)
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def vector(size: int = 4, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.linspace(0.5, 1.5, size, dtype=dtype)


def square_sum(y: Tensor) -> Tensor:
    return (y * y).sum()


# Against closed forms.


@every_path
@every_dtype
def test_scalar_to_scalar(path: str, dtype: torch.dtype) -> None:
    x = torch.tensor(2.0, dtype=dtype)
    found = gradients(lambda x: x**3, [torch.square, torch.sqrt, torch.exp], x, path=path)
    values = torch.stack(found.values)
    expected = torch.tensor([64.0, math.sqrt(8), math.exp(8)], dtype=dtype)
    torch.testing.assert_close(values, expected)
    expected = torch.tensor([6 * 2.0**5, 1.5 * math.sqrt(2), 12 * math.exp(8)], dtype=dtype)
    torch.testing.assert_close(torch.stack(found.gradients), expected)


@every_path
@pytest.mark.parametrize("rows, columns", [(1, 1), (1, 4), (3, 1), (3, 4), (5, 4)])
def test_linear_map_and_norm(path: str, rows: int, columns: int) -> None:
    matrix = torch.arange(1.0, rows * columns + 1, dtype=torch.float64).reshape(rows, columns)
    x = vector(columns)
    found = gradients(lambda x: matrix @ x, [torch.linalg.vector_norm, torch.sum], x, path=path)
    y = matrix @ x
    torch.testing.assert_close(found.gradients[0], matrix.T @ y / y.norm())
    torch.testing.assert_close(found.gradients[1], matrix.sum(0))


@every_path
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3), (0,)])
def test_elementwise_f_in_any_shape(path: str, shape: tuple[int, ...]) -> None:
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (gradient,) = gradients(torch.sin, [square_sum], x, path=path).gradients
    torch.testing.assert_close(gradient, 2 * x.sin() * x.cos())
    assert gradient.shape == shape and gradient.dtype == x.dtype


@every_path
def test_head_that_uses_x_keeps_its_direct_term(path: str) -> None:
    x = vector()
    heads: Heads = [lambda y, x: (x * y).sum(), lambda y, x: (y * y).sum() + x.prod()]
    found = gradients(torch.sin, heads, x, path=path)
    torch.testing.assert_close(found.gradients[0], x.sin() + x * x.cos())
    torch.testing.assert_close(found.gradients[1], 2 * x.sin() * x.cos() + x.prod() / x)


@every_path
def test_head_of_x_alone_and_of_nothing(path: str) -> None:
    x = vector()
    heads: Heads = [
        lambda y, x: square_sum(x),
        lambda y: torch.tensor(3.0, dtype=torch.float64),
        lambda y: y.detach().sum(),
    ]
    found = gradients(torch.sin, heads, x, path=path)
    torch.testing.assert_close(found.gradients[0], 2 * x)
    assert found.values[1] == 3
    assert not found.gradients[1].any() and not found.gradients[2].any()


@every_path
def test_f_that_leaves_out_a_part_of_x(path: str) -> None:
    x = vector()
    (gradient,) = gradients(lambda x: x[1:3].exp(), [torch.sum], x, path=path).gradients
    torch.testing.assert_close(gradient, torch.cat([x[:1] * 0, x[1:3].exp(), x[:1] * 0]))


@every_path
def test_f_in_another_dtype_than_x(path: str) -> None:
    x = vector(dtype=torch.float32)
    found = gradients(lambda x: x.double().sin(), [square_sum], x, path=path)
    assert found.values[0].dtype == torch.float64
    assert found.gradients[0].dtype == torch.float32
    torch.testing.assert_close(found.gradients[0], (2 * x).sin())


@every_path
def test_steep_head_on_a_flat_f_in_a_wider_dtype_than_x(path: str) -> None:
    x = torch.tensor([1.0, 2.0])
    heads: Heads = [lambda y: (y * 1e40).sum(), lambda y, x: (y * 1e40).sum() + x.sum()]
    found = gradients(lambda x: x.double() * 1e-30, heads, x, path=path)
    for gradient in found.gradients:
        torch.testing.assert_close(gradient, torch.full((2,), 1e10))
    x = torch.ones(1, dtype=torch.float16)
    found = gradients(lambda x: (x.float() * 1e-3).sum(), [lambda y: y * 1e6], x, path=path)
    torch.testing.assert_close(found.gradients[0], torch.full_like(x, 1000.0))


@every_path
def test_infinite_slope_of_a_head_stays_where_it_is(path: str) -> None:
    x = torch.tensor([0.0, 1.0, 4.0], dtype=torch.float64)
    (gradient,) = gradients(lambda x: x * 1.0, [lambda y: y.sqrt().sum()], x, path=path).gradients
    assert gradient.tolist() == [math.inf, 0.5, 0.25]


@pytest.mark.parametrize("y_shape, x_shape", [((), (3,)), ((2,), ()), ((2, 2), (3, 1))])
@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_chain_sums_over_y_and_skips_exact_zeros(
    y_shape: tuple[int, ...], x_shape: tuple[int, ...], bad: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    cotangent = torch.randn(y_shape, generator=generator)
    matrix = torch.randn(y_shape + x_shape, generator=generator, dtype=torch.float64)
    rows = matrix.view(cotangent.numel(), -1)
    expected = (cotangent.reshape(1, -1).double() @ rows).view(x_shape)
    torch.testing.assert_close(chain(cotangent, matrix), expected)
    rows[0] = 0
    cotangent.view(-1)[0] = bad
    expected = (cotangent.reshape(1, -1)[:, 1:].double() @ rows[1:]).view(x_shape)
    torch.testing.assert_close(chain(cotangent, matrix), expected)
    rows[0, 0] = 1
    assert not chain(cotangent, matrix).view(-1)[0].isfinite()


@every_path
def test_float32_is_near_the_same_in_float64(path: str) -> None:
    matrix = torch.randn(6, 6, generator=torch.Generator().manual_seed(1))

    def f(x: Tensor) -> Tensor:
        return torch.tanh(matrix.to(x) @ torch.tanh(matrix.to(x) @ x))

    heads: Heads = [square_sum, lambda y: y.exp().sum(), torch.mean]
    narrow = gradients(f, heads, vector(6, torch.float32), path=path)
    wide = gradients(f, heads, vector(6, torch.float64), path=path)
    for one, other in zip(narrow.gradients, wide.gradients, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-6)


@every_path
@pytest.mark.parametrize(
    "head",
    [
        torch.sum,
        torch.nn.Flatten(0),
        partial(torch.sum, dim=0),
        lambda y, scale=2.0: scale * y.sum(),
        lambda *parts: parts[0].sum(),
    ],
    ids=["builtin", "module", "partial", "default", "starred"],
)
def test_what_takes_only_y_is_given_only_y(path: str, head: Callable[..., Tensor]) -> None:
    def f(x: Tensor) -> Tensor:
        return x.sin().sum()[None]

    x = vector()
    (gradient,) = gradients(f, [head], x, path=path).gradients
    assert torch.equal(gradient / gradient[0], x.cos() / x.cos()[0])


@every_path
def test_head_that_takes_x_by_name_only_is_given_it_so(path: str) -> None:
    def head(y: Tensor, *, x: Tensor, power: int = 1) -> Tensor:
        return (y * x**power).sum()

    x = vector()
    (gradient,) = gradients(torch.sin, [head], x, path=path).gradients
    torch.testing.assert_close(gradient, x.sin() + x * x.cos())


@every_path
def test_heads_may_be_a_module_list(path: str) -> None:
    heads = torch.nn.ModuleList([torch.nn.Flatten(0), torch.nn.Identity()])
    found = gradients(lambda x: x.sum()[None], heads, vector(), path=path)
    assert [gradient.tolist() for gradient in found.gradients] == [[1.0] * 4] * 2


@every_path
def test_module_whose_forward_takes_two_is_given_x(path: str) -> None:
    class Weighted(torch.nn.Module):
        def forward(self, y: Tensor, x: Tensor) -> Tensor:
            return (y * x).sum()

    x = vector()
    (gradient,) = gradients(torch.sin, [Weighted()], x, path=path).gradients
    torch.testing.assert_close(gradient, x.sin() + x * x.cos())


# All paths are the naive one, whatever f, the heads, the shapes and the dtype are.

STEPS: dict[str, Callable[[Tensor], Tensor]] = {
    "sin": torch.sin,
    "tanh": torch.tanh,
    "square": lambda y: y * y / 4,
    "shift": lambda y: 0.5 * y + 1,
    "sum": lambda y: y.sum(),
    "mix": lambda y: y.flatten().cos().cumsum(0),
    "outer": lambda y: torch.outer(y.flatten()[:4], y.flatten()[:3].sin()),
    "part": lambda y: y.flatten()[:2],
    "column": lambda y: y.reshape(-1, 1),
    "expand": lambda y: y.sum().expand(2, 1, 2),
    "transpose": lambda y: y.mT if y.ndim > 1 else y,
}
HEADS: dict[str, Callable[..., Tensor]] = {
    "square": square_sum,
    "mean": torch.mean,
    "exp": lambda y: y.tanh().exp().sum(),
    "logsumexp": lambda y: y.flatten().logsumexp(0),
    "one number in a box": lambda y: y.sum().reshape(1, 1),
    "direct": lambda y, x: y.sum() * x.sin().sum(),
    "x alone": lambda y, x: x.cos().sum(),
    "constant": lambda y: torch.ones(()),
}
shapes = st.lists(st.integers(1, 3), max_size=3).map(tuple)
dtypes = st.sampled_from([torch.float32, torch.float64])


@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=0, max_size=4),
    heads=st.lists(st.sampled_from(sorted(HEADS)), min_size=1, max_size=4),
    shape=shapes,
    dtype=dtypes,
    seed=st.integers(0, 1000),
)
def test_every_path_equals_the_naive_one(
    steps: list[str], heads: list[str], shape: tuple[int, ...], dtype: torch.dtype, seed: int
) -> None:
    def f(x: Tensor) -> Tensor:
        for step in steps:
            x = STEPS[step](x)
        return x

    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    gs = [HEADS[head] for head in heads]
    leaf = x.clone().requires_grad_()
    for path in PATHS:
        inner, count = counting(f)
        found = gradients(inner, gs, x, path=path)
        assert_counted(found, count)
        for head, value, gradient in zip(gs, found.values, found.gradients, strict=True):
            y = torch.sin(f(leaf))
            z = head(y, leaf) if head in (HEADS["direct"], HEADS["x alone"]) else head(y)
            expected = (
                torch.autograd.grad(z.sum(), leaf, allow_unused=True, materialize_grads=True)[0]
                if z.requires_grad
                else torch.zeros_like(leaf)
            )
            tolerance = 1e-4 if dtype == torch.float32 else 1e-11
            torch.testing.assert_close(gradient, expected, rtol=tolerance, atol=tolerance)
            assert value.shape == ()
            torch.testing.assert_close(value, z.detach().reshape(()))


# Passes.


def assert_counted(found: explorer.Gradients, count: Count) -> None:
    """The engine's counts are those of the gate inside f."""
    passes = found.passes
    assert count.forward == passes.forward + passes.forward_mode
    assert count.forward_mode == passes.forward_mode
    batches = 1 if found.plan.path == "batched_vjp" and passes.backward else None
    assert count.backward == (batches or passes.backward)


@pytest.mark.parametrize("heads", [1, 2, 5])
@pytest.mark.parametrize("outputs", [None, 1, 3, 7])
@every_path
def test_passes_through_f(path: str, outputs: int | None, heads: int) -> None:
    inner, count = counting(lambda x: x.sum() if outputs is None else x[:outputs])
    gs = [lambda y, k=k: (y**k).sum() for k in range(1, heads + 1)]
    found = gradients(inner, gs, vector(8), path=path)
    # The cotangents k·yᵏ⁻¹ are independent at the distinct entries of y.
    fewest = min(heads, outputs or 1)
    expected = {
        "recompute": (heads, heads, 0),
        "retain_graph": (1, heads, 0),
        "reuse": (1, outputs or 1, 0),
        "batched_vjp": (1, heads, 0),
        "low_rank_vjp": (1, fewest, 0),
        "jvp": (0, 0, 8),
        "auto": (1, fewest, 0),
        "torchjd": (1, heads, 0),
    }[path]
    passes = found.passes
    assert (passes.forward, passes.backward, passes.forward_mode) == expected
    assert_counted(found, count)


@pytest.mark.parametrize("path", NAIVE)
def test_head_that_ignores_y_sends_nothing_back(path: str) -> None:
    inner, count = counting(torch.exp)
    heads: Heads = [torch.sum, lambda y: torch.ones(()), lambda y, x: x.sum()]
    passes = gradients(inner, heads, vector(), path=path).passes
    assert passes.backward == count.backward == 1


@every_path
def test_passes_of_an_f_that_returns_x_itself(path: str) -> None:
    heads: Heads = [torch.sum, square_sum, lambda y, x: (y * x).sum()]
    found = gradients(lambda x: x, heads, vector(), path=path)
    # Two of the three cotangents 1, 2y and x are the same direction, since y is x.
    backward = {"reuse": 4, "jvp": 0, "low_rank_vjp": 2, "auto": 2}.get(path, 3)
    forward = {"recompute": 3, "jvp": 0}.get(path, 1)
    assert (found.passes.forward, found.passes.backward) == (forward, backward)
    torch.testing.assert_close(found.gradients[2], 2 * vector())


def test_passes_of_an_f_that_returns_one_tensor_again_and_again() -> None:
    x = torch.tensor(1.0)
    kept: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        if not kept:
            kept.append(x + 1)  # saves nothing, so that its backward can run twice
        return kept[0]

    assert gradients(f, [torch.sin, torch.cos], x, path="recompute").passes.backward == 2


def test_what_forms_the_jacobian() -> None:
    x = vector(3)
    found = {path: gradients(torch.exp, [torch.sum], x, path=path) for path in PATHS}
    formed = [path for path in PATHS if found[path].jacobian is not None]
    assert formed == ["reuse", "jvp"]
    for path in formed:
        torch.testing.assert_close(found[path].jacobian, torch.diag(x.exp()))


@pytest.mark.parametrize("x_shape", [(), (3,), (2, 2)])
@pytest.mark.parametrize("y_shape", [(), (2,), (3, 2)])
def test_jacobian_is_the_one_of_torch(x_shape: tuple[int, ...], y_shape: tuple[int, ...]) -> None:
    def f(x: Tensor) -> Tensor:
        return torch.outer(weights, x.flatten().sin()).sum(1).reshape(y_shape) * x.sum()

    generator = torch.Generator().manual_seed(2)
    weights = torch.randn(math.prod(y_shape), generator=generator, dtype=torch.float64)
    x = torch.randn(x_shape, generator=generator, dtype=torch.float64)
    reference: Callable[..., Tensor] = torch.autograd.functional.jacobian
    expected = reference(f, x)
    found = jacobian(f, x)
    assert found.shape == y_shape + x_shape
    torch.testing.assert_close(found, expected)


def test_jacobian_names_what_it_cannot_take() -> None:
    with pytest.raises(TypeError, match=r"`f` returned several tensors\."):
        jacobian(lambda x: (x, x), vector())  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match=r"`f` returned a complex tensor\."):
        jacobian(lambda x: x * 1j, vector())
    with pytest.raises(TypeError, match=r"`x` is a dict\."):
        jacobian(torch.sin, {"a": vector()})  # type: ignore[arg-type]


def test_jacobian_under_another_default_device() -> None:
    x = vector()
    with torch.device("meta"):
        found = jacobian(torch.sin, x)
    torch.testing.assert_close(found, vector().cos().diag())


# x and its surroundings.


@every_path
def test_x_is_left_as_it_was(path: str) -> None:
    x = vector().requires_grad_()
    x.grad = torch.full_like(x, 7.0)
    seen: list[Tensor] = []
    torch.autograd.graph.register_multi_grad_hook([x], seen.append, mode="any")
    before = x.detach().clone()
    heads: Heads = [torch.sum, lambda y, x: (x * y).sum()]
    gradients(torch.sin, heads, x, path=path)
    assert x.requires_grad and x.is_leaf and torch.equal(x, before)
    assert torch.equal(x.grad, torch.full_like(x, 7.0)) and not seen


@every_path
def test_x_is_left_as_it_was_by_an_f_that_changes_its_own(path: str) -> None:
    x = vector()
    again = pytest.warns(UserWarning, match="gave another y") if path == "jvp" else nullcontext()
    with again:
        gradients(lambda x: x.data.mul_(2).sum() * x.sum(), [torch.sum], x, path=path)
    assert torch.equal(x, vector())


def double_x(y: Tensor, x: Tensor) -> Tensor:
    with torch.no_grad():
        x.mul_(2)
    return y.sum()


IN_PLACE: dict[str, tuple[Callable[..., Tensor], str]] = {
    "y": (lambda y: y.mul_(2).sum(), "y"),
    "a part of y": (lambda y: y[:1].zero_().sum() + y.sum(), "y"),
    "y without grad": (lambda y: y.detach().mul_(2).sum() + y.sum(), "y"),
    "x": (lambda y, x: x.mul_(2).sum() * y.sum(), "x"),
    "x without grad": (double_x, "x"),
}
SHARED: dict[str, Callable[[Tensor], Tensor]] = {
    "a new y": lambda x: x**2,
    "y that f needs for its backward": torch.exp,
    "x itself": lambda x: x,
    "y one of many views": lambda x: x.chunk(2)[0],
    "y expanded": lambda x: x.sum().expand(3),
}


@every_path
@pytest.mark.parametrize("f", SHARED)
@pytest.mark.parametrize("what", IN_PLACE)
def test_head_that_changes_what_the_heads_share_is_named(path: str, f: str, what: str) -> None:
    head, changed = IN_PLACE[what]
    expected = rf"head 2 \(`\S+`\) changes `{changed}` in place.* copy, {changed}\.clone\(\)\.$"
    x = vector()
    with pytest.raises(ValueError, match=expected):
        gradients(SHARED[f], [torch.sum, head, torch.sum], x, path=path)
    assert torch.equal(x, vector())


@every_path
@pytest.mark.parametrize("outputs", [None, 3])
def test_head_that_changes_a_copy_is_like_any_other(path: str, outputs: int | None) -> None:
    inner, count = counting(lambda x: x.sum() if outputs is None else x[:outputs])
    heads: Heads = [lambda y: y.clone().mul_(2).sum(), lambda y: 2 * y.sum()]
    found = gradients(inner, heads, vector(), path=path)
    assert torch.equal(*found.gradients)
    assert_counted(found, count)


@every_path
@pytest.mark.parametrize("requires_grad", [False, True])
def test_nothing_returned_requires_grad(path: str, requires_grad: bool) -> None:
    x = vector().requires_grad_(requires_grad) * 1.0  # with a graph behind it, or none
    heads: Heads = [torch.sum, lambda y, x: (x * y).sum()]
    found = gradients(torch.sin, heads, x, path=path)
    tensors = (*found.values, *found.gradients, found.jacobian)
    assert not any(each.requires_grad for each in tensors if each is not None)
    assert x.requires_grad == requires_grad


@every_path
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_works_where_gradients_are_off(path: str, mode: Callable[[], Any]) -> None:
    with mode():
        x = vector()
        (gradient,) = gradients(torch.sin, [torch.sum], x, path=path).gradients
        assert not torch.is_grad_enabled()
    torch.testing.assert_close(gradient, vector().cos())


@every_path
def test_weights_of_f_get_no_gradient(path: str) -> None:
    layer = torch.nn.Linear(4, 3, dtype=torch.float64)
    gradients(layer, [torch.sum, square_sum], vector(), path=path)
    assert all(weight.grad is None for weight in layer.parameters())


@every_path
def test_heads_may_come_from_a_generator(path: str) -> None:
    found = gradients(torch.sin, (g for g in (torch.sum, torch.mean)), vector(), path=path)
    assert len(found.gradients) == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@every_path
@every_dtype
def test_on_a_gpu(path: str, dtype: torch.dtype) -> None:
    x = vector(dtype=dtype).cuda()
    found = gradients(torch.sin, [square_sum, lambda y, x: (x * y).sum()], x, path=path)
    assert all(gradient.device == x.device for gradient in found.gradients)
    torch.testing.assert_close(found.gradients[0], (2 * x).sin())
    torch.testing.assert_close(found.gradients[1], x.sin() + x * x.cos())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@every_path
def test_x_on_the_cpu_and_f_on_a_gpu(path: str) -> None:
    x = vector()
    (gradient,) = gradients(lambda x: x.cuda().sin(), [square_sum], x, path=path).gradients
    torch.testing.assert_close(gradient, (2 * x).sin())


def test_default_path_is_auto() -> None:
    assert explorer.gradients(torch.exp, [torch.sum], vector(3)).passes.backward == 1


# What is refused, and in which words.


def double_with_weights(x: Tensor) -> Tensor:
    return x.detach() * torch.ones(4, dtype=torch.float64, requires_grad=True)


def doubling(x: Tensor) -> Tensor:
    return x.mul_(2).sin()


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "detached y": ({"f": lambda x: x.detach()}, ValueError, "`f` .*cut off from `x`"),
    "y no tensor": ({"f": lambda x: x.sum().item()}, TypeError, "`f` returned a float"),
    "y a tuple of nothing": ({"f": lambda x: (1.0, "a")}, TypeError, "`f` returned a tuple"),
    "y None": ({"f": lambda x: None}, TypeError, "`f` returned a NoneType"),
    "y NaN": ({"f": lambda x: (x - 1).sqrt()}, ValueError, "`f` returned NaN in 2 of 4 entries"),
    "y integer": ({"f": lambda x: x.long()}, TypeError, "`f` .*int64"),
    "x integer": ({"x": torch.arange(3)}, TypeError, "`x` has dtype torch.int64"),
    "x no tensor": ({"x": 2.0}, TypeError, "`x` is a float"),
    "z a vector": ({"heads": [torch.sum, torch.sin]}, ValueError, r"head 2 \(`sin`\).*\(4,\)"),
    "z no tensor": ({"heads": [lambda y: 1.0]}, TypeError, "head 1 .*returned a float"),
    "z complex": ({"heads": [lambda y: y.sum() * 1j]}, TypeError, "head 1 .*complex128"),
    "no heads": ({"heads": []}, ValueError, "`heads` is empty"),
    "one head": ({"heads": torch.sum}, TypeError, "`heads` is a .*Give a list"),
    "one head of layers": (
        {"heads": torch.nn.Sequential(torch.nn.Flatten(0), torch.nn.Flatten(0))},
        TypeError,
        r"`heads` is a Sequential. Give a list, such as \[g\]",
    ),
    "heads by name": ({"heads": {"sum": torch.sum}}, TypeError, "`heads` is a dict. Give a list"),
    "heads a text": ({"heads": "sum"}, TypeError, "`heads` is a str. Give a list"),
    "head a number": ({"heads": [torch.sum, 3]}, TypeError, r"head 2 is 3, .*g\(y\) or g\(y, x\)"),
    "f a number": ({"f": 3}, TypeError, "`f` is 3, which cannot be called. Give a function"),
    "f changes x": ({"f": doubling}, ValueError, r"`f` changes `x` in place.* x\.clone\(\)"),
    "path misspelt": ({"path": "reues"}, ValueError, "`path` .*Did you mean reuse.*retain_graph"),
    "path unknown": ({"path": "zzz"}, ValueError, "`path` is 'zzz'. Allowed: recompute"),
    "path a list": ({"path": ["reuse"]}, ValueError, "`path` .*Allowed"),
}


@every_path
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_argument_is_named(path: str, wrong: str) -> None:
    arguments, kind, message = WRONG[wrong]
    given: dict[str, Any] = {
        "f": torch.sin,
        "heads": [torch.sum],
        "x": vector(),
        "path": path,
    } | arguments
    with pytest.raises(kind, match=f"(?s){message}"):
        gradients(given["f"], given["heads"], given["x"], path=given["path"])


@every_path
def test_f_without_a_graph_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"`f` .*cut off from `x`"):
        gradients(torch.no_grad()(torch.sin), [torch.sum], vector(), path=path)


@every_path
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_f_puts_under_no_grad_is_a_constant(path: str, create_graph: bool) -> None:
    def f(x: Tensor) -> Tensor:
        with torch.no_grad():
            largest = x.exp().amax()
            with torch.enable_grad():
                inner = x.square()
        return x.exp() / largest + inner

    if path == "torchjd" and create_graph:
        return
    x = vector()
    found = gradients(f, [torch.sum], x, path=path, create_graph=create_graph)
    torch.testing.assert_close(found.gradients[0], x.exp() / x.exp().amax() + 2 * x)


@pytest.mark.parametrize("path", [path for path in PATHS if path != "torchjd"])  # gives zeros
def test_f_with_a_graph_that_leads_to_its_weights_alone_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"`f` .*cut off from `x`"):
        gradients(double_with_weights, [torch.sum], vector(), path=path)


class Unplanned(Exception):
    pass


@every_path
@pytest.mark.parametrize("where", ["f", "head"])
def test_what_f_or_a_head_raises_is_passed_on(path: str, where: str) -> None:
    error = Unplanned("from within")

    def fail(y: Tensor) -> Tensor:
        raise error

    f, head = (fail, torch.sum) if where == "f" else (torch.sin, fail)
    with pytest.raises(Unplanned) as caught:
        gradients(f, [head], vector(), path=path)
    assert caught.value is error


def test_results_can_be_compared_and_be_keys() -> None:
    one, other = (gradients(torch.sin, [torch.sum], vector()) for _ in range(2))
    assert one != other and one == one and len({one, other}) == 2


def test_each_result_counts_the_passes_of_its_own_heads() -> None:
    result = gradients(torch.sin, [lambda y: y[0]], vector())
    first, second = result.add(lambda y: y[1]), result.add(lambda y: y[2])
    assert first.passes == second.passes == explorer.Passes(forward=1, backward=2)
    assert second.add(lambda y: y[3]).passes.backward == 3


def test_a_result_says_what_it_is() -> None:
    found = gradients(torch.sin, [torch.sum], vector(), path="reuse")
    assert found.passes == explorer.Passes(forward=1, backward=4, forward_mode=0)
    assert isinstance(found, explorer.Gradients)
