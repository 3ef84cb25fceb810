import math
from dataclasses import replace

import pytest
import torch

from explorer.flow import sentences
from explorer.flow.compute import gradient_flow
from explorer.flow.experiment import FlowExperiment
from explorer.flow.result import Ways
from tests.flow.flows import WAYS, infinite, linear, of
from tests.results import seconds

VANISHES, EXPLODES = 0.1, 10.0  # a step's factor


@pytest.mark.parametrize(
    "scale, words",
    [
        (0.5, "Each step shrinks the gradient by a factor of 0.5: after 6 steps 0.016 of it"),
        (0.1, "Each step shrinks the gradient by a factor of 0.1: after 6 steps 1e-6 of it"),
        (1.0, "The gradient keeps its size: after 6 steps 1 of it is left, a factor of 1 a step"),
        (2.0, "Each step makes the gradient grow by a factor of 2: after 6 steps it is 64 times"),
    ],
)
def test_the_factor_of_a_step_and_what_is_left(scale: float, words: str) -> None:
    flow = linear(scale)
    assert sentences.factor(flow) == pytest.approx(scale, rel=1e-12)
    assert sentences.left(flow) == pytest.approx(scale**6, rel=1e-12)
    assert sentences.summary(flow).startswith(words)
    assert sentences.summary(flow).endswith("(geometric mean over 2 losses, one sample).")


def test_the_mean_over_losses_is_geometric() -> None:
    flow = linear(gradients={"a": (1e-4, 1.0), "b": (1e-2, 1.0)})
    assert sentences.left(flow) == pytest.approx(1e-3)


def test_what_leaves_the_range_of_floats_still_has_its_factor() -> None:
    flow = linear(0.9, 10, gradients={"a": (1e-300, *(0.5,) * 9, 1e300)})
    assert sentences.factor(flow) == pytest.approx(1e-60)
    assert "after 10 steps 1e-600 of it is left" in sentences.summary(flow)


def test_one_loss_is_named_and_samples_are_told() -> None:
    assert "(loss loss 1, mean over 3 samples)" in sentences.summary(linear(losses=1, samples=3))
    assert any("means over 3 samples" in note for note in sentences.notes(linear(samples=3)))


def test_a_gradient_of_zero() -> None:
    summary = sentences.summary(linear(0.0))
    assert "Nothing is left of the gradient after 6 steps: it is exactly 0" in summary
    assert any("exactly 0" in note for note in sentences.notes(linear(0.0)))
    one = linear(gradients={"a": (0.0, 1.0), "b": (0.5, 1.0)})
    assert "Nothing is left of the gradient of a after 6 steps" in sentences.summary(one)


def test_a_loss_that_depends_on_nothing() -> None:
    flow = linear(gradients={"a": (0.0,) * 7})
    assert "zero from the start" in sentences.summary(flow)


def test_gradients_that_are_not_finite() -> None:
    assert "The gradients are not finite from h_5 back" in sentences.summary(infinite())


def test_the_cause_is_what_the_norms_allow_against_what_is_left() -> None:
    close = sentences.cause(linear(0.5))
    assert "is 0.5; the product of all is 0.016, the most that can be left" in close
    assert close.endswith("has norm 0.016: close to what the norms allow.")
    assert "within a factor of 4 of what" in sentences.cause(linear(0.5, bound=(4 / 64,) * 7))
    apart = linear(0.5, bound=(1e3,) * 7)
    assert "the product of all is 1000" in sentences.cause(apart)
    assert sentences.cause(apart).endswith("is not what the next one stretches.")
    broken = linear().model_copy(update={"steps": (1.0, math.nan, 1.0)})
    assert "is not finite" in sentences.cause(broken)


@pytest.mark.parametrize(
    "values, scale, labels",
    [
        ({}, VANISHES, ["Start orthogonal", "Use a GRU"]),
        ({"start": "orthogonal"}, VANISHES, ["Use a GRU"]),
        ({"cell": "relu", "start": "orthogonal"}, VANISHES,
         ["Start from the identity", "Use a GRU"]),
        ({"cell": "gru"}, VANISHES, ["Start orthogonal"]),
        ({"cell": "lstm", "start": "orthogonal"}, VANISHES, ["Use a GRU"]),
        ({"start": "gain", "gain": 0.5}, VANISHES,
         ["Start orthogonal", "Use a GRU", "Take a larger gain, 1.7"]),
        ({"start": "gain", "gain": 3.0}, EXPLODES,
         ["Start orthogonal", "Use a GRU", "Take a smaller gain, 1.7"]),
        ({"start": "gain", "gain": 3.0}, VANISHES, ["Start orthogonal", "Use a GRU"]),
        ({"start": "gain", "gain": 100.0}, VANISHES, ["Start orthogonal"]),
        ({"input_scale": 1.0}, VANISHES,
         ["Take smaller inputs, 0.05", "Start orthogonal", "Use a GRU"]),
        ({"cell": "relu", "input_scale": 1.0}, VANISHES, ["Start orthogonal", "Use a GRU"]),
        ({}, 1.0, []),
    ],
)  # fmt: skip
def test_remedies_are_those_that_apply(values: dict, scale: float, labels: list[str]) -> None:
    experiment = FlowExperiment(steps=6, **values)
    found = sentences.remedies(experiment, of(experiment, scale))
    assert [label for label, _ in found] == labels
    assert all(changed != experiment for _, changed in found)


def test_a_remedy_changes_one_thing() -> None:
    experiment = FlowExperiment(steps=6, start="gain", gain=0.5, seed=3)
    changed = dict(sentences.remedies(experiment, of(experiment, VANISHES)))
    assert changed["Start orthogonal"] == replace(experiment, start="orthogonal")
    assert changed["Use a GRU"] == replace(experiment, cell="gru")
    assert changed["Take a larger gain, 1.7"] == replace(experiment, gain=1.7)


def test_before_and_after_with_what_was_changed() -> None:
    before, after = FlowExperiment(steps=6), FlowExperiment(steps=6, start="orthogonal")
    assert sentences.compared(of(before, 0.1), of(after, 0.9)) == (
        "Start orthogonal instead of default: before, 1e-6 of the gradient is left after 6 steps; "
        "now 0.53 of the gradient is left."
    )
    assert sentences.compared(linear(0.1), linear(2.0, 3)) == (
        "Before, 1e-6 of the gradient is left after 6 steps; now 8 times the gradient is left "
        "after 3 steps."
    )
    assert "now nothing of the gradient" in sentences.compared(linear(0.1), linear(0.0))
    assert "now nothing finite" in sentences.compared(linear(0.1), infinite())


def test_the_two_ways_are_told_with_what_the_jacobians_cost() -> None:
    flow = linear(ways=WAYS)
    said = sentences.ways(flow)
    for words in ("naive took 12 ms", "reuse 42 ms: 40 ms once", "then 2 ms for one chain",
                  "naive is 3.5 times faster", "costs 6 ms naively and about 1 ms by the chain",
                  "from 9 losses on", "agree to 1e-15"):  # fmt: skip
        assert words in said
    assert sentences.ahead_from(flow) == 9
    assert 40 + 9 * 1 < 9 * 6 and not 40 + 8 * 1 < 8 * 6  # at 8 losses they are even


@pytest.mark.parametrize(
    "difference, words",
    [
        (0.0, "The two agree to the last digit."),
        (0.5, "The two disagree by 50%."),
        (math.nan, "by the chain: reuse is predicted to be ahead from 9 losses on."),
    ],
)
def test_how_far_the_two_ways_agree(difference: float, words: str) -> None:
    changed = WAYS.model_copy(update={"difference": difference})
    assert sentences.ways(linear(ways=changed)).endswith(words)


def test_a_gradient_too_small_for_the_dtype_is_told_from_one_that_is_zero() -> None:
    weights = 1e-3 * torch.eye(2)
    tiny = gradient_flow([lambda h: weights @ h] * 20, torch.ones(2), [torch.sum])
    assert tiny.gradients["sum"][0] == 0
    assert "it is exactly 0, too small for float32 (" in sentences.summary(tiny)
    assert "it is exactly 0 (" in sentences.summary(linear(0.0))


def test_a_product_of_norms_too_small_for_any_float_is_not_called_zero() -> None:
    flow = linear(1e-3, 200)
    assert flow.bound[0] == 0 and min(flow.steps) > 0
    assert "exactly 0, too small for float64 (2 losses, one sample)" in sentences.summary(flow)
    assert sentences.cause(flow) == (
        "The largest singular value of a step's Jacobian is 0.001; the product of all is too "
        "small for float64: next to nothing can be left."
    )


def test_one_step_has_no_product() -> None:
    assert sentences.cause(linear(0.5, 1)) == (
        "The largest singular value of a step's Jacobian is 0.5, the most that can be left."
    )


def test_a_mean_is_named_only_where_there_is_one() -> None:
    assert "geometric mean" in sentences.summary(linear())
    for flow in (infinite(), linear(0.0), linear(gradients={"a": (0.0,) * 7, "b": (0.0,) * 7})):
        assert sentences.summary(flow).endswith("(2 losses, one sample).")


def test_a_step_that_lets_nothing_through_is_the_cause() -> None:
    assert sentences.cause(linear(0.0)) == (
        "The largest singular value of a step's Jacobian is 0: through a step whose Jacobian is 0 "
        "nothing comes back."
    )


def test_reuse_that_never_gets_ahead() -> None:
    slow = Ways(naive=seconds(1.0), jacobians=seconds(1.0), chain=seconds(2.0), difference=0.0)
    flow = linear(ways=slow)
    assert sentences.ahead_from(flow) is None
    assert "reuse does not get ahead" in sentences.ways(flow)
    assert any("timed once" in note for note in sentences.notes(flow))


def test_ways_within_the_spread_are_not_ranked() -> None:
    same = Ways(naive=seconds(1.0, 2.0, 3.0), jacobians=seconds(0.9, 1.9, 2.9),
                chain=seconds(0.1, 0.1, 0.1), difference=0.0)  # fmt: skip
    said = sentences.ways(linear(ways=same))
    assert "do not differ by more than the spread" in said and "faster" not in said


def test_nothing_timed_says_nothing() -> None:
    assert sentences.ways(linear()) == "" and sentences.ahead_from(linear()) is None


def test_notes_say_why_there_is_no_fan_once_the_run_is_over() -> None:
    without = {"fan": None, "without_fan": "They are not yet computed."}
    assert not sentences.notes(linear(status="running", **without))
    assert any("not yet computed" in note for note in sentences.notes(linear(**without)))


def test_times_that_spread_widely_are_noted() -> None:
    wide = WAYS.model_copy(update={"naive": seconds(0.001, 0.012, 0.1)})
    notes = sentences.notes(linear(ways=wide))
    assert any("times of naive spread widely" in each for each in notes)
    assert not any("spread widely" in each for each in sentences.notes(linear(ways=WAYS)))
