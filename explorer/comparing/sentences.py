"""Comparison → plain words: which Result is faster in what, and what else differs between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from explorer import units
from explorer.comparing.comparison import PROBLEM, Comparison, Ratio, same_point
from explorer.experiment import table
from explorer.result import Result
from explorer.sentences import measured, tolerance

_AT_ONCE = 5  # ratios from which one of them may well differ by chance
ENVIRONMENT = {
    "device_name": "Device",
    "threads": "Threads",
    "torch": "torch",
    "python": "Python",
    "host": "Host",
}
"""The fields of an environment that are compared, with their labels."""


def standing(ratio: Ratio) -> str:
    """What stands beside a ratio: `2.3× faster`, `no significant difference`."""
    if not ratio.decidable:
        return "too few runs to tell"
    if not ratio.significant:
        return "no significant difference"
    return f"{_factor(ratio.value)}× {_word(ratio)}"


def interval(ratio: Ratio) -> str:
    """`0.41 to 0.47`; empty where none is known."""
    if ratio.low is None or ratio.high is None:
        return ""
    return f"{units.number(ratio.low, 3)} to {units.number(ratio.high, 3)}"


def _word(ratio: Ratio) -> str:
    return "faster" if ratio.value < 1 else "slower"


def _factor(value: float) -> str:
    """The ratio, or what it is the other way round, whichever is above 1."""
    above = max(value, 1 / value) if value else math.inf
    words = units.ratio(above)
    return f"{above:.4f}" if words == "1.00" else words


# The sentence on the whole.


def summary(comparison: Comparison) -> str:
    """Which of the Results are faster, and in which paths; what of it is not significant."""
    others = list(comparison.results)[1:]
    if not comparison.ratios:
        said = f"{units.listed(list(comparison.results))} have no path that can be compared"
    elif len(others) == 1:
        said = _of_one(comparison, others[0])
    else:
        said = _of_several(comparison, others)
    clauses = (said, _unranked(comparison), _other_problem(comparison))
    return f"{'; '.join(filter(None, clauses))}."


def each(comparison: Comparison) -> list[str]:
    """A sentence on every Result but the first, path by path, where there are several."""
    others = list(comparison.results)[1:]
    if len(others) == 1:
        return []
    return [f"{_of_one(comparison, name)}." for name in others if _ratios_of(comparison, name)]


def _ratios_of(comparison: Comparison, name: str) -> dict[str, Ratio]:
    return {path: found[name] for path, found in comparison.ratios.items() if name in found}


def _of_one(comparison: Comparison, name: str) -> str:
    """`gpu is faster than laptop in reuse (2.3 times, 95% interval 2.2 to 2.5); …`."""
    clauses: dict[str, list[str]] = {"faster": [], "slower": [], "same": [], "unknown": []}
    reference = comparison.first
    for path, ratio in _ratios_of(comparison, name).items():
        other = f"against {ratio.against}" if ratio.against != reference else ""
        if ratio.significant:
            times = f"{_factor(ratio.value)} times, 95% interval {_times(ratio)}"
            clauses[_word(ratio)].append(f"{path} ({', '.join(filter(None, (times, other)))})")
        else:
            kind = "same" if ratio.decidable else "unknown"
            clauses[kind].append(f"{path} ({other})" if other else path)
    said: list[str] = []
    for word in ("faster", "slower"):
        if clauses[word]:
            than = f" than {reference}" if not said else ""
            said.append(f"{word}{than} in {units.listed(clauses[word])}")
    whole = f"{name} is {', and '.join(said)}" if said else ""
    if clauses["same"]:
        paths = units.listed(clauses["same"])
        nothing = f"No significant difference between {reference} and {name}"
        whole += f"{', with no significant difference' if said else nothing} in {paths}"
    if clauses["unknown"]:
        paths = units.listed(clauses["unknown"])
        nothing = f"Too few runs to tell {name} from {reference}"
        whole += f"{'; too few runs to tell' if whole else nothing} in {paths}"
    return whole


def _times(ratio: Ratio) -> str:
    """The interval as times faster or slower."""
    assert ratio.low is not None and ratio.high is not None
    ends = sorted((ratio.low, ratio.high) if ratio.value > 1 else (1 / ratio.high, 1 / ratio.low))
    return " to ".join(units.number(end, 3) for end in ends)


def _of_several(comparison: Comparison, others: Iterable[str]) -> str:
    said = []
    for name in others:
        found = list(_ratios_of(comparison, name).values())
        if not found:
            said.append(f"{name} has no path that can be compared")
            continue
        counts = {
            word: sum(ratio.significant and _word(ratio) == word for ratio in found)
            for word in ("faster", "slower")
        }
        words = [f"{word} in {_of(count, len(found))}" for word, count in counts.items() if count]
        undecided = all(not ratio.decidable for ratio in found)
        nothing = "has too few runs to tell" if undecided else "shows no significant difference"
        said.append(f"{name} is {' and '.join(words)}" if words else f"{name} {nothing}")
    return f"Against {comparison.first}: {'; '.join(said)}"


def _of(count: int, among: int) -> str:
    """`3 of 4 paths`, `both paths`, `the one path`."""
    if among == 1:
        return "the one path"
    return f"{units.everyone(among)} paths" if count == among else f"{count} of {among} paths"


def _unranked(comparison: Comparison) -> str:
    """The paths with wrong gradients, by the Results in which they are."""
    where: dict[tuple[str, ...], list[str]] = {}
    for name, paths in comparison.wrong.items():
        where.setdefault(paths, []).append(name)
    clauses = []
    for paths, names in where.items():
        give, are = ("gives", "is") if len(paths) == 1 else ("give", "are")
        clauses.append(
            f"{units.listed(list(paths))} {give} wrong gradients in {units.listed(names)} and "
            f"{are} not compared there"
        )
    return "; ".join(clauses)


# What else differs.


def _values(result: Result) -> dict[str, tuple[str, str]]:
    """(label, value) of every field of an experiment, by name."""
    fields, values = table(result.experiment.function), result.experiment.values
    return {
        name: (field.label, (field.text(values[name]) or field.empty).replace(",", ", "))
        for name, field in fields.items()
    }


def fields(comparison: Comparison) -> dict[str, dict[str, str]]:
    """Every field of the experiments by its label: the value by the name of a Result; what a
    function does not have is left out."""
    found: dict[str, dict[str, str]] = {}
    for name, result in comparison.results.items():
        for label, value in _values(result).values():
            found.setdefault(label, {})[name] = value
    return found


def _differing(comparison: Comparison, *, problem: bool) -> dict[str, dict[str, str]]:
    """The fields that differ, of those that say what is computed or of the others."""
    labels: set[str] = set()
    for result in comparison.results.values():
        own = result.experiment.parameters
        labels |= {
            label
            for name, (label, _) in _values(result).items()
            if (name in PROBLEM or name in own) == problem
        }
    return {
        label: values
        for label, values in fields(comparison).items()
        if label in labels and _differ(comparison, values)
    }


def _differ(comparison: Comparison, values: Mapping[str, str]) -> bool:
    return len(set(values.values())) > 1 or len(values) < len(comparison.results)


def _grouped(values: Mapping[str, str]) -> str:
    """`2 in a and b; 8 in c`."""
    where: dict[str, list[str]] = {}
    for name, value in values.items():
        where.setdefault(value, []).append(name)
    return "; ".join(f"{value} in {units.listed(names)}" for value, names in where.items())


def _other_problem(comparison: Comparison) -> str:
    labels = list(_differing(comparison, problem=True))
    if not labels:
        return ""
    return f"these are not the same experiment: they differ in {units.listed(labels)}"


def experiments(comparison: Comparison) -> list[str]:
    """What differs between the experiments, a sentence a field, what is computed first."""
    found = {
        **_differing(comparison, problem=True),
        **_differing(comparison, problem=False),
    }
    found.pop("Device", None)  # the environment says more
    said = [f"{label}: {_grouped(values)}." for label, values in found.items()]
    if not _differing(comparison, problem=True):
        return ["What is computed is the same in all." if said else "The experiments are the same.",
                *said]  # fmt: skip
    return said


def environments(comparison: Comparison) -> list[str]:
    """What differs between where they were measured, a sentence a field."""
    results = comparison.results
    said, same = [], []
    for name, label in ENVIRONMENT.items():
        values = {key: str(getattr(each.environment, name)) for key, each in results.items()}
        if len(set(values.values())) > 1:
            said.append(f"{label}: {_grouped(values)}.")
        else:
            same.append(f"{label} {next(iter(values.values()))}")
    devices = {key: each.experiment.device for key, each in results.items()}
    if len(set(devices.values())) > 1:
        said.insert(0, f"Measured on: {_grouped(devices)}.")
    if not said:
        return [f"The environments are the same: {'; '.join(same)}."]
    return [*said, f"The same in all: {'; '.join(same)}."] if same else said


def gradients(comparison: Comparison) -> list[str]:
    """How far the gradients of the Results lie apart, a sentence."""
    distances = [
        (head, name, found)
        for head, by_name in comparison.gradients.items()
        for name, found in by_name.items()
    ]
    if not distances:
        return []
    head, name, worst = max(
        distances, key=lambda each: (math.isnan(each[2].value), each[2].value)
    )
    if worst.value == 0:
        return ["The gradients that are listed agree to the last digit."]
    dtypes = (comparison.results[each].experiment.dtype for each in (name, worst.against))
    agree = worst.value <= max(map(tolerance, dtypes))
    verb = "agree to" if agree else "differ by up to"
    return [
        f"The gradients that are listed {verb} {units.relative(worst.value)}: {head} by "
        f"{worst.path}, {name} against {worst.against}."
    ]


# What to mind.


def notes(comparison: Comparison) -> list[str]:
    """What to mind when reading the numbers."""
    found = []
    results = comparison.results
    unfinished = [name for name, each in results.items() if each.status != "done"]
    if unfinished:
        was = "was" if len(unfinished) == 1 else "were"
        found.append(f"{units.listed(unfinished)} {was} not finished.")
    ratios = [ratio for by_name in comparison.ratios.values() for ratio in by_name.values()]
    if any(not ratio.decidable for ratio in ratios):
        found.append(
            "Too few runs: with 3 against 3, even the clearest difference comes about by chance in "
            "1 of 10 cases. Measure with at least 4 repeats in each, better with 10."
        )
    decided = sum(ratio.decidable for ratio in ratios)
    if decided >= _AT_ONCE:
        found.append(
            f"{decided} ratios are tested, each at 5%: where nothing differs, one of 20 is still "
            "called significant."
        )
    if ratios:
        found.append(
            "A significant difference says that the runs differ, not why: what else ran on the "
            "machines, the test does not know."
        )
    waiting = {
        name: paths
        for name, each in results.items()
        if (paths := [path for path in each.paths if path not in measured(each)])
    }
    for name, paths in waiting.items():
        found.append(f"{name} has no time of {units.listed(paths)}.")
    first = next(iter(results.values()))
    if all(same_point(first, each) for each in results.values()) and _has_long(comparison):
        found.append(
            "Gradients of many entries are listed in part and not compared; `explorer run --full` "
            "lists every entry."
        )
    return found


def _has_long(comparison: Comparison) -> bool:
    return any(
        not isinstance(numbers, tuple)
        for result in comparison.results.values()
        for head in result.heads.values()
        for numbers in head.gradient.values()
    )
