"""Result → plotly figures: time, passes through f, accuracy, spectral norms, and the scaling.

A figure needs a Result alone, finished or partial, and fits from 360 px to a projector. Colour,
marker and dash stand for a path, the same in every figure.
"""

from __future__ import annotations

import plotly.graph_objects as go

from explorer import sentences
from explorer.figures import accuracy, jacobian, paths, scaling
from explorer.result import Result


def figures(
    result: Result, relative_to: str = "", slower: float = 1.0
) -> dict[str, go.Figure]:
    """The figures by name, in the order they are shown: time, passes, accuracy, norms; what else
    there is of the Jacobians; and two of every scaling, `scaling-heads-passes` and
    `scaling-heads-time`.

    The times of a scaling are in seconds, or relative to those of a path; its lines are of an f
    that takes `slower` times as long as the measured one.
    """
    drawn = {
        "time": paths.time(result),
        "passes": paths.passes(result),
        "accuracy": accuracy.accuracy(sentences.few(result)),
        "norms": jacobian.norms(sentences.few(result)),
        **jacobian.further(sentences.few(result)),
    }
    times = scaling_times(result, relative_to, slower)
    for along, found in result.scaling.items():
        drawn[f"scaling-{along}-passes"] = scaling.passes(found)
        drawn[f"scaling-{along}-time"] = times[f"scaling-{along}-time"]
    return drawn


def scaling_times(result: Result, relative_to: str, slower: float) -> dict[str, go.Figure]:
    """Of the figures those that a slower f changes."""
    return {
        f"scaling-{along}-time": scaling.time(result, found, relative_to, slower)
        for along, found in result.scaling.items()
    }
