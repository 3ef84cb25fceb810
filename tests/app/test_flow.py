"""The panel of the gradient flow without a browser, and the switch between the panels."""

from collections.abc import Iterator

import ipywidgets as widgets
import pytest

from explorer.app.flow import FlowPanel
from explorer.app.laboratory import Laboratory, Page
from explorer.app.runner import Runner
from explorer.app.state import FlowState
from explorer.flow import sentences
from explorer.flow.experiment import FIELDS, FlowExperiment
from explorer.worker import Worker
from tests.app.test_laboratory import control, everything, problems, text, until

SMALL = "panel=flow&size=6&steps=30&repeats=2"


@pytest.fixture
def panel() -> FlowPanel:
    """Shown but not started: nothing runs."""
    return FlowPanel(Runner(Worker()), "panel=flow")


@pytest.fixture
def started() -> Iterator[FlowPanel]:
    """A panel whose first run is done."""
    panel = FlowPanel(Runner(Worker()), SMALL)
    panel.start()
    until(lambda: panel.runner.status == "done")
    yield panel
    panel.runner.cancel()


def button(panel: FlowPanel, description: str) -> widgets.Button:
    buttons = (each for each in everything(panel.widget) if isinstance(each, widgets.Button))
    return next(each for each in buttons if each.description == description)


def ended(panel: FlowPanel, name: str, value: object) -> bool:
    """Whether a run with that value is over, and drawn."""
    shown = getattr(panel.runner.result.experiment, name)
    return shown == value and panel.runner.status == "done"


def tables(panel: FlowPanel) -> list[str]:
    return [each.value for each in everything(panel.widget)
            if isinstance(each, widgets.HTML) and "<table" in each.value]  # fmt: skip


def drawn(panel: FlowPanel) -> list[dict]:
    """The traces' data of the pictures."""
    outputs = [each for each in everything(panel.widget) if isinstance(each, widgets.Output)]
    return [each.outputs[0]["data"]["application/vnd.plotly.v1+json"] for each in outputs]


def test_every_field_has_a_row_and_a_control_with_a_name(panel):
    assert list(panel.controls.rows) == list(FIELDS)
    for field in FIELDS.values():
        if field.kind != "choices":
            assert control(panel, field.label).tooltip
    for loss in ("energy", "readout", "class"):
        assert control(panel, loss).value is True


def test_the_gain_is_there_for_the_start_that_it_counts_for(panel):
    assert panel.controls.rows["gain"].box.layout.display == "none"
    control(panel, "Start").value = "gain"
    assert panel.controls.rows["gain"].box.layout.display is None


def test_a_wrong_value_keeps_its_text_has_its_sentence_and_disables_run(panel):
    control(panel, "Steps T").value = "501"
    (problem,) = problems(panel)
    assert "Steps T is 501. Allowed: a whole number from 1 to 500." in problem
    assert panel.run.disabled and control(panel, "Steps T").value == "501"
    control(panel, "Steps T").value = "12"
    assert problems(panel) == [] and not panel.run.disabled


def test_a_link_opens_the_state_it_was_made_from():
    state, other = FlowState(), FlowState()
    state.enter(FlowExperiment(cell="gru", start="gain", gain=1.5, losses=("class", "energy")))
    assert state.query.startswith("panel=flow&")
    assert other.load(state.query) == []
    assert other.experiment == state.experiment
    assert FlowState().query == "panel=flow"


def test_a_link_with_what_is_no_field_is_told_and_not_run():
    panel = FlowPanel(Runner(Worker()), "panel=flow&steps=0&frob=1")
    panel.start()
    until(lambda: bool(panel.runner.devices))
    assert panel.runner.status == "idle" and panel.runner.result is None
    assert any("Steps T is 0" in each for each in problems(panel))
    assert any("frob" in each for each in problems(panel))


def test_what_is_shown_is_the_flow(started):
    flow = started.runner.result
    assert sentences.summary(flow) in text(started, "explorer-summary")
    assert len(drawn(started)) == 3 and all(each["data"] for each in drawn(started))
    assert len(tables(started)) == 4  # a table a picture, and the two ways


def test_a_button_applies_its_change_and_shows_what_was_before(started):
    before = started.runner.result
    plain = len(drawn(started)[0]["data"])
    button(started, "Start orthogonal").click()
    assert started.state.entries["start"] == "orthogonal"
    until(lambda: ended(started, "start", "orthogonal"))
    after = started.pictures.flow
    assert sentences.left(before) < 1e-3 < sentences.left(after)
    assert len(drawn(started)[0]["data"]) > plain
    assert "instead of default" in text(started, "explorer-compared")


def test_another_change_is_not_compared(started):
    button(started, "Start orthogonal").click()
    until(lambda: ended(started, "start", "orthogonal"))
    lines = len(drawn(started)[0]["data"])
    control(started, "Seed").value = "3"
    started.run.click()
    until(lambda: ended(started, "seed", 3))
    assert len(drawn(started)[0]["data"]) < lines


def test_a_run_teaches_how_long_others_will_take(started):
    flow = started.runner.result

    def hundred_steps() -> float:
        return started.expected(FlowExperiment(steps=500)) - started.expected(
            FlowExperiment(steps=400)
        )

    ways = {
        name: each.model_copy(update={"minimum": 50 * each.minimum})
        for name, each in (("naive", flow.ways.naive), ("jacobians", flow.ways.jacobians),
                           ("chain", flow.ways.chain))
    }  # fmt: skip
    before = hundred_steps()
    slow = flow.model_copy(update={"ways": flow.ways.model_copy(update=ways)})
    started.runner.result = slow
    assert hundred_steps() == pytest.approx(50 * before)


def test_reset_takes_everything_back(panel):
    control(panel, "Cell").value = "lstm"
    control(panel, "Seed").value = "x"
    panel.reset.click()
    assert panel.state.experiment == FlowExperiment() and problems(panel) == []


def test_the_page_opens_with_the_heads_and_builds_the_flow_when_it_is_switched_to():
    page = Page(Worker(), "size=4&repeats=2")
    heads = page.panel
    assert isinstance(heads, Laboratory) and heads.state.experiment.size == 4
    page.switch.value = "flow"
    assert isinstance(page.panel, FlowPanel)
    shown = [each for each in page.widget.children if each in (heads.widget, page.panel.widget)]
    assert shown == [page.panel.widget]
    page.panel.runner.cancel()
    page.switch.value = ""
    assert page.panel is heads and heads.state.experiment.size == 4


def test_a_link_to_the_flow_opens_it_in_that_state():
    page = Page(Worker(), "panel=flow&steps=7")
    assert page.switch.value == "flow" and page.panel.state.experiment.steps == 7


def test_a_panel_that_is_no_panel_is_told():
    page = Page(Worker(), "panel=nothing")
    assert isinstance(page.panel, Laboratory)
    page.start()
    assert any("panel" in each for each in problems(page))
