"""What the files of a Result or a Flow are called."""

from __future__ import annotations

import re

from explorer.events import Seen
from explorer.flow.result import Flow


def stem(seen: Seen) -> str:
    """The name without its ending: `explorer-matrix_exp_trace-200`, or of a Flow
    `explorer-flow-tanh-32` with its cell and size, of steps of one's own `explorer-flow`.

    Of a function's name only letters, digits, `_`, `.` and `-` are kept.
    """
    if not isinstance(seen, Flow):
        parts = ["explorer", seen.experiment.function, str(seen.experiment.size)]
    elif seen.experiment is None:
        parts = ["explorer", "flow"]
    else:
        parts = ["explorer", "flow", seen.experiment.cell, str(seen.experiment.size)]
    return re.sub(r"[^\w.-]+", "-", "-".join(parts), flags=re.ASCII)
