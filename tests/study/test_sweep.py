"""The points of a sweep: how many, in which order, by which keys, and what is refused."""

import re
from itertools import pairwise
from typing import Any

import pytest

from explorer import InvalidExperiment
from explorer.experiment import Experiment, table
from explorer.functions import FUNCTIONS
from explorer.study.axis import NOT_SWEPT
from explorer.study.sweep import Sweep, told

NINE = "size=10:90:lin9"


def order(sweep: Sweep, *names: str) -> list[Any]:
    """The values in the order that they are measured; those of one axis bare."""
    found = [tuple(place.at[name] for name in names) for place in sweep.places]
    return [each[0] for each in found] if len(names) == 1 else found


def refused(given: dict[str, Any], over: Any, **more: Any) -> dict[str, str]:
    with pytest.raises(InvalidExperiment) as wrong:
        Sweep(given, over, **more)
    for sentence in wrong.value.problems.values():
        assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 1000
    return wrong.value.problems


# The points.


def test_there_is_a_point_for_every_combination_and_each_is_its_experiment() -> None:
    sweep = Sweep({"repeats": 2, "dtype": "float32"}, ["size=5,7", "heads=1,4,9", "x=0.5,1"])
    assert len(sweep) == len(sweep.places) == 12
    assert {tuple(place.at.values()) for place in sweep.places} == {
        (size, heads, x) for size in (5, 7) for heads in (1, 4, 9) for x in (0.5, 1.0)
    }
    for place in sweep.places:
        assert list(place.at) == ["size", "heads", "x"]
        assert sweep.experiment(place.at) == Experiment(
            size=place.at["size"],
            parameters={"x": place.at["x"]},
            dtype="float32",
            heads=(f"powers({place.at['heads']})",),
            repeats=2,
        )
    assert told(sweep.places[0].at) == "size=5, heads=1, x=0.5"


def test_an_axis_of_paths_has_one_path_at_each_point() -> None:
    sweep = Sweep({}, ["paths=reuse,recompute", "compile=off,on"])
    assert [sweep.experiment(place.at).paths for place in sweep.places] == [
        ("reuse",), ("reuse",), ("recompute",), ("recompute",),
    ]  # fmt: skip
    assert [sweep.experiment(place.at).compile for place in sweep.places] == [0, 1, 0, 1]


def test_an_axis_of_functions_has_the_defaults_of_each() -> None:
    sweep = Sweep({"repeats": 3}, ["function=tanh_network,matrix_exp_trace", "size=5,9"])
    for place in sweep.places:
        name = str(place.at["function"])
        seen = sweep.experiment(place.at)
        assert seen == Experiment(name, place.at["size"], repeats=3)
        assert seen.heads == FUNCTIONS[name].default_heads
        assert set(seen.parameters) == {each.name for each in FUNCTIONS[name].parameters}


def test_an_axis_of_functions_brings_the_parameter_that_all_of_them_have() -> None:
    sweep = Sweep({}, ["outputs=2,4", "function=ode,heat_equation"])
    assert len(sweep) == 4
    assert {sweep.experiment(p.at).parameters["outputs"] for p in sweep.places} == {2, 4}


# Their order.


def test_the_ends_of_an_axis_come_first_and_then_the_middles() -> None:
    assert order(Sweep({}, [NINE]), "size") == [10, 90, 50, 30, 70, 20, 40, 60, 80]
    assert order(Sweep({}, ["size=10,20,30,40"]), "size") == [10, 40, 20, 30]
    assert order(Sweep({}, ["size=10,20"]), "size") == [10, 20]
    assert order(Sweep({}, ["size=10"]), "size") == [10]


def test_the_ends_are_those_of_the_values_however_they_are_given() -> None:
    shuffled = Sweep({}, ["size=50,10,90,30,70"])
    assert order(shuffled, "size") == [10, 90, 50, 30, 70]
    assert shuffled.axes[0].values == (50, 10, 90, 30, 70)


def test_all_values_without_an_order_come_at_once() -> None:
    swept = Sweep({}, ["size=10,20,30", "dtype=float32,float64"])
    assert order(swept, "size", "dtype") == [
        (10, "float32"), (10, "float64"), (30, "float32"), (30, "float64"),
        (20, "float32"), (20, "float64"),
    ]  # fmt: skip


def test_the_corners_of_two_axes_come_first_and_the_middle_before_what_is_between() -> None:
    found = order(Sweep({}, ["size=10:50:lin5", "heads=1:5:lin5"]), "size", "heads")
    assert found[:4] == [(10, 1), (10, 5), (50, 1), (50, 5)]
    assert set(found[4:8]) == {(10, 3), (50, 3), (30, 1), (30, 5)}
    assert found[8] == (30, 3)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 9, 10, 33, 50, 100])
def test_what_is_there_so_far_always_spans_the_axis_evenly(count: int) -> None:
    sizes = order(Sweep({}, [f"seed={','.join(map(str, range(count)))}"]), "seed")
    assert sorted(sizes) == list(range(count))
    for so_far in (3, 5, 9, 17, 33, 65):
        if so_far <= count:
            seen = sorted(sizes[:so_far])
            gaps = [b - a for a, b in pairwise(seen)]
            assert (seen[0], seen[-1]) == (0, count - 1)
            assert max(gaps) <= 2 * (count - 1) / (so_far - 1) + 1


# Their keys.


def test_keys_tell_the_points_of_a_sweep_apart() -> None:
    sweep = Sweep({}, [NINE, "heads=1:64:log7", "dtype=float32,float64"])
    keys = {place.key for place in sweep.places}
    assert len(keys) == len(sweep) == 126
    assert all(re.fullmatch("[0-9a-f]{16}", key) for key in {*keys, sweep.key})


def same(one: Sweep, other: Sweep) -> bool:
    """Whether they have the same points, by their keys; the key of the whole must say as much."""
    points = [place.key for place in one.places] == [place.key for place in other.places]
    assert points == (one.key == other.key)
    return points


@pytest.mark.parametrize(
    ("given", "over"),
    [
        ({"repeats": 5, "x": 1}, ["size=10,40", "heads=1,2"]),
        ({"repeats": "5"}, {"size": [10, 40], "heads": "1,2"}),
        ({"function": "matrix_exp_trace"}, {"size": (10.0, "40"), "heads": [1, 2]}),
        ({"scaling": (), "compile": "off"}, [" size = 10 , 40 ", "heads=1:2:lin2"]),
        ({"budget": None, "paths": ["recompute", "retain_graph", "reuse", "auto"]},
         ["size=10:40:log2", "heads=1:2:log9"]),
    ],
)  # fmt: skip
def test_the_same_sweep_has_the_same_keys_however_it_is_written(given: Any, over: Any) -> None:
    assert same(Sweep(given, over), Sweep({}, ["size=10,40", "heads=1,2"]))


def test_an_expression_is_the_same_head_with_and_without_a_space() -> None:
    assert same(Sweep({"heads": ("y**2",)}, ["size=2,3"]), Sweep({"heads": "y ** 2"}, ["size=2,3"]))


CHANGED = {
    "function": "matrix_exp_entries", "x": 0.5, "derivative": "fast", "dtype": "float32",
    "device": "cuda", "compile": True, "heads": ("sin",), "paths": ("reuse",), "repeats": 4,
    "sizes": True, "curvature": True, "seed": 1, "budget": 9.0,
}  # fmt: skip


def test_every_field_is_part_of_the_keys() -> None:
    assert {*CHANGED, "size", *NOT_SWEPT} == set(table())
    plain = Sweep({}, ["size=10,40"])
    for name, value in CHANGED.items():
        other = Sweep({name: value}, ["size=10,40"])
        assert not same(plain, other)
        assert not {p.key for p in plain.places} & {p.key for p in other.places}, name


def test_a_point_has_the_same_key_in_every_sweep_that_has_it() -> None:
    one, other = Sweep({"x": 1.0}, ["size=10,40"]), Sweep({"size": 10}, ["x=0.5,1"])
    (key,) = {p.key for p in one.places} & {p.key for p in other.places}
    assert key == one.places[0].key


def test_other_axes_make_another_sweep() -> None:
    plain = Sweep({}, ["size=10,40", "heads=1,2"])
    for over in (["size=10,40"], ["size=10,41", "heads=1,2"], ["heads=1,2", "size=10,40"]):
        assert plain.key != Sweep({}, over).key


def test_the_time_for_all_points_changes_no_key() -> None:
    for total in (None, 3.5, "60"):
        assert same(Sweep({}, [NINE], total=total), Sweep({}, [NINE]))
    assert Sweep({}, [NINE], total="60").total == 60.0


# What is refused.


@pytest.mark.parametrize(
    ("given", "over", "field", "sentence"),
    [
        ({}, [], "over", "A sweep has no axis. Give 1 to 3, such as size=50:800:log5."),
        ({}, ["size=2,3", "heads=1", "x=1", "seed=1,2"], "over",
         "A sweep over 4 axes. Allowed: at most 3."),
        ({}, ["size=2,3", "size=4,5"], "over", "size is an axis more than once."),
        ({}, ["size=2:1001:lin1000", "seed=1:11:lin11"], "over",
         "A sweep of 11000 points. Allowed: at most 10000."),
        ({}, ["seed=" + ",".join(map(str, range(10_001)))], "over",
         "seed has 10001 values. Allowed: at most 10000."),
        ({"scaling": ("heads",)}, ["size=2,3"], "scaling",
         "scaling cannot be part of a sweep: it measures many numbers of heads in each run: "
         "sweep heads instead."),
        ({}, ["scaling=heads,outputs"], "over", "scaling is no axis: it measures many numbers"),
        ({"heads": ("square",)}, ["heads=1,2"], "over",
         "heads=K is the first K of the powers set: leave other heads out."),
        ({"size": 5}, ["size=2,3"], "over",
         "size is given, and an axis too: leave the one or the other out."),
        ({"dtype": "float64"}, ["device=cpu,mps"], "dtype",
         "float64 is not available on mps: Apple's MPS computes in float32 only."),
        ({"device": "mps"}, ["dtype=float32,float64"], "over",
         "At dtype=float64: float64 is not available on mps"),
        ({}, ["dtype=float32,float64", "device=cpu,mps"], "over",
         "At dtype=float64, device=mps: float64 is not available on mps"),
        ({}, ["function=matrix_exp_entries,matrix_exp_trace", "size=1,2,4"], "over",
         "At function=matrix_exp_trace: Size n is 1. Allowed: a whole number from 2 to 2000."),
        ({}, ["function=tanh_network,matrix_exp_trace", "layers=1,2"], "over",
         "At function=matrix_exp_trace: layers is not a field. Allowed: function, size,"),
        ({}, ["layers=1,2"], "over", "layers is not a field. Allowed: function, size,"),
        ({"function": "nothing"}, ["size=1,2"], "function", "Function nothing is not known."),
        ({}, ["function=nothing,ode"], "over", "Function nothing is not known."),
        ({"sise": 5}, ["size=2,3"], "sise", "sise is not a field. Did you mean size?"),
        ({"repeats": 0}, ["size=2,3"], "repeats", "Repeats is 0. Allowed: a whole number from 1"),
        ({}, {"size": range(2, 4)}, "over",
         "size has the values range(2, 4). Give a list, or text such as 1,2."),
        ({"heads": ",".join(f"sin(y)*{n}.123456789" for n in range(100))}, ["size=2,3"], "heads",
         " characters as JSON. Allowed in a sweep: 2000. Take a set of heads, such as powers(16)."),
    ],
)  # fmt: skip
def test_what_is_no_sweep_is_refused_with_a_sentence(
    given: dict[str, Any], over: Any, field: str, sentence: str
) -> None:
    problems = refused(given, over)
    assert list(problems) == [field]
    assert sentence in problems[field]


def test_all_that_is_wrong_is_told_at_once_and_the_same_only_once() -> None:
    problems = refused({"repeats": 0, "seed": "x"}, ["function=tanh_network,ode", "layers=1,2,3"])
    assert list(problems) == ["repeats", "seed", "over"]
    assert problems["over"].count("layers is not a field") == 1
    many = refused({}, ["function=integral,matrix_exp_entries", "size=1000,2000,3000,4000,5000"])
    assert many["over"].startswith("At function=matrix_exp_entries: Size n is 1000. Allowed:")
    assert many["over"].endswith("And 2 more.")
    wrong = refused({}, ["sise=1,2", "repeats=0,1"])
    assert "sise is not a field" in wrong["over"] and "Repeats is 0" in wrong["over"]


@pytest.mark.parametrize("total", [0, -1, "x", 1e9, float("nan")])
def test_the_time_for_all_points_is_some_time(total: Any) -> None:
    assert list(refused({}, [NINE], total=total)) == ["total"]


def test_ten_thousand_points_are_allowed() -> None:
    assert len(Sweep({}, ["seed=1:100:lin100", "heads=1:100:lin100"])) == 10_000


def test_a_single_axis_may_be_written_as_one_text() -> None:
    assert same(Sweep({}, "size=10,40"), Sweep({}, ["size=10,40"]))
