"""Flow → one long table as CSV: a row for each state, each loss at it, and each timed run."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.delimited import ENVIRONMENT, Row, environment, placed, runs
from explorer.flow.result import Flow

COLUMNS = (
    *("record", "t", "loss", "gradient_norm", "step", "step_norm", "bound"),
    *("largest", "upper_quartile", "median", "lower_quartile", "smallest"),
    *("way", "run", "seconds", "difference"),
    *("cell", "start", "gain", "size", "steps", "input_scale", "dtype", "device", "seed"),
    *("samples", *ENVIRONMENT),
)
"""The columns of the table."""


def to_csv(flow: Flow) -> str:
    """The table; `explorer.rows.to_csv` says what stands in it."""
    return placed(COLUMNS, _rows(flow), {**_setting(flow), **environment(flow.environment)})


def _setting(flow: Flow) -> Row:
    """Of steps of one's own only what there is to know."""
    names = ("cell", "start", "gain", "size", "input_scale", "device", "seed")
    chosen = {name: getattr(flow.experiment, name, None) for name in names}
    return {**chosen, "steps": len(flow.steps), "dtype": flow.dtype, "samples": flow.samples}


def _rows(flow: Flow) -> Iterator[Row]:
    for loss, norms in flow.gradients.items():
        for t, norm in enumerate(norms):
            yield {"record": "gradient", "t": t, "loss": loss, "gradient_norm": norm}
    steps = ({}, *({"step": name, "step_norm": norm}
                   for name, norm in zip(flow.names, flow.steps, strict=True)))  # fmt: skip
    singular = {}
    if flow.fan is not None:
        fan = flow.fan
        rows = zip(fan.largest, fan.upper, fan.median, fan.lower, fan.smallest, strict=True)
        names = ("largest", "upper_quartile", "median", "lower_quartile", "smallest")
        singular = {t: dict(zip(names, row, strict=True))
                    for t, row in zip(fan.times, rows, strict=True)}  # fmt: skip
    for t, (step, bound) in enumerate(zip(steps, flow.bound, strict=True)):
        yield {"record": "state", "t": t, "bound": bound, **step, **singular.get(t, {})}
    if flow.ways is not None:
        yield {"record": "ways", "difference": flow.ways.difference}
        for way in ("naive", "jacobians", "chain"):
            yield from runs({"record": "run", "way": way}, getattr(flow.ways, way))
