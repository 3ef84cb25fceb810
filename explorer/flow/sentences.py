"""Flow → plain words: what the gradients did, why, what would change it, and what both ways took.

How much of a gradient is left is ‖∂L/∂h_0‖/‖∂L/∂h_T‖, of several losses the geometric mean, and
the factor of a step the T-th root of that.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import replace

from explorer import units
from explorer.flow.experiment import FIELDS, FlowExperiment
from explorer.flow.result import Flow
from explorer.result import Seconds
from explorer.sentences import significant, tolerance

KEPT = 10.0
"""Up to this factor, either way and over all steps, a gradient counts as keeping its size."""

BALANCED = {"tanh": 1.7, "relu": 2.4}
"""The gain at which the recurrent weights neither shrink nor stretch on the whole: √3 for entries
uniform within ±1/√n, whose matrix has a spectral radius near 1/√3 (the circular law), and √6 where
ReLU lets every other unit through."""


_WIDE = 0.5  # of the median: an interquartile range from which a prediction says little


# How much is left.


def left(flow: Flow) -> float:
    """The geometric mean over the losses of what is left of the gradient at h_0; NaN where a
    gradient is not finite, or none is there to begin with. May overflow to ∞."""
    return _exp(_log_left(flow))


def factor(flow: Flow) -> float:
    """What one step multiplies the gradient by, on the geometric mean over steps and losses."""
    return _exp(_log_left(flow) / len(flow.steps))


def _log_left(flow: Flow) -> float:
    # Logarithms: a quotient may leave the range of floats where its root does not.
    logs = [_log(rows[0]) - _log(rows[-1]) for rows in flow.gradients.values() if rows[-1] != 0]
    return statistics.fmean(logs) if logs else math.nan


def _log(value: float) -> float:
    if not math.isfinite(value):
        return math.nan
    return math.log(value) if value > 0 else -math.inf


def _exp(logarithm: float) -> float:
    try:
        return math.exp(logarithm)
    except OverflowError:
        return math.inf


def _is_finite(flow: Flow) -> bool:
    return all(math.isfinite(value) for rows in flow.gradients.values() for value in rows)


def _keeps(flow: Flow) -> bool:
    return abs(_log_left(flow)) <= math.log(KEPT)


# What is seen.


def setting(experiment: FlowExperiment) -> str:
    """What was run, in a line: `tanh: n = 32, T = 40, start gain 0.5, float64, cpu`."""
    start = f"gain {experiment.gain:g}" if experiment.start == "gain" else experiment.start
    sizes = f"n = {experiment.size}, T = {experiment.steps}"
    return f"{experiment.cell}: {sizes}, start {start}, {experiment.dtype}, {experiment.device}"


def summary(flow: Flow) -> str:
    """What the gradients did on their way back, with the factor of a step and what is left."""
    after = f"after {_steps(flow)}"
    of = f"{_losses(flow)}, {samples(flow)}"
    if not _is_finite(flow):
        return f"The gradients are not finite{_where(flow)} ({of})."
    if math.isnan(_log_left(flow)):
        return f"The gradients are zero from the start: no loss depends on h_T here ({of})."
    nothing = [name for name, rows in flow.gradients.items() if rows[0] == 0 != rows[-1]]
    if nothing:
        which = "" if len(nothing) == len(flow.gradients) else f" of {units.listed(nothing)}"
        why = f", too small for {flow.dtype}" if _underflows(flow, nothing) else ""
        return f"Nothing is left of the gradient{which} {after}: it is exactly 0{why} ({of})."
    whose = of if len(flow.gradients) == 1 else f"geometric mean over {of}"
    each = units.number(factor(flow), 3)
    if _keeps(flow):
        return (
            f"The gradient keeps its size: {after} {_share(flow)} of it is left, "
            f"a factor of {each} a step ({whose})."
        )
    if _log_left(flow) < 0:
        done = f"Each step shrinks the gradient by a factor of {each}"
        return f"{done}: {after} {_share(flow)} of it is left ({whose})."
    done = f"Each step makes the gradient grow by a factor of {each}"
    return f"{done}: {after} it is {_share(flow)} times as large ({whose})."


def _underflows(flow: Flow, losses: Iterable[str]) -> bool:
    """Whether the product of all steps is not 0, but these gradients of h_0 would be smaller than
    any number of the dtype."""
    product, least = _product(flow) or 0.0, _LEAST.get(flow.dtype, 0.0)
    if product == 0:
        return _bound_underflows(flow)
    return all(product * flow.gradients[name][-1] < least for name in losses)


def _bound_underflows(flow: Flow) -> bool:
    """Whether the product of the step norms is 0 though none of them is."""
    return flow.samples == 1 and flow.bound[0] == 0 and 0 not in flow.steps


_LEAST = {"float32": 2.0**-149, "float64": 2.0**-1074}
"""The smallest number above 0 of a dtype."""


def samples(flow: Flow) -> str:
    """`one sample`, or what the norms are a mean over."""
    return "one sample" if flow.samples == 1 else f"mean over {flow.samples} samples"


def _steps(flow: Flow) -> str:
    return f"{len(flow.steps)} step{'' if len(flow.steps) == 1 else 's'}"


def _losses(flow: Flow) -> str:
    names = list(flow.gradients)
    return f"loss {names[0]}" if len(names) == 1 else f"{len(names)} losses"


def _where(flow: Flow) -> str:
    """The last t at which one is not finite: they come from there."""
    every = flow.gradients.values()
    last = max(t for rows in every for t, row in enumerate(rows) if not math.isfinite(row))
    return "" if last == len(flow.steps) else f" from h_{last} back"


def _share(flow: Flow) -> str:
    logarithm = _log_left(flow)
    if -650 < logarithm < 650:  # what a float holds with all of its digits
        return amount(left(flow))
    return f"1e{logarithm / math.log(10):.0f}"


def amount(value: float) -> str:
    """`6e-11`, `0.0043`, `92`: two digits where they say something, else the order of magnitude."""
    if value == 0 or 1e-3 <= value < 1e4 or not math.isfinite(value):
        return units.number(value, 2) if value < 100 else units.number(value, 4)
    return units.power(value)


# Why.


def cause(flow: Flow) -> str:
    """What the norms of the steps allow, against what is really left of the whole product."""
    norms = flow.steps
    if not all(map(math.isfinite, norms)):
        return "The norm of a step's Jacobian is not finite, so that it bounds nothing."
    low, high = units.number(min(norms), 3), units.number(max(norms), 3)
    whose = f"is {high}" if low == high else f"lies between {low} and {high}"
    said = f"The largest singular value of a step's Jacobian {whose}"
    if 0 in norms:
        return f"{said}: through a step whose Jacobian is 0 nothing comes back."
    if len(norms) == 1:
        return f"{said}, the most that can be left."
    allowed, really = flow.bound[0], _product(flow)
    if _bound_underflows(flow):
        return f"{said}; the product of all is too small for float64: next to nothing can be left."
    said += f"; the product of all is {amount(allowed)}"
    said += ", the most that can be left" if math.isfinite(allowed) else ""
    if really is None or not math.isfinite(really):
        return f"{said}."
    said += f", and the Jacobian of all steps together has norm {amount(really)}"
    if really < allowed / KEPT:
        return f"{said}: what one step stretches most is not what the next one stretches."
    if really < allowed / 2:
        return f"{said}: within a factor of {amount(allowed / really)} of what the norms allow."
    return f"{said}: close to what the norms allow."


def _product(flow: Flow) -> float | None:
    """‖∂h_T/∂h_0‖₂, where it was computed."""
    fan = flow.fan
    return fan.largest[0] if fan is not None and fan.times and fan.times[0] == 0 else None


# What would change it.


def remedies(experiment: FlowExperiment, flow: Flow) -> list[tuple[str, FlowExperiment]]:
    """(what a button says, the changed experiment) for each change that may help, the likeliest
    first; none where the gradient keeps its size."""
    if _keeps(flow):
        return []
    shrinks = _is_finite(flow) and not _log_left(flow) > 0
    found = []
    inputs = FIELDS["input_scale"].default
    if shrinks and experiment.cell != "relu" and experiment.input_scale > inputs:  # they saturate
        label = f"Take smaller inputs, {inputs:g}"
        found.append((label, replace(experiment, input_scale=inputs)))
    if experiment.start != "orthogonal":
        found.append(("Start orthogonal", replace(experiment, start="orthogonal")))
    elif experiment.cell == "relu":  # whose orthogonal start loses what the dead units held
        found.append(("Start from the identity", replace(experiment, start="identity")))
    # A gain of 100 makes a GRU explode too, and an LSTM of this start forgets more than a GRU.
    if experiment.cell != "gru" and not (experiment.start == "gain" and experiment.gain > KEPT):
        found.append(("Use a GRU", replace(experiment, cell="gru")))
    gain = BALANCED.get(experiment.cell, FIELDS["gain"].default)
    beyond = experiment.gain < gain if shrinks else experiment.gain > gain
    if experiment.start == "gain" and beyond:
        word = "larger" if shrinks else "smaller"
        found.append((f"Take a {word} gain, {gain:g}", replace(experiment, gain=gain)))
    return found


def advice(flow: Flow) -> str:
    """The changes that may help, in a sentence; empty where there are none."""
    if flow.experiment is None:
        return ""
    labels = [label for label, _ in remedies(flow.experiment, flow)]
    return f"What may help: {'; '.join(labels)}." if labels else ""


def compared(before: Flow, after: Flow) -> str:
    """One sentence on two runs: what was changed, and what is left in each."""
    same = len(before.steps) == len(after.steps)
    when = "" if same else f" after {_steps(after)}"
    changes = _changes(before, after)
    said = f"before, {_ended(before)} left after {_steps(before)}; now {_ended(after)} left{when}."
    return f"{changes}: {said}" if changes else f"{said[0].upper()}{said[1:]}"


def _changes(before: Flow, after: Flow) -> str:
    """`Start orthogonal instead of default`; empty where nothing is known to have changed."""
    if before.experiment is None or after.experiment is None:
        return ""
    old, new = before.experiment.values, after.experiment.values
    changed = [
        f"{field.label} {field.text(new[name])} instead of {field.text(old[name])}"
        for name, field in FIELDS.items()
        if old[name] != new[name]
    ]
    return units.listed(changed)


def _ended(flow: Flow) -> str:
    """`7e-11 of the gradient is`, `92 times the gradient is`."""
    if not _is_finite(flow) or math.isnan(_log_left(flow)):
        return "nothing finite is"
    if any(rows[0] == 0 != rows[-1] for rows in flow.gradients.values()):
        return "nothing of the gradient is"
    return f"{_share(flow)} {'of' if _log_left(flow) < 0 else 'times'} the gradient is"


# The two ways.


def reuse(flow: Flow) -> Seconds | None:
    """What the Jacobians and the chain took together, round by round; None where nothing was
    timed."""
    if flow.ways is None:
        return None
    jacobians, chain = flow.ways.jacobians.runs, flow.ways.chain.runs
    return _statistics([one + other for one, other in zip(jacobians, chain, strict=False)])


def _statistics(runs: list[float]) -> Seconds:
    if len(runs) == 1:
        return Seconds(median=runs[0], iqr=0.0, minimum=runs[0], runs=tuple(runs))
    low, median, high = statistics.quantiles(runs, n=4, method="inclusive")
    return Seconds(median=median, iqr=high - low, minimum=min(runs), runs=tuple(runs))


def ahead_from(flow: Flow) -> int | None:
    """The number of losses from which reuse is predicted to be ahead: the Jacobians are paid for
    once, a naive loss costs its share of the naive time, and one of the chain at most its share of
    the chain's. None where it never is, or nothing was timed."""
    if flow.ways is None:
        return None
    count, ways = len(flow.gradients), flow.ways
    saved = (ways.naive.median - ways.chain.median) / count
    return math.floor(ways.jacobians.median / saved) + 1 if saved > 0 else None


def ways(flow: Flow) -> str:
    """What the naive way and reuse took for all losses, and from how many losses on reuse pays;
    empty where nothing was timed."""
    found, together = flow.ways, reuse(flow)
    if found is None or together is None:
        return ""
    count = len(flow.gradients)
    losses = "1 loss" if count == 1 else f"{count} losses"
    said = (
        f"For {losses}, naive took {units.seconds(found.naive.median)} (a backward pass through "
        f"the steps for each loss) and reuse {units.seconds(together.median)}: "
        f"{units.seconds(found.jacobians.median)} once for the Jacobians of all steps, then "
        f"{units.seconds(found.chain.median)} for one chain of products"
    )
    faster = "reuse" if together.median < found.naive.median else "naive"
    if significant(together, found.naive):
        slow, fast = sorted((together.median, found.naive.median), reverse=True)
        said += f"; {faster} is {units.ratio(slow / fast)} times faster" if fast else ""
    else:
        said += "; they do not differ by more than the spread of their runs"
    said += f". {_pays(flow, count)}"
    return said + _agreement(found.difference, flow.dtype)


def _agreement(difference: float, dtype: str) -> str:
    if math.isnan(difference):
        return ""
    if difference == 0:
        return " The two agree to the last digit."
    verb = "agree to" if difference <= tolerance(dtype) else "disagree by"
    return f" The two {verb} {units.relative(difference)}."


def _pays(flow: Flow, count: int) -> str:
    found, turn = flow.ways, ahead_from(flow)
    assert found is not None
    if turn is None:
        return "As timed here, the chain takes no less than the passes: reuse does not get ahead."
    each, further = (units.seconds(way.median / count) for way in (found.naive, found.chain))
    once = f"A further loss costs {each} naively and about {further} by the chain"
    where = f"from {turn} losses on" if turn > 1 else "for one loss already"
    return f"{once}: reuse is predicted to be ahead {where}."


# What to mind.


def notes(flow: Flow) -> list[str]:
    """What to mind when reading the numbers."""
    found = [*flow.notes]
    if flow.status == "cancelled":
        found.append("The run was cancelled; what had finished is shown.")
    if flow.without_fan and flow.status != "running":
        found.append(f"There are no singular values of the products: {flow.without_fan}")
    fan = flow.fan
    if fan is not None and None in (*fan.upper, *fan.median, *fan.lower, *fan.smallest):
        found.append(
            "Singular values below what rounding leaves of the products, n·ε of the largest, are "
            "not shown."
        )
    if has_zeros(flow):
        found.append(
            "A gradient or a norm is exactly 0; on a logarithmic axis it stands on the lower edge."
        )
    if flow.samples > 1:
        found.append(
            f"All norms are means over {flow.samples} samples, each with a Jacobian of its own."
        )
    if flow.ways is not None and len(flow.ways.naive.runs) == 1:
        found.append("Both ways were timed once: the spread is not known.")
    elif flow.ways is not None:
        times = {"naive": flow.ways.naive, "the Jacobians": flow.ways.jacobians,
                 "the chain": flow.ways.chain}  # fmt: skip
        wide = [name for name, each in times.items() if each.iqr > _WIDE * each.median]
        if wide:
            found.append(
                f"The times of {units.listed(wide)} spread widely, as they do while something else "
                "runs: from how many losses reuse is ahead is not to be trusted here."
            )
    return found


def has_zeros(flow: Flow) -> bool:
    """Whether something that a logarithmic axis shows is exactly 0."""
    fan = flow.fan
    shown: Iterable[float | None] = (
        *(value for rows in flow.gradients.values() for value in rows),
        *flow.bound,
        *((*fan.largest, *fan.upper, *fan.median, *fan.lower, *fan.smallest) if fan else ()),
    )
    return 0 in shown
