"""The panel of the comparisons without a browser."""

import base64
import json
from typing import Any

import ipywidgets as widgets
import pytest

from explorer.app.compare import ComparePanel
from explorer.app.files import LARGEST, File
from explorer.app.laboratory import Page
from explorer.app.panel import asset
from explorer.comparing import sentences
from explorer.comparing.comparison import compare
from explorer.result import Result
from explorer.worker import Worker
from tests.app.test_laboratory import everything, problems, text
from tests.comparing.results import elsewhere, measured


def file(name: str, result: Result) -> File:
    data = result.to_json().encode()
    return File(name, len(data), data)


@pytest.fixture
def panel() -> ComparePanel:
    return ComparePanel(lambda: None)


def button(part: Any, description: str) -> widgets.Button:
    return next(
        each
        for each in everything(part.widget)
        if isinstance(each, widgets.Button) and each.description == description
    )


def drawn(part: Any) -> int:
    """How many pictures are on show."""
    return sum(isinstance(each, widgets.Output) for each in everything(part.widget))


def test_files_are_compared_as_soon_as_there_are_two(panel: ComparePanel) -> None:
    assert "A comparison takes two results" in text(panel, "explorer-summary")
    panel.take([file("laptop.json", measured())])
    assert "laptop is loaded" in text(panel, "explorer-summary") and drawn(panel) == 0
    panel.take([file("gpu.json", elsewhere())])
    found = compare({"laptop": measured(), "gpu": elsewhere()})
    assert sentences.summary(found) in text(panel, "explorer-summary")
    assert drawn(panel) == 2
    shown = " ".join(each.value for each in everything(panel.widget)
                     if isinstance(each, widgets.HTML))  # fmt: skip
    for sentence in (*sentences.environments(found), *sentences.notes(found)):
        assert sentence in shown


def test_what_cannot_be_read_is_told_and_what_is_there_stays(panel: ComparePanel) -> None:
    panel.take([file("a.json", measured()), File("b.json", 3, b"{,}"), file("c.json", elsewhere())])
    (said,) = problems(panel)
    assert "b.json is not JSON" in said and drawn(panel) == 2
    panel.take([File("big.json", LARGEST + 1, None), File("folder", 4096, None)])
    (said,) = problems(panel)
    assert "big.json is larger than 5 MB" in said and "folder cannot be read" in said
    assert drawn(panel) == 2
    panel.take([file("again.json", measured())])
    assert "again is the same Result as a, and counts once" in problems(panel)[0]


def test_results_are_removed_and_the_next_one_is_what_the_others_are_compared_with(
    panel: ComparePanel,
) -> None:
    every = {"a": measured(), "b": measured(2.0), "c": measured(4.0)}
    panel.take([file(f"{name}.json", result) for name, result in every.items()])
    assert "Against a: " in text(panel, "explorer-summary")
    button(panel, "Remove").click()
    assert "c is slower than b" in text(panel, "explorer-summary")
    panel.clear.click()
    assert "A comparison takes two" in text(panel, "explorer-summary")
    assert drawn(panel) == 0 and panel.clear.disabled


def test_the_last_result_of_the_page_is_added() -> None:
    shown: list[Result] = []
    panel = ComparePanel(lambda: shown[-1] if shown else None)
    panel.add.click()
    assert "There is no result yet" in problems(panel)[0]
    shown.append(measured())
    panel.add.click()
    assert problems(panel) == [] and "run 04:00:00 is loaded" in text(panel, "explorer-summary")
    panel.add.click()
    assert "given twice" in problems(panel)[0]
    shown.append(measured(3.0))
    panel.add.click()
    assert "run 04:00:00 (2) is slower than run 04:00:00" in text(panel, "explorer-summary")


def test_hostile_names_stay_text(panel: ComparePanel) -> None:
    name = "<img src=x onerror=alert(1)>"
    panel.take([file(name, measured()), file("b", elsewhere()), File(f"{name}2", 1, b"{")])
    for each in everything(panel.widget):
        if isinstance(each, widgets.HTML):
            assert "<img" not in each.value


def entered(*files: tuple[str, bytes | None, int], first: bool = True) -> str:
    """What the page's script enters into the box."""
    entries = [
        {
            "name": name,
            "size": size,
            "content": None if data is None else base64.b64encode(data).decode(),
        }
        for name, data, size in files
    ]
    return json.dumps({"first": first, "files": entries})


def box(page: Page) -> widgets.Textarea:
    (found,) = (each for each in page.widget.children if isinstance(each, widgets.Textarea))
    return found


def test_files_that_are_dropped_on_the_page_open_the_panel_and_empty_the_box() -> None:
    page = Page(Worker(), "size=4")
    data = measured().to_json().encode()
    box(page).value = entered(("a.json", data, len(data)), ("b.json", None, 9_000_000))
    assert box(page).value == "" and page.switch.value == "compare"
    assert isinstance(page.panel, ComparePanel)
    assert "a is loaded" in text(page.panel, "explorer-summary")
    assert "b.json is larger than" in problems(page.panel)[0]
    box(page).value = entered(("c.json", b"{", 1), first=False)
    (told,) = problems(page.panel)
    assert "b.json is larger than" in told and "c.json breaks off" in told
    box(page).value = entered(("d.json", b"{", 1))
    assert "b.json" not in problems(page.panel)[0]


WRONG = '{"first": true, "files": [{"name": "a", "size": 1, "content": "%"}]}'


@pytest.mark.parametrize("wrong", ["{", "[1]", WRONG, "3"])
def test_what_no_script_of_ours_enters_is_told_and_the_box_goes_on(wrong: str) -> None:
    page = Page(Worker(), "panel=compare")
    box(page).value = wrong
    assert any("The page failed: " in each for each in problems(page)) and box(page).value == ""
    box(page).value = entered(("a.json", b"{", 1))
    assert any("a.json breaks off" in each for each in problems(page))


def test_the_box_sends_nothing_back() -> None:
    assert box(Page(Worker(), "panel=compare")).trait_metadata("value", "echo_update") is False


def test_the_link_opens_the_panel() -> None:
    page = Page(Worker(), "panel=compare")
    page.start()
    assert isinstance(page.panel, ComparePanel)
    assert any('data-query="panel=compare"' in each.value for each in everything(page.widget)
               if isinstance(each, widgets.HTML))  # fmt: skip


def test_the_script_refuses_what_is_larger_than_the_panel_says() -> None:
    script = asset("page.js")
    assert f"LARGEST_FILE = {LARGEST};" in script
    # Written out in base64, and with the rest of a message, below tornado's limit.
    assert LARGEST * 4 / 3 + 1e6 < 10 * 2**20
