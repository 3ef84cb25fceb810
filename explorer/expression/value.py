"""The value of an expression's tree at y and x.

A number stays a float, which takes the dtype of what it is combined with.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from explorer.expression.grammar import CONSTANTS, FUNCTIONS, OPERATIONS, ExpressionError
from explorer.expression.reader import indices
from explorer.expression.writing import quoted
from explorer.fields import shown

if TYPE_CHECKING:
    from torch import Tensor


def operand(name: str, given: Tensor | None) -> Tensor:
    """y or x as it was given, checked."""
    from torch import Tensor

    if given is None:
        raise ExpressionError(f"The expression uses {name}, and no {name} is given.")
    if not isinstance(given, Tensor) or not given.is_floating_point():
        what = f"has dtype {given.dtype}" if isinstance(given, Tensor) else f"is {shown(given)}"
        raise ExpressionError(f"{name} {what}. Allowed: a tensor of real floating numbers.")
    if not given.numel():
        raise ExpressionError(f"{name} has shape {tuple(given.shape)}, which has no entries.")
    return given


def value_at(node: ast.expr, given: Mapping[str, Tensor]) -> Tensor:
    """The value at y and x, in y's dtype.

    Raises:
        ExpressionError: it does not fit their shapes.
    """
    return _tensor(_value(node, given), given["y"])


def _tensor(value: Tensor | float, like: Tensor) -> Tensor:
    return like.new_tensor(value) if isinstance(value, float) else value


def _value(node: ast.expr, given: Mapping[str, Tensor]) -> Tensor | float:
    match node:
        case ast.Constant(value=float() as value):
            return value
        case ast.Name(id=name):
            return CONSTANTS[name] if name in CONSTANTS else given[name]
        case ast.UnaryOp():
            return -_value(node.operand, given)
        case ast.BinOp(left, op, right):
            a, b = _value(left, given), _value(right, given)
            # torch takes a number over a tensor by way of 1 / b; Python's 1 / 0 raises.
            if isinstance(a, float) and (isinstance(b, float) or isinstance(op, ast.Div)):
                a = _tensor(a, given["y"])
            if not isinstance(a, float) and not isinstance(b, float):
                _check_shapes(node, a, b)
            combined: Tensor = OPERATIONS[type(op)].apply(a, b)
            return combined
        case ast.Call(ast.Name(id=name), arguments):
            values = [value_at(each, given) for each in arguments]
            if len(values) == 2 and values[0].shape != values[1].shape:
                raise _misfit(node, arguments, values, "equal shapes")
            return FUNCTIONS[name].apply(*values)
    assert isinstance(node, ast.Subscript)  # read lets nothing else through
    return _entry(node, value_at(node.value, given))


def _check_shapes(node: ast.BinOp, a: Tensor, b: Tensor) -> None:
    """Refuse shapes that do not fit, and outer sums, which are larger than y and x are."""
    import torch

    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)  # type: ignore[no-untyped-call]
        entries = math.prod(shape)
    except RuntimeError:
        entries = 0
    if entries != max(a.numel(), b.numel()):
        allowed = "equal shapes, or one that repeats along the other"
        raise _misfit(node, (node.left, node.right), (a, b), allowed)


def _misfit(
    node: ast.expr, parts: Sequence[ast.expr], values: Sequence[Tensor], allowed: str
) -> ExpressionError:
    has = " and ".join(
        f"{quoted(part)} has shape {tuple(value.shape)}"
        for part, value in zip(parts, values, strict=True)
    )
    return ExpressionError(f"{quoted(node)} does not fit: {has}. Allowed: {allowed}.")


def _entry(node: ast.Subscript, value: Tensor) -> Tensor:
    shape, items = tuple(value.shape), indices(node)
    inside = len(items) <= len(shape) and all(
        len(range(size)[item]) > 0 if isinstance(item, slice) else -size <= item < size
        for item, size in zip(items, shape, strict=False)
    )
    if not inside:
        has = f"has shape {shape}, counted from 0" if shape else "is one number"
        raise ExpressionError(f"{quoted(node)} does not exist: {quoted(node.value)} {has}.")
    return value[items]
