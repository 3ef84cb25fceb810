"""Copy code on the page: made when it is opened, and in step with the state."""

from collections.abc import Iterator
from html import unescape

import pytest
import torch

from explorer import own, script
from explorer.app.laboratory import Laboratory
from explorer.app.runner import Runner
from explorer.app.state import State
from explorer.execute import execute
from explorer.experiment import Experiment
from explorer.functions import FUNCTIONS
from explorer.worker import Worker


@pytest.fixture
def lab() -> Laboratory:
    """A page that is shown but has not been started: nothing runs."""
    return Laboratory(State(), Runner(Worker()), "size=20")


def shown(lab: Laboratory) -> str:
    """The script on show."""
    return unescape(lab.code.text.value.partition(">")[2].removesuffix("</pre>"))


def test_there_is_no_script_before_it_is_opened(lab: Laboratory) -> None:
    lab.state.set("size", "30")
    assert lab.code.text.value == ""
    lab.code.toggle.value = True
    assert lab.code.path.options == lab.state.experiment.paths
    assert lab.code.path.value == "auto"
    assert shown(lab) == script(lab.state.experiment, "auto")
    lab.code.toggle.value = False
    before = lab.code.text.value
    lab.state.set("size", "40")
    assert lab.code.text.value == before


def test_an_open_one_follows_the_state_and_keeps_its_path(lab: Laboratory) -> None:
    lab.code.toggle.value = True
    lab.code.path.value = "reuse"
    lab.state.set("heads", ("sin", "y**2"))
    assert shown(lab) == script(lab.state.experiment, "reuse") and '"y**2"' in shown(lab)
    lab.state.set("paths", ("jvp", "reuse"))
    assert lab.code.path.options == ("jvp", "reuse") and lab.code.path.value == "reuse"
    lab.state.set("paths", ("jvp",))
    assert shown(lab) == script(lab.state.experiment, "jvp")
    lab.state.set("size", "none")
    assert "Put right what is marked." in lab.code.text.value and lab.code.copy.disabled
    lab.state.set("size", "25")
    assert "n = 25\n" in shown(lab) and not lab.code.copy.disabled


def test_the_path_that_auto_took_is_that_of_the_result(lab: Laboratory) -> None:
    lab.code.toggle.value = True
    *_, result = execute(Experiment(**{**_values(lab), "repeats": 1, "paths": ("auto",)}))
    took = result.paths["auto"].model_copy(update={"taken": "jvp"})
    lab.runner.result = result.model_copy(
        update={"experiment": lab.state.experiment, "paths": {"auto": took}}
    )
    assert "auto, which is jvp here" in shown(lab)
    lab.state.set("seed", "1")  # which was not run
    assert "auto, which is reuse here" in shown(lab)


def _values(lab: Laboratory) -> dict[str, object]:
    return lab.state.experiment.to_json()


@pytest.fixture
def registry() -> Iterator[None]:
    functions = dict(FUNCTIONS)
    yield
    FUNCTIONS.clear()
    FUNCTIONS.update(functions)


@pytest.mark.usefixtures("registry")
def test_what_cannot_stand_alone_is_said_in_its_place() -> None:
    matrix = torch.eye(2)
    name = own.register(lambda x: matrix @ x, torch.ones(2), ["sin"], "mine").name
    lab = Laboratory(State(name), Runner(Worker()))
    lab.code.toggle.value = True
    assert "cannot stand alone in a script: mine uses matrix" in lab.code.text.value
    assert lab.code.copy.disabled
