"""Text to the tree of an expression: the characters, their order, then Python's tree of them."""

from __future__ import annotations

import ast
import keyword
import math
import re
import unicodedata
from collections.abc import Sequence

from explorer.expression.grammar import (
    CONSTANTS,
    FUNCTIONS,
    MAX_DEPTH,
    MAX_EXPONENT,
    MAX_INDEX,
    MAX_NODES,
    OPERATIONS,
    ExpressionError,
)
from explorer.fields import shown, suggestion


def parsed(text: str) -> tuple[ast.expr, set[str]]:
    """(the tree of an expression, those of the names y and x that occur in it).

    Raises:
        ExpressionError: the text is no expression.
    """
    _check_text(text)
    reader = _Reader()
    return reader.read(_python(text), 1), reader.names


# First the characters: after these Python parses without a warning, and what it would read in a
# way of its own (ｙ as y, 1_000, comments) or explain less well is refused.

_TOKEN = re.compile(
    r"""
      (?P<space> [ \t\r\n]+ )
    | (?P<value> (?: [0-9]+\.?[0-9]* | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )?
               | [A-Za-z_][A-Za-z_0-9]* )
    | (?P<sign>  \*\* | [-+*/()\[\],:] )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)

_HINTS = {
    ".": " A method is a function here: sum(y), and not y.sum().",
    "^": " A power is written **.",
    "|": " An absolute value is written abs(y).",
}


def _check_text(text: str) -> None:
    """Refuse characters and words that no expression has, brackets that do not pair, and places
    where a value or an operator is missing."""
    opened: list[tuple[str, int]] = []
    before, column, value_next = "", 1, True
    for found in _TOKEN.finditer(text):
        token, kind = found[0], found.lastgroup
        if kind == "space":
            continue
        column = found.start() + 1
        if kind == "other":
            raise _refused(token, column)
        if kind == "value":
            _check_word(token, column, value_next)
            value_next = False
        elif token in "([":
            if token == "[" and value_next:
                raise ExpressionError("a value is missing before '['.", column)
            opened.append((token, column))
            if len(opened) > MAX_DEPTH:
                raise ExpressionError(f"brackets are nested more than {MAX_DEPTH} deep.", column)
            value_next = True
        else:
            if token in ")]":
                _close(token, column, opened)
            elif token == ":" and (not opened or opened[-1][0] == "("):
                raise ExpressionError("a : stands only in an index, as in y[1:3].", column)
            around = before == ":" or (token == ":" and before in ("[", ","))
            if value_next and token not in "+-" and not (around and token in "],:"):
                raise ExpressionError(f"a value is missing before {shown(token)}.", column)
            value_next = token not in ")]"
        before = token
    if opened:
        bracket, column = opened[-1]
        raise ExpressionError(f"this {bracket} is never closed.", column)
    if value_next:
        what = "a value is missing at the end" if before else "the expression is empty"
        raise ExpressionError(f"{what}. Write one such as y**2 + sin(y).", column)


def _refused(character: str, column: int) -> ExpressionError:
    name = "" if character.isascii() else unicodedata.name(character, "")
    seen = character if character.isprintable() else f"U+{ord(character):04X}"
    return ExpressionError(
        f"{seen}{f' ({name})' if name else ''} cannot stand in an expression."
        + _HINTS.get(character, ""),
        column,
    )


def _check_word(word: str, column: int, value_next: bool) -> None:
    """Refuse Python's own words, and a number or name where an operator is due."""
    if keyword.iskeyword(word):
        raise ExpressionError(
            f"{word} is a word of Python's own, which an expression cannot have.", column
        )
    if not value_next:
        raise ExpressionError(
            f"an operator is missing before {shown(word)}. A product is written *.", column
        )


def _close(bracket: str, column: int, opened: list[tuple[str, int]]) -> None:
    if not opened:
        raise ExpressionError(f"this {bracket} closes no bracket.", column)
    before, start = opened.pop()
    if before + bracket not in ("()", "[]"):
        raise ExpressionError(
            f"this {bracket} cannot close the {before} of column {start}.", column
        )


_DEEP = f"the expression is nested more than {MAX_DEPTH} deep."


def _python(text: str) -> ast.expr:
    """Python's tree; in brackets, which lets a text begin with spaces and makes `col_offset`
    count from 1."""
    line = re.sub(r"[\t\r\n]", " ", text)
    try:
        return ast.parse(f"({line})", mode="eval").body
    except SyntaxError as error:
        column = min(max((error.offset or 0) - 1, 1), len(text))
        raise ExpressionError("this cannot be read as an expression.", column) from None
    except (MemoryError, RecursionError):
        raise ExpressionError(_DEEP, 1) from None


# Then Python's tree, against the allow-list.


class _Reader:
    """Reads Python's tree; `names` are those of y and x that occurred."""

    def __init__(self) -> None:
        self._nodes = 0
        self.names: set[str] = set()

    def read(self, node: ast.expr, depth: int) -> ast.expr:
        """The tree, checked, its numbers float and its signs + left out."""
        if depth > MAX_DEPTH:
            raise _error(node, _DEEP)
        self._count(node)
        match node:
            case ast.Constant(value=int() | float() as value):
                node.value = _float(node, value)
            case ast.Name():
                self._name(node)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.read(node.operand, depth + 1)
            case ast.UnaryOp(op=ast.USub()):
                node.operand = self.read(node.operand, depth + 1)
            case ast.BinOp() if type(node.op) in OPERATIONS:
                self._binary(node, depth)
            case ast.Call():
                self._call(node, depth)
            case ast.Subscript():
                node.value = self.read(node.value, depth + 1)
                for _ in indices(node):
                    self._count(node)
            case _:
                raise _error(node, "these are several values, and an expression is one.")
        return node

    def _count(self, node: ast.expr) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _error(
                node, f"the expression has more than {MAX_NODES} numbers, names and operations."
            )

    def _name(self, node: ast.Name) -> None:
        name = node.id
        if name in ("y", "x"):
            self.names.add(name)
        elif name in FUNCTIONS:
            raise _error(node, f"{name} is a function. Write {_usage(name)}.")
        elif name not in CONSTANTS:
            raise _unknown(node, "name", ("y", "x", *CONSTANTS, *FUNCTIONS))

    def _binary(self, node: ast.BinOp, depth: int) -> None:
        power = isinstance(node.op, ast.Pow)
        # The terms of a + b + c hang one below the other, which nobody would call nested.
        chained = isinstance(node.left, ast.BinOp) and not power
        node.left = self.read(node.left, depth if chained else depth + 1)
        node.right = self.read(node.right, depth + 1)
        exponent = _signed(node.right)
        if power and exponent is not None and abs(exponent) > MAX_EXPONENT:
            raise _error(
                node.right,
                f"the exponent is {exponent:g}. Allowed: a number from -{MAX_EXPONENT} to "
                f"{MAX_EXPONENT}, or an expression.",
            )

    def _call(self, node: ast.Call, depth: int) -> None:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise _error(node, "only a function can be called. A product is written *.")
        name, count = node.func.id, len(node.args)
        if name in ("y", "x") or name in CONSTANTS:
            raise _error(node, f"{name} is not a function. A product is written {name}*(…).")
        if name not in FUNCTIONS:
            raise _unknown(node.func, "function", tuple(FUNCTIONS))
        if count != FUNCTIONS[name].arity:
            takes = "2 arguments" if FUNCTIONS[name].arity == 2 else "1 argument"
            raise _error(node, f"{name} takes {takes}, and not {count}. Write {_usage(name)}.")
        node.args = [self.read(argument, depth + 1) for argument in node.args]


def _error(node: ast.expr, sentence: str) -> ExpressionError:
    return ExpressionError(sentence, max(node.col_offset, 1))


def _unknown(node: ast.Name, noun: str, known: Sequence[str]) -> ExpressionError:
    hint = "Did you mean log? " if node.id == "ln" else suggestion(node.id, known)
    return _error(
        node, f"{shown(node.id)} is not a known {noun}. {hint}Allowed: {', '.join(known)}."
    )


def _usage(name: str) -> str:
    return f"{name}(y, x)" if FUNCTIONS[name].arity == 2 else f"{name}(y)"


def _float(node: ast.expr, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise _error(node, "this number is too large. Allowed: up to 1e308.")
    return number


def _signed(node: ast.expr) -> int | float | None:
    """A number that is written out, with its sign; None for anything else."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    return None


def indices(node: ast.Subscript) -> tuple[int | slice, ...]:
    """What stands in the brackets behind a value."""
    inside = node.slice
    return tuple(map(_item, inside.elts if isinstance(inside, ast.Tuple) else [inside]))


def _item(node: ast.expr) -> int | slice:
    if not isinstance(node, ast.Slice):
        return _whole(node, -MAX_INDEX)
    start, stop = (each and _whole(each, -MAX_INDEX) for each in (node.lower, node.upper))
    return slice(start, stop, node.step and _whole(node.step, 1))


def _whole(node: ast.expr, least: int) -> int:
    found = _signed(node)
    if not isinstance(found, int):
        raise _error(
            node,
            "this is no index. Allowed: whole numbers and slices, as in y[0], y[1:3] and y[:, 0].",
        )
    if not least <= found <= MAX_INDEX:
        what = "index" if least < 0 else "step of a slice"
        raise _error(
            node, f"the {what} is {shown(found)}. Allowed: from {least} to {MAX_INDEX}."
        )
    return found
