"""`explorer compare`: several Results side by side."""

from __future__ import annotations

import sys
from typing import Any

import click

from explorer.commands.files import asked_for, file_options, require_places, write
from explorer.commands.options import SHARED
from explorer.commands.printing import print_comparison
from explorer.commands.running import BAD_INPUT, DONE, FAILED, refuse
from explorer.experiment import InvalidExperiment


@click.command()
@click.argument("results", metavar="FILE...", nargs=-1, required=True)
@file_options("ratios", leave_out="json")
def compare(results: tuple[str, ...], **values: Any) -> None:
    """Lay Results that `run --json` wrote over each other, and compare them with the first.

    What can be read is compared. The exit code is 0 when all of it was, 1 when a file was left out
    or a file cannot be written, 2 when fewer than two Results are left, or for bad input.
    """
    from explorer.comparing import comparison
    from explorer.comparing.reading import Collection, Unreadable, read, read_file, short_names

    files = asked_for(values)
    try:
        require_places(files)
    except InvalidExperiment as error:
        refuse(error.problems, SHARED)
    shelf, left_out = Collection(), 0
    for file, name in zip(results, short_names(results), strict=True):
        try:
            shelf.add(name, read(file, read_file(file)))
        except Unreadable as error:
            left_out += 1
            click.echo(str(error), err=True)
    if len(shelf.results) < 2:
        found = "1 Result is" if shelf.results else "No Result is"
        click.echo(f"{found} left, and a comparison takes two.", err=True)
        sys.exit(BAD_INPUT)
    compared = comparison.compare(shelf.results)
    problem = write(compared, files)
    print_comparison(compared)
    if problem:
        click.echo(problem, err=True)
    sys.exit(FAILED if problem or left_out else DONE)
