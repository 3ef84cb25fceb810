"""The scripts that stand alone: run, each gives the engine's values and gradients."""

from __future__ import annotations

import contextlib
import io
import math
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import explorer
from explorer import expression, heads
from explorer.engine.gradients import gradients
from explorer.engine.plan import PATHS
from explorer.execute import execute
from explorer.experiment import Experiment
from explorer.expression import ExpressionError
from explorer.fields import FieldError
from explorer.functions import FUNCTIONS
from explorer.heads import FINITE, HEADS, Head
from explorer.result import Result
from explorer.scripts.layout import NAMES, WIDTH
from tests.functions.test_every_path import CASES, Values, setting

EXPRESSION = "sum(y) * x[0] + norm(y)"
CASE_IDS = ["-".join([name, *(value for _, value in values)]) for name, values in CASES]
every_case = pytest.mark.parametrize("name, values", CASES, ids=CASE_IDS)


@cache
def experiment(name: str, values: Values, dtype: str = "float64") -> Experiment:
    """A small one with heads of every kind: defined everywhere, its own, typed, of x, and sets."""
    small = setting(name, values, dtype)
    own = tuple(head.name for head in FUNCTIONS[name].heads)
    typed = EXPRESSION if FUNCTIONS[name].inputs(small) > 1 else "sum(y) * x + norm(y)"
    return Experiment(
        name,
        # Forward mode takes a pass for every parameter of the trunk.
        size=1 if name == "digits_trunk" else small.size,
        parameters=small.parameters,
        dtype=dtype,
        heads=("sin", "square", *own, typed, "powers(2)", "random(2)", "sums(2)"),
        seed=3,
    )


def run(text: str) -> dict[str, Any]:
    """The names of a script after it ran, with what it printed as `printed`."""
    found: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(text, "script.py", "exec"), found)
    return {**found, "printed": said.getvalue()}


@cache
def reference(name: str, values: Values, dtype: str = "float64") -> dict[str, tuple[float, Tensor]]:
    """By head its value and its gradient as the engine's naive path has it."""
    chosen = experiment(name, values, dtype)
    problem = chosen.described.build(chosen.setting)
    y = problem.f(problem.x).detach()
    own = {key: Head(key, key, g, FINITE) for key, g in problem.heads.items()}
    built = heads.build(chosen.heads, own, y, problem.x, chosen.seed)
    calls = [(lambda y, x, g=g: g(y, x)) for g in built.values()]
    found = gradients(problem.f, calls, problem.x, path="retain_graph").gradients
    zs = [float(g(y, problem.x)) for g in built.values()]
    return dict(zip(built, zip(zs, found, strict=True), strict=True))


def check(text: str, name: str, values: Values, dtype: str, rtol: float) -> None:
    found, expected = run(text), reference(name, values, dtype)
    assert list(found["heads"]) == list(expected)
    largest = max(float(gradient.norm()) for _, gradient in expected.values())
    for key, value, gradient in zip(found["heads"], found["values"], found["gradients"], strict=True):
        z, exact = expected[key]
        assert value == pytest.approx(z, rel=rtol, abs=rtol)
        assert gradient.dtype == exact.dtype and gradient.shape == exact.shape
        assert not gradient.requires_grad
        assert float((gradient - exact).norm()) <= rtol * max(float(exact.norm()), 1e-3 * largest)
        assert f"{key}: z = {value}, " in found["printed"]


@pytest.mark.parametrize("path", PATHS)
@every_case
def test_script_gives_the_gradients_of_the_engine(name: str, values: Values, path: str) -> None:
    text = explorer.script(experiment(name, values), path)
    check(text, name, values, "float64", 1e-10)


@every_case
def test_script_in_float32(name: str, values: Values) -> None:
    check(explorer.script(experiment(name, values, "float32"), "reuse"), name, values, "float32", 2e-4)
