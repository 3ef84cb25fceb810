"""Memory of this process and of this machine: what is there, a limit on it, the peak of a run.

Sizes are in bytes. Where a system cannot tell, the answer is None, never a guess.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")


def available() -> int:
    """Bytes that a new process can take: what the machine has free, or its container if less."""
    free = int(psutil.virtual_memory().available)
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        used = int((_CGROUP / "memory.current").read_text())
        statistics = (_CGROUP / "memory.stat").read_text()
    except OSError:  # no container, or another kind
        return free
    if limit == "max":
        return free
    # Files that were read and may be dropped count as used until memory is asked for.
    cached = dict(line.split() for line in statistics.splitlines()).get("inactive_file", "0")
    return min(free, max(0, int(limit) - used + int(cached)))


def limit(size: int) -> None:
    """Lets this process take at most `size` bytes more than it has, where the system can.

    Beyond that an allocation fails with an error, in the place of the system killing a process.
    """
    if sys.platform != "linux":
        return
    import resource

    # RLIMIT_DATA counts what is really allocated; RLIMIT_AS would count libraries and thread
    # stacks that are only reserved.
    have = _status("VmData")
    if have is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = have + size if hard == resource.RLIM_INFINITY else min(hard, have + size)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


class Peak:
    """The peak of a run, filled in when the `with` block of `peak` ends."""

    size: int | None = None


@contextmanager
def peak(device: str) -> Iterator[Peak]:
    """The most memory that the block takes above what was there at its start.

    On a CUDA device its allocator's own count; on the CPU, on Linux, the high-water mark of the
    resident set after a reset. That reproduces to some 15% above 100 MB and says little below
    20 MB, where the C library serves from what it keeps.
    """
    found = Peak()
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)
        start = torch.cuda.memory_allocated(device)
        yield found
        found.size = int(torch.cuda.max_memory_allocated(device) - start)
        return
    if device != "cpu" or not _reset_high_water_mark():
        yield found
        return
    before = _status("VmRSS")
    yield found
    after = _status("VmHWM")
    if before is not None and after is not None:
        found.size = max(0, after - before)


def _reset_high_water_mark() -> bool:
    """Gives free memory back to the system, then lets VmHWM start at what is resident now."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError, TypeError):
        return False
    return True


def _status(key: str) -> int | None:
    """A size in bytes from Linux's /proc/self/status, None where there is none."""
    try:
        text = Path(f"/proc/{os.getpid()}/status").read_text()
    except OSError:
        return None
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * 1024
    return None
