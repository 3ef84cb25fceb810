import math
import re
from typing import Any

import pytest

from explorer import sentences
from explorer.experiment import Experiment
from explorer.result import Curvature, HeadNorms, JacobianResult
from tests.results import (
    NOTHING_YET,
    good,
    head,
    inaccurate,
    inspected,
    real,
    result,
    timed,
    untimed,
)

RIGHT = head({"recompute": 0.0, "reuse": 2e-12}, {"recompute": 3e-13, "reuse": 4e-13})
ALONE = head({"reuse": None}, {"reuse": 4e-13})


# The sentence on the whole.


def test_a_faster_reuse() -> None:
    assert sentences.summary(good()) == (
        "reuse was 9.6 times faster than recompute: it went back through f once instead of "
        "10 times; both paths agree to 2e-12, and are 4e-13 from the exact value."
    )


def test_a_slower_reuse_says_how_often_it_went_back() -> None:
    paths = {
        "recompute": timed(2.1, 2.1, 2.2, forward=2, backward=2),
        "retain_graph": timed(2.0, 2.0, 2.0, backward=2),
        "reuse": timed(24.0, 24.0, 24.1, backward=200),
    }
    same = dict.fromkeys(paths, 0.0)
    seen = result(paths, {"square": head(same, same)}, outputs=200)
    assert sentences.summary(seen) == (
        "reuse was 12 times slower than retain_graph: it went back through f 200 times instead "
        "of 2; all three paths agree to the last digit, and are equal to the exact value."
    )


def test_naive_paths_alone_differ_in_going_forward() -> None:
    paths = {
        "recompute": timed(3.0, 3.0, 3.0, forward=4, backward=4),
        "retain_graph": timed(2.0, 2.0, 2.0, backward=4),
    }
    same = dict.fromkeys(paths, 0.0)
    assert sentences.summary(result(paths, {"square": head(same, same)})).startswith(
        "retain_graph was 1.5 times faster than recompute: it went forward through f once "
        "instead of 4 times;"
    )


def test_a_time_that_goes_against_the_counts_is_not_explained_by_them() -> None:
    paths = {"recompute": timed(1.0, 1.0, backward=4), "reuse": timed(2.0, 2.0)}
    assert sentences.summary(result(paths, {"square": RIGHT})).startswith(
        "reuse was 2.0 times slower than recompute, although it went back through f once instead"
    )


@pytest.mark.parametrize(("one", "other"), [((1.0, 1.2, 1.6), (1.0, 1.4, 1.7)), ((1.0,), (1.05,))])
def test_a_difference_within_the_spread_is_none(
    one: tuple[float, ...], other: tuple[float, ...]
) -> None:
    paths = {"recompute": timed(*one, backward=2), "reuse": timed(*other)}
    seen = result(paths, {"square": RIGHT})
    assert sentences.summary(seen).startswith(
        "reuse and recompute do not differ significantly in time"
    )
    assert sentences.comparison(seen, "reuse") == "within noise"


def test_a_few_slow_runs_do_not_hide_a_difference() -> None:
    paths = {
        "recompute": timed(0.26, 0.27, 0.34, 0.53, 0.60, backward=2),
        "reuse": timed(0.12, 0.13, 0.14, 0.15, 0.24),
    }
    seen = result(paths, {"square": RIGHT})
    assert sentences.summary(seen).startswith("reuse was 2.4 times faster than recompute")
    assert sentences.comparison(seen, "reuse") == "2.4× faster"


def test_wrong_paths_are_never_ranked() -> None:
    seen = inaccurate()
    assert sentences.wrong_paths(seen) == {"recompute", "retain_graph", "reuse"}
    assert sentences.summary(seen) == (
        "recompute, retain_graph and reuse all give wrong gradients in float32, up to 1.2% off, "
        "and are not ranked: use float64."
    )
    assert sentences.baseline(seen) is None
    assert {sentences.comparison(seen, path) for path in seen.paths} == {"wrong gradients"}


def test_the_path_that_is_right_is_recommended_in_float64() -> None:
    exp = head({"recompute": 0.0, "reuse": 6e-8}, {"recompute": 6e-8, "reuse": 3e-12})
    seen = result(dict(good().paths), {"square": RIGHT, "exp": exp})
    assert sentences.wrong_paths(seen) == {"recompute"}
    assert sentences.summary(seen) == (
        "reuse took 1 s: it went back through f once; recompute gives wrong gradients of exp in "
        "float64, up to 6e-8 off, and is not ranked: take those of reuse; "
        "reuse is 3e-12 from the exact value."
    )
    assert sentences.verdict(seen, "exp").startswith(
        "the paths disagree by 6e-8: naive is 6e-8 wrong and reuse right. Why: "
    )
    assert sentences.judgement(seen, "exp", "recompute") == "wrong"
    assert sentences.judgement(seen, "exp", "reuse") == "right"


def test_a_device_without_float64_is_left_for_the_cpu() -> None:
    wrong = head({"reuse": None}, {"reuse": 0.5})
    seen = result({"reuse": timed(1.0)}, {"square": wrong}, dtype="float32", device="mps")
    assert sentences.summary(seen).endswith("not ranked: use float64 on the CPU.")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_half_the_digits_are_right(dtype: str) -> None:
    limit = {"float32": 3.45e-4, "float64": 1.49e-8}[dtype]
    for factor, wrong in ((0.99, set()), (1.01, {"reuse"})):
        seen = result(
            {"reuse": timed(1.0)}, {"sin": head({"reuse": None}, {"reuse": factor * limit})},
            dtype=dtype,
        )  # fmt: skip
        assert sentences.wrong_paths(seen) == wrong


def test_a_gradient_that_is_not_finite_where_the_truth_is_counts_as_wrong() -> None:
    right = {"recompute": 3e-13, "retain_graph": 3e-13}
    why = f"Why: {Experiment().described.inaccuracy}. What to do: take those of"
    paths = {**dict.fromkeys(right, timed(1.0)), "reuse": timed(1.0)}
    broken = head(
        {**dict.fromkeys(right, 0.0), "reuse": math.nan}, {**right, "reuse": math.nan},
        gradient={**dict.fromkeys(right, (2.0,)), "reuse": (math.inf,)},
    )  # fmt: skip
    seen = result(paths, {"square": broken})
    assert sentences.wrong_paths(seen) == {"reuse"}
    assert sentences.judgement(seen, "square", "reuse") == "wrong"
    assert sentences.judgement(seen, "square", "recompute") == "right"
    assert sentences.verdict(seen, "square") == (
        "reuse gives no finite gradient; the others agree to the last digit, and recompute and "
        "retain_graph are right, 3e-13 from the exact value (closed form). "
        f"{why} recompute and retain_graph."
    )
    assert "reuse gives wrong gradients in float64, and is not ranked" in sentences.summary(seen)
    two = broken.model_copy(update={"gradient": {"recompute": (math.nan,), "reuse": (2.0,)}})
    other = two.model_copy(update={"error": {"recompute": math.nan, "reuse": 4e-13}})
    assert sentences.verdict(result(dict(good().paths), {"square": other}), "square") == (
        "recompute gives no finite gradient; reuse is right, 4e-13 from the exact value "
        f"(closed form). {why} reuse."
    )


def test_no_finite_gradient_at_all_where_the_truth_is_finite() -> None:
    nan = {"recompute": math.nan, "reuse": math.nan}
    broken = head(nan, nan, gradient=dict.fromkeys(nan, (math.inf,)))
    seen = result(dict(good().paths), {"square": broken}, dtype="float32")
    assert sentences.wrong_paths(seen) == set(nan)
    assert sentences.verdict(seen, "square").startswith(
        "recompute and reuse give no finite gradient. Why: "
    )
    assert sentences.summary(seen) == (
        "recompute and reuse give wrong gradients in float32, and are not ranked: use float64."
    )


def test_an_overflowing_head_is_no_path_s_fault() -> None:
    domain = "exp overflows float32, whose largest number is 3.4e+38: its value is infinite."
    overflown = head(
        {"recompute": math.nan, "reuse": math.nan}, {"recompute": math.nan, "reuse": math.nan},
        value=math.inf, gradient={"recompute": (math.inf,), "reuse": (math.inf,)}, domain=domain,
    )  # fmt: skip
    seen = result(dict(good().paths), {"square": RIGHT, "exp": overflown})
    assert not sentences.wrong_paths(seen)
    assert sentences.verdict(seen, "exp") == domain
    assert sentences.summary(seen) == (
        f"{sentences.summary(good())[:-1]}; exp is left out: it has no finite value here."
    )


LEFT_OUT: dict[str, dict[str, Any]] = {
    "log": {"value": math.nan, "error": 0.5},  # 1/y is finite where log y is not
    "sqrt": {"value": math.nan, "gradient": math.nan},
    "exp": {"value": 4.0, "gradient": math.inf},
}


def test_a_head_that_is_left_out_is_left_out_of_every_judgement() -> None:
    heads = {"square": RIGHT}
    for name, given in LEFT_OUT.items():
        each = dict.fromkeys(("recompute", "reuse"), given.get("error", math.nan))
        gradient = dict.fromkeys(each, (given.get("gradient", 2.0),))
        heads[name] = head(
            each, each, value=given["value"], gradient=gradient, domain="Not here."
        )  # fmt: skip
    seen = result(dict(good().paths), heads)
    assert not sentences.wrong_paths(seen)
    assert sentences.summary(seen) == (
        f"{sentences.summary(good())[:-1]}; log and sqrt are left out: they have no finite value "
        "here; exp is left out: it has no finite gradient here."
    )
    for name in LEFT_OUT:
        assert sentences.verdict(seen, name) == "Not here."
        assert {sentences.judgement(seen, name, path) for path in seen.paths} == {"left out"}


def test_a_result_without_a_usable_head() -> None:
    outside = head({"reuse": math.nan}, {"reuse": math.nan}, value=math.nan, domain="Outside.")
    seen = result({"reuse": timed(1.0)}, {"log": outside})
    assert "no gradient could be checked; log is left out" in sentences.summary(seen)


def test_one_path_has_nothing_to_be_compared_with() -> None:
    seen = result({"reuse": timed(1.0, 1.0)}, {"square": ALONE})
    assert sentences.summary(seen) == (
        "reuse took 1 s: it went back through f once; reuse is 4e-13 from the exact value; "
        "no naive path was run to compare with."
    )
    assert sentences.comparison(seen, "reuse") == ""
    assert "No naive path was run: there is no agreement, and no speed-up." in sentences.notes(seen)


def test_partial_results_say_what_is_still_to_come() -> None:
    paths = {"recompute": untimed("running"), "reuse": timed(1.0)}
    seen = result(paths, {"square": ALONE}, status="running", jacobian=NOTHING_YET)
    assert sentences.summary(seen) == (
        "So far reuse took 1 s: it went back through f once; reuse is 4e-13 from the exact "
        "value; recompute is still to run."
    )
    assert sentences.verdict(seen, "square") == (
        "reuse is right, 4e-13 from the exact value (closed form)."
    )
    assert sentences.comparison(seen, "recompute") == "not yet run"
    assert sentences.notes(seen) == []


def test_before_any_time_is_known() -> None:
    empty = head({}, {}, agreement_reference=None, error_reference="none yet")
    paths = {"recompute": untimed("running"), "reuse": untimed("running")}
    seen = result(paths, {"square": empty}, status="running", jacobian=NOTHING_YET)
    assert sentences.summary(seen) == ("No path is timed yet: recompute and reuse are under way.")
    assert sentences.verdict(seen, "square") == "no path has given its gradient yet."
    alone = result({"reuse": untimed("running")}, {"square": head({}, {})}, status="running")
    assert sentences.summary(alone) == "No path is timed yet: reuse is under way."
    unfinished = result({"reuse": untimed("predicted")}, {"square": head({}, {})})
    assert sentences.verdict(unfinished, "square") == "no path has given its gradient."
    cancelled = seen.model_copy(update={"status": "cancelled"})
    assert sentences.summary(cancelled) == "The run was cancelled before any path was timed."


def test_a_cancelled_path() -> None:
    paths = {"recompute": untimed("running"), "reuse": timed(1.0)}
    seen = result(paths, {"square": ALONE}, status="cancelled")
    assert sentences.summary(seen).endswith("; recompute was cancelled.")


def test_predicted_paths_are_said_not_to_have_run() -> None:
    note = "not run: it would take about 40 s"
    slow = untimed("predicted", predicted_seconds=40.0, note=note)
    seen = result({"recompute": slow, "reuse": timed(1.0, 1.0)}, {"square": ALONE})
    assert sentences.summary(seen).endswith("; recompute was not run, and would take about 40 s.")
    assert sentences.notes(seen) == [f"recompute: {note}"]
    nothing = result({"recompute": slow}, {"square": head({}, {})})
    assert sentences.summary(nothing) == (
        "No path was run: recompute was not run, and would take about 40 s."
    )


def test_an_unknown_error_is_said_to_be_unknown() -> None:
    reason = "none: the reference in float64 on the CPU would take about 9 s"
    unknown = head(
        {"recompute": 0.0, "reuse": 1e-6}, {"recompute": None, "reuse": None},
        error_reference=reason, exact_gradient=None,
    )  # fmt: skip
    seen = result(dict(good().paths), {"square": unknown}, dtype="float32")
    assert sentences.summary(seen).endswith("both paths agree to 1e-6; the error is not known.")
    assert sentences.verdict(seen, "square") == (
        "the paths agree to 1e-6, and the error is not known "
        "(the reference in float64 on the CPU would take about 9 s)."
    )
    assert sentences.judgement(seen, "square", "reuse") == "not known"


def test_the_numbers_of_a_real_run_are_in_its_sentence() -> None:
    seen = real()
    text = sentences.summary(seen)
    numbers = [float(number) for number in re.findall(r"\d(?:\.\d+)?e-\d+", text)]
    agreement = max(a for h in seen.heads.values() for a in h.agreement.values() if a is not None)
    error = max(e for h in seen.heads.values() for e in h.error.values() if e is not None)
    assert error > 0
    expected = [agreement, error] if agreement else [error]
    assert numbers == [float(f"{value:.0e}") for value in expected]


# The verdict on a head.


def test_agreement_is_not_accuracy() -> None:
    seen = inaccurate()
    why = Experiment().described.inaccuracy
    assert sentences.verdict(seen, "sqrt") == (
        "the paths agree to 1e-5, and all three are 0.9% wrong. "
        f"Why: {why}. What to do: use float64."
    )
    assert sentences.verdict(seen, "square") == (
        "the paths disagree by 1.4%: reuse is 1.2% and naive 0.3% wrong. "
        f"Why: {why}. What to do: use float64."
    )


def test_paths_that_are_right_do_not_disagree() -> None:
    # Each error is below the limit of 3.45e-4, the difference of the two is not.
    square = head({"recompute": 0.0, "reuse": 3.52e-4}, {"recompute": 1e-4, "reuse": 2.52e-4})
    seen = result(dict(good().paths), {"square": square}, dtype="float32")
    assert sentences.verdict(seen, "square") == (
        "the paths agree to 0.04%, and both are right, 0.03% from the exact value (closed form)."
    )
    assert "both paths agree to 0.04%, and are 0.03% from" in sentences.summary(seen)
    unknown = square.model_copy(update={"error": {"recompute": None, "reuse": None}})
    seen = result(dict(good().paths), {"square": unknown}, dtype="float32")
    assert sentences.verdict(seen, "square").startswith("the paths disagree by 0.04%: ")


def test_naive_paths_that_differ_keep_their_names() -> None:
    error = {"recompute": 0.01, "retain_graph": 0.02, "reuse": 0.03}
    seen = result(
        {name: timed(1.0) for name in error},
        {"sin": head({"recompute": 0.0, "retain_graph": 0.01, "reuse": 0.02}, error)},
    )
    assert sentences.verdict(seen, "sin").startswith(
        "the paths disagree by 2.0%: reuse is 3.0%, retain_graph 2.0% and recompute 1.0% wrong."
    )


def test_a_zero_gradient_has_no_relative_error() -> None:
    zero = head({"recompute": 0.0, "reuse": 0.0}, {"recompute": math.inf, "reuse": math.inf})
    seen = result(dict(good().paths), {"sin": zero})
    assert sentences.verdict(seen, "sin") == (
        "the paths agree to the last digit, and the exact gradient is zero, so that there is no "
        "error in proportion to it."
    )
    assert not sentences.wrong_paths(seen)
    assert sentences.summary(seen).endswith("agree to the last digit; the error is not known.")


def test_the_verdict_on_an_unknown_head_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        sentences.verdict(good(), "cube")


# Notes.


def test_notes_repeat_warnings_and_what_ended_early() -> None:
    paths = {"recompute": timed(1.0, noise="The range is 60%."), "reuse": timed(1.0, 1.0)}
    left_out = JacobianResult(spectral_norm=None, heads={}, method="left out: 3 s")
    seen = result(paths, {"square": RIGHT}, jacobian=left_out, notes=("The budget ended.",))
    assert sentences.notes(seen) == [
        "The budget ended.",
        "recompute: The range is 60%.",
        "recompute was timed once: the spread is not known.",
        "Spectral norms: left out: 3 s.",
    ]


NORMS = "The spectral norms are of the dy/dx that was computed"


def test_norms_of_a_wrong_jacobian_are_noted() -> None:
    assert sum(note.startswith(NORMS) for note in sentences.notes(inaccurate())) == 1
    assert not any(note.startswith(NORMS) for note in sentences.notes(good()))


@pytest.mark.parametrize(
    "errors, noted",
    [
        ({"recompute": 0.1, "reuse": 1e-13}, False),  # reuse formed it, and is right
        ({"recompute": 1e-13, "reuse": 0.1}, True),
        ({"recompute": 0.1, "retain_graph": 1e-13}, False),
        ({"recompute": 0.1, "retain_graph": 0.1}, True),
    ],
)
def test_norms_are_as_right_as_the_path_that_formed_them(
    errors: dict[str, float], noted: bool
) -> None:
    paths = {name: timed(1.0, 1.0) for name in errors}
    square = head(dict.fromkeys(errors, 0.0), errors)
    seen = result(paths, {"square": square})
    assert any(note.startswith(NORMS) for note in sentences.notes(seen)) == noted
    none = result(paths, {"square": square}, jacobian=NOTHING_YET)
    assert not any(note.startswith(NORMS) for note in sentences.notes(none))


# The plan, and the scaling.


def planned(**took: Any) -> Any:
    """recompute, reuse and auto, which took reuse."""
    paths = {
        "recompute": timed(9.5, 9.6, 9.7, forward=10, backward=10),
        "reuse": timed(0.99, 1.0, 1.01, plan="1 backward pass."),
        "auto": timed(*took.get("auto", (0.9, 0.9)), plan="1 backward pass.", taken="reuse"),
    }
    same = dict.fromkeys(paths, 0.0)
    return result({name: paths[name] for name in took.get("paths", paths)}, {"s": head(same, same)})


def test_auto_and_the_path_it_took_are_one() -> None:
    assert sentences.summary(planned()).startswith("reuse was 9.6 times faster than recompute")
    without = sentences.summary(planned(paths=("recompute", "auto")))
    assert without.startswith("auto was 11 times faster than recompute")
    alone = sentences.summary(planned(paths=("reuse", "auto")))
    assert alone.startswith("reuse took 1 s: it went back through f once")


def test_a_peer_is_not_who_the_sentence_is_about() -> None:
    paths = {name: timed(one, one) for name, one in (("recompute", 3.0), ("reuse", 2.0))}
    paths["torchjd"] = timed(1.0, 1.0)
    same = dict.fromkeys(paths, 0.0)
    said = sentences.summary(result(paths, {"s": head(same, same)}))
    assert said.startswith("reuse was 2.0 times slower than torchjd")


def test_the_plan_names_what_auto_took() -> None:
    assert sentences.plan(planned()) == "auto (reuse): 1 backward pass."
    assert sentences.plan(good()) == ""
    assert sentences.plan(result({"auto": untimed("running")}, {"s": head({}, {})})) == ""


def test_passes_in_forward_mode_explain_a_time() -> None:
    paths = {
        "recompute": timed(3.0, 3.0, forward=4, backward=4),
        "jvp": timed(1.0, 1.0, forward=0, backward=0, forward_mode_passes=1),
    }
    same = dict.fromkeys(paths, 0.0)
    assert sentences.summary(result(paths, {"s": head(same, same)})).startswith(
        "jvp was 3.0 times faster than recompute: it took 1 forward-mode pass through f instead "
        "of 4 forward and 4 backward passes;"
    )
    alone = result({"jvp": paths["jvp"]}, {"s": head({"jvp": None}, {"jvp": 0.0})})
    assert sentences.summary(alone).startswith(
        "jvp took 1 s: it went through f in forward mode once"
    )


def test_a_head_that_is_left_out_spoils_the_peers_others() -> None:
    paths = {name: timed(1.0, 1.0, backward=2) for name in ("recompute", "torchjd")}
    square = head(
        {"recompute": 0.0, "torchjd": math.nan},
        {"recompute": 0.0, "torchjd": math.nan},
        gradient={"recompute": (2.0,), "torchjd": (math.nan,)},
    )
    sqrt = head({"recompute": None}, {"recompute": None}, domain="outside", value=math.nan)
    seen = result(paths, {"square": square, "sqrt": sqrt})
    assert sentences.verdict(seen, "square").endswith(
        "Why: torchjd takes all heads together, and sqrt, which is not finite here, spoils the "
        "others. What to do: choose the heads without sqrt."
    )
    assert "and is not ranked: choose the heads without sqrt;" in sentences.summary(seen)


# The Jacobians.


def test_how_unevenly_f_stretches_and_how_tight_the_bounds_are() -> None:
    assert sentences.jacobian(inspected(condition=8.0)) == [
        "dy/dx stretches by 4 at most and by 0.5 at least: its condition number is 8.",
        "The bound ‖dg/dy‖·‖dy/dx‖ is reached to 80% by square, where g looks along the direction "
        "that f stretches most; to 12% by sin, where g looks along directions that f stretches "
        "less.",
    ]
    for condition, words in ((math.inf, "infinite."), (1e17, "beyond what the dtype resolves.")):
        assert sentences.jacobian(inspected(condition=condition))[0] == (
            "dy/dx stretches by 4 at most and in some direction by nothing that float64 can tell "
            f"from 0: its condition number is {words}"
        )
    (alone,) = sentences.jacobian(inspected(condition=None))
    assert alone.startswith("The bound")


def test_one_reason_for_two_bounds_is_said_once() -> None:
    heads = {
        "square": HeadNorms(spectral_norm=2.5, composite=3.0, bound=10.0),
        "sin": HeadNorms(spectral_norm=1.0, composite=0.5, bound=4.0),
    }
    assert sentences.jacobian(inspected(heads=heads, condition=None)) == [
        "The bound ‖dg/dy‖·‖dy/dx‖ is reached to 30% by square and to 12% by sin, where g looks "
        "along directions that f stretches less."
    ]


def test_a_head_that_x_reaches_on_another_way_has_no_reason_for_its_bound() -> None:
    both = {"square": HeadNorms(spectral_norm=1.0, composite=4.5, bound=5.0)}
    assert sentences.jacobian(inspected(heads=both, condition=None)) == [
        "The bound ‖dg/dy‖·‖dy/dx‖ is reached to 90%."
    ]


def test_one_direction_and_what_is_not_there_need_no_sentence() -> None:
    assert sentences.jacobian(good()) == []  # one entry of x, and one of y
    assert sentences.jacobian(inspected(spectral_norm=None, heads={}, condition=None)) == []
    zero = {"square": HeadNorms(spectral_norm=2.0, composite=0.0, bound=0.0)}
    assert sentences.jacobian(inspected(spectral_norm=0.0, heads=zero)) == []
    assert sentences.tightness(zero["square"]) is None


def test_a_norm_without_the_matrix_says_what_it_took() -> None:
    (note,) = sentences.notes(inspected(products=58, error=4e-8))
    assert note == (
        "‖dy/dx‖ is from 58 products J·v and Jᵀ·u, in the place of all singular values, with an "
        "error of about 1e-8."
    )
    (note,) = sentences.notes(inspected(products=3, error=0.0))
    assert note.endswith("exact but for rounding.")
    assert sentences.notes(inspected()) == []


def test_of_many_heads_those_on_show_keep_what_is_known_of_them() -> None:
    names = [f"powers {k}" for k in range(1, 15)]
    curved = Curvature(largest=1.0, smallest=0.0, error=0.0, products=2)
    heads = {name: head({"recompute": 0.0}, {"recompute": 1e-13}) for name in names}
    seen = result({"recompute": timed(1.0)}, heads)
    many = seen.model_copy(
        update={
            "jacobian": seen.jacobian.model_copy(
                update={"curvature": dict.fromkeys(names, curved)}
            )
        }
    )
    few = sentences.few(many).jacobian
    assert list(few.curvature) == list(few.heads) == names[:12]
