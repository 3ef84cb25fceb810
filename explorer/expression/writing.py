"""The tree of an expression as text in the grammar, and as a mathematician writes it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from explorer.expression.grammar import FUNCTIONS, OPERATIONS, Function, Level
from explorer.expression.reader import indices


def _level(node: ast.expr) -> Level:
    match node:
        case ast.UnaryOp():
            return Level.NEGATIVE
        case ast.BinOp():
            return OPERATIONS[type(node.op)].level
        case ast.Call(func=ast.Name(id=name)):
            form = FUNCTIONS[name].formula
            return Level.CALL if form[0].isalpha() or form.endswith("{}") else Level.ATOM
    return Level.ATOM


def number(value: float) -> str:
    """The number as text, a whole one without a point."""
    return str(int(value)) if value.is_integer() and value < 1e15 else repr(value)


def written(node: ast.expr, level: int = Level.SUM) -> str:
    """The node in the grammar with the usual spaces, in brackets if it binds less than `level`."""
    if _level(node) < level:
        return f"({written(node)})"
    match node:
        case ast.Constant(value=float() as value):
            return number(value)
        case ast.UnaryOp(operand=operand):
            return "-" + written(operand, Level.NEGATIVE)
        case ast.BinOp(left, ast.Pow(), right):
            return f"{written(left, Level.CALL)}**{written(right, Level.NEGATIVE)}"
        case ast.BinOp(left, op, right):
            sign, _, own, _ = OPERATIONS[type(op)]
            return written(left, own) + sign + written(right, own + 1)
        case ast.Call(ast.Name(id=name), arguments):
            return f"{name}({', '.join(map(written, arguments))})"
        case ast.Subscript(operand):
            return f"{written(operand, Level.CALL)}[{within(node)}]"
    assert isinstance(node, ast.Name)
    return node.id


def within(node: ast.Subscript) -> str:
    """What stands in the brackets behind a value, as text."""

    def one(item: int | slice) -> str:
        if not isinstance(item, slice):
            return str(item)
        parts = [item.start, item.stop] + ([] if item.step is None else [item.step])
        return ":".join("" if part is None else str(part) for part in parts)

    return ", ".join(map(one, indices(node)))


def quoted(node: ast.expr) -> str:
    """The node as a message repeats it."""
    text = written(node)
    return text if len(text) <= 60 else text[:60] + "…"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOWERED = str.maketrans("-0123456789", "₋₀₁₂₃₄₅₆₇₈₉")


def formula(node: ast.expr, level: int = Level.SUM, last: bool = True) -> str:
    """The node as a mathematician writes it, in brackets if it binds less than `level`.

    `last` where nothing follows before the next bracket: `sin y` and `Σ y` need no brackets.
    """
    if _level(node) < level:
        return f"({formula(node)})"
    match node:
        case ast.UnaryOp(operand=operand):
            return "−" + formula(operand, Level.POWER, last)
        case ast.BinOp(left, ast.Pow(), right):
            base, exponent = formula(left, Level.ATOM), written(right)
            if exponent.removeprefix("-").isdigit():
                return base + exponent.translate(_RAISED)
            return f"{base}^{formula(right, Level.ATOM)}"
        case ast.BinOp(left, op, right):
            _, sign, own, _ = OPERATIONS[type(op)]
            # a / b·c is read both ways.
            divided = isinstance(left, ast.BinOp) and isinstance(left.op, ast.Div)
            bound = Level.POWER if divided and own == Level.PRODUCT else own
            a = formula(left, bound, False)
            b = formula(right, own + 1, last)
            return a + sign + (f"({b})" if b.startswith("−") else b)
        case ast.Call(ast.Name(id=name), arguments):
            return _application(FUNCTIONS[name], arguments, last)
        case ast.Subscript(operand):
            base, items = formula(operand), indices(node)
            if not isinstance(operand, ast.Name):
                base = f"({base})"
            if len(items) == 1 and isinstance(items[0], int):
                return base + str(items[0]).translate(_LOWERED)
            return f"{base}[{within(node)}]"
    return "π" if isinstance(node, ast.Name) and node.id == "pi" else written(node)


def _application(function: Function, arguments: Sequence[ast.expr], last: bool) -> str:
    inside = [formula(argument) for argument in arguments]
    if not function.formula.endswith("{}"):
        return function.formula.format(*inside)
    name = function.formula.removesuffix("{}")
    if _level(arguments[0]) == Level.ATOM and (last or function.reduces):
        written = name + inside[0]
    else:
        written = f"{name.strip()}({inside[0]})"
    return f"({written})" if function.reduces and not last else written
