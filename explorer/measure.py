"""Time of one execution, and the statistics of many.

The clock is torch.utils.benchmark's, which waits for an accelerator's queue; the statistics and
the warnings about noise are its Measurement's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch.utils.benchmark import Measurement, TaskSpec, timer

from explorer.result import Seconds

T = TypeVar("T")

SLOW = 2.0  # seconds from which a first run is its warm-up and a sample in one

# The levels and the words with which torch's Measurement warns.
_NOISE = (
    (0.25, "this suggests significant environmental influence"),
    (0.10, "this could indicate system fluctuation"),
)


def timed(run: Callable[[], T]) -> tuple[float, T]:
    """(wall seconds, result) of one call, with an accelerator's queue empty on both sides."""
    start = timer()
    result = run()
    return timer() - start, result


def statistics(runs: Sequence[float]) -> tuple[Seconds, str]:
    """(median, interquartile range and minimum of the runs; a warning about noise or "")."""
    task = TaskSpec(stmt="", setup="", num_threads=torch.get_num_threads())
    measured = Measurement(number_per_run=1, raw_times=list(runs), task_spec=task)
    noise = ""
    for threshold, meaning in _NOISE:
        if len(runs) > 1 and not measured.meets_confidence(threshold):
            spread = f"{100 * measured.iqr / measured.median:.0f}%"
            noise = f"The interquartile range is {spread} of the median: {meaning}."
            break
    seconds = Seconds(median=measured.median, iqr=measured.iqr, minimum=min(runs), runs=tuple(runs))
    return seconds, noise
