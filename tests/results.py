"""Results built by hand, for what needs no computation: sentences, figures, tables, export."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from explorer.engine.plan import Costs, Sizes, choose, expected_passes, predicted_seconds
from explorer.experiment import Along, Experiment
from explorer.result import (
    Array,
    BreakEven,
    Curvature,
    Environment,
    FunctionResult,
    HeadNorms,
    HeadResult,
    JacobianResult,
    PathResult,
    Result,
    Scaling,
    ScalingPath,
    ScalingPoint,
    ScalingPrediction,
    Seconds,
    SizeNorms,
)

NOTHING_YET = JacobianResult(spectral_norm=None, heads={}, method="not yet computed")


def seconds(*runs: float) -> Seconds:
    """The statistics of runs, as a measurement takes them."""
    low, median, high = (
        statistics.quantiles(runs, n=4, method="inclusive") if len(runs) > 1 else runs * 3
    )
    return Seconds(median=median, iqr=high - low, minimum=min(runs), runs=runs)


def timed(*runs: float, forward: int = 1, backward: int = 1, **more: Any) -> PathResult:
    """A path that was measured."""
    return PathResult(
        status="measured",
        seconds=seconds(*runs),
        forward_passes=forward,
        backward_passes=backward,
        **more,
    )


def untimed(status: str, forward: int = 1, backward: int = 1, **more: Any) -> PathResult:
    """A path that waits ("running") or was not run ("predicted")."""
    return PathResult.model_validate(
        {"status": status, "forward_passes": forward, "backward_passes": backward, **more}
    )


def head(
    agreement: Mapping[str, float | None], error: Mapping[str, float | None], **more: Any
) -> HeadResult:
    """A head by the agreement and the error of each path; the first naive one is the reference."""
    naive = next((name for name in ("recompute", "retain_graph") if name in agreement), None)
    standard: dict[str, Any] = {
        "value": 4.0,
        "gradient": {name: (2.0,) for name in agreement},
        "agreement_reference": naive,
        "error_reference": "closed form",
        "exact_gradient": (2.0,),
    }
    return HeadResult(agreement=dict(agreement), error=dict(error), **{**standard, **more})


def result(
    paths: Mapping[str, PathResult],
    heads: Mapping[str, HeadResult],
    *,
    status: str = "done",
    jacobian: JacobianResult | None = None,
    outputs: int = 1,
    notes: tuple[str, ...] = (),
    device_name: str = "A processor",
    scaling: Mapping[str, Scaling] | None = None,
    **experiment: Any,
) -> Result:
    """A Result of `matrix_exp_trace` with these paths and heads."""
    norms = {name: HeadNorms(spectral_norm=2.0, composite=6.0, bound=6.0) for name in heads}
    return Result.model_validate(
        {
            "status": status,
            "experiment": Experiment(**{"size": 60, **experiment}),
            "environment": Environment(
                torch="2.13.0",
                python="3.11.7",
                device_name=device_name,
                threads=2,
                host="here",
                started="2026-12-01T04:00:00+00:00",
            ),
            "function": FunctionResult(
                name="matrix_exp_trace", inputs=1, outputs=outputs, value=58.0
            ),
            "paths": dict(paths),
            "heads": dict(heads),
            "jacobian": jacobian or JacobianResult(spectral_norm=3.0, heads=norms, method="dense"),
            "scaling": scaling or {},
            "notes": notes,
        }
    )


COUNTS = (1, 2, 5, 10)


def scanned(
    path: Callable[[int], float], measured: int = len(COUNTS), ended: str = "", taken: str = ""
) -> ScalingPath:
    """A path whose runs take `path(count)` backward passes of 1 s and a forward of 1 s, as is
    predicted, measured to 2% over at the first counts."""
    return ScalingPath(
        measured=tuple(
            ScalingPoint(
                count=count,
                seconds=seconds(*(1.02 * (1 + path(count)),) * 3),
                forward_passes=1,
                backward_passes=int(path(count)),
                taken=taken,
            )
            for count in COUNTS[:measured]
        ),
        predicted=tuple(
            ScalingPrediction(
                seconds=1 + path(count), forward_passes=1, backward_passes=int(path(count))
            )
            for count in COUNTS
        ),
        ended=ended,
    )


def scaled(status: str = "done") -> Result:
    """The good Result with a scaling along the heads: retain_graph cut off, auto took reuse."""
    why = "10 heads would take about 11 s, more than the cut-off of 9 s"
    scaling = Scaling(
        along="heads",
        counts=COUNTS,
        heads=None,
        outputs=1,
        paths={
            "retain_graph": scanned(lambda count: count, 3, why),
            "reuse": scanned(lambda count: 1),
            "auto": scanned(lambda count: 1, taken="reuse"),
        },
        break_even=BreakEven(path="reuse", reference="retain_graph", count=2, side="from"),
    )
    plain = good()
    return plain.model_copy(update={"scaling": {"heads": scaling}, "status": status})


def modelled(
    costs: Callable[[int], Costs],
    paths: Sequence[str],
    along: Along = "heads",
    *,
    outputs: int = 3,
    inputs: int = 5,
    most: int = 1000,
    disturb: Callable[[str, int], float] = lambda path, count: 1.0,
    alone: Callable[[float], float] = lambda seconds: seconds,
) -> Result:
    """The good Result with a scaling in which every path takes what the plan predicts from the
    costs at a count, times a disturbance, of heads up to `most`; alone the passes took something
    else."""
    counts = (1, 2, 5, 10, 20, 50, 100)

    def seen(path: str) -> ScalingPath:
        measured, predicted = [], []
        for count in counts:
            heads, entries = (count, outputs) if along == "heads" else (16, count)
            sizes = Sizes(heads, entries, inputs)
            plan = choose(sizes, costs(count)) if path == "auto" else None
            passes = plan.passes if plan else expected_passes(path, sizes)
            numbers = {f"{name}_passes": number for name, number in asdict(passes).items()}
            took = predicted_seconds(path, sizes, costs(count))
            predicted.append(ScalingPrediction(seconds=alone(took), **numbers))
            if count <= most:
                measured.append(
                    ScalingPoint(
                        count=count,
                        seconds=seconds(took * disturb(path, count)),
                        taken=plan.path if plan else "",
                        **numbers,
                    )
                )
        return ScalingPath(measured=tuple(measured), predicted=tuple(predicted))

    scaling = Scaling(
        along=along,
        counts=counts,
        heads=None if along == "heads" else 16,
        outputs=outputs if along == "heads" else None,
        paths={path: seen(path) for path in paths},
    )
    plain = good()
    function = plain.function.model_copy(update={"inputs": inputs, "outputs": outputs})
    return plain.model_copy(update={"scaling": {along: scaling}, "function": function})


def good() -> Result:
    """Ten heads' worth of passes: reuse 9.6 times faster than recompute, all of it right."""
    paths = {
        "recompute": timed(9.5, 9.6, 9.7, forward=10, backward=10),
        "reuse": timed(0.99, 1.0, 1.01),
    }
    square = head({"recompute": 0.0, "reuse": 2e-12}, {"recompute": 3e-13, "reuse": 4e-13})
    return result(paths, {"square": square})


def inspected(status: str = "done", **changes: Any) -> Result:
    """An f from 40 to 3 numbers with everything there is of its Jacobians: two heads, of which
    one sees most of what f stretches and the other little."""
    paths = {"recompute": timed(2.0, 2.1, backward=2), "reuse": timed(1.0, 1.1, backward=3)}
    right = {"recompute": 1e-13, "reuse": 1e-13}
    heads = {name: head({"recompute": 0.0, "reuse": 1e-12}, right) for name in ("square", "sin")}
    parts: dict[str, Any] = {
        "spectral_norm": 4.0,
        "heads": {
            "square": HeadNorms(spectral_norm=2.5, composite=8.0, bound=10.0),
            "sin": HeadNorms(spectral_norm=1.0, composite=0.5, bound=4.0),
        },
        "method": "dense, from the Jacobian that reuse formed",
        "source": "reuse",
        "error": 0.0,
        "singular_values": (4.0, 1.0, 0.0),
        "condition": float("inf"),
        "direction": Array(norm=1.0, shape=(40,), first=(0.8, -0.6)),
        "agreement": {"recompute": 0.0, "reuse": 3e-12},
        "curvature": {
            "square": Curvature(largest=300.0, smallest=-2.0, error=1e-6, products=8),
            "sin": Curvature(largest=0.25, smallest=0.25, error=0.0, products=1),
        },
        "by_size": (
            SizeNorms(
                size=2, inputs=2, outputs=3, spectral_norm=1.25, error=0.0, heads={"square": 2.5}
            ),
            SizeNorms(
                size=60,
                inputs=40,
                outputs=3,
                spectral_norm=4.0,
                error=1e-7,
                heads={"square": 8.0, "sin": 0.5},
            ),
        ),
    }
    seen = result(paths, heads, jacobian=JacobianResult(**parts | changes), status=status)
    function = FunctionResult(
        name="matrix_exp_trace", inputs=40, outputs=3, value=(1.0, 2.0, 3.0)
    )
    return seen.model_copy(update={"function": function})


def inaccurate() -> Result:
    """The example in float32 at n = 1000, with the numbers that it gave."""
    paths = {
        "recompute": timed(46.8, forward=2, backward=2),
        "retain_graph": timed(49.6, backward=2),
        "reuse": timed(24.0),
    }
    naive = ("recompute", "retain_graph")
    square = head(
        {**dict.fromkeys(naive, 0.0), "reuse": 0.014484315944388503},
        {**dict.fromkeys(naive, 0.0028802236166763093), "reuse": 0.011562374258857764},
    )
    sqrt = head(
        {**dict.fromkeys(naive, 0.0), "reuse": 0.0000105499074209494},
        {**dict.fromkeys(naive, 0.009245901194321436), "reuse": 0.00925654864514401},
    )
    return result(paths, {"square": square, "sqrt": sqrt}, size=1000, dtype="float32")


def every_field(number: float = 0.5, **changes: Any) -> Result:
    """A Result that makes use of every field, with one number in many places."""
    parts: dict[str, Any] = {
        "status": "done",
        "experiment": Experiment("tanh_network", 3, {"outputs": 2}, heads=("log",), budget=1.5),
        "environment": Environment(
            torch="2", python="3", device_name="a", threads=2, host="h", started="now"
        ),
        "function": FunctionResult(
            name="tanh_network", inputs=3, outputs=2, value=(1.0, number), exact_value=number
        ),
        "paths": {
            "reuse": PathResult(
                status="measured",
                seconds=Seconds(median=number, iqr=0.1, minimum=0.2, runs=(0.2, number)),
                forward_passes=1,
                backward_passes=2,
                saved_bytes=80,
                taken="jvp",
                plan="1 backward pass.",
            ),
            "recompute": PathResult(
                status="predicted",
                predicted_seconds=number,
                forward_passes=2,
                backward_passes=2,
                note="not run",
            ),
        },
        "heads": {
            "log": HeadResult(
                value=number,
                gradient={"reuse": (number, 1.0)},
                agreement={"reuse": None},
                agreement_reference=None,
                error={"reuse": number},
                error_reference="closed form",
                exact_gradient=Array(norm=number, shape=(2, 40), first=(number, 2.0)),
                domain="outside",
            )
        },
        "jacobian": JacobianResult(
            spectral_norm=number,
            heads={"log": HeadNorms(spectral_norm=number, composite=1.0, bound=number)},
            method="matrix-free",
            source="reuse",
            error=number,
            products=40,
            singular_values=(number, 0.25),
            condition=number,
            direction=(number, 0.6, 0.0),
            agreement={"reuse": number, "recompute": None},
            curvature={"log": Curvature(largest=number, smallest=-1.0, error=number, products=7)},
            by_size=(
                SizeNorms(
                    size=1,
                    inputs=1,
                    outputs=2,
                    spectral_norm=number,
                    error=number,
                    heads={"log": number},
                ),
            ),
        ),
        "scaling": {
            "outputs": Scaling(
                along="outputs",
                counts=(1, 2),
                heads=16,
                outputs=None,
                paths={
                    "auto": ScalingPath(
                        measured=(
                            ScalingPoint(
                                count=1,
                                seconds=Seconds(median=number, iqr=0.0, minimum=0.2, runs=(0.2,)),
                                forward_passes=1,
                                backward_passes=2,
                                forward_mode_passes=3,
                                taken="reuse",
                            ),
                        ),
                        predicted=(
                            ScalingPrediction(seconds=number, forward_passes=1, backward_passes=2),
                            ScalingPrediction(seconds=number, forward_passes=1, backward_passes=2),
                        ),
                        ended="cut off",
                    )
                },
                break_even=BreakEven(path="auto", reference="recompute", count=2, side="up to"),
            )
        },
        "notes": ("a note",),
    }
    return Result(**(parts | changes))


@cache
def real() -> Result:
    """A small run of the real thing."""
    from explorer.execute import execute  # torch, which nothing else here needs

    *_, last = execute(Experiment(size=20, repeats=3, heads=("square", "sqrt", "sin")))
    assert isinstance(last, Result)
    return last
