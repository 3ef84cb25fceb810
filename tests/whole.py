"""A Result that makes use of every field, and that nobody had to measure."""

from typing import Any

from explorer.experiment import Experiment
from explorer.result import (
    Array,
    Environment,
    FunctionResult,
    HeadNorms,
    HeadResult,
    JacobianResult,
    PathResult,
    Result,
    Seconds,
)


def result(number: float = 0.5, **changes: Any) -> Result:
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
            method="dense",
        ),
        "notes": ("a note",),
    }
    return Result(**(parts | changes))
