"""A person's own functions and heads, described and added to the registries.

Nothing is called before an experiment runs, except an x that is given as a function. Importing
this module imports no torch. Only code that is here already is ever registered: a link names a
function, it cannot bring one.
"""

from __future__ import annotations

import inspect
import os
import sys
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from keyword import iskeyword
from typing import Any, Literal, TypeVar, overload

from explorer.experiment import DTYPES, InvalidExperiment, heads_field, table
from explorer.fields import Field, Kind, shown
from explorer.functions import FUNCTIONS
from explorer.functions.description import Code, Cost, Function, OwnHead, Problem, Setting, Work
from explorer.heads import FINITE, HEADS, SETS, Head

F = TypeVar("F", bound=Callable[..., Any])

_GIVEN = ("seed", "dtype", "device")
"""Parameters that are no fields of their own: they have the experiment's values, as `size` has."""

_LISTED = 64
"""Entries of x that a script lists."""

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class _Own:
    """A person's function: f, x or the function that makes it, and the heads that came along;
    `entries` are the real ones of x."""

    f: Callable[..., Any]
    x: Any
    heads: Mapping[str, Callable[..., Any]]
    entries: int


@overload
def function(f: F) -> F: ...
@overload
def function(*, x: Any = ..., name: str = ...) -> Callable[[F], F]: ...
def function(f: Any = None, *, x: Any = None, name: str = "") -> Any:
    """Adds a function of one's own to the registry, by its name or another; a decorator.

        @explorer.function(x=torch.linspace(0, 1, 50))
        def simulation(x, steps: int = 100, method: Literal["euler", "heun"] = "euler"):
            ...

    Parameters behind the first whose default is a number, a switch or one of a `Literal` are
    fields of the experiment. One called `size`, `seed`, `dtype` or `device` has the experiment's.

    Args:
        x: where the gradients are taken: a tensor, several in tuples, lists and dicts, a module
            of which the parameters are meant, or a function of any of f's parameters that returns
            one of these; by default the default of f's first parameter. Its floating tensors are
            brought to the experiment's dtype and device; what f itself holds is not.

    Raises:
        TypeError: f cannot be called, or takes nothing.
        ValueError: the name is taken, x is missing, or a parameter cannot be a field.
    """

    def decorate(f: F) -> F:
        register(f, x, (), name)
        return f

    return decorate if f is None else decorate(f)


def head(g: F) -> F:
    """Adds a head of one's own to the registry, by its name; a decorator.

    g(y) or g(y, x) returns one number; other parameters keep their defaults. y is what f
    returns, in its own structure.

    Raises:
        TypeError: g cannot be called.
        ValueError: the name is taken.
    """
    if not callable(g):
        raise TypeError(f"A head is {shown(g)}, which cannot be called. Give a function g(y).")
    name = _name(g)
    if name in HEADS and not HEADS[name].own:
        raise ValueError(f"{name} is a head of explorer. Choose another name.")
    _require_free(name)
    from explorer.engine.heads import positional

    apply, takes_x = positional(g)
    HEADS[name] = Head(name, _words(g, f"{name}(y)"), apply, FINITE, takes_x=takes_x, own=True)
    return g


def register(f: Any, x: Any, gs: Sequence[Any], name: str = "") -> Function:
    """Describes a person's function and adds it to the registry; the description is returned.

    Args:
        gs: heads that only this function has, or names and expressions of others.
    """
    if not callable(f):
        raise TypeError(f"`f` is {shown(f)}, which cannot be called. Give a function of x.")
    if hasattr(f, "_torchdynamo_orig_callable") or hasattr(f, "_orig_mod"):
        raise ValueError("`f` is compiled. Give it as it was before: torch.compile is a switch.")
    name = name or _name(f)
    if name in FUNCTIONS and not FUNCTIONS[name].own:
        raise ValueError(f"{name} is a function of explorer. Give another: name='my_{name}'.")
    _require_free(name)
    parameters = _parameters(f)
    if not parameters:
        raise TypeError(f"{name} takes nothing. Give a function of x.")
    if x is None and parameters[0].default is not inspect.Parameter.empty:
        x = parameters[0].default
    if x is None:
        raise ValueError(
            f"`x` of {name} is missing: where are the gradients to be taken? Give x=…, or the "
            "first parameter a default."
        )
    heads, chosen = _heads(gs)
    described = _described(name, f, x, heads, chosen)
    heads_field(described).parse(described.default_heads)
    FUNCTIONS[name] = described
    return described


def load(place: str) -> str:
    """The name of the function at `module:function`, which is imported and registered.

    Raises:
        InvalidExperiment: there is no such module or function, or it cannot be registered.
        Exception: whatever the module raises while it is imported.
    """
    module_name, _, name = place.partition(":")
    if not module_name or not name or module_name.startswith("."):
        raise InvalidExperiment({"function": f"Function {shown(place)} is not MODULE:FUNCTION."})
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` looks in the folder one is in
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            problem = f"There is no module {shown(module_name)} here or installed."
            raise InvalidExperiment({"function": problem}) from None
        raise
    found = getattr(module, name, None)
    if found is None:
        problem = f"Module {module_name} has no {shown(name)}."
        raise InvalidExperiment({"function": problem})
    for described in FUNCTIONS.values():
        if described.own and _own_of(described).f is found:
            return described.name
    try:
        return register(found, None, ()).name
    except (TypeError, ValueError) as error:
        raise InvalidExperiment({"function": f"{place}: {error}"}) from error


# What a description says, and how f is built in the process that runs it.


def _described(
    name: str,
    f: Callable[..., Any],
    x: Any,
    heads: Mapping[str, Callable[..., Any]],
    chosen: tuple[str, ...],
) -> Function:
    from explorer.flatten import measured

    size, fields = _fields(name, f, x)
    start = {field.name: field.default for field in fields}
    at = Setting(size.default if size else 1, start, "float64")
    entries, wide = measured(_x(x, at))
    return Function(
        name=name,
        title=name,
        formula=_words(f, f"{name}(x)"),
        why_slow="it is your own.",
        size=size or Field(
            "size", "integer", "Entries of x", entries, minimum=entries, maximum=entries,
            help="entries of x, which is given",
        ),
        parameters=fields,
        inputs=partial(_constant, entries),
        outputs=partial(_constant, 1),  # until it has run, no one knows
        cost=_unknown,
        build=partial(_build, _Own(f, x, heads, entries)),
        code=partial(_code, name, _Own(f, x, heads, entries)),
        inaccuracy="rounding grows with every operation of f",
        default_heads=chosen or ("square", "sin"),
        heads=tuple(OwnHead(key, _words(g, f"{key}(y)")) for key, g in heads.items()),
        dtype=DTYPES[wide],
        own=True,
    )  # fmt: skip


def _constant(number: int, setting: Setting) -> int:
    return number


def _unknown(setting: Setting) -> Cost:
    return Cost(Work(), Work(), 0.0)


def _build(own: _Own, setting: Setting) -> Problem:
    from explorer.flatten import flattened

    wanted = _wanted(_parameters(own.f)[1:], setting)
    f = partial(own.f, **wanted) if wanted else own.f
    mine = {name: each.apply for name, each in HEADS.items() if each.own}
    return flattened(f, _x(own.x, setting), {**mine, **own.heads}, setting.dtype, setting.device)


def _code(name: str, own: _Own, setting: Setting) -> Code:
    """The source of f and of what makes x, or x itself where it is short.

    Raises:
        NoScript: one of them cannot stand alone.
    """
    from torch import Tensor, float64, tensor

    from explorer.scripts import source
    from explorer.scripts.layout import NoScript

    found = source.of(own.f, f"The function {name}", name)
    pieces, imports = found.pieces, found.imports
    x = _x(own.x, setting)
    x = tensor(x, dtype=float64) if isinstance(x, (int, float)) else x
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise NoScript(f"The x of {name} is {type(x).__name__}; a script takes one real tensor.")
    if _makes(own.x):
        maker = source.of(own.x, f"The x of {name}", f"x_of_{name}")
        pieces = maker.pieces + [each for each in pieces if each not in maker.pieces]
        imports |= maker.imports
        given = _arguments(_wanted(_parameters(own.x), setting))
        made = f"x = {maker.name}({given}).detach().to(device, dtype)"
    elif x.numel() > _LISTED:
        raise NoScript(
            f"The x of {name} has {x.numel()} entries, which only this session has. A script takes "
            f"up to {_LISTED}, or a function that makes x."
        )
    else:
        listed = textwrap.fill(f"x = torch.tensor({x.tolist()}, dtype=dtype, device=device)", 100)
        made = listed.replace("\n", "\n    ")
    wanted = _arguments(_wanted(_parameters(own.f)[1:], setting))
    if wanted and found.name != "f":
        pieces = [*pieces, f"def f(x):\n    return {found.name}(x, {wanted})"]
    elif wanted:
        pieces = [*pieces, f"f = functools.partial(f, {wanted})"]
        imports |= {"import functools"}
    elif found.name != "f":
        pieces = [*pieces, f"f = {found.name}"]
    if "rand" in " ".join(pieces):
        made += f"\ntorch.manual_seed({setting.seed})"
    return Code((*pieces, made), None, x.dim(), tuple(imports), own_heads=own.heads)


def _arguments(values: Mapping[str, Any]) -> str:
    """The values as they stand in a call; the dtype and the device by the script's own names."""
    named = ((key, key if key in ("dtype", "device") else repr(v)) for key, v in values.items())
    return ", ".join(f"{key}={text}" for key, text in named)


def _own_of(described: Function) -> _Own:
    own: _Own = described.build.args[0]  # type: ignore[attr-defined]
    return own


def _wanted(parameters: Sequence[inspect.Parameter], setting: Setting) -> dict[str, Any]:
    """The values of those parameters that an experiment has."""
    import torch

    given = {
        **setting.parameters,
        "size": setting.size,
        "seed": setting.seed,
        "dtype": getattr(torch, setting.dtype),
        "device": torch.device(setting.device),
    }
    names = [each.name for each in parameters if each.kind in _NAMED]
    return {name: given[name] for name in names if name in given}


def _makes(x: Any) -> bool:
    """Whether x is a function that makes x; a module is x itself."""
    return callable(x) and not hasattr(x, "parameters")


def _x(x: Any, setting: Setting) -> Any:
    return x(**_wanted(_parameters(x), setting)) if _makes(x) else x


# What a signature says.


def _parameters(f: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of f, their annotations evaluated where that can be done; a built-in function
    without a signature is taken to have x alone."""
    for evaluated in (True, False):
        try:
            found = inspect.signature(getattr(f, "forward", f), eval_str=evaluated)
        except Exception:  # an annotation may name anything
            continue
        return list(found.parameters.values())
    return [inspect.Parameter("x", inspect.Parameter.POSITIONAL_ONLY)]


def _fields(name: str, f: Callable[..., Any], x: Any) -> tuple[Field | None, tuple[Field, ...]]:
    """(the size, if f or what makes x has a parameter of that name; the fields of the others)."""
    parameters = [
        each
        for each in (*(_parameters(x) if _makes(x) else ()), *_parameters(f)[1:])
        if each.kind in _NAMED and each.name not in _GIVEN
    ]
    with_default = {each.name: each for each in parameters if each.default is not each.empty}
    for each in parameters:
        if each.name not in with_default:
            raise ValueError(
                f"Parameter `{each.name}` of {name} has no default. Give it one: the page begins "
                "there."
            )
    size = with_default.pop("size", None)
    fields = (_field(name, each) for each in with_default.values())
    return size and _size(name, size.default), tuple(filter(None, fields))


def _size(function: str, default: Any) -> Field:
    if not isinstance(default, int) or isinstance(default, bool) or default < 1:
        raise ValueError(f"Parameter `size` of {function} is {shown(default)}. "
                         "Give a whole number from 1 as its default.")  # fmt: skip
    largest = max(10_000, 100 * default)
    help = f"parameter size of {function}"
    return Field("size", "integer", "Size", default, minimum=1, maximum=largest, help=help)


_KINDS: tuple[tuple[type, Kind], ...] = (
    (bool, "switch"), (int, "integer"), (float, "number")  # a bool is an int too
)  # fmt: skip


def _field(function: str, parameter: inspect.Parameter) -> Field | None:
    """The field of a parameter; None for a default that no control can show."""
    name, default, hint = parameter.name, parameter.default, parameter.annotation
    if name in _shared():
        raise ValueError(f"Parameter `{name}` of {function} has the name of a field of every "
                         "experiment. Give it another name.")  # fmt: skip
    help = f"parameter {name} of {function}"
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        if not all(isinstance(each, str) for each in choices) or default not in choices:
            raise ValueError(f"Parameter `{name}` of {function} is {shown(default)}. A Literal of "
                             "strings, one of them the default, makes a field.")  # fmt: skip
        return Field(name, "choice", name, default, choices=choices, help=help)
    kind = next((kind for type_, kind in _KINDS if isinstance(default, type_)), None)
    if kind is None:
        return None
    plain = float(default) if kind == "number" else default  # NumPy's writes its type
    field = Field(name, kind, name, plain, help=help)
    try:
        field.parse(field.text(plain))
    except ValueError:  # it is not finite, or has too many digits
        return None
    return field


def _shared() -> set[str]:
    """The names that every experiment's table has."""
    first, *others = (set(table(name)) for name in FUNCTIONS)
    return first.intersection(*others)


def _heads(gs: Sequence[Any]) -> tuple[dict[str, Callable[..., Any]], tuple[str, ...]]:
    """(the callables among the heads by name, the entries of all of them)."""
    if callable(gs) or isinstance(gs, (str, Mapping)) or not isinstance(gs, Sequence):
        raise TypeError(f"`gs` is a {type(gs).__name__}. Give a list of heads, such as [g].")
    own: dict[str, Callable[..., Any]] = {}
    entries = []
    for number, g in enumerate(gs, 1):
        if isinstance(g, str):
            entries.append(g)
            continue
        if not callable(g):
            raise TypeError(f"Head {number} of `gs` is {shown(g)}. Give a function g(y) or "
                            "g(y, x), or a head's name or expression.")  # fmt: skip
        name = _name(g, f"g{number}")
        if name in own or name in HEADS:
            name = f"g{number}"
        own[name] = g
        entries.append(name)
    return own, tuple(entries)


def _name(f: Any, otherwise: str = "f") -> str:
    """What it is called; a lambda, say, has no name of its own."""
    found = getattr(f, "__name__", "") or type(f).__name__
    return found if found.isidentifier() else otherwise


def _require_free(name: str) -> None:
    if not name.isidentifier() or iskeyword(name) or name in SETS or name in ("x", "y"):
        raise ValueError(f"{shown(name)} cannot be a name here. Give one of letters and digits.")


def _words(f: Any, call: str) -> str:
    """The first line of what it says of itself, else how it is called."""
    said = inspect.getdoc(f) if inspect.isfunction(f) else ""
    return said.splitlines()[0] if said else call
