"""The heads on the page: ticked, typed, tried and added, without a browser."""

import threading
from collections.abc import Callable, Iterator, Sequence

import ipywidgets as widgets
import pytest
import torch

from explorer import own
from explorer.app.heads import HeadsControl, _Trier
from explorer.app.laboratory import Laboratory
from explorer.app.runner import Runner
from explorer.app.state import State
from explorer.events import Trial
from explorer.functions import FUNCTIONS
from explorer.worker import Worker
from tests.app.test_laboratory import control, everything, text, until


def unguarded(callback: Callable[..., None]) -> Callable[..., None]:
    return callback


class Tried:
    """Answers every head with one trial, and remembers what it was asked."""

    def __init__(self, answer: Trial | str | None = None) -> None:
        self.asked: list[str] = []
        self.answer = answer or Trial("Σ(y²)", 4.0, 2.5, (-1.5, 2.0))

    def __call__(self, entries: Sequence[str]) -> dict[str, Trial | str]:
        self.asked += entries
        return dict.fromkeys(entries, self.answer)


def made(answer: Trial | str | None = None) -> tuple[State, HeadsControl, Tried]:
    state, tried = State(), Tried(answer)
    heads = HeadsControl(state, unguarded, tried)
    state.observe(lambda change: heads.show(state.entries["heads"]), "entries")
    heads.show(state.entries["heads"])
    return state, heads, tried


def boxes(heads: HeadsControl) -> dict[str, bool]:
    """The check boxes that are offered, and whether each is ticked."""
    return {
        each.description: each.value
        for each in everything(heads.widget)
        if isinstance(each, widgets.Checkbox)
    }


def test_what_is_typed_is_tried_and_shown_as_it_was_understood() -> None:
    state, heads, tried = made()
    before = state.entries
    heads.text.value = "y**2"
    until(lambda: "Σ(y²) = 4, dz/dx = (-1.5, 2)" in heads.told.value)
    assert tried.asked == ["y**2"] and state.entries == before


@pytest.mark.parametrize(
    "trial, words",
    [
        (Trial("y", 0.25, 3.0, (3.0,)), "y = 0.25, dz/dx = 3"),
        (Trial("y", float("nan"), 3.0), "y = NaN, ‖dz/dx‖ = 3"),
        ("y has 1 entry", "y has 1 entry"),
    ],
)
def test_what_a_trial_gave_is_told(trial: Trial | str, words: str) -> None:
    _, heads, _ = made(trial)
    heads.text.value = "y"
    until(lambda: words in heads.told.value)


def test_what_cannot_be_read_is_told_with_its_column_and_not_tried() -> None:
    _, heads, tried = made()
    heads.text.value = "2 + sinn(y)"
    assert "Column 5: sinn is not a known function. Did you mean sin?" in heads.told.value
    heads.text.value = ""
    assert heads.told.value == "" and tried.asked == []


def test_what_is_tried_for_nothing_is_not_told() -> None:
    begun, go = threading.Event(), threading.Event()
    told: list[str] = []

    def slow(entries: Sequence[str]) -> dict[str, Trial | str]:
        begun.set()
        assert go.wait(10)
        return dict.fromkeys(entries, "tried")

    trier = _Trier(slow, lambda entry, found: told.append(entry))
    trier.request("y")
    assert begun.wait(10)
    trier.request("")  # what is typed now cannot be read
    go.set()
    trier.request("y + 1")
    until(lambda: bool(told))
    assert told == ["y + 1"]


def test_a_head_that_is_offered_is_known_in_other_words() -> None:
    _, heads, _ = made()
    heads.text.value = "y+1"
    heads.add.click()
    heads.text.value = "y  +  1"
    assert "It stands above." in heads.told.value


def test_before_a_run_the_formula_is_shown_alone() -> None:
    state = State()
    heads = HeadsControl(state, unguarded, lambda entries: {})
    heads.text.value = "y + sin(y)"
    assert "y + sin y" in heads.told.value and "after the next run" in heads.told.value


def test_add_puts_it_among_the_heads_and_unticking_takes_it_out() -> None:
    state, heads, _ = made()
    heads.text.value = " y+ 1"
    heads.add.click()
    assert state.entries["heads"] == ("square", "sqrt", "y + 1") and heads.text.value == ""
    assert boxes(heads)["y + 1"]
    box = next(each for each in everything(heads.widget)
               if getattr(each, "description", "") == "y + 1")  # fmt: skip
    box.value = False
    assert state.entries["heads"] == ("square", "sqrt")
    assert boxes(heads)["y + 1"] is False  # still there, to be ticked again
    box.value = True
    assert state.experiment.heads == ("square", "sqrt", "y + 1")


def test_enter_adds_too() -> None:
    state, heads, _ = made()
    heads.text.value = "3*y"
    heads.text._handle_custom_msg({"event": "submit"}, [])
    assert state.entries["heads"][-1] == "3 * y"


@pytest.mark.parametrize("typed, words", [("y**", "Column"), ("", "Type a head first"),
                                          ("square", "chosen more than once")])  # fmt: skip
def test_what_cannot_be_added_stays_as_typed(typed: str, words: str) -> None:
    state, heads, _ = made()
    heads.text.value = typed
    heads.add.click()
    assert words in heads.told.value
    assert heads.text.value == typed and state.entries["heads"] == ("square", "sqrt")


def test_a_set_is_added_and_a_wrong_number_told() -> None:
    state, heads, _ = made()
    button = next(each for each in everything(heads.widget)
                  if getattr(each, "description", "") == "Add set")  # fmt: skip
    members = next(each for each in everything(heads.widget)
                   if getattr(each, "description", "") == "of K =")  # fmt: skip
    members.value = "100"
    button.click()
    assert state.experiment.heads == ("square", "sqrt", "powers(100)")
    members.value = "many"
    button.click()
    alerts = [each.value for each in everything(heads.widget)
              if isinstance(each, widgets.HTML) and "explorer-problem" in each.value]  # fmt: skip
    assert len(alerts) == 1 and "powers(many)" in alerts[0]


def test_a_function_s_own_heads_come_first_and_go_with_it() -> None:
    state, heads, _ = made()
    state.set("function", "robot_arm")
    own_names = [head.name for head in FUNCTIONS["robot_arm"].heads]
    assert list(boxes(heads))[: len(own_names)] == own_names
    state.set("function", "tanh_network")
    assert not set(own_names) & set(boxes(heads))


@pytest.fixture
def started() -> Iterator[Laboratory]:
    found = Laboratory(State(), Runner(Worker()), "size=20&repeats=1")
    found.start()
    until(lambda: found.runner.status == "done")
    yield found


def test_typing_a_head_runs_nothing(started: Laboratory) -> None:
    shown = started.runner.result
    started.controls.heads.text.value = "y**2"
    until(lambda: "dz/dx" in started.controls.heads.told.value)
    assert started.runner.result is shown and started.runner.status == "done"
    square = shown.heads["square"]
    (gradient,) = square.gradient["reuse"]
    assert f"y² = {square.value:.4g}, dz/dx = {gradient:.4g}" in started.controls.heads.told.value


def test_a_page_on_one_s_own_function() -> None:
    factor, x = torch.tensor(2.0, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    described = own.register(lambda x, power=3: factor * x**power, x, [lambda y: y.sum()])
    try:
        found = Laboratory(State(described.name), Runner(Worker()))
        found.start()
        until(lambda: found.runner.status == "done")
        assert found.runner.result.heads["g1"].gradient["reuse"] == (6.0, 6.0)
        assert "f(x)" in text(found, "explorer-formula")
        size = next(each for each in everything(found.widget)
                    if "explorer-row-size" in getattr(each, "_dom_classes", ()))  # fmt: skip
        assert size.layout.display == "none"  # x is given
        control(found, "power").value = "2"
        until(lambda: found.runner.result.experiment.parameters["power"] == 2)
        until(lambda: found.runner.status == "done")
        assert found.runner.result.heads["g1"].gradient["reuse"] == (4.0, 4.0)
    finally:
        del FUNCTIONS[described.name]
