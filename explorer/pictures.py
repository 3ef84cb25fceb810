"""What was seen → its pictures as PNG or SVG files, drawn by kaleido in a Chromium.

Needs the extra `pictures` and a Chromium or Chrome; `lacking` says whether they are there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import plotly.graph_objects as go

from explorer import figures
from explorer.comparing import figures as comparing_figures
from explorer.comparing.comparison import Comparison
from explorer.drawing import Kind, saved
from explorer.events import Seen
from explorer.export import write_bytes
from explorer.flow import figures as flow_figures
from explorer.flow.result import Flow
from explorer.study import figures as study_figures
from explorer.study.study import Study

_PACKAGES = ("kaleido", "choreographer")  # kaleido before 1 did without the second
_PATIENCE = 60  # seconds that a browser may take to say its version, and to draw one picture


def lacking() -> str:
    """What pictures need and is not here, as a sentence that says how to get it; else empty."""
    if not all(map(find_spec, _PACKAGES)):
        return (
            "Pictures need a package that is not installed here. Get it: "
            "pip install 'kaleido>=1.5'"
        )
    named, path = os.environ.get("CHROMIUM"), _browser()
    if path is not None and _starts(path):
        return ""
    get = "Get it with `kaleido_get_chrome`, or name one that is here in CHROMIUM"
    if named:
        return f"Pictures need a Chromium or Chrome, and {named}, which CHROMIUM names, is none."
    if path is None:
        return f"Pictures need a Chromium or Chrome. {get}."
    return f"Pictures need a Chromium or Chrome, and {path} does not start. {get}."


def write_pictures(seen: Seen | Comparison, folder: str | Path, kind: Kind) -> list[Path]:
    """Draws every figure into a file of its name, such as `time.png`; returns the files.

    A picture is 1000 units wide on white, a PNG has 2 pixels for a unit. The folder is made where
    there is none. A file that was there is replaced; all are drawn before the first is written.

    Raises:
        ValueError: `kind` is neither "png" nor "svg".
        RuntimeError: what `lacking` says, or why the browser drew nothing.
        OSError: a file cannot be written; the message says which and why.
    """
    if kind not in ("png", "svg"):
        raise ValueError(f"`kind` is {kind!r}. Allowed: 'png', 'svg'.")
    if problem := lacking():
        raise RuntimeError(problem)
    folder = Path(folder)
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"Cannot make {folder}: there is no folder {folder.parent}.")
    drawn = _figures(seen)
    if not drawn:  # a sweep without a point
        return []
    for figure in drawn.values():
        # What a click on the page brings to light has no place where nothing can be clicked.
        figure.update_traces(showlegend=False, selector={"visible": "legendonly"})
    contents = _contents(drawn, kind)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise type(error)(f"Cannot make {folder}: {error.strerror}.") from error
    files = [folder / f"{name}.{kind}" for name in contents]
    for file, content in zip(files, contents.values(), strict=True):
        write_bytes(file, content)
    return files


def _figures(seen: Seen | Comparison) -> dict[str, go.Figure]:
    if isinstance(seen, Comparison):
        return comparing_figures.figures(seen)
    if isinstance(seen, Study):
        return study_figures.figures(seen) if seen.points else {}
    return flow_figures.figures(seen) if isinstance(seen, Flow) else figures.figures(seen)


def _browser() -> str | None:
    """The path of the browser that CHROMIUM names, else of the one that kaleido finds."""
    if named := os.environ.get("CHROMIUM"):
        return shutil.which(named)
    from choreographer.browsers.chromium import Chromium

    path: str | None = Chromium.find_browser(skip_local=False)
    return path if path is not None and Path(path).is_file() else None


def _starts(path: str) -> bool:
    """Whether it says its version. Ubuntu's chromium-browser is there without the snap it would
    start. On Windows a browser says nothing."""
    if sys.platform == "win32":
        return True
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _contents(drawn: Mapping[str, go.Figure], kind: Kind) -> dict[str, bytes]:
    """The files' contents by the figures' names; raises RuntimeError where there are none."""
    try:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(_drawn(drawn, kind))
        with ThreadPoolExecutor(1) as thread:  # in a notebook, which has a loop of its own
            return thread.submit(lambda: asyncio.run(_drawn(drawn, kind))).result()
    except Exception as error:
        words = error.args[0] if error.args else type(error).__name__
        raise RuntimeError(f"The browser at {_browser()} drew no pictures: {words}") from error


async def _drawn(drawn: Mapping[str, go.Figure], kind: Kind) -> dict[str, bytes]:
    import kaleido

    # One browser for all. It would ask a content delivery network for MathJax.
    async with kaleido.Kaleido(path=_browser(), timeout=_PATIENCE, mathjax=False) as browser:
        return {
            name: await browser.calc_fig(figure, opts=saved(figure, kind))
            for name, figure in drawn.items()
        }
