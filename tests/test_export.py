import json
import os
import stat
import subprocess
import sys
import threading
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from explorer import scaling_sentences, sentences
from explorer.experiment import Experiment
from explorer.export import to_html, write_text
from explorer.figures import figures
from explorer.flow import sentences as flow_sentences
from explorer.flow.experiment import FlowExperiment
from explorer.flow.result import Flow
from explorer.flow.tables import tables as flow_tables
from explorer.result import Result
from explorer.tables import tables
from tests.browser.chromium import find
from tests.flow.flows import WAYS, linear, of
from tests.results import good, head, inaccurate, real, result, scaled, timed

# Files.


def test_text_is_written_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("what was there before")
    write_text(path, "‖J‖\n")
    assert path.read_bytes() == "‖J‖\n".encode()
    assert os.listdir(tmp_path) == ["result.json"]
    other = tmp_path / "plain"
    other.touch()
    assert path.stat().st_mode == other.stat().st_mode, "others may read it as any file"


def test_a_missing_folder_is_named_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "result.json"
    with pytest.raises(FileNotFoundError, match=r"^Cannot write .*: there is no folder .*missing"):
        write_text(path, "text")
    assert os.listdir(tmp_path) == []


def test_a_folder_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=r"^Cannot write .*: Is a directory\.$"):
        write_text(tmp_path, "text")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


LIMITED = """
import resource, sys
from explorer.export import write_text
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # as a disk that fills up half way
try:
    write_text(sys.argv[1], "x" * 100_000)
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on a file's size")
@pytest.mark.parametrize("before", [None, "what was there before"])
def test_a_disk_that_fills_up_leaves_what_was_there(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "result.json"
    if before is not None:
        path.write_text(before)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"Cannot write {path}: File too large.\n"
    assert os.listdir(tmp_path) == ([] if before is None else ["result.json"])
    assert before is None or path.read_text() == before


def test_text_that_has_no_encoding_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "result.json", "\udc80")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_device_stays_a_device() -> None:
    with pytest.raises(OSError, match=r"^Cannot write /dev/full: No space left on device\.$"):
        write_text("/dev/full", "text")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_text(pipe, "text")
    reader.join(timeout=10)
    assert read == ["text"]


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd on this system")
def test_a_pipe_without_a_name_is_written_to() -> None:
    reader, writer = os.pipe()  # as of `>(wc -c)`, or of /dev/stdout before a `|`
    write_text(f"/dev/fd/{writer}", "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    os.close(writer)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pathconf")
def test_a_name_as_long_as_names_may_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("a" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    write_text(path, "text")
    assert path.read_text() == "text"


# The page.


class Page(HTMLParser):
    """What a browser would find: the visible text, the addresses, the data scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.data = ""
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self._inside: list[str] = []
        self._kind: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.addresses += [given[name] or "" for name in ("src", "href") if name in given]
        if tag in ("script", "style"):
            self._inside.append(tag)
            self._kind = given.get("id")

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.text += data
        elif self._kind == "explorer-result":
            self.data += data


@pytest.mark.parametrize("make", [good, inaccurate, real, scaled])
def test_the_page_says_all_and_asks_for_nothing(make) -> None:  # type: ignore[no-untyped-def]
    seen: Result = make()
    html = to_html(seen)
    page = Page(html)
    assert page.addresses == ["data:,"]
    assert html.count("plotly.js v") == 1
    assert sentences.summary(seen) in page.text
    for name in seen.heads:
        assert f"{name}: {sentences.verdict(seen, name)}" in page.text
    for note in sentences.notes(seen):
        assert note in page.text
    for name, table in tables(seen).items():
        assert f'id="figure-{name}"' in html
        assert f"Table: {table.title}" in page.text
    for words in (seen.environment.device_name, seen.environment.torch, "Repeats", "no limit"):
        assert words in page.text
    assert sentences.plan(seen) in page.text
    for along in seen.scaling:
        for sentence in scaling_sentences.scaling(seen, along):
            assert sentence in page.text
    assert page.tags.count("details") == len(figures(seen))
    assert '<html lang="en">' in html
    assert 'name="viewport"' in html


def test_the_result_is_in_the_page() -> None:
    seen = real()
    assert Result.from_json(Page(to_html(seen)).data) == seen


def test_hostile_text_stays_text() -> None:
    evil = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>"
    seen = result(
        {evil: timed(1.0, noise=evil)},
        {evil: head({evil: None}, {evil: 1e-13}, domain=evil)},
        device_name=evil,
        notes=(evil,),
    )
    html = to_html(seen)
    page, plain = Page(html), Page(to_html(good()))
    assert page.tags.count("script") == plain.tags.count("script")
    assert "img" not in page.tags
    assert evil in page.text
    assert Result.from_json(page.data) == seen
    assert "alert(1)</script>" not in html


IN_A_BROWSER = """
import json, sys
from playwright.sync_api import sync_playwright
page_file, chromium = sys.argv[1:]
found = {"asked": [], "wrong": [], "widths": {}}
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=[
        "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
    for scheme, width in (("light", 1200), ("dark", 360)):
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
        page = context.new_page()
        page.on("request", lambda request: found["asked"].append(request.url))
        page.on("pageerror", lambda error: found["wrong"].append(str(error)))
        page.on("console", lambda message: found["wrong"].append(message.text))
        page.goto("file://" + page_file)
        page.wait_for_function("document.querySelectorAll('.main-svg').length >= 8")
        found["widths"][width] = page.evaluate("document.documentElement.scrollWidth")
        found[scheme] = page.evaluate('''() => getComputedStyle(
            document.querySelector('#figure-time .gtitle')).fill''')
        found["bars"] = page.evaluate('''() => [...document.querySelectorAll(
            '#figure-time .bars .point path')].map(bar => getComputedStyle(bar).fill)''')
        found["plots"] = page.evaluate('''() => [...document.querySelectorAll(
            '.js-plotly-plot')].map(plot => plot.id)''')
print(json.dumps(found))
"""


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    chromium = find()
    assert chromium is not None, "no Chromium: `make test` gets one"
    path = tmp_path / "page.html"
    write_text(path, to_html(good()))
    done = subprocess.run(
        [sys.executable, "-c", IN_A_BROWSER, path, chromium],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["asked"] == [path.as_uri()] * 2, "nothing but the page itself"
    assert found["wrong"] == []
    assert found["widths"] == {"1200": 1200, "360": 360}, "nothing sticks out"
    assert found["plots"] == [f"figure-{name}" for name in figures(good())]
    assert (found["light"], found["dark"]) == ("rgb(31, 31, 31)", "rgb(238, 238, 238)")
    assert found["bars"] == ["rgb(213, 94, 0)", "rgb(0, 114, 178)"], "in both themes"


def test_the_title_names_the_function_and_its_size() -> None:
    described = Experiment().described
    assert f"<title>{described.title}, size n = 60, float64</title>" in to_html(good())


def test_a_flow_has_its_page_with_sentences_pictures_and_tables() -> None:
    flow = linear(0.5, ways=WAYS, names=("<b>",) * 6)
    page = to_html(flow)
    for words in (flow_sentences.summary(flow), flow_sentences.cause(flow),
                  flow_sentences.ways(flow)):  # fmt: skip
        assert escape(words) in page
    for name, table in flow_tables(flow).items():
        assert f"<summary>Table: {escape(table.title)}</summary>" in page
        assert name == "ways" or f'id="figure-{name}"' in page
    assert "<th scope=\"row\">1</th><td><b>" not in page
    start = page.index('id="explorer-result">') + len('id="explorer-result">')
    assert Flow.from_json(page[start : page.index("</script>", start)]) == flow
    assert "<title>Gradient flow, a stack of one&#x27;s own, 6 steps, float64</title>" in page


def test_the_page_of_a_run_names_its_setting_and_what_may_help() -> None:
    chosen = FlowExperiment(size=4, steps=6, start="gain", gain=0.5)
    page = to_html(of(chosen, 0.1))
    assert "<title>Gradient flow, tanh: n = 4, T = 6, start gain 0.5, float64, cpu</title>" in page
    assert "<li>What may help: Start orthogonal; Use a GRU; Take a larger gain, 1.7.</li>" in page
