"""`explorer compare`: what it prints where, and the exit code it ends with."""

import subprocess
import sys
from pathlib import Path

import click.testing
import pytest
from click.testing import CliRunner

from explorer.cli import cli
from explorer.comparing import sentences
from explorer.comparing.comparison import compare
from explorer.export import to_html
from explorer.rows import to_csv
from tests.comparing.results import elsewhere, measured
from tests.flow.flows import linear


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of two runs and of a flow, which is the current one."""
    (tmp_path / "laptop.json").write_text(measured().to_json())
    (tmp_path / "gpu.json").write_text(elsewhere().to_json())
    (tmp_path / "flow.json").write_text(linear().to_json())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str) -> click.testing.Result:
    return CliRunner().invoke(cli, ("compare", *arguments))


def test_the_sentences_and_the_tables_are_printed_and_the_page_is_written(folder: Path) -> None:
    done = invoke("laptop.json", "gpu.json", "--html", "both.html", "--csv", "both.csv")
    assert done.exit_code == 0 and done.stderr == ""
    found = compare({"laptop": measured(), "gpu": elsewhere()})
    assert done.stdout.splitlines()[0] == sentences.summary(found)
    for sentence in (*sentences.environments(found), *sentences.notes(found)):
        assert sentence in done.stdout
    assert "2.5× faster" in done.stdout and "Ratio of the times" in done.stdout
    assert (folder / "both.html").read_text() == to_html(found)
    assert (folder / "both.csv").read_bytes().decode() == to_csv(found)


def test_what_cannot_be_read_is_told_and_the_others_are_compared(folder: Path) -> None:
    done = invoke("none.json", "laptop.json", "flow.json", ".", "gpu.json", "laptop.json")
    assert done.exit_code == 1
    assert done.stdout.startswith("gpu is faster than laptop")
    assert done.stderr.splitlines() == [
        "There is no file none.json.",
        "flow.json is of a gradient flow, which has no paths to compare. Take files of "
        "`explorer run --json`.",
        ". is a folder. Give the files in it.",
        "laptop is given twice, and counts once.",
    ]


@pytest.mark.parametrize(
    ("files", "last"),
    [
        (("laptop.json",), "1 Result is left, and a comparison takes two."),
        (("laptop.json", "laptop.json"), "1 Result is left, and a comparison takes two."),
        (("flow.json", "none.json"), "No Result is left, and a comparison takes two."),
    ],
)
def test_fewer_than_two_results_are_bad_input(
    folder: Path, files: tuple[str, ...], last: str
) -> None:
    done = invoke(*files)
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.splitlines()[-1] == last


def test_a_page_that_cannot_be_written_is_told_before_anything_is_read(folder: Path) -> None:
    done = invoke("none.json", "--html", "nowhere/page.html")
    assert done.exit_code == 2
    assert done.stderr.startswith("--html: The folder nowhere does not exist.")


def test_what_opens_first_waits_for_no_scipy() -> None:
    code = (
        "import sys, explorer.cli, explorer.export, explorer.app.laboratory, explorer.app.compare;"
        "print('scipy' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


def test_the_help_says_the_exit_codes() -> None:
    said = invoke("--help").stdout
    assert "exit code" in said and "--html" in said
    assert invoke().exit_code == 2
