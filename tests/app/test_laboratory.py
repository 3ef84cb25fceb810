"""The page without a browser: set a control, look at the widgets."""

import json
import re
import time
from collections.abc import Callable, Iterator
from html import unescape
from itertools import pairwise

import ipywidgets as widgets
import pytest

from explorer.app.controls import steps
from explorer.app.laboratory import Laboratory
from explorer.app.runner import Runner
from explorer.app.state import State
from explorer.drawing import PLOTLY
from explorer.figures import figures
from explorer.turn import turn
from explorer.worker import Worker
from tests.results import good, scaled


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


def text(lab: Laboratory, name: str) -> str:
    """What stands in the paragraph of that class."""
    (found,) = (
        widget.value
        for widget in everything(lab.widget)
        if isinstance(widget, widgets.HTML) and f'class="{name}"' in widget.value
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


def test_a_choice_of_a_function_is_a_dropdown_of_its_names(lab):
    derivative = control(lab, "Derivative")
    assert [label for label, _ in derivative.options] == ["torch", "fast"]
    derivative.value = "fast"
    assert lab.state.experiment.parameters["derivative"] == "fast"
    lab.state.set("function", "recurrent_network")
    assert control(lab, "Cell").value == "tanh"


def test_torch_compile_is_a_switch(lab):
    control(lab, "torch.compile").value = True
    assert lab.state.experiment.compile and "compile=on" in lab.state.query
    lab.state.set("compile", "off")
    assert control(lab, "torch.compile").value is False


def test_a_first_experiment_that_fails_says_that_there_is_no_result():
    lab = Laboratory(State(), Runner(Worker()), "heads=y[99]&size=4")
    lab.start()
    until(lambda: lab.runner.status == "failed")
    assert any("y[99] does not exist" in each for each in problems(lab))
    until(lambda: "There is no result yet" in text(lab, "explorer-summary"))


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


def size_slider(lab: Laboratory) -> widgets.SelectionSlider:
    (slider,) = (w for w in everything(lab.widget) if isinstance(w, widgets.SelectionSlider))
    return slider


def test_the_slider_and_the_text_follow_each_other(lab):
    slider = size_slider(lab)
    steps = len(slider.options)
    for typed in ("57", "777", "1957", " 3 ", "2000"):
        control(lab, "Size n").value = typed
        assert slider.value == int(typed)
        assert control(lab, "Size n").value == typed
        assert len(slider.options) == steps
    slider.set_state({"index": 10})  # as a person's move arrives
    assert control(lab, "Size n").value == str(slider.options[10])


def test_what_the_slider_of_another_function_still_sends_changes_nothing(lab):
    before = size_slider(lab)
    control(lab, "Function").value = "tanh_network"
    assert size_slider(lab) is not before
    before.set_state({"index": 7})
    assert control(lab, "Size n").value == "200"


@pytest.mark.parametrize(
    ("low", "high", "count"),
    [(2, 2000, 121), (1, 2000, 121), (1, 122, 121), (2, 50, 49), (3, 3, 1)],
)
def test_the_steps_of_a_slider_are_distinct_and_reach_both_ends(low, high, count):
    found = steps(low, high)
    assert (found[0], found[-1], len(found)) == (low, high, count)
    assert all(one < other for one, other in pairwise(found))


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
        figure = output.outputs[0]["data"][PLOTLY]
        assert figure["data"]
    page = [w.value for w in everything(started.widget) if isinstance(w, widgets.HTML)]
    assert any('role="status"' in value and "reuse" in value for value in page)
    assert sum("<table" in value for value in page) == 4


def test_the_plan_of_auto_stands_below_the_summary(started):
    assert text(started, "explorer-plan").startswith('<p class="explorer-plan">auto (reuse): 1 ')


def outputs(lab: Laboratory) -> list[widgets.Output]:
    return [w for w in everything(lab.widget) if isinstance(w, widgets.Output)]


def titles(lab: Laboratory) -> list[str]:
    return [output.outputs[0]["data"]["text/plain"] for output in outputs(lab)]


def test_a_scaling_has_its_pictures_and_is_drawn_relative_to_a_path_without_a_run(lab):
    lab.pictures.show(good())
    chosen = control(lab, "Times of the scaling")
    part = lab.pictures._scaling_part
    assert part.layout.display == "none" and len(outputs(lab)) == 4
    lab.pictures.show(scaled())
    assert part.layout.display is None
    assert titles(lab)[4:] == ["Passes by number of heads", "Time by number of heads"]
    assert chosen.tooltip
    chosen.value = "reuse"
    assert titles(lab)[5] == "Relative time by number of heads"
    lab.pictures.show(scaled("cancelled"))
    assert chosen.value == "reuse"
    lab.pictures.show(good())
    assert part.layout.display == "none" and len(outputs(lab)) == 4 and chosen.value == ""


def test_the_lines_of_a_scaling_follow_the_supposed_f_in_the_pictures_on_show(lab):
    lab.pictures.show(scaled())
    before = [output.outputs for output in outputs(lab)]
    slower = control(lab, "Were f so many times slower")

    def moved() -> list[dict[str, object]]:
        values = (getattr(widget, "value", "") for widget in everything(lab.widget))
        found = (re.search('class="explorer-moved" data-figure="(.*?)"', str(v)) for v in values)
        return [json.loads(unescape(each.group(1))) for each in found if each]

    slower.value = 10
    assert [output.outputs for output in outputs(lab)] == before
    drawn = figures(scaled(), "", 10)["scaling-heads-time"]
    (figure,) = moved()
    assert {name: figure[name] for name in ("data", "layout")} == json.loads(drawn.to_json())
    assert "were f 10 times slower: from 2 on" in lab.pictures._scaling_words.value

    control(lab, "Times of the scaling").value = "reuse"  # other pictures, which come as new ones
    assert not moved()
    title = outputs(lab)[5].outputs[0]["data"][PLOTLY]["layout"]["title"]
    assert title["subtitle"]["text"].replace("<br>", " ").endswith("were f 10 times slower")
    lab.pictures.reset()
    assert slower.value == 1 and control(lab, "Times of the scaling").value == ""
    assert "Fitted to the points" in lab.pictures._scaling_words.value


def test_a_scaling_is_ticked_and_does_not_run_by_itself(started):
    before = started.runner.result
    control(started, "outputs").value = True
    control(started, "heads").value = True
    assert started.state.experiment.scaling == ("heads", "outputs")
    control(started, "Cut-off").value = "-1"
    assert any("Cut-off is -1. Allowed: a number above 0" in each for each in problems(started))
    control(started, "Cut-off").value = "0.002"
    started.run.click()
    until(lambda: bool(started.runner.result.scaling) and started.runner.status == "done")
    assert before.scaling == {} and list(started.runner.result.scaling) == ["heads"]
    assert len(outputs(started)) == 6


def test_a_path_whose_package_is_missing_is_offered_only_while_a_link_names_it(monkeypatch):
    monkeypatch.setattr("explorer.experiment.find_spec", lambda name: None)

    def offered(lab):
        return [w for w in everything(lab.widget) if getattr(w, "description", "") == "torchjd"]

    assert not offered(Laboratory(State(), Runner(Worker())))
    named = Laboratory(State(), Runner(Worker()), "paths=reuse,torchjd")
    assert offered(named)
    (problem,) = problems(named)
    assert "pip install torchjd" in problem
    control(named, "torchjd").value = False
    assert problems(named) == [] and not offered(named)


def test_a_path_whose_package_is_there_is_offered(lab):
    control(lab, "torchjd").value = True
    assert "torchjd" in lab.state.experiment.paths


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
    control(started, "Were f so many times slower").value = 10
    control(started, "Seed").value = "wrong"
    started.reset.click()
    assert control(started, "Seed").value == "0"
    assert control(started, "Were f so many times slower").value == 1
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


def test_every_unknown_name_in_a_link_is_told_until_run_is_pressed():
    lab = Laboratory(State(), Runner(Worker()), "size=4&frob=1&nix=2")
    lab.start()
    (told,) = problems(lab)
    assert "frob" in told and "nix" in told
    lab.run.click()
    until(lambda: lab.runner.status == "done")
    assert problems(lab) == []


def test_of_many_unknown_names_in_a_link_the_first_are_told():
    query = "&".join(f"name{number}=1" for number in range(50))
    lab = Laboratory(State(), Runner(Worker()), query)
    lab.start()
    (told,) = problems(lab)
    assert "name2" in told and "name3" not in told and "And 47 more" in told


def test_a_link_to_a_long_experiment_waits_for_run():
    lab = Laboratory(State(), Runner(Worker()), "size=2000&repeats=1000&budget=86400")
    lab.start()
    until(lambda: bool(lab.runner.devices))
    assert lab.runner.status == "idle"
    assert "press Run" in text(lab, "explorer-summary")
    assert not lab.run.disabled


def test_the_pictures_say_what_they_are_of_and_that_the_controls_have_changed(started):
    assert "Trace of a matrix exponential: n = 4, x = 1.0, derivative = torch, float64" in text(
        started, "explorer-heading"
    )
    assert "explorer-stale" not in started.pictures.widget._dom_classes
    control(started, "Size n").value = "1500"
    assert "explorer-stale" in started.pictures.widget._dom_classes
    control(started, "Size n").value = "4"
    assert "explorer-stale" not in started.pictures.widget._dom_classes


def test_a_run_in_the_queue_says_its_place_and_cancels_there(started):
    with turn(lambda place: None):
        control(started, "Size n").value = "5"
        until(lambda: "Place 1 in the queue" in started.runner.message)
        started.cancel.click()
        until(lambda: started.runner.status == "cancelled")
    assert started.runner.message == "Cancelled before it began."


def test_a_run_that_waits_for_another_is_told(started):
    control(started, "Size n").value = "1500"
    started.run.click()
    until(lambda: started.runner.status == "running")
    started.run.click()
    until(lambda: "the next run waits" in started.runner.message)
    started.cancel.click()
    until(lambda: started.runner.status == "cancelled")


def test_a_device_that_only_the_worker_knows_to_be_missing_is_told_beside_its_control():
    lab = Laboratory(State(), Runner(Worker()), "device=cuda:7&size=10")
    lab.start()
    until(lambda: any("Device cuda:7 is not on this machine" in p for p in problems(lab)))
    assert lab.runner.result is None
