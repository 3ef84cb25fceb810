"""What is compared with what, and the numbers that come out."""

import math
from statistics import median
from typing import Any

import pytest
from scipy.stats import mannwhitneyu

import explorer
from explorer.comparing.comparison import MOST, compare
from explorer.result import Array
from tests.comparing.results import SPREAD, elsewhere, measured, square, with_runs
from tests.results import good, head, inaccurate, result, seconds, timed, untimed


def test_the_ratio_is_the_factor_between_the_times() -> None:
    found = compare({"laptop": measured(), "gpu": measured(0.4)})
    for path in ("recompute", "reuse"):
        ratio = found.ratios[path]["gpu"]
        quotients = sorted(0.4 * a / b for a in SPREAD for b in SPREAD)
        assert ratio.value == pytest.approx(0.4) == pytest.approx(median(quotients))
        # For 5 against 5 the test rejects the first three counts, 0 to 2.
        assert (ratio.low, ratio.high) == pytest.approx((quotients[2], quotients[22]))
        assert ratio.significant and ratio.runs == (5, 5) and ratio.against == "laptop"
        one, other = found.results["laptop"].paths[path], found.results["gpu"].paths[path]
        assert one.seconds and other.seconds
        test = mannwhitneyu(other.seconds.runs, one.seconds.runs)
        assert ratio.p == pytest.approx(test.pvalue)


def test_the_other_way_round_it_is_the_inverse() -> None:
    one, other = measured(), measured(0.7)
    ratio = compare({"a": one, "b": other}).ratios["reuse"]["b"]
    back = compare({"b": other, "a": one}).ratios["reuse"]["a"]
    assert ratio.low and ratio.high
    assert back.value == pytest.approx(1 / ratio.value)
    assert (back.low, back.high) == pytest.approx((1 / ratio.high, 1 / ratio.low))
    assert back.p == pytest.approx(ratio.p)


def test_what_differs_by_less_than_the_spread_is_not_significant() -> None:
    ratio = compare({"a": measured(), "b": measured(1.002)}).ratios["reuse"]["b"]
    assert not ratio.significant and ratio.decidable
    assert ratio.low is not None and ratio.high is not None and ratio.low < 1 < ratio.high


def test_too_few_runs_decide_nothing() -> None:
    ratio = compare({"a": good(), "b": with_runs(50.0, 51.0, 52.0)}).ratios["reuse"]["b"]
    assert not ratio.decidable and not ratio.significant and ratio.low is None
    assert ratio.value == pytest.approx(51.0)


def test_wrong_paths_are_not_compared() -> None:
    found = compare({"right": good(), "wrong": inaccurate()})
    assert found.wrong == {"wrong": ("recompute", "retain_graph", "reuse")}
    assert found.ratios == {}


def test_a_path_that_the_first_lacks_is_compared_with_the_next_that_has_it() -> None:
    first = result({"reuse": timed(1, 2, 3, 4), "jvp": untimed("predicted")}, square())
    others = {name: result({"jvp": timed(1, 2, 3, 4)}, square()) for name in ("b", "c")}
    found = compare({"a": first, **others})
    assert list(found.ratios) == ["jvp"] and list(found.ratios["jvp"]) == ["c"]
    assert found.ratios["jvp"]["c"].against == "b"
    assert found.paths == ("reuse", "jvp")


@pytest.mark.parametrize("broken", [0.0, -1.0, math.inf, math.nan])
def test_runs_that_no_clock_gives_are_left_out(broken: float) -> None:
    own = timed(1.0).model_copy(
        update={"seconds": seconds(1.0).model_copy(update={"runs": (2.0, broken, 4.0)})}
    )
    found = compare({"a": with_runs(1.0), "b": result({"reuse": own}, square())})
    assert found.ratios["reuse"]["b"].runs == (2, 1)
    assert found.ratios["reuse"]["b"].value == pytest.approx(math.sqrt(8))


def test_gradients_are_compared_where_the_function_is_the_same_at_the_same_x() -> None:
    found = compare({"a": measured(), "b": measured(gradient=2.002, dtype="float32")})
    assert found.gradients["square"]["b"].value == pytest.approx(1e-3)
    assert compare({"a": measured(), "b": measured(size=61)}).gradients == {}
    assert compare({"a": measured(), "b": measured(parameters={"x": 0.5})}).gradients == {}


def test_the_distance_of_gradients_is_the_largest_over_the_paths() -> None:
    def seen(*reuse: float) -> explorer.Result:
        right = {"recompute": 0.0, "reuse": 0.0}
        numbers = {"recompute": (3.0, 4.0), "reuse": reuse}
        heads = {"square": head(right, right, gradient=numbers)}
        return result({"recompute": timed(1.0), "reuse": timed(1.0)}, heads)

    found = compare({"a": seen(3.0, 4.0), "b": seen(3.0, 4.5)}).gradients["square"]["b"]
    assert (found.path, found.value) == ("reuse", pytest.approx(0.1))
    assert compare({"a": seen(3.0, 4.0), "b": seen(3.0)}).gradients["square"]["b"].value == 0
    assert compare({"a": seen(0.0, 0.0), "b": seen(0.0, 1.0)}).gradients["square"][
        "b"
    ].value == math.inf


def test_gradients_of_which_a_part_is_listed_are_not_compared() -> None:
    long = Array(norm=1.0, shape=(40,), first=(0.5, 0.5))
    right = {"reuse": 1e-13}
    seen = result({"reuse": timed(1.0)}, {"sin": head(right, right, gradient={"reuse": long})})
    assert compare({"a": seen, "b": seen}).gradients == {}


@pytest.mark.parametrize("count", [0, 1, MOST + 1])
def test_so_many_results_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"`results` has {count} Results. Allowed: 2 to {MOST}."):
        compare({str(number): good() for number in range(count)})


@pytest.mark.parametrize("wrong", [[good(), good()], {"a": good(), "b": "b.json"}, {1: good()}])
def test_what_is_no_mapping_of_results_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="`results` is no mapping of names to Results"):
        compare(wrong)


def test_the_comparison_is_plain_data() -> None:
    found = explorer.compare({"laptop": measured(), "gpu": elsewhere()})
    assert explorer.Comparison.model_validate_json(found.to_json()) == found
    assert found.first == "laptop"
