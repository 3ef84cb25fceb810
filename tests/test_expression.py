"""A typed head is read as mathematics means it, or refused in a sentence with its column."""

import ast
import copy
import math
import pickle
import sys
import unicodedata
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from explorer.expression import (
    FUNCTIONS,
    GRAMMAR,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_EXPONENT,
    MAX_INDEX,
    MAX_NODES,
    Expression,
    ExpressionError,
    read,
    split,
)
from explorer.fields import FieldError

Array = NDArray[np.float64]

Y = torch.tensor([0.5, -0.3, 0.8], dtype=torch.float64)
X = torch.tensor([0.9, 0.2, -0.7], dtype=torch.float64)


def refusal(text: object) -> ExpressionError:
    """The error of a text that is no expression, its form checked."""
    with pytest.raises(ExpressionError) as caught:
        read(text)  # type: ignore[arg-type]
    check_refusal(text, caught.value)
    return caught.value


def check_refusal(text: object, error: ExpressionError) -> None:
    message = str(error)
    assert message.isprintable() and message.endswith(".") and len(message) < 500
    if isinstance(text, str):
        assert error.column is not None and 1 <= error.column <= max(len(text), 1)
        assert message == f"Column {error.column}: {error.sentence}"


# Values.

HALF = math.exp(0.5)
# By hand, at Y and X.
VALUES: list[tuple[str, float]] = [
    ("y", 1.0),
    ("y**2 + sin(y)", 0.98 + math.sin(0.5) - math.sin(0.3) + math.sin(0.8)),
    ("norm(y) / (1 + sum(y))", math.sqrt(0.98) / 2),
    ("y[0] * y[1]", -0.15),
    ("y[-1]", 0.8),
    ("y[1:3]", 0.5),
    ("y[::2]", 1.3),
    ("y[:-1]", 0.2),
    ("(y**2)[1]", 0.09),
    ("logsumexp(y)", math.log(HALF + math.exp(-0.3) + math.exp(0.8))),
    ("-y**2", -0.98),
    ("(-y)**2", 0.98),
    ("2**-1 * y", 0.5),
    ("y[0]**-1", 2.0),
    ("y[0]**2**3", 0.5**8),
    ("(y[0]**2)**3", 0.5**6),
    ("y[0] - 1 - 2", -2.5),
    ("y[0] - (1 - 2)", 1.5),
    ("8 / y[0] / 2", 8.0),
    ("8 / (y[0] / 2)", 32.0),
    ("8 / y[0] * 2", 32.0),
    ("-y[0] * 2", -1.0),
    ("--y", 1.0),
    ("+y", 1.0),
    ("y - -x", 1.4),
    ("x[0] * y[0]", 0.45),
    ("2**y[0]", math.sqrt(2)),
    ("y[0]**x[0]", 0.5**0.9),
    ("y[0]**y[0]", math.sqrt(0.5)),
    ("y[0]**0", 1.0),
    ("y[0]**(1/2)", math.sqrt(0.5)),
    ("y[1]**3", -0.027),
    ("e**y[0]", HALF),
    ("2*pi*y[0]", math.pi),
    ("1e1 * y[0] + .5 + 1.", 6.5),
    ("y[0] + 1 / 3 - 1 / 3", 0.5),
    ("abs(y)", 1.6),
    ("relu(y)", 1.3),
    ("softplus(y)", math.log1p(HALF) + math.log1p(math.exp(-0.3)) + math.log1p(math.exp(0.8))),
    ("sigmoid(y[0])", 1 / (1 + math.exp(-0.5))),
    ("erf(y[0])", math.erf(0.5)),
    ("log1p(y[0]) + expm1(y[0])", math.log(1.5) + HALF - 1),
    ("sqrt(y[0])", math.sqrt(0.5)),
    ("prod(y)", -0.12),
    ("mean(y)", 1 / 3),
    ("min(y) * max(y)", -0.24),
    ("var(y)", 0.98 / 3 - 1 / 9),
    ("std(y)**2", 0.98 / 3 - 1 / 9),
    ("dot(y, x)", 0.45 - 0.06 - 0.56),
    ("y * sum(x)", 0.4),
    ("y*0", 0.0),
    ("sqrt(2) * sqrt(2) * y", 2.0),
    ("y + sin(pi)", 1.0),
    ("y + " * 99 + "y", 100.0),
    ("\ty\n +\r\n y ", 2.0),
    ("sin(\ny\n)[0]", math.sin(0.5)),
    ("y[0]**(3 - 1)", 0.25),
    ("y + 0**(1 - 1)", 4.0),
]


@pytest.mark.parametrize("text, expected", VALUES)
def test_value_is_that_of_the_mathematics(text: str, expected: float) -> None:
    z = read(text)(Y, X)
    assert z.shape == () and z.dtype == torch.float64
    assert z.item() == pytest.approx(expected, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("text", ["y[1, 0]", "y[:, 0]", "y[1]", "y[0:1, 1]", "y[1][0]", "y[0, :]"])
def test_index_of_a_matrix_is_that_of_numpy(text: str) -> None:
    y = torch.arange(6.0).reshape(3, 2)
    expected = eval(text, {"y": y.numpy()})
    assert np.array_equal(read(text).value(y).numpy(), expected)


@pytest.mark.parametrize("name", [name for name, each in FUNCTIONS.items() if not each.reduces])
@pytest.mark.parametrize("at", [0.3, 0.9, 5.0, -5.0])
def test_function_of_a_number_is_that_of_an_entry(name: str, at: float) -> None:
    one = torch.ones((), dtype=torch.float64)
    number, entry = (read(f"{name}({text}) * y")(one) for text in (at, f"{at} * y"))
    assert torch.equal(number.nan_to_num(9.0), entry.nan_to_num(9.0))


@pytest.mark.parametrize(
    "text, value",
    [("y / 0", math.inf), ("1 / 0 - y", math.inf), ("asin(2) * y", math.nan),
     ("0**-1 * y", math.inf), ("(-8)**0.5 + y", math.nan), ("9**9**9 * y", math.inf),
     ("exp(999) - y", math.inf),
     ("1e300 * y", math.inf), ("1e300 / y", math.inf), ("1e-300 * y", 0.0)],
)  # fmt: skip
def test_what_is_no_finite_number_follows_the_floating_arithmetic_of_y(
    text: str, value: float
) -> None:
    assert read(text)(torch.ones(())).item() == pytest.approx(value, nan_ok=True)


def test_softplus_is_exact_where_torchs_own_is_not() -> None:
    y = torch.tensor(21.0, dtype=torch.float64)
    assert read("softplus(y) - y")(y).item() == pytest.approx(math.log1p(math.exp(-21)), rel=1e-5)


def test_number_over_a_tensor_is_rounded_once() -> None:
    y = torch.tensor(1e-310, dtype=torch.float64)
    assert read("1e-5 / y")(y).item() == 1e-5 / y.item()
    every = torch.arange(1, 1000, dtype=torch.float64)
    assert torch.equal(read("3 / y").value(every), torch.tensor(3.0).double() / every)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_takes_every_shape(
    name: str, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    y = torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    text = f"{name}(y, y)" if FUNCTIONS[name].arity == 2 else f"{name}(y)"
    value = read(text).value(y)
    assert value.shape == (() if FUNCTIONS[name].reduces else y.shape)
    assert value.dtype == dtype and value.isfinite().all()
    assert read(text)(y).shape == ()


def test_value_has_the_dtype_of_y() -> None:
    y = torch.ones(3)
    for x in (X, X.float(), torch.tensor(0.5, dtype=torch.float64)):
        z = read("y * x + 1 / y + pi + sqrt(2)")(y, x)
        assert z.dtype == torch.float32


def test_what_is_no_scalar_is_summed_and_shown_so() -> None:
    entries, scalar = read("y**2 + sin(y)"), read("sum(y)")
    assert entries.value(Y).shape == (3,) and scalar.value(Y).shape == ()
    assert entries(Y).item() == pytest.approx(entries.value(Y).sum().item())
    assert entries.summed_formula == "Σ(y² + sin y)"


# Gradients.

SMOOTH = [
    "y**2 + sin(y)", "norm(y) / (1 + sum(y)**2)", "y[0] * y[1]", "logsumexp(y)", "y**x", "2**y",
    "y**y", "softplus(y)", "1 / y", "dot(y, sin(y))", "prod(y)", "std(y) + var(y)", "max(y)*y",
    "min(y * x)", "mean(tanh(y)) * x", "sqrt(y)[1:] / y[0]", "erf(y) + sigmoid(y) - log1p(y)",
    "abs(y - 1)", "relu(y)", "atan(y) * acos(y / 9) + asin(y / 9)", "cosh(y) - sinh(y) + tan(y)",
    "expm1(y) + exp(-y**2 / 2) / sqrt(2 * pi)", "x * log(y)", "y**3 - y**-1 + y**0.5",
]  # fmt: skip
POSITIVE = torch.tensor([0.6, 1.7, 0.4], dtype=torch.float64)


@pytest.mark.parametrize("text", SMOOTH)
def test_gradient_is_that_of_finite_differences(text: str) -> None:
    expression = read(text)
    y = POSITIVE.clone().requires_grad_()
    x = POSITIVE.sqrt().requires_grad_(expression.uses_x)
    assert torch.autograd.gradcheck(
        expression, (y, x), check_forward_ad=True, check_batched_grad=True
    )
    assert torch.autograd.gradgradcheck(expression, (y, x))


@pytest.mark.parametrize("text", SMOOTH)
def test_vmap_is_a_loop(text: str) -> None:
    ys = POSITIVE + torch.arange(4.0).double()[:, None] / 10
    found = torch.func.vmap(lambda y: read(text)(y, POSITIVE))(ys)
    one = torch.stack([read(text)(y, POSITIVE) for y in ys])
    assert torch.allclose(found, one, rtol=1e-13)


@pytest.mark.parametrize(
    "text, at, slope",
    [
        *(("abs(y)", 0.0, 0.0), ("norm(y)", 0.0, 0.0), ("softplus(y)", 0.0, 0.5)),
        *(("y**0", 0.0, 0.0), ("y**1", 0.0, 1.0), ("y**2", 0.0, 0.0), ("y**3", -2.0, 12.0)),
        *(("y**(3 - 1)", 0.0, 0.0), ("y**(1 - 1)", 0.0, 0.0)),
    ],
)
def test_gradient_at_a_special_point(text: str, at: float, slope: float) -> None:
    y = torch.tensor([at], dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(read(text)(y), y)
    assert found.item() == slope


# The same expression, written and computed a second time without torch and without ast.


class Unsafe(Exception):
    """A value that rounding changes too much for a comparison."""


class Case(NamedTuple):
    """An expression as text that needs no brackets around it, and its value by NumPy."""

    text: str
    value: Callable[[Array, Array], Array]
    uses_y: bool = False


def away_from(low: float, high: float, function: Callable[[Array], Array]) -> Callable[..., Array]:
    def checked(v: Array) -> Array:
        if np.any(v < low) or np.any(v > high):
            raise Unsafe
        return function(v)

    return checked


wide = np.vectorize(math.erf, otypes=[np.float64])
ENTRYWISE: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs,
    "acos": away_from(-0.99, 0.99, np.arccos),
    "asin": away_from(-0.99, 0.99, np.arcsin),
    "atan": np.arctan,
    "cos": np.cos,
    "cosh": away_from(-6, 6, np.cosh),
    "erf": wide,
    "exp": away_from(-6, 6, np.exp),
    "expm1": away_from(-6, 6, np.expm1),
    "log": away_from(1e-3, 1e3, np.log),
    "log1p": away_from(-0.99, 1e3, np.log1p),
    "relu": lambda v: np.where(v > 0, v, 0.0),
    "sigmoid": away_from(-30, 30, lambda v: 1 / (1 + np.exp(-v))),
    "sin": np.sin,
    "sinh": away_from(-6, 6, np.sinh),
    "softplus": away_from(-30, 30, lambda v: np.log(1 + np.exp(v))),
    "sqrt": away_from(1e-3, 1e3, np.sqrt),
    "tan": away_from(-1.5, 1.5, np.tan),
    "tanh": np.tanh,
}
REDUCED: dict[str, Callable[[Array], Array]] = {
    "logsumexp": away_from(-6, 6, lambda v: np.log(np.sum(np.exp(v)))),
    "max": np.max,
    "mean": np.mean,
    "min": np.min,
    "norm": lambda v: np.sqrt(np.sum(v * v)),
    "prod": np.prod,
    "std": np.std,
    "sum": np.sum,
    "var": np.var,
}


def test_every_function_has_its_reference_here() -> None:
    assert {*ENTRYWISE, *REDUCED, "dot"} == set(FUNCTIONS)
    assert set(REDUCED) | {"dot"} == {name for name, each in FUNCTIONS.items() if each.reduces}
    assert all(name in GRAMMAR for name in FUNCTIONS)


def safe(value: Array) -> Array:
    if not np.all(np.isfinite(value)) or np.any(np.abs(value) > 1e3):
        raise Unsafe
    return value


def leaf(text: str, value: Callable[[Array, Array], Array], uses_y: bool = False) -> Case:
    return Case(text, value, uses_y)


NUMBERS = ["0", "1", "2", "3", "0.5", ".25", "1.5e1", "1E-1", "10.", "2e0"]
LEAVES = st.one_of(
    st.just(leaf("y", lambda y, x: y, True)),
    st.just(leaf("x", lambda y, x: x)),
    st.just(leaf("pi", lambda y, x: np.float64(math.pi))),
    st.just(leaf("e", lambda y, x: np.float64(math.e))),
    st.sampled_from(NUMBERS).map(lambda t: leaf(t, lambda y, x: np.float64(t))),
    st.sampled_from([0, 1, 2, -1, -3]).map(lambda i: leaf(f"y[{i}]", lambda y, x: y[i], True)),
    st.sampled_from([0, -2]).map(lambda i: leaf(f"x[{i}]", lambda y, x: x[i])),
)


def spaced(draw: st.DrawFn, *parts: str) -> str:
    return "".join(part + draw(st.sampled_from(["", "", " ", "  "])) for part in parts)


@st.composite
def larger(draw: st.DrawFn, inner: st.SearchStrategy[Case]) -> Case:
    """One operation more; every operand stands in brackets, or where none are needed."""
    kind = draw(st.sampled_from(["+", "-", "*", "/", "**", "minus", "call", "reduce", "chain"]))
    a = draw(inner)
    if kind == "minus":
        return Case(spaced(draw, "(", "-", a.text, ")"), lambda y, x: -a.value(y, x), a.uses_y)
    if kind == "call":
        name = draw(st.sampled_from(sorted(ENTRYWISE)))
        return Case(
            spaced(draw, name, "(", a.text, ")"),
            lambda y, x: safe(ENTRYWISE[name](a.value(y, x))),
            a.uses_y,
        )
    if kind == "reduce":
        assume("y" in a.text or "x" in a.text)
        name = draw(st.sampled_from(sorted(REDUCED)))
        return Case(
            spaced(draw, name, "(", a.text, ")"),
            lambda y, x: safe(REDUCED[name](a.value(y, x))),
            a.uses_y,
        )
    if kind == "**":
        exponent = draw(st.sampled_from([2, 3, -1]))
        return Case(
            spaced(draw, "((", a.text, ")", "**", str(exponent), ")"),
            lambda y, x: safe(power(a.value(y, x), exponent)),
            a.uses_y,
        )
    b = draw(inner)
    if kind == "chain":  # by precedence and from the left, without brackets
        c = draw(inner)
        return Case(
            spaced(draw, "(", a.text, "-", b.text, "*", c.text, "-", a.text, ")"),
            lambda y, x: safe(
                a.value(y, x) - b.value(y, x) * c.value(y, x) - a.value(y, x)
            ),
            a.uses_y or b.uses_y or c.uses_y,
        )
    return Case(
        spaced(draw, "(", a.text, kind, b.text, ")"),
        lambda y, x: safe(combine(kind, a.value(y, x), b.value(y, x))),
        a.uses_y or b.uses_y,
    )


def power(v: Array, exponent: int) -> Array:
    if np.any(np.abs(v) < 1e-3):
        raise Unsafe
    return np.power(v, float(exponent))


def combine(sign: str, a: Array, b: Array) -> Array:
    if sign == "/" and np.any(np.abs(b) < 1e-3):
        raise Unsafe
    return {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[sign](a, b)


CASES = st.recursive(LEAVES, larger, max_leaves=12)
ENTRIES = st.lists(st.integers(-20, 20).map(lambda i: i / 10), min_size=3, max_size=3)


@settings(max_examples=200, deadline=None)
@given(CASES, ENTRIES, ENTRIES)
def test_value_is_that_of_numpy(case: Case, y: list[float], x: list[float]) -> None:
    assume(case.uses_y and len(case.text) <= MAX_CHARACTERS)
    try:
        expected = case.value(np.array(y), np.array(x))
    except Unsafe:
        assume(False)
    try:
        expression = read(case.text)
    except ExpressionError as error:
        assert "characters" in str(error)  # with the usual spaces
        return
    found = expression.value(*(torch.tensor(each, dtype=torch.float64) for each in (y, x)))
    assert found.shape == np.shape(expected)
    assert np.allclose(found.numpy(), expected, rtol=1e-7, atol=1e-7)
    again = read(expression.text)
    assert again == expression and again.formula == expression.formula
    assert ast.dump(again._tree) == ast.dump(expression._tree)


# The code that a script has for it.


def computed(code: str, y: Tensor, x: Tensor) -> Tensor:
    known = {"torch": torch, "F": torch.nn.functional, "math": math, "y": y, "x": x}
    found: Tensor = eval(code, known)
    return found


def check_code(expression: Expression, y: Tensor, x: Tensor) -> None:
    """The code gives the value and the gradient of the expression."""
    y, x = y.requires_grad_(), x.requires_grad_()
    found = computed(expression.code(y.ndim, x.ndim), y, x)
    expected = expression(y, x)
    assert found.shape == () and found.dtype == expected.dtype
    gradients = [
        torch.autograd.grad(z, (y, x), materialize_grads=True) for z in (found, expected)
    ]
    for a, b in zip((found, *gradients[0]), (expected, *gradients[1]), strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)


@settings(max_examples=100, deadline=None)
@given(CASES, ENTRIES, ENTRIES)
def test_code_is_the_expression(case: Case, y: list[float], x: list[float]) -> None:
    assume(case.uses_y and len(case.text) <= MAX_CHARACTERS)
    try:
        case.value(np.array(y), np.array(x))
        expression = read(case.text)
    except (Unsafe, ExpressionError):
        assume(False)
    check_code(expression, *(torch.tensor(each, dtype=torch.float64) for each in (y, x)))


@pytest.mark.parametrize(
    "text, code",
    [
        ("y**2 + sin(y)", "(y**2 + torch.sin(y)).sum()"),
        ("norm(y) / (1 + sum(y))", "torch.linalg.vector_norm(y) / (1 + torch.sum(y))"),
        ("y[0] * x[2]", "y[0] * x[2]"),
        ("y[0:2]", "y[0:2].sum()"),
        ("2 * pi * y[0]", "2 * math.pi * y[0]"),
        ("logsumexp(2*y)", "torch.logsumexp((2 * y).flatten(), 0)"),
        ("dot(y + 1, x)", "torch.sum((y + 1) * x)"),
        ("softplus(y[0])", "F.softplus(y[0], threshold=40)"),
        # What Python's numbers refuse, or give otherwise than torch.
        ("sin(2) + y[0]", "torch.sin(y.new_tensor(2)) + y[0]"),
        ("1 / 0 * y[0]", "y.new_tensor(1) / 0 * y[0]"),
        ("(-2)**0.5 + y[0]", "y.new_tensor(-2)**0.5 + y[0]"),
        ("10**400 * y[0]", "y.new_tensor(10)**400 * y[0]"),
        ("10**300 * y[0]", "y.new_tensor(10)**300 * y[0]"),
        ("0**-1 + y[0]", "y.new_tensor(0)**-1 + y[0]"),
        ("max(2) * y[0]", "torch.amax(y.new_tensor(2)) * y[0]"),
    ],
)
def test_code_reads_as_a_person_writes_it(text: str, code: str) -> None:
    expression = read(text)
    assert expression.code(1, 1) == code
    check_code(expression, Y.clone(), X.clone())


@pytest.mark.parametrize("shape", [(), (2, 3)])
@pytest.mark.parametrize("text", ["y", "-y", "y**2 + sin(y)", "mean(y)", "std(y) * y"])
def test_code_sums_where_y_is_not_one_number(text: str, shape: tuple[int, ...]) -> None:
    expression = read(text)
    y = torch.arange(1.0, 1.0 + math.prod(shape), dtype=torch.float64).view(shape)
    check_code(expression, y, X.clone())
    many = computed(expression.code(99, 99), y, X)  # where the dimensions are not known
    assert torch.equal(many, computed(expression.code(y.ndim, 1), y, X))
    assert (".sum()" in expression.code(y.ndim, 1)) == (bool(shape) and text != "mean(y)")


# Text that may be anything.

PIECES = st.sampled_from([
    *("y", "x", "pi", "e", "1", "2.5", "1e9", "0", "+", "-", "*", "/", "**", "(", ")", "[", "]"),
    *(",", ":", ".", " ", "sin", "norm(", "dot(", "y[0]", "j", "_", "if", "lambda", "not", "^"),
    *("\n", "\t", "#", "'", '"', "{", "}", "\\", ";", "=", "<", "2y", "0x", "ｙ", "²", "\x00", "é"),
])  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A case's text with some characters taken out, or others put in."""
    text = draw(CASES).text
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.integers(0, 2))
        text = text[:start] + draw(st.just("") | PIECES) + text[end:]
    return text


@settings(max_examples=400, deadline=None)
@given(st.text() | st.lists(PIECES, max_size=30).map("".join) | mutated())
@example("0x1for y")
@example("1if y else x")
@example("y(2)(3)[0]")
@example("\f y")
def test_any_text_is_an_expression_or_a_sentence(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            expression = read(text)
        except ExpressionError as error:
            check_refusal(text, error)
            return
    assert read(expression.text) == expression
    assert len(expression.text) <= MAX_CHARACTERS
    try:
        assert expression(Y, X).shape == ()
    except ExpressionError as error:
        assert error.column is None and str(error).endswith(".")


@given(st.text(alphabet="yx,([)] ", max_size=30))
def test_split_loses_nothing(text: str) -> None:
    parts = split(text)
    assert "".join(parts).replace(" ", "").replace(",", "") == text.replace(" ", "").replace(
        ",", ""
    )
    assert all(part == part.strip() for part in parts)


@pytest.mark.parametrize(
    "text, parts",
    [
        ("square,y[0,1]*2,max(y)", ["square", "y[0,1]*2", "max(y)"]),
        (" square , dot(y, x) ", ["square", "dot(y, x)"]),
        ("powers(16),sums(8)", ["powers(16)", "sums(8)"]),
        ("y", ["y"]),
        ("", [""]),
        ("square,,log", ["square", "", "log"]),
        ("log,sin(y,square", ["log", "sin(y,square"]),
        ("sin(y)),square", ["sin(y))", "square"]),
        ("(y],x,y", ["(y]", "x", "y"]),
    ],
)
def test_split_at_the_outer_commas(text: str, parts: list[str]) -> None:
    assert split(text) == parts


# What it is shown as.

SIGNS = ["+", "-", "*", "/", "**"]

SHOWN = [
    ("y**2 + sin(y)", "y² + sin y"),
    ("norm(y) / (1 + sum(y))", "‖y‖₂ / (1 + Σ y)"),
    ("y[0]*y[1]", "y₀·y₁"),
    ("y[-1]**2", "y₋₁²"),
    ("logsumexp(y)", "log Σ exp y"),
    ("-y**2", "−y²"),
    ("(-y)**2", "(−y)²"),
    ("-(y**2)", "−y²"),
    ("y/x/2", "(y / x) / 2"),
    ("y/x*2", "(y / x)·2"),
    ("y/(x*2)", "y / (x·2)"),
    ("y*(x/2)", "y·(x / 2)"),
    ("y*x/2", "y·x / 2"),
    ("sqrt(y)", "√y"),
    ("sqrt(y)*x", "√(y)·x"),
    ("sqrt(y*x)", "√(y·x)"),
    ("x*sqrt(y)", "x·√y"),
    ("sin(y)**2", "(sin y)²"),
    ("sin(y**2)", "sin(y²)"),
    ("sin(y)*x", "sin(y)·x"),
    ("sin(y*x)", "sin(y·x)"),
    ("sin(sin(y))", "sin(sin y)"),
    ("sum(y)**2", "(Σ y)²"),
    ("sum(y)+x", "(Σ y) + x"),
    ("sum(y+x)", "Σ(y + x)"),
    ("sum(y)*x", "(Σ y)·x"),
    ("1+sum(y)-x", "1 + (Σ y) − x"),
    ("1-(sum(y)-x)", "1 − ((Σ y) − x)"),
    ("mean(y)**2", "(mean(y))²"),
    ("prod(2*y) - 1", "(Π(2·y)) − 1"),
    ("y--x", "y − (−x)"),
    ("y+-x*2", "y + (−x·2)"),
    ("-(y*x)", "−(y·x)"),
    ("--y", "−(−y)"),
    ("+y", "y"),
    ("y-(x-1)", "y − (x − 1)"),
    ("y-x-1", "y − x − 1"),
    ("y**-1", "y⁻¹"),
    ("y**0.5", "y^0.5"),
    ("y**-x", "y^(−x)"),
    ("y**(1/2)", "y^(1 / 2)"),
    ("y**y**2", "y^(y²)"),
    ("(y**y)**2", "(y^y)²"),
    ("e**y", "e^y"),
    ("2*pi*y", "2·π·y"),
    ("(y**2)[0]", "(y²)₀"),
    ("y[0][1]", "(y₀)₁"),
    ("y[0,1]*y[:,0]", "y[0, 1]·y[:, 0]"),
    ("y[1:3:2]", "y[1:3:2]"),
    ("dot(y,2*x)", "⟨y, 2·x⟩"),
    ("abs(y)*x", "abs(y)·x"),
    ("abs(abs(y)*abs(x))", "abs(abs(y)·abs x)"),
    ("norm(norm(y)*y)**2", "‖‖y‖₂·y‖₂²"),
    ("1.5e20*y", "1.5e+20·y"),
    ("exp(-y**2/2)/sqrt(2*pi)", "exp(−y² / 2) / √(2·π)"),
    ("logsumexp(2*y)+1", "(log Σ exp(2·y)) + 1"),
]


@pytest.mark.parametrize("text, formula", SHOWN)
def test_formula_has_one_reading(text: str, formula: str) -> None:
    expression = read(text)
    assert expression.formula == formula
    assert expression.summed_formula == f"Σ({formula})"


def test_different_expressions_are_shown_differently() -> None:
    """All that two levels of operations make of y and 2."""
    texts = ["y", "2"]
    for _ in range(2):
        texts += [f"({a}){sign}({b})" for a in texts for b in texts for sign in SIGNS] + [
            f"{name}({a})" for a in texts for name in ("-", "sin", "sum", "sqrt", "abs", "norm")
        ]
    seen: dict[str, str] = {}
    for text in texts:
        try:
            expression = read(text)
        except ExpressionError:  # of a number alone
            continue
        assert seen.setdefault(expression.formula, expression.text) == expression.text
    assert len(seen) > 4000


@pytest.mark.parametrize(
    "text, canonical",
    [
        (" y**2+sin( y ) ", "y**2 + sin(y)"),
        ("((y))", "y"),
        ("y - (x - 1)", "y - (x - 1)"),
        ("(y - x) - 1", "y - x - 1"),
        ("y + (x + 1)", "y + (x + 1)"),
        ("(y**2)**3", "(y**2)**3"),
        ("y**(2**3)", "y**2**3"),
        ("(y**x)[1 , : ,2 :]", "(y**x)[1, :, 2:]"),
        ("y*2.0", "y * 2"),
        ("y*1e3", "y * 1000"),
        ("y*1E+20", "y * 1e+20"),
        ("y*123456789012345678901", "y * 1.2345678901234568e+20"),
        ("y*.1", "y * 0.1"),
        ("y*1e-999", "y * 0"),
    ],
)
def test_text_is_canonical(text: str, canonical: str) -> None:
    assert read(text).text == canonical
    assert read(canonical).text == canonical


def test_equal_where_the_text_is() -> None:
    one, same, other = read("y+x"), read(" y + x"), read("x+y")
    assert one == same and hash(one) == hash(same) and one != other
    assert one.uses_x and not read("y").uses_x
    assert repr(one) == "Expression(text='y + x')"


def test_survives_pickle_and_copy() -> None:
    expression = read("y" + " + y" * 99)
    for again in (pickle.loads(pickle.dumps(expression)), copy.deepcopy(expression)):
        assert type(again) is Expression and again == expression
        assert torch.equal(again(Y), expression(Y))
    error = pickle.loads(pickle.dumps(refusal("y +")))
    assert (str(error), error.column) == (str(refusal("y +")), 3)


# What is refused.

CANNOT = "cannot stand in an expression."

REFUSED: list[tuple[str, int, str]] = [
    ("", 1, "the expression is empty"),
    ("  \n", 1, "the expression is empty"),
    ("1 + sinn(y)", 5, "sinn is not a known function. Did you mean sin? Allowed: abs, "),
    ("ln(y)", 1, "Did you mean log?"),
    ("Y", 1, "Y is not a known name. Did you mean y? Allowed: y, x, pi, e, abs, "),
    ("_y", 1, "'_y' is not a known name"),
    ("y + z", 5, "z is not a known name"),
    ("s" * 400 + "(y)", 1, "is not a known function"),
    ("y + sin", 5, "sin is a function. Write sin(y)."),
    ("max(0, y)", 1, "max takes 1 argument, and not 2. Write max(y)."),
    ("dot(y)", 1, "dot takes 2 arguments, and not 1. Write dot(y, x)."),
    ("y(2)", 1, "y is not a function. A product is written y*(…)."),
    ("pi(y)", 1, "pi is not a function"),
    ("2(y)", 1, "only a function can be called"),
    ("sin(y)(x)", 1, "only a function can be called"),
    ("2y", 2, "an operator is missing before y. A product is written *."),
    ("y + 2 y", 7, "an operator is missing before y"),
    ("y x", 3, "an operator is missing before x"),
    ("y\n y", 4, "an operator is missing before y"),
    ("1..2 * y", 3, "an operator is missing before .2"),
    ("1.real", 3, "an operator is missing before real"),
    ("2j * y", 2, "an operator is missing before j"),
    ("0x10 * y", 2, "an operator is missing before x10"),
    ("1_000 * y", 2, "an operator is missing before '_000'"),
    ("y +", 3, "a value is missing at the end"),
    ("* y", 1, "a value is missing before '*'"),
    ("y + * x", 5, "a value is missing before '*'"),
    ("y // 2", 4, "a value is missing before '/'"),
    ("(y + )", 6, "a value is missing before ')'"),
    ("sin()", 5, "a value is missing before ')'"),
    ("sin(*y)", 5, "a value is missing before '*'"),
    ("sin(**y)", 5, "a value is missing before '**'"),
    ("sin(,y)", 5, "a value is missing before ','"),
    ("dot(y,)", 7, "a value is missing before ')'"),
    ("()", 2, "a value is missing before ')'"),
    ("[y]", 1, "a value is missing before '['"),
    ("y[]", 3, "a value is missing before ']'"),
    ("y[0,]", 5, "a value is missing before ']'"),
    ("y[+:1]", 4, "a value is missing before :."),
    ("y:1", 2, "a : stands only in an index"),
    ("y[(1:2)]", 5, "a : stands only in an index"),
    ("007 * y", 1, "this cannot be read"),
    ("  y[1:2:3:4]", 10, "this cannot be read"),
    ("x + 1", 1, "does not depend on y"),
    (" 3", 1, "does not depend on y"),
    ("y, x", 1, "these are several values"),
    ("sin((y, x))", 5, "these are several values"),
    ("y.sum()", 2, f". {CANNOT} A method is a function here: sum(y), and not y.sum()."),
    ("y.__class__.__bases__[0]", 2, f". {CANNOT}"),
    ("... + y", 1, f". {CANNOT}"),
    ("__import__('os')", 12, f"' {CANNOT}"),
    ("__import__(y)", 1, "'__import__' is not a known function"),
    ("eval(y)", 1, "eval is not a known function"),
    ("(lambda: y)()", 2, "lambda is a word of Python's own, which an expression cannot have."),
    ("y if 1 else x", 3, "if is a word of Python's own"),
    ("1if y else x", 2, "if is a word of Python's own"),
    ("not y", 1, "not is a word of Python's own"),
    ("True * y", 1, "True is a word of Python's own"),
    ("y[None]", 3, "None is a word of Python's own"),
    ("sum(y for y in y)", 7, "for is a word of Python's own"),
    ("y == x", 3, f"= {CANNOT}"),
    ("sin(x=y)", 6, f"= {CANNOT}"),
    ("{y}", 1, f"{{ {CANNOT}"),
    ('"y"', 1, f'" {CANNOT}'),
    ("y; y", 2, f"; {CANNOT}"),
    ("y \\", 3, f"\\ {CANNOT}"),
    ("y # hi", 3, f"# {CANNOT}"),
    ("y^2", 2, f"^ {CANNOT} A power is written **."),
    ("|y|", 1, f"| {CANNOT} An absolute value is written abs(y)."),
    ("~y", 1, f"~ {CANNOT}"),
    ("1e999 * y", 1, "too large"),
    ("9" * 400 + " * y", 1, "too large"),
    ("y**1e308", 4, "the exponent is 1e+308"),
    ("y**-1001", 4, "the exponent is -1001. Allowed: a number from -1000 to 1000"),
    ("y[10**9]", 3, "this is no index"),
    ("y[10000000000]", 3, "the index is 10000000000. Allowed: from -1000000000 to 1000000000."),
    ("y[-10000000000]", 3, "the index is -10000000000"),
    ("y[0:9999999999]", 5, "the index is 9999999999"),
    ("y[" + "9" * 400 + "]", 3, "the index is"),
    ("y[y]", 3, "this is no index"),
    ("y[1.0]", 3, "this is no index"),
    ("y[1e3]", 3, "this is no index"),
    ("y[--1]", 3, "this is no index"),
    ("y[0, x]", 6, "this is no index"),
    ("y[(0, 1), 2]", 3, "this is no index"),
    ("y[::-1]", 5, "the step of a slice is -1. Allowed: from 1 to"),
    ("y[::0]", 5, "the step of a slice is 0"),
    ("(y", 1, "this ( is never closed"),
    ("sin(y))", 7, "this ) closes no bracket"),
    ("(y]", 3, "this ] cannot close the ( of column 1"),
    ("y) * (y", 2, "this ) closes no bracket"),
    ("y\x00", 2, f"U+0000 {CANNOT}"),
    ("\ud800", 1, f"U+D800 {CANNOT}"),
    ("y +\xa0x", 4, f"U+00A0 (NO-BREAK SPACE) {CANNOT}"),
    ("ｙ", 1, f"ｙ (FULLWIDTH LATIN SMALL LETTER Y) {CANNOT}"),
    ("у", 1, f"у (CYRILLIC SMALL LETTER U) {CANNOT}"),
    ("−y", 1, f"− (MINUS SIGN) {CANNOT}"),
    ("y‮", 2, f"U+202E (RIGHT-TO-LEFT OVERRIDE) {CANNOT}"),
]  # fmt: skip


@pytest.mark.parametrize("text, column, sentence", REFUSED, ids=lambda each: ascii(each)[:40])
def test_refused_with_its_column(text: str, column: int, sentence: str) -> None:
    error = refusal(text)
    assert error.column == column
    assert sentence in error.sentence


@pytest.mark.parametrize("value", [None, 3, 2.5, True, b"y", ["y"], object()])
def test_what_is_no_text(value: object) -> None:
    error = refusal(value)
    assert error.column is None and str(error).endswith(
        " is not an expression. Allowed: text such as y**2 + sin(y)."
    )


def test_error_is_one_of_a_field() -> None:
    assert issubclass(ExpressionError, FieldError) and issubclass(ExpressionError, ValueError)


def test_no_character_beyond_ascii_is_read() -> None:
    """Python takes several hundred signs for an x or a y."""
    alike = [
        chr(code)
        for code in range(128, sys.maxunicode + 1)
        if unicodedata.normalize("NFKC", chr(code)) in ("x", "y", "e")
    ]
    assert len(alike) > 20
    for sign in alike:
        assert str(refusal("y + " + sign)).startswith(f"Column 5: {sign} (")


# The bounds.


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("y" * (MAX_CHARACTERS + 1), "has 501 characters. Allowed: 500."),
        (" " * 10**6, "has 1000000 characters"),
        ("(" * 1000 + "y" + ")" * 1000, "has 2001 characters"),
        ("(" * 249 + "y" + ")" * 249, "brackets are nested more than 30 deep"),
        ("(" * (MAX_DEPTH + 1) + "y" + ")" * (MAX_DEPTH + 1), "brackets are nested more than 30"),
        ("y" + "[" * 500, "has 501 characters"),
        ("(y[" * 100, "brackets are nested more than 30"),
        ("-" * 499 + "y", "nested more than 30 deep"),
        ("+" * 499 + "y", "nested more than 30 deep"),
        ("-" * MAX_DEPTH + "y", "nested more than 30 deep"),
        ("y" + "**y" * MAX_DEPTH, "nested more than 30 deep"),
        ("y" + "[0]" * MAX_DEPTH, "nested more than 30 deep"),
        ("y" + "+y" * 100, "more than 200 numbers, names and operations"),
        ("y[" + "0," * 199 + "0]", "more than 200 numbers, names and operations"),
        ("y" + "+1e14" * 60, "with the usual spaces the expression has 1081 characters"),
    ],
    ids=lambda each: each[:20],
)
def test_out_of_bounds(text: str, sentence: str) -> None:
    assert sentence in str(refusal(text))


@pytest.mark.parametrize(
    "text",
    [
        "y".ljust(MAX_CHARACTERS),
        "(" * MAX_DEPTH + "y" + ")" * MAX_DEPTH,
        "-" * (MAX_DEPTH - 1) + "y",
        "sin(" * (MAX_DEPTH - 1) + "y" + ")" * (MAX_DEPTH - 1),
        "y-(" * (MAX_DEPTH - 1) + "y" + ")" * (MAX_DEPTH - 1),
        "(" * MAX_DEPTH + "y" + "+y)*x" * MAX_DEPTH,
        "y" + "**y" * (MAX_DEPTH - 1),
        "y" + "+y" * (MAX_NODES // 2 - 1),
        f"y**{MAX_EXPONENT} + y**-{MAX_EXPONENT}",
        f"y[-{MAX_INDEX}:{MAX_INDEX}]",
    ],
    ids=lambda each: each[:20],
)
def test_just_within_the_bounds(text: str) -> None:
    expression = read(text)
    assert read(expression.text) == expression and read(expression.text).formula
    assert expression(Y, X).shape == ()


def test_text_too_deep_for_python_itself() -> None:
    """Python's parser gives up where the caller has left it too little room."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_frames() + 30)
    try:
        with pytest.raises(ExpressionError, match="nested more than 30 deep"):
            read("-" * 400 + "y")
    finally:
        sys.setrecursionlimit(limit)


def _frames() -> int:
    frame, count = sys._getframe(), 0
    while frame.f_back:
        frame, count = frame.f_back, count + 1
    return count


# A y, or an x, that does not fit.


def misfit(text: str, y: object, x: object = None) -> str:
    with pytest.raises(ExpressionError) as caught:
        read(text)(y, x)  # type: ignore[arg-type]
    assert caught.value.column is None
    return str(caught.value)


@pytest.mark.parametrize(
    "text, shape, said",
    [
        ("y[3]", (3,), "y[3] does not exist: y has shape (3,), counted from 0."),
        ("y[-4]", (3,), "y[-4] does not exist: y has shape (3,)"),
        ("y[1]", (1,), "y has shape (1,), counted from 0."),
        ("sin(y)[5]", (3,), "sin(y)[5] does not exist: sin(y) has shape (3,)"),
        ("y[0]", (), "y[0] does not exist: y is one number."),
        ("y[0][0]", (3,), "y[0][0] does not exist: y[0] is one number"),
        ("sum(y)[0]", (3,), "sum(y) is one number"),
        ("2[0] * y", (3,), "2[0] does not exist: 2 is one number."),
        ("dot(y, 3)", (3,), "y has shape (3,) and 3 has shape (). Allowed: equal shapes."),
        ("y[:]", (), "y is one number"),
        ("y[0, 0]", (3,), "y[0, 0] does not exist: y has shape (3,)"),
        ("y[0, 0, 0]", (3, 2), "y[0, 0, 0] does not exist: y has shape (3, 2), counted from 0."),
        ("y[0, 2]", (3, 2), "y[0, 2] does not exist: y has shape (3, 2), counted from 0."),
        ("y[3:]", (3,), "y[3:] does not exist: y has shape (3,)"),
        ("max(y[2:1])", (3,), "y[2:1] does not exist: y has shape (3,)"),
        (
            "y + y[:2]", (3,),
            "y + y[:2] does not fit: y has shape (3,) and y[:2] has shape (2,). Allowed: equal "
            "shapes, or one that repeats along the other.",
        ),
        ("y * y[:2, 0]", (3, 3), "y has shape (3, 3) and y[:2, 0] has shape (2,)"),
        ("y[:, :1] * y[:1, :]", (3, 2), "does not fit: y[:, :1] has shape (3, 1) and"),
        ("y + y[:, 0]", (9, 1), "does not fit: y has shape (9, 1) and y[:, 0] has"),
        ("y**y[:, :, 0]", (4, 4, 1), "does not fit: y has shape (4, 4, 1) and"),
        ("dot(y, y[0])", (3, 2), "y has shape (3, 2) and y[0] has shape (2,). Allowed: equal"),
        ("dot(y, y[:1])", (3,), "dot(y, y[:1]) does not fit"),
        ("y", (0,), "y has shape (0,), which has no entries."),
    ],
)  # fmt: skip
def test_y_does_not_fit(text: str, shape: tuple[int, ...], said: str) -> None:
    assert said in misfit(text, torch.ones(shape))


def test_x_does_not_fit() -> None:
    said = misfit("y + x", torch.ones(3), torch.ones(2))
    assert said.startswith("y + x does not fit: y has shape (3,) and x has shape (2,).")
    assert "y + x does not fit" in misfit("y + x", torch.ones(3, 1), torch.ones(2))
    assert "x[2] does not exist" in misfit("y + x[2]", torch.ones(3), torch.ones(2))
    assert misfit("y + x", Y) == "The expression uses x, and no x is given."


def test_long_expressions_are_cut_in_a_message() -> None:
    assert len(misfit("(" + "y+" * 90 + "y)[9]", Y)) < 300


@pytest.mark.parametrize(
    "y", [3.0, None, torch.arange(3), torch.ones(3, dtype=torch.complex64), torch.ones(3) > 0]
)
def test_y_is_no_real_floating_tensor(y: object) -> None:
    said = "no y is given" if y is None else "Allowed: a tensor of real floating numbers."
    assert said in misfit("y", y)
    said = said.replace("y is", "x is")
    assert said in misfit("y + x", Y, y)


@pytest.mark.parametrize(
    "text, shape, result",
    [
        ("y + y[0]", (3,), (3,)),
        ("y * y[:1]", (3,), (3,)),
        ("y * y[0, :]", (2, 3), (2, 3)),
        ("y * y[:, :1]", (2, 3), (2, 3)),
        ("y[:1] * y[0]", (3,), (1,)),
        ("y[:, 0] + y[0, :]", (3, 3), (3,)),
    ],
)
def test_what_repeats_along_the_other(
    text: str, shape: tuple[int, ...], result: tuple[int, ...]
) -> None:
    assert read(text).value(torch.rand(shape)).shape == result


def test_no_intermediate_is_larger_than_y_and_x() -> None:
    class Largest(torch.utils._python_dispatch.TorchDispatchMode):
        entries = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore
            out = func(*args, **(kwargs or {}))
            if isinstance(out, Tensor):
                self.entries = max(self.entries, out.numel())
            return out

    y, x = torch.rand(4, 5), torch.rand(5)
    with Largest() as largest:
        for text in ("y * x + y[:, 2:3] / x[0]", "dot(y, y * x) * y", "logsumexp(y**2) + std(y)"):
            read(text)(y, x)
    assert largest.entries == 20
