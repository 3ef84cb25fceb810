"""A run from its start to the exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, NoReturn

import click

from explorer import signals
from explorer.commands.files import FILES, write
from explorer.commands.options import option_of
from explorer.commands.printing import print_flow, print_result, print_study
from explorer.events import Cancelled, Done, Ending, Failed, Progress, Queued
from explorer.experiment import Experiment
from explorer.flow.experiment import FlowExperiment
from explorer.flow.result import Flow
from explorer.study.study import Study

DONE, FAILED, BAD_INPUT = 0, 1, 2
"""Exit codes; that of a run that was cancelled is in `signals`."""


def run_to_end(
    experiment: Experiment | FlowExperiment,
    files: Mapping[str, str],
    options: frozenset[str],
    *,
    full: bool = False,
) -> NoReturn:
    """Runs it, and goes on as `end` does.

    `options` are the fields that are options of their own.
    """
    from explorer.worker import Worker

    end(follow(Worker().submit(experiment, full=full)), files, options)


def end(ending: Ending, files: Mapping[str, str], options: frozenset[str]) -> NoReturn:
    """Writes and prints what was seen, and ends with the exit code."""
    if isinstance(ending, Failed):
        if ending.kind == "invalid":
            refuse(ending.problems, options)
        click.echo(ending.message, err=True)
    seen = ending.result
    if seen is not None:
        # The files first: a reader of the output who leaves early (`| head`) must not cost them.
        problem = write(seen, files)
        if isinstance(seen, Flow):
            print_flow(seen)
        elif isinstance(seen, Study):
            print_study(seen)
        else:
            print_result(seen)
        if problem:
            click.echo(problem, err=True)
            sys.exit(FAILED)
    if isinstance(ending, Cancelled):
        click.echo("Cancelled; what had finished is shown." if seen else "Cancelled.", err=True)
    sys.exit(_exit_code(ending))


def _exit_code(ending: Ending) -> int:
    if isinstance(ending, Done):
        return FAILED if isinstance(ending.result, Study) and ending.result.left_out else DONE
    if isinstance(ending, Cancelled):
        return signals.CANCELLED
    return BAD_INPUT if ending.kind == "refused" else FAILED


def refuse(problems: Mapping[str, str], options: frozenset[str]) -> NoReturn:
    """Says what is wrong with every option, and ends with the exit code for bad input."""
    for name, problem in problems.items():
        option = option_of(name) if name in (*options, *FILES) else "--param"
        click.echo(f"{option}: {problem}", err=True)
    sys.exit(BAD_INPUT)


def follow(run: Any) -> Ending:
    """The run's events as a progress bar on standard error, to its end.

    Ctrl-C, SIGTERM and SIGHUP cancel the run.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    start = time.monotonic()
    with (
        signals.handled(lambda number, frame: run.cancel()),
        Bar(*columns, console=Console(stderr=True), transient=True) as bar,
    ):
        task = bar.add_task("starting", total=None, left="")
        for event in run.events(heartbeat=0.5):
            if isinstance(event, Queued):
                bar.update(task, description=f"waiting, place {event.place} in the queue")
            elif isinstance(event, Progress):
                done, left = time.monotonic() - start, event.remaining
                bar.update(
                    task,
                    description=event.text,
                    completed=done,
                    total=None if left is None else done + left,
                    left="" if left is None else f"about {left:.0f} s left",
                )
            elif isinstance(event, Ending):
                return event
    raise AssertionError("a run's events end with an Ending")
