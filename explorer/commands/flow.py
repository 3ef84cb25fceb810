"""`explorer flow`: the gradient flow through a recurrent network."""

from __future__ import annotations

from typing import Any

import click

from explorer.commands.files import asked_for, file_options, require_places
from explorer.commands.options import field_options, given_values
from explorer.commands.running import refuse, run_to_end
from explorer.experiment import InvalidExperiment
from explorer.flow import experiment as of_flow
from explorer.flow.experiment import FlowExperiment


@click.command()
@field_options(list(of_flow.FIELDS.values()))
@file_options("Flow")
def flow(**values: Any) -> None:
    """Show how gradients shrink or grow on their way back through a recurrent network.

    The exit code is 0 when it is done, 2 for bad input, 1 for a failed run, 130 when cancelled.
    """
    options, files = frozenset(of_flow.FIELDS), asked_for(values)
    try:
        experiment = FlowExperiment.from_values(given_values(values))
        require_places(files)
    except InvalidExperiment as error:
        refuse(error.problems, options)
    run_to_end(experiment, files, options)
