"""What an expression may be made of, and how large it may be."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from explorer.fields import FieldError

if TYPE_CHECKING:
    from torch import Tensor

MAX_CHARACTERS = 500
"""The longest text, as typed and as written out with the usual spaces."""

MAX_NODES = 200
"""The most numbers, names, operations, calls and indices in one expression."""

MAX_DEPTH = 30
"""The deepest nesting, of brackets and of operations; the terms of a + b + c are not nested."""

MAX_EXPONENT = 1000
"""The largest absolute value of an exponent that is a number."""

MAX_INDEX = 10**9
"""The largest absolute value of an index."""


class ExpressionError(FieldError):
    """A text that is no expression, or a y or x that an expression cannot take.

    `column` counts the characters of the text as typed from 1; it is None where the fault is in
    y or x.
    """

    def __init__(self, sentence: str, column: int | None = None) -> None:
        self.sentence, self.column = sentence, column
        super().__init__(sentence if column is None else f"Column {column}: {sentence}")

    def __reduce__(self) -> tuple[type[ExpressionError], tuple[str, int | None]]:
        return ExpressionError, (self.sentence, self.column)


@dataclass(frozen=True)
class Function:
    """A function of each entry or, where it `reduces`, of all entries to a scalar.

    `formula` has a pair of braces for each argument, and so has `code`, the same in torch.
    """

    formula: str
    apply: Callable[..., Tensor]
    code: str
    reduces: bool = False

    @property
    def arity(self) -> int:
        return self.formula.count("{}")


def norm(y: Tensor) -> Tensor:
    """The 2-norm of all entries, shape `()`; at 0 its gradient is 0."""
    import torch

    found: Tensor = torch.linalg.vector_norm(y)
    return found


_METHODS = """abs acos asin atan cos cosh erf exp expm1 log log1p relu sigmoid sin sinh softplus
              sqrt tan tanh""".split()

FUNCTIONS: dict[str, Function] = {
    **{
        name: Function(f"{name} {{}}", operator.methodcaller(name), f"torch.{name}({{}})")
        for name in _METHODS
    },
    "sqrt": Function("√{}", lambda y: y.sqrt(), "torch.sqrt({})"),
    # torch's own softplus is y itself from 20 on, which float64 tells from log(1 + exp y).
    "softplus": Function(
        "softplus {}", lambda y: y.logaddexp(y.new_zeros(())), "F.softplus({}, threshold=40)"
    ),
    "dot": Function("⟨{}, {}⟩", lambda a, b: (a * b).sum(), "torch.sum({} * {})", True),
    "logsumexp": Function(
        "log Σ exp {}", lambda y: y.flatten().logsumexp(0), "torch.logsumexp({}.flatten(), 0)", True
    ),
    "max": Function("max({})", lambda y: y.amax(), "torch.amax({})", True),
    "mean": Function("mean({})", lambda y: y.mean(), "torch.mean({})", True),
    "min": Function("min({})", lambda y: y.amin(), "torch.amin({})", True),
    "norm": Function("‖{}‖₂", norm, "torch.linalg.vector_norm({})", True),
    "prod": Function("Π {}", lambda y: y.prod(), "torch.prod({})", True),
    "std": Function("std({})", lambda y: y.std(correction=0), "torch.std({}, correction=0)", True),
    "sum": Function("Σ {}", lambda y: y.sum(), "torch.sum({})", True),
    "var": Function("var({})", lambda y: y.var(correction=0), "torch.var({}, correction=0)", True),
}
"""By name."""

CONSTANTS = {"pi": math.pi, "e": math.e}


class Level(IntEnum):
    """How tightly the outermost operation of an expression binds."""

    SUM = 0
    PRODUCT = 1
    NEGATIVE = 2
    POWER = 3
    CALL = 4
    ATOM = 5


class Operation(NamedTuple):
    """An operation of two: its sign as typed and in a formula, and what computes it."""

    text: str
    formula: str
    level: Level
    apply: Callable[[Any, Any], Any]


OPERATIONS: dict[type[ast.operator], Operation] = {
    ast.Add: Operation(" + ", " + ", Level.SUM, operator.add),
    ast.Sub: Operation(" - ", " − ", Level.SUM, operator.sub),
    ast.Mult: Operation(" * ", "·", Level.PRODUCT, operator.mul),
    ast.Div: Operation(" / ", " / ", Level.PRODUCT, operator.truediv),
    ast.Pow: Operation("**", "^", Level.POWER, operator.pow),
}

GRAMMAR = (
    "An expression is made of numbers, y, x, pi, e, + - * / **, round brackets, and the functions "
    + ", ".join(name for name, each in FUNCTIONS.items() if not each.reduces)
    + " of each entry and "
    + ", ".join(name for name, each in FUNCTIONS.items() if each.reduces)
    + " of all entries (dot takes two arguments). Entries are y[0], y[-1], y[1:3], y[0, 1], "
    "y[:, 0], counted from 0. It must contain y, and is summed where it is not one number. "
    f"At most {MAX_CHARACTERS} characters; an exponent that is a number is at most {MAX_EXPONENT} "
    "in absolute value."
)
