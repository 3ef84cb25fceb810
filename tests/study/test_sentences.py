"""What a study says: the sentence that can be cited, and what to mind."""

import math
import re
from typing import Any

import pytest

from explorer.study import sentences
from explorer.study.axis import Axis
from explorer.study.point import PathPoint, Point
from explorer.study.sentences import gain, notes, setting, summary
from tests.results import head, result, timed
from tests.study.points import growing, heads_of, ran, study

TITLE = "Trace of a matrix exponential"


def point(times: Any, **more: Any) -> Point:
    return study(["size=60"], lambda at: ran(times, **more)).points[0]


# How much faster.


def test_a_gain_is_the_ratio_of_the_medians_with_the_ratios_of_the_quartiles() -> None:
    found = gain(point({"recompute": (8.0, 10.0, 12.0), "reuse": (1.0, 2.0, 4.0)}))
    assert found is not None
    assert (found.path, found.reference, found.wrong) == ("reuse", "recompute", False)
    # Quartiles of three runs lie in the middles between them: 9 and 11, 1.5 and 3.
    assert (found.ratio, found.low, found.high) == pytest.approx((5.0, 9 / 3, 11 / 1.5))
    assert found.significant


def test_the_fastest_right_path_is_compared_with_the_first_right_naive_one() -> None:
    times = {"recompute": 4.0, "retain_graph": 3.0, "jvp": 0.5, "reuse": 1.0, "torchjd": 0.1}
    found = gain(point(times))
    assert found is not None and (found.path, found.reference) == ("jvp", "recompute")
    found = gain(point(times, error={"jvp": 0.5, "recompute": 0.5}))
    assert found is not None and (found.path, found.reference) == ("reuse", "retain_graph")
    assert found.ratio == pytest.approx(3.0) and not found.wrong
    found = gain(point(times, error={"recompute": 0.5, "retain_graph": 0.5}))
    assert found is not None and (found.reference, found.wrong) == ("recompute", True)


@pytest.mark.parametrize(
    "times",
    [{"reuse": 1.0}, {"recompute": 1.0}, {"recompute": 1.0, "torchjd": 0.5},
     {"recompute": None, "reuse": 1.0}, {"recompute": 1.0, "reuse": None}],
)  # fmt: skip
def test_without_a_naive_path_or_another_there_is_no_gain(times: Any) -> None:
    assert gain(point(times)) is None
    assert gain(point({"recompute": 1.0, "reuse": 0.5}, error={"reuse": 0.5})) is None


def test_auto_is_no_path_of_its_own_where_that_which_it_took_was_timed() -> None:
    right = head({}, {})

    def with_auto(taken: str) -> Any:
        paths = {"recompute": timed(2.0), "reuse": timed(1.0), "auto": timed(0.9, taken=taken)}
        return gain(study(["size=60"], lambda at: result(paths, {"sin": right})).points[0])

    assert with_auto("reuse").path == "reuse"
    assert with_auto("jvp").path == "auto"


@pytest.mark.parametrize(("reuse", "significant"), [(0.5, True), (2.0, False), (4.0, True)])
def test_a_difference_within_the_spread_of_the_runs_is_not_significant(
    reuse: float, significant: bool
) -> None:
    found = gain(point({"recompute": (1.9, 2.0, 2.1), "reuse": (0.9 * reuse, reuse, 1.1 * reuse)}))
    assert found is not None and found.significant is significant


# The sentence.


def test_two_axes_in_one_sentence() -> None:
    found = study(["size=50,100,200", "heads=1,4,16"], growing)
    assert summary(found) == (
        "Over 9 points of size 50 to 200 and heads 1 to 16, reuse was 1.00 to 16 times as fast as "
        "recompute, in the median 4.0 times: least at size=50, heads=1, most at size=50, heads=16, "
        "where it went back through f once instead of 16 times; it was faster at 6 of 9 and not "
        "significantly different at 3; all gradients that are ranked are within 1e-13 of the "
        "exact ones."
    )
    gains = [each.ratio for p in found.points if (each := gain(p))]
    assert sorted(gains) == pytest.approx([1.0] * 3 + [4.0] * 3 + [16.0] * 3)


def test_one_axis_of_one_point() -> None:
    assert summary(study(["heads=4"], growing)) == (
        "Over 1 point of heads 4, reuse was 4.0 times as fast as recompute, where it went back "
        "through f once instead of 4 times; all gradients that are ranked are within 1e-13 of the "
        "exact ones."
    )
    assert "; the difference is within the spread of the runs; " in summary(
        study(["heads=1"], growing)
    )


def test_three_axes_and_what_has_no_order() -> None:
    found = study(["size=50,100", "heads=4", "dtype=float32,float64"], growing)
    assert summary(found).startswith(
        "Over 4 points of size 50 to 100, heads 4 and dtype float32 and float64, reuse was 4.0 "
        "times as fast as recompute, where it went back"
    )
    assert "; it was faster at every one of them; " in summary(found)


def test_gains_that_read_the_same_are_told_once() -> None:
    found = study(["size=50,100"], lambda at: ran({"recompute": 4 + at["size"] / 1e4, "reuse": 1}))
    assert "reuse was 4.0 times as fast as recompute; it was faster" in summary(found)


def test_slower_and_as_fast_are_counted_too() -> None:
    ratios = {2: 0.5, 3: 1.0, 4: 2.0, 5: 4.0}

    def seen(at: Any) -> Any:
        return ran({"recompute": ratios[at["size"]], "reuse": 1.0})

    assert (
        "; it was faster at 2 of 4, slower at 1 and not significantly different at 1; "
    ) in summary(study(["size=2,3,4,5"], seen))
    assert "; it was slower at every one of them; " in summary(
        study(["size=2,3"], lambda at: ran({"recompute": 1.0, "reuse": 2.0}))
    )


def test_no_points_and_points_so_far() -> None:
    assert summary(study(["size=50,100"], growing, 0)) == "No point is measured yet."
    assert summary(study(["size=50,100"], growing, 1)).startswith(
        "So far, over 1 of 2 points of size 50 to 100, reuse was 1.00 times as fast as recompute"
    )


def test_a_sweep_without_anything_to_compare_says_so() -> None:
    for seen in (lambda at: ran({"reuse": 1.0}), lambda at: "f raised"):
        assert summary(study(["size=50,100"], seen)) == (
            "Over 2 points of size 50 to 100, no path could be compared with a naive one."
        )


def test_several_fastest_paths_and_several_references() -> None:
    def seen(at: Any) -> Any:
        first = at["size"] == 50
        times = {"recompute": 4.0, "retain_graph": 3.0, "reuse": 1.0, "jvp": 0.5 if first else 2.0}
        return ran(times, error={"recompute": 0.5 if first else 1e-13})

    found = summary(study(["size=50,100"], seen))
    assert "the fastest of jvp and reuse was 4.0 to 6.0 times as fast as recompute and" in found


def test_forward_mode_is_told_as_such() -> None:
    paths = {"recompute": timed(5.0, backward=9), "jvp": timed(1.0, backward=0,
                                                               forward_mode_passes=1)}  # fmt: skip
    heads = {"sin": head({}, dict.fromkeys(paths, 0.0))}
    found = summary(study(["size=60"], lambda at: result(paths, heads)))
    assert ", where it went through f in forward mode once instead of back 9 times" in found
    assert found.endswith("; all gradients that are ranked are exact.")


def test_what_all_points_share_is_told_as_far_as_it_was_given() -> None:
    found = study(["size=50,100"], growing, dtype="float32", x="0.5", repeats=3, seed=1,
                  budget=None)  # fmt: skip
    assert setting(found) == f"{TITLE}, dtype = float32, x = 0.5"
    assert setting(study(["function=ode,heat_equation"], growing, compile=True)) == "compile = on"
    assert setting(study(["size=2"], growing, function="tanh_network", outputs=None)) == (
        sentences.FUNCTIONS["tanh_network"].title
    )
    other = found.model_copy(update={"given": {"function": "not here", "heads": ("sin", "exp")}})
    assert setting(other) == "not here"


# What to mind.


def test_a_study_without_anything_to_mind_has_no_notes() -> None:
    assert notes(study(["size=50,100"], growing)) == ()
    assert notes(study(["size=50,100"], growing, notes=("cut off",))) == ("cut off",)


def test_wrong_paths_are_told_with_what_their_points_share() -> None:
    def seen(at: Any) -> Any:
        off = 0.003 * at["heads"] if at["dtype"] == "float32" else 1e-13
        times = {"recompute": 4.0, "retain_graph": 3.0, "reuse": 1.0}
        return ran(times, error={"recompute": off, "retain_graph": off})

    found = study(["heads=1,4", "dtype=float32,float64"], seen)
    assert notes(found) == (
        "recompute and retain_graph give wrong gradients at 2 points, all with dtype=float32, up "
        "to 1.2% off, and are not ranked there.",
    )
    one = study(["heads=4", "dtype=float32,float64"], seen)
    assert notes(one)[0].startswith(
        "recompute and retain_graph give wrong gradients at heads=4, dtype=float32, up to 1.2% off"
    )


def test_an_error_that_is_not_finite_is_no_number_to_tell() -> None:
    broken = head({}, {"recompute": 1e-13, "reuse": math.nan},
                  gradient={"recompute": (2.0,), "reuse": (math.nan,)})  # fmt: skip
    paths = {"recompute": timed(1.0), "reuse": timed(1.0)}
    assert notes(study(["size=60"], lambda at: result(paths, {"sin": broken}))) == (
        "reuse gives wrong gradients at size=60, and is not ranked there.",
    )


def test_paths_that_were_not_timed_are_told_with_what_they_would_take() -> None:
    def seen(at: Any) -> Any:
        return ran({"recompute": None if at["size"] > 100 else 2.0, "reuse": 1.0})

    assert notes(study(["size=50,100,200"], seen)) == (
        "recompute was not timed at size=200; it would take up to 100 s.",
    )
    assert notes(study(["size=150,200"], seen)) == (
        "recompute was not timed at 2 points; it would take up to 100 s.",
    )


def test_points_without_a_result_are_told_by_their_reason() -> None:
    def seen(at: Any) -> Any:
        return f"Reason {min(at['size'], 14)}." if at["size"] > 10 else growing(at)

    found = study(["size=10:20:lin11"], seen)
    assert notes(found) == (
        "At 7 points: Reason 14.",
        "At size=12: Reason 12.",
        "At size=11: Reason 11.",
        "And 1 more point has no whole result.",
    )
    many = study(["size=2:21:lin20"], lambda at: f"Reason {at['size'] % 5}.")
    assert notes(many)[-1] == "And 8 more points have no whole result."
    assert len(notes(many)) == 4


def test_points_of_several_places_are_told_to_compare_only_roughly() -> None:
    def on(count: int) -> Any:
        found = study(
            ["size=2:11:lin10"],
            lambda at: ran({"recompute": 2.0, "reuse": 1.0}, device_name=f"P{at['size'] % count}"),
        )
        return notes(found)

    assert on(1) == ()
    assert on(2) == (
        "The points were measured in 2 places, whose times compare only roughly: here, P0, 2 "
        "threads; here, P1, 2 threads.",
    )
    assert on(5)[0].endswith("here, P2, 2 threads and 2 more.")


def test_what_was_raised_may_be_anything() -> None:
    evil = "</script><b>%s{x}\n"
    (note,) = notes(study(["size=60"], lambda at: evil))
    assert note == f"At size=60: {evil}"


def test_every_sentence_ends_and_has_no_none_in_it() -> None:
    def seen(at: Any) -> Any:
        wrong = {"recompute": 0.5 if at["size"] == 50 else 0.0}
        return ran({"recompute": heads_of(at), "reuse": None if at["heads"] == 3 else 1.0},
                   error=wrong, norm=None)  # fmt: skip

    for count in (None, 0, 1, 3):
        found = study(["size=50,100", "heads=1,3", "compile=off,on"], seen, count)
        for sentence in (summary(found), *notes(found)):
            assert re.search(r"[^.]\.$", sentence)
            assert not re.search(r"None|nan|inf\b|\{|  ", sentence)


def test_a_study_read_from_elsewhere_may_have_paths_of_tomorrow() -> None:
    path = PathPoint(seconds=1.0, low=0.9, high=1.1, forward=1, backward=1)
    seen = Point(sweep="a", point="b", at={"size": 2}, seconds=1.0,
                 paths={"recompute": path, "of tomorrow": path})  # fmt: skip
    found = study(["size=2,3"], growing, 0).model_copy(
        update={"points": (seen,), "axes": (Axis("size", "Size n", (2, 3)),)}
    )
    assert "of tomorrow was 1.00 times as fast as recompute" in summary(found)
