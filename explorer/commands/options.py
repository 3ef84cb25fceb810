"""The options of the commands, from the tables of fields, and the values that they were given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from explorer import own, place
from explorer.events import Failed
from explorer.experiment import DEFAULT_FUNCTION, Experiment, InvalidExperiment, table
from explorer.fields import Field, shown, suggestion
from explorer.functions import FUNCTIONS

# The options to be given several times.
_MANY = {"heads": "--head", "paths": "--path", "scaling": "--scaling", "losses": "--loss"}


def field_options(fields: Sequence[Field]) -> Callable[[Any], Any]:
    """Adds an option for every one of the fields."""

    def add(command: Any) -> Any:
        for field in reversed(fields):
            command = _field_option(field)(command)
        return command

    return add


def _field_option(field: Field) -> Callable[[Any], Any]:
    if field.kind == "switch":
        return click.option(
            option_of(field.name), field.name, is_flag=True, default=None, help=_help(field)
        )
    return click.option(
        option_of(field.name),
        field.name,
        metavar=_METAVARS.get(field.name, field.kind.upper().removesuffix("S")),
        multiple=field.name in _MANY,
        default=None,
        help=_help(field),
    )


_METAVARS = {"function": "NAME|MODULE:NAME", "heads": "HEAD"}


def shared_fields() -> list[Field]:
    """The fields that an experiment on any function has."""
    first, *others = (table(function) for function in FUNCTIONS)
    return [field for name, field in first.items() if all(name in other for other in others)]


SHARED = frozenset(field.name for field in shared_fields())
"""The names of these."""


def option_of(field: str) -> str:
    """The option of a field by its name."""
    return _MANY.get(field, f"--{field.replace('_', '-')}")


def _help(field: Field) -> str:
    if any(field == each.size for each in FUNCTIONS.values()):  # its range is the function's
        return "Size of the problem; see `explorer list`."
    text = f"{field.help[0].upper()}{field.help[1:]}"
    if field.kind == "switch":
        return f"{text}."
    text += f": {field.allowed}"
    default = field.text(field.default) or field.empty
    if field.name in _MANY:
        text += "; may be given several times"
        given = (f"{option_of(field.name)} {name}" for name in field.default)
        default = " ".join(given) or field.empty
    return f"{text}.  [default: {default}]"


param_option = click.option(
    "--param",
    "parameters",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter of the function; see `explorer list`. May be given several times.",
)


def given_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the options that were given."""
    return {name: value for name, value in values.items() if value not in (None, ())}


def experiment_of(values: Mapping[str, Any], parameters: Iterable[str]) -> Experiment:
    """The Experiment of the options that were given; raises InvalidExperiment."""
    given, problems = flat(values, parameters)
    try:
        experiment = Experiment.from_values(given)
    except InvalidExperiment as error:
        problems |= error.problems
    if problems:
        raise InvalidExperiment(problems)
    return experiment


def flat(
    values: Mapping[str, Any], parameters: Iterable[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """(the values of the options that were given, parameters among them; what is wrong with these).

    Raises:
        InvalidExperiment: a module of one's own cannot be imported.
    """
    given = given_values(values)
    if ":" in given.get("function", ""):
        try:
            given["function"] = own.load(given["function"])
        except InvalidExperiment:
            raise
        except Exception as error:  # whatever a module raises while it is imported
            failed = Failed("error", f"{type(error).__name__}: {error}", {}, place=place.of(error))
            raise InvalidExperiment({"function": place.told(failed)}) from error
    function = FUNCTIONS.get(given.get("function", DEFAULT_FUNCTION))
    allowed = [field.name for field in function.parameters] if function else []
    problems: dict[str, str] = {}
    for text in parameters:
        name, equals, value = text.partition("=")
        if not equals or not name:
            problems[text] = f"{shown(text)} is not NAME=VALUE, for example x=0.5."
        elif name in SHARED:
            problems[text] = f"{name} is not a parameter; give {option_of(name)} {value}."
        elif function and name not in allowed:
            problems[text] = (
                f"{shown(name)} is not a parameter of {function.name}. "
                f"{suggestion(name, allowed)}Allowed: {', '.join(allowed)}."
            )
        else:
            given[name] = value
    return given, problems
