"""The source of a person's own function, with what it needs, where that can stand in a script."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from explorer.fields import shown
from explorer.scripts.layout import NAMES, NoScript

_PLAIN = (bool, int, float, str, type(None))


@dataclass
class Source:
    """A function's `name` in a script, the pieces that define it and the imports they need."""

    name: str = ""
    pieces: list[str] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)


def of(f: Callable[..., Any], what: str, name: str) -> Source:
    """The source of a function, of the functions beside it that it calls, and of plain values.

    Args:
        what: how a message names it.
        name: what a lambda is called there.

    Raises:
        NoScript: there is no source to be had, or it needs what only this session has.
    """
    found = Source()
    torchs = getattr(f, "__name__", "")
    if torchs and getattr(sys.modules.get("torch"), torchs, None) is f:
        found.name = f"torch.{torchs}"
    else:
        found.name = _Reader(what, found).define(f, name)
    return found


def call(g: Callable[..., Any], name: str) -> tuple[str, bool]:
    """(a head's call by the names y and x, whether it takes x)."""
    needed = [each for each in _signature(g) if each.default is each.empty]
    if any(each.kind is each.KEYWORD_ONLY and each.name == "x" for each in needed):
        return f"{name}(y, x=x)", True
    second = sum(each.kind <= each.POSITIONAL_OR_KEYWORD for each in needed) >= 2
    return f"{name}({'y, x' if second else 'y'})", second


def _signature(g: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(g).parameters.values())
    except (TypeError, ValueError):  # as torch's own functions
        return []


class _Reader:
    """Takes functions into a Source, each once."""

    def __init__(self, what: str, into: Source) -> None:
        self._what, self._into = what, into
        self._taken: dict[str, Any] = {}

    def define(self, f: Any, name: str) -> str:
        """Defines a function in the script, behind what it needs; returns its name there.

        `name` is what a lambda is called.
        """
        if not isinstance(f, FunctionType):
            self._refuse(f"it is a {type(f).__name__}, and a script takes a function's source")
        node, text = self._node(f)
        if isinstance(node, ast.Lambda):
            body = ast.get_source_segment(text, node.body) or ""
            body = f"({body})" if "\n" in body else body
            piece = f"def {name}({ast.unparse(node.args)}):\n    return {body}"
        else:
            self._check_decorators(f, node)
            name = node.name
            lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
            piece = textwrap.dedent("\n".join(lines))
        self._require_free(name, f)
        self._taken[name] = f
        self._bring(f, node, name)
        self._into.pieces.append(piece)
        return name

    def _node(self, f: FunctionType) -> tuple[ast.FunctionDef | ast.Lambda, str]:
        """A function's tree, and the text it is in."""
        try:
            text = textwrap.dedent(inspect.getsource(f))
            tree = ast.parse(text)
        except (OSError, TypeError, SyntaxError):
            self._refuse(f"the source of {f.__name__} is not to be had")
        if f.__name__ == "<lambda>":
            lambdas = [each for each in ast.walk(tree) if isinstance(each, ast.Lambda)]
            if len(lambdas) == 1:
                return lambdas[0], text
            self._refuse("several lambdas stand in its line, and any may be meant: use def")
        first = tree.body[0]
        if not isinstance(first, ast.FunctionDef):
            self._refuse(f"the source of {f.__name__} is not to be had")
        return first, text

    def _check_decorators(self, f: FunctionType, node: ast.FunctionDef) -> None:
        """Only those that register a function leave it as it is."""
        for each in node.decorator_list:
            root: ast.expr = each
            while isinstance(root, (ast.Call, ast.Attribute)):
                root = root.func if isinstance(root, ast.Call) else root.value
            value = f.__globals__.get(root.id) if isinstance(root, ast.Name) else None
            home = value.__name__ if isinstance(value, ModuleType) else _home(value)
            if home.partition(".")[0] != "explorer":
                self._refuse(f"{f.__name__} is decorated with {shown(ast.unparse(each))}")

    def _bring(self, f: FunctionType, node: ast.FunctionDef | ast.Lambda, own: str) -> None:
        """Brings what the source names and does not define."""
        inside = [node.args, *(node.body if isinstance(node.body, list) else [node.body])]
        if isinstance(node, ast.FunctionDef) and node.returns:
            inside.append(node.returns)
        nodes = [each for part in inside for each in ast.walk(part)]
        used = [each for each in nodes if isinstance(each, ast.Name)]
        names = dict.fromkeys(each.id for each in used if isinstance(each.ctx, ast.Load))
        cells = zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
        known = {**f.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        bound = _bound(nodes)
        for name in names:
            if name in bound:
                continue
            if name in known:
                self._value(f, own, name, known[name])
            elif not hasattr(builtins, name):
                self._refuse(f"{own} uses {name}, which is not defined")

    def _value(self, f: FunctionType, own: str, name: str, value: Any) -> None:
        """Brings what f, which is called `own` in the script, knows by a name."""
        if name in self._taken:
            if self._taken[name] is not value:
                self._refuse(f"two things are called {name}")
            return
        if isinstance(value, ModuleType):
            self._require_foreign(value.__name__, name)
            alone = value.__name__ == name
            self._into.imports.add(f"import {value.__name__}{'' if alone else f' as {name}'}")
        elif isinstance(value, FunctionType) and value.__module__ in (f.__module__, "__main__"):
            if value.__name__ not in (name, "<lambda>"):
                self._refuse(f"{name} is another name of {value.__name__}")
            self.define(value, name)
        elif isinstance(value, _PLAIN) and not (
            isinstance(value, float) and not math.isfinite(value)
        ):
            self._require_free(name, value)
            self._into.pieces.append(f"{name} = {value!r}")
        elif _is_importable(value):
            self._require_foreign(value.__module__, name)
            alias = "" if value.__name__ == name else f" as {name}"
            self._into.imports.add(f"from {value.__module__} import {value.__name__}{alias}")
        else:
            kind = type(value).__name__
            self._refuse(f"{own} uses {name}, a {kind} that only this session has")
        self._taken[name] = value

    def _require_free(self, name: str, value: Any) -> None:
        # f may have its own name: it is what the script needs it for.
        if name in NAMES and name != "f":
            self._refuse(f"it needs the name {name}, which means something else there")
        if self._taken.get(name, value) is not value:
            self._refuse(f"two things are called {name}")

    def _require_foreign(self, module: str, name: str) -> None:
        if module.partition(".")[0] == "explorer":
            self._refuse(f"it uses {name} of explorer")

    def _refuse(self, why: str) -> NoReturn:
        raise NoScript(f"{self._what} cannot stand alone in a script: {why}.")


def _bound(nodes: list[ast.AST]) -> set[str]:
    """The names that the nodes define."""
    found = {
        each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    for each in nodes:
        if isinstance(each, ast.arg):
            found.add(each.arg)
        elif isinstance(each, (ast.FunctionDef, ast.ClassDef)):
            found.add(each.name)
        elif isinstance(each, ast.alias):
            found.add((each.asname or each.name).partition(".")[0])
    return found


def _home(value: Any) -> str:
    return str(getattr(value, "__module__", ""))


def _is_importable(value: Any) -> bool:
    """Whether a script finds the value by its name in its module."""
    module, name = _home(value), getattr(value, "__name__", "")
    return module != "__main__" and getattr(sys.modules.get(module), name or "-", None) is value
