"""What the files of something that was seen are called."""

from __future__ import annotations

import re

from explorer.comparing.comparison import Comparison
from explorer.events import Seen
from explorer.experiment import DEFAULT_FUNCTION
from explorer.flow.result import Flow
from explorer.study.study import Study


def stem(seen: Seen | Comparison) -> str:
    """The name without its ending: `explorer-matrix_exp_trace-200` of a Result, by its function and
    size; `explorer-flow-tanh-32` of a Flow, by its cell and size, of steps of one's own
    `explorer-flow`; `explorer-sweep-matrix_exp_trace-size-heads` of a Study, by its function and
    axes; `explorer-comparison`.

    Of a function's name only letters, digits, `_`, `.` and `-` are kept.
    """
    return re.sub(r"[^\w.-]+", "-", "-".join(("explorer", *_parts(seen))), flags=re.ASCII)


def _parts(seen: Seen | Comparison) -> tuple[str, ...]:
    if isinstance(seen, Comparison):
        return ("comparison",)
    if isinstance(seen, Study):
        axes = tuple(axis.name for axis in seen.axes)
        named = () if "function" in axes else (seen.given.get("function", DEFAULT_FUNCTION),)
        return ("sweep", *named, *axes)
    if not isinstance(seen, Flow):
        return seen.experiment.function, str(seen.experiment.size)
    if seen.experiment is None:
        return ("flow",)
    return "flow", seen.experiment.cell, str(seen.experiment.size)
