"""What can be downloaded from the page: made when a button is pressed, and not kept in it."""

import re
from base64 import b64decode
from html import unescape
from typing import Any

import ipywidgets as widgets
import pytest

from explorer.app.compare import ComparePanel
from explorer.app.files import File
from explorer.app.flow import FlowPanel
from explorer.app.laboratory import Laboratory
from explorer.app.runner import Runner
from explorer.app.state import State
from explorer.app.sweep import SweepPanel
from explorer.comparing.comparison import compare
from explorer.export import to_html
from explorer.flow.experiment import FlowExperiment
from explorer.rows import to_csv
from explorer.worker import Worker
from tests.comparing.results import elsewhere, measured
from tests.flow.flows import of
from tests.results import good, real
from tests.study.points import growing, study


def buttons(panel: Any) -> dict[str, widgets.Button]:
    """The buttons by what they say; the one that nobody sees says nothing."""
    children = panel.downloads.widget.children
    return {each.description: each for each in children if isinstance(each, widgets.Button)}


def sent(panel: Any) -> tuple[str, str] | None:
    """The name and the text of the file that is in the page, None for none."""
    (value,) = (
        each.value for each in panel.downloads.widget.children[1:] if isinstance(each, widgets.HTML)
    )
    if not value:
        return None
    found = re.search(r'data-name="(.*?)" data-content="(.*?)"', value)
    assert found
    return unescape(found[1]), b64decode(found[2]).decode()


def heads() -> Laboratory:
    return Laboratory(State(), Runner(Worker()))


def flow() -> FlowPanel:
    return FlowPanel(Runner(Worker()))


def sweep() -> SweepPanel:
    return SweepPanel(Runner(Worker()))


@pytest.mark.parametrize(
    ("make", "seen", "stem", "first"),
    [
        (heads, real(), "explorer-matrix_exp_trace-20", ("JSON", "json")),
        (flow, of(FlowExperiment(size=4, steps=6)), "explorer-flow-tanh-4", ("JSON", "json")),
        (sweep, study({"size": "4,8"}, growing), "explorer-sweep-matrix_exp_trace-size",
         ("JSON lines", "jsonl")),
    ],
)  # fmt: skip
def test_a_panel_offers_what_is_on_show(
    make: Any, seen: Any, stem: str, first: tuple[str, str]
) -> None:
    panel = make()
    words, ending = first
    assert list(buttons(panel)) == [words, "CSV", "HTML", ""]
    offered = [each for name, each in buttons(panel).items() if name]
    assert all(each.disabled for each in offered)
    panel.runner.result = seen
    assert not any(each.disabled for each in offered)
    assert sent(panel) is None, "nothing is made before a button is pressed"
    lines = seen.to_json() + "\n" if ending == "json" else "".join(
        point.line.decode() for point in seen.points
    )  # fmt: skip
    made = {words: (ending, lines), "CSV": ("csv", to_csv(seen)), "HTML": ("html", to_html(seen))}
    for name, (end, text) in made.items():
        buttons(panel)[name].click()
        assert sent(panel) == (f"{stem}.{end}", text)
        buttons(panel)[""].click()  # as the page's script does when it has the file
        assert sent(panel) is None
    assert panel._fault.value == ""


def test_a_second_press_is_a_second_download() -> None:
    panel = heads()
    panel.runner.result = good()
    values = []
    for _ in range(2):
        buttons(panel)["CSV"].click()
        values.append(panel.downloads.widget.children[-2].value)
    ids = [re.search('data-id="(.*?)"', value)[1] for value in values]  # type: ignore[index]
    assert len(set(ids)) == 2


def test_a_comparison_is_offered_while_there_is_one() -> None:
    panel = ComparePanel(lambda: None)
    assert list(buttons(panel)) == ["CSV", "HTML", ""]
    results = {"laptop": measured(), "gpu": elsewhere()}
    for name, result in results.items():
        assert buttons(panel)["CSV"].disabled
        data = result.to_json().encode()
        panel.take([File(f"{name}.json", len(data), data)])
    found = compare(results)
    for name, end, text in (("CSV", "csv", to_csv(found)), ("HTML", "html", to_html(found))):
        buttons(panel)[name].click()
        assert sent(panel) == (f"explorer-comparison.{end}", text)
    panel.clear.click()
    assert buttons(panel)["CSV"].disabled


def test_a_file_that_cannot_be_made_is_told_on_the_page() -> None:
    panel = heads()
    panel.downloads.offer()
    buttons(panel)["CSV"].click()  # of nothing
    assert "The page failed" in panel._fault.value


@pytest.mark.parametrize(
    ("make", "seen", "card"),
    [
        (heads, good(), "time"),
        (flow, of(FlowExperiment(size=4, steps=6)), "gradients"),
        (sweep, study({"size": "4,8"}, growing), "time"),
    ],
)
def test_a_picture_saves_the_kind_that_is_chosen(make: Any, seen: Any, card: str) -> None:
    panel = make()
    panel.runner.result = seen

    def saves() -> tuple[str, str]:
        (output,) = panel.pictures.cards[card]._plot.outputs
        options = output["data"]["application/vnd.plotly.v1+json"]["config"]["toImageButtonOptions"]
        return options["format"], options["filename"]

    kind, name = saves()
    assert kind == "png" and re.fullmatch(rf"explorer-[\w-]+-{card}", name)
    panel.pictures.cards.kind.value = "svg"
    assert saves() == ("svg", name)
