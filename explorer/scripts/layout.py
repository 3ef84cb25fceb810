"""How a script is laid out: what its parts know of the whole, and how lines are folded."""

from __future__ import annotations

import ast
import math
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field

from explorer.experiment import Experiment
from explorer.functions.description import Code

WIDTH = 100
"""Characters of a line, at most."""

MANY = 99
"""The dimensions of a tensor of which they are not known."""


NAMES = frozenset(
    """F basis column columns cotangents device direct directs dtype dy_dx dz_dy f flat g generator
    gradient gradients head_weights heads i jac k math name other_heads rank rows scaled singular
    stacked sum_weights tangent torch value values w x y y_cut y_shape z zs""".split()
)
"""The names that a script gives a meaning beside those of the function's code."""


class NoScript(ValueError):
    """Something of a person's own cannot stand alone in a script; the message says what and why."""


@dataclass(frozen=True)
class Layout:
    """What the parts of a script know: the function's code, the experiment, the entries of x."""

    code: Code
    experiment: Experiment
    entries: int

    @property
    def y_dims(self) -> int:
        return MANY if self.code.y_shape is None else len(self.code.y_shape)

    @property
    def outputs(self) -> int | None:
        """Entries of y; None where they are not known."""
        return None if self.code.y_shape is None else math.prod(self.code.y_shape)


@dataclass
class Part:
    """Pieces of a script, in their order, and the lines of import that they need."""

    pieces: list[str] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)


def defined(pieces: Iterable[str]) -> set[str]:
    """The names that pieces of Python give a meaning."""
    found: set[str] = set()
    for piece in pieces:
        for statement in ast.parse(textwrap.dedent(piece)).body:
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                found.add(statement.name)
            else:
                names = [each for each in ast.walk(statement) if isinstance(each, ast.Name)]
                found |= {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return found


def joined(pieces: Iterable[str]) -> str:
    """The pieces below one another, two empty lines around what is defined."""
    text, defined = "", False
    for piece in pieces:
        defines = piece.startswith(("def ", "class "))
        text += ("\n\n\n" if defines or defined else "\n\n") if text else ""
        text, defined = text + piece, defines
    return text


_BREAKS = re.compile(r"(?<=[(\[])|(?=\*\*)|(?<= )")


def folded(code: str, indent: str) -> str:
    """Code that stands in brackets, in lines of at most the width, each with the indent."""
    lines, line = [], ""
    for token in filter(None, _BREAKS.split(code)):
        if line and len(indent + line + token.rstrip()) > WIDTH:
            lines.append(line)
            line = ""
        line += token
    return "\n".join(indent + each.rstrip() for each in (*lines, line))
