"""Typed heads: text such as `y**2 + sin(y)`, read as a function of y, and of x.

Python's own `ast` parses the text and an allow-list reads the tree; nothing is ever evaluated as
Python. Characters, nodes, depth, exponents and indices are bounded, and so is what evaluating
takes: at most MAX_NODES operations on tensors no larger than the larger of y and x.
Importing this package imports no torch.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from explorer.expression.code import code
from explorer.expression.grammar import (
    FUNCTIONS,
    GRAMMAR,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_EXPONENT,
    MAX_INDEX,
    MAX_NODES,
    ExpressionError,
    Function,
    norm,
)
from explorer.expression.reader import parsed
from explorer.expression.value import operand, value_at
from explorer.expression.writing import formula, written
from explorer.fields import shown

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "FUNCTIONS",
    "GRAMMAR",
    "MAX_CHARACTERS",
    "MAX_DEPTH",
    "MAX_EXPONENT",
    "MAX_INDEX",
    "MAX_NODES",
    "Expression",
    "ExpressionError",
    "Function",
    "norm",
    "read",
    "split",
]


@dataclass(frozen=True)
class Expression:
    """A function of y, and of x where `uses_x`, as `read` makes it; equal where the text is.

    Attributes:
        text: the expression as it was understood, in the grammar, with the usual spaces:
            `read` gives an equal expression for it.
        formula: the same as a mathematician writes it.
        uses_x: whether x occurs.
    """

    text: str
    formula: str = field(compare=False, repr=False)
    uses_x: bool = field(compare=False, repr=False)
    _tree: ast.expr = field(compare=False, repr=False)

    @property
    def summed_formula(self) -> str:
        """The formula of the head where `value` is not one number."""
        return f"Σ({self.formula})"

    def value(self, y: Tensor, x: Tensor | None = None) -> Tensor:
        """The expression at a real floating y, not summed, in y's dtype and on its device.

        Raises:
            ExpressionError: the expression does not fit the shapes of y and x, or they are no
                real floating tensors with entries.
        """
        given = {"y": operand("y", y)}
        if self.uses_x:
            given["x"] = operand("x", x).to(device=y.device, dtype=y.dtype)
        return value_at(self._tree, given)

    def __call__(self, y: Tensor, x: Tensor | None = None) -> Tensor:
        """`value`, summed to shape `()`."""
        value = self.value(y, x)
        return value.sum() if value.ndim else value

    def code(self, y_dims: int, x_dims: int) -> str:
        """The head as code for torch, by the names y, x, torch, F and math that it needs.

        Args:
            y_dims, x_dims: how many dimensions y and x have; where that is not known, many.
        """
        return code(self._tree, {"y": y_dims, "x": x_dims})

    def __reduce__(self) -> tuple[Callable[[str], Expression], tuple[str]]:
        return read, (self.text,)


def read(text: str) -> Expression:
    """The expression that a text says.

    Raises:
        ExpressionError: it says none; the message is a sentence that begins with the column.
    """
    if not isinstance(text, str):
        raise ExpressionError(
            f"{shown(text)} is not an expression. Allowed: text such as y**2 + sin(y)."
        )
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(
            f"the expression has {len(text)} characters. Allowed: {MAX_CHARACTERS}.",
            MAX_CHARACTERS + 1,
        )
    tree, names = parsed(text)
    if "y" not in names:
        raise ExpressionError(
            "the expression does not depend on y. A head is a function of y, and may use x too.", 1
        )
    canonical = written(tree)
    if len(canonical) > MAX_CHARACTERS:
        raise ExpressionError(
            f"with the usual spaces the expression has {len(canonical)} characters. "
            f"Allowed: {MAX_CHARACTERS}.",
            1,
        )
    return Expression(canonical, formula(tree), "x" in names, tree)


def split(text: str) -> list[str]:
    """The parts of a list between its commas, those inside brackets not counted; stripped.

    A bracket that is never closed keeps the rest together, one that closes nothing is ignored.
    """
    parts, start, depth = [], 0, 0
    for position, character in enumerate(text):
        if character == "," and not depth:
            parts.append(text[start:position])
            start = position + 1
        depth = max(0, depth + (character in "([{") - (character in ")]}"))
    return [part.strip() for part in (*parts, text[start:])]
