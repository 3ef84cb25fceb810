"""`explorer list`: what there is to choose from."""

from __future__ import annotations

import click

from explorer.engine.plan import PATHS
from explorer.experiment import uninstalled
from explorer.expression import GRAMMAR
from explorer.functions import FUNCTIONS
from explorer.heads import HEADS, SETS


@click.command("list")
def list_() -> None:
    """Show the functions, heads, paths and devices there are."""
    from explorer.worker import Worker

    for function in FUNCTIONS.values():
        click.echo(f"function {function.name}: {function.formula}")
        click.echo(f"    --size: {function.size.allowed}; default {function.size.default}")
        for field in function.parameters:
            click.echo(
                f"    --param {field.name}=…: {field.allowed}; default "
                f"{field.empty if field.default is None else field.default}"
            )
        for each in function.heads:
            click.echo(f"    --head {each.name}: {each.formula}")
    for head in HEADS.values():
        click.echo(f"head {head.name}: {head.formula}, for {head.domain}")
    for name, words in SETS.items():
        click.echo(f"heads {name}(K): {words}")
    click.echo(f"head EXPRESSION: {GRAMMAR}")
    for name, words in PATHS.items():
        lacking = uninstalled([name])
        click.echo(f"path {name}: {words}" + (f". {lacking}" if lacking else ""))
    for device in Worker().devices():
        click.echo(f"device {device.name}: {device.title}")
