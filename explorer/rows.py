"""What was seen → one long table as CSV; a Result has a row for each thing that was seen.

With pandas, the times of a path are `seen[seen.record == "run"].groupby("path").seconds`, and
`seen[seen.record == "gradient"].pivot(index="head", columns="path", values="error")` the errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from explorer.comparing import rows as of_comparison
from explorer.comparing.comparison import Comparison
from explorer.delimited import ENVIRONMENT, Row, environment, placed, runs
from explorer.events import Seen
from explorer.experiment import Experiment
from explorer.flow import rows as of_flow
from explorer.flow.result import Flow
from explorer.result import Array, HeadResult, Numbers, PathResult, Result, Scaling, Seconds
from explorer.study import rows as of_study
from explorer.study.study import Study

COLUMNS = (
    *("record", "path", "head", "scaling", "count", "run", "seconds"),
    *("median_seconds", "iqr_seconds", "minimum_seconds", "predicted_seconds"),
    *("forward_passes", "backward_passes", "forward_mode_passes"),
    *("saved_bytes", "peak_memory_bytes", "status", "taken"),
    *("value", "gradient", "gradient_norm", "agreement", "agreement_with", "error"),
    *("error_against", "dy_dx_norm", "dg_dy_norm", "dz_dx_norm", "dz_dx_bound"),
    *("number", "singular_value", "hessian_largest", "hessian_smallest"),
    *("formula", "domain", "note"),
    *("function", "size", "parameters", "dtype", "device", "compile", "seed"),
    *ENVIRONMENT,
)
"""The columns of a Result's table."""


def to_csv(seen: Seen | Comparison) -> str:
    """One table, written as `delimited.written` says.

    The column `record` says what a row is of. Of a Result: the "function"; a "path", or one timed
    "run" of it; a "head", its "exact gradient", or a "gradient" of it along a path; a "singular
    value" of dy/dx; a "size" with the norms there, of f or, with a head, of z; along a scaling a
    "scaling" point of a path, measured or predicted, or a "scaling run". Of a Flow: a "gradient"
    at t of a loss, a "state" t with the step to it, the "ways", or a timed "run" of one of them.
    Of a Comparison: a "path" of one of the Results, or a "gradient" of a head in one of them. The
    setting and the environment stand in every row, so that tables can be put together. A Study has
    no `record`, but a row for each path at each point.

    Seconds, bytes and numbers of passes are in the columns that say so; all else has no unit. A
    `gradient` of several numbers is there as its norm alone; the JSON has its entries.
    """
    if isinstance(seen, Comparison):
        return of_comparison.to_csv(seen)
    if isinstance(seen, Study):
        return of_study.to_csv(seen)
    if isinstance(seen, Flow):
        return of_flow.to_csv(seen)
    same = {**_setting(seen.experiment), **environment(seen.environment)}
    return placed(COLUMNS, _result(seen), same)


def _setting(experiment: Experiment) -> Row:
    parameters = (f"{name}={value}" for name, value in experiment.parameters.items())
    return {
        "function": experiment.function,
        "size": experiment.size,
        "parameters": "; ".join(parameters),
        "dtype": experiment.dtype,
        "device": experiment.device,
        "compile": "on" if experiment.compile else "off",
        "seed": experiment.seed,
    }


def _result(result: Result) -> Iterator[Row]:
    yield {
        "record": "function",
        "value": _single(result.function.value),
        "dy_dx_norm": result.jacobian.spectral_norm,
    }
    for name, path in result.paths.items():
        yield from _path(name, path)
    for name, head in result.heads.items():
        yield from _head(result, name, head)
    for number, value in enumerate(result.jacobian.singular_values, 1):
        yield {"record": "singular value", "number": number, "singular_value": value}
    for each in result.jacobian.by_size:
        at = {"record": "size", "size": each.size}
        yield {**at, "dy_dx_norm": each.spectral_norm}
        for name, norm in each.heads.items():
            yield {**at, "head": name, "dz_dx_norm": norm}
    for scaling in result.scaling.values():
        yield from _scaling(scaling)


def _path(name: str, path: PathResult) -> Iterator[Row]:
    yield {
        "record": "path",
        "path": name,
        "status": path.status,
        "taken": path.taken,
        "note": path.note,
        "saved_bytes": path.saved_bytes,
        "peak_memory_bytes": path.peak_memory_bytes,
        "predicted_seconds": path.predicted_seconds,
        **_passes(path),
        **_statistics(path.seconds),
    }
    yield from runs({"record": "run", "path": name}, path.seconds)


def _head(result: Result, name: str, head: HeadResult) -> Iterator[Row]:
    norms = result.jacobian.heads.get(name)
    curvature = result.jacobian.curvature.get(name)
    yield {
        "record": "head",
        "head": name,
        "value": head.value,
        "formula": head.formula,
        "domain": head.domain,
        "dg_dy_norm": norms and norms.spectral_norm,
        "dz_dx_norm": norms and norms.composite,
        "dz_dx_bound": norms and norms.bound,
        "hessian_largest": curvature and curvature.largest,
        "hessian_smallest": curvature and curvature.smallest,
    }
    if head.exact_gradient is not None:
        yield {"record": "exact gradient", "head": name, **_gradient(head.exact_gradient)}
    for path, gradient in head.gradient.items():
        yield {
            "record": "gradient",
            "path": path,
            "head": name,
            "agreement": head.agreement.get(path),
            "agreement_with": head.agreement_reference,
            "error": head.error.get(path),
            "error_against": head.error_reference,
            **_gradient(gradient),
        }


def _scaling(scaling: Scaling) -> Iterator[Row]:
    for name, path in scaling.paths.items():
        measured = {point.count: point for point in path.measured}
        for count, predicted in zip(scaling.counts, path.predicted, strict=True):
            at = {"path": name, "scaling": scaling.along, "count": count}
            point = measured.get(count)
            yield {
                **at,
                "record": "scaling",
                "status": "predicted" if point is None else "measured",
                "taken": "" if point is None else point.taken,
                "predicted_seconds": predicted.seconds,
                **_passes(point or predicted),
                **_statistics(None if point is None else point.seconds),
            }
            yield from runs({**at, "record": "scaling run"}, point.seconds if point else None)


def _passes(seen: Any) -> Row:
    names = ("forward_passes", "backward_passes", "forward_mode_passes")
    return {name: getattr(seen, name) for name in names}


def _statistics(seconds: Seconds | None) -> Row:
    return {
        f"{name}_seconds": getattr(seconds, name, None) for name in ("median", "iqr", "minimum")
    }


def _gradient(numbers: Numbers) -> Row:
    norm = numbers.norm if isinstance(numbers, Array) else math.hypot(*numbers)
    return {"gradient": _single(numbers), "gradient_norm": norm}


def _single(numbers: float | Numbers) -> float | None:
    """The number, where there is one alone."""
    if isinstance(numbers, Array):
        return None
    if isinstance(numbers, tuple):
        return numbers[0] if len(numbers) == 1 else None
    return numbers
