"""The state of the page: entries as they were typed, their problems, and the link."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.app.state import FlowState, State
from explorer.experiment import Experiment
from explorer.functions import FUNCTIONS
from explorer.link import write


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


@pytest.mark.parametrize(
    ("query", "field", "taken"),
    [
        ("size=0", "size", "2"),
        ("size=1e9", "size", "2000"),
        ("seed=" + "9" * 5000, "seed", "2147483647"),
        ("x=-inf", "x", "-10.0"),
        ("cutoff=1e300", "cutoff", "3600.0"),
    ],
)
def test_a_number_out_of_range_in_a_link_is_brought_into_it_and_told(query, field, taken):
    state = State()
    assert state.load(query) == []
    assert state.entries[field] == taken
    assert list(state.asked) == [field] and state.problems == {}
    assert f"{taken} was taken. Allowed: " in state.asked[field]
    assert state.experiment is not None


def test_what_a_link_asked_for_is_told_until_it_changes():
    state = State()
    state.load("size=9999&repeats=0")
    state.set("seed", "3")
    assert set(state.asked) == {"size", "repeats"}
    state.set("size", "10")
    assert set(state.asked) == {"repeats"}
    state.reset()
    assert state.asked == {}


def test_a_lock_refuses_more_and_stays_when_everything_is_reset():
    state = State()
    assert state.load("size=100&seed=7&heads=square,exp&lock=size,seed,heads") == []
    state.set("size", "101")
    state.set("seed", "6")
    state.set("heads", ("powers(3)",))
    assert state.problems == {
        "size": "Size n is 101. The link allows at most 100.",
        "seed": "Seed is 6. The link allows only 7.",
        "heads": "These are 3 heads. The link allows at most 2 heads.",
    }
    assert state.experiment is None
    state.reset()
    assert state.problems == {}
    assert (state.experiment.size, state.experiment.seed) == (100, 7)
    state.set("size", "101")
    assert set(state.problems) == {"size"}


def test_the_limits_stay_in_the_link_when_less_is_set():
    state, reopened = State(), State()
    state.load("size=100&paths=reuse,jvp&budget=9&lock=size,paths,budget&hide=seed")
    for name, entry in {"size": "10", "paths": ("jvp",), "budget": "1"}.items():
        state.set(name, entry)
    assert reopened.load(state.query) == []
    assert reopened.experiment == state.experiment and reopened.lesson == state.lesson
    reopened.set("size", "100")
    assert reopened.problems == {}
    reopened.set("budget", "")
    (problem,) = reopened.problems.values()
    assert problem == "Time budget is empty. The link allows at most 9.0 seconds."


def test_a_link_that_asks_for_more_than_it_allows_gets_what_it_allows():
    state = State()
    state.load("size=500&paths=reuse,auto&heads=powers(9)&lock=size:300,paths:reuse+jvp,heads:4")
    assert (state.entries["size"], state.entries["paths"]) == ("300", ("reuse",))
    assert state.asked == {
        "size": "Size n is 500 in the link, which allows at most 300; that was taken.",
        "paths": "Path is 'reuse,auto' in the link, which allows only reuse, jvp; that was taken.",
    }
    assert state.problems == {"heads": "These are 9 heads. The link allows at most 4 heads."}


def test_what_a_link_asked_for_is_told_as_it_stands_there_and_a_default_as_such():
    state = State()
    state.load("size=99999999&lock=size:300,repeats:2")
    assert (state.entries["size"], state.entries["repeats"]) == ("300", "2")
    assert state.asked == {
        "size": "Size n is 99999999 in the link, which allows at most 300; that was taken.",
        "repeats": "Repeats is 5 by default. The link allows at most 2; that was taken.",
    }


def test_reset_puts_right_what_is_wrong_in_the_link_of_a_class():
    state = State()
    state.load("function=nix&size=abc&seed=5&hide=seed")
    assert set(state.problems) == {"function", "size"}
    state.reset()
    assert state.experiment == Experiment(budget=60.0, seed=5)
    assert state.lesson.hidden == ("seed",)


def test_a_locked_function_stays():
    state = State()
    state.load("function=ode&lock=function")
    state.set("function", "integral")
    assert state.problems == {"function": "Function is integral. The link allows only ode."}


def test_another_function_begins_within_the_limits():
    state = State()
    state.load("size=50&lock=size")
    state.set("function", "tanh_network")
    assert state.entries["size"] == "50" and state.problems == {}
    state.set("size", "60")
    assert set(state.problems) == {"size"}


def test_the_lock_of_a_parameter_waits_for_its_function():
    state = State()
    state.load("x=0.5&lock=x")
    state.set("function", "tanh_network")
    assert state.problems == {} and state.limit("x") == ""
    state.set("function", "matrix_exp_trace")
    assert state.limit("x") == "The link allows at most 0.5." and state.entries["x"] == "0.5"


def test_a_link_without_locks_is_reset_to_a_fresh_page_and_keeps_its_size():
    state = State()
    state.load("size=5&view=projector")
    state.reset()
    assert state.experiment == Experiment(budget=60.0)
    assert state.query == "view=projector"


@pytest.mark.parametrize("make", [State, FlowState])
@pytest.mark.parametrize(
    "query",
    [
        "size=" + "9" * 10**6,
        "heads=" + ",".join(f"y**{power}" for power in range(1000)),
        "heads=" + "," * 10**6,
        "losses=" + "(" * 10**5,
        "&".join(f"a{number}=1" for number in range(10**4)),
        "&" * 10**6,
        "hide=" + ",".join(["seed"] * 10**5),
        "lock=" + ":" * 10**6,
        "lock=size:" + "9" * 10**5,
        "%" * 1000 + "&%FF%00=%ZZ&size=%0A5",
        "size=5&size=6&size=<script>alert(1)</script>",
        "view=\x00&hide=\u202e&lock=\n",
    ],
)
def test_no_link_breaks_the_page(make, query):
    state = make()
    told = state.load(query)
    sentences = [*told, *state.asked.values(), *state.problems.values()]
    assert sentences
    assert all(len(each) < 600 and each.isprintable() for each in sentences)
    assert all(len(entry) <= 100 for entry in state.entries.values() if isinstance(entry, tuple))
    state.reset()
    assert state.experiment is not None


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_any_wish_is_read_and_its_link_opens(hide, lock, size):
    state, again = State(), State()
    state.load(write({"hide": hide, "lock": lock, "size": size}))
    state.reset()
    if state.experiment is not None:
        assert again.load(state.query) == []
        assert (again.experiment, again.lesson) == (state.experiment, state.lesson)
