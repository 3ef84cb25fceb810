"""One measurement at a time on a machine, whoever asks: a queue made of file locks.

Two measurements at once spoil each other's times. Each process that wants to measure holds a
ticket, a locked file named by the time it came; the system frees the lock of a process that
dies, however it dies, so that a ticket never outlives its holder.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

_POLL = 0.05  # seconds between two looks at the queue


def folder() -> Path:
    """Where the tickets lie: one folder for all users of the machine, if they can share one."""
    shared = Path(tempfile.gettempdir()) / "explorer-queue"
    with suppress(OSError):
        shared.mkdir(exist_ok=True)
        shared.chmod(0o777)  # another user's mkdir leaves it so, and ours fails harmlessly
    if os.access(shared, os.R_OK | os.W_OK | os.X_OK):
        return shared
    own = Path(tempfile.gettempdir()) / f"explorer-queue-{os.getuid()}"
    own.mkdir(exist_ok=True)
    return own


@contextmanager
def turn(waiting: Callable[[int], None]) -> Iterator[None]:
    """Waits until no one else measures on this machine, and holds the others off in the block.

    `waiting` is called with the place in the queue, 1 for the next to run, whenever it changes.
    """
    queue = folder()
    name = f"{time.time_ns():020d}-{os.getpid()}.ticket"
    ticket, machine = _lock(queue / name), _lock(queue / "machine.lock")
    ticket.acquire()
    try:
        told = 0
        while True:
            place = sum(_is_held(other) for other in queue.glob("*.ticket") if other.name < name)
            # Two tickets taken at one moment may both see no one before them; this lock decides.
            if place == 0 and _try(machine):
                break
            if max(place, 1) != told:
                told = max(place, 1)
                waiting(told)
            time.sleep(_POLL)
        try:
            yield
        finally:
            machine.release()
    finally:
        ticket.release()
        (queue / name).unlink(missing_ok=True)


def _lock(path: Path) -> FileLock:
    return FileLock(path, mode=0o666)


def _try(lock: FileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True


def _is_held(ticket: Path) -> bool:
    """Whether a ticket's holder is alive; the ticket of one that died is thrown away."""
    lock = _lock(ticket)
    if not _try(lock):
        return True
    lock.release()
    ticket.unlink(missing_ok=True)
    return False
