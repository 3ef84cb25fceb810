"""A person's own functions and heads, described and added to the registries.

Nothing is called before an experiment runs, except an x that is given as a function. Importing
this module imports no torch. Only code that is here already is ever registered: a link names a
function, it cannot bring one.
"""

from __future__ import annotations

import inspect
import os
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeVar, overload

from explorer.experiment import DTYPES, InvalidExperiment, table
from explorer.fields import Field, Kind, shown
from explorer.functions import FUNCTIONS
from explorer.functions.description import Cost, Function, OwnHead, Problem, Setting, Work
from explorer.heads import FINITE, HEADS, SETS, Head

F = TypeVar("F", bound=Callable[..., Any])

GIVEN = ("size", "seed", "dtype", "device")
"""Parameters that a function or its x may ask for: they have the experiment's values."""



@dataclass(frozen=True)
class _Own:
    """A person's function: f, x or the function that makes it, and the heads that came along."""

    f: Callable[..., Any]
    x: Any
    heads: Mapping[str, Callable[..., Any]]
    parameters: tuple[str, ...]
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
    name = name or _name(f)
    if name in FUNCTIONS and not FUNCTIONS[name].own:
        raise ValueError(f"{name} is a function of explorer. Give another: name='my_{name}'.")
    _require_free(name)
    parameters, first = _parameters(f)
    x = first if x is None else x
    if x is None:
        raise ValueError(
            f"`x` of {name} is missing: where are the gradients to be taken? Give x=…, or the "
            "first parameter a default."
        )
    fields, size = _fields(name, parameters, _parameters(x, 0)[0] if _makes(x) else {})
    heads, chosen = _heads(gs)
    own = _Own(f, x, heads, tuple(parameters), 0)
    start = {field.name: field.default for field in fields}
    at = _x(own, Setting(size.default if size else 1, start, "float64"))
    entries, dtype = _measure(at)
    own = replace(own, entries=entries)
    described = Function(
        name=name,
        title=name,
        formula=_words(f, f"{name}(x)"),
        why_slow="it is your own.",
        size=size or Field(
            "size", "integer", "Entries of x", entries, minimum=entries, maximum=entries,
            help="entries of x, which is given",
        ),
        parameters=fields,
        inputs=partial(_entries, own),
        outputs=_one,
        cost=_unknown,
        build=partial(_build, own),
        inaccuracy="rounding grows with every operation of f",
        default_heads=chosen or ("square", "sin"),
        heads=tuple(OwnHead(key, _words(g, f"{key}(y)")) for key, g in heads.items()),
        dtype=dtype,
        own=True,
    )  # fmt: skip
    FUNCTIONS[name] = described
    try:
        table(name)["heads"].parse(described.default_heads)
    except ValueError:
        del FUNCTIONS[name]
        raise
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


def _one(setting: Setting) -> int:
    return 1  # until it has run, no one knows


def _entries(own: _Own, setting: Setting) -> int:
    return own.entries


def _unknown(setting: Setting) -> Cost:
    return Cost(Work(), Work(), 0.0)


def _build(own: _Own, setting: Setting) -> Problem:
    from explorer.flatten import flattened

    given = {**setting.parameters, **_given(setting)}
    wanted = {name: given[name] for name in own.parameters if name in given}
    f = partial(own.f, **wanted) if wanted else own.f
    mine = {name: each.apply for name, each in HEADS.items() if each.own}
    return flattened(f, _x(own, setting), {**mine, **own.heads}, setting.dtype, setting.device)


def _own_of(described: Function) -> _Own:
    own: _Own = described.build.args[0]  # type: ignore[attr-defined]
    return own


def _given(setting: Setting) -> dict[str, Any]:
    import torch

    return {
        "size": setting.size,
        "seed": setting.seed,
        "dtype": getattr(torch, setting.dtype),
        "device": torch.device(setting.device),
    }


def _makes(x: Any) -> bool:
    """Whether x is a function that makes x; a module is x itself."""
    return callable(x) and not hasattr(x, "parameters")


def _x(own: _Own, setting: Setting) -> Any:
    if not _makes(own.x):
        return own.x
    given = {**setting.parameters, **_given(setting)}
    names = inspect.signature(own.x).parameters
    return own.x(**{name: given[name] for name in names if name in given})


def _measure(x: Any) -> tuple[int, str]:
    """(the real entries of x, the widest of its dtypes that an experiment can have)."""
    import torch

    from explorer.engine.structure import Inputs, real_size

    tensors = Inputs.of(as_tensor(x), "x").tensors
    wide = any(each.dtype in (torch.float64, torch.complex128) for each in tensors)
    return real_size(tensors), DTYPES[wide]


def as_tensor(x: Any) -> Any:
    """x, a plain number as a tensor."""
    import torch

    return torch.tensor(x, dtype=torch.float64) if isinstance(x, (int, float)) else x


# What a signature says.


def _parameters(f: Callable[..., Any], skip: int = 1) -> tuple[dict[str, Any], Any]:
    """(the parameters behind the first `skip`, by name; the default of the first or None)."""
    try:
        found = list(inspect.signature(getattr(f, "forward", f)).parameters.values())
    except (TypeError, ValueError):  # built-in functions have none
        return {}, None
    if skip and not found:
        raise TypeError(f"{_name(f)} takes nothing. Give a function of x.")
    first = found[0].default if found and found[0].default is not found[0].empty else None
    named = [each for each in found[skip:] if each.kind not in (each.VAR_POSITIONAL,
             each.VAR_KEYWORD, each.POSITIONAL_ONLY)]  # fmt: skip
    try:
        hints = typing.get_type_hints(getattr(f, "forward", f))
    except Exception:  # an annotation may name anything
        hints = {}
    return {each.name: (each.default, hints.get(each.name)) for each in named}, first


def _fields(
    name: str, of_f: Mapping[str, Any], of_x: Mapping[str, Any]
) -> tuple[tuple[Field, ...], Field | None]:
    """(the fields that the parameters of f and x make, the size among them or None)."""
    fields, size = [], None
    for key, (default, hint) in {**of_x, **of_f}.items():
        if key in GIVEN and key != "size":
            continue
        if default is inspect.Parameter.empty:
            default = (of_x.get(key) or (default,))[0]
        if default is inspect.Parameter.empty:
            raise ValueError(
                f"Parameter `{key}` of {name} has no default. Give it one: the page begins there."
            )
        field = _field(name, key, default, hint)
        if key == "size":
            if field is None or field.kind != "integer" or default < 1:
                raise ValueError(f"Parameter `size` of {name} is {shown(default)}. "
                                 "Give a whole number from 1 as its default.")  # fmt: skip
            size = replace(field, label="Size", minimum=1, maximum=max(10_000, 100 * default))
        elif field is not None:
            fields.append(field)
    return tuple(fields), size


def _field(function: str, name: str, default: Any, hint: Any) -> Field | None:
    """The field of one parameter; None for a default that no control can show."""
    if name != "size" and name in _shared():
        raise ValueError(f"Parameter `{name}` of {function} has the name of a field of every "
                         "experiment. Give it another name.")  # fmt: skip
    label, help = name, f"parameter {name} of {function}"
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        if not all(isinstance(each, str) for each in choices) or default not in choices:
            raise ValueError(f"Parameter `{name}` of {function} is {shown(default)}. A Literal of "
                             "strings, one of them the default, makes a field.")  # fmt: skip
        return Field(name, "choice", label, default, choices=choices, help=help)
    if isinstance(default, bool):
        return Field(name, "switch", label, default, help=help)
    if isinstance(default, (int, float)):
        kind: Kind = "integer" if isinstance(default, int) else "number"
        number = default if kind == "integer" else float(default)  # NumPy's writes its type
        field = Field(name, kind, label, number, help=help)
        try:
            field.parse(field.text(number))
        except ValueError:  # it is not finite, or has too many digits
            return None
        return field
    return None


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
    if not name.isidentifier() or name in SETS or name in ("x", "y"):
        raise ValueError(f"{shown(name)} cannot be a name here. Give one of letters and digits.")


def _words(f: Any, call: str) -> str:
    """The first line of what it says of itself, else how it is called."""
    said = inspect.getdoc(f) if inspect.isfunction(f) else ""
    return said.splitlines()[0] if said else call
