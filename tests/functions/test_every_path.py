"""Every function on every path: the gradients of autograd, in the passes that were promised.

Each function at a small size, with the default parameters and with every other value
of every choice, and with its own heads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.engine.gradients import Gradients, gradients
from explorer.engine.plan import PATHS, Sizes, expected_passes
from explorer.experiment import DTYPES, Experiment
from explorer.functions import FUNCTIONS
from explorer.functions.description import Problem, Setting
from explorer.heads import HEADS

CASES = [
    (name, values)
    for name, described in FUNCTIONS.items()
    for values in (
        (),
        *(
            ((field.name, value),)
            for field in described.parameters
            for value in field.choices
            if value != field.default
        ),
    )
]
every_case = pytest.mark.parametrize(
    "name, values",
    CASES,
    ids=["-".join([name, *(value for _, value in values)]) for name, values in CASES],
)
every_path = pytest.mark.parametrize("path", PATHS)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)

Values = tuple[tuple[str, Any], ...]

UNABLE: dict[tuple[str, str], str] = {}
"""(function, path) that the function's operators cannot take, with words of what the engine says:
in the notes of the plan for `batched_vjp`, which then goes one after the other, and in the error
for `jvp`."""

ROUNDINGS = 100.0
"""How many roundings, each of eps, an f of this size may add up in y, dy/dx and the cotangents."""

SIZE = FEW = 4
"""The size, where that is allowed, and the most that another whole number counts: steps, images."""

SMALLER = {"digits_trunk": 2}
"""The size of those whose x counts the square of it: the path jvp takes a pass for each entry."""


def setting(name: str, values: Values, dtype: str = "float64", few: bool = True) -> Setting:
    described = FUNCTIONS[name]
    given = {
        field.name: min(field.default, max(int(field.minimum), FEW))
        for field in described.parameters
        if few and field.kind == "integer" and not field.optional
    }
    given |= {"function": name, "dtype": dtype}
    given["size"] = max(SMALLER.get(name, SIZE), int(described.size.minimum))
    return Experiment.from_values({**given, **dict(values)}).setting


def build(name: str, values: Values, dtype: str = "float64", few: bool = True) -> Problem:
    return FUNCTIONS[name].build(setting(name, values, dtype, few))


def heads(problem: Problem) -> list[Callable[[Tensor], Tensor]]:
    """Two that are defined at every y, and those that only this function has."""
    return [HEADS["sin"], HEADS["square"], *problem.heads.values()]


@cache
def jacobian(name: str, values: Values) -> tuple[Tensor, Tensor]:
    """(y, dy/dx as a matrix) in float64, by torch."""
    problem = build(name, values)
    found: Callable[..., Tensor] = torch.autograd.functional.jacobian
    y = problem.f(problem.x)
    return y, found(problem.f, problem.x).reshape(y.numel(), -1)


@cache
def reference(name: str, values: Values) -> list[tuple[Tensor, float]]:
    """For each head its gradient in float64 as the naive code has it, and ‖J‖₂·‖c‖."""
    problem = build(name, values)
    y, matrix = jacobian(name, values)
    norm = torch.linalg.matrix_norm(matrix, 2)
    assert norm > 0
    found = []
    for head in heads(problem):
        x, at = problem.x.clone().requires_grad_(), y.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(head(problem.f(x)), x)
        (cotangent,) = torch.autograd.grad(head(at), at)
        found.append((gradient, float(norm * cotangent.norm())))
    return found


@every_case
@every_path
@every_dtype
def test_gradients_are_those_of_autograd(
    name: str, values: Values, path: str, dtype: str
) -> None:
    problem = build(name, values, dtype)
    before, chosen = problem.x.clone(), heads(problem)
    run = partial(gradients, problem.f, chosen, problem.x, path=path)
    if path == "jvp" and (name, path) in UNABLE:
        with pytest.raises(RuntimeError, match=UNABLE[name, path]):
            run()
        return
    found = run()
    limit = ROUNDINGS * torch.finfo(problem.x.dtype).eps
    for gradient, (expected, scale) in zip(found.gradients, reference(name, values), strict=True):
        assert gradient.dtype == problem.x.dtype and gradient.shape == problem.x.shape
        assert float((gradient.double() - expected).norm()) <= limit * scale
    assert torch.equal(problem.x, before)
    _check_passes(found, path, len(chosen), problem, UNABLE.get((name, path)))


def _check_passes(
    found: Gradients, path: str, count: int, problem: Problem, note: str | None
) -> None:
    outputs, inputs = problem.f(problem.x).numel(), problem.x.numel()
    taken = found.plan.path if path == "auto" else path
    sizes = Sizes(count, outputs, inputs, found.plan.sizes.rank)
    if path != "auto":
        assert found.passes == expected_passes(path, sizes)
    elif taken == "jvp":
        assert found.passes.forward_mode == inputs
    else:
        assert found.passes.forward == 1 and found.passes.backward <= min(count, outputs)
    # A note says that f is random, or that it could not be taken as the path has it.
    if note is None:
        assert not found.plan.notes
    else:
        assert any(note in each for each in found.plan.notes)


@every_case
@every_dtype
def test_sizes_and_heads_are_as_described(name: str, values: Values, dtype: str) -> None:
    described, chosen = FUNCTIONS[name], setting(name, values, dtype)
    problem = described.build(chosen)
    y = problem.f(problem.x)
    assert problem.x.numel() == described.inputs(chosen)
    assert y.numel() == described.outputs(chosen)
    assert y.dtype == problem.x.dtype == getattr(torch, dtype)
    assert torch.equal(y, problem.f(problem.x))
    assert list(problem.heads) == [head.name for head in described.heads]
    assert not problem.heads.keys() & HEADS.keys()
    for head in problem.heads.values():
        for at in (y, y.double()):  # the exact gradients are taken in float64
            z = head(at)
            assert z.shape == () and z.dtype == at.dtype and z.isfinite()
    own = {head.name for head in described.heads}
    assert set(described.default_heads) <= HEADS.keys() | own


@every_case
def test_gradient_is_that_of_finite_differences(name: str, values: Values) -> None:
    problem = build(name, values)
    assert torch.autograd.gradcheck(problem.f, problem.x.clone().requires_grad_())
    y = problem.f(problem.x)
    for head in problem.heads.values():
        assert torch.autograd.gradcheck(head, y.clone().requires_grad_())


EXACT = {
    *("heat_equation", "integral", "matrix_exp_entries", "matrix_exp_trace", "ode", "robot_arm"),
}
"""The functions that have an exact gradient for their default choices."""


def test_closed_forms_are_where_they_are_expected() -> None:
    assert {name for name in FUNCTIONS if build(name, ()).exact is not None} == EXACT


@pytest.mark.parametrize("name", sorted(EXACT))
@every_dtype
def test_exact_gradient_is_met_to_the_precision(name: str, dtype: str) -> None:
    problem = build(name, (), dtype, few=False)  # as many steps as there are by default
    assert problem.exact is not None
    found: Callable[..., Tensor] = torch.autograd.functional.jacobian
    matrix, y = found(problem.f, problem.x), problem.f(problem.x)
    for value, exact in ((y, problem.exact.value), (matrix, problem.exact.jacobian)):
        assert exact.dtype == torch.float64 and exact.device.type == "cpu"
        assert exact.shape == value.shape
        difference = (value.double() - exact).norm()
        assert difference <= ROUNDINGS * torch.finfo(value.dtype).eps * exact.norm()
