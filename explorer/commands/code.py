"""`explorer code`: an experiment as a script that stands alone."""

from __future__ import annotations

import sys
from typing import Any

import click

from explorer.commands.files import require_places
from explorer.commands.options import experiment_of, field_options, param_option, shared_fields
from explorer.commands.running import BAD_INPUT, FAILED, refuse
from explorer.engine.plan import PATHS
from explorer.experiment import InvalidExperiment

_OF_CODE = ("function", "size", "dtype", "device", "compile", "heads", "seed")


@click.command()
@field_options([field for field in shared_fields() if field.name in _OF_CODE])
@param_option
@click.option(
    "--path",
    metavar="CHOICE",
    default="auto",
    show_default=True,
    help=f"The way to the gradients: one of {', '.join(PATHS)}.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the script to a file.")
def code(parameters: tuple[str, ...], path: str, output: str | None, **values: Any) -> None:
    """Print an experiment on one path as a PyTorch script of its own, without explorer.

    The exit code is 0 when it is done, 2 for bad input, 1 where the file cannot be written.
    """
    from explorer.scripts import NoScript, script

    options = frozenset((*_OF_CODE, "paths", "output"))
    try:
        experiment = experiment_of(values | {"paths": (path,)}, parameters)
        require_places({"output": output})
        text = script(experiment, *experiment.paths)
    except InvalidExperiment as error:
        refuse(error.problems, options)
    except NoScript as error:
        click.echo(error, err=True)
        sys.exit(BAD_INPUT)
    if output is None:
        click.echo(text, nl=False)
        return
    from explorer.export import write_text

    try:
        write_text(output, text)
    except OSError as error:
        click.echo(error, err=True)
        sys.exit(FAILED)
