"""What Ctrl-C, SIGTERM and SIGHUP do to a command: they cancel it, from its first moment on.

Imports nothing that takes a while.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

CANCELLED = 130
"""The exit code of a command that was cancelled: 128 and the number of SIGINT."""

Handler = Callable[[int, Any], object]


def handle(act: Handler) -> dict[int, Any]:
    """Has the three signals do this; returns what each did before."""
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]  # Windows has no SIGHUP
    return {number: signal.signal(number, act) for number in numbers}


@contextmanager
def handled(act: Handler) -> Iterator[None]:
    """The same in the block alone."""
    before = handle(act)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_cancelled(number: int, frame: Any) -> NoReturn:
    """Ends the process on the spot.

    An exception would come out in the middle of whatever is being imported, which may hide it,
    change it or print it.
    """
    with suppress(OSError):
        os.write(2, b"Cancelled.\n")  # print is not for a signal that comes in the middle of one
    os._exit(CANCELLED)
