"""Links on the page without a browser: what is copied, hidden and locked, and the projector."""

import html
import re
from dataclasses import replace

import ipywidgets as widgets
import pytest

from explorer.app.compare import ComparePanel
from explorer.app.flow import FlowPanel
from explorer.app.laboratory import Laboratory, Page
from explorer.app.panel import PROJECTED, Panel
from explorer.app.runner import Runner
from explorer.app.state import FlowState, State
from explorer.app.sweep import SweepPanel
from explorer.comparing.comparison import compare
from explorer.functions import FUNCTIONS
from explorer.worker import Worker
from tests.app.test_laboratory import control, everything, problems, text, until
from tests.results import good, scaled
from tests.study.points import growing, study


def opened(query: str) -> Laboratory:
    """The panel as a link opens it, not started."""
    return Laboratory(State(), Runner(Worker()), query)


def query_of(place: widgets.HTML) -> str:
    """What the page's script finds to copy."""
    (found,) = re.findall(r'data-query="([^"]*)"', place.value)
    return html.unescape(found)


def row(panel: Panel, name: str) -> widgets.VBox:
    rows = (each for each in everything(panel.widget) if isinstance(each, widgets.VBox))
    (found,) = (each for each in rows if f"explorer-row-{name}" in each._dom_classes)
    return found


def is_hidden(widget: widgets.Widget) -> bool:
    return "explorer-hidden" in widget._dom_classes


def said(panel: Panel, name: str) -> str:
    """What stands beside a control, as text."""
    return re.sub("<[^>]*>", "", row(panel, name).children[-1].value)


def heights(panel: Panel) -> list[float]:
    """Of the pictures that are drawn."""
    outputs = [each for each in everything(panel.widget) if isinstance(each, widgets.Output)]
    bundles = [each.outputs[0]["data"] for each in outputs if each.outputs]
    return [each["application/vnd.plotly.v1+json"]["layout"]["height"] for each in bundles]


def test_the_link_to_copy_follows_what_is_right():
    lab = opened("size=4&repeats=2")
    lab._loading = False
    control(lab, "Seed").value = '7"'
    assert lab.sharing.copying.button.disabled
    control(lab, "Seed").value = "7"
    assert not lab.sharing.copying.button.disabled
    assert query_of(lab.sharing.copying.query) == lab.state.query
    again = State()
    assert again.load(query_of(lab.sharing.copying.query)) == []
    assert again.experiment == lab.state.experiment and again.experiment.seed == 7


def test_the_servers_own_names_go_with_the_link():
    lab = opened("size=4&token=a")
    lab.sharing.tell()
    assert 'data-servers="token template theme"' in lab.sharing.copying.query.value


def test_a_function_of_ones_own_has_no_link(monkeypatch):
    mine = replace(FUNCTIONS["tanh_network"], name="mine", own=True)
    monkeypatch.setitem(FUNCTIONS, "mine", mine)
    lab = Laboratory(State("mine"), Runner(Worker()))
    assert lab.sharing.copying.button.disabled
    assert "function of your own" in lab.sharing.copying.button.tooltip


def test_a_hidden_control_keeps_its_value_and_comes_to_light_when_it_is_wrong():
    lab = opened("seed=5&x=0.5&hide=seed,x,heads")
    assert all(is_hidden(row(lab, name)) for name in ("seed", "x", "heads"))
    assert not is_hidden(row(lab, "size")) and lab.state.experiment.seed == 5
    lab.state.set("seed", "abc")
    assert not is_hidden(row(lab, "seed")) and "Seed is abc." in said(lab, "seed")
    lab.reset.click()
    lab.runner.cancel()
    assert is_hidden(row(lab, "seed")) and lab.state.experiment.seed == 5


def test_what_a_link_asked_for_is_told_where_its_control_is_hidden():
    lab = opened("size=99999&hide=size")
    assert is_hidden(row(lab, "size"))
    assert said(lab, "size").startswith("Size n is 99999 in the link; 2000 was taken.")


def test_a_link_with_a_number_out_of_range_waits_for_run():
    lab = opened("repeats=5000&size=4")
    lab.start()
    until(lambda: bool(lab.runner.devices))
    assert lab.runner.status == "idle" and lab.runner.result is None
    assert "press Run" in text(lab, "explorer-summary")
    assert [each for each in problems(lab) if "1000 was taken" in each]
    assert not lab.run.disabled and lab.state.experiment.repeats == 1000


def test_a_lock_says_what_it_allows_and_refuses_more():
    lab = opened("size=30&dtype=float32&compile=off&lock=size,derivative,compile,seed,heads,dtype")
    assert said(lab, "size") == "The link allows at most 30."
    assert said(lab, "heads") == "The link allows at most 2 heads."
    assert said(lab, "dtype") == "The link allows only float32."
    assert said(lab, "repeats") == ""
    for name in ("Derivative", "torch.compile", "Seed"):
        assert control(lab, name).disabled
    control(lab, "Size n").value = "31"
    assert said(lab, "size") == "Size n is 31. The link allows at most 30."
    assert lab.run.disabled and control(lab, "Size n").value == "31"
    control(lab, "Size n").value = "29"
    assert said(lab, "size") == "The link allows at most 30." and not lab.run.disabled
    control(lab, "exp").value = True
    assert said(lab, "heads") == "These are 3 heads. The link allows at most 2 heads."


def test_a_reset_to_a_long_run_waits_for_run():
    lab = opened("size=2000&repeats=1000&budget=86400&lock=size")
    lab.state.set("size", "2")
    lab.state.set("repeats", "1")
    lab.reset.click()
    assert lab.state.experiment.size == 2000 and lab.state.experiment.repeats == 1000
    lab.runner.start()  # it would now take what was asked for
    until(lambda: bool(lab.runner.devices))
    assert lab.runner.status == "idle" and not lab.run.disabled


def test_everything_can_be_hidden_and_the_page_still_runs():
    fields = ",".join(State().entries)
    page = Page(Worker(), f"size=4&repeats=2&hide={fields},panels,link&lock={fields}")
    panel = page.panel
    assert page.switch.layout.display == "none"
    assert "explorer-absent" in panel.sharing.widget._dom_classes
    assert all(is_hidden(row(panel, name)) for name in panel.state.entries)
    page.start()
    until(lambda: panel.runner.status == "done")
    assert panel.runner.result.experiment.size == 4
    panel.runner.cancel()


def test_of_many_oddities_the_first_are_told():
    lab = opened("size=4&size=5&hide=a,b,c&frob=1&view=huge")
    lab.start()
    (told,) = problems(lab)
    assert "size is given 2 times" in told and "hide b" not in told and "And 3 more" in told


def test_the_projector_draws_what_there_is_and_what_comes_larger():
    lab = opened("size=4")
    lab.pictures.show(good())
    before = heights(lab)
    lab.sharing.projector.value = True
    assert "explorer-projector" in lab.widget._dom_classes
    assert heights(lab) == [PROJECTED * each for each in before]
    lab.pictures.show(scaled())
    assert len(heights(lab)) > len(before)
    large = heights(lab)
    lab.sharing.projector.value = False
    assert "explorer-projector" not in lab.widget._dom_classes
    assert [PROJECTED * each for each in heights(lab)] == large


def test_a_link_begins_in_the_size_for_a_projector_and_the_other_panel_follows():
    page = Page(Worker(), "view=projector")
    heads = page.panel
    assert heads.sharing.projector.value
    page.switch.value = "flow"
    page.panel.runner.cancel()
    assert isinstance(page.panel, FlowPanel) and page.panel.sharing.projector.value
    assert page.panel.state.query == "panel=flow&view=projector"
    page.panel.sharing.projector.value = False
    page.switch.value = ""
    assert page.panel is heads and not heads.sharing.projector.value


@pytest.mark.parametrize("name", ["sweep", "compare"])
def test_every_panel_has_the_size_for_a_projector(name):
    page = Page(Worker(), f"panel={name}&view=projector&hide=panels")
    panel = page.panel
    assert panel.state.query == f"panel={name}&hide=panels&view=projector"
    assert page.switch.layout.display == "none"
    assert "explorer-projector" in panel.widget._dom_classes
    if isinstance(panel, ComparePanel):
        panel.pictures.show(compare({"one": good(), "other": good()}))
    else:
        panel.pictures.show(study(["size=10,20"], growing))
    large = heights(panel)
    panel.sharing.projector.value = False
    assert large and large == [PROJECTED * each for each in heights(panel)]


def test_an_axis_goes_no_further_than_the_link_allows():
    panel = SweepPanel(Runner(Worker()), "panel=sweep&over1=size=10,20&lock=size:300,heads:4,over3")
    assert panel.state.problems == {"over2": "These are 8 heads. The link allows at most 4 heads."}
    assert "at most 4 heads" in said(panel, "over2")
    panel.state.set("over2", "heads=1,4")
    assert panel.state.experiment is not None
    panel.state.set("over1", "size=50:800:log5")
    assert panel.state.problems == {"over1": "Size n is 800. The link allows at most 300."}
    panel.state.set("over1", "seed=1,2")
    panel.state.set("size", "301")
    assert panel.state.problems == {"size": "Size n is 301. The link allows at most 300."}
    panel.state.set("size", "300")
    panel.state.set("over3", "repeats=1,2")
    assert list(panel.state.problems) == ["over3"]
    panel.state.reset()
    assert panel.state.entries["over1"] == "size=10,20" and "over2" in panel.state.problems


def test_what_a_link_to_the_comparisons_has_wrong_is_told():
    panel = ComparePanel(lambda: None, "panel=compare&size=3&hide=seed&view=projector")
    assert "explorer-projector" in panel.widget._dom_classes
    (told,) = problems(panel)
    assert "size is not a field of a comparison" in told and "hide seed is not known" in told


@pytest.mark.parametrize("flow", [False, True])
def test_a_link_for_a_class_is_made_on_the_page(flow):
    if flow:
        panel: Panel = FlowPanel(Runner(Worker()), "panel=flow&size=20")
    else:
        panel = opened("size=20&paths=reuse,jvp")
    again = FlowState() if flow else State()
    panel.sharing.opener.value = True
    form = panel.sharing.form
    form.hide["seed"].value = form.lock["size"].value = form.lock["dtype"].value = True
    form.parts["panels"].value = form.projector.value = True
    assert again.load(query_of(form.copying.query)) == []
    assert again.experiment == panel.state.experiment
    assert again.lesson.hidden == ("seed", "panels") and again.lesson.projector
    assert again.lesson.limits == {"size": 20, "dtype": "float64"}
    panel.state.set("size", "12")  # the form is open: it locks at what is there now
    again.load(query_of(form.copying.query))
    assert again.lesson.limits["size"] == 12
    panel.state.set("size", "abc")
    assert form.copying.button.disabled
    panel.sharing.opener.value = False
    assert form.widget not in panel.sharing.widget.children
    assert panel.state.lesson.hidden == ()  # the page itself is as it was


def test_the_form_follows_the_function():
    lab = opened("")
    lab.sharing.opener.value = True
    form = lab.sharing.form
    form.lock["x"].value = True
    lab.state.set("function", "tanh_network")
    assert "layers" in form.lock
    assert "lock=" not in query_of(form.copying.query)
