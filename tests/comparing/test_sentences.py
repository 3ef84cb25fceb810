"""What is said of the Results together."""

import pytest

from explorer.comparing import sentences
from explorer.comparing.comparison import compare
from explorer.result import Array
from tests.comparing.results import elsewhere, measured, square, with_runs
from tests.results import good, head, inaccurate, result, timed, untimed


def test_of_two_the_summary_has_the_paths_with_their_intervals() -> None:
    said = sentences.summary(compare({"laptop": measured(), "gpu": elsewhere()}))
    assert said == (
        "gpu is faster than laptop in recompute (2.5 times, 95% interval 2.43 to 2.58) and reuse "
        "(2.5 times, 95% interval 2.43 to 2.58)."
    )
    back = sentences.summary(compare({"gpu": elsewhere(), "laptop": measured()}))
    assert back.startswith("laptop is slower than gpu in recompute (2.5 times, 95% interval 2.43")


def test_the_interval_in_the_sentence_is_that_of_the_ratio() -> None:
    found = compare({"a": measured(), "b": measured(0.4)})
    ratio = found.ratios["reuse"]["b"]
    assert ratio.low and ratio.high
    assert f"{1 / ratio.high:.3g} to {1 / ratio.low:.3g}" in sentences.summary(found)
    assert sentences.interval(ratio) == f"{ratio.low:.3g} to {ratio.high:.3g}"


def test_no_significant_difference() -> None:
    found = compare({"a": measured(), "b": measured(1.002)})
    words = "No significant difference between a and b in recompute and reuse."
    assert sentences.summary(found) == words
    assert sentences.standing(found.ratios["reuse"]["b"]) == "no significant difference"


def test_some_faster_some_slower_some_neither_and_some_undecided() -> None:
    runs = (1.0, 1.01, 1.02, 1.03, 1.04)
    before = {name: timed(*runs) for name in ("recompute", "retain_graph", "reuse", "jvp")}
    after = {
        "recompute": timed(*(0.5 * each for each in runs)),
        "retain_graph": timed(*(3 * each for each in runs)),
        "reuse": timed(*runs),
        "jvp": timed(1.0),
    }
    found = compare({"a": result(before, square()), "b": result(after, square())})
    said = sentences.summary(found)
    assert said.startswith("b is faster than a in recompute (2.0 times, ")
    assert ", and slower in retain_graph (3.0 times, " in said
    assert said.endswith("with no significant difference in reuse; too few runs to tell in jvp.")


def test_a_ratio_near_1_keeps_its_digits() -> None:
    runs = tuple(1 + 1e-6 * number for number in range(5))
    before = result({"reuse": timed(*runs)}, square())
    after = result({"reuse": timed(*(1.003 * each for each in runs))}, square())
    assert "slower than a in reuse (1.0030 times" in sentences.summary(
        compare({"a": before, "b": after})
    )


def test_of_several_the_summary_counts_and_a_sentence_each_has_the_paths() -> None:
    found = compare(
        {"a": measured(), "b": measured(0.5), "c": measured(1.001), "d": with_runs(9.0)}
    )
    said = sentences.summary(found)
    assert said.startswith(
        "Against a: b is faster in both paths; c shows no significant difference; d "
    )
    every = sentences.each(found)
    assert every[0].startswith("b is faster than a in recompute (2.0 times, ")
    assert every[1] == "No significant difference between a and c in recompute and reuse."
    assert sentences.each(compare({"a": measured(), "b": measured()})) == []


def test_too_few_runs_are_said_with_what_to_do() -> None:
    found = compare({"a": good(), "b": good()})
    assert sentences.summary(found) == "Too few runs to tell b from a in recompute and reuse."
    assert any("3 against 3" in note and "repeats" in note for note in sentences.notes(found))
    assert sentences.standing(found.ratios["reuse"]["b"]) == "too few runs to tell"


def test_wrong_paths_are_named_and_not_ranked() -> None:
    said = sentences.summary(compare({"right": good(), "wrong": inaccurate()}))
    assert "right and wrong have no path that can be compared" in said
    assert (
        "recompute, retain_graph and reuse give wrong gradients in wrong and are not compared there"
        in said
    )


def test_another_experiment_is_said_in_the_summary_and_how_it_differs() -> None:
    found = compare({"a": measured(), "b": measured(size=70, dtype="float32")})
    assert "these are not the same experiment: they differ in Size n and Data type" in (
        sentences.summary(found)
    )
    assert sentences.experiments(found)[:2] == [
        "Size n: 60 in a; 70 in b.",
        "Data type: float64 in a; float32 in b.",
    ]


def test_another_function_differs_by_its_parameters_too() -> None:
    one = measured()
    other = measured(function="tanh_network", size=60)
    said = sentences.experiments(compare({"a": one, "b": other}))
    assert said[0] == "Function: matrix_exp_trace in a; tanh_network in b."
    assert "x: 1.0 in a." in said


def test_how_it_was_measured_makes_no_other_experiment() -> None:
    found = compare({"a": measured(), "b": measured(repeats=7, device="cuda")})
    assert "not the same experiment" not in sentences.summary(found)
    assert sentences.experiments(found) == [
        "What is computed is the same in all.",
        "Repeats: 5 in a; 7 in b.",
    ]
    assert sentences.environments(found)[0] == "Measured on: cpu in a; cuda in b."


def test_what_differs_between_the_environments() -> None:
    found = compare({"a": measured(), "gpu": elsewhere(torch="2.14.0"), "c": measured(1.1)})
    said = sentences.environments(found)
    assert "Device: A processor in a and c; NVIDIA H200 in gpu." in said
    assert "Threads: 2 in a and c; 16 in gpu." in said
    assert "torch: 2.13.0 in a and c; 2.14.0 in gpu." in said
    assert said[-1] == "The same in all: Python 3.11.7."
    same = sentences.environments(compare({"a": measured(), "b": measured(2.0)}))
    assert len(same) == 1 and same[0].startswith("The environments are the same: Device A proc")


@pytest.mark.parametrize(
    ("dtype", "gradient", "words"),
    [
        ("float64", 2.0, "agree to the last digit"),
        ("float64", 2.0 + 1e-9, "agree to 5e-10: square by recompute, b against a"),
        ("float64", 2.002, "differ by up to 0.1%: square by recompute, b against a"),
        ("float32", 2.0 + 2e-6, "agree to 1e-6"),
    ],
)
def test_how_far_the_gradients_lie_apart(dtype: str, gradient: float, words: str) -> None:
    found = compare({"a": measured(), "b": measured(gradient=gradient, dtype=dtype)})
    (said,) = sentences.gradients(found)
    assert said.startswith(f"The gradients that are listed {words}")


def test_gradients_that_are_too_long_are_said_to_be_left_out() -> None:
    long = Array(norm=1.0, shape=(40,), first=(0.5, 0.5))
    right = {"reuse": 1e-13}
    seen = result({"reuse": timed(1.0)}, {"sin": head(right, right, gradient={"reuse": long})})
    found = compare({"a": seen, "b": seen})
    assert sentences.gradients(found) == []
    assert any("--full" in note for note in sentences.notes(found))


def test_what_to_mind() -> None:
    waiting = result(
        {"reuse": timed(1, 2, 3, 4), "jvp": untimed("running")}, square(), status="cancelled"
    )
    notes = sentences.notes(compare({"a": measured(), "b": waiting}))
    assert "b was not finished." in notes and "b has no time of jvp." in notes
    assert any("not why" in note for note in notes)
    assert not any("one of 20" in note for note in notes)
    many = sentences.notes(compare({name: measured(1 + 0.1 * ord(name)) for name in "abcd"}))
    assert any(note.startswith("6 ratios are tested") for note in many)
