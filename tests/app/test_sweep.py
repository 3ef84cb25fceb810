"""The panel of the sweeps without a browser: its state, its controls, its pictures."""

import json
from typing import Any

import ipywidgets as widgets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.app.display import study_view
from explorer.app.laboratory import Laboratory, Page
from explorer.app.runner import Runner
from explorer.app.state import AXES, SWEEP_FIELDS, State, SweepState
from explorer.app.sweep import NAMES, StudyPictures, SweepPanel
from explorer.engine.plan import PATHS
from explorer.experiment import DTYPES, table
from explorer.functions import FUNCTIONS
from explorer.study import sentences
from explorer.study.study import Study
from explorer.study.sweep import Sweep
from explorer.worker import Worker
from tests.app.test_laboratory import control, everything, problems, text
from tests.study.points import growing, study


@pytest.fixture
def panel() -> SweepPanel:
    """Shown but not started: nothing runs."""
    return SweepPanel(Runner(Worker()), "panel=sweep")


def entered(**entries: Any) -> SweepState:
    state = SweepState()
    for name, entry in entries.items():
        state.set(name, entry)
    return state


def reopened(state: SweepState) -> SweepState:
    """What a link to the state opens."""
    other = SweepState()
    assert other.load(state.query) == []
    return other


# The state.


def test_a_fresh_panel_is_a_sweep_within_minutes_and_has_a_plain_link() -> None:
    state = SweepState()
    sweep = state.experiment
    assert isinstance(sweep, Sweep)
    assert [str(axis) for axis in sweep.axes] == ["size=16,32,64,128", "heads=1,2,4,8"]
    assert sweep.total == 300.0
    first = sweep.experiment(sweep.places[0].at)
    assert (first.repeats, first.budget) == (3, 10.0)
    assert state.query == "panel=sweep"
    assert State().load("size=5") == [] and SweepState().load("panel=sweep") == []


FIELDS = {
    "function": "tanh_network", "size": "9", "layers": "2", "gain": "0.5", "outputs": "",
    "dtype": "float32", "device": "cuda:1", "compile": "on", "heads": ("square", "y**2 + sin(y)"),
    "paths": ("reuse", "jvp"), "repeats": "2", "sizes": "on", "curvature": "on", "seed": "7",
    "budget": "", "over1": "seed=1,2", "over2": "paths=reuse,auto", "over3": "gain=0.5:2:log3",
    "total": "60",
}  # fmt: skip
"""Every entry otherwise than a fresh panel has it."""


def test_a_link_has_every_field() -> None:
    function = FIELDS["function"]
    fields = {*table(str(function)), *SWEEP_FIELDS} - {"scaling", "cutoff"}
    assert fields == set(FIELDS)
    for name, entry in FIELDS.items():
        other_axis = "size=5,7" if name != "size" else "gain=1,2"
        state = entered(over1=other_axis, over2="", function=function)
        state.set(name, entry)
        assert state.experiment is not None, (name, state.problems)
        other = reopened(state)
        assert other.entries[name] == entry
        assert other.experiment.key == state.experiment.key
        assert other.experiment.total == state.experiment.total


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 2000), min_size=1, max_size=5, unique=True),
    x=st.lists(st.floats(-10, 10), min_size=1, max_size=3, unique=True),
    paths=st.lists(st.sampled_from(sorted(set(PATHS) - {"torchjd"})), min_size=1, unique=True),
    dtype=st.sampled_from(DTYPES),
    total=st.none() | st.floats(0.1, 1e5),
)
def test_a_link_opens_the_sweep_it_was_made_from(
    sizes: list[int], x: list[float], paths: list[str], dtype: str, total: float | None
) -> None:
    state = entered(
        over1=f"size={','.join(map(str, sizes))}", over2="", over3=f"x={','.join(map(repr, x))}",
        paths=tuple(paths), dtype=dtype, total="" if total is None else repr(total),
    )  # fmt: skip
    other = reopened(state)
    assert state.experiment is not None and other.experiment is not None
    assert other.experiment.key == state.experiment.key
    assert other.experiment.total == total
    assert other.query == state.query


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("paths=reuse,recompute", ("reuse", "recompute")),
        ("dtype=float32,float64", ("float32", "float64")),
        ("device=cpu,cuda", ("cpu", "cuda")),
        ("compile=off,on", (False, True)),
        ("function=tanh_network,robot_arm", ("tanh_network", "robot_arm")),
        ("heads=1,3", (1, 3)),
        ("x=0.5,1", (0.5, 1.0)),
        ("budget=1,2", (1.0, 2.0)),
        ("sizes=off,on", (False, True)),
    ],
)
def test_a_swept_field_is_no_part_of_the_rest(written: str, values: tuple[Any, ...]) -> None:
    name = written.partition("=")[0]
    state = entered(over1=written, over2="")
    assert state.problems == {}
    sweep = state.experiment
    assert sweep.axes[0].values == values and name not in sweep.given
    assert name in state.left_out
    assert f"&{name}=" not in state.query
    assert reopened(state).experiment.key == sweep.key
    # What was entered for it, right or wrong, waits for the axis to go.
    wrong = "wrong" if name != "compile" else "maybe"
    if isinstance(state.entries[name], str):
        state.set(name, wrong)
        assert name not in state.problems or name == "function"
    state.set(name, SweepState().entries[name])
    state.set("over1", "size=2,3" if name != "size" else "x=1,2")
    assert state.problems == {} and name not in state.left_out


def test_functions_that_are_swept_bring_their_own_parameters() -> None:
    state = entered(function="tanh_network", layers="5", over1="function=ode,heat_equation",
                    over2="outputs=2,4")  # fmt: skip
    assert state.problems == {}
    assert "layers" in state.left_out and "layers" not in state.experiment.given
    assert {p.at["function"] for p in state.experiment.places} == {"ode", "heat_equation"}
    assert reopened(state).experiment.key == state.experiment.key
    # A size that the one has and the function that was chosen before has not.
    small = entered(over1="function=tanh_network,robot_arm", over2="", size="1")
    assert small.problems == {}
    # The axes are read by the table of what is swept.
    assert entered(over1="function=tanh_network", over2="layers=1,2").problems == {}


def test_another_function_keeps_the_axes_and_the_time() -> None:
    state = entered(over1="size=5,7", over2="heads=1,3", over3="seed=1,2", total="7", repeats="2",
                    function="tanh_network")  # fmt: skip
    assert [state.entries[name] for name in AXES] == ["size=5,7", "heads=1,3", "seed=1,2"]
    assert (state.entries["total"], state.entries["repeats"]) == ("7", "2")
    assert state.experiment.given["function"] == "tanh_network"
    assert "layers" in state.entries and "x" not in state.entries
    state.set("over1", "layers=1,2")
    state.set("function", "matrix_exp_trace")
    assert "layers is not a field" in state.problems["over1"]


@pytest.mark.parametrize(
    ("entries", "field", "sentence"),
    [
        ({"over1": "size"}, "over1", "size is no axis. Allowed: NAME=A,B,C,"),
        ({"over2": "heads=0"}, "over2", "Number of heads K is 0. Allowed:"),
        ({"over3": "sise=1,2"}, "over3", "sise is not a field. Did you mean size?"),
        ({"over3": "size=2,3"}, "over3", "size is an axis already."),
        ({"over2": "scaling=heads"}, "over2", "scaling is no axis"),
        ({"over1": "", "over2": ""}, "over1", "A sweep has no axis."),
        ({"over1": "seed=1:1001:lin1001", "over2": "heads=1:10:lin10"}, "over1",
         "A sweep of 10010 points. Allowed: at most 10000."),
        ({"over1": "dtype=float32,float64", "device": "mps"}, "over1",
         "At dtype=float64: float64 is not available on mps"),
        ({"total": "0"}, "total", "Time for all points is 0. Allowed: a number above 0"),
        ({"repeats": "0"}, "repeats", "Repeats is 0. Allowed:"),
        ({"over2": "", "heads": ()}, "heads", "No head is chosen."),
        ({"over3": "<img src=x onerror=alert(1)>=1"}, "over3", "is not a field"),
    ],
)  # fmt: skip
def test_a_problem_stands_at_its_field(
    entries: dict[str, Any], field: str, sentence: str
) -> None:
    state = entered(**entries)
    assert list(state.problems) == [field]
    assert sentence in state.problems[field]
    assert state.experiment is None and state.query == "panel=sweep"


def test_a_path_that_is_not_installed_is_told_at_its_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.experiment.find_spec", lambda name: None)
    state = entered(over2="paths=reuse,torchjd")
    assert list(state.problems) == ["over2"]
    assert "Path torchjd needs a package that is not installed" in state.problems["over2"]


def test_a_device_that_is_not_there_is_told_unless_it_is_swept() -> None:
    state = entered(device="cuda:3")
    state.set_devices(["cpu"])
    assert list(state.problems) == ["device"]
    state.set("over2", "device=cpu")
    assert state.problems == {}


def test_a_hostile_link_is_told_field_by_field_and_makes_no_sweep() -> None:
    state = SweepState()
    evil = "panel=sweep&over1=__class__%3D1&over2=size%3D1:1e9:log99999&total=nan&sise=3&repeats=x"
    (told,) = state.load(evil)
    assert "sise is not a field" in told
    assert set(state.problems) == {"over1", "over2", "total", "repeats"}
    assert state.experiment is None
    assert all(len(sentence) < 400 for sentence in state.problems.values())
    # What has no control here cannot be wrong unseen.
    assert state.load("panel=sweep&cutoff=-1&scaling=nothing") == []
    assert state.problems == {}


def test_reset_takes_everything_back() -> None:
    state = entered(**{"over1": "x=1,2", "over2": "seed=1,2", "total": "x", "function": "ode"})
    state.reset()
    assert state.entries == SweepState().entries and state.problems == {}


# The controls.


def shown(panel: SweepPanel, label: str) -> bool:
    """Whether a control, and all that it lies in, is on show."""
    found = control(panel, label)
    around = [each for each in everything(panel.widget) if found in everything(each)]
    return all(each.layout.display != "none" for each in around)


def test_every_field_of_the_sweep_has_a_control_with_a_name(panel: SweepPanel) -> None:
    assert list(panel.controls.rows) == [*AXES, "total"]
    for field in SWEEP_FIELDS.values():
        assert control(panel, field.label).tooltip
    assert control(panel, "Axis 1").value == "size=16:128:log4"


def test_what_is_swept_or_means_nothing_here_has_no_control(panel: SweepPanel) -> None:
    assert not any(shown(panel, label) for label in ("Size n", "Cut-off", "square"))
    assert all(shown(panel, label) for label in ("x", "Repeats", "Seed", "recompute"))
    control(panel, "Axis 1").value = "seed=1,2"
    control(panel, "Axis 2").value = ""
    assert shown(panel, "Size n") and shown(panel, "square") and not shown(panel, "Seed")
    control(panel, "Axis 2").value = "function=ode,tanh_network"
    assert not shown(panel, "x") and not shown(panel, "Function")


def test_a_wrong_axis_keeps_its_text_has_its_sentence_and_disables_run(panel: SweepPanel) -> None:
    control(panel, "Axis 2").value = "heads=1,x"
    (problem,) = problems(panel)
    assert "Number of heads K is x. Allowed: a whole number from 1 to 1000." in problem
    assert panel.run.disabled and control(panel, "Axis 2").value == "heads=1,x"
    control(panel, "Axis 2").value = "<b>=1"
    (problem,) = problems(panel)
    assert "&lt;b&gt;" in problem and "<b>" not in problem
    control(panel, "Axis 2").value = "heads=1,2"
    assert problems(panel) == [] and not panel.run.disabled


def test_the_hint_has_the_time_that_the_sweep_will_take(panel: SweepPanel) -> None:
    few = panel.expected(panel.state.experiment)
    control(panel, "Axis 1").value = "size=16:1024:log40"
    control(panel, "Time for all points").value = ""
    many = panel.expected(panel.state.experiment)
    assert 0.5 < few < many
    control(panel, "Time for all points").value = repr(few / 2)
    assert panel.expected(panel.state.experiment) == pytest.approx(few / 2)


# The pictures.


def seen(panel: SweepPanel | StudyPictures) -> dict[str, dict[str, Any]]:
    """The pictures by their titles."""
    outputs = [each for each in everything(panel.widget) if isinstance(each, widgets.Output)]
    drawn = [each.outputs[0]["data"] for each in outputs if each.outputs]
    return {each["text/plain"]: each["application/vnd.plotly.v1+json"] for each in drawn}


def pictures(found: Study) -> StudyPictures:
    built = StudyPictures(lambda call: call)
    built.show(found)
    return built


def test_a_study_is_shown_with_its_sentence_pictures_table_and_notes() -> None:
    found = study(["size=50,100,200", "heads=1,4"], growing, notes=("mind <b>",), dtype="float32")
    built = pictures(found)
    everywhere = "".join(
        each.value for each in everything(built.widget) if isinstance(each, widgets.HTML)
    )
    assert sentences.summary(found) in everywhere
    assert sentences.setting(found) in everywhere
    assert "mind &lt;b&gt;" in everywhere and "mind <b>" not in everywhere
    assert "Table: Points of the sweep" in everywhere and everywhere.count("<tr>") == 7
    assert len(seen(built)) == len(NAMES)
    assert all(each["data"] for each in seen(built).values())


def test_the_pictures_fill_as_points_arrive() -> None:
    built = StudyPictures(lambda call: call)
    assert seen(built) == {}
    whole = study(["size=50,100,200"], growing)
    lengths = []
    for count in (0, 1, 2, 3):
        built.show(study(["size=50,100,200"], growing, count))
        lengths.append([len(each["data"][0]["x"]) for each in seen(built).values()])
    assert lengths == [[], [1] * 5, [2] * 5, [3] * 5]
    built.show(whole)
    assert json.loads(json.dumps(seen(built), allow_nan=False)) == seen(built)


def test_a_choice_of_the_further_axes_is_what_the_pictures_by_path_show() -> None:
    built = pictures(study(["size=50,100", "heads=1,4", "compile=off,on"], growing))
    heads, compiled = built.choices.children
    assert [label for label, _ in heads.options] == ["1", "4"] and heads.value == 4
    assert [label for label, _ in compiled.options] == ["off", "on"]
    assert seen(built)["Time by path"]["data"][0]["y"] == pytest.approx([2.0, 4.0])
    heads.value = 1
    assert seen(built)["Time by path"]["data"][0]["y"] == pytest.approx([0.5, 1.0])
    # More points of the same axes leave the choice.
    built.show(study(["size=50,100", "heads=1,4", "compile=off,on"], growing, 6))
    assert built.choices.children[0] is heads and heads.value == 1
    built.show(study(["size=50,100"], growing))
    assert built.choices.children == ()


def test_pictures_of_another_sweep_are_marked(panel: SweepPanel) -> None:
    def stale() -> bool:
        return "explorer-stale" in panel.pictures.widget._dom_classes

    sweep = panel.state.experiment
    found = study(["size=16:128:log4", "heads=1,2,4,8"], growing)
    panel.runner.result = found.model_copy(update={"key": sweep.key})
    assert not stale() and sentences.summary(found) in text(panel, "explorer-summary")
    control(panel, "Axis 2").value = "heads=1,2,4"
    assert stale()
    control(panel, "Axis 2").value = "heads = 1:8:log4"
    assert not stale(), "the same, otherwise written"
    control(panel, "Time for all points").value = "7"
    assert not stale(), "which changes no point"
    control(panel, "Seed").value = "5"
    assert stale()


def test_a_study_as_a_notebook_shows_it() -> None:
    found = study(["size=50,100"], growing)
    view = study_view(found)
    assert "explorer" in view._dom_classes
    assert any(sentences.summary(found) in getattr(w, "value", "") for w in everything(view)
               if isinstance(w, widgets.HTML))  # fmt: skip


# The page.


def test_a_link_to_the_sweep_opens_it_in_that_state() -> None:
    page = Page(Worker(), "panel=sweep&over1=size%3D5,7&over2=&repeats=1")
    assert page.switch.value == "sweep" and isinstance(page.panel, SweepPanel)
    sweep = page.panel.state.experiment
    assert [str(axis) for axis in sweep.axes] == ["size=5,7"] and sweep.given["repeats"] == "1"
    page.switch.value = ""
    assert isinstance(page.panel, Laboratory)
    page.panel.runner.cancel()
    page.switch.value = "sweep"
    assert page.panel.state.experiment is sweep


@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_every_function_can_be_swept_from_the_page(function: str) -> None:
    fields = table(function)
    sizes = f"size={fields['size'].minimum:g}"
    state = entered(function=function, over1=sizes)
    assert state.problems == {}
    assert reopened(state).experiment.key == state.experiment.key
