"""Pictures as files, drawn by kaleido in a real Chromium."""

import asyncio
import os
import re
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from explorer.comparing.comparison import compare
from explorer.comparing.figures import figures as comparing_figures
from explorer.figures import figures
from explorer.flow.figures import figures as flow_figures
from explorer.pictures import lacking, write_pictures
from explorer.study.figures import figures as study_figures
from tests.browser import chromium
from tests.comparing.results import elsewhere, measured
from tests.flow.flows import linear
from tests.results import good
from tests.study.points import growing, study

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Chromium of the browser tests, wherever `make test` found or put it."""
    path = chromium.find()
    assert path is not None, "no Chromium: `make test` gets one"
    monkeypatch.setenv("CHROMIUM", path)


def test_every_picture_is_a_png_of_a_slide_s_size(tmp_path: Path) -> None:
    seen = good()
    files = write_pictures(seen, tmp_path / "pictures", "png")
    assert [file.name for file in files] == [f"{name}.png" for name in figures(seen)]
    assert sorted(os.listdir(tmp_path / "pictures")) == sorted(file.name for file in files)
    for file, figure in zip(files, figures(seen).values(), strict=True):
        content = file.read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        assert (width, height) == (2000, 2 * figure.layout.height)


async def in_a_loop(folder: Path) -> list[Path]:
    return write_pictures(linear(), folder, "svg")


def test_an_svg_has_its_title_on_white_in_a_notebook_too(tmp_path: Path) -> None:
    # A notebook's cells run in a loop. In a thread: Playwright leaves one running in the main one.
    with ThreadPoolExecutor(1) as thread:
        files = thread.submit(asyncio.run, in_a_loop(tmp_path)).result()
    for file, figure in zip(files, flow_figures(linear()).values(), strict=True):
        drawing = ElementTree.parse(file).getroot()
        assert drawing.tag == f"{SVG}svg" and drawing.get("width") == "1000"
        title = re.sub("<.*?>", "", figure.layout.title.text)  # where letters stand lower
        said = ["".join(text.itertext()) for text in drawing.iter(f"{SVG}text")]
        assert title in [each.replace("\u200b", "") for each in said]
        background = drawing.find(f"{SVG}rect")
        assert background is not None
        assert "fill: rgb(255, 255, 255)" in (background.get("style") or "")


@pytest.mark.parametrize(
    ("seen", "names"),
    [
        (study({"size": "10,20", "heads": "1,2"}, growing), study_figures),
        (compare({"laptop": measured(), "gpu": elsewhere()}), comparing_figures),
    ],
)
def test_pictures_of_a_sweep_and_of_a_comparison(seen: Any, names: Any, tmp_path: Path) -> None:
    files = write_pictures(seen, tmp_path, "svg")
    assert [file.name for file in files] == [f"{name}.svg" for name in names(seen)]
    for file in files:
        assert ElementTree.parse(file).getroot().tag == f"{SVG}svg"


def test_a_sweep_without_a_point_has_no_pictures(tmp_path: Path) -> None:
    assert write_pictures(study({"size": "10,20"}, growing, 0), tmp_path / "none", "png") == []
    assert os.listdir(tmp_path) == []


def test_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^`kind` is 'gif'\. Allowed: 'png', 'svg'\.$"):
        write_pictures(good(), tmp_path, "gif")  # type: ignore[arg-type]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    there = re.escape(str(tmp_path / "none"))
    with pytest.raises(OSError, match=rf"^Cannot make {there}.*: there is no folder {there}\.$"):
        write_pictures(good(), tmp_path / "none" / "pictures", "svg")


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program on Windows")
def test_a_browser_that_draws_nothing_is_told_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nexit 0\n")  # says a version, and ends when it should draw
    program.chmod(0o755)
    monkeypatch.setenv("CHROMIUM", str(program))
    assert lacking() == ""
    with pytest.raises(RuntimeError, match=rf"^The browser at {program} drew no pictures: "):
        write_pictures(good(), tmp_path / "pictures", "png")
    assert os.listdir(tmp_path) == ["chromium"]


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program on Windows")
def test_a_browser_that_does_not_start_is_told_before_a_run(tmp_path: Path) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nexit 1\n")  # as Ubuntu's without its snap
    program.chmod(0o755)
    given = {"CHROMIUM": str(program), "BROWSER_PATH": str(program)}
    words = f"Pictures need a Chromium or Chrome, and {program}"
    named = run(given, "--png", str(tmp_path / "pictures"))
    assert (named.returncode, named.stdout) == (2, "")
    assert named.stderr == f"--png: {words}, which CHROMIUM names, is none.\n"
    found = run(given | {"CHROMIUM": ""}, "--svg", str(tmp_path / "pictures"))
    assert found.stderr.startswith(f"--svg: {words} does not start. Get it with `kaleido_get")
    assert os.listdir(tmp_path) == ["chromium"]


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command on an f that takes long: what is wrong has to be told before."""
    return subprocess.run(
        [sys.executable, *("-m", "explorer", "run", "--size", "2000"), *arguments],
        env=os.environ | environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "kaleido" else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
from explorer.cli import cli
cli()
"""


def test_without_kaleido_the_command_says_what_to_install_before_it_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "run", "--size", "2000", "--png", tmp_path],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "--png: Pictures need a package that is not installed here. "
        "Get it: pip install 'kaleido>=1.5'\n"
    )
