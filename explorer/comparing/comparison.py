"""Results → a Comparison: what is said of two or more of them together, as plain data.

Times are compared by the Mann–Whitney test of the raw runs, path by path, each with the first
Result that has the path with right gradients. Importing this module imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from explorer import sentences
from explorer.comparing.rank_sum import LEVEL, shift
from explorer.result import Count, Data, Number, Numbers, Result

MOST = 20
"""Results up to which they can be compared: with more, no picture can be read."""

PROBLEM = ("function", "size", "dtype", "compile", "heads", "seed")
"""The fields of an experiment that, with the function's own parameters, say what is computed. The
others say where and how it was measured."""

_RUNS = 1000  # of a path at most, the most that an experiment has


class Ratio(Data):
    """The time of a path in one Result over that in `against`.

    Attributes:
        value: the Hodges–Lehmann estimate on logarithms: the median of all quotients of a run of
            the one and a run of the other.
        low, high: the 95% confidence interval, of all ratios that the test does not reject at 5%;
            None where there are too few runs for the test to reject any.
        p: of the two-sided Mann–Whitney test that there is no difference.
        runs: of the one and of `against`.
    """

    against: str
    value: Number
    low: Number | None
    high: Number | None
    p: Number
    runs: tuple[Count, Count]

    @property
    def significant(self) -> bool:
        """Whether the runs differ by more than chance makes them; the interval then leaves out 1.
        False where there are too few runs to tell."""
        return self.p <= LEVEL

    @property
    def decidable(self) -> bool:
        """Whether there are runs enough for a difference to be significant."""
        return self.low is not None


class Distance(Data):
    """‖difference‖/‖gradient of `against`‖ of a head's gradients by one `path`, the largest over
    the paths that are right in both Results and list every entry."""

    against: str
    path: str
    value: Number


class Comparison(Data):
    """What was seen of several Results.

    Attributes:
        results: by name; the first is what the others are compared with.
        wrong: by the name of a Result, its paths with wrong gradients, which are not compared.
        ratios: by path and by the name of a Result.
        gradients: by head and by the name of a Result, where both are of the same function at the
            same x.
    """

    results: dict[str, Result]
    wrong: dict[str, tuple[str, ...]]
    ratios: dict[str, dict[str, Ratio]]
    gradients: dict[str, dict[str, Distance]]

    @property
    def first(self) -> str:
        """The name of the Result that the others are compared with."""
        return next(iter(self.results))

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that any Result has, in their order."""
        return tuple(dict.fromkeys(path for each in self.results.values() for path in each.paths))

    def to_json(self) -> str:
        """Strict JSON, the Results in it."""
        return self.model_dump_json(by_alias=True)


def compare(results: Mapping[str, Result]) -> Comparison:
    """Compares Results with the first of them, path by path.

    Args:
        results: 2 to 20, by the names that they are to have.

    Raises:
        TypeError: `results` is no mapping of names to Results.
        ValueError: there are fewer or more.
    """
    if not isinstance(results, Mapping) or not all(
        isinstance(name, str) and isinstance(each, Result) for name, each in results.items()
    ):
        raise TypeError("`results` is no mapping of names to Results, as in {'laptop': result}.")
    if not 2 <= len(results) <= MOST:
        raise ValueError(f"`results` has {len(results)} Results. Allowed: 2 to {MOST}.")
    wrong = {name: sentences.wrong_paths(each) for name, each in results.items()}
    paths = dict.fromkeys(path for each in results.values() for path in each.paths)
    ratios = {path: _ratios(path, results, wrong) for path in paths}
    heads = dict.fromkeys(head for each in results.values() for head in each.heads)
    gradients = {head: _distances(head, results, wrong) for head in heads}
    return Comparison(
        results=dict(results),
        wrong={
            name: tuple(path for path in results[name].paths if path in found)
            for name, found in wrong.items()
            if found
        },
        ratios={path: found for path, found in ratios.items() if found},
        gradients={head: found for head, found in gradients.items() if found},
    )


# Times.


def _ratios(
    path: str, results: Mapping[str, Result], wrong: Mapping[str, frozenset[str]]
) -> dict[str, Ratio]:
    logs = {
        name: found
        for name, each in results.items()
        if path not in wrong[name] and (found := _logarithms(each, path))
    }
    if len(logs) < 2:
        return {}
    (reference, base), *others = logs.items()
    return {name: _ratio(reference, base, own) for name, own in others}


def _logarithms(result: Result, path: str) -> list[float]:
    """Of the runs of a path that take any time; of a broken clock, or a Result made by hand, they
    may be none."""
    seconds = sentences.measured(result).get(path)
    runs: Iterable[float] = seconds.runs[:_RUNS] if seconds is not None else ()
    return [math.log(run) for run in runs if 0 < run < math.inf]


def _ratio(reference: str, base: list[float], own: list[float]) -> Ratio:
    found = shift(base, own)
    known = found.low is not None and found.high is not None
    return Ratio(
        against=reference,
        value=math.exp(found.value),
        low=math.exp(found.low) if known and found.low is not None else None,
        high=math.exp(found.high) if known and found.high is not None else None,
        p=found.p,
        runs=(len(own), len(base)),
    )


# Gradients.


def same_point(one: Result, other: Result) -> bool:
    """Whether both are of the same f at the same x, in whatever dtype and wherever."""
    return all(
        getattr(one.experiment, name) == getattr(other.experiment, name)
        for name in ("function", "size", "parameters", "seed")
    )


def _distances(
    head: str, results: Mapping[str, Result], wrong: Mapping[str, frozenset[str]]
) -> dict[str, Distance]:
    """With the first Result that has the head."""
    having = [name for name, each in results.items() if head in each.heads]
    reference, others = having[0], having[1:]
    found = {}
    for name in others:
        if not same_point(results[reference], results[name]):
            continue
        base, own = results[reference].heads[head], results[name].heads[head]
        values = {
            path: distance
            for path in base.gradient
            if path in own.gradient and path not in wrong[reference] | wrong[name]
            and (distance := _distance(base.gradient[path], own.gradient[path])) is not None
        }  # fmt: skip
        if values and not base.domain and not own.domain and base.formula == own.formula:
            path = max(values, key=lambda each: (math.isnan(values[each]), values[each]))
            found[name] = Distance(against=reference, path=path, value=values[path])
    return found


def _distance(base: Numbers, own: Numbers) -> float | None:
    """None where not every entry is listed in both."""
    if not isinstance(base, tuple) or not isinstance(own, tuple) or len(base) != len(own):
        return None
    off = math.hypot(*(a - b for a, b in zip(own, base, strict=True)))
    norm = math.hypot(*base)
    if off == 0:
        return 0.0
    return off / norm if norm else math.inf
