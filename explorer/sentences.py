"""Result → plain words: one sentence on the whole, a verdict a head, notes on what to mind.

Two judgements are made here and used by every figure and table: which paths are wrong, and how
a path's time compares. A wrong path is never ranked, and a difference smaller than the spread of
the runs is not called one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from explorer import units
from explorer.engine.plan import NAIVE, PEER
from explorer.experiment import lacking
from explorer.result import (
    Array,
    HeadNorms,
    HeadResult,
    JacobianResult,
    Numbers,
    PathResult,
    Result,
    ScalingPoint,
    ScalingPrediction,
    Seconds,
)

EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}
"""The spacing of the numbers next to 1 in each dtype."""

_CLOSED_FORM = "closed form"
_TIGHT, _LOOSE = 0.7, 0.5  # parts of a bound that are called much and little of it
_UNKNOWN_SPREAD = 0.1  # of one single run: the fluctuation from which torch's Measurement warns


def tolerance(dtype: str) -> float:
    """√eps: the relative error up to which a gradient has half its digits and counts as right."""
    return math.sqrt(EPSILON[dtype])


# Which paths are wrong.


def wrong_paths(result: Result) -> frozenset[str]:
    """The paths that give a wrong gradient for any head; they are marked, and never ranked.

    Wrong is an error above `tolerance`, where it is known and finite, or a gradient that is not
    finite where the exact one is (where none is known: where another path's is). A head that is
    outside its domain, or not finite, counts for no path: there the head is at fault.
    """
    limit = tolerance(result.experiment.dtype)
    return frozenset(
        path
        for path in result.paths
        if any(_is_wrong(head, path, limit) for head in result.heads.values())
    )


def _is_wrong(head: HeadResult, path: str, limit: float) -> bool:
    if head.domain or path not in head.gradient:
        return False
    if not _finite(head.gradient[path]):
        truth = head.exact_gradient
        others = head.gradient.values() if truth is None else (truth,)
        return any(_finite(other) for other in others)
    error = head.error.get(path)
    return error is not None and limit < error < math.inf


def _is_right(head: HeadResult, path: str, limit: float) -> bool:
    error = head.error.get(path)
    return error is not None and error <= limit


def _finite(numbers: Numbers) -> bool:
    entries = (numbers.norm, *numbers.first) if isinstance(numbers, Array) else numbers
    return all(math.isfinite(entry) for entry in entries)


# How the times compare.


def measured(result: Result) -> dict[str, Seconds]:
    """The times of the paths that have any, in the order of the result."""
    return {name: path.seconds for name, path in result.paths.items() if path.seconds is not None}


def baseline(result: Result) -> str | None:
    """The path that speed-ups refer to: the first naive one that was timed and is not wrong."""
    ranked = _ranked(result)
    return next((name for name in NAIVE if name in ranked), None)


def significant(one: Seconds, other: Seconds) -> bool:
    """Whether the middle halves of two paths' runs are apart: one slow run says little."""
    (low, high), (other_low, other_high) = middle_half(one), middle_half(other)
    return high < other_low or other_high < low


def middle_half(seconds: Seconds) -> tuple[float, float]:
    """The lower and the upper quartile of the runs; one single run, which shows no spread, is
    taken to be 5% uncertain both ways."""
    if len(seconds.runs) < 2:
        margin = _UNKNOWN_SPREAD / 2 * seconds.median
        return seconds.median - margin, seconds.median + margin
    low, _, high = statistics.quantiles(seconds.runs, n=4, method="inclusive")
    return low, high


def comparison(result: Result, path: str) -> str:
    """What stands beside a path's time, in two or three words: `9.6× faster`, `wrong gradients`.

    Empty where there is nothing to compare with.
    """
    seconds = result.paths[path].seconds
    if seconds is None:
        return _why_no_time(result, path)
    if path in wrong_paths(result):
        return "wrong gradients"
    reference = baseline(result)
    if reference is None:
        return ""
    if path == reference:
        return "reference"
    against = measured(result)[reference]
    if not significant(seconds, against):
        return "within noise"
    return _factor(seconds, against, "× ")


def _ranked(result: Result) -> dict[str, Seconds]:
    wrong = wrong_paths(result)
    return {name: seconds for name, seconds in measured(result).items() if name not in wrong}


def _factor(seconds: Seconds, against: Seconds, joint: str) -> str:
    slow, fast = sorted((seconds.median, against.median), reverse=True)
    word = "faster" if seconds.median < against.median else "slower"
    return f"{units.ratio(slow / fast) if fast else '∞'}{joint}{word}"


def _why_no_time(result: Result, path: str) -> str:
    if result.paths[path].status == "predicted":
        return "predicted"
    return "not yet run" if result.status == "running" else "cancelled"


# The sentence on the whole.


def summary(result: Result) -> str:
    """One sentence on the whole Result: what was fastest and why, and whether it can be trusted.

    It holds for partial Results too, and then begins with "So far".
    """
    if not measured(result):
        return _nothing_timed(result)
    clauses = (
        _speed(result),
        _unranked(result),
        _accuracy(result),
        _left_out(result),
        *_unfinished(result),
    )
    start = "So far " if result.status == "running" else ""
    return f"{start}{'; '.join(filter(None, clauses))}."


def _nothing_timed(result: Result) -> str:
    if result.status == "running":
        are = "is" if len(result.paths) == 1 else "are"
        return f"No path is timed yet: {units.listed(list(result.paths))} {are} under way."
    if result.status == "cancelled":
        return "The run was cancelled before any path was timed."
    return f"No path was run: {', and '.join(_unfinished(result))}."


def _speed(result: Result) -> str:
    ranked = _distinct(result, _ranked(result))
    if not ranked:
        return ""
    subject = _subject(ranked)
    reference = _reference(ranked, subject)
    if reference is None:
        path = result.paths[subject]
        passes = f"it went back through f {units.times(path.backward_passes)}"
        if path.forward_mode_passes:
            passes = f"it went through f in forward mode {units.times(path.forward_mode_passes)}"
        return f"{subject} took {units.seconds(ranked[subject].median)}: {passes}"
    one, other = ranked[subject], ranked[reference]
    if not significant(one, other):
        return (
            f"{subject} and {reference} do not differ significantly in time "
            f"({units.seconds(one.median)} and {units.seconds(other.median)}, "
            "closer than the spread of their runs)"
        )
    why = _why(result.paths[subject], result.paths[reference], one.median < other.median)
    return f"{subject} was {_factor(one, other, ' times ')} than {reference}{why}"


def _distinct(result: Result, ranked: dict[str, Seconds]) -> dict[str, Seconds]:
    """Without `auto` where the path that it took is there too: they are the same computation."""
    return {
        name: seconds for name, seconds in ranked.items() if result.paths[name].taken not in ranked
    }


def _subject(ranked: dict[str, Seconds]) -> str:
    """Whom the sentence is about: the fastest that is not naive nor a peer, else the fastest."""
    clever = [name for name in ranked if name not in (*NAIVE, PEER)]
    return min(clever or ranked, key=lambda name: ranked[name].median)


def _reference(ranked: dict[str, Seconds], subject: str) -> str | None:
    """What it is held against: what people write, or whatever beats it."""
    others = [name for name in ranked if name != subject]
    if not others:
        return None
    fastest = min(others, key=lambda name: ranked[name].median)
    if ranked[fastest].median < ranked[subject].median:
        return fastest
    return next((name for name in NAIVE if name in others), fastest)


def _why(subject: PathResult, reference: PathResult, faster: bool) -> str:
    """The passes through f that explain the time, or that it went against."""
    if subject.forward_mode_passes != reference.forward_mode_passes:
        fewer = all_passes(subject) < all_passes(reference)
        joint = ": it" if fewer == faster else ", although it"
        return f"{joint} took {passes(subject)} through f instead of {passes(reference)}"
    words = (
        ("back through f", subject.backward_passes, reference.backward_passes),
        ("forward through f", subject.forward_passes, reference.forward_passes),
    )
    for way, own, other in words:
        if own != other:
            joint = ": it" if (own < other) == faster else ", although it"
            instead = other if own > 2 else units.times(other)
            return f"{joint} went {way} {units.times(own)} instead of {instead}"
    return ", with the same passes through f"


def _unranked(result: Result) -> str:
    wrong = [name for name in result.paths if name in wrong_paths(result)]
    if not wrong:
        return ""
    limit = tolerance(result.experiment.dtype)
    heads = {
        name: head
        for name, head in result.heads.items()
        if any(_is_wrong(head, path, limit) for path in wrong)
    }
    errors = _known(head.error.get(path) for head in heads.values() for path in wrong)
    off = f", up to {units.relative(max(errors))} off" if errors else ""
    of = f" of {_named(list(heads))}" if len(heads) < len(result.heads) else ""
    all_give = "gives" if len(wrong) == 1 else "all give" if len(wrong) > 2 else "give"
    be = "is" if len(wrong) == 1 else "are"
    return (
        f"{units.listed(wrong)} {all_give} wrong gradients{of} in {result.experiment.dtype}{off}, "
        f"and {be} not ranked: {_advice(result)}"
    )


def _advice(result: Result) -> str:
    """What to do about wrong gradients."""
    experiment = result.experiment
    if spoilers := _spoilers(result):
        return f"choose the heads without {_named(spoilers)}"
    if experiment.dtype != "float64":
        return "use float64" + (" on the CPU" if lacking("float64", experiment.device) else "")
    ranked = _ranked(result)
    return f"take those of {units.listed(list(ranked))}" if ranked else "choose a smaller size"


def _spoilers(result: Result) -> list[str]:
    """The heads that are left out and make the gradients of the others wrong, if nothing else is:
    the peer sends all heads back at once, and NaN times zero is NaN."""
    if wrong_paths(result) != {PEER}:
        return []
    found = [head.gradient[PEER] for head in _counted(result) if PEER in head.gradient]
    if any(map(_finite, found)):
        return []
    return [name for name, head in result.heads.items() if head.domain]


def _counted(result: Result) -> list[HeadResult]:
    return [head for head in result.heads.values() if not head.domain]


def _accuracy(result: Result) -> str:
    """How far the paths that are right are from each other, and from the truth."""
    heads = [head for head in _counted(result) if head.gradient]
    if not heads:
        return "no gradient could be checked"
    wrong = wrong_paths(result)
    right = [path for path in heads[0].gradient if path not in wrong]
    if not right:
        return ""
    predicates, remarks = [], []
    reference = heads[0].agreement_reference
    if not set(NAIVE) & set(result.paths):
        remarks.append("no naive path was run to compare with")
    if reference in right and len(right) > 1:
        predicates.append(_agree(heads, tolerance(result.experiment.dtype), right))
    errors = _known(head.error.get(path) for head in heads for path in right)
    if errors:
        be = "is" if len(right) == 1 else "are"
        predicates.append(f"{be} {_from_truth(max(errors), heads[0])}")
    else:
        remarks.append("the error is not known")
    who = right[0] if len(right) == 1 else f"{units.everyone(len(right))} paths"
    agreed = f"{who} {', and '.join(predicates)}" if predicates else ""
    return "; ".join(filter(None, (agreed, *remarks)))


def _agree(heads: list[HeadResult], limit: float, paths: Iterable[str]) -> str:
    """`agree to 2e-12`: the largest difference from the reference, over heads and paths.

    Paths that are right do not disagree, though two errors may add up to more than each may be.
    """
    pairs = [(head, path) for head in heads for path in paths]
    differences = _known(head.agreement.get(path) for head, path in pairs)
    largest = max(differences, default=math.nan)
    if math.isnan(largest):
        return "cannot be compared"
    if largest == 0:
        return "agree to the last digit"
    right = all(_is_right(head, path, limit) for head, path in pairs)
    verb = "agree to" if largest <= limit or right else "disagree by"
    return f"{verb} {units.relative(largest)}"


def _from_truth(error: float, head: HeadResult) -> str:
    """`4e-13 from the exact value`."""
    closed = head.error_reference == _CLOSED_FORM
    truth = "the exact value" if closed else "the float64 reference"
    return f"{units.relative(error)} from {truth}" if error else f"equal to {truth}"


def _named(heads: list[str]) -> str:
    """The heads by name, or how many of them there are."""
    return units.listed(heads) if len(heads) <= 4 else f"{len(heads)} heads"


def _known(values: Iterable[float | None]) -> list[float]:
    """The finite ones: not what was not computed, NaN, or ∞, which is over a reference of 0."""
    return [value for value in values if value is not None and math.isfinite(value)]


def _left_out(result: Result) -> str:
    """Clauses for the heads that count for no path."""
    missing: dict[str, list[str]] = {"value": [], "gradient": []}
    for name, head in result.heads.items():
        if head.domain:
            missing["gradient" if math.isfinite(head.value) else "value"].append(name)
    clauses = []
    for what, names in missing.items():
        if names:
            are, they = ("is", "it has") if len(names) == 1 else ("are", "they have")
            clauses.append(f"{_named(names)} {are} left out: {they} no finite {what} here")
    return "; ".join(clauses)


def _unfinished(result: Result) -> list[str]:
    """Clauses for the paths without a time."""
    clauses, waiting = [], []
    for name, path in result.paths.items():
        if path.status == "predicted":
            about = path.predicted_seconds
            took = f", and would take about {units.seconds(about)}" if about is not None else ""
            clauses.append(f"{name} was not run{took}")
        elif path.seconds is None:
            waiting.append(name)
    if waiting:
        one = len(waiting) == 1
        running, cancelled = ("is", "was") if one else ("are", "were")
        ended = (
            f"{running} still to run" if result.status == "running" else f"{cancelled} cancelled"
        )
        clauses.append(f"{units.listed(waiting)} {ended}")
    return clauses


# The plan, and the passes.


def plan(result: Result) -> str:
    """What `auto` takes and why, as a sentence; empty where it was not run."""
    path = result.paths.get("auto")
    return f"auto ({path.taken}): {path.plan}" if path is not None and path.plan else ""


def all_passes(counted: PathResult | ScalingPoint | ScalingPrediction) -> int:
    """Passes through f of every kind."""
    return counted.forward_passes + counted.backward_passes + counted.forward_mode_passes


def passes(counted: PathResult | ScalingPoint | ScalingPrediction) -> str:
    """`1 forward and 10 backward passes`; the kinds that there are none of are left out."""
    kinds = {
        "forward": counted.forward_passes,
        "backward": counted.backward_passes,
        "forward-mode": counted.forward_mode_passes,
    }
    some = [f"{count} {kind}" for kind, count in kinds.items() if count]
    return f"{units.listed(some) or 'no'} pass{'' if all_passes(counted) == 1 else 'es'}"


# The Jacobians.


def views(result: Result) -> tuple[str, ...]:
    """What there is to show of the Jacobians beside the norms, by name."""
    found = result.jacobian
    there = {
        "singular-values": len(found.singular_values) > 1,
        "direction": found.direction is not None and result.function.inputs > 1,
        "sizes": len(found.by_size) > 1,
        "curvature": bool(found.curvature),
    }
    return tuple(name for name, shown in there.items() if shown)


TOGETHER = "all heads"
"""The row of what holds for the Jacobian of all heads together."""


def together(result: Result) -> dict[str, float | None]:
    """By path the agreement of the Jacobian of all heads, where there are several; the reference
    is left out."""
    reference = next(iter(result.heads.values())).agreement_reference
    if len(result.heads) < 2:
        return {}
    return {path: v for path, v in result.jacobian.agreement.items() if path != reference}


def tightness(norms: HeadNorms) -> float | None:
    """‖dz/dx‖ over its bound; None where the bound is 0 or either is not finite."""
    if not (0 < norms.bound < math.inf and math.isfinite(norms.composite)):
        return None
    return norms.composite / norms.bound


def jacobian(result: Result) -> list[str]:
    """How unevenly dy/dx stretches, and how tight the bounds are, in sentences.

    Empty where dy/dx stretches in one direction only.
    """
    found = result.jacobian
    if found.spectral_norm is None or min(result.function.inputs, result.function.outputs) < 2:
        return []
    return list(filter(None, (_condition(result), _reached(result))))


def _condition(result: Result) -> str:
    found, dtype = result.jacobian, result.experiment.dtype
    if found.condition is None or not found.spectral_norm:
        return ""
    most = units.number(found.spectral_norm, 3)
    resolved = 1 / (EPSILON[dtype] * max(result.function.inputs, result.function.outputs))
    if found.condition > resolved:
        return (
            f"dy/dx stretches by {most} at most and in some direction by nothing that {dtype} can "
            "tell from 0: its condition number is "
            + ("infinite." if math.isinf(found.condition) else "beyond what the dtype resolves.")
        )
    least = units.number(found.spectral_norm / found.condition, 3)
    return (
        f"dy/dx stretches by {most} at most and by {least} at least: its condition number is "
        f"{units.number(found.condition, 3)}."
    )


def _reached(result: Result) -> str:
    """By which heads the bound is reached to the largest and the smallest part, and why."""
    parts = {
        name: part
        for name, norms in result.jacobian.heads.items()
        if not result.heads[name].domain and (part := tightness(norms)) is not None
    }
    if not parts:
        return ""
    best, worst = (pick(parts, key=lambda name: parts[name]) for pick in (max, min))
    clauses: dict[str, list[str]] = {}  # by why it is so
    for name in dict.fromkeys((best, worst)):
        by = f" by {name}" if len(parts) > 1 else ""
        clause = f"to {units.percent(parts[name])}{by}"
        clauses.setdefault(_why_tight(result, name), []).append(clause)
    reached = "; ".join(f"{units.listed(each)}{why}" for why, each in clauses.items())
    return f"The bound ‖dg/dy‖·‖dy/dx‖ is reached {reached}."


def _why_tight(result: Result, name: str) -> str:
    norms, norm = result.jacobian.heads[name], result.jacobian.spectral_norm or 0.0
    if norms.bound > norms.spectral_norm * norm * (1 + 1e-6):  # x reaches z on a way of its own
        return ""
    part = norms.composite / norms.bound
    if part >= _TIGHT:
        return ", where g looks along the direction that f stretches most"
    return ", where g looks along directions that f stretches less" if part < _LOOSE else ""


# The verdict on a head.


def verdict(result: Result, head_name: str) -> str:
    """Whether the paths agree on a head's gradient, whether they are right, and why not.

    A head outside its domain, or not finite, has its own words: `HeadResult.domain`.

    Raises:
        KeyError: the Result has no such head.
    """
    head = result.heads[head_name]
    if head.domain:
        return head.domain
    if not head.gradient:
        return f"no path has given its gradient{' yet' if result.status == 'running' else ''}."
    limit = tolerance(result.experiment.dtype)
    pending = result.status == "running" and bool(set(NAIVE) & set(result.paths))
    broken = [path for path, numbers in head.gradient.items() if not _finite(numbers)]
    finite = [path for path in head.gradient if path not in broken]
    clauses = []
    if broken:
        give = "gives" if len(broken) == 1 else "give"
        clauses.append(f"{units.listed(broken)} {give} no finite gradient")
    if finite:
        agreement = "" if pending else _agreement(head, limit, finite)
        clauses.append(f"{agreement}{_errors(head, limit, finite)}")
    text = f"{'; '.join(clauses)}."
    if any(_is_wrong(head, path, limit) for path in head.gradient):
        why = result.experiment.described.inaccuracy
        if spoilers := _spoilers(result):
            are, spoil = ("is", "spoils") if len(spoilers) == 1 else ("are", "spoil")
            why = (
                f"{PEER} takes all heads together, and {_named(spoilers)}, which {are} not "
                f"finite here, {spoil} the others"
            )
        text += f" Why: {why}. What to do: {_advice(result)}."
    return text


def _agreement(head: HeadResult, limit: float, paths: list[str]) -> str:
    """`the paths agree to 1e-5, and `: the first half of a verdict, empty for one path alone."""
    if head.agreement_reference is None:
        return "no naive path was run to compare with; "
    if len(paths) == 1 or head.agreement_reference not in paths:
        return ""
    words = _agree([head], limit, paths)
    who = "the paths" if len(paths) == len(head.gradient) else "the others"
    return f"{who} {words}{': ' if words.startswith('disagree') else ', and '}"


def _errors(head: HeadResult, limit: float, paths: list[str]) -> str:
    """`both are 0.9% wrong`: the second half of a verdict."""
    errors = _grouped(head)
    if not errors:
        return f"the error is not known ({head.error_reference.removeprefix('none: ')})"
    if any(math.isinf(error) for error in errors.values()):
        return "the exact gradient is zero, so that there is no error in proportion to it"
    largest = max(errors.values())
    who = _subject_of(head, paths)
    if largest <= limit:
        distance = _from_truth(largest, head)
        return f"{who} right, {distance} ({head.error_reference})"
    if len({units.relative(error) for error in errors.values()}) == 1:
        return f"{who} {units.relative(largest)} wrong"
    return _each(errors, limit)


def _each(errors: dict[str, float], limit: float) -> str:
    """`reuse is 1.2% and naive 0.3% wrong`, the worst first."""
    worst = sorted(errors, key=lambda label: -errors[label])
    bad = [f"{label} {units.relative(errors[label])}" for label in worst if errors[label] > limit]
    good = [f"{label} right" for label in worst if errors[label] <= limit]
    parts = [*bad[:-1], f"{bad[-1]} wrong", *good]
    name, _, rest = units.listed(parts).partition(" ")
    return f"{name} is {rest}"


def _grouped(head: HeadResult) -> dict[str, float]:
    """The known error of each path; the naive ones as one where they read the same."""
    errors = {p: e for p, e in head.error.items() if e is not None and not math.isnan(e)}
    naive = [errors[path] for path in NAIVE if path in errors]
    if len({units.relative(error) for error in naive}) != 1:
        return errors
    rest = {path: error for path, error in errors.items() if path not in NAIVE}
    return {"naive": max(naive), **rest}


def _subject_of(head: HeadResult, paths: list[str]) -> str:
    """`both are`, `all three are`; one path, or a part of all, by name: `reuse is`."""
    if 1 < len(paths) == len(head.gradient):
        return f"{units.everyone(len(paths))} are"
    return f"{units.listed(paths)} {'is' if len(paths) == 1 else 'are'}"


def title(result: Result, head_name: str) -> str:
    """A head's name; of a typed one and of a set's, the formula as it was understood too."""
    formula = result.heads[head_name].formula
    return head_name if head_name.isidentifier() else f"{head_name}, that is {formula}"


MANY = 12
"""Heads up to which each is shown by itself."""


def few(result: Result, most: int = MANY) -> Result:
    """The Result with the heads that are shown one by one: all of up to 12, and of more those
    with something wrong before the others, in their order."""
    if len(result.heads) <= most:
        return result
    limit = tolerance(result.experiment.dtype)

    def wrong(name: str) -> bool:
        head = result.heads[name]
        return bool(head.domain) or any(_is_wrong(head, path, limit) for path in head.gradient)

    chosen = sorted(result.heads, key=lambda name: not wrong(name))[:most]
    heads = {name: head for name, head in result.heads.items() if name in chosen}
    found = result.jacobian
    jacobian = found.model_copy(
        update={
            "heads": {name: each for name, each in found.heads.items() if name in chosen},
            "curvature": {name: each for name, each in found.curvature.items() if name in chosen},
        }
    )
    return result.model_copy(update={"heads": heads, "jacobian": jacobian})


def judgement(result: Result, head_name: str, path: str) -> str:
    """The verdict on one path's gradient of one head, in a word or two.

    Raises:
        KeyError: the Result has no such head.
    """
    head = result.heads[head_name]
    if path not in head.gradient:
        return "no gradient"
    if head.domain:
        return "left out"
    if _is_wrong(head, path, tolerance(result.experiment.dtype)):
        return "wrong"
    error = head.error.get(path)
    return "right" if error is not None and math.isfinite(error) else "not known"


# What to mind.


def _off(jacobian: JacobianResult) -> str:
    """`with an error of about 1e-8`: its estimate, in proportion to the norm."""
    if not jacobian.error or not jacobian.spectral_norm:
        return "exact but for rounding"
    return f"with an error of about {units.relative(jacobian.error / jacobian.spectral_norm)}"



def notes(result: Result) -> list[str]:
    """What to mind when reading the numbers: noise, what was not run, what the budget ended."""
    found = [*result.notes]
    if result.function.compile_seconds is not None:
        took = units.seconds(result.function.compile_seconds)
        found.append(f"torch.compile took {took}, once; the times of the paths are without it.")
    if len(result.heads) > MANY:
        found.append(
            f"{MANY} of the {len(result.heads)} heads are shown by themselves, those with "
            "something wrong first; the sentences above are of all, and the JSON has all."
        )
    for name, path in result.paths.items():
        found += [f"{name}: {words}" for words in (path.noise, path.note) if words]
    once = [name for name, seconds in measured(result).items() if len(seconds.runs) == 1]
    if once and result.status != "running":
        verb = "was" if len(once) == 1 else "were"
        found.append(f"{units.listed(once)} {verb} timed once: the spread is not known.")
    if not set(NAIVE) & set(result.paths):
        found.append("No naive path was run: there is no agreement, and no speed-up.")
    jacobian = result.jacobian
    if jacobian.spectral_norm is None and result.status != "running":
        found.append(f"Spectral norms: {jacobian.method}.")
    if jacobian.spectral_norm is not None and jacobian.products is not None:
        found.append(
            f"‖dy/dx‖ is from {jacobian.products} products J·v and Jᵀ·u, in the place of all "
            f"singular values, {_off(jacobian)}."
        )
    ran = {path for head in result.heads.values() for path in head.gradient}
    # The path that formed dy/dx, which in older Results is not named, else whoever is like it.
    source = ran & {result.jacobian.source or "reuse"} or ran
    if result.jacobian.spectral_norm is not None and source and source <= wrong_paths(result):
        found.append(
            "The spectral norms are of the dy/dx that was computed, "
            "which may be as wrong as the gradients are."
        )
    return found
