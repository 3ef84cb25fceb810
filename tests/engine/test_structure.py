"""x, y and the heads in any structure: what comes back has x's own."""

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import functional_call

from explorer.engine.gradients import gradients, pullback
from explorer.engine.plan import PATHS
from explorer.engine.structure import Inputs, Layout

every_path = pytest.mark.parametrize("path", PATHS)
DOUBLE = torch.float64


def vector(size: int = 3, seed: int = 0, dtype: torch.dtype = DOUBLE) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def network(dtype: torch.dtype = DOUBLE) -> torch.nn.Sequential:
    torch.manual_seed(3)
    layers = [torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)]
    return torch.nn.Sequential(*layers).to(dtype)


# x.


@every_path
def test_x_is_a_tuple(path: str) -> None:
    a, b = vector(3), vector(3, 1)
    found = gradients(lambda x: x[0] * x[1].sin(), [torch.sum], (a, b), path=path)
    assert isinstance(found.gradients[0], tuple)
    torch.testing.assert_close(found.gradients[0], (b.sin(), a * b.cos()))


@every_path
def test_x_is_nested(path: str) -> None:
    x = {"a": [vector(2), (vector(1, 1),)], "b": torch.tensor(0.5, dtype=DOUBLE)}

    def f(x: dict[str, Any]) -> Tensor:
        return x["a"][0] * x["b"] + x["a"][1][0]

    heads: list[Callable[..., Tensor]] = [torch.sum, lambda y, x: (y * x["b"]).sum()]
    found = gradients(f, heads, x, path=path)
    first, one, b = x["a"][0], x["a"][1][0], x["b"]  # type: ignore[index]
    two = torch.full((1,), 2.0, dtype=DOUBLE)
    expected = {"a": [b.expand(2), (two,)], "b": first.sum()}
    torch.testing.assert_close(found.gradients[0], expected)
    expected = {"a": [b.square().expand(2), (two * b,)], "b": (2 * first * b + one).sum()}
    torch.testing.assert_close(found.gradients[1], expected)


@every_path
def test_x_is_a_named_tuple_or_ordered(path: str) -> None:
    Point = namedtuple("Point", "u v")
    found = gradients(lambda x: x.u * x.v, [torch.sum], Point(vector(), vector(3, 1)), path=path)
    assert type(found.gradients[0]) is Point
    torch.testing.assert_close(found.gradients[0].u, vector(3, 1))
    x = OrderedDict(z=vector(), a=vector(3, 1))
    (gradient,) = gradients(lambda x: x["z"] * x["a"], [torch.sum], x, path=path).gradients
    assert list(gradient) == ["z", "a"]
    torch.testing.assert_close(gradient["z"], vector(3, 1))
    torch.testing.assert_close(gradient["a"], vector())


@every_path
def test_x_is_a_module_or_the_dict_of_its_parameters(path: str) -> None:
    net, batch = network(), torch.ones(5, 3, dtype=DOUBLE)
    heads: list[Callable[..., Tensor]] = [lambda y: y.square().mean(), lambda y: y[:, 0].sum()]
    whole = gradients(lambda net: net(batch), heads, net, path=path)
    named = dict(net.named_parameters())
    apart = gradients(lambda x: functional_call(net, x, (batch,)), heads, named, path=path)
    for head, one, other in zip(heads, whole.gradients, apart.gradients, strict=True):
        expected = torch.autograd.grad(head(net(batch)), list(net.parameters()))
        assert list(one) == list(named)
        for name, each in zip(named, expected, strict=True):
            torch.testing.assert_close(one[name], each)
            torch.testing.assert_close(other[name], each)
    assert all(each.grad is None for each in net.parameters())
    assert all(isinstance(each, torch.nn.Parameter) for each in net.parameters())


@every_path
def test_head_is_given_the_module_that_x_is(path: str) -> None:
    net = torch.nn.Linear(3, 2, dtype=DOUBLE)
    heads: list[Callable[..., Tensor]] = [
        lambda y, net: y.sum() + net.weight.square().sum(),
        lambda y, net: net.bias.prod() * 1.0,
    ]
    found = gradients(lambda net: net(vector()), heads, net, path=path)
    weight, bias = net.weight.detach(), net.bias.detach()
    torch.testing.assert_close(found.gradients[0]["weight"], vector().expand(2, 3) + 2 * weight)
    torch.testing.assert_close(found.gradients[1]["bias"], bias.flip(0))
    assert not found.gradients[1]["weight"].any()


@every_path
def test_frozen_parameters_are_left_out(path: str) -> None:
    net = network()
    net[0].weight.requires_grad_(False)
    (gradient,) = gradients(lambda net: net(vector()), [torch.sum], net, path=path).gradients
    assert sorted(gradient) == ["0.bias", "2.bias", "2.weight"]
    torch.testing.assert_close(gradient["2.bias"], torch.ones(2, dtype=DOUBLE))


@every_path
def test_tied_weights_have_one_gradient_of_both_uses(path: str) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
    net.to(DOUBLE)
    net[1].weight = net[0].weight
    x = vector(2)
    (gradient,) = gradients(lambda net: net(x), [torch.sum], net, path=path).gradients
    assert list(gradient) == ["0.weight"]
    weight = net[0].weight.detach()
    expected = torch.outer(torch.ones(2, dtype=DOUBLE), weight @ x) + torch.outer(weight.sum(0), x)
    torch.testing.assert_close(gradient["0.weight"], expected)


@every_path
def test_unused_tensors_of_x_get_zeros(path: str) -> None:
    x = {"used": vector(), "unused": vector(2).to(torch.float32)}
    heads: list[Callable[..., Tensor]] = [torch.sum, torch.prod]
    found = gradients(lambda x: x["used"].exp(), heads, x, path=path)
    for gradient in found.gradients:
        assert torch.equal(gradient["unused"], torch.zeros(2))
        assert gradient["used"].all()


@every_path
def test_each_tensor_of_x_keeps_its_dtype(path: str) -> None:
    x = (vector(2), vector(2, 1, torch.float32), vector(2, 2, torch.bfloat16))
    found = gradients(lambda x: x[0] * x[1] * x[2], [torch.sum], x, path=path)
    a, b, c = (each.double() for each in x)
    expected = (b * c, (a * c).float(), (a * b).bfloat16())
    torch.testing.assert_close(found.gradients[0], expected)


@every_path
def test_complex_x_and_y(path: str) -> None:
    """torch's convention: the gradient of a real z by x = u + iv is ∂z/∂u + i·∂z/∂v."""
    matrix = torch.randn(2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.complex128)
    x = vector(3, 0, torch.complex128)
    heads: list[Callable[..., Tensor]] = [
        lambda y: y.abs().square().sum(),
        lambda y: y.real.sum(),
        lambda y, x: (y[0] * x.sum()).imag,
    ]
    found = gradients(lambda x: matrix @ x, heads, x, path=path)
    torch.testing.assert_close(found.gradients[0], 2 * matrix.mH @ (matrix @ x))
    torch.testing.assert_close(found.gradients[1], matrix.conj().sum(0))
    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(((matrix @ leaf)[0] * leaf.sum()).imag, leaf)
    torch.testing.assert_close(found.gradients[2], expected)
    assert found.plan.sizes.outputs == 4 and found.plan.sizes.inputs == 6


@every_path
def test_complex_y_of_a_real_x(path: str) -> None:
    x = vector(4)
    found = gradients(torch.fft.rfft, [lambda y: y.abs().square().sum()], x, path=path)
    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(torch.fft.rfft(leaf).abs().square().sum(), leaf)
    torch.testing.assert_close(found.gradients[0], expected)
    assert found.gradients[0].dtype == DOUBLE and found.jacobian is None


@every_path
def test_complex_y_with_a_conjugate_view(path: str) -> None:
    """A conjugate is lazy in torch, and cannot be viewed as two real numbers as it is."""
    x = vector(2, 0, torch.complex128)
    found = gradients(lambda x: x.conj(), [lambda y: (y * y).real.sum()], x, path=path)
    torch.testing.assert_close(found.gradients[0].resolve_conj(), 2 * x.conj().resolve_conj())


# y.


@every_path
def test_y_is_several_tensors(path: str) -> None:
    x = vector()
    heads: list[Callable[..., Tensor]] = [
        lambda y: y["sin"].sum(),
        lambda y: (y["both"][0] * y["both"][1]).sum(),
        lambda y, x: (y["sin"] * x).sum() + y["both"][1].sum(),
    ]

    def f(x: Tensor) -> dict[str, Any]:
        return {"sin": x.sin(), "both": (x.exp(), x.square())}

    found = gradients(f, heads, x, path=path)
    torch.testing.assert_close(found.gradients[0], x.cos())
    torch.testing.assert_close(found.gradients[1], x.exp() * (x * x + 2 * x))
    torch.testing.assert_close(found.gradients[2], x.sin() + x * x.cos() + 2 * x)
    assert found.plan.sizes.outputs == 9 and found.jacobian is None


@every_path
def test_y_holds_what_has_no_gradient(path: str) -> None:
    """A mask, a constant and a text go to the heads as they are."""
    constant = vector(3, 5)
    seen: list[Any] = []

    def head(y: Any) -> Tensor:
        values, (mask, kept), text = y
        seen.append((mask.dtype, torch.equal(kept, constant), text))
        return (values * mask * kept).sum()

    x = torch.tensor([-1.0, 2.0, 3.0], dtype=DOUBLE)
    f = lambda x: (x.square(), ((x > 0).long(), constant), "text")  # noqa: E731
    found = gradients(f, [head], x, path=path)
    expected = 2 * x * torch.tensor([0.0, 1.0, 1.0], dtype=DOUBLE) * constant
    torch.testing.assert_close(found.gradients[0], expected)
    assert seen == [(torch.int64, True, "text")]


@every_path
def test_y_has_several_dtypes(path: str) -> None:
    x = vector(2)
    found = gradients(
        lambda x: (x.float().sin(), x.square(), torch.complex(x, -x)),
        [lambda y: y[0].sum() + y[1].sum() + y[2].imag.sum(), lambda y: y[0].double().prod()],
        x,
        path=path,
    )
    expected = x.cos() + 2 * x - 1
    torch.testing.assert_close(found.gradients[0], expected, rtol=1e-6, atol=1e-6)
    expected = x.cos() * x.sin().flip(0)
    torch.testing.assert_close(found.gradients[1], expected, rtol=1e-6, atol=1e-6)


@every_path
def test_y_holds_x_itself_or_one_tensor_twice(path: str) -> None:
    x = vector()

    def f(x: Tensor) -> tuple[Tensor, ...]:
        y = x.sin()
        return y, x, y

    heads: list[Callable[..., Tensor]] = [lambda y: (y[0] * y[1] * y[2]).sum()]
    found = gradients(f, heads, x, path=path)
    torch.testing.assert_close(found.gradients[0], x.sin() ** 2 + x * (2 * x).sin())


@every_path
def test_head_that_uses_one_tensor_of_y_only(path: str) -> None:
    found = gradients(lambda x: (x.sin(), x.exp()), [lambda y: y[1].sum()], vector(), path=path)
    torch.testing.assert_close(found.gradients[0], vector().exp())


# pullback's inputs.


def test_parameters_from_a_generator() -> None:
    net = network()
    features = net(torch.ones(5, 3, dtype=DOUBLE))
    losses = [features.square().mean(), features.sum()]
    expected = [torch.autograd.grad(z, list(net.parameters()), retain_graph=True) for z in losses]
    found = pullback(losses, features, net.parameters())
    for one, other in zip(found.gradients, expected, strict=True):
        assert isinstance(one, list)
        torch.testing.assert_close(tuple(one), other)


@every_path
def test_x_from_a_generator_goes_to_f_as_a_list(path: str) -> None:
    x = (vector(2, seed) for seed in range(2))
    (gradient,) = gradients(lambda x: x[0] * x[1], [torch.sum], x, path=path).gradients
    torch.testing.assert_close(gradient, [vector(2, 1), vector(2, 0)])


# What is refused, and what it is called.

WRONG_X: dict[str, tuple[Any, type[Exception], str]] = {
    "an integer tensor": ({"a": [torch.arange(3)]}, TypeError, r"`x\['a'\]\[0\]` has dtype torch"),
    "a number": ({"a": [2.0, torch.ones(2)]}, TypeError, r"`x\['a'\]\[0\]` is a float"),
    "a text": ((torch.ones(2), "text"), TypeError, r"`x\[1\]` is a str"),
    "a bool tensor": ([torch.ones(2) > 0], TypeError, r"`x\[0\]` has dtype torch.bool"),
    "nothing": ({}, ValueError, "`x` holds no tensor"),
    "None": (None, ValueError, "`x` holds no tensor"),
    "an empty list": ([[], ()], ValueError, "`x` holds no tensor"),
    "a frozen module": (
        torch.nn.Linear(2, 2).requires_grad_(False),
        ValueError,
        "`x` holds no parameter that requires grad",
    ),
    "two devices": (
        {"a": torch.ones(2), "b": torch.ones(2, device="meta")},
        ValueError,
        r"`x` has tensors on several devices \(cpu, meta\).*\.to\(device\)",
    ),
}


@pytest.mark.parametrize("wrong", WRONG_X)
def test_wrong_part_of_x_is_named(wrong: str) -> None:
    x, kind, message = WRONG_X[wrong]
    with pytest.raises(kind, match=message):
        gradients(lambda x: torch.ones(2, requires_grad=True) * 2, [torch.sum], x)


@every_path
def test_y_on_several_devices_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"`y` has tensors on several devices \(cpu, meta\)"):
        gradients(lambda x: (x * 2, x.to("meta")), [lambda y: y[0].sum()], vector(), path=path)


@every_path
def test_nan_in_any_tensor_of_y_is_refused(path: str) -> None:
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2, (x - x.max()).sqrt()

    with pytest.raises(ValueError, match="`f` returned NaN in 2 of 3 entries"):
        gradients(f, [lambda y: y[0].sum()], vector(), path=path)


@every_path
def test_in_place_change_of_one_tensor_of_x_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="`f` changes `x` in place"):
        gradients(lambda x: x["a"] + x["b"].mul_(2), [torch.sum],
                  {"a": vector(), "b": vector()}, path=path)  # fmt: skip


@every_path
def test_head_that_changes_one_tensor_of_y_in_place_is_named(path: str) -> None:
    def head(y: tuple[Tensor, Tensor]) -> Tensor:
        return y[1].mul_(2).sum()

    with pytest.raises(ValueError, match=r"head 2 \(`head`\) changes `y` in place"):
        gradients(lambda x: (x.sin(), x.cos()), [lambda y: y[0].sum(), head], vector(), path=path)


def test_head_parameters_that_do_not_fit_are_named() -> None:
    f, x = torch.sin, vector()
    weight = vector().requires_grad_()
    heads = [torch.sum, lambda y: (y * weight).sum()]
    with pytest.raises(ValueError, match="has 1 entries for 2 heads"):
        gradients(f, heads, x, head_parameters=[None])
    with pytest.raises(ValueError, match=r"of head 2 .*: w is no tensor that requires grad"):
        gradients(f, heads, x, head_parameters=[None, {"w": vector()}])
    with pytest.raises(TypeError, match=r"`head_parameters` of head 2 .* is a list"):
        gradients(f, heads, x, head_parameters=[None, [weight]])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="`head_parameters` is a dict"):
        gradients(f, heads, x, head_parameters={"w": weight})  # type: ignore[arg-type]


@every_path
def test_head_parameters(path: str) -> None:
    weight = vector(3, 1).requires_grad_()
    module = torch.nn.Sequential(torch.nn.Linear(3, 1, dtype=DOUBLE), torch.nn.Flatten(0))
    heads: list[Callable[..., Tensor]] = [
        lambda y: (y * weight).sum(),
        lambda y, x: (x * weight).prod(),  # y plays no part in it
        module,
        torch.sum,
    ]
    x = vector()
    found = gradients(
        torch.sin, heads, x, path=path, head_parameters=[{"w": weight}, {"w": weight}, None, None]
    )
    torch.testing.assert_close(found.head_gradients[0], {"w": x.sin()})
    whole = (x * weight.detach()).prod()
    torch.testing.assert_close(found.head_gradients[1], {"w": whole / weight.detach()})
    expected = {"0.weight": x.sin()[None], "0.bias": torch.ones(1, dtype=DOUBLE)}
    torch.testing.assert_close(found.head_gradients[2], expected)
    assert found.head_gradients[3] == {}
    assert weight.grad is None
    torch.testing.assert_close(found.gradients[0], weight.detach() * x.cos())


@every_path
def test_head_parameters_that_a_head_leaves_out_get_zeros(path: str) -> None:
    weight, unused = vector(3, 1).requires_grad_(), vector(2).requires_grad_()
    heads: list[Callable[..., Tensor]] = [lambda y: (y * weight).sum(), lambda y: y.detach().sum()]
    parameters = {"w": weight, "u": unused}
    found = gradients(torch.sin, heads, vector(), path=path, head_parameters=[parameters] * 2)
    assert torch.equal(found.head_gradients[0]["u"], torch.zeros(2, dtype=DOUBLE))
    assert torch.equal(found.head_gradients[1]["w"], torch.zeros(3, dtype=DOUBLE))


# Layout.

kinds = st.sampled_from(
    [torch.float16, torch.bfloat16, torch.float32, DOUBLE, torch.complex64, torch.complex128]
)
sizes = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(sizes, kinds), min_size=1, max_size=4), st.integers(1, 3))
def test_layout_is_undone(parts: list[tuple[tuple[int, ...], torch.dtype]], count: int) -> None:
    generator = torch.Generator().manual_seed(0)
    many = [
        [torch.randn(shape, generator=generator, dtype=DOUBLE).to(dtype) for shape, dtype in parts]
        for _ in range(count)
    ]
    layout = Layout(many[0])
    rows = layout.rows(many)
    entries = sum(each.numel() * (2 if each.is_complex() else 1) for each in many[0])
    assert rows.shape == (count, entries) == (count, layout.size)
    assert rows.dtype == layout.dtype and rows.dtype in (torch.float32, DOUBLE)
    for row, tensors in zip(rows, many, strict=True):
        torch.testing.assert_close(layout.tensors(row), tensors, rtol=0, atol=0)
    together = layout.tensors(rows)
    for index, each in enumerate(together):
        expected = torch.stack([tensors[index] for tensors in many])
        torch.testing.assert_close(each, expected, rtol=0, atol=0)


def test_layout_of_what_is_missing_is_zeros() -> None:
    layout = Layout([torch.ones(2), torch.ones(1, dtype=torch.complex64)])
    assert layout.rows([[None, torch.tensor([1 + 2j])]]).tolist() == [[0, 0, 1, 2]]
    assert layout.rows([]).shape == (0, 4)


def test_inputs_are_built_as_they_were() -> None:
    x = {"b": (vector(), [vector(2)]), "a": vector(1)}
    inputs = Inputs.of(x, "x")
    assert [len(each) for each in inputs.tensors] == [1, 3, 2]  # dicts by sorted keys
    torch.testing.assert_close(inputs.build(inputs.tensors), x)
