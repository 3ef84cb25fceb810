"""Gradients that are differentiated again, and Hessians: products with them, and eigenvalues."""

import math
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from explorer.engine.gradients import gradients
from explorer.engine.hessian import hessian_eigenvalues, hvp
from explorer.engine.plan import PATHS, PEER
from tests.passes import counting

DOUBLE = torch.float64
PATHS_TWICE = tuple(path for path in PATHS if path != PEER)
every_path = pytest.mark.parametrize("path", PATHS_TWICE)
Heads = list[Callable[..., Tensor]]


def vector(*shape: int, seed: int = 0, dtype: torch.dtype = DOUBLE) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def taken(f: Callable[..., Any], heads: Heads, path: str) -> Callable[[Tensor], tuple[Tensor, ...]]:
    def of(x: Tensor) -> tuple[Tensor, ...]:
        found = gradients(f, heads, x, path=path, create_graph=True)
        return (*found.gradients, *found.values)

    return of


MATRIX = vector(3, 2, seed=5)
TRUNKS: dict[str, Callable[[Tensor], Tensor]] = {
    "one entry": lambda x: (x.sin() * x).sum(),
    "fewer entries than heads": lambda x: torch.tanh(MATRIX[:2] @ x),
    "more entries than heads": lambda x: torch.outer(x.sin(), torch.cat([x, x * x])).flatten(),
}
HEADS: dict[str, Heads] = {
    "of y": [torch.linalg.vector_norm, lambda y: y.exp().sum(), lambda y: (y**3).sum()],
    # Of one direction for all x, and of one at this x alone.
    "of few directions": [torch.sum, lambda y: 3 * y.sum(), lambda y: y.square().sum() + y.sum()],
    "of x too": [lambda y, x: (y.sum() * x).sum(), lambda y, x: (x**3).sum() + y.prod()],
}


@every_path
@pytest.mark.parametrize("trunk", TRUNKS)
@pytest.mark.parametrize("heads", HEADS)
def test_second_and_third_derivatives(path: str, trunk: str, heads: str) -> None:
    x = (vector(2) * 0.5 + 0.7).requires_grad_()
    function = taken(TRUNKS[trunk], HEADS[heads], path)
    assert gradcheck(function, (x,), fast_mode=True)
    assert gradgradcheck(function, (x,), fast_mode=True)


@pytest.mark.parametrize("path", ["reuse", "low_rank_vjp", "auto"])
def test_rank_below_that_of_the_derivative_is_not_made_use_of(path: str) -> None:
    """At x = 0 the two cotangents (1, 1) and (1 + x₀, 1) agree, and their derivatives do not."""
    x = torch.zeros(2, dtype=DOUBLE, requires_grad=True)
    heads: Heads = [torch.sum, lambda y: y.sum() + y[0].square() / 2]
    found = gradients(lambda x: x * 1.0, heads, x, path=path, create_graph=True)
    (second,) = torch.autograd.grad(found.gradients[1].sum(), x)
    assert second.tolist() == [1, 0]


@every_path
def test_values_and_gradients_are_attached(path: str) -> None:
    x = vector(3).requires_grad_()
    found = gradients(torch.sin, [torch.sum, torch.prod], x, path=path, create_graph=True)
    assert all(each.requires_grad for each in (*found.values, *found.gradients))
    (first,) = torch.autograd.grad(found.values[0], x, retain_graph=True)
    torch.testing.assert_close(first, x.detach().cos())
    (second,) = torch.autograd.grad(found.gradients[0].sum(), x)
    torch.testing.assert_close(second, -x.detach().sin())


@every_path
def test_x_that_does_not_require_grad_still_reaches_the_weights(path: str) -> None:
    weight = vector(3).requires_grad_()
    found = gradients(
        lambda x: (weight * x).sin(), [torch.sum], vector(3, seed=1), path=path, create_graph=True
    )
    (slope,) = torch.autograd.grad(found.gradients[0].sum(), weight)
    a, x = weight.detach(), vector(3, seed=1)
    torch.testing.assert_close(slope, (a * x).cos() - a * x * (a * x).sin())


@every_path
def test_gradient_penalty_reaches_the_weights_of_f_and_of_the_heads(path: str) -> None:
    torch.manual_seed(0)
    trunk = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh()).to(DOUBLE)
    heads = [
        torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Flatten(0)).to(DOUBLE) for _ in range(3)
    ]
    squared: Heads = [lambda y, g=g: g(y).square() for g in heads]
    weights = [*trunk.parameters(), *(each for g in heads for each in g.parameters())]
    x = vector(3)
    found = gradients(trunk, squared, x, path=path, create_graph=True)
    penalty = torch.stack([each.square().sum() for each in found.gradients]).sum()
    slopes = torch.autograd.grad(penalty, weights)
    leaf = x.clone().requires_grad_()
    firsts = [torch.autograd.grad(g(trunk(leaf)), leaf, create_graph=True)[0] for g in squared]
    expected = torch.autograd.grad(torch.stack(firsts).square().sum(), weights)
    torch.testing.assert_close(slopes, expected)


@every_path
def test_head_gradients_are_attached(path: str) -> None:
    head = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0)).to(DOUBLE)
    x = vector(3).requires_grad_()
    found = gradients(torch.sin, [head], x, path=path, create_graph=True)
    (slope,) = torch.autograd.grad(found.head_gradients[0]["0.weight"].sum(), x)
    torch.testing.assert_close(slope, x.detach().cos())


@every_path
def test_structured_x_and_y(path: str) -> None:
    x = {"a": vector(2).requires_grad_(), "b": [vector(2, seed=1).requires_grad_()]}
    heads: Heads = [lambda y: (y[0] * y[1]).sum(), lambda y, x: (y[0] * x["a"]).sum()]
    found = gradients(
        lambda x: (x["a"] ** 2, (x["b"][0] * x["a"]).sin()), heads, x, path=path, create_graph=True
    )
    leaves = [x["a"], x["b"][0]]  # type: ignore[index]
    flat = torch.cat([g[key] if key == "a" else g[key][0] for g in found.gradients for key in "ab"])
    second = torch.autograd.grad(flat.sum(), leaves)
    a, b = leaves
    z = [(a**2 * (b * a).sin()).sum(), (a**2 * a).sum()]
    firsts = [
        torch.autograd.grad(
            each, leaves, create_graph=True, allow_unused=True, materialize_grads=True
        )
        for each in z
    ]
    expected = torch.autograd.grad(sum(each.sum() for first in firsts for each in first), leaves)
    torch.testing.assert_close(second, expected)


@every_path
def test_complex_x(path: str) -> None:
    z = vector(2, dtype=torch.complex128).requires_grad_()
    found = gradients(
        lambda z: z.square(), [lambda y: y.abs().square().sum()], z, path=path, create_graph=True
    )
    real = found.gradients[0].abs().square().sum()
    (second,) = torch.autograd.grad(real, z)
    # dz|z²|² has the size 4|z|³, so that its square is 16|z|⁶, of the gradient 96|z|⁴·z.
    torch.testing.assert_close(second, 96 * z.detach().abs() ** 4 * z.detach())


@every_path
def test_passes_are_no_more_for_it(path: str) -> None:
    inner, count = counting(lambda x: x[:2])
    x = vector(4).requires_grad_()
    heads: Heads = [torch.sum, torch.prod, torch.linalg.vector_norm]
    found = gradients(inner, heads, x, path=path, create_graph=True)
    backward = {"jvp": 0, "reuse": 2, "low_rank_vjp": 2, "auto": 2}.get(path, 3)
    assert found.passes.backward == backward
    batched = path == "batched_vjp" or found.plan.path == "batched_vjp"
    assert count.backward == (1 if batched else backward)


@pytest.mark.parametrize("path", ["reuse", "batched_vjp", "low_rank_vjp", "jvp", "auto"])
def test_added_heads_are_attached(path: str) -> None:
    x = vector(3).requires_grad_()
    found = gradients(torch.sin, [torch.sum], x, path=path, create_graph=True)
    more = found.add(torch.prod, lambda y, x: (y * x).sum())
    (second,) = torch.autograd.grad((more.gradients[1] + more.gradients[2]).sum(), x)
    leaf = x.detach().clone().requires_grad_()
    y = leaf.sin()
    (first,) = torch.autograd.grad(y.prod() + (y * leaf).sum(), leaf, create_graph=True)
    (expected,) = torch.autograd.grad(first.sum(), leaf)
    torch.testing.assert_close(second, expected)


def test_not_by_torchjd() -> None:
    with pytest.raises(ValueError, match="'torchjd' takes no `create_graph`"):
        gradients(torch.sin, [torch.sum], vector(2), path=PEER, create_graph=True)


@pytest.mark.parametrize("path", ["reuse", "low_rank_vjp", "auto", "recompute", "retain_graph"])
def test_compiled_f_is_refused(path: str) -> None:
    """Its backward was compiled too, and has no derivative of its own."""
    compiled = torch.compile(lambda x: (x.sin() * x).sum(), backend="aot_eager")
    with pytest.raises(ValueError, match=r"`create_graph` needs .* before torch\.compile"):
        gradients(compiled, [torch.square], vector(2), path=path, create_graph=True)


# Hessian–vector products.


def test_hvp_of_a_quadratic_form() -> None:
    matrix, x, v = vector(4, 4), vector(4, seed=1), vector(4, seed=2)
    found = hvp(lambda x: x @ matrix @ x, x, v)
    torch.testing.assert_close(found, (matrix + matrix.mT) @ v)
    assert not found.requires_grad


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "cubic": lambda x: (x**3).sum() + x.prod(),
    "network": lambda x: torch.tanh(vector(3, 3) @ torch.tanh(vector(3, 3, seed=1) @ x)).sum(),
    "logsumexp": lambda x: (2 * x).logsumexp(0),
    "linear": lambda x: 3 * x.sum(),
    "part": lambda x: x[:1].exp().sum(),
    "norm": torch.linalg.vector_norm,
}


@settings(max_examples=30, deadline=None)
@given(name=st.sampled_from(sorted(FUNCTIONS)), seed=st.integers(0, 1000))
def test_hvp_is_the_hessian_times_the_vector(name: str, seed: int) -> None:
    f, x, v = FUNCTIONS[name], vector(3, seed=seed), vector(3, seed=seed + 1)
    of_hessian: Callable[..., Any] = torch.autograd.functional.hessian
    torch.testing.assert_close(hvp(f, x, v), of_hessian(f, x) @ v, rtol=1e-10, atol=1e-10)


def test_hvp_of_a_structure() -> None:
    x = {"a": vector(2), "b": (vector(2, seed=1),)}
    v = {"a": vector(2, seed=2), "b": (vector(2, seed=3),)}
    found = hvp(lambda x: (x["a"] * x["b"][0] ** 2).sum(), x, v)
    a, b, va, vb = x["a"], x["b"][0], v["a"], v["b"][0]  # type: ignore[index]
    expected = {"a": 2 * b * vb, "b": (2 * b * va + 2 * a * vb,)}
    torch.testing.assert_close(found, expected)


def test_hvp_of_a_module() -> None:
    net, batch = torch.nn.Linear(2, 1, dtype=DOUBLE), vector(5, 2)
    v = {"weight": vector(1, 2, seed=1), "bias": vector(1, seed=2)}
    found = hvp(lambda net: net(batch).square().sum(), net, v)
    design = torch.cat([batch, torch.ones(5, 1)], dim=1)
    expected = 2 * design.mT @ design @ torch.cat([v["weight"][0], v["bias"]])
    torch.testing.assert_close(torch.cat([found["weight"][0], found["bias"]]), expected)
    assert all(each.grad is None for each in net.parameters())


def test_hvp_takes_a_forward_and_a_backward_pass() -> None:
    inner, count = counting(lambda x: x**3)
    hvp(lambda x: inner(x).sum(), vector(3), vector(3, seed=1))
    assert (count.forward, count.backward, count.forward_mode) == (1, 1, 1)


def test_hvp_leaves_x_as_it_was() -> None:
    x = vector(3).requires_grad_()
    x.grad = torch.full_like(x, 7.0)
    hvp(lambda x: (x**3).sum(), x, vector(3))
    assert torch.equal(x.detach(), vector(3)) and torch.equal(x.grad, torch.full_like(x, 7.0))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_hvp_where_gradients_are_off(mode: Callable[[], Any]) -> None:
    with mode():
        found = hvp(lambda x: (x**3).sum(), vector(3), torch.ones(3))
    torch.testing.assert_close(found, 6 * vector(3))


@pytest.mark.parametrize("path", ["low_rank_vjp", "auto"])
def test_dependence_that_is_not_looked_for_is_not_denied(path: str) -> None:
    heads = [torch.sum, lambda y: 2 * y.sum()]
    found = gradients(torch.sin, heads, vector(3), path=path, create_graph=True)
    assert "none of which" not in found.plan.sentence and found.plan.sizes.rank is None


@every_path
def test_torch_func_goes_through_gradients(path: str) -> None:
    def first(x: Tensor) -> Tensor:
        heads = [torch.sum, lambda y: (y**2).sum()]
        return gradients(lambda x: x**3, heads, x, path=path, create_graph=True).gradients[1].sum()

    torch.testing.assert_close(torch.func.grad(first)(vector(3)), 30 * vector(3) ** 4)


def test_hvp_takes_what_f_puts_under_no_grad_as_a_constant() -> None:
    def f(x: Tensor) -> Tensor:
        with torch.no_grad():
            scale = x.sum()
        return (x**3).sum() * scale

    found = hvp(f, vector(3), torch.ones(3))
    torch.testing.assert_close(found, 6 * vector(3) * vector(3).sum())


def test_forward_mode_in_several_threads() -> None:
    x = vector(20)
    found: list[Tensor] = []
    errors: list[Exception] = []

    def f(x: Tensor) -> Tensor:
        for _ in range(20):
            x = x.sin()
        return x.sum()

    def run() -> None:
        try:
            for _ in range(5):
                gradients(f, [torch.exp], x, path="jvp")
                found.append(hvp(f, x, x))
        except RuntimeError as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and all(torch.equal(each, found[0]) for each in found)


def test_hvp_in_x_s_dtype_and_of_parts_that_are_not_used() -> None:
    x = (vector(2, dtype=torch.float32), vector(3))
    found = hvp(lambda x: (x[0] ** 3).sum(), x, (vector(2), torch.ones(3)))
    assert found[0].dtype == torch.float32 and not found[1].any()
    torch.testing.assert_close(found[0], 6 * x[0] * vector(2).float())


class NoForwardMode(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:
        return cotangent


def without_forward_mode(x: Tensor) -> Tensor:
    apply: Callable[..., Tensor] = NoForwardMode.apply
    return apply(x).square().sum()


WRONG: dict[str, tuple[tuple[Any, ...], type[Exception], str]] = {
    "v of another shape": (
        (torch.sum, torch.ones(2), torch.ones(3)),
        ValueError,
        r"`v` has the shapes \[\(3,\)\], and `x` has \[\(2,\)\]",
    ),
    "v of another structure": (
        (lambda x: x[0].sum(), (torch.ones(2),), (torch.ones(2), torch.ones(2))),
        ValueError,
        "`v` has the structure",
    ),
    "v of other names": (
        (lambda x: x["a"].sum(), {"a": torch.ones(2)}, {"b": torch.ones(2)}),
        ValueError,
        "`v` has the structure",
    ),
    "complex x": ((torch.sum, torch.ones(2) * 1j, torch.ones(2)), ValueError, "is complex"),
    "complex v": ((torch.sum, torch.ones(2), torch.ones(2) * 1j), ValueError, "is complex"),
    "a vector": ((torch.sin, torch.ones(2), torch.ones(2)), ValueError, r"`f` .*shape \(2,\)"),
    "a number": ((lambda x: 2.0, torch.ones(2), torch.ones(2)), TypeError, "`f` returned a float"),
    "complex z": (
        (lambda x: x.sum() * 1j, torch.ones(2), torch.ones(2)),
        TypeError,
        "`f` returned dtype torch.complex64",
    ),
    "a constant": (
        (lambda x: torch.ones(()), torch.ones(2), torch.ones(2)),
        ValueError,
        "`f` gives a number that does not depend on `x`",
    ),
    "integer x": ((torch.sum, torch.arange(2), torch.ones(2)), TypeError, "`x` has dtype"),
    "text v": ((torch.sum, torch.ones(2), "v"), TypeError, "`v` is a str"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_argument_of_hvp_is_named(wrong: str) -> None:
    arguments, kind, message = WRONG[wrong]
    with pytest.raises(kind, match=message):
        hvp(*arguments)


def test_hvp_without_forward_mode_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="jvp"):
        hvp(without_forward_mode, torch.ones(2), torch.ones(2))


def eigenvalues(f: Callable[..., Tensor], x: Tensor) -> Tensor:
    return torch.linalg.eigvalsh(torch.autograd.functional.hessian(f, x))


def quadratic(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x: x @ matrix @ x / 2


def require_extremes(found: Any, smallest: float, largest: float, rel: float = 1e-6) -> None:
    norm = max(abs(smallest), abs(largest))
    assert found.smallest == pytest.approx(smallest, rel=0, abs=rel * norm)
    assert found.largest == pytest.approx(largest, rel=0, abs=rel * norm)


@settings(deadline=None, max_examples=40)
@given(
    size=st.integers(1, 60),
    seed=st.integers(0, 1000),
    power=st.sampled_from([-200, -10, 0, 10, 200]),
    shift=st.floats(-10, 10),
)
def test_eigenvalues_of_a_quadratic_form(size: int, seed: int, power: int, shift: float) -> None:
    matrix = vector(size, size, seed=seed)
    matrix = matrix + matrix.mT + shift * torch.eye(size, dtype=DOUBLE)
    exact = torch.linalg.eigvalsh(matrix)
    scale = 10.0**power
    found = hessian_eigenvalues(lambda x: quadratic(matrix)(x) * scale, vector(size))
    require_extremes(found, exact[0].item() * scale, exact[-1].item() * scale)
    assert found.notes == () and 1 <= found.products <= size


def test_the_smallest_where_it_is_the_larger_in_size() -> None:
    diagonal = torch.cat([vector(99).abs().clamp(max=2), -torch.full((1,), 9.0, dtype=DOUBLE)])
    found = hessian_eigenvalues(quadratic(torch.diag(diagonal)), vector(100))
    require_extremes(found, -9, diagonal.max().item())


def test_eigenvalues_of_a_cubic_and_of_rosenbrock() -> None:
    x = vector(5)
    found = hessian_eigenvalues(lambda x: (x**3).sum(), x)
    require_extremes(found, 6 * x.min().item(), 6 * x.max().item())

    def rosenbrock(x: Tensor) -> Tensor:
        return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2

    found = hessian_eigenvalues(rosenbrock, torch.ones(2, dtype=DOUBLE))
    middle = math.sqrt(501**2 - 400)  # of ((802, −400), (−400, 200))
    assert found.largest == pytest.approx(501 + middle, rel=1e-12)
    assert found.smallest == pytest.approx(501 - middle, rel=1e-9)


def test_f_runs_once_for_all_products() -> None:
    f, count = counting(lambda x: x)
    x = vector(40)
    found = hessian_eigenvalues(lambda x: f(x).sum(), x)
    require_extremes(found, -x.sin().max().item(), -x.sin().min().item())
    assert (count.forward, count.forward_mode) == (1, 0) and found.products > 2
    assert found.error <= 1e-6


@pytest.mark.parametrize("linear", [torch.sum, lambda x: 3 * x[0] - x[1]])
def test_eigenvalues_of_a_linear_function_are_zero(linear: Callable[[Tensor], Tensor]) -> None:
    found = hessian_eigenvalues(linear, vector(3))
    assert (found.smallest, found.largest, found.error) == (0, 0, 0)


def test_eigenvalues_of_networks() -> None:
    torch.manual_seed(0)
    for layer in (torch.nn.ReLU, torch.nn.Tanh):
        network = torch.nn.Sequential(
            torch.nn.Linear(6, 20), layer(), torch.nn.Linear(20, 1)
        ).to(DOUBLE)  # fmt: skip
        for f in (lambda x: network(x).sum(), lambda x: network(x).square().sum()):  # noqa: B023
            exact = eigenvalues(f, vector(6))
            require_extremes(
                hessian_eigenvalues(f, vector(6)), exact[0].item(), exact[-1].item()
            )  # fmt: skip


def test_eigenvalues_by_the_parameters_of_a_module() -> None:
    torch.manual_seed(0)
    module, batch = torch.nn.Linear(3, 1).to(DOUBLE), vector(10, 3)
    found = hessian_eigenvalues(lambda module: module(batch).square().sum(), module)
    wide = torch.cat([batch, batch.new_ones(10, 1)], 1)
    exact = torch.linalg.eigvalsh(2 * wide.mT @ wide)
    require_extremes(found, exact[0].item(), exact[-1].item())
    assert all(each.grad is None for each in module.parameters())


def test_eigenvalues_by_a_structure_of_two_dtypes() -> None:
    x = {"a": vector(2), "b": [vector(3, dtype=torch.float32)], "unused": vector(2)}
    found = hessian_eigenvalues(lambda x: 2 * (x["a"] ** 2).sum() - (x["b"][0] ** 2).sum(), x)
    require_extremes(found, -2, 4)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_eigenvalues_without_grad(mode: Any) -> None:
    with mode():
        found = hessian_eigenvalues(lambda x: (x**2).sum(), vector(3))
    require_extremes(found, 2, 2)


class OnceDifferentiable(torch.autograd.Function):
    """The square, whose backward cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:
        return 2 * cotangent * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return 2 * tangent * ctx.saved_tensors[0]


def test_gradient_that_cannot_be_differentiated() -> None:
    """By torch.autograd.grad the second derivative of such a function is silently zero."""
    square: Callable[..., Tensor] = OnceDifferentiable.apply
    ones = torch.ones(3, dtype=DOUBLE)
    pairs: list[tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = [
        (lambda x: square(x).sum(), lambda x: (x**2).sum()),
        (lambda x: square(x).square().sum(), lambda x: (x**4).sum()),
        (lambda x: (square(x) * x.sin()).sum(), lambda x: (x**2 * x.sin()).sum()),
        (lambda x: (square(x) + x**4).sum(), lambda x: (x**2 + x**4).sum()),
    ]
    for f, plain in pairs:
        exact = eigenvalues(plain, vector(3))
        found = hessian_eigenvalues(f, vector(3))
        require_extremes(found, exact[0].item(), exact[-1].item())
        assert found.notes[0].startswith("H·v was taken in forward mode, with a run of f each")
        torch.testing.assert_close(hvp(f, vector(3), ones), hvp(plain, vector(3), ones))


class NoPotential(torch.autograd.Function):
    """Its backward gives A·x, the gradient of a function only where A is symmetric."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor) -> Tensor:
        ctx.save_for_backward(x, matrix)
        return x.sum()

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:
        x, matrix = ctx.saved_tensors
        return cotangent * (matrix @ x), None


@pytest.mark.parametrize("size, scale", [(40, 1.0), (40, 1e-200), (2, 1.0)])
def test_gradient_that_is_of_no_function(size: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(0)
    matrix = scale * torch.randn(size, size, generator=generator, dtype=DOUBLE)
    apply: Callable[..., Tensor] = NoPotential.apply
    (note,) = hessian_eigenvalues(lambda x: apply(x, matrix), vector(size)).notes
    assert note.startswith("The second derivative of f is not symmetric")
    assert not hessian_eigenvalues(lambda x: apply(x, matrix + matrix.mT), vector(size)).notes


def test_random_f_is_one_function_in_forward_mode_too() -> None:
    square: Callable[..., Tensor] = OnceDifferentiable.apply

    def f(x: Tensor) -> Tensor:
        return torch.nn.functional.dropout(square(x), 0.5).sum()

    with pytest.warns(UserWarning, match="`f` is random"):
        found = hessian_eigenvalues(f, vector(30))
    require_extremes(found, 0, 4)


def test_hvp_goes_back_outside_of_autocast() -> None:
    seen: list[bool] = []

    def f(x: Tensor) -> Tensor:
        y = x**2
        y.register_hook(lambda _: seen.append(torch.is_autocast_enabled("cpu")))
        return y.sum()

    with torch.autocast("cpu", dtype=torch.bfloat16):
        hvp(f, vector(3), vector(3))
    assert seen == [False]


def test_gradient_that_cannot_be_differentiated_in_either_way() -> None:
    class Neither(OnceDifferentiable):
        jvp = torch.autograd.Function.jvp

    apply: Callable[..., Tensor] = Neither.apply
    message = r"`f` can neither be differentiated twice nor in forward mode \(.*jvp.*\), so"
    for also in (torch.sin, lambda x: x**4 / apply(x)):
        with pytest.raises(RuntimeError, match=message):
            hessian_eigenvalues(lambda x, also=also: (apply(x) + also(x)).sum(), vector(3))


def test_eigenvalues_where_something_is_not_finite() -> None:
    found = hessian_eigenvalues(lambda x: x.abs().sqrt().sum(), torch.zeros(3, dtype=DOUBLE))
    assert math.isnan(found.largest) and math.isnan(found.smallest) and math.isnan(found.error)
    found = hessian_eigenvalues(lambda x: (x**2).sum() * math.inf, vector(3))
    assert math.isnan(found.largest)


def test_eigenvalues_that_do_not_converge() -> None:
    """Of the second difference: they lie closest where they are largest."""

    def f(x: Tensor) -> Tensor:
        return (x.diff() ** 2).sum() / 2

    with pytest.warns(UserWarning, match="did not converge to 1e-10"):
        found = hessian_eigenvalues(f, torch.zeros(1500, dtype=DOUBLE), rtol=1e-10)
    assert found.products == 300 and "did not converge" in found.notes[0]
    assert abs(4 * math.cos(math.pi / 3000) ** 2 - found.largest) <= 10 * found.error
    found = hessian_eigenvalues(f, vector(50), proceed=lambda: False)
    assert found.products == 1 and found.notes == ()


WRONG_EIGENVALUES: dict[str, tuple[Callable[..., Any], Any, type[Exception], str]] = {
    "complex x": (torch.sum, torch.ones(2) * 1j, ValueError, "`x` is complex"),
    "an empty x": (torch.sum, torch.ones(0), ValueError, "`x` has no entries"),
    "a vector": (torch.sin, torch.ones(2), ValueError, r"`f` .*shape \(2,\)"),
    "a number": (lambda x: 2.0, torch.ones(2), TypeError, "`f` returned a float"),
    "a tuple": (lambda x: ((x**2).sum(), x), torch.ones(2), TypeError, "`f` returned a tuple"),
    "complex z": (lambda x: x.sum() * 1j, torch.ones(2), TypeError, "`f` returned dtype"),
    "a constant": (lambda x: torch.ones(()), torch.ones(2), ValueError, "cut off from `x`"),
    "NaN": (lambda x: x.log().sum(), -torch.ones(2), ValueError, "`f` returned NaN"),
    "integer x": (torch.sum, torch.arange(2), TypeError, "`x` has dtype"),
}


@pytest.mark.parametrize("wrong", WRONG_EIGENVALUES)
def test_wrong_argument_of_hessian_eigenvalues_is_named(wrong: str) -> None:
    f, x, kind, message = WRONG_EIGENVALUES[wrong]
    with pytest.raises(kind, match=message):
        hessian_eigenvalues(f, x)


@pytest.mark.parametrize("rtol", [0, 1, math.nan, "1e-6", True])
def test_rtol_of_hessian_eigenvalues_is_named(rtol: Any) -> None:
    with pytest.raises(ValueError, match="`rtol` is "):
        hessian_eigenvalues(torch.sum, torch.ones(2), rtol=rtol)
