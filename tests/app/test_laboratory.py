"""The page without a browser: set a control, look at the widgets."""

import time
from collections.abc import Callable, Iterator

import ipywidgets as widgets
import pytest

from explorer.app.laboratory import Laboratory
from explorer.app.runner import Runner
from explorer.app.state import State
from explorer.worker import Worker


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


def everything(widget: widgets.Widget) -> Iterator[widgets.Widget]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from everything(child)


def control(lab: Laboratory, description: str) -> widgets.Widget:
    """The control of that name; a text box's label may have its unit behind."""
    (found,) = (
        widget
        for widget in everything(lab.widget)
        if getattr(widget, "description", "").partition(" (")[0] == description
    )
    return found


def problems(lab: Laboratory) -> list[str]:
    return [
        widget.value
        for widget in everything(lab.widget)
        if isinstance(widget, widgets.HTML)
        and "explorer-problem" in widget.value
        and "<style" not in widget.value
    ]


@pytest.fixture
def lab() -> Laboratory:
    """A page that is shown but has not been started: nothing runs."""
    return Laboratory(State(), Runner(Worker()))


@pytest.fixture
def started() -> Iterator[Laboratory]:
    """A page on a small experiment whose first run is done."""
    lab = Laboratory(State(), Runner(Worker()), "size=4&repeats=2")
    lab.start()
    until(lambda: lab.runner.status == "done")
    yield lab
    lab.runner.cancel()


def test_every_field_has_a_control_with_a_name(lab):
    for name in ("Function", "Size n", "x", "Device", "Repeats", "Seed", "Time budget"):
        assert control(lab, name).tooltip
    for name in ("float32", "float64", "square", "logsumexp", "recompute", "reuse"):
        assert control(lab, name).tooltip


def test_a_wrong_value_keeps_its_text_has_its_sentence_and_disables_run(lab):
    control(lab, "Size n").value = "abc"
    assert control(lab, "Size n").value == "abc"
    (problem,) = problems(lab)
    assert "Size n is abc. Allowed: a whole number from 2 to 2000." in problem
    assert lab.run.disabled
    control(lab, "Size n").value = "30"
    assert problems(lab) == []
    assert not lab.run.disabled


def test_what_is_typed_is_escaped_where_it_is_repeated(lab):
    control(lab, "Seed").value = "<img src=x onerror=alert(1)>"
    (problem,) = problems(lab)
    assert "<img" not in problem and "&lt;img" in problem


def test_the_last_head_unticked_says_so(lab):
    control(lab, "square").value = False
    control(lab, "sqrt").value = False
    (problem,) = problems(lab)
    assert "No head is chosen" in problem


def test_the_slider_and_the_text_follow_each_other(lab):
    (slider,) = (w for w in everything(lab.widget) if isinstance(w, widgets.FloatLogSlider))
    control(lab, "Size n").value = "57"
    assert round(slider.value) == 57
    slider.value = 10**2.5
    assert control(lab, "Size n").value == "316"


def test_another_function_shows_its_own_parameters(lab):
    control(lab, "Function").value = "tanh_network"
    assert control(lab, "Layers").value == "3"
    with pytest.raises(ValueError, match="not enough values"):
        control(lab, "x")


def test_a_dtype_that_a_device_lacks_is_disabled_with_the_reason(lab):
    lab.state.set("device", "mps")
    assert control(lab, "float64").disabled
    assert not control(lab, "float32").disabled
    assert "float32 only" in control(lab, "float64").tooltip


def test_pressing_the_chosen_dtype_again_leaves_it_chosen(lab):
    control(lab, "float64").value = False
    assert control(lab, "float64").value
    control(lab, "float32").value = True
    assert lab.state.experiment.dtype == "float32"
    assert not control(lab, "float64").value


def test_a_fault_in_a_callback_is_shown_and_not_swallowed(lab):
    def fault(_):
        raise KeyError("lost")

    lab.run.on_click(lab._guarded(fault))
    lab.run.click()
    assert any("KeyError" in problem for problem in problems(lab))


def test_the_first_view_has_four_pictures_a_sentence_and_a_table_behind_each(started):
    outputs = [w for w in everything(started.widget) if isinstance(w, widgets.Output)]
    assert len(outputs) == 4
    for output in outputs:
        figure = output.outputs[0]["data"]["application/vnd.plotly.v1+json"]
        assert figure["data"]
    page = [w.value for w in everything(started.widget) if isinstance(w, widgets.HTML)]
    assert any('role="status"' in value and "reuse" in value for value in page)
    assert sum("<table" in value for value in page) == 4


def test_a_quick_change_runs_by_itself_and_the_link_follows(started):
    before = started.runner.result
    control(started, "Size n").value = "6"
    until(lambda: started.runner.status == "done" and started.runner.result is not before)
    until(lambda: started.runner.result.experiment.size == 6)
    links = [w.value for w in everything(started.widget) if isinstance(w, widgets.HTML)]
    assert any("explorer-state" in value and "size=6" in value for value in links)


def test_cancel_ends_a_long_run_keeps_the_last_result_and_says_so(started):
    shown = started.runner.result
    control(started, "Size n").value = "1500"
    started.run.click()
    until(lambda: started.runner.status == "running")
    assert not started.cancel.disabled
    started.cancel.click()
    until(lambda: started.runner.status == "cancelled")
    assert started.runner.result == shown
    assert started.runner.message.startswith("Cancelled")
    assert started.cancel.disabled


def test_reset_brings_the_default_experiment_back_and_runs_it(started):
    control(started, "Seed").value = "wrong"
    started.reset.click()
    assert control(started, "Seed").value == "0"
    assert problems(started) == []
    until(lambda: started.runner.result.experiment.size == 200)


def test_a_wrong_link_is_told_and_not_run():
    lab = Laboratory(State(), Runner(Worker()), "size=99999&frobnicate=1")
    lab.start()
    until(lambda: bool(lab.runner.devices))
    assert lab.runner.status == "idle"
    assert lab.runner.result is None
    assert any("Size n is 99999" in problem for problem in problems(lab))
    assert any("frobnicate" in problem for problem in problems(lab))


def test_a_device_that_only_the_worker_knows_to_be_missing_is_told_beside_its_control():
    lab = Laboratory(State(), Runner(Worker()), "device=cuda:7&size=10")
    lab.start()
    until(lambda: any("Device cuda:7 is not on this machine" in p for p in problems(lab)))
    assert lab.runner.result is None
