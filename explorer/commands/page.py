"""`explorer app` and `explorer lab`: the page, served."""

from __future__ import annotations

import sys

import click


@click.command()
@click.option(
    "--ip",
    metavar="ADDRESS",
    default="localhost",
    show_default=True,
    help="Address to listen on; 0.0.0.0 for every network of this machine.",
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(1, 65535),
    default=None,
    help="Port to listen on.  [default: 8866, or the next free one]",
)
@click.option("--no-browser", is_flag=True, help="Do not open the page in a browser.")
@click.option(
    "--preheat",
    type=click.IntRange(0, 100),
    metavar="N",
    default=0,
    help="Start so much of N pages ahead as needs no visitor: for a class that opens them at once.",
)
def app(ip: str, port: int | None, no_browser: bool, preheat: int) -> None:
    """Serve the page with Voila and print its link."""
    from explorer.server import serve_app

    sys.exit(serve_app(ip, port, open_browser=not no_browser, preheat=preheat))


@click.command()
def lab() -> None:
    """Open the notebook in JupyterLab."""
    from explorer.server import serve_lab

    sys.exit(serve_lab())
