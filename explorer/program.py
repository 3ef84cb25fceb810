"""A child process started as a program of its own, where multiprocessing may have none.

multiprocessing lets a daemonic process, such as a worker of Dask's, have no children. This stands
in for the part of its context that `explorer.worker` uses; torch is imported anew in every child.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

_CODE = "from explorer.program import main; main()"


class Context:
    """What `explorer.worker.Run` needs of a context of multiprocessing."""

    Pipe = staticmethod(multiprocessing.Pipe)

    def get_start_method(self) -> str:
        return "program"

    def Process(self, *, target: Callable[..., None], args: Any, daemon: bool) -> Program:
        return Program(target, args)


class Program:
    """A process that calls `target` with a connection and further arguments, which pickle."""

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...]) -> None:
        connection, *rest = args
        self._connection: Connection = connection
        self._task = pickle.dumps((target, rest))
        self._popen: subprocess.Popen[bytes] | None = None
        self.sentinel, self._alive = os.pipe()  # whose end tells that the process has ended

    def start(self) -> None:
        handle = self._connection.fileno()
        self._popen = subprocess.Popen(
            [sys.executable, "-c", _CODE, str(handle)],
            stdin=subprocess.PIPE,
            pass_fds=(handle, self._alive),
        )
        os.close(self._alive)
        assert self._popen.stdin is not None
        with self._popen.stdin as task:
            task.write(self._task)

    @property
    def pid(self) -> int | None:
        return None if self._popen is None else self._popen.pid

    @property
    def exitcode(self) -> int | None:
        """As multiprocessing has it: minus the number of the signal that ended it."""
        return None if self._popen is None else self._popen.poll()

    def kill(self) -> None:
        if self._popen is not None:
            self._popen.kill()

    def join(self) -> None:
        if self._popen is not None:
            self._popen.wait()
        if self.sentinel >= 0:
            os.close(self.sentinel)
            self.sentinel = -1


def main() -> None:
    """The program: the connection is the descriptor that its argument names."""
    connection = Connection(int(sys.argv[1]))
    target, rest = pickle.load(sys.stdin.buffer)
    target(connection, *rest)
