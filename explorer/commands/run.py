"""`explorer run`: one experiment."""

from __future__ import annotations

from typing import Any

import click

from explorer.commands.files import asked_for, file_options, require_places
from explorer.commands.options import (
    SHARED,
    experiment_of,
    field_options,
    param_option,
    shared_fields,
)
from explorer.commands.running import refuse, run_to_end
from explorer.experiment import InvalidExperiment


@click.command()
@field_options(shared_fields())
@param_option
@file_options("Result")
@click.option("--full", is_flag=True, help="List every entry of large gradients in the JSON.")
def run(
    parameters: tuple[str, ...],
    full: bool,
    **values: Any,
) -> None:
    """Run one experiment and print what it shows.

    The exit code is 0 when it is done, 2 for bad input, 1 for a failed run, 130 when cancelled.
    """
    files = asked_for(values)
    try:
        experiment = experiment_of(values, parameters)
        require_places(files)
    except InvalidExperiment as error:
        refuse(error.problems, SHARED)
    run_to_end(experiment, files, SHARED, full=full)
