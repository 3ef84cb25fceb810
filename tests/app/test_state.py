"""The state of the page: entries as they were typed, their problems, and the link."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.app.state import State
from explorer.experiment import Experiment
from explorer.functions import FUNCTIONS


def test_a_fresh_page_is_the_default_experiment_within_a_minute():
    assert State().experiment == Experiment(budget=60.0)


def test_a_fresh_page_has_a_plain_link():
    assert State().query == ""


def test_a_wrong_entry_is_kept_as_typed_with_its_problem_and_makes_no_experiment():
    state = State()
    state.set("size", "2.5")
    assert state.entries["size"] == "2.5"
    assert state.problems == {"size": "Size n is 2.5. Allowed: a whole number from 2 to 2000."}
    assert state.experiment is None
    state.set("size", "25")
    assert state.problems == {}
    assert state.experiment is not None and state.experiment.size == 25


def test_every_wrong_entry_has_its_own_sentence():
    state = State()
    for name, entry in {"size": "0", "repeats": "-1", "seed": "x", "heads": ()}.items():
        state.set(name, entry)
    assert set(state.problems) == {"size", "repeats", "seed", "heads"}


def test_another_function_brings_its_parameters_and_keeps_what_both_have():
    state = State()
    state.set("size", "33")
    state.set("seed", "7")
    state.set("function", "tanh_network")
    assert state.experiment == Experiment(
        function="tanh_network", size=33, seed=7, budget=60.0, parameters={"layers": 3}
    )


def test_another_function_brings_its_heads_unless_others_were_chosen():
    state = State()
    state.set("function", "tanh_network")
    assert state.entries["heads"] == FUNCTIONS["tanh_network"].default_heads
    state.set("heads", ("exp", "y[0]*2"))
    state.set("function", "matrix_exp_trace")
    assert state.entries["heads"] == ("exp", "y[0]*2")


def test_a_size_that_the_other_function_refuses_gives_way_to_its_default():
    state = State()
    state.set("function", "tanh_network")
    state.set("size", "1")
    state.set("function", "matrix_exp_trace")
    assert state.entries["size"] == str(FUNCTIONS["matrix_exp_trace"].size.default)


def test_reset_takes_everything_back():
    state = State()
    state.set("function", "tanh_network")
    state.set("size", "nonsense")
    state.reset()
    assert state.experiment == Experiment(budget=60.0)
    assert state.problems == {}


@given(
    size=st.integers(2, 2000),
    x=st.floats(-10, 10),
    heads=st.lists(st.sampled_from(["square", "sqrt", "exp"]), min_size=1, unique=True),
    seed=st.integers(0, 2**31 - 1),
)
def test_a_link_opens_the_state_it_was_made_from(size, x, heads, seed):
    state = State()
    for name, entry in {"size": str(size), "x": repr(x), "seed": str(seed)}.items():
        state.set(name, entry)
    state.set("heads", tuple(heads))
    reopened = State()
    assert reopened.load(state.query) == []
    assert reopened.experiment == state.experiment


def test_an_emptied_optional_field_survives_the_link():
    state = State()
    state.set("budget", "")
    reopened = State()
    reopened.load(state.query)
    assert reopened.experiment is not None and reopened.experiment.budget is None


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("size=2.5", "size"),
        ("x=nan", "x"),
        ("cutoff=-1", "cutoff"),
        ("seed=" + "b" * 5000, "seed"),
        ("function=os.system", "function"),
        ("heads=square,<script>alert(1)</script>", "heads"),
        ("dtype=complex64", "dtype"),
        ("paths=", "paths"),
    ],
)
def test_a_hostile_link_is_told_at_its_field_and_makes_no_experiment(query, field):
    state = State()
    assert state.load(query) == []
    assert set(state.problems) == {field}
    assert state.experiment is None
    assert len(state.problems[field]) < 300


def test_a_name_in_the_link_that_is_no_field_is_told_and_left_out():
    state = State()
    (problem,) = state.load("?sise=3&token=secret")
    assert "sise" in problem and "Did you mean size?" in problem
    assert state.experiment == Experiment(budget=60.0)


def test_a_device_that_is_not_there_is_told_once_the_devices_are_known():
    state = State()
    state.load("device=cuda:3")
    assert state.problems == {}
    state.set_devices(["cpu"])
    assert state.problems == {"device": "Device cuda:3 is not on this machine. Allowed: cpu."}


@pytest.mark.parametrize("name", ["cuda", "cuda:0"])
def test_a_device_without_its_number_is_the_first(name):
    state = State()
    state.load(f"device={name}")
    state.set_devices(["cpu", "cuda:0"])
    assert state.problems == {}


def test_what_observes_the_experiment_finds_the_problems_in_step():
    state = State()
    seen = []
    state.observe(lambda change: seen.append((change["new"], dict(state.problems))), "experiment")
    state.set("size", "x")
    state.set("size", "10")
    assert [(new is None, bool(problems)) for new, problems in seen] == [
        (True, True),
        (False, False),
    ]


def test_a_path_whose_package_is_missing_is_told(monkeypatch):
    monkeypatch.setattr("explorer.experiment.find_spec", lambda name: None)
    state = State()
    assert state.load("paths=reuse,torchjd") == []
    assert "pip install torchjd" in state.problems["paths"]
    assert state.experiment is None
    state.set("paths", ("reuse",))
    assert state.problems == {}


def test_no_scaling_survives_the_link_and_so_do_both():
    for chosen in ((), ("outputs",), ("heads", "outputs")):
        state, reopened = State(), State()
        state.set("seed", "1")  # so that there is a link
        state.set("scaling", chosen)
        assert reopened.load(state.query) == []
        assert reopened.entries["scaling"] == chosen
        assert reopened.experiment == state.experiment
