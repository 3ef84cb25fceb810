"""A real Chromium on the real page: served by Voila or by JupyterLab, with no internet.

Every test fails on a request that leaves this machine and on an error in the page.
"""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat
import psutil
import pytest
from playwright.sync_api import BrowserContext, Page

from explorer.server import notebook_path
from tests.browser import chromium

CHROMIUM_ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
PATIENCE = 90_000  # milliseconds to wait for what must come; a slow machine is not a failure


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    path = chromium.find()
    assert path, "no Chromium starts here; `make test` gets one"
    return {**browser_type_launch_args, "executable_path": path, "args": CHROMIUM_ARGUMENTS}


OWN = (
    """import torch, explorer
scale = torch.tensor([1.0, 2.0])
def mine(x, power: int = 2):
    matrix = torch.eye(power)
    return matrix @ (scale * x)
""",
    "explorer.lab(mine, [lambda y: y.sum()], torch.ones(2))",
)
"""The cells of a notebook on a function that fails for every power but 2."""


@contextmanager
def serving(command: list[str], folder: Path) -> Iterator[str]:
    """A server started as a person would; the link it prints. Nothing of it stays behind."""
    server = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield _printed_link(server)
    finally:
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        server.send_signal(signal.SIGTERM)
        _, alive = psutil.wait_procs(family, timeout=20)
        for process in alive:
            process.kill()
        assert not alive, f"left behind: {alive}"


def _printed_link(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    said = []
    for line in server.stdout:
        said.append(line)
        if found := re.search(r"http://(?:localhost|127\.0\.0\.1):\S+", line):
            return found.group()
    raise AssertionError("the server ended without printing a link: " + "".join(said))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="session")
def voila(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The link of `explorer app`, started in a folder that has nothing of the project."""
    command = [sys.executable, "-m", "explorer", "app", "--no-browser", "--port", str(free_port())]
    with serving(command, tmp_path_factory.mktemp("anywhere")) as link:
        yield link


@pytest.fixture(autouse=True)
def watched(context: BrowserContext) -> Iterator[None]:
    """Refuses what would leave this machine, and fails the test for it and for page errors."""
    outside: list[str] = []
    errors: list[str] = []

    def local_only(route: Any) -> None:
        if urlsplit(route.request.url).hostname in ("localhost", "127.0.0.1"):
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort()

    context.route(re.compile("^(http|ws)s?:"), local_only)
    context.on("weberror", lambda error: errors.append(str(error.error)))
    context.set_default_timeout(PATIENCE)
    yield
    assert not outside, f"requests that leave this machine: {outside}"
    assert not errors, f"errors in the page: {errors}"


@pytest.fixture
def open_page(page: Page, voila: str) -> Iterator[Callable[..., Page]]:
    """Opens the page with a query string and waits until its first pictures are drawn."""

    def open_(query: str = "") -> Page:
        page.goto(voila.rstrip("/") + "/" + query)
        return page

    yield open_
    page.goto("about:blank")  # which shuts the page's kernel down


@pytest.fixture(scope="session")
def jupyterlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The link that opens a copy of the notebook, or one on code of one's own, in a real
    JupyterLab, when the notebook's name is put behind it."""
    folder, own = tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("settings")
    shutil.copy(notebook_path(), folder / "app.ipynb")
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        cells=[nbformat.v4.new_code_cell(code) for code in OWN],
    )
    nbformat.write(notebook, folder / "own.ipynb")
    port = free_port()
    command = [
        *(sys.executable, "-m", "jupyterlab", "app.ipynb", "--no-browser", f"--port={port}"),
        *("--allow-root", "--IdentityProvider.token=", "--ServerApp.port_retries=0"),
        # The theme that a person chose stays out of the tests, and theirs out of the person's.
        *(f"--LabApp.user_settings_dir={own}", f"--LabApp.workspaces_dir={own}"),
    ]  # fmt: skip
    with serving(command, folder):
        yield f"http://localhost:{port}/lab/tree/"
