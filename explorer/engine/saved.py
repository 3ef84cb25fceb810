"""The bytes that autograd saves for backward."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


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
