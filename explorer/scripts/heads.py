"""The heads of a script: a dict of functions by name, in the order of the experiment's results."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from inspect import unwrap
from typing import Any

from explorer import expression
from explorer.heads import HEADS, set_of
from explorer.scripts import source
from explorer.scripts.layout import WIDTH, Layout, NoScript, Part, defined, folded

_LONG = 60  # characters of an expression up to which it is a head's name


def heads(layout: Layout) -> Part:
    """The heads, each a lambda of y, and of x too where one of them takes it."""
    entries = layout.experiment.heads
    sets = [found for each in entries if (found := set_of(each))]
    singles = [each for each in entries if set_of(each) is None]
    part = Part()
    takes_x = uses_x(layout)
    lines = []
    for number, entry in enumerate(singles, 1):
        value = _single(layout, entry, part)
        lines.append(_line(entry if len(entry) <= _LONG else f"head {number}", takes_x, value))
    if any(each in layout.code.heads for each in singles) and layout.code.heads_text:
        part.pieces.insert(0, textwrap.dedent(layout.code.heads_text).strip())
    begun = [f"heads = {{\n{''.join(lines)}}}"] if lines else []
    sums = [each for each in sets if each[0] == "sums"]
    for name, members in [each for each in sets if each[0] != "sums"] + sums:
        begun += _set(layout, name, members, takes_x, "|=" if begun else "=")
    part.pieces += begun
    return part


def uses_x(layout: Layout) -> bool:
    """Whether a head takes x beside y."""
    return any(_takes_x(layout, each) for each in layout.experiment.heads)


def _takes_x(layout: Layout, entry: str) -> bool:
    if set_of(entry) is not None:
        return False
    if entry in layout.code.heads:
        return False
    if own := _own(layout, entry):
        return source.call(own, entry)[1]
    return entry not in HEADS and expression.read(entry).uses_x


def _own(layout: Layout, entry: str) -> Callable[..., Any] | None:
    """A head of a person's own."""
    if entry in layout.code.own_heads:
        return layout.code.own_heads[entry]
    # As it was written, not as it was wrapped to be given x by its place.
    return unwrap(HEADS[entry].apply) if entry in HEADS and HEADS[entry].own else None


def _single(layout: Layout, entry: str, part: Part) -> str:
    """The value of a head by the names y and x; what it needs goes to the part."""
    if entry in layout.code.heads:
        return layout.code.heads[entry]
    if own := _own(layout, entry):
        found = source.of(own, f"The head {entry}", entry)
        part.imports |= found.imports
        given = (*layout.code.parts, *part.pieces)
        further = [each for each in found.pieces if each not in given]
        for name in defined(further) & defined((*given, layout.code.heads_text)):
            raise NoScript(f"The head {entry} cannot stand in the script: {name} is there already.")
        part.pieces += further
        return source.call(own, found.name)[0]
    text = HEADS[entry].expression if entry in HEADS else entry
    value = expression.read(text).code(layout.y_dims, layout.code.x_dims)
    if "F." in value:
        part.imports.add("import torch.nn.functional as F")
    if "math." in value:
        part.imports.add("import math")
    return value


def _line(name: str, takes_x: bool, value: str) -> str:
    start = f'    "{name}": lambda {"y, x" if takes_x else "y"}: '
    if len(start + value) < WIDTH:
        return f"{start}{value},\n"
    return f"{start}(\n{folded(value, ' ' * 8)}\n    ),\n"


def _set(layout: Layout, name: str, members: int, takes_x: bool, sign: str) -> list[str]:
    """The pieces of a set of heads."""
    seed = layout.experiment.seed
    given = "y, x" if takes_x else "y"
    summed = (lambda text: f"({text}).sum()") if layout.y_dims else (lambda text: text)
    if name == "powers":
        return [
            f"heads {sign} {{\n"
            f'    f"powers {{k}}": lambda {given}, k=k: {summed("y**k")}\n'
            f"    for k in range(1, {members + 1})\n}}"
        ]
    generator = f"generator = torch.Generator().manual_seed({seed})\n"
    if name == "random":
        shape = layout.code.y_shape
        begin = "" if shape is not None else "y_shape = f(x).shape  # one more call of f\n"
        sizes = ", ".join(map(str, (members, *(("*y_shape",) if shape is None else shape))))
        drawn = f"head_weights = torch.randn({sizes}, generator=generator).to(device, dtype)"
        value, weights = summed("w * torch.sin(y)"), "head_weights"
    else:
        begin = "other_heads = list(heads.values())\n"
        drawn = (
            f"sum_weights = torch.randn({members}, len(other_heads), generator=generator)\n"
            "sum_weights = sum_weights.to(device, dtype)"
        )
        value, weights = f"w @ torch.stack([g({given}) for g in other_heads])", "sum_weights"
    return [
        f"{begin}{generator}{drawn}\n"
        f"heads {sign} {{\n"
        f'    f"{name} {{k}}": lambda {given}, w=w: {value}\n'
        f"    for k, w in enumerate({weights}, 1)\n}}"
    ]
