"""Studies of points that nobody measured, from plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from explorer.result import JacobianResult, PathResult, Result
from explorer.study.axis import Value
from explorer.study.point import Point
from explorer.study.study import Study
from explorer.study.sweep import Sweep
from tests.results import head, result, timed, untimed

Times = Mapping[str, float | tuple[float, ...] | None]


def ran(
    times: Times,
    *,
    error: Mapping[str, float | None] | None = None,
    backward: Mapping[str, int] | None = None,
    norm: float | None = 3.0,
    **more: Any,
) -> Result:
    """What a run showed: by path the seconds of its runs, three of them where one is given, and
    None for a path that was not run, which would take 100 s; its error; its backward passes."""
    paths: dict[str, PathResult] = {}
    for name, runs in times.items():
        passes = (backward or {}).get(name, 1)
        if runs is None:
            paths[name] = untimed("predicted", predicted_seconds=100.0, backward=passes)
        else:
            each = runs if isinstance(runs, tuple) else (0.99 * runs, runs, 1.01 * runs)
            paths[name] = timed(*each, backward=passes)
    gave = [name for name, runs in times.items() if runs is not None]
    errors = {name: (error or {}).get(name, 1e-13) for name in gave}
    heads = {"square": head(dict.fromkeys(gave, 1e-12), errors)}
    jacobian = JacobianResult(spectral_norm=norm, heads={}, method="dense")
    return result(paths, heads, jacobian=jacobian, **more)


Seen = Callable[[dict[str, Value]], Result | str]
"""What a point showed, by its values: a Result, or why there is none."""


def study(
    over: Any, seen: Seen, count: int | None = None, notes: tuple[str, ...] = (), **given: Any
) -> Study:
    """The study of a sweep; of the first `count` points, which is then under way."""
    sweep = Sweep(given, over)
    places = sweep.places if count is None else sweep.places[:count]
    points = []
    for place in places:
        found = seen(place.at)
        whole = found if isinstance(found, Result) else None
        points.append(
            Point.of(sweep.key, place.key, place.at, 0.5, whole, "" if whole else str(found))
        )
    return Study(
        key=sweep.key,
        given=sweep.given,
        axes=sweep.axes,
        points=tuple(points),
        planned=len(sweep),
        status="done" if count is None else "running",
        notes=notes,
    )


def heads_of(at: Mapping[str, Value]) -> float:
    return float(at.get("heads", 1))


def growing(at: Mapping[str, Value]) -> Result:
    """K heads: the naive path takes K backward passes of size/100 s, the other one."""
    one, heads = float(at.get("size", 100)) / 100, heads_of(at)
    return ran(
        {"recompute": heads * one, "reuse": one},
        backward={"recompute": int(heads)},
        norm=float(at.get("size", 1)),
    )
