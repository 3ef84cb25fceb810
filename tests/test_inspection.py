"""What a run shows of its Jacobians, held against closed forms and dense linear algebra."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import explorer
from explorer.engine.gradients import Gradients, gradients
from explorer.events import Progress
from explorer.execute import execute
from explorer.functions import FUNCTIONS
from explorer.functions.description import Problem
from explorer.heads import HEADS, Head
from explorer.result import Array, Result
from tests.once import Once
from tests.runs import experiment, run, seen

SMALL: dict[str, Any] = {"repeats": 1, "paths": "retain_graph,reuse"}
NETWORK: dict[str, Any] = {
    **SMALL, "function": "tanh_network", "size": 9, "outputs": 6, "heads": "square,exp",
}  # fmt: skip


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """The functions that a test registers are gone after it."""
    before = dict(FUNCTIONS)
    yield
    FUNCTIONS.clear()
    FUNCTIONS.update(before)


def problem(values: dict[str, Any]) -> Problem:
    chosen = experiment(**values)
    return FUNCTIONS[chosen.function].build(chosen.setting)


def dense(of: Problem) -> Tensor:
    """dy/dx as a matrix, by torch's own Jacobian."""
    jacobian: Callable[..., Tensor] = torch.autograd.functional.jacobian
    return jacobian(of.f, of.x).reshape(-1, of.x.numel())


def eigenvalues(z: Callable[[Tensor], Tensor], x: Tensor) -> list[float]:
    """The smallest and the largest of the Hessian, by torch's own."""
    hessian: Callable[..., Tensor] = torch.autograd.functional.hessian
    found = torch.linalg.eigvalsh(hessian(z, x).reshape(x.numel(), x.numel()))
    return [found[0].item(), found[-1].item()]


# The norms.


def test_all_there_is_of_a_dense_jacobian() -> None:
    found = run(**NETWORK).jacobian
    _, values, rights = torch.linalg.svd(dense(problem(NETWORK)), full_matrices=False)
    assert found.singular_values == pytest.approx(values.tolist(), rel=1e-12)
    assert found.spectral_norm == found.singular_values[0]
    assert found.condition == pytest.approx((values[0] / values[-1]).item(), rel=1e-10)
    assert isinstance(found.direction, tuple) and len(found.direction) == 9
    assert abs(torch.tensor(found.direction, dtype=torch.float64) @ rights[0]) > 1 - 1e-12
    assert max(found.direction, key=abs) > 0
    assert (found.error, found.products) == (0.0, None)


def test_twelve_singular_values_are_listed_and_all_count_for_the_condition() -> None:
    values = NETWORK | {"size": 30, "outputs": 20}
    found = run(**values).jacobian
    every = torch.linalg.svdvals(dense(problem(values)))
    assert found.singular_values == pytest.approx(every[:12].tolist(), rel=1e-10)
    assert found.condition == pytest.approx((every[0] / every[-1]).item(), rel=1e-8)
    assert isinstance(found.direction, Array) and len(found.direction.first) == 16
    assert found.direction.norm == pytest.approx(1.0, rel=1e-12)


def test_robot_arm_has_the_norm_of_its_analytic_jacobian() -> None:
    values = {**SMALL, "function": "robot_arm", "size": 12}
    exact = problem(values).exact
    assert exact is not None
    norms = torch.linalg.svdvals(exact.jacobian.reshape(-1, exact.jacobian.shape[-1]))
    found = run(**values).jacobian
    assert found.singular_values == pytest.approx(norms.tolist(), rel=1e-9)


def without_room(values: dict[str, Any]) -> Result:
    """A run with the memory for f and next to none for dy/dx."""
    chosen = experiment(**values)
    need = int(chosen.described.cost(chosen.setting).memory_bytes)
    *_, result = execute(chosen, memory_limit=need + 1000)
    assert isinstance(result, Result)
    return result


def test_norm_of_a_jacobian_that_does_not_fit_is_taken_without_it() -> None:
    values = NETWORK | {"size": 150, "outputs": 100, "gain": 2.0}
    result = without_room(values)
    assert result.paths["reuse"].note.startswith("not run: dy/dx has 100 × 150 entries")
    found, matrix = result.jacobian, dense(problem(values))
    norm = torch.linalg.svdvals(matrix)[0].item()
    assert found.method == "matrix-free, from products with dy/dx alone"
    assert found.spectral_norm == pytest.approx(norm, rel=1e-6)
    assert found.error is not None and found.error < 1e-6 * norm
    assert found.products is not None and 0 < found.products <= 200
    assert (found.condition, found.source) == (None, "")
    assert found.singular_values == (found.spectral_norm,)
    y = problem(values).f(problem(values).x)
    for name, cotangent in {"square": 2 * y, "exp": y.exp()}.items():
        own, heads = cotangent.norm().item(), found.heads[name]
        assert heads.composite == pytest.approx((cotangent @ matrix).norm().item(), rel=1e-10)
        assert heads.bound == pytest.approx(own * norm, rel=1e-6)


def test_products_are_with_the_matrix_where_one_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.spectra.decomposition_seconds", lambda m, n: math.inf)
    values = NETWORK | {"size": 100, "outputs": 80}
    result = run(**values)
    found, norm = result.jacobian, torch.linalg.svdvals(dense(problem(values)))[0].item()
    assert found.method == "matrix-free, from products with the Jacobian that reuse formed"
    assert found.spectral_norm == pytest.approx(norm, rel=1e-6)
    assert found.source == "reuse"


def test_f_that_is_not_differentiable_twice_is_taken_in_forward_mode_and_told() -> None:
    start = torch.linspace(0.1, 1.5, 200, dtype=torch.float64)

    @explorer.function(x=start)
    def stiff(x: Tensor) -> Tensor:
        apply: Callable[[Tensor], Tensor] = Once.apply
        return apply(x)

    result = without_room({"function": "stiff", "repeats": 1, "size": 200, "heads": "square"})
    assert result.jacobian.spectral_norm == pytest.approx(math.cos(0.1), rel=1e-6)
    assert any("forward mode" in note for note in result.notes)


def test_heads_that_no_path_gave_have_no_norms_without_a_matrix() -> None:
    result = without_room(NETWORK | {"size": 150, "outputs": 100, "paths": "reuse"})
    assert result.jacobian.spectral_norm is not None
    assert result.jacobian.heads == {} and result.jacobian.agreement == {}


def test_composite_is_of_a_path_that_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(*given: Any, path: str) -> Gradients:
        found = gradients(*given, path=path)
        wrong = tuple(each / 2 for each in found.gradients)
        return replace(found, gradients=wrong) if path == "reuse" else found

    expected = run(**NETWORK).jacobian.heads
    monkeypatch.setattr("explorer.execute.gradients", half)
    for name, found in run(**NETWORK).jacobian.heads.items():
        assert found.composite == pytest.approx(expected[name].composite, rel=1e-12)


def test_own_f_that_is_constant_or_not_finite() -> None:
    start = torch.tensor([-1.0, 2.0], dtype=torch.float64)

    @explorer.function(x=start)
    def constant(x: Tensor) -> Tensor:
        return 0 * x

    @explorer.function(x=torch.tensor([0.0, 2.0], dtype=torch.float64))
    def root(x: Tensor) -> Tensor:  # with a value at 0 and no derivative
        return x.sqrt()

    asked = {**SMALL, "heads": "square", "curvature": True, "size": 2}
    nothing = run(function="constant", **asked).jacobian
    assert (nothing.spectral_norm, nothing.singular_values) == (0.0, (0.0, 0.0))
    assert nothing.direction is None and nothing.condition == math.inf
    assert nothing.heads["square"].bound == 0
    result = run(function="root", **asked)
    broken = result.jacobian
    assert broken.spectral_norm is not None and math.isnan(broken.spectral_norm)
    assert broken.direction is broken.condition is None and broken.curvature == {}
    json.loads(result.to_json(), parse_constant=pytest.fail)


# The agreement of all heads together.


def test_agreement_is_of_the_whole_jacobian() -> None:
    result = run(**NETWORK | {"dtype": "float32", "heads": "square,exp,mean"}, full=True)
    rows: dict[str, list[tuple[float, ...]]] = {"retain_graph": [], "reuse": []}
    for head in result.heads.values():
        for path, every in rows.items():
            given = head.gradient[path]
            assert isinstance(given, tuple)
            every.append(given)
    naive, other = (torch.tensor(every, dtype=torch.float64) for every in rows.values())
    difference, whole = (torch.linalg.svdvals(each)[0] for each in (other - naive, naive))
    found = result.jacobian.agreement
    assert found["retain_graph"] == 0
    assert found["reuse"] == pytest.approx((difference / whole).item(), rel=1e-6)


def test_agreement_leaves_out_heads_outside_their_domain() -> None:
    values = {**SMALL, "function": "tanh_network", "size": 6}
    some = run(**values, heads="sqrt,mean").jacobian.agreement["reuse"]
    assert some == run(**values, heads="mean").heads["mean"].agreement["reuse"]
    assert run(**values, heads="sqrt").jacobian.agreement == {}


# The curvature.


def test_curvature_of_matrix_exp_trace_is_its_closed_form() -> None:
    n, x = 30, 0.7
    result = run(**SMALL, size=n, x=x, heads="square,sqrt", curvature=True)
    y, first, second = n - 1 + math.cos(n * x), -n * math.sin(n * x), -n * n * math.cos(n * x)
    expected = {
        "square": 2 * (first**2 + y * second),
        "sqrt": second / (2 * y**0.5) - first**2 / (4 * y**1.5),
    }
    for name, found in result.jacobian.curvature.items():
        assert found.largest == found.smallest == pytest.approx(expected[name], rel=1e-8)
    assert list(result.jacobian.curvature) == ["square", "sqrt"]


@pytest.mark.parametrize("size", [9, 80])
def test_curvature_is_of_the_hessian_through_f(size: int) -> None:
    values = NETWORK | {"size": size, "heads": "square,y[0]*x[1]", "curvature": True}
    found, of = run(**values).jacobian.curvature, problem(values)
    exact = {
        "square": eigenvalues(lambda x: of.f(x).square().sum(), of.x),
        "y[0]*x[1]": eigenvalues(lambda x: of.f(x)[0] * x[1], of.x),
    }
    for (name, each), given in zip(exact.items(), found.values(), strict=True):
        scale = max(map(abs, each))
        assert [given.smallest, given.largest] == pytest.approx(each, abs=1e-6 * scale), name


def test_curvature_of_many_heads_is_cut_with_a_note() -> None:
    result = run(**NETWORK | {"heads": "random(20)", "curvature": True})
    assert len(result.jacobian.curvature) == 16
    assert any(note.startswith("Curvature of the first 16 of 20 heads") for note in result.notes)
    assert run(**NETWORK).jacobian.curvature == {}


def test_head_without_second_derivatives_is_told_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def apart(y: Tensor) -> Tensor:  # torch has no second derivative of it, nor forward mode
        return torch.nn.functional.pdist(y.reshape(3, 2)).square().sum()

    monkeypatch.setitem(HEADS, "apart", Head("apart", "distances squared", apart))
    result = run(**NETWORK | {"heads": "apart,square", "curvature": True})
    assert result.status == "done" and list(result.jacobian.curvature) == ["square"]
    (note,) = (note for note in result.notes if note.startswith("No curvature of apart: "))
    assert "pdist" in note


# The norms against size.


def test_norms_by_size_of_matrix_exp_trace_are_its_closed_form() -> None:
    x = 0.7
    found = run(**SMALL, size=40, x=x, heads="square,sqrt", sizes=True).jacobian
    sizes = [each.size for each in found.by_size]
    assert len(sizes) == 8 and (sizes[0], sizes[-1]) == (2, 40) and sorted(sizes) == sizes
    for each in found.by_size:
        n = each.size
        y, slope = n - 1 + math.cos(n * x), abs(n * math.sin(n * x))
        assert each.spectral_norm == pytest.approx(slope, rel=1e-8)
        assert each.heads["square"] == pytest.approx(2 * y * slope, rel=1e-8)
        assert each.heads["sqrt"] == pytest.approx(slope / (2 * math.sqrt(y)), rel=1e-8)
    assert found.by_size[-1].spectral_norm == found.spectral_norm


def test_norms_by_size_are_those_of_the_smaller_f() -> None:
    values = NETWORK | {"size": 90, "outputs": None, "heads": "square", "sizes": True}
    for each in run(**values).jacobian.by_size:
        of = problem(values | {"size": each.size})
        matrix, y = dense(of), of.f(of.x)
        assert (each.outputs, each.inputs) == matrix.shape
        norm = torch.linalg.svdvals(matrix)[0].item()
        assert each.spectral_norm == pytest.approx(norm, rel=1e-6)
        assert each.heads["square"] == pytest.approx((2 * y @ matrix).norm().item(), rel=1e-9)


def test_heads_that_a_smaller_y_has_no_entry_for_are_left_out_there() -> None:
    values = NETWORK | {"size": 20, "outputs": None, "heads": "mean,y[10],random(9)"}
    found = run(**values, sizes=True).jacobian.by_size
    for each in found[:-1]:
        names = list(each.heads)
        assert names[0] == "mean" and ("y[10]" in names) == (each.size > 10)
    assert all(len(each.heads) <= 6 for each in found)


def test_a_head_without_a_value_has_no_norm_by_size() -> None:
    values = {"function": "integral", "size": 52, "heads": "sqrt(y),log(-y)", "sizes": True}
    found = run(**SMALL | values).jacobian.by_size
    assert len(found) > 2
    assert all(list(each.heads) == ["sqrt(y)"] for each in found)


def test_norms_of_the_heat_equation_approach_those_of_the_finest_grid() -> None:
    values = {**SMALL, "function": "heat_equation", "size": 60, "heads": "square", "sizes": True}
    found = run(**values).jacobian.by_size
    for each in found:
        matrix = dense(problem(values | {"size": each.size}))
        norm = torch.linalg.svdvals(matrix)[0].item()
        assert each.spectral_norm == pytest.approx(norm, rel=1e-9)
    far = [abs(each.spectral_norm / found[-1].spectral_norm - 1) for each in found]
    assert far[0] > 0.01 > far[-2]


def test_where_there_are_no_sizes_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(**SMALL, size=2, sizes=True)
    assert "No norms against size: matrix_exp_trace has no size below 2." in result.notes
    monkeypatch.setattr("explorer.execute.compiled", lambda f, x: (f, 0.1, []))
    result = run(**SMALL, size=9, sizes=True, compile=True)
    assert "No norms against size: f would be compiled anew for each size." in result.notes
    assert result.jacobian.by_size == ()


# While it runs.


def test_what_is_asked_for_comes_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.execute.PARTIAL_EVERY", -1.0)
    asked = experiment(**SMALL, size=20, heads="square,sqrt", curvature=True, sizes=True)
    results = [each.jacobian for each in seen(asked) if isinstance(each, Result)]
    assert results[0].method == "not yet computed"
    curved = [len(each.curvature) for each in results]
    sizes = [len(each.by_size) for each in results]
    for counts, last in ((curved, 2), (sizes, 8)):
        assert sorted(counts) == counts and set(counts) == set(range(last + 1))


def test_what_had_finished_is_shown_before_a_long_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.execute._Run._remaining", lambda run: 60.0)
    events = list(seen(experiment(**SMALL, size=20, heads="square", curvature=True, sizes=True)))
    texts = [each.text if isinstance(each, Progress) else "" for each in events]
    timed = events[texts.index("curvature of square") - 1]
    assert isinstance(timed, Result)
    assert all(path.seconds is not None for path in timed.paths.values())
    known = events[texts.index("norms at size 5") - 1]
    assert isinstance(known, Result) and "square" in known.jacobian.curvature
    assert [each.size for each in known.jacobian.by_size] == [2, 3, 4]


def test_budget_cuts_what_is_asked_for_with_a_note() -> None:
    result = run(**SMALL, size=20, heads="square", curvature=True, sizes=True, budget=1e-6)
    assert result.jacobian.curvature == {} and result.jacobian.by_size == ()
    assert "The budget ended the curvature before square." in result.notes
    assert "The budget ended the norms against size before size 2." in result.notes
