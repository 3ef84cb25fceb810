"""Singular values of dy/dx without the matrix, against closed forms and dense decompositions."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from explorer import memory
from explorer.engine.spectrum import (
    SMALL,
    decomposed,
    jacobian_distance,
    singular_values,
    spectral_norm,
)
from tests.once import Once
from tests.passes import counting

DOUBLE = torch.float64


pytestmark = pytest.mark.usefixtures("one_thread")


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = DOUBLE) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def dense(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """All singular values of a real f."""
    jacobian = torch.autograd.functional.jacobian(f, x)
    return torch.linalg.svdvals(jacobian.reshape(-1, x.numel()))


def linear(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x: matrix @ x


def with_values(values: list[float], rows: int, columns: int) -> Tensor:
    left, right = (torch.linalg.qr(drawn(size, len(values), seed=size))[0]
                   for size in (rows, columns))  # fmt: skip
    return left * torch.tensor(values, dtype=DOUBLE) @ right.mT


SHAPES = [(1, 1), (1, 90), (90, 1), (3, 5), (SMALL, 90), (90, SMALL), (SMALL + 1, 90),
          (90, SMALL + 1), (SMALL + 1, SMALL + 1)]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_either_side_of_what_is_formed(shape: tuple[int, int]) -> None:
    matrix, x = drawn(*shape), drawn(shape[1], seed=1)

    def f(x: Tensor) -> Tensor:
        return torch.tanh(matrix @ x) + matrix @ x**2

    exact = dense(f, x)
    found = spectral_norm(f, x)
    assert found.value == pytest.approx(exact[0].item(), rel=1e-6)
    assert abs(found.value - exact[0].item()) <= 10 * max(found.error, 1e-14 * found.value)
    assert torch.linalg.vector_norm(found.direction) == pytest.approx(1)
    _, stretched = torch.autograd.functional.jvp(f, x, found.direction)
    assert torch.linalg.vector_norm(stretched) == pytest.approx(found.value, rel=1e-6)
    k = min(3, *shape)
    several = singular_values(f, x, k)
    assert several.values == pytest.approx(exact[:k].tolist(), rel=1e-6)
    assert found.notes == several.notes == ()


VALUES: dict[str, list[float]] = {
    "equal": [2.0] * 80,
    "three and two equal": [3.0, 3.0, 3.0, 2.0, 2.0] + [1 - i / 80 for i in range(75)],
    "three and two equal alone": [3.0, 3.0, 3.0, 2.0, 2.0],
    "pairs": [value for i in range(40) for value in (1 - i / 40,) * 2],
    "close": [1.0, 1 - 1e-4, 1 - 2e-4] + [0.8 - i / 100 for i in range(77)],
    "closer": [1.0, 1 - 1e-7, 1 - 2e-7] + [0.8 - i / 100 for i in range(77)],
    "rank one": [5.0],
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("shape", [(80, 90), (90, 80)])
def test_values_as_often_as_they_are_there(name: str, shape: tuple[int, int]) -> None:
    values = VALUES[name]
    f, x = linear(with_values(values, *shape)), drawn(shape[1])
    found = singular_values(f, x, 7)
    expected = (values + [0.0] * 7)[:7]
    assert found.values == pytest.approx(expected, rel=1e-6, abs=1e-13)
    assert spectral_norm(f, x).value == pytest.approx(values[0], rel=1e-6)


@pytest.mark.parametrize("k", [1, 5, 22, 70, 100])
def test_many_values(k: int) -> None:
    matrix = drawn(100, 110)
    found = singular_values(linear(matrix), drawn(110), k)
    assert found.values == pytest.approx(torch.linalg.svdvals(matrix)[:k].tolist(), rel=1e-6)
    assert len(found.errors) == k


def test_values_that_were_not_reached_are_no_zeros() -> None:
    diagonal = 1 - torch.arange(1200, dtype=DOUBLE) / 1e5
    with pytest.warns(UserWarning, match="did not converge to 1e-06"):
        found = singular_values(lambda x: diagonal * x, diagonal, 350)
    assert len(found.values) == len(found.errors) == 350
    assert all(map(math.isnan, found.values[300:])) and all(map(math.isnan, found.errors[300:]))
    assert min(found.values[:300]) > 0.98 and max(found.values[:300]) <= 1 + 1e-9
    assert "did not converge" in found.notes[0]


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 1000),
    sizes=st.sampled_from([(3, 4, 5), (70, 66, 80), (1, 70, 70), (70, 70, 1)]),
)
def test_bounds_of_a_composition_and_of_a_sum(seed: int, sizes: tuple[int, int, int]) -> None:
    x = drawn(sizes[0], seed=seed)
    first, second = drawn(sizes[1], sizes[0], seed=seed), drawn(sizes[2], sizes[1], seed=seed)
    other = drawn(sizes[1], sizes[0], seed=seed + 1)
    f, g = (lambda x: torch.sin(first @ x)), (lambda y: torch.tanh(second @ y))
    h = lambda x: torch.cos(other @ x)  # noqa: E731
    norms = [spectral_norm(*each).value for each in ((f, x), (g, f(x)), (h, x))]
    slack = 1 + 1e-5
    assert spectral_norm(lambda x: g(f(x)), x).value <= norms[0] * norms[1] * slack
    together = spectral_norm(lambda x: f(x) + h(x), x).value
    assert abs(norms[0] - norms[2]) / slack <= together <= (norms[0] + norms[2]) * slack
    apart = jacobian_distance(f, h, x).value
    assert abs(norms[0] - norms[2]) / slack <= apart <= (norms[0] + norms[2]) * slack


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 1000), size=st.sampled_from([4, 70]), scale=st.floats(-300, 300))
def test_scaling_and_orthogonal_maps(seed: int, size: int, scale: float) -> None:
    matrix, x = drawn(size, size, seed=seed), drawn(size, seed=seed)
    turn = torch.linalg.qr(drawn(size, size, seed=seed + 1))[0]
    norm = spectral_norm(linear(matrix), x).value
    same = (linear(matrix.mT), lambda x: turn @ (matrix @ (turn @ x)))
    for f in same:
        assert spectral_norm(f, x).value == pytest.approx(norm, rel=3e-6)
    factor = 10.0**scale
    scaled = spectral_norm(lambda x: matrix @ x * factor, x)
    assert scaled.value == pytest.approx(norm * factor, rel=3e-6, abs=0)
    assert scaled.notes == ()


@pytest.mark.parametrize("scale", [1e-36, 1e-25, 1e25, 1e36])
@pytest.mark.parametrize("shape", [(70, 80), (5, 80), (80, 5), (1, 80)])
def test_scale_in_float32(scale: float, shape: tuple[int, int]) -> None:
    matrix = drawn(*shape, dtype=torch.float32)
    found = spectral_norm(lambda x: matrix @ x * scale, drawn(shape[1], dtype=torch.float32))
    expected = torch.linalg.matrix_norm(matrix.double(), 2).item() * scale
    assert found.value == pytest.approx(expected, rel=5e-6, abs=0) and found.notes == ()


def test_norm_above_all_of_float32() -> None:
    for shape in ((40, 80), (1, 80)):
        found = spectral_norm(linear(torch.full(shape, 3e38)), torch.zeros(80))
        assert found.value == pytest.approx(3e38 * math.prod(shape) ** 0.5, rel=5e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(70, 80), (80, 5)])
def test_half_precision(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    matrix = drawn(*shape).to(dtype)
    found = spectral_norm(linear(matrix), drawn(shape[1]).to(dtype))
    expected = torch.linalg.matrix_norm(matrix.double(), 2).item()
    assert found.value == pytest.approx(expected, rel=torch.finfo(dtype).eps)
    assert found.notes == () and found.direction.dtype == dtype


def test_two_dtypes() -> None:
    matrix = drawn(70, 80)
    found = spectral_norm(lambda x: matrix @ x.double(), torch.zeros(80))
    expected = torch.linalg.matrix_norm(matrix, 2).item()
    assert found.value == pytest.approx(expected, rel=1e-6)
    assert found.notes == () and found.direction.dtype == torch.float32


def test_under_autocast() -> None:
    matrix = drawn(70, 80, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = spectral_norm(lambda x: (matrix @ x.sin()).float(), torch.zeros(80))
    expected = torch.linalg.matrix_norm(matrix.double(), 2).item()
    assert found.value == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("size", [2, 40])
def test_holomorphic_values_come_in_pairs(size: int) -> None:
    matrix = drawn(size, size, dtype=torch.complex128)
    x = drawn(size, dtype=torch.complex128)
    exact = torch.linalg.svdvals(matrix * x.cos())
    found = singular_values(lambda x: matrix @ x.sin(), x, 4)
    assert found.values == pytest.approx(exact[:2].repeat_interleave(2).tolist(), rel=1e-6)
    norm = spectral_norm(lambda x: matrix @ x.sin(), x)
    assert norm.value == pytest.approx(exact[0].item(), rel=1e-6)
    assert norm.direction.is_complex()


@pytest.mark.parametrize("size", [3, 70])
def test_complex_y_of_real_x_and_the_reverse(size: int) -> None:
    matrix = drawn(size, size, dtype=torch.complex128)
    parts = torch.cat([matrix.real, matrix.imag])
    norm = torch.linalg.matrix_norm(parts, 2).item()
    assert spectral_norm(lambda x: matrix @ x.to(matrix.dtype), drawn(size)).value == (
        pytest.approx(norm, rel=1e-6))  # fmt: skip
    reverse = spectral_norm(lambda z: (matrix.mT @ z).real, drawn(size, dtype=torch.complex128))
    wide = torch.cat([matrix.mT.real, -matrix.mT.imag], dim=1)
    assert reverse.value == pytest.approx(torch.linalg.matrix_norm(wide, 2).item(), rel=1e-6)


@pytest.mark.parametrize("size", [2, 50])
def test_structures_of_several_dtypes(size: int) -> None:
    x = {"a": drawn(size), "b": (drawn(size, dtype=torch.float32), drawn(size, 2, seed=1))}

    def f(x: Any) -> Any:
        a, (b, c) = x["a"], x["b"]
        return {"one": a * b.double(), "two": [c.sin() * a[:, None], torch.ones(3)], "left": 7}

    def flat(v: Tensor) -> Tensor:
        y = f({"a": v[:size], "b": (v[size : 2 * size], v[2 * size :].view(size, 2))})
        return torch.cat([y["one"], y["two"][0].flatten()])

    exact = dense(flat, torch.cat([x["a"], x["b"][0], x["b"][1].flatten()]))  # type: ignore[list-item]
    found = spectral_norm(f, x)
    assert found.value == pytest.approx(exact[0].item(), rel=1e-6)
    assert found.direction["b"][0].dtype == torch.float32
    assert found.direction["b"][1].shape == (size, 2)
    assert singular_values(f, x, 3).values == pytest.approx(exact[:3].tolist(), rel=1e-5)


def test_parameters_of_a_module() -> None:
    module = torch.nn.Linear(8, 9).to(DOUBLE)
    batch = drawn(10, 8)
    found = spectral_norm(lambda module: module(batch), module)
    exact = torch.linalg.matrix_norm(torch.cat([batch, batch.new_ones(10, 1)], 1), 2)
    assert found.value == pytest.approx(exact.item(), rel=1e-6)
    assert set(found.direction) == {"weight", "bias"}
    assert all(each.grad is None for each in module.parameters())


@pytest.mark.parametrize("size", [50, 80])
def test_f_runs_once_and_products_are_counted(size: int) -> None:
    f, count = counting(lambda x: x * torch.linspace(1, 2, size, dtype=DOUBLE))
    found = spectral_norm(f, torch.zeros(size, dtype=DOUBLE))
    assert found.value == pytest.approx(2, rel=1e-6)
    assert (count.forward, count.forward_mode) == (1, 0)
    if size <= SMALL:
        assert count.backward == found.products == size
    else:  # J·v does not run the gate's backward: one Jᵀ·u, kept as a function of u, gives them all
        assert count.backward == found.products // 2 + 1


def test_nothing_of_x_is_touched() -> None:
    x = drawn(70).requires_grad_()
    x.grad = torch.ones_like(x)
    called: list[Tensor] = []
    x.register_hook(called.append)
    before = x.detach().clone()
    random = torch.get_rng_state()
    spectral_norm(torch.sin, x)
    singular_values(torch.sin, x, 2)
    assert not called and torch.equal(x.grad, torch.ones_like(x)) and torch.equal(x, before)
    assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_grad(mode: Any) -> None:
    with mode():
        x = drawn(70)
        found = spectral_norm(torch.sin, x)
    assert found.value == pytest.approx(x.cos().abs().max().item(), rel=1e-6)
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()


class Detaching(Once):
    """Its backward can be differentiated, in part: to half of what is right."""

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return (cotangent / 2 + cotangent.detach() / 2) * x.cos()


class Neither(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:
        return cotangent


class Contradictory(Once):
    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return 2 * tangent


Shape = tuple[int, int]
WIDTHS = pytest.mark.parametrize("shape", [(80, 70), (70, 5)])


@WIDTHS
@pytest.mark.parametrize("function", [Once, Detaching])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_forward_mode_where_backward_cannot_be_differentiated(
    shape: Shape, function: Any, scale: float
) -> None:
    matrix, x = drawn(*shape) * scale, drawn(shape[1])
    calls: list[int] = []

    def f(x: Tensor) -> Tensor:
        calls.append(1)
        x = torch.cat([x[:1].detach(), x[1:]])  # of the first column nothing can be told
        return matrix @ function.apply(x)

    found = spectral_norm(f, x)
    exact = torch.linalg.matrix_norm((drawn(*shape) * x.cos())[:, 1:], 2).item() * scale
    assert found.value == pytest.approx(exact, rel=1e-6, abs=0)
    (note,) = found.notes
    assert note.startswith("J·v was taken in forward mode, with a run of f each, since the ")
    assert len(calls) > 2


def test_a_row_for_every_entry_of_y_needs_no_second_derivative() -> None:
    x = drawn(90)
    for function in (Once, Neither):
        found = spectral_norm(lambda x: function.apply(x)[:5], x)  # noqa: B023
        assert found.notes == () and found.products == 5


@WIDTHS
def test_neither_way_to_products(shape: Shape) -> None:
    matrix = drawn(*shape)
    with pytest.raises(RuntimeError, match="`f` can neither be differentiated twice nor in"):
        spectral_norm(lambda x: matrix @ Neither.apply(x), drawn(shape[1]))


@WIDTHS
def test_backward_and_forward_mode_that_do_not_agree(shape: Shape) -> None:
    matrix = drawn(*shape)
    found = spectral_norm(lambda x: matrix @ Contradictory.apply(x), drawn(shape[1]))
    assert "Backward and forward mode of f do not agree" in found.notes[-1]


def test_random_f() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(80, 80), torch.nn.Dropout(0.5)).to(DOUBLE)
    torch.manual_seed(3)
    with pytest.warns(UserWarning, match="`f` is random"):
        found = spectral_norm(module, drawn(80))
    torch.manual_seed(3)
    kept = module(torch.zeros(80, dtype=DOUBLE)) / module[0].bias
    exact = torch.linalg.matrix_norm(kept.detach()[:, None] * module[0].weight.detach(), 2)
    assert found.value == pytest.approx(exact.item(), rel=1e-6) and "is random" in found.notes[0]


def test_f_that_keeps_state() -> None:
    module = torch.nn.BatchNorm1d(10).to(DOUBLE)
    with pytest.warns(UserWarning, match="`f` keeps state"):
        found = spectral_norm(module, drawn(9, 10))
    assert "keeps state" in found.notes[0]
    assert module.num_batches_tracked == 1


@pytest.mark.parametrize("shape", [(70, 80), (5, 80), (80, 5)])
def test_zero(shape: Shape) -> None:
    zeros = torch.zeros(shape, dtype=DOUBLE)
    found = spectral_norm(linear(zeros), drawn(shape[1]))
    assert (found.value, found.error, found.direction) == (0.0, 0.0, None)
    assert singular_values(linear(zeros), drawn(shape[1]), 2).values == (0.0, 0.0)


@pytest.mark.parametrize("shape", [(70, 80), (5, 80), (80, 5), (1, 80), (80, 1)])
@pytest.mark.parametrize("entry", [math.inf, math.nan])
def test_derivative_that_is_not_finite(shape: Shape, entry: float) -> None:
    factor = torch.ones(shape[0], dtype=DOUBLE)
    factor[-1] = entry
    matrix = drawn(*shape)

    def f(x: Tensor) -> Tensor:
        y = matrix @ x
        return torch.where(factor.isfinite(), y, y.detach()) + Spoilt.apply(y, factor)

    found = spectral_norm(f, drawn(shape[1]))
    assert math.isnan(found.value) and found.direction is None
    assert math.isnan(singular_values(f, drawn(shape[1]), 1).values[0])


class Spoilt(torch.autograd.Function):
    """Zeros, with a derivative that is not finite."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(factor)
        return torch.zeros_like(x)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        (factor,) = ctx.saved_tensors
        return cotangent * factor, None


def test_not_converged_is_said() -> None:
    size = 1500
    x = torch.zeros(size, dtype=DOUBLE)

    def f(x: Tensor) -> Tensor:
        return 2 * x - torch.nn.functional.pad(x[1:] + 0, (0, 1)) - torch.nn.functional.pad(
            x[:-1], (1, 0))  # fmt: skip

    with pytest.warns(UserWarning, match="did not converge to 1e-10"):
        found = spectral_norm(f, x, rtol=1e-10)
    exact = 4 * math.sin(size * math.pi / (2 * (size + 1))) ** 2
    assert found.products == 600 and "did not converge" in found.notes[0]
    assert 0 < exact - found.value <= 10 * found.error


def test_who_ends_it_is_not_warned() -> None:
    found = spectral_norm(linear(drawn(90, 90)), drawn(90), proceed=lambda: False)
    assert found.products == 2 and found.error > 0 and found.notes == ()


def test_memory_of_a_convolution() -> None:
    """J would take 3.2 GB."""
    kernel = torch.tensor([[[1.0, 2.0, 1.0]]], dtype=DOUBLE)
    x = torch.zeros(1, 1, 20_000, dtype=DOUBLE)

    def f(x: Tensor) -> Tensor:
        return torch.nn.functional.conv1d(x, kernel, padding=1)

    with memory.peak("cpu") as peak:
        found = spectral_norm(f, x, rtol=1e-3)
    assert found.value == pytest.approx(4, rel=1e-3)
    assert peak.size is None or peak.size < 200e6


def test_distance_of_two_functions() -> None:
    for rows, columns in ((70, 80), (5, 80), (80, 5)):
        one, other, x = drawn(rows, columns), drawn(rows, columns, seed=1), drawn(columns)
        found = jacobian_distance(linear(one), linear(other), x)
        exact = torch.linalg.matrix_norm(one - other, 2).item()
        assert found.value == pytest.approx(exact, rel=1e-6)
        assert found.direction.shape == (columns,)
        assert jacobian_distance(linear(one), linear(one), x).value == 0
        near = jacobian_distance(linear(one), linear(one * (1 + 1e-6)), x)
        assert near.value == pytest.approx(1e-6 * torch.linalg.matrix_norm(one, 2).item(), rel=1e-4)


def test_distance_of_random_functions_is_with_the_same_numbers() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(80, 80), torch.nn.Dropout(0.5)).to(DOUBLE)
    with pytest.warns(UserWarning, match="`f` is random"):
        found = jacobian_distance(module, module, drawn(80))
    assert found.value == 0


def test_distance_below_rounding_ends() -> None:
    one, other, x = drawn(90, 90), drawn(90, 90, seed=1), drawn(90)
    found = jacobian_distance(lambda x: one @ (other @ x), lambda x: (one @ other) @ x, x)
    assert 0 < found.value < 1e-12 and found.notes == ()


def test_distance_counts_both_and_names_the_second() -> None:
    matrix, x = drawn(80, 80), drawn(80)
    found = jacobian_distance(
        lambda x: matrix @ x, lambda x: 2 * (matrix @ Once.apply(x)), torch.zeros_like(x)
    )
    assert found.value == pytest.approx(torch.linalg.matrix_norm(matrix, 2).item(), rel=1e-6)
    assert any("a run of g each" in note for note in found.notes)
    with pytest.raises(ValueError, match="`g` returned 79 real numbers, and `f` 80"):
        jacobian_distance(linear(matrix), lambda x: x[:79], x)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (4, 6), (6, 4), (3, 40), (40, 3)])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_decomposed(shape: Shape, scale: float) -> None:
    matrix = drawn(*shape)
    values, v = decomposed(matrix * scale)
    torch.testing.assert_close(values / scale, torch.linalg.svdvals(matrix))
    assert v is not None
    torch.testing.assert_close(torch.linalg.vector_norm(matrix @ v), values[0] / scale)


def test_decomposed_of_what_is_zero_or_not_finite() -> None:
    values, v = decomposed(torch.zeros(2, 3))
    assert values.tolist() == [0, 0] and v is None
    for entry in (math.nan, math.inf, -math.inf):
        values, v = decomposed(torch.tensor([[1.0, entry]]))
        assert values.isnan().all() and v is None


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    **{f"rtol {rtol}": (lambda rtol=rtol: spectral_norm(torch.sin, torch.ones(2), rtol=rtol),
                        ValueError, "`rtol` is ")
       for rtol in (0, 1, -1e-6, math.nan, math.inf, "1e-6", None, True)},
    **{f"k {k}": (lambda k=k: singular_values(torch.sin, torch.ones(2), k),
                  ValueError, r"`k` is .* from 1 to 2\.")
       for k in (0, 3, -1, 1.0, "1", None, True)},
    "cut off": (lambda: spectral_norm(lambda x: x.detach() + 1, torch.ones(2)),
                ValueError, "`f` returned a tensor that is cut off from `x`"),
    "of weights alone": (
        lambda: spectral_norm(lambda x: torch.ones(70, requires_grad=True) * 2, torch.ones(80)),
        ValueError, "`f` returned a tensor that is cut off from `x`"),
    "NaN": (lambda: spectral_norm(lambda x: x.log(), -torch.ones(2)),
            ValueError, "`f` returned NaN in 2 of 2"),
    "no tensor": (lambda: spectral_norm(lambda x: 2.0, torch.ones(2)),
                  TypeError, "`f` returned a float"),
    "no function": (lambda: spectral_norm(torch.ones(2), torch.ones(2)),  # type: ignore[arg-type]
                    TypeError, "`f` is "),
    "integer x": (lambda: singular_values(torch.sin, torch.arange(2), 1),
                  TypeError, "`x` has dtype"),
    "an empty x": (lambda: spectral_norm(torch.sin, torch.ones(0)), ValueError, "`x` has no ent"),
    "an empty y": (lambda: jacobian_distance(torch.sin, lambda x: x[:0], torch.ones(2)),
                   ValueError, "`g` returned a y that has no entries"),
    "no x": (lambda: jacobian_distance(torch.sin, torch.cos, []), ValueError, "`x` holds no"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_argument_is_named(wrong: str) -> None:
    call, kind, message = WRONG[wrong]
    with pytest.raises(kind, match=message):
        call()
