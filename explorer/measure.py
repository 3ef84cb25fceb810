"""Time and saved bytes of one execution, and the statistics of many.

The clock is torch.utils.benchmark's, which waits for an accelerator's queue; the statistics and
the warnings about noise are its Measurement's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor
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


class Saved:
    """Bytes that autograd holds for backward: `size` is the most at one time so far."""

    def __init__(self) -> None:
        self.size = 0
        self._held: dict[int, int] = {}  # storage address → how many saved tensors share it
        self._now = 0

    def hold(self, tensor: Tensor) -> _Held:
        return _Held(tensor, self)

    def add(self, storage: torch.UntypedStorage) -> None:
        address = storage.data_ptr()
        if self._held.setdefault(address, 0) == 0:
            self._now += storage.nbytes()
            self.size = max(self.size, self._now)
        self._held[address] += 1

    def remove(self, storage: torch.UntypedStorage) -> None:
        address = storage.data_ptr()
        self._held[address] -= 1
        if self._held[address] == 0:
            self._now -= storage.nbytes()
            del self._held[address]


class _Held:
    """A tensor saved for backward; autograd drops it together with the graph."""

    def __init__(self, tensor: Tensor, saved: Saved) -> None:
        # Cut off from its graph, or an output that is saved and its graph would keep each other.
        self.tensor = tensor.detach()
        self._storage = tensor.untyped_storage()
        self._saved = saved
        saved.add(self._storage)

    def __del__(self) -> None:
        self._saved.remove(self._storage)


@contextmanager
def saved_bytes() -> Iterator[Saved]:
    """Counts what autograd saves in the block, storages that tensors share once.

    Of several graphs one after the other, the largest counts, not their sum.
    """
    saved = Saved()
    with torch.autograd.graph.saved_tensors_hooks(saved.hold, lambda held: held.tensor):
        yield saved
