"""`explorer sweep`: its help, what it refuses, what it prints, and the page of a study."""

import json
import re
from html import escape
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from explorer.cli import cli
from explorer.export import to_html
from explorer.study import sentences
from explorer.study.journal import read_study
from explorer.study.study import Study
from explorer.study.tables import table
from tests.delimited import read
from tests.study.points import growing, study
from tests.study.writing import finished
from tests.test_export import Page

QUICK = ("--repeats", "1", "--path", "retain_graph", "--path", "reuse")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["sweep", *arguments])


# The command.


def test_the_help_tells_how_axes_are_written_and_has_no_field_that_is_not_swept() -> None:
    shown = invoke("--help")
    assert shown.exit_code == 0
    words = " ".join(shown.stdout.split())
    for each in ("NAME=A,B,C", "NAME=LOW:HIGH:logN", "NAME=LOW:HIGH:linN", "up to 3 times",
                 "heads=K is the first K of the powers set", "--total SECONDS", "--jsonl FILE",
                 "--html FILE", "--csv FILE", "--png FOLDER", "--dask ADDRESS", "--head HEAD",
                 "--budget"):  # fmt: skip
        assert each in words
    assert "--scaling" not in words
    assert " sweep " in CliRunner().invoke(cli, ["--help"]).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "--over: A sweep has no axis. Give 1 to 3, such as size=50:800:log5."),
        (("--over", "size"), "--over: size is no axis. Allowed: NAME=A,B,C,"),
        (("--over", "sise=1,2"), "--over: sise is not a field. Did you mean size?"),
        (("--over", "size=1,2"), "--over: Size n is 1. Allowed: a whole number from 2 to 2000."),
        (("--over", "size=9:3:lin4"), "--over: size goes from 9 to 3. The first has to be smaller"),
        (("--over", "scaling=heads"), "--over: scaling is no axis"),
        (("--over", "seed=0:99999:lin10000", "--over", "heads=1,2"),
         "--over: A sweep of 20000 points. Allowed: at most 10000."),
        (("--over", "heads=1,2", "--head", "square"), "--over: heads=K is the first K of"),
        (("--over", "size=2,3", "--size", "5"), "--over: size is given, and an axis too"),
        (("--over", "size=2,3", "--repeats", "0"), "--repeats: Repeats is 0. Allowed:"),
        (("--over", "size=2,3", "--total", "soon"), "--total: Time for all points is soon."),
        (("--over", "size=2,3", "--param", "y=1"), "--param: y is not a parameter of"),
        (("--over", "size=2,3", "--function", "nothing"), "--function: Function nothing is not"),
        (("--over", "x=0.5,20"), "--over: x is 20. Allowed: a number from -10 to 10."),
        (("--over", "size=2,3", "--jsonl", "/nowhere/at/all/s.jsonl"),
         "--jsonl: The folder /nowhere/at/all does not exist."),
        (("--over", "size=2,3", "--html", "."), "--html: . is a folder."),
        (("--over", "size=2,3", "--csv", "."), "--csv: . is a folder."),
        (("--over", "size=2,3", "--svg", __file__), f"--svg: {__file__} is a file. Give the"),
    ],
)  # fmt: skip
def test_bad_input_is_a_sentence_at_its_option_and_exit_code_2(
    arguments: tuple[str, ...], sentence: str
) -> None:
    refused = invoke(*arguments)
    assert refused.exit_code == 2 and refused.stdout == ""
    assert refused.stderr.startswith(sentence)
    assert "Traceback" not in refused.output


def test_an_option_of_another_command_is_not_known() -> None:
    refused = invoke("--over", "size=2,3", "--scaling", "heads")
    assert refused.exit_code == 2 and "No such option" in refused.stderr


def test_a_file_of_something_else_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine\nand mine\n")
    refused = invoke("--over", "size=2,3", "--jsonl", str(path))
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"--jsonl: {path} is no file of a sweep: line 1 is none of")
    assert path.read_text() == "mine\nand mine\n"


def test_a_file_of_another_sweep_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    path.write_bytes(finished(0).line)
    refused = invoke("--over", "size=2,3", "--jsonl", str(path))
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"--jsonl: {path} holds another sweep, over size")
    assert path.read_bytes() == finished(0).line


def test_a_sweep_is_printed_written_and_its_page_made(tmp_path: Path) -> None:
    lines, html, csv = (tmp_path / f"study.{ending}" for ending in ("jsonl", "html", "csv"))
    files = ("--jsonl", str(lines), "--html", str(html), "--csv", str(csv))
    arguments = ("--over", "size=3,4", *QUICK, *files)
    done = invoke(*arguments)
    assert done.exit_code == 0, done.output
    found = read_study(lines)
    assert [point.at for point in found.points] == [{"size": 3}, {"size": 4}]
    assert done.stdout.splitlines()[0] == sentences.summary(found)
    for row in table(found).rows:
        assert any(all(cell in line for cell in row) for line in done.stdout.splitlines())
    page = Page(html.read_text())
    assert sentences.summary(found) in page.text
    rows = read(csv.read_bytes().decode())
    assert [(row["size"], row["path"]) for row in rows] == [
        (str(point.at["size"]), path) for point in found.points for path in point.paths
    ]
    # All points are there: the same again measures nothing.
    assert invoke(*arguments).stdout == done.stdout
    assert len(read_study(lines).points) == 2
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        *("study.csv", "study.html", "study.jsonl")
    ]


def test_points_that_are_left_out_are_told_by_the_exit_code() -> None:
    done = invoke("--over", "size=3,4", *QUICK, "--total", "1e-6")
    assert done.exit_code == 1 and "Traceback" not in done.output
    assert done.stdout.startswith("No point is measured yet.")


# The page of a study.


def data(page: Page) -> Study:
    return Study.model_validate_json(page.data)


def test_the_page_says_all_and_asks_for_nothing() -> None:
    found = study(["size=50,100,200", "heads=1,4"], growing, notes=("mind",), dtype="float32")
    html = to_html(found)
    page = Page(html)
    assert page.addresses == ["data:,"] and html.count("plotly.js v") == 1
    for words in (sentences.summary(found), "mind", "here, A processor, 2 threads",
                  "Number of heads K", "50, 100, 200"):  # fmt: skip
        assert words in page.text
    assert page.text.count("4.0 (reuse)") == 3
    for name in ("speed-up", "time", "passes", "error", "norm"):
        assert f'id="figure-{name}"' in html
    title = f"Sweep of {sentences.setting(found)} over size and heads"
    assert f"<title>{escape(title)}</title>" in html
    assert data(page).model_dump() == found.model_dump()


def test_the_page_of_functions_names_the_axes() -> None:
    html = to_html(study(["function=ode,heat_equation", "heads=1,2"], growing))
    assert "<title>Sweep over function and heads</title>" in html


@pytest.mark.parametrize("seen", [growing, lambda at: "f raised"])
@pytest.mark.parametrize("count", [0, 1, None])
def test_a_study_without_points_or_results_has_its_page(seen, count) -> None:  # type: ignore[no-untyped-def]
    found = study(["size=50,100"], seen, count)
    page = Page(to_html(found))
    assert sentences.summary(found) in page.text
    assert data(page).status == found.status


def test_hostile_text_stays_text() -> None:
    evil = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>"
    plain = study(["size=50,100"], growing)
    found = study(["size=50,100"], lambda at: evil, notes=(evil,), x="0.5").model_copy(
        update={"given": {"function": evil}}
    )
    page = Page(to_html(found))
    assert page.tags.count("script") == Page(to_html(plain)).tags.count("script")
    assert "img" not in page.tags and evil in page.text
    assert data(page).notes == (evil,)


def test_the_json_of_a_study_is_strict_and_has_no_results() -> None:
    found = study(["size=50,100"], growing)
    plain = json.loads(found.to_json(), parse_constant=lambda each: pytest.fail(each))
    assert [set(point["paths"]) for point in plain["points"]] == [{"recompute", "reuse"}] * 2
    assert not re.search(r'"result"|gradient', found.to_json())
