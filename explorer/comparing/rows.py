"""Comparison → one table as CSV: a row for each path, and each head's gradient, of each Result."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.comparing.comparison import Comparison
from explorer.delimited import ENVIRONMENT, Row, environment, placed

COLUMNS = (
    *("record", "result", "path", "head", "against", "ratio", "ratio_low", "ratio_high", "p"),
    *("runs", "runs_against", "median_seconds", "wrong", "distance"),
    *("function", "size", "dtype", "device", "compile", "seed"),
    *ENVIRONMENT,
)
"""The columns of the table."""


def to_csv(comparison: Comparison) -> str:
    """The table; a path or a head that is not compared in a Result has no `ratio`, `distance`."""
    return placed(COLUMNS, _rows(comparison), {})


def _rows(comparison: Comparison) -> Iterator[Row]:
    for name, result in comparison.results.items():
        seen = result.experiment
        same: Row = {
            "result": name,
            "function": seen.function,
            "size": seen.size,
            "dtype": seen.dtype,
            "device": seen.device,
            "compile": "on" if seen.compile else "off",
            "seed": seen.seed,
            **environment(result.environment),
        }
        for path, each in result.paths.items():
            ratio = comparison.ratios.get(path, {}).get(name)
            yield {
                **same,
                "record": "path",
                "path": path,
                "median_seconds": each.seconds and each.seconds.median,
                "runs": each.seconds and len(each.seconds.runs),
                "wrong": "yes" if path in comparison.wrong.get(name, ()) else "no",
                "against": ratio and ratio.against,
                "ratio": ratio and ratio.value,
                "ratio_low": ratio and ratio.low,
                "ratio_high": ratio and ratio.high,
                "p": ratio and ratio.p,
                "runs_against": ratio and ratio.runs[1],
            }
        for head in result.heads:
            distance = comparison.gradients.get(head, {}).get(name)
            yield {
                **same,
                "record": "gradient",
                "head": head,
                "path": distance and distance.path,
                "against": distance and distance.against,
                "distance": distance and distance.value,
            }
