"""The scripts that stand alone: run, each gives the engine's values and gradients."""

from __future__ import annotations

import contextlib
import functools
import io
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

import explorer
from explorer import heads
from explorer.engine.gradients import gradients
from explorer.engine.plan import PATHS
from explorer.experiment import Experiment
from explorer.functions import FUNCTIONS
from explorer.heads import FINITE, HEADS, Head
from explorer.scripts import NoScript
from explorer.scripts.layout import NAMES, WIDTH, defined
from tests.functions.test_every_path import CASES, Values, setting

ROOT = Path(explorer.__file__).parent.parent
CASE_IDS = ["-".join([name, *(value for _, value in values)]) for name, values in CASES]
every_case = pytest.mark.parametrize("name, values", CASES, ids=CASE_IDS)


@cache
def experiment(name: str, values: Values, dtype: str = "float64") -> Experiment:
    """A small one with heads of every kind: of the registry, its own, typed, of x, and sets."""
    small = setting(name, values, dtype)
    own = tuple(head.name for head in FUNCTIONS[name].heads)
    first = "x[0]" if FUNCTIONS[name].inputs(small) > 1 else "x"
    return Experiment(
        name,
        # Forward mode takes a pass for every parameter of the trunk.
        size=1 if name == "digits_trunk" else small.size,
        parameters=small.parameters,
        dtype=dtype,
        heads=("sin", "square", *own, f"sum(y) * {first}", "powers(2)", "random(2)", "sums(2)"),
        seed=3,
    )


def run(text: str) -> dict[str, Any]:
    """The names of a script after it ran, with what it printed as `printed`."""
    found: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(text, "script.py", "exec"), found)
    return {**found, "printed": said.getvalue()}


@cache
def reference(name: str, values: Values, dtype: str) -> dict[str, tuple[float, Tensor]]:
    return of_the_engine(experiment(name, values, dtype))


def of_the_engine(chosen: Experiment) -> dict[str, tuple[float, Tensor]]:
    """By head its value, and its gradient as the engine's naive path has it."""
    problem = chosen.described.build(chosen.setting)
    y = problem.f(problem.x).detach()
    own = {
        key: Head(key, key, g, FINITE, takes_x=g.__code__.co_argcount == 2)
        for key, g in problem.heads.items()
    }
    built = heads.build(chosen.heads, own, y, problem.x, chosen.seed)
    calls = [functools.partial(_call, g) for g in built.values()]
    found = gradients(problem.f, calls, problem.x, path="retain_graph").gradients
    zs = [float(g(y, problem.x)) for g in built.values()]
    return dict(zip(built, zip(zs, found, strict=True), strict=True))


def _call(g: Head, y: Tensor, x: Tensor) -> Tensor:
    return g(y, x)


def check(text: str, expected: dict[str, tuple[float, Tensor]], rtol: float = 1e-10) -> None:
    """The script's heads, values and gradients are those; small against the rest is no error."""
    found = run(text)
    assert list(found["heads"]) == list(expected)
    largest = max(float(gradient.norm()) for _, gradient in expected.values())
    for key, value, gradient in zip(
        found["heads"], found["values"], found["gradients"], strict=True
    ):
        z, exact = expected[key]
        assert value == pytest.approx(z, rel=rtol, abs=rtol)
        assert gradient.dtype == exact.dtype and gradient.shape == exact.shape
        assert not gradient.requires_grad
        assert float((gradient - exact).norm()) <= rtol * max(float(exact.norm()), 1e-3 * largest)
        assert f"{key}: z = {value}, " in found["printed"]


@pytest.mark.parametrize("path", PATHS)
@every_case
def test_script_gives_the_gradients_of_the_engine(name: str, values: Values, path: str) -> None:
    expected = reference(name, values, "float64")
    check(explorer.script(experiment(name, values), path), expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_script_in_float32(name: str) -> None:
    text = explorer.script(experiment(name, (), "float32"), "reuse")
    check(text, reference(name, (), "float32"), rtol=2e-4)


@pytest.mark.parametrize("derivative", ["torch", "fast"])
@pytest.mark.parametrize("path", PATHS)
def test_script_of_the_trace_has_the_closed_form(path: str, derivative: str) -> None:
    found = run(
        explorer.script(
            Experiment(size=50, heads=("square", "sqrt"), parameters={"derivative": derivative}),
            path,
        )
    )
    y, dy = 49 + math.cos(50), -50 * math.sin(50)
    assert [each.item() for each in found["gradients"]] == pytest.approx(
        [2 * y * dy, dy / (2 * math.sqrt(y))], rel=1e-11
    )


def test_a_script_runs_where_there_is_no_explorer(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(explorer.script(Experiment("robot_arm", size=3), "reuse"))
    # -I: neither the folder nor PYTHONPATH, by which it could be found.
    code = f"import sys, runpy; sys.modules['explorer'] = None; runpy.run_path({str(file)!r})"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        head.name for head in FUNCTIONS["robot_arm"].heads
    ]


LONG = " + ".join(f"{number}.25 * sin(y)**{number}" for number in range(1, 20))
NESTED = "sin(" * 28 + "y" + ")" * 28


def test_scripts_are_clean_code(tmp_path: Path) -> None:
    chosen = [experiment(*case) for case in CASES]
    chosen += [
        Experiment(heads=(LONG, NESTED, "softplus(y) + pi")),
        Experiment("ode", heads=("random(3)",), compile=True),
        Experiment("tanh_network", size=100, heads=("y[0]**x[0]",)),
    ]
    for number, each in enumerate(chosen):
        for path in PATHS:
            text = explorer.script(each, path)
            assert "explorer" not in text
            assert max(map(len, text.splitlines())) <= WIDTH
            (tmp_path / f"script_{number}_{path}.py").write_text(text)
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--config", "pyproject.toml"]
    done = subprocess.run([*command, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@every_case
def test_no_function_defines_a_name_that_the_script_needs(name: str, values: Values) -> None:
    code = FUNCTIONS[name].code(setting(name, values))
    names = defined((*code.parts, code.heads_text))
    assert {"x", "f"} <= names
    assert names & NAMES <= {"x", "f", "generator"}


def test_long_heads_are_folded_and_have_a_short_name() -> None:
    chosen = Experiment(heads=(LONG, NESTED), size=3)
    expected = of_the_engine(chosen)
    numbered = {f"head {k}": each for k, each in enumerate(expected.values(), 1)}
    check(explorer.script(chosen, "reuse"), numbered)


@pytest.mark.parametrize("path", ["low_rank_vjp", "batched_vjp", "reuse"])
def test_a_head_that_is_not_finite_leaves_the_others_alone(path: str) -> None:
    start = "exp(-1000 * y) * 1e-200 + y[0]"  # overflows
    chosen = Experiment("tanh_network", size=4, heads=("sin", "sqrt", start, "0 * y"))
    found = run(explorer.script(chosen, path))
    expected = [gradient for _, gradient in of_the_engine(chosen).values()]
    assert not found["gradients"][1].isfinite().any()
    for place in (0, 3):
        torch.testing.assert_close(found["gradients"][place], expected[place], rtol=1e-10, atol=0)


def test_large_gradients_are_printed_by_their_norm() -> None:
    found = run(explorer.script(Experiment("tanh_network", size=20, heads=("sin",)), "reuse"))
    norm = found["gradients"][0].norm().item()
    assert found["printed"] == f"sin: z = {found['values'][0]}, |dz/dx| = {norm}\n"


def test_auto_is_the_path_that_was_taken_or_is_predicted() -> None:
    chosen = Experiment("tanh_network", size=5, heads=("sin", "square"))
    assert "auto, which is low_rank_vjp here" in explorer.script(chosen, "auto")
    assert "auto, which is reuse here" in explorer.script(Experiment(), "auto")
    forward = explorer.script(chosen, "auto", taken="jvp")
    assert "auto, which is jvp here" in forward and "torch.func.jvp" in forward


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`path` is reus\. Did you mean reuse\? Allowed: "):
        explorer.script(Experiment(), "reus")


def test_f_is_compiled_where_that_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Experiment("tanh_network", size=4, heads=("sin", "square"), compile=True)
    # All of torch.compile but the C++ compiler, which takes long and need not be there.
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    check(explorer.script(chosen, "reuse"), of_the_engine(chosen))
    for path in PATHS:
        text = explorer.script(chosen, path)
        assert ("f = torch.compile(f)" in text) == (path != "jvp")
        assert "is_grads_batched" not in text  # vmap does not go through it


# A person's own functions.

X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
RATE = 0.5
weights = torch.eye(3, dtype=torch.float64)


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """What a test registers is gone after it."""
    functions, own_heads = dict(FUNCTIONS), dict(HEADS)
    yield
    for registry, before in ((FUNCTIONS, functions), (HEADS, own_heads)):
        registry.clear()
        registry.update(before)


def helper(x: Tensor) -> Tensor:
    return math.sqrt(2) * x


def start(size: int = 4, seed: int = 0) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


OWN_PATHS = [path for path in PATHS if path != "auto"]


@pytest.mark.parametrize("path", OWN_PATHS)
def test_own_function_stands_alone_with_what_it_calls(path: str) -> None:
    @explorer.function(x=X)
    def decay(x: Tensor, power: int = 2, kind: Literal["sin", "cos"] = "cos") -> Tensor:
        """y = exp(−rate·x^power)"""
        wave = getattr(torch, kind)
        return torch.exp(-RATE * helper(x) ** power) * wave(x)

    @explorer.head
    def roughness(y: Tensor, x: Tensor) -> Tensor:
        return (y.diff() / x.diff()).square().sum()

    chosen = Experiment(
        "decay",
        parameters={"power": 3, "kind": "sin"},
        heads=("roughness", "y[0] * x[1]", "norm", "random(2)"),
    )
    check(explorer.script(chosen, path), of_the_engine(chosen))


@pytest.mark.parametrize("path", ["reuse", "jvp", "low_rank_vjp", "batched_vjp"])
def test_own_x_is_made_and_may_be_a_matrix(path: str) -> None:
    def matrix(size: int = 2) -> Tensor:
        return torch.arange(1.0, size * size + 1, dtype=torch.float64).view(size, size)

    def f(x: Tensor, size: int = 2) -> Tensor:
        return x @ x * size

    explorer.own.register(f, matrix, [lambda y: y.trace(), torch.sum], "squared")
    chosen = Experiment("squared", size=3, heads=("g1", "sum", "sin"))
    check(explorer.script(chosen, path), of_the_engine(chosen))


def _refused(f: Callable[..., Any], x: Any, gs: list[Any], sentence: str) -> None:
    name = explorer.own.register(f, x, gs, "refused").name
    with pytest.raises(NoScript, match=sentence):
        explorer.script(Experiment(name), "reuse")


def test_what_cannot_stand_alone_is_said() -> None:
    def with_tensor(x: Tensor) -> Tensor:
        return weights @ x

    def with_explorer(x: Tensor) -> Tensor:
        return explorer.matrix_exp(x.diag()).sum()

    @functools.cache
    def cached(x: Tensor) -> Tensor:
        return x

    @torch.enable_grad()
    def decorated(x: Tensor) -> Tensor:
        return x

    made: dict[str, Any] = {}
    exec("def typed(x):\n    return x", made)
    _refused(with_tensor, X, [], "uses weights, a Tensor that only this session has")
    _refused(with_explorer, X, [], "it uses explorer of explorer")
    _refused(made["typed"], X, [], "the source of typed is not to be had")
    _refused(torch.nn.Linear(3, 3), X, [], "it is a Linear, and a script takes a function's source")
    _refused(helper, torch.ones(100), [], "has 100 entries, which only this session has")
    _refused(helper, {"a": X}, [], "is dict; a script takes one real tensor")
    _refused(helper, X, [lambda y: (weights @ y).sum()], "The head g1 cannot stand alone")
    _refused(cached, X, [], "it is a _lru_cache_wrapper")
    _refused(decorated, X, [], r"decorated is decorated with 'torch\.enable_grad\(\)'")


def test_a_head_that_would_take_a_name_of_the_function_is_refused() -> None:
    @explorer.head
    def shapes(y: Tensor) -> Tensor:
        return y.sum()

    assert "def shapes(y" in explorer.script(Experiment(heads=("shapes",)), "reuse")
    chosen = Experiment("digits_trunk", size=1, heads=("shapes",))
    with pytest.raises(NoScript, match="The head shapes cannot stand in the script: shapes is"):
        explorer.script(chosen, "reuse")


def test_own_x_that_is_a_number_is_that_number() -> None:
    explorer.own.register(helper, 0.1, ["y"], "scaled")
    assert "torch.tensor(0.1, " in explorer.script(Experiment("scaled"), "reuse")
