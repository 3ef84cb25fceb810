"""The tree of an expression as code for torch, which gives the same value at y and x."""

from __future__ import annotations

import ast

from explorer.expression.grammar import CONSTANTS, FUNCTIONS, OPERATIONS, Level
from explorer.expression.reader import indices
from explorer.expression.writing import number, within

_EXACT = 1e15  # up to which a whole number is written as one, which Python keeps whole


def code(node: ast.expr, dims: dict[str, int]) -> str:
    """The node as a scalar tensor, by the names torch, F and math where it needs them.

    Args:
        dims: by name, y and x, how many dimensions each has; more where that is not known.
    """
    text = _code(node)
    if _dims(node, dims) <= 0:
        return text
    return f"{text}.sum()" if _level(node) >= Level.CALL else f"({text}).sum()"


def _level(node: ast.expr) -> Level:
    match node:
        case ast.UnaryOp():
            return Level.NEGATIVE
        case ast.BinOp():
            return OPERATIONS[type(node.op)].level
    return Level.ATOM


def _code(node: ast.expr, level: int = Level.SUM) -> str:
    """In brackets if it binds less than `level`."""
    if _level(node) < level:
        return f"({_code(node)})"
    match node:
        case ast.Constant(value=float() as value):
            return number(value)
        case ast.Name(id=name):
            return f"math.{name}" if name in CONSTANTS else name
        case ast.UnaryOp(operand=operand):
            return "-" + _code(operand, Level.NEGATIVE)
        case ast.BinOp(left, op, right):
            sign, _, own, _ = OPERATIONS[type(op)]
            power = isinstance(op, ast.Pow)
            bounds = (Level.CALL, Level.NEGATIVE) if power else (own, own + 1)
            # What torch gives for 1 / 0 or 10**400, Python's numbers refuse.
            refused = _number(left) is not None and _number(right) is not None
            first = _tensor(left) if refused and _number(node) is None else _code(left, bounds[0])
            return first + sign + _code(right, bounds[1])
        case ast.Call(ast.Name(id=name), arguments):
            form = FUNCTIONS[name].code
            enclosed = "({})" in form or "({}, " in form
            level = Level.SUM if enclosed else Level.CALL
            return form.format(*(_tensor(each, level) for each in arguments))
    assert isinstance(node, ast.Subscript)  # read lets nothing else through
    return f"{_tensor(node.value, Level.CALL)}[{within(node)}]"


def _tensor(node: ast.expr, level: int = Level.SUM) -> str:
    """The node as a tensor, where it is a number too."""
    return _code(node, level) if _number(node) is None else f"y.new_tensor({_code(node)})"


def _number(node: ast.expr) -> float | None:
    """The value of a node that is a number of Python's in the code; None for a tensor."""
    match node:
        case ast.Constant(value=float() as value):
            return value
        case ast.Name(id=name):
            return CONSTANTS.get(name)
        case ast.UnaryOp(operand=operand):
            inner = _number(operand)
            return None if inner is None else -inner
        case ast.BinOp(left, op, right):
            a, b = _number(left), _number(right)
            if a is None or b is None:
                return None
            try:
                found = OPERATIONS[type(op)].apply(a, b)
            except (ZeroDivisionError, OverflowError):
                return None
            # A complex number has no place here.
            return found if isinstance(found, float) and abs(found) < _EXACT else None
    return None


def _dims(node: ast.expr, dims: dict[str, int]) -> int:
    """How many dimensions the value has."""
    match node:
        case ast.Name(id=name):
            return dims.get(name, 0)
        case ast.UnaryOp(operand=operand):
            return _dims(operand, dims)
        case ast.BinOp(left, _, right):
            return max(_dims(left, dims), _dims(right, dims))
        case ast.Call(ast.Name(id=name), arguments):
            return 0 if FUNCTIONS[name].reduces else _dims(arguments[0], dims)
        case ast.Subscript(operand):
            return _dims(operand, dims) - sum(isinstance(each, int) for each in indices(node))
    return 0
