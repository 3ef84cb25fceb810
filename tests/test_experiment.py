"""An Experiment is checked when it is made, and survives text, JSON and a link."""

import copy
import dataclasses
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.engine.plan import PATHS
from explorer.experiment import (
    DTYPES,
    LACKING,
    Experiment,
    InvalidExperiment,
    check,
    lacking,
    table,
    uninstalled,
)
from explorer.functions import FUNCTIONS
from explorer.heads import HEADS
from explorer.link import read, texts, write


def problems(**values: Any) -> dict[str, str]:
    with pytest.raises(InvalidExperiment) as caught:
        Experiment.from_values(values)
    return caught.value.problems


def link(experiment: Experiment) -> str:
    return write(texts(table(experiment.function), experiment.values))


@st.composite
def experiments(draw: st.DrawFn) -> Experiment:
    """Any Experiment there can be."""
    function = draw(st.sampled_from(list(FUNCTIONS)))
    values: dict[str, Any] = {"function": function}
    for name, field in table(function).items():
        if field.kind == "choices":
            known = st.lists(st.sampled_from(field.choices), min_size=1, unique=True)
            values[name] = draw(known.map(tuple))
        elif field.kind == "integer":
            whole = st.integers(int(field.minimum), int(field.maximum))
            values[name] = draw(whole | st.none() if field.optional else whole)
        elif field.kind == "number":
            real = st.floats(field.minimum, field.maximum, exclude_min=field.exclusive_minimum)
            values[name] = draw(real | st.none() if field.optional else real)
    values["dtype"] = draw(st.sampled_from(DTYPES))
    values["device"] = draw(st.sampled_from(["cpu", "cuda", "cuda:1", "xpu:0"]))
    return Experiment.from_values(values)


@given(experiments())
@settings(deadline=None)
def test_survives_json(experiment: Experiment) -> None:
    text = json.dumps(experiment.to_json(), allow_nan=False)
    assert Experiment.from_json(json.loads(text)) == experiment


@given(experiments())
@settings(deadline=None)
def test_survives_a_link(experiment: Experiment) -> None:
    query = link(experiment)
    assert query.isascii() and " " not in query
    assert Experiment.from_values(read("?" + query)[0]) == experiment


@given(experiments())
@settings(deadline=None)
def test_survives_flat_values_and_pickle(experiment: Experiment) -> None:
    assert Experiment.from_values(experiment.values) == experiment
    assert pickle.loads(pickle.dumps(experiment)) == experiment
    assert copy.deepcopy(experiment) == experiment


def test_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Experiment().size = 3  # type: ignore[misc]


def test_defaults() -> None:
    experiment = Experiment()
    assert experiment.function == "matrix_exp_trace"
    assert experiment.size == 200
    assert experiment.heads == ("square", "sqrt")
    assert experiment.paths == ("recompute", "retain_graph", "reuse", "auto")
    assert (experiment.scaling, experiment.cutoff) == ((), 1.0)
    assert experiment.parameters == {"x": 1.0, "derivative": "torch"}
    assert experiment.budget is None
    assert experiment == Experiment.from_values({})


def test_parameters_are_those_of_the_function() -> None:
    experiment = Experiment("tanh_network", 7, {"gain": "2"})
    assert experiment.parameters == {"outputs": None, "layers": 3, "gain": 2.0}
    assert problems(function="tanh_network", x=1.0).keys() == {"x"}
    assert problems(function="matrix_exp_trace", gain=1.0).keys() == {"gain"}


def test_own_field_is_no_parameter() -> None:
    with pytest.raises(InvalidExperiment, match="seed is a field of its own"):
        Experiment(parameters={"seed": 3})
    for rest in ({}, {"size": 6}):
        with pytest.raises(InvalidExperiment, match="size is a field of its own") as caught:
            Experiment.from_json({"parameters": {"size": 5}, **rest})
        assert caught.value.problems.keys() == {"size"}


def test_parameter_is_given_once() -> None:
    with pytest.raises(InvalidExperiment, match="x is given twice"):
        Experiment.from_json({"x": 1.0, "parameters": {"x": 2.0}})


@pytest.mark.parametrize("parameters", [None, [("x", 2.0)], "x=2"])
def test_parameters_are_a_mapping(parameters: Any) -> None:
    with pytest.raises(InvalidExperiment, match=r"parameters is .*Allowed: a mapping") as caught:
        Experiment(parameters=parameters)
    assert caught.value.problems.keys() == {"parameters"}


def test_parameters_cannot_be_changed() -> None:
    given = {"x": 2.0}
    experiment = Experiment(parameters=given)
    given["x"] = 3.0
    for each in (experiment, copy.deepcopy(experiment), pickle.loads(pickle.dumps(experiment))):
        with pytest.raises(TypeError):
            each.parameters["x"] = 99.0  # type: ignore[index]
        assert each.parameters == {"x": 2.0, "derivative": "torch"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_table_holds_every_field_with_its_words(function: str) -> None:
    fields = table(function)
    assert list(fields)[:2] == ["function", "size"]
    assert {field.name for field in FUNCTIONS[function].parameters} <= fields.keys()
    for name, field in fields.items():
        assert field.name == name
        assert field.label and field.help and field.allowed
        assert not field.optional or field.empty


SIZES = [0, -1, 1, 2001, "0", "-1", "2001", "2.5", 2.5, "many", "", None, "1_000", "nan", "1e400"]


@pytest.mark.parametrize("size", SIZES)
def test_size_out_of_range(size: Any) -> None:
    found = problems(size=size)
    assert found.keys() == {"size"}
    assert found["size"].endswith("Allowed: a whole number from 2 to 2000.")


@pytest.mark.parametrize(
    "field, value, words",
    [
        ("function", "matrix_exp", "Did you mean matrix_exp_trace? Allowed: one of"),
        ("function", None, "not known"),
        ("dtype", "float16", "Allowed: one of float32, float64"),
        ("dtype", "float46", "Did you mean float64?"),
        ("device", "", "Allowed: cpu, cuda"),
        ("device", "cuda:x", "Allowed: cpu, cuda"),
        ("device", "cuda:", "Allowed: cpu, cuda"),
        ("device", "cuda:99999", "Allowed: cpu, cuda"),
        ("device", "cpu; rm -rf /", "Allowed: cpu, cuda"),
        ("device", "c" * 10**6, "Allowed: cpu, cuda"),
        ("device", None, "Allowed: cpu, cuda"),
        ("heads", "", "No head is chosen. Allowed: one or more of square"),
        ("heads", [], "No head is chosen"),
        ("heads", "squre", "Did you mean square?"),
        ("heads", "square,square", "more than once"),
        ("paths", (), "No path is chosen. Allowed: one or more of recompute"),
        ("paths", "reuse,rebuild", "is not known"),
        ("repeats", 0, "Allowed: a whole number from 1 to 1000"),
        ("seed", -1, "Allowed: a whole number from 0 to 2147483647"),
        ("seed", 2**31, "Allowed"),
        ("budget", 0, "Allowed: a number above 0 and up to 86400 seconds, or nothing"),
        ("budget", "inf", "Allowed"),
        ("x", "10.5", "Allowed: a number from -10 to 10"),
        ("scaling", "sizes", "Scaling sizes is not known. Allowed: one or more of heads, outputs"),
        ("scaling", "heads,heads", "more than once"),
        ("cutoff", "0", "Allowed: a number above 0 and up to 3600 seconds."),
        ("cutoff", "", "Cut-off is empty"),
        ("sise", 3, "Did you mean size? Allowed: function, size"),
        ("\x1b[31m", 3, "is not a field"),
        ("z" * 10**6, 3, "is not a field"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_wrong_value_is_told_with_what_is_allowed(field: str, value: Any, words: str) -> None:
    found = problems(**{field: value})
    assert found.keys() == {field}
    assert words in found[field]
    assert found[field].isprintable() and len(found[field]) < 400


def test_every_problem_is_told_at_once() -> None:
    found = problems(size=0, heads="", paths="", dtype="int", sede=1, x=99, function="tanh_network")
    assert found.keys() == {"size", "heads", "paths", "dtype", "sede", "x"}


def test_unknown_function_does_not_hide_the_other_problems() -> None:
    assert problems(function="zzz", size=-1, repeats=0).keys() == {"function", "size", "repeats"}


def test_what_is_right_stays_when_something_is_wrong() -> None:
    parsed, found = check({"size": "50", "repeats": "none", "x": "2"})
    assert found.keys() == {"repeats"}
    assert parsed["size"] == 50 and parsed["x"] == 2.0 and "repeats" not in parsed


@pytest.mark.parametrize("pair", LACKING)
def test_pair_of_dtype_and_device_that_torch_lacks(pair: tuple[str, str]) -> None:
    dtype, device = pair
    for name in (device, f"{device}:0"):
        reason = lacking(dtype, name)
        assert reason == f"{dtype} is not available on {name}: {LACKING[pair]}."
        assert problems(dtype=dtype, device=name) == {"dtype": reason}
    assert Experiment(dtype="float32", device=device).device == device


def test_other_pairs_are_there() -> None:
    assert not any(lacking(dtype, device) for dtype in DTYPES for device in ("cpu", "cuda:1"))


@pytest.mark.parametrize("plain", [[], None, 3, "text", {"parameters": []}, {"parameters": None}])
def test_json_that_is_no_experiment(plain: Any) -> None:
    with pytest.raises(InvalidExperiment, match="Allowed: a mapping"):
        Experiment.from_json(plain)


@pytest.mark.parametrize("plain", [{"size": "x"}, {"unknown": 1}, {"parameters": {"y": 1}}])
def test_json_of_a_wrong_experiment(plain: dict[str, Any]) -> None:
    with pytest.raises(InvalidExperiment, match="Allowed:"):
        Experiment.from_json(plain)


def test_problems_survive_the_way_from_another_process() -> None:
    error = InvalidExperiment({"size": "Size n is 0.", "seed": "Seed is -1."})
    again = pickle.loads(pickle.dumps(error))
    assert again.problems == error.problems
    assert str(again) == "Size n is 0. Seed is -1."


def test_link_names_every_field_in_plain_text() -> None:
    query = link(Experiment(heads=("square", "exp"), device="cuda:1"))
    assert "heads=square,exp" in query and "device=cuda:1" in query
    assert [pair.partition("=")[0] for pair in query.split("&")] == list(table())


def test_setting_is_what_the_builder_takes() -> None:
    setting = Experiment("tanh_network", 9, {"layers": 2}, dtype="float32", seed=4).setting
    assert (setting.size, setting.dtype, setting.device, setting.seed) == (9, "float32", "cpu", 4)
    assert setting.parameters["layers"] == 2


def test_a_path_whose_package_is_missing_is_data_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("explorer.experiment.find_spec", lambda name: None)
    assert Experiment(paths=("torchjd",)).paths == ("torchjd",)
    assert uninstalled(["reuse", "torchjd"]).endswith("Get it: pip install torchjd")
    assert uninstalled(["reuse"]) == ""


def test_a_path_whose_package_is_there_lacks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.experiment.find_spec", lambda name: name == "torchjd" or None)
    assert uninstalled(["torchjd"]) == ""


def test_heads_and_paths_of_the_table_are_all_there_are() -> None:
    assert table()["heads"].choices == tuple(HEADS)
    assert table()["paths"].choices == tuple(PATHS)
