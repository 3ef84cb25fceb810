"""The reader of typed heads: text such as `y**2 + sin(y)` to a function of y, and of x.

Python's own `ast` parses the text and an allow-list reads the tree; nothing is ever evaluated as
Python. Characters, nodes, depth, exponents and indices are bounded, and so is what evaluating
takes: at most MAX_NODES operations on tensors no larger than the larger of y and x.
Importing this module imports no torch.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from explorer.fields import FieldError, shown, suggestion

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


def _norm(y: Tensor) -> Tensor:
    import torch

    norm: Tensor = torch.linalg.vector_norm(y)
    return norm


def _softplus(y: Tensor) -> Tensor:
    import torch

    # torch's own softplus is y itself from 20 on, which float64 tells from log(1 + exp y).
    return torch.logaddexp(y, torch.zeros_like(y))


@dataclass(frozen=True)
class Function:
    """A function of the grammar, by its name.

    `number` is the function of one number, by Python's own mathematics; where it is None the
    function reduces all entries to a scalar. `formula` has a pair of braces for each argument.
    """

    name: str
    formula: str
    doc: str
    apply: Callable[..., Tensor]
    number: Callable[[float], float] | None = None

    @property
    def arity(self) -> int:
        return self.formula.count("{}")


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("abs", "|{}|", "absolute value", lambda y: y.abs(), abs),
        Function("acos", "acos {}", "inverse cosine", lambda y: y.acos(), math.acos),
        Function("asin", "asin {}", "inverse sine", lambda y: y.asin(), math.asin),
        Function("atan", "atan {}", "inverse tangent", lambda y: y.atan(), math.atan),
        Function("cos", "cos {}", "cosine", lambda y: y.cos(), math.cos),
        Function("cosh", "cosh {}", "hyperbolic cosine", lambda y: y.cosh(), math.cosh),
        Function("erf", "erf {}", "error function", lambda y: y.erf(), math.erf),
        Function("exp", "exp {}", "exponential function", lambda y: y.exp(), math.exp),
        Function("expm1", "expm1 {}", "exp(y) - 1, exact near 0", lambda y: y.expm1(), math.expm1),
        Function("log", "log {}", "natural logarithm", lambda y: y.log(), math.log),
        Function("log1p", "log1p {}", "log(1 + y), exact near 0", lambda y: y.log1p(), math.log1p),
        Function("relu", "relu {}", "the larger of y and 0", lambda y: y.relu(),
                 lambda v: max(v, 0.0)),
        Function("sigmoid", "sigmoid {}", "1 / (1 + exp(-y))", lambda y: y.sigmoid(),
                 lambda v: math.exp(min(v, 0.0)) / (1 + math.exp(-abs(v)))),
        Function("sin", "sin {}", "sine", lambda y: y.sin(), math.sin),
        Function("sinh", "sinh {}", "hyperbolic sine", lambda y: y.sinh(), math.sinh),
        Function("softplus", "softplus {}", "log(1 + exp(y))", _softplus,
                 lambda v: max(v, 0.0) + math.log1p(math.exp(-abs(v)))),
        Function("sqrt", "√{}", "square root", lambda y: y.sqrt(), math.sqrt),
        Function("tan", "tan {}", "tangent", lambda y: y.tan(), math.tan),
        Function("tanh", "tanh {}", "hyperbolic tangent", lambda y: y.tanh(), math.tanh),
        Function("dot", "⟨{}, {}⟩", "sum of the products of the entries of two of one shape",
                 lambda a, b: (a * b).sum()),
        Function("logsumexp", "log Σ exp {}", "log of the sum of exp of all entries",
                 lambda y: y.flatten().logsumexp(0)),
        Function("max", "max({})", "largest entry", lambda y: y.amax()),
        Function("mean", "mean({})", "mean of all entries", lambda y: y.mean()),
        Function("min", "min({})", "smallest entry", lambda y: y.amin()),
        Function("norm", "‖{}‖₂", "2-norm of all entries", _norm),
        Function("prod", "Π {}", "product of all entries", lambda y: y.prod()),
        Function("std", "std({})", "square root of var", lambda y: y.std(correction=0)),
        Function("sum", "Σ {}", "sum of all entries", lambda y: y.sum()),
        Function("var", "var({})", "mean squared distance of the entries from their mean",
                 lambda y: y.var(correction=0)),
    )
}  # fmt: skip

CONSTANTS = {"pi": math.pi, "e": math.e}

GRAMMAR = (
    "An expression is made of numbers, y, x, pi, e, + - * / **, round brackets, and the functions "
    + ", ".join(name for name, each in FUNCTIONS.items() if each.number)
    + " of each entry and "
    + ", ".join(name for name, each in FUNCTIONS.items() if not each.number)
    + " of all entries (dot takes two arguments). Entries are y[0], y[-1], y[1:3], y[0, 1], "
    "y[:, 0], counted from 0. It must contain y, and is summed where it is not one number. "
    f"At most {MAX_CHARACTERS} characters; an exponent that is a number is at most {MAX_EXPONENT} "
    "in absolute value."
)


# The tree of an expression: what the grammar allows and nothing else.


@dataclass(frozen=True)
class _Number:
    value: float


@dataclass(frozen=True)
class _Name:
    name: str


@dataclass(frozen=True)
class _Negative:
    operand: _Node


@dataclass(frozen=True)
class _Binary:
    sign: str
    left: _Node
    right: _Node


@dataclass(frozen=True)
class _Call:
    function: str
    arguments: tuple[_Node, ...]


@dataclass(frozen=True)
class _Index:
    operand: _Node
    items: tuple[int | slice, ...]


_Node = _Number | _Name | _Negative | _Binary | _Call | _Index


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
    _tree: _Node = field(compare=False, repr=False)

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
        given = {"y": _operand("y", y)}
        if self.uses_x:
            given["x"] = _operand("x", x).to(device=y.device, dtype=y.dtype)
        value = _value(self._tree, given)
        assert not isinstance(value, float)  # read lets no expression through without y
        return value

    def __call__(self, y: Tensor, x: Tensor | None = None) -> Tensor:
        """`value`, summed to shape `()`."""
        value = self.value(y, x)
        return value.sum() if value.ndim else value

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
    if not text.strip(_SPACES):
        raise ExpressionError("the expression is empty. Write one such as y**2 + sin(y).", 1)
    tokens = list(_tokens(text))
    _check_brackets(tokens)
    # All that is left is ASCII, so that ast's columns, which count bytes, count characters.
    first = tokens[0].start
    reader = _Reader(first)
    tree, _ = reader.read(_parse(text, tokens, first), 1)
    if "y" not in reader.names:
        raise ExpressionError(
            "the expression does not depend on y. A head is a function of y, and may use x too.",
            first + 1,
        )
    canonical = _text(tree)
    if len(canonical) > MAX_CHARACTERS:
        raise ExpressionError(
            f"with the usual spaces the expression has {len(canonical)} characters. "
            f"Allowed: {MAX_CHARACTERS}.",
            first + 1,
        )
    return Expression(canonical, _formula(tree), "x" in reader.names, tree)


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


# Reading, first the characters, for what ast would drop, change or say less well.

_SPACES = " \t\r\n"

_TOKEN = re.compile(
    rf"""
      (?P<space>[{_SPACES}]+)
    | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<symbol>\*\*|//|:=|==|!=|<=|>=|<<|>>|[ -~])
    """,
    re.VERBOSE,
)

_SYMBOLS = ("+", "-", "*", "/", "**", "(", ")", "[", "]", ",", ":", ".")

_COMPARISON = "a comparison, which an expression cannot have"
_BITWISE = "an operation on bits, which an expression cannot have"
_CURLY = "part of a set or a dict, which an expression cannot have. Write round brackets"
_STRING = "a quotation mark. An expression has no text in it"
_REFUSED = {
    "^": "not an operation here: a power is written **",
    "//": "a whole-number division, which an expression cannot have. Write /",
    "%": "a remainder, which an expression cannot have",
    "@": "a matrix product, which an expression cannot have. Write dot(y, x) or y*x",
    "|": "not an operation here: an absolute value is written abs(y)",
    **dict.fromkeys(("~", "&", "<<", ">>"), _BITWISE),
    **dict.fromkeys(("<", ">", "==", "!=", "<=", ">="), _COMPARISON),
    ":=": "an assignment, which an expression cannot have",
    "=": "an assignment or a named argument, which an expression cannot have",
    **dict.fromkeys("{}", _CURLY),
    **dict.fromkeys("\"'", _STRING),
    "#": "the beginning of a comment, which an expression cannot have",
}

_WORDS = {
    **dict.fromkeys(("if", "else"), "a condition"),
    **dict.fromkeys(("and", "or", "not"), "a logical operation"),
    **dict.fromkeys(("is", "in"), "a comparison"),
    **dict.fromkeys(("True", "False"), "a truth value"),
    "lambda": "the definition of a function",
    "for": "a comprehension",
}

_INSTEAD = {
    **dict.fromkeys("−–—‐‑", "-"),
    **dict.fromkeys("×·⋅∙∗•", "*"),
    **dict.fromkeys("÷∕⁄", "/"),
    **{sign: f"**{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{sign: f"[{digit}]" for digit, sign in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    "π": "pi",
    "√": "sqrt(y)",
    "∑": "sum(y)",
    "Σ": "sum(y)",
    "∏": "prod(y)",
    "Π": "prod(y)",
    "‖": "norm(y)",
    **dict(zip("ухе", "yxe", strict=True)),  # the Cyrillic letters
}


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


def _tokens(text: str) -> Iterator[_Token]:
    """The numbers, names and symbols of a text, without the spaces."""
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if not found:
            _refuse_character(text[position], position + 1)
        token = _Token(str(found.lastgroup), found[0], position)
        position = found.end()
        if token.kind == "symbol" and token.text not in _SYMBOLS:
            what = _REFUSED.get(token.text, "not a sign that an expression can have")
            raise ExpressionError(f"{token.text} is {what}.", token.start + 1)
        if token.kind == "name" and keyword.iskeyword(token.text):
            what = _WORDS.get(token.text, "a word of Python's own")
            raise ExpressionError(
                f"{token.text} is {what}, which an expression cannot have.", token.start + 1
            )
        if token.kind == "number":
            _check_end_of_number(token, text[position:])
        if token.kind != "space":
            yield token


def _refuse_character(character: str, column: int) -> NoReturn:
    plain = unicodedata.normalize("NFKC", character)
    instead = _INSTEAD.get(character) or (plain if plain.isascii() and plain != character else "")
    name = unicodedata.name(character, "")
    seen = character if character.isprintable() else f"U+{ord(character):04X}"
    what = f"{seen} ({name})" if name else seen
    hint = f"Write {'a space' if instead.isspace() else instead}" if instead else "Leave it out"
    raise ExpressionError(f"{what} cannot stand in an expression. {hint}.", column)


def _check_end_of_number(token: _Token, rest: str) -> None:
    """Refuse 2y, which is no product, and 1j, and what Python reads or refuses in its own way:
    0x1F, 1_000 and 007."""
    number, column = token.text, token.start + 1
    after = re.match(r"\w*", rest, re.ASCII)
    name = after[0] if after else ""
    said = shown(number + name)
    if name in ("j", "J"):
        raise ExpressionError(
            f"{said} is a complex number, which an expression cannot have.", column
        )
    if (name and (number == "0" or name.startswith("_"))) or re.fullmatch("0[0-9]+", number):
        raise ExpressionError(f"{said} is not a number. Write it like 1000, 0.5 or 1e3.", column)
    if name:
        raise ExpressionError(
            f"an operator is missing: {said} is not a product. "
            f"Write {shown(number)}*{shown(name)}.",
            column + len(number),
        )


def _check_brackets(tokens: Sequence[_Token]) -> None:
    opened: list[_Token] = []
    for token in tokens:
        column = token.start + 1
        if token.text in ("(", "["):
            opened.append(token)
            if len(opened) > MAX_DEPTH:
                raise ExpressionError(f"brackets are nested more than {MAX_DEPTH} deep.", column)
        elif token.text in (")", "]"):
            if not opened:
                raise ExpressionError(f"this {token.text} closes no bracket.", column)
            before = opened.pop()
            if before.text + token.text not in ("()", "[]"):
                raise ExpressionError(
                    f"this {token.text} cannot close the {before.text} "
                    f"of column {before.start + 1}.",
                    column,
                )
    if opened:
        raise ExpressionError(f"this {opened[-1].text} is never closed.", opened[-1].start + 1)


def _parse(text: str, tokens: Sequence[_Token], first: int) -> ast.expr:
    """Python's tree of the text from `first` on."""
    # A line break is a space here, and Python's one-line grammar may not begin with a space.
    line = re.sub(f"[{_SPACES}]", " ", text[first:])
    try:
        return ast.parse(line, mode="eval").body
    except SyntaxError as error:
        _refuse_order(tokens)
        column = first + min(max(error.offset or 1, 1), len(line))
        raise ExpressionError("this cannot be read as an expression.", column) from None
    except (MemoryError, RecursionError):
        raise ExpressionError(_DEEP, first + 1) from None


_DEEP = f"the expression is nested more than {MAX_DEPTH} deep."


def _refuse_order(tokens: Sequence[_Token]) -> None:
    """Say where a value or an operator is missing in a text that Python cannot parse."""
    value_next, before = True, ""
    for kind, text, start in tokens:
        if kind in ("number", "name"):
            if not value_next:
                raise ExpressionError(
                    f"an operator is missing before {shown(text)}. A product is written *.",
                    start + 1,
                )
            value_next = False
        elif text in ("*", "/", "**", ")", "]", ",") and value_next and before != ":":
            raise ExpressionError(f"a value is missing before {shown(text)}.", start + 1)
        else:
            value_next = text not in (")", "]")
        before = text
    if value_next:
        raise ExpressionError("a value is missing at the end.", tokens[-1].start + 1)


# Then Python's tree, against the allow-list.

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**",
}  # fmt: skip

_KINDS: dict[type[ast.expr], str] = {
    ast.Tuple: "a list of values, which an expression cannot have: it is one value",
    ast.List: "a list, which an expression cannot have",
    ast.Starred: "a value with a star before it, which an expression cannot have",
}

_Read = tuple[_Node, float | None]


class _Reader:
    """Reads Python's tree; `names` are those of y and x that occurred."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._nodes = 0
        self.names: set[str] = set()

    def read(self, node: ast.expr, depth: int) -> _Read:
        """The tree, and its value where that is one number whatever y and x are."""
        if depth > MAX_DEPTH:
            raise self._error(node, _DEEP)
        self._count(node)
        match node:
            case ast.Constant(value=int() | float() as value):
                return self._number(node, value)
            case ast.Name():
                return self._name(node)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.read(node.operand, depth + 1)
            case ast.UnaryOp(op=ast.USub()):
                operand, number = self.read(node.operand, depth + 1)
                return _Negative(operand), None if number is None else -number
            case ast.BinOp() if type(node.op) in _SIGNS:
                return self._binary(node, depth)
            case ast.Call():
                return self._call(node, depth)
            case ast.Subscript():
                return self._index(node, depth)
            case ast.Attribute():
                raise self._attribute(node)
        what = _KINDS.get(type(node), "something that an expression cannot have")
        raise self._error(node, f"this is {what}.")

    def _error(self, node: ast.expr, sentence: str) -> ExpressionError:
        return ExpressionError(sentence, self._first + node.col_offset + 1)

    def _count(self, node: ast.expr) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._error(
                node,
                f"the expression has more than {MAX_NODES} numbers, names and operations.",
            )

    def _number(self, node: ast.expr, value: float) -> _Read:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isinf(number):
            raise self._error(node, "this number is too large. Allowed: up to 1e308.")
        return _Number(number), number

    def _name(self, node: ast.Name) -> _Read:
        name = node.id
        if name in ("y", "x"):
            self.names.add(name)
            return _Name(name), None
        if name in CONSTANTS:
            return _Name(name), CONSTANTS[name]
        if name in FUNCTIONS:
            raise self._error(node, f"{name} is a function. Write {_usage(name)}.")
        raise self._unknown(node, "name", ("y", "x", *CONSTANTS, *FUNCTIONS))

    def _unknown(self, node: ast.Name, noun: str, known: Sequence[str]) -> ExpressionError:
        hint = "Did you mean log? " if node.id == "ln" else suggestion(node.id, known)
        return self._error(
            node,
            f"{shown(node.id)} is not a known {noun}. {hint}Allowed: {', '.join(known)}.",
        )

    def _binary(self, node: ast.BinOp, depth: int) -> _Read:
        sign = _SIGNS[type(node.op)]
        # The terms of a + b + c hang one below the other, which nobody would call nested.
        chained = isinstance(node.left, ast.BinOp) and sign != "**"
        left, a = self.read(node.left, depth if chained else depth + 1)
        right, b = self.read(node.right, depth + 1)
        if sign == "**" and b is not None and abs(b) > MAX_EXPONENT:
            raise self._error(
                node.right,
                f"the exponent is {b:g}. Allowed: a number from -{MAX_EXPONENT} to "
                f"{MAX_EXPONENT}, or an expression with y or x.",
            )
        if sign == "/" and b == 0:
            raise self._error(node.right, "this divides by 0.")
        tree = _Binary(sign, left, right)
        if a is None or b is None:
            return tree, None
        return tree, self._finite(node, tree, lambda: _ARITHMETIC[sign](a, b))

    def _finite(self, node: ast.expr, tree: _Node, compute: Callable[[], float]) -> float:
        try:
            number = compute()
        except (ArithmeticError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise self._error(node, f"{_quoted(tree)} is no finite real number.")
        return number

    def _call(self, node: ast.Call, depth: int) -> _Read:
        if not isinstance(node.func, ast.Name):
            self.read(node.func, depth + 1)  # which says what is wrong with an attribute
            raise self._error(node, "only a function can be called. A product is written *.")
        name = node.func.id
        if name in ("y", "x") or name in CONSTANTS:
            raise self._error(node, f"{name} is not a function. A product is written {name}*(…).")
        if name not in FUNCTIONS:
            raise self._unknown(node.func, "function", tuple(FUNCTIONS))
        function = FUNCTIONS[name]
        if node.keywords:
            raise self._error(node.keywords[0].value, "only values can be given to a function.")
        found = [self.read(argument, depth + 1) for argument in node.args]
        if len(found) != function.arity:
            raise self._error(
                node,
                f"{name}, the {function.doc}, takes {_arguments(function.arity)}, and not "
                f"{len(found)}. Write {_usage(name)}.",
            )
        tree = _Call(name, tuple(each for each, _ in found))
        _, number = found[0]
        if number is None and function.arity == 1:
            return tree, None
        if function.number is not None and number is not None:
            apply, argument = function.number, number
            return tree, self._finite(node, tree, lambda: apply(argument))
        for argument_node, (each, number) in zip(node.args, found, strict=True):
            if number is not None:
                raise self._error(
                    argument_node,
                    f"{_quoted(each)} is one number, and {name} is a function of the entries "
                    f"of y or x. Write {_usage(name)}.",
                )
        return tree, None

    def _attribute(self, node: ast.Attribute) -> ExpressionError:
        hint = f" Write {_usage(node.attr)}." if node.attr in FUNCTIONS else ""
        end = node.end_col_offset or node.col_offset
        return ExpressionError(
            f"{shown(node.attr)} is an attribute, which an expression cannot have.{hint}",
            self._first + end - len(node.attr) + 1,
        )

    def _index(self, node: ast.Subscript, depth: int) -> _Read:
        operand, number = self.read(node.value, depth + 1)
        if number is not None:
            raise self._error(node, f"{_quoted(operand)} is one number, which has no entries.")
        inside = node.slice
        items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        if not items:
            raise self._error(inside, _NO_INDEX)
        return _Index(operand, tuple(self._item(item) for item in items)), None

    def _item(self, node: ast.expr) -> int | slice:
        self._count(node)
        if not isinstance(node, ast.Slice):
            return self._whole(node)
        start, stop, step = (
            None if each is None else self._whole(each)
            for each in (node.lower, node.upper, node.step)
        )
        if node.step is not None and step is not None and step < 1:
            raise self._error(node.step, f"the step of a slice is {step}. Allowed: 1 and above.")
        return slice(start, stop, step)

    def _whole(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int() as value):
                whole = value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                whole = -value
            case _:
                raise self._error(node, _NO_INDEX)
        if abs(whole) > MAX_INDEX:
            raise self._error(
                node, f"the index is {shown(whole)}. Allowed: from -{MAX_INDEX} to {MAX_INDEX}."
            )
        return whole


_NO_INDEX = "this is no index. Allowed: whole numbers and slices, as in y[0], y[1:3] and y[:, 0]."


def _usage(name: str) -> str:
    return f"{name}(y, x)" if FUNCTIONS[name].arity == 2 else f"{name}(y)"


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


# Writing, as text and as a formula.

_SUM, _PRODUCT, _NEGATIVE, _POWER, _CALL, _ATOM = range(6)

_LEVELS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "**": _POWER}


def _level(node: _Node) -> int:
    """How tightly the node's outermost operation binds, in text and in a formula."""
    match node:
        case _Number(value):
            # 1e+20 is shown as 10²⁰ and 1.5e+20 as a product.
            mantissa, exponent, _ = _digits(value).partition("e")
            return _ATOM if not exponent else _POWER if mantissa == "1" else _PRODUCT
        case _Negative():
            return _NEGATIVE
        case _Binary(sign):
            return _LEVELS[sign]
        case _Call(name):
            formula = FUNCTIONS[name].formula
            return _CALL if formula[0].isalpha() or formula.endswith("{}") else _ATOM
    return _ATOM


def _digits(value: float) -> str:
    return str(int(value)) if value.is_integer() and value < 1e15 else repr(value)


def _text(node: _Node) -> str:
    """The node in the grammar, with the brackets that it needs and the usual spaces."""
    match node:
        case _Number(value):
            return _digits(value)
        case _Name(name):
            return name
        case _Negative(operand):
            return "-" + _text_at(operand, _NEGATIVE)
        case _Binary("**", left, right):
            return f"{_text_at(left, _CALL)}**{_text_at(right, _NEGATIVE)}"
        case _Binary(sign, left, right):
            level = _LEVELS[sign]
            return f"{_text_at(left, level)} {sign} {_text_at(right, level + 1)}"
        case _Call(name, arguments):
            return f"{name}({', '.join(map(_text, arguments))})"
        case _Index(operand, items):
            return f"{_text_at(operand, _CALL)}[{_items(items)}]"


def _text_at(node: _Node, level: int) -> str:
    bare = _level(node) >= level or isinstance(node, _Number)
    return _text(node) if bare else f"({_text(node)})"


def _items(items: Sequence[int | slice]) -> str:
    return ", ".join(_slice(item) if isinstance(item, slice) else str(item) for item in items)


def _slice(item: slice) -> str:
    start, stop, step = (
        "" if each is None else str(each) for each in (item.start, item.stop, item.step)
    )
    return f"{start}:{stop}" + (f":{step}" if step else "")


def _quoted(node: _Node) -> str:
    """The node as a message repeats it."""
    text = _text(node)
    return text if len(text) <= 60 else text[:60] + "…"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOWERED = str.maketrans("-0123456789", "₋₀₁₂₃₄₅₆₇₈₉")


def _formula(node: _Node, last: bool = True) -> str:
    """The node as a mathematician writes it; `last` where nothing follows before the next bracket.

    What follows decides whether `sin y` and `Σ y` can stand without brackets.
    """
    match node:
        case _Number(value):
            mantissa, exponent, power = _digits(value).partition("e")
            if not exponent:
                return mantissa
            raised = "10" + str(int(power)).translate(_RAISED)
            return raised if mantissa == "1" else f"{mantissa}·{raised}"
        case _Name(name):
            return "π" if name == "pi" else name
        case _Negative(operand):
            return "−" + _formula_at(operand, _POWER, last)
        case _Binary("**", left, right):
            return _power(left, right)
        case _Binary(sign, left, right):
            return _operation(sign, left, right, last)
        case _Call(name, arguments):
            return _application(FUNCTIONS[name], arguments, last)
        case _Index(operand, items):
            base = _formula(operand) if isinstance(operand, _Name) else f"({_formula(operand)})"
            if len(items) == 1 and isinstance(items[0], int):
                return base + str(items[0]).translate(_LOWERED)
            return f"{base}[{_items(items)}]"


def _formula_at(node: _Node, level: int, last: bool) -> str:
    return _formula(node, last) if _level(node) >= level else f"({_formula(node)})"


def _operation(sign: str, left: _Node, right: _Node, last: bool) -> str:
    level = _LEVELS[sign]
    # a / b·c is read both ways.
    divided = level == _PRODUCT and isinstance(left, _Binary) and left.sign == "/"
    a = _formula_at(left, _POWER if divided else level, False)
    b = _formula_at(right, level + 1, last)
    if b.startswith("−"):
        b = f"({b})"
    return a + {"+": " + ", "-": " − ", "*": "·", "/": " / "}[sign] + b


def _power(base: _Node, exponent: _Node) -> str:
    shown_base = _formula_at(base, _ATOM, True)
    whole = _text(exponent)
    if whole.removeprefix("-").isdigit():
        return shown_base + whole.translate(_RAISED)
    return f"{shown_base}^{_formula_at(exponent, _ATOM, True)}"


def _application(function: Function, arguments: Sequence[_Node], last: bool) -> str:
    inside = [_formula(argument) for argument in arguments]
    if not function.formula.endswith("{}"):
        if function.name == "abs" and "|" in inside[0]:
            return f"abs({inside[0]})"  # where the bars of |…| would not pair by themselves
        return function.formula.format(*inside)
    bare = _level(arguments[0]) == _ATOM
    name = function.formula.removesuffix("{}")
    if function.number is not None:
        return name + inside[0] if bare and last else f"{name.strip()}({inside[0]})"
    reduced = name + inside[0] if bare else f"{name.strip()}({inside[0]})"
    return reduced if last else f"({reduced})"


# Evaluating.

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": math.pow,
}


def _operand(name: str, given: Tensor | None) -> Tensor:
    from torch import Tensor

    if given is None:
        raise ExpressionError(f"The expression uses {name}, and no {name} is given.")
    if not isinstance(given, Tensor) or not given.is_floating_point():
        what = f"has dtype {given.dtype}" if isinstance(given, Tensor) else f"is {shown(given)}"
        raise ExpressionError(f"{name} {what}. Allowed: a tensor of real floating numbers.")
    if not given.numel():
        raise ExpressionError(f"{name} has shape {tuple(given.shape)}, which has no entries.")
    return given


def _value(node: _Node, given: dict[str, Tensor]) -> Tensor | float:
    match node:
        case _Number(value):
            return value
        case _Name(name):
            return CONSTANTS[name] if name in CONSTANTS else given[name]
        case _Negative(operand):
            return -_value(operand, given)
        case _Binary(_, left, right):
            return _combined(node, _value(left, given), _value(right, given))
        case _Call(name, arguments):
            return _applied(node, [_value(argument, given) for argument in arguments])
        case _Index(operand):
            indexed = _value(operand, given)
            assert not isinstance(indexed, float)  # read refuses the index of a number
            return _entry(node, indexed)


def _combined(node: _Binary, a: Tensor | float, b: Tensor | float) -> Tensor | float:
    if isinstance(a, float):
        if isinstance(b, float):
            return _ARITHMETIC[node.sign](a, b)
        if node.sign == "/":
            a = b.new_full((), a)  # torch takes a number over a tensor by way of 1 / b
    elif not isinstance(b, float):
        _check_shapes(node, a, b)
    match node.sign:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b
    power: Tensor = a**b
    return power


def _check_shapes(node: _Binary, a: Tensor, b: Tensor) -> None:
    """Refuse shapes that do not fit, and outer sums, which are larger than y and x are."""
    if a.shape == b.shape or not a.ndim or not b.ndim:
        return
    pairs = list(zip_longest(reversed(a.shape), reversed(b.shape), fillvalue=1))
    fits = all(m == n or 1 in (m, n) for m, n in pairs)
    entries = math.prod(max(pair) for pair in pairs)
    if not fits or entries > max(a.numel(), b.numel()):
        wrong = f"would make {entries} entries" if fits else "does not fit"
        raise ExpressionError(
            f"{_quoted(node)} {wrong}: {_quoted(node.left)} has shape {tuple(a.shape)} and "
            f"{_quoted(node.right)} has shape {tuple(b.shape)}. Allowed: equal shapes, or one "
            "that repeats along the other."
        )


def _applied(node: _Call, arguments: Sequence[Tensor | float]) -> Tensor | float:
    function = FUNCTIONS[node.function]
    first = arguments[0]
    if isinstance(first, float):
        assert function.number is not None  # read refuses a reduction of a number
        return function.number(first)
    if len(arguments) == 2:
        shapes = [tuple(each.shape) for each in arguments if not isinstance(each, float)]
        if shapes[0] != shapes[1]:
            a, b = map(_quoted, node.arguments)
            raise ExpressionError(
                f"{_quoted(node)} does not fit: {a} has shape {shapes[0]} and {b} has shape "
                f"{shapes[1]}. Allowed: equal shapes."
            )
    return function.apply(*arguments)


def _entry(node: _Index, value: Tensor) -> Tensor:
    shape = tuple(value.shape)
    name = _quoted(node.operand)
    has = f"{name} has shape {shape}"
    if len(shape) < 2:
        count = value.numel()
        has = f"{name} has {count} {'entry' if count == 1 else 'entries'}, numbered from 0"
    if not shape:
        raise ExpressionError(f"{_quoted(node)} does not exist: {name} is one number, of shape ().")
    if len(node.items) > len(shape):
        raise ExpressionError(f"{_quoted(node)} has {len(node.items)} indices: {has}.")
    for item, size in zip(node.items, shape, strict=False):
        if isinstance(item, slice):
            outside = not len(range(size)[item])
        else:
            outside = not -size <= item < size
        if outside:
            raise ExpressionError(f"{_quoted(node)} does not exist: {has}.")
    return value[node.items]
