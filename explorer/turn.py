"""One measurement at a time on a machine, whoever asks: a queue made of file locks.

Two measurements at once spoil each other's times. Each process that wants to measure holds a
ticket, a locked file named by the time it came; the system frees the lock of a process that
dies, however it dies, so that a ticket never outlives its holder.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

_POLL = 0.05  # seconds between two looks at the queue


def folder() -> Path:
    """Where the tickets lie: one folder for all users of the machine, if they can share one.

    Raises:
        RuntimeError: there is none that can be used; the message says what to do.
    """
    place = Path(tempfile.gettempdir())
    shared, own = place / "explorer-queue", place / f"explorer-queue-{_user()}"
    if _owner(shared, 0o777) is not None and os.access(shared, os.R_OK | os.W_OK | os.X_OK):
        return shared
    if _owner(own, 0o700) == _user():
        return own
    raise RuntimeError(
        f"The queue has no place: neither {shared} nor {own} is a folder that may be used. "
        "Remove them, or set TMPDIR to a folder of your own."
    )


def _owner(folder: Path, mode: int) -> int | None:
    """Whose folder it is; made, with this mode, if nothing is there; None for what is no folder.

    Anyone can put a link there, which leads to what is no business of ours: it is not followed.
    """
    try:
        with suppress(FileExistsError):
            folder.mkdir()
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            return None
        if found.st_uid == _user():
            folder.chmod(mode)  # mkdir leaves out what the umask names
    except OSError:
        return None
    return found.st_uid


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0  # as lstat says on Windows


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
