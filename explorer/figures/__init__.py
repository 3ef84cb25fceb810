"""Result → plotly figures: time, passes through f, accuracy, spectral norms, and the scaling.

A figure needs a Result alone, finished or partial, and fits from 360 px to a projector. Colour,
marker and dash stand for a path, the same in every figure.
"""

from __future__ import annotations

import plotly.graph_objects as go

from explorer import sentences
from explorer.figures import accuracy, jacobian, paths, scaling
from explorer.result import Result


def figures(result: Result, relative_to: str = "") -> dict[str, go.Figure]:
    """The figures by name, in the order they are shown: time, passes, accuracy, norms; what else
    there is of the Jacobians; and two of every scaling, `scaling-heads-passes` and
    `scaling-heads-time`.

    The times of a scaling are in seconds, or relative to those of a path.
    """
    drawn = {
        "time": paths.time(result),
        "passes": paths.passes(result),
        "accuracy": accuracy.accuracy(sentences.few(result)),
        "norms": jacobian.norms(sentences.few(result)),
        **jacobian.further(sentences.few(result)),
    }
    for along, found in result.scaling.items():
        drawn[f"scaling-{along}-passes"] = scaling.passes(found)
        drawn[f"scaling-{along}-time"] = scaling.time(result, found, relative_to)
    return drawn
