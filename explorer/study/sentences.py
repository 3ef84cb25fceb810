"""Study → plain words: what the points show together, and what to mind."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from explorer import units
from explorer.engine.plan import NAIVE, PEER
from explorer.experiment import DEFAULT_FUNCTION
from explorer.functions import FUNCTIONS
from explorer.study.axis import Axis, text
from explorer.study.point import PathPoint, Point
from explorer.study.study import Study
from explorer.study.sweep import told

_NAMED = 3  # reasons and places that are told one by one
_APART = ("heads", "paths", "repeats", "scaling", "cutoff", "sizes", "curvature", "seed", "budget")
"""Fields that say what is done with f."""


@dataclass(frozen=True)
class Gain:
    """How much faster than the naive `reference` the fastest other `path` was at a point.

    `ratio` is that of the medians; `low` and `high` are the ratios of the quartiles that are
    nearest to each other and farthest apart. `wrong` tells that the gradients of the reference are
    wrong there: its time is what the usual code takes all the same.
    """

    path: str
    reference: str
    ratio: float
    low: float
    high: float
    wrong: bool

    @property
    def significant(self) -> bool:
        """Whether the middle halves of the runs are apart."""
        return not self.low <= 1 <= self.high


def gain(point: Point) -> Gain | None:
    """None where no naive path was timed, or no other one that has right gradients."""
    timed = {name: path for name, path in point.paths.items() if path.seconds}
    naive = sorted(filter(timed.get, NAIVE), key=lambda name: timed[name].wrong)
    clever = [
        name
        for name, path in timed.items()
        if name not in (*NAIVE, PEER) and not path.wrong and path.taken not in timed
    ]
    if not naive or not clever:
        return None
    reference = naive[0]
    best = min(clever, key=lambda name: timed[name].seconds or math.inf)
    one, other = timed[best], timed[reference]
    assert one.seconds and other.seconds and one.low is not None and one.high is not None
    assert other.low is not None and other.high is not None
    return Gain(
        best,
        reference,
        other.seconds / one.seconds,
        other.low / one.high if one.high else math.inf,
        other.high / one.low if one.low else math.inf,
        other.wrong,
    )


def setting(study: Study) -> str:
    """What all points share of f and where it ran, as far as it was given."""
    given = {name: value for name, value in study.given.items() if name not in _APART}
    function = given.pop("function", DEFAULT_FUNCTION)
    title = FUNCTIONS[function].title if function in FUNCTIONS else str(function)
    swept = {axis.name for axis in study.axes}
    shared = [f"{name} = {_written(each)}" for name, each in given.items() if _written(each)]
    return ", ".join([*([] if "function" in swept else [title]), *shared])


def summary(study: Study) -> str:
    """One sentence on the whole, which can be cited; of what is there so far it says so."""
    if not study.points:
        return "No point is measured yet."
    count = len(study.points)
    whole = "" if count == study.planned else f" of {study.planned}"
    where = f"{count}{whole} point{'' if count == 1 and not whole else 's'} of {_over(study.axes)}"
    found = {index: each for index, p in enumerate(study.points) if (each := gain(p)) is not None}
    start = "So far, over" if study.status == "running" else "Over"
    if not found:
        return f"{start} {where}, no path could be compared with a naive one."
    clauses = [f"{start} {where}, {_gains(study, found)}", _significance(found), _accuracy(study)]
    return f"{'; '.join(filter(None, clauses))}."


def notes(study: Study) -> tuple[str, ...]:
    """What to mind: wrong gradients, paths that were not timed, points without a result."""
    found = [*_wrong(study), *_left_out(study), *_problems(study), _hosts(study)]
    return (*filter(None, found), *study.notes)


def _gains(study: Study, found: dict[int, Gain]) -> str:
    best = max(found, key=lambda index: found[index].ratio)
    least = min(found, key=lambda index: found[index].ratio)
    gains = found[best], found[least]
    point = study.points[best]
    what = _passes(point.paths[gains[0].path], point.paths[gains[0].reference])
    at = told(point.at)
    who = _who(each.path for each in found.values())
    against = units.listed(sorted({each.reference for each in found.values()}))
    if units.ratio(gains[0].ratio) == units.ratio(gains[1].ratio):
        return f"{who} was {_times(gains[0].ratio)} as fast as {against}{what}"
    middle = statistics.median(each.ratio for each in found.values())
    range_ = f"{units.ratio(gains[1].ratio)} to {_times(gains[0].ratio)} as fast as {against}"
    return (
        f"{who} was {range_}, in the median {_times(middle)}: least at "
        f"{told(study.points[least].at)}, most at {at}{what}"
    )


def _who(paths: Iterable[str]) -> str:
    names = list(dict.fromkeys(paths))
    return names[0] if len(names) == 1 else f"the fastest of {units.listed(names)}"


def _times(ratio: float) -> str:
    return f"{units.ratio(ratio)} times"


def _passes(path: PathPoint, reference: PathPoint) -> str:
    """The passes that explain it."""
    if path.forward_mode:
        passes = units.times(path.forward_mode)
        return f", where it went through f in forward mode {passes} instead of back" \
               f" {units.times(reference.backward)}"  # fmt: skip
    if path.backward < reference.backward:
        return (
            f", where it went back through f {units.times(path.backward)} instead of "
            f"{units.times(reference.backward)}"
        )
    return ""


def _significance(found: dict[int, Gain]) -> str:
    """How often the difference is larger than the spread of the runs."""
    faster = sum(each.significant and each.ratio > 1 for each in found.values())
    slower = sum(each.significant and each.ratio < 1 for each in found.values())
    rest = len(found) - faster - slower
    if len(found) == 1:
        return "the difference is within the spread of the runs" if rest else ""
    counts = {"faster": faster, "slower": slower, "not significantly different": rest}
    (first, most), *others = [(words, count) for words, count in counts.items() if count]
    of = "every one of them" if most == len(found) else f"{most} of {len(found)}"
    return f"it was {units.listed([f'{first} at {of}', *(f'{w} at {n}' for w, n in others)])}"


def _accuracy(study: Study) -> str:
    right = [path for p in study.points for path in p.paths.values() if not path.wrong]
    errors = [path.error for path in right if path.error is not None and math.isfinite(path.error)]
    if not errors:
        return ""
    largest = max(errors)
    if largest == 0:
        return "all gradients that are ranked are exact"
    return f"all gradients that are ranked are within {units.relative(largest)} of the exact ones"


def _wrong(study: Study) -> list[str]:
    told_ = []
    for names, at in _alike(study, lambda path: path.wrong):
        off = [p.paths[name].error for p in at for name in names]
        known = [each for each in off if each is not None and math.isfinite(each)]
        by = f", up to {units.relative(max(known))} off" if known else ""
        gives, is_ = ("gives", "is") if len(names) == 1 else ("give", "are")
        told_.append(
            f"{units.listed(names)} {gives} wrong gradients at {_points(at)}{_common(study, at)}"
            f"{by}, and {is_} not ranked there."
        )
    return told_


def _left_out(study: Study) -> list[str]:
    told_ = []
    for names, at in _alike(study, lambda path: path.seconds is None):
        expected = max(p.paths[name].predicted or 0.0 for p in at for name in names)
        about = f"; it would take up to {units.seconds(expected)}" if expected else ""
        was = "was" if len(names) == 1 else "were"
        told_.append(
            f"{units.listed(names)} {was} not timed at {_points(at)}{_common(study, at)}{about}."
        )
    return told_


def _alike(
    study: Study, holds: Callable[[PathPoint], bool]
) -> list[tuple[list[str], list[Point]]]:
    """The points at which something holds of a path, the paths with the same points together."""
    found: dict[tuple[int, ...], list[str]] = {}
    for name in study.paths():
        at = tuple(
            number
            for number, point in enumerate(study.points)
            if (path := point.paths.get(name)) is not None and holds(path)
        )
        if at:
            found.setdefault(at, []).append(name)
    return [(names, [study.points[i] for i in at]) for at, names in found.items()]


def _problems(study: Study) -> list[str]:
    """Why points have no whole result, those with the same reason together."""
    by: dict[str, list[Point]] = {}
    for point in study.points:
        if point.problem:
            by.setdefault(point.problem, []).append(point)
    told_ = [f"At {_points(at)}{_common(study, at)}: {why}" for why, at in by.items()]
    more = sum(map(len, list(by.values())[_NAMED:]))
    verb = "point has" if more == 1 else "points have"
    return [*told_[:_NAMED], f"And {more} more {verb} no whole result." if more else ""]


def _points(points: Sequence[Point]) -> str:
    if len(points) == 1:
        return told(points[0].at)
    return f"{len(points)} points"


def _common(study: Study, points: Sequence[Point]) -> str:
    """`, all with dtype=float32`: what these points share that not all have."""
    if len(points) < 2 or len(points) == len(study.points):
        return ""
    shared = {
        axis.name: points[0].at[axis.name]
        for axis in study.axes
        if len(axis.values) > 1 and len({point.at[axis.name] for point in points}) == 1
    }
    return f", all with {told(shared)}" if shared else ""


def _hosts(study: Study) -> str:
    where = sorted({point.where for point in study.points} - {""})
    if len(where) < 2:
        return ""
    rest = f" and {len(where) - _NAMED} more" if len(where) > _NAMED else ""
    return (
        f"The points were measured in {len(where)} places, whose times compare only roughly: "
        f"{'; '.join(where[:_NAMED])}{rest}."
    )


def _over(axes: Iterable[Axis]) -> str:
    return units.listed([_extent(axis) for axis in axes])


def _extent(axis: Axis) -> str:
    """`size 50 to 800`, `dtype float32 and float64`."""
    values = axis.values
    if axis.numeric and len(values) > 1:
        by: Callable[..., str] = text
        return f"{axis.name} {by(min(values))} to {by(max(values))}"
    return f"{axis.name} {units.listed([text(value) for value in values])}"


def _written(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return text(value) if isinstance(value, (int, float, bool, str)) else str(value)
