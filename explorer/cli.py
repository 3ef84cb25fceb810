"""The command line: explorer app | lab | list | run | compare | sweep | flow | code.

Importing this module imports no torch, so that the help opens at once.
"""

from __future__ import annotations

import click

from explorer.commands.code import code
from explorer.commands.compare import compare
from explorer.commands.flow import flow
from explorer.commands.listing import list_
from explorer.commands.page import app, lab
from explorer.commands.run import run
from explorer.commands.sweep import sweep


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="explorer")
def cli() -> None:
    """Every dz_i/dx of z_i = g_i(f(x)), for a slow f and cheap heads g_i.

    Runs f's backward once in the place of once a head, and shows what that saves.
    """


for command in (app, lab, list_, run, compare, sweep, flow, code):
    cli.add_command(command)
