"""What is known of y after the passes: it answers for further heads, and stands in for f."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.engine.gradients import gradients
from explorer.engine.linear import Linear, chain, combined
from explorer.engine.plan import NAIVE, PATHS, Passes
from explorer.engine.structure import Layout
from tests.passes import counting

DOUBLE = torch.float64
Heads = list[Callable[..., Tensor]]
EXTENSIBLE = ("reuse", "batched_vjp", "low_rank_vjp", "jvp", "auto")
REFUSING = (*NAIVE, "torchjd")
extensible = pytest.mark.parametrize("path", EXTENSIBLE)


def vector(size: int = 4, seed: int = 0) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def weighted(weights: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda y: (y * weights).sum()


# The algebra.


def test_chain_in_the_wider_dtype() -> None:
    """Narrowed first, a large cotangent that meets a small J would overflow."""
    cotangent = torch.tensor([1e300, 2e300], dtype=DOUBLE)
    jacobian = torch.full((2, 3), 1e-30)
    expected = torch.full((3,), 3e270, dtype=DOUBLE)
    torch.testing.assert_close(chain(cotangent, jacobian), expected, rtol=1e-6, atol=0)


def test_chain_of_a_complex_cotangent_is_that_of_its_parts() -> None:
    """J's rows are then those of the real and imaginary parts, one after the other."""
    cotangent = torch.tensor([1 + 2j], dtype=torch.complex128)
    jacobian = torch.tensor([[1.0, 10.0], [100.0, 1000.0]], dtype=DOUBLE)
    assert chain(cotangent, jacobian).tolist() == pytest.approx([201, 2010])


def test_combined_keeps_exact_zeros_of_rows_that_are_not_finite() -> None:
    cotangents = torch.tensor([[1.0, 1.0], [math.inf, 1.0], [math.nan, 2.0], [0.0, 0.0]])
    rows = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
    found = combined(cotangents, rows)
    expected = torch.tensor([[1.0, 2.0], [1.0, math.inf], [2.0, math.nan], [0.0, 0.0]])
    torch.testing.assert_close(found, expected, equal_nan=True)


def test_linear_without_rows_knows_only_zero() -> None:
    linear = Linear(Layout([torch.ones(2)]))
    assert not linear.complete
    with pytest.raises(RuntimeError, match="gone"):
        linear.further(torch.ones(1, 2), "gone")


def test_linear_answers_for_its_span_alone() -> None:
    """V·J was sent for one direction; a cotangent is compared with it to rounding."""
    basis = torch.tensor([[0.6, 0.8]], dtype=DOUBLE)
    linear = Linear(Layout([torch.ones(2).double()]), [torch.tensor([[5.0]]).double()], basis)
    inside = torch.tensor([[6e200, 8e200], [-0.6, -0.8], [0, 0]], dtype=DOUBLE)
    (found,) = linear.further(inside, "no")
    torch.testing.assert_close(found, torch.tensor([[5e201], [-5.0], [0.0]], dtype=DOUBLE))
    for outside in ([0.6, 0.8001], [math.inf, 0.0], [math.nan, 0.8]):
        with pytest.raises(RuntimeError, match="no"):
            linear.further(torch.tensor([outside], dtype=DOUBLE), "no")


# Further heads.


@extensible
def test_added_heads_equal_a_fresh_call(path: str) -> None:
    x = vector()
    first: Heads = [torch.sum, torch.linalg.vector_norm]
    more: Heads = [
        torch.prod,
        lambda y, x: (y * x).sum() + x.square().sum(),
        lambda y: torch.ones(()),
        lambda y, x: x.sin().sum(),
    ]

    def f(x: Tensor) -> Tensor:
        return x.sin() * x.sum()

    found = gradients(f, first, x, path=path).add(*more)
    fresh = gradients(f, first + more, x, path="retain_graph")
    torch.testing.assert_close(found.gradients, fresh.gradients)
    torch.testing.assert_close(found.values[:4], fresh.values[:4])
    assert len(found.values) == len(found.gradients) == len(found.head_gradients) == 6


@extensible
def test_adding_leaves_the_first_result_as_it_was(path: str) -> None:
    result = gradients(torch.sin, [torch.sum], vector(), path=path)
    before = result.gradients[0].clone()
    more = result.add(torch.prod)
    again = more.add(torch.mean)
    assert (len(result.gradients), len(more.gradients), len(again.gradients)) == (1, 2, 3)
    assert torch.equal(result.gradients[0], before)
    torch.testing.assert_close(again.gradients[2], before / 4)
    assert result.passes.backward <= more.passes.backward <= again.passes.backward


@pytest.mark.parametrize("path", ["reuse", "jvp"])
def test_further_heads_need_no_pass_where_the_jacobian_is_known(path: str) -> None:
    inner, count = counting(torch.exp)
    result = gradients(inner, [torch.sum], vector(), path=path)
    before = count.forward, count.backward, count.forward_mode
    more = result.add(torch.prod, weighted(torch.tensor([math.inf, 1, 1, 1], dtype=DOUBLE)))
    assert (count.forward, count.backward, count.forward_mode) == before
    assert more.passes == result.passes
    assert more.gradients[2][0].isinf() and more.gradients[2][1:].isfinite().all()


def test_further_heads_in_known_directions_need_no_pass() -> None:
    inner, count = counting(lambda x: x.exp())
    a, b = vector(6, 1), vector(6, 2)
    heads = [weighted(a), weighted(b), weighted(a + b)]
    result = gradients(inner, heads, vector(6), path="low_rank_vjp")
    assert count.backward == result.passes.backward == 2
    more = result.add(weighted(1e9 * a - b), weighted(torch.zeros(6)), lambda y, x: x.sum())
    assert count.backward == more.passes.backward == 2
    expected = 1e9 * result.gradients[0] - result.gradients[1]
    torch.testing.assert_close(more.gradients[3], expected)
    assert not more.gradients[4].any()
    torch.testing.assert_close(more.gradients[5], torch.ones(6, dtype=DOUBLE))


@pytest.mark.parametrize("path", ["batched_vjp", "low_rank_vjp", "auto"])
def test_further_heads_elsewhere_take_one_backward_each(path: str) -> None:
    inner, count = counting(lambda x: x.exp())
    a = vector(6, 1)
    result = gradients(inner, [weighted(a), weighted(2 * a)], vector(6), path=path)
    before, forward = count.backward, count.forward
    more = result.add(weighted(vector(6, 2)), weighted(vector(6, 3)))
    assert count.backward == before + 2 and count.forward == forward
    assert more.passes == Passes(1, result.passes.backward + 2)
    fresh = gradients(inner, [weighted(vector(6, seed)) for seed in (2, 3)], vector(6))
    torch.testing.assert_close(more.gradients[2:], fresh.gradients)


def test_jacobian_of_the_fewest_entries_answers_for_all_heads() -> None:
    """With more heads than entries the entries were sent, so that J is known."""
    inner, count = counting(lambda x: x[:2] * x.sum())
    heads = [weighted(vector(2, seed)) for seed in range(5)]
    result = gradients(inner, heads, vector(), path="low_rank_vjp")
    assert count.backward == 2 and result.jacobian is not None
    result.add(torch.prod, torch.linalg.vector_norm)
    assert count.backward == 2


@pytest.mark.parametrize("path", REFUSING)
def test_the_other_paths_keep_nothing(path: str) -> None:
    result = gradients(torch.sin, [torch.sum], vector(), path=path)
    for further in (lambda: result.add(torch.prod), lambda: result.surrogate(vector())):
        with pytest.raises(RuntimeError, match=f"path '{path}' keeps nothing .*such as 'auto'"):
            further()
    assert result.jacobian is None


def test_a_wrong_further_head_is_numbered_on() -> None:
    result = gradients(torch.sin, [torch.sum, torch.mean], vector())
    with pytest.raises(ValueError, match=r"head 3 \(`sin`\) returned shape \(4,\)"):
        result.add(torch.sin)
    with pytest.raises(ValueError, match=r"head 4 \(`<lambda>`\) changes `y` in place"):
        result.add(torch.sum, lambda y: y.mul_(2).sum())
    with pytest.raises(TypeError, match="head 3 is 5, which cannot be called"):
        result.add(5)
    torch.testing.assert_close(result.add(torch.prod).values[2], vector().sin().prod())


@extensible
def test_no_head_adds_nothing(path: str) -> None:
    result = gradients(torch.sin, [torch.sum], vector(), path=path)
    more = result.add()
    assert len(more.gradients) == 1 and more.passes == result.passes


@extensible
def test_added_head_that_is_a_module_has_its_gradients(path: str) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 1, dtype=DOUBLE), torch.nn.Flatten(0))
    found = gradients(torch.sin, [torch.sum], vector(), path=path).add(module)
    torch.testing.assert_close(found.head_gradients[1]["0.weight"], vector().sin()[None])


@extensible
def test_added_heads_of_structured_x_and_y(path: str) -> None:
    x = {"a": vector(2), "b": [vector(2, 1)]}

    def f(x: dict[str, Any]) -> tuple[Tensor, Tensor]:
        return x["a"] * x["b"][0], torch.complex(x["a"], x["b"][0])

    heads: Heads = [lambda y: y[0].sum(), lambda y, x: y[1].abs().square().sum() + x["a"].sum()]
    found = gradients(f, heads[:1], x, path=path).add(heads[1])
    torch.testing.assert_close(found.gradients[1], {"a": 2 * x["a"] + 1, "b": [2 * x["b"][0]]})


# The surrogate.


@extensible
def test_surrogate_gives_what_f_gives(path: str) -> None:
    x = vector()
    result = gradients(lambda x: x.sin() * x.sum(), [torch.sum], x, path=path)
    leaf = x.clone().requires_grad_()
    y = result.surrogate(leaf)
    torch.testing.assert_close(y.detach(), x.sin() * x.sum())
    loss = y.exp().sum() + (y * leaf).sum()
    loss.backward()
    other = x.clone().requires_grad_()
    true = other.sin() * other.sum()
    (true.exp().sum() + (true * other).sum()).backward()
    torch.testing.assert_close(leaf.grad, other.grad)


@pytest.mark.parametrize("path", ["reuse", "jvp"])
def test_surrogate_costs_no_pass_where_the_jacobian_is_known(path: str) -> None:
    inner, count = counting(torch.exp)
    result = gradients(inner, [torch.sum], vector(), path=path)
    before = count.forward, count.backward, count.forward_mode
    leaf = vector().requires_grad_()
    y = result.surrogate(leaf)
    for loss in (y.sum(), y.prod(), y.norm()):
        loss.backward(retain_graph=True)
    assert (count.forward, count.backward, count.forward_mode) == before


def test_surrogate_takes_one_backward_where_it_is_not() -> None:
    inner, count = counting(torch.exp)
    a = vector(6, 1)
    result = gradients(inner, [weighted(a)], vector(6), path="low_rank_vjp")
    leaf = vector(6).requires_grad_()
    y = result.surrogate(leaf)
    assert count.backward == 1
    y.prod().backward()
    assert count.backward == 2
    (expected,) = gradients(inner, [torch.prod], vector(6)).gradients
    torch.testing.assert_close(leaf.grad, expected)


def test_surrogate_is_refused_a_second_derivative() -> None:
    """It would be that of a linear f, without a word."""
    leaf = vector().requires_grad_()
    y = gradients(torch.exp, [torch.sum], vector(), path="reuse").surrogate(leaf)
    (slope,) = torch.autograd.grad(y.square().sum(), leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


@extensible
def test_surrogate_of_structures(path: str) -> None:
    x = (vector(2), {"b": vector(2, 1).to(torch.float32)})

    def f(x: Any) -> dict[str, Any]:
        return {"product": x[0] * x[1]["b"], "mask": x[0] > 0, "part": [x[0].exp()]}

    result = gradients(f, [lambda y: y["product"].sum()], x, path=path)
    leaves = (x[0].clone().requires_grad_(), {"b": x[1]["b"].clone().requires_grad_()})
    y = result.surrogate(leaves)
    assert y["mask"].dtype == torch.bool and torch.equal(y["mask"], x[0] > 0)
    (y["product"] * y["mask"]).sum().backward()
    mask = (x[0] > 0).double()
    torch.testing.assert_close(leaves[0].grad, x[1]["b"].double() * mask)
    torch.testing.assert_close(leaves[1]["b"].grad, (x[0] * mask).float())


def test_surrogate_of_a_module() -> None:
    """The parameters themselves are the leaves."""
    net, batch = torch.nn.Linear(3, 2, dtype=DOUBLE), vector(3)
    result = gradients(lambda net: net(batch), [torch.sum], net)
    result.surrogate(net).square().sum().backward()
    found = [each.grad.clone() for each in net.parameters() if each.grad is not None]
    net.zero_grad()
    net(batch).square().sum().backward()
    torch.testing.assert_close(found, [each.grad for each in net.parameters()])


def test_surrogate_with_some_of_x_held_fixed() -> None:
    x = (vector(2), vector(2, 1))
    result = gradients(lambda x: x[0] * x[1], [torch.sum], x, path="reuse")
    leaf = x[0].clone().requires_grad_()
    result.surrogate((leaf, x[1])).sum().backward()
    torch.testing.assert_close(leaf.grad, x[1])


def test_wrong_x_of_a_surrogate_is_refused() -> None:
    result = gradients(torch.sin, [torch.sum], vector())
    with pytest.raises(ValueError, match=r"shapes \[\(3,\)\], and those of this result were"):
        result.surrogate(vector(3).requires_grad_())
    with pytest.raises(ValueError, match=r"structure PyTreeSpec\(\[\*, \*\]\), and"):
        result.surrogate([vector().requires_grad_(), vector().requires_grad_()])
    with pytest.raises(ValueError, match="`x` does not require grad"):
        result.surrogate(vector())
    with pytest.raises(TypeError, match="`x` is a str"):
        result.surrogate("x")


def test_wrong_structure_of_the_same_shapes_is_refused() -> None:
    x = {"a": vector(2), "b": vector(2, 1)}
    result = gradients(lambda x: x["a"] * x["b"], [torch.sum], x)
    with pytest.raises(ValueError, match="`x` has the structure"):
        result.surrogate((vector(2).requires_grad_(), vector(2, 1).requires_grad_()))


def test_every_path_is_either() -> None:
    assert {*EXTENSIBLE, *REFUSING} == set(PATHS)
