"""`explorer sweep`: experiments along up to three axes."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

import click

from explorer.commands.files import asked_for, file_options, require_places
from explorer.commands.options import SHARED, field_options, flat, param_option, shared_fields
from explorer.commands.running import FAILED, end, follow, refuse
from explorer.experiment import InvalidExperiment
from explorer.study.axis import NOT_SWEPT
from explorer.study.sweep import MOST_AXES, Sweep

_SWEPT = SHARED | {"over", "total", "jsonl", "dask"}


@click.command()
@field_options([field for field in shared_fields() if field.name not in NOT_SWEPT])
@param_option
@click.option(
    "--over",
    metavar="AXIS",
    multiple=True,
    help="A field and its values: NAME=A,B,C, NAME=LOW:HIGH:logN or NAME=LOW:HIGH:linN, up to "
    f"{MOST_AXES} times. heads=K is the first K of the powers set, in the place of --head.",
)
@click.option("--total", metavar="SECONDS", help="Time for all points; --budget is that of each.")
@click.option(
    "--jsonl",
    "jsonl_file",
    metavar="FILE",
    help="Write every point at once, a line of JSON each; a second call goes on where one stopped.",
)
@file_options("points", leave_out="json")
@click.option("--dask", "address", metavar="ADDRESS", help="Measure on the Dask cluster there.")
def sweep(
    parameters: tuple[str, ...],
    over: tuple[str, ...],
    total: str | None,
    jsonl_file: str | None,
    address: str | None,
    **values: Any,
) -> None:
    """Run experiments for all combinations of the values of up to three fields.

    The exit code is 0 when all points are there, 2 for bad input, 1 for a failure or where points
    were left out, 130 when cancelled.
    """
    from explorer.study.journal import Journal, JournalError
    from explorer.study.running import Running

    files = asked_for(values)
    try:
        given, problems = flat(values, parameters)
        if problems:
            raise InvalidExperiment(problems)
        require_places({"jsonl": jsonl_file, **files})
        wanted = Sweep(given, over, total=total)
        with ExitStack() as stack:
            journal = stack.enter_context(Journal(jsonl_file, wanted)) if jsonl_file else None
            executor, at_once = None, 1
            if address is not None:
                from explorer.study import cluster

                executor, at_once = stack.enter_context(cluster.executor(address))
            ending = follow(
                Running(wanted, journal=journal, executor=executor, at_once=at_once)
            )
    except JournalError as error:
        refuse({"jsonl": str(error)}, _SWEPT)
    except InvalidExperiment as error:
        refuse(error.problems, _SWEPT)
    except OSError as error:
        click.echo(f"--jsonl: {jsonl_file} cannot be used: {error.strerror or error}.", err=True)
        sys.exit(FAILED)
    end(ending, files, _SWEPT)
