"""An experiment in a process of its own: submit it, receive its events, cancel it at once.

The process comes from a fork server that has torch imported, so that it starts in milliseconds.
Its memory is its own, a crash takes nothing else along, and it ends when its parent does, by
whatever signal. Importing this module imports no torch.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from explorer import memory, place, program, sending
from explorer.events import (
    Cancelled,
    Device,
    Done,
    Ending,
    Event,
    Failed,
    Found,
    Linearized,
    Partial,
    Progress,
    Queued,
    Seen,
    Trial,
    Tried,
)
from explorer.experiment import Experiment, InvalidExperiment
from explorer.flow.experiment import FlowExperiment
from explorer.flow.result import Flow
from explorer.result import Result
from explorer.turn import turn

# What a fresh process would otherwise import first. torch imports the last two at the first
# cotangent, vmap or jvp, in each process anew, for 0.5 to 3 s of its first result. Here they delay
# the start by 0.5 to 1 s, once, and the very first result comes sooner all the same.
_PRELOAD = [
    *("torch", "explorer.execute", "explorer.worker"),
    *("torch._dynamo", "torch._decomp.decompositions_for_jvp"),
]

T = TypeVar("T")

_PR_SET_PDEATHSIG = 1  # of Linux's <sys/prctl.h>


def _context() -> Any:
    """multiprocessing's forkserver with torch in it; spawn where the system has no fork; programs
    where this process may have no children of multiprocessing."""
    if multiprocessing.current_process().daemon:
        return program.Context()
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    return context


def _start_fork_server() -> None:
    """Starts it, or does nothing if it runs; torch is imported while the caller goes on.

    A terminal sends Ctrl-C to every process. The fork server ignores it, but only once torch is
    imported; until then the signal is blocked, as it inherits from the thread that starts it.
    """
    from multiprocessing import forkserver, resource_tracker  # absent where spawn is used

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        resource_tracker.ensure_running()  # else the start below starts this, and unblocks
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Worker:
    """Runs experiments, each in a process of its own; any number of them may be submitted.

    Args:
        memory_limit: bytes that one experiment may take, by default what the machine has free.
    """

    def __init__(self, memory_limit: int | None = None) -> None:
        self._limit = memory_limit
        self._context = _context()
        if self._context.get_start_method() == "forkserver":
            _start_fork_server()

    def submit(
        self, experiment: Experiment | FlowExperiment, *, full: bool = False, keep: bool = False
    ) -> Run:
        """The experiment, to be run as its events are asked for.

        `full` lists gradients of any size entry by entry; with `keep` a Linearized is among the
        events, for `try_heads`, where dy/dx becomes known.
        """
        if isinstance(experiment, FlowExperiment):
            return Run(self._context, _flow, (experiment, self._limit))
        try:
            packed = sending.pack(experiment)
        except InvalidExperiment as error:
            return Run(self._context, _refused, (error,))
        arguments = (packed, experiment.to_json(), full, keep, self._limit)
        return Run(self._context, _experiment, arguments)

    def try_heads(self, linearized: Linearized, entries: Sequence[str]) -> dict[str, Trial | str]:
        """What heads give at the y of a run, by the dy/dx that it found: f is not called.

        Raises:
            RuntimeError: the process failed; the message says how.
        """
        return self._ask(_try, (linearized.data, tuple(entries)), Tried).trials

    def devices(self) -> tuple[Device, ...]:
        """The devices that torch finds here, asked of a process of its own.

        Raises:
            RuntimeError: the process failed; the message says how.
        """
        return self._ask(_devices, (), Found).devices

    def _ask(self, work: Callable[..., None], arguments: tuple[Any, ...], answer: type[T]) -> T:
        """The one answer that a process sends."""
        event: object
        for event in Run(self._context, work, arguments).events():
            if isinstance(event, answer):
                return event
            if isinstance(event, Failed):
                raise RuntimeError(event.message)
        raise RuntimeError("the process ended without an answer")


class Run:
    """One piece of work in a process of its own. One thread reads `events`; any may `cancel`."""

    def __init__(self, context: Any, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._receiver, self._sender = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_child, args=(self._sender, work, arguments), daemon=True
        )
        self._started = threading.Event()
        self._cancelled = threading.Event()
        # Reentrant: a signal handler that cancels may itself be interrupted by another that does.
        self._lock = threading.RLock()
        self._problem: Exception | None = None

    def cancel(self) -> None:
        """Ends the process at once, whatever it is in; the last event is then Cancelled."""
        with self._lock:
            self._cancelled.set()
            self._kill()

    def events(self, heartbeat: float | None = None) -> Iterator[Event]:
        """Starts the work and yields what it reports; the last event is an Ending.

        With a `heartbeat` in seconds, the last Progress comes again as often, its remaining time
        counted down, while the work is in one long step; while it waits, the last Queued does.
        """
        # The first start of all waits for the fork server to import torch. A cancel does not.
        threading.Thread(target=self._start, daemon=True).start()
        while not self._started.wait(0.02):
            if self._cancelled.is_set():
                yield Cancelled(None)
                return
        if self._problem is not None:
            what = f"{type(self._problem).__name__}: {self._problem}"
            # A signal to all processes, on which the reader cancels, may end the fork server too.
            cancelled = self._cancelled.is_set()
            message = f"The run could not be started. {what}"
            yield Cancelled(None) if cancelled else Failed("crash", message, {})
            return
        result: Seen | None = None
        beat: Progress | Queued = Progress("starting", None)
        try:
            while True:
                if not wait([self._receiver, self._process.sentinel], heartbeat):
                    if isinstance(beat, Progress):
                        beat = beat.later(heartbeat or 0.0)
                    yield beat
                    continue
                event = self._next(result)
                if isinstance(event, Partial):
                    result = event.result
                elif isinstance(event, (Progress, Queued)):
                    beat = event
                yield event
                if isinstance(event, Ending):
                    return
        finally:  # a reader that stops early, too, leaves nothing running
            self._kill()
            self._process.join()
            self._receiver.close()

    def _start(self) -> None:
        try:
            self._process.start()
        except Exception as error:  # told by `events`, which waits for this thread
            self._problem = error
        self._sender.close()  # or the end of the process would not end the pipe
        with self._lock:
            self._started.set()
            if self._cancelled.is_set():
                self._kill()

    def _kill(self) -> None:
        if self._process.pid is not None:  # it has started
            self._process.kill()

    def _next(self, result: Seen | None) -> Event:
        """What the process sends next, or how it ended."""
        try:
            # A cancelled run has nothing more to say: what it sent before is dropped.
            if self._receiver.poll() and not self._cancelled.is_set():
                event: Event = self._receiver.recv()
                if isinstance(event, Failed):
                    return replace(event, message=place.told(event), result=result)
                return event
        except (EOFError, OSError):
            pass
        self._process.join()
        if self._cancelled.is_set():
            ended = result and result.model_copy(update={"status": "cancelled"})
            return Cancelled(ended)
        return _died(self._process.exitcode, result)


def _died(code: int | None, result: Seen | None) -> Failed:
    """A process that ended without a word: the system's killing, or a crash in native code."""
    if code == -signal.SIGKILL:
        return Failed(
            "memory",
            "The system killed the run, as it does when memory is short. "
            "Choose a smaller size, or float32.",
            {},
            result,
        )
    how = f"exit code {code}"
    if code is not None and code < 0:
        how = f"signal {signal.Signals(-code).name}"
    return Failed(
        "crash", f"The run crashed ({how}). Nothing else is affected; run it again.", {}, result
    )


# What runs in the process.


def _child(connection: Connection, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, who then cancels
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked in the fork server
    _end_with_parent(connection)

    def send(event: Event) -> None:
        try:
            connection.send(event)
        except OSError:  # no one reads any more, and no one is to be told
            os._exit(1)

    try:
        work(send, *arguments)
    except InvalidExperiment as error:
        send(Failed("invalid", str(error), error.problems))
    except MemoryError:
        send(_out_of_memory())
    except BaseException as error:  # sys.exit() and KeyboardInterrupt, too, are a person's own
        send(_failed(error))


def _refused(send: Callable[[Event], None], error: InvalidExperiment) -> None:
    raise error


def _experiment(
    send: Callable[[Event], None],
    packed: bytes,
    plain: dict[str, Any],
    full: bool,
    keep: bool,
    memory_limit: int | None,
) -> None:
    sending.unpack(packed)  # before the experiment, which names what is in it
    experiment = Experiment.from_json(plain)

    def events() -> Iterator[Progress | Linearized | Result]:
        from explorer.execute import execute

        return execute(experiment, full=full, keep=keep, memory_limit=memory_limit)

    _measure(send, events, memory_limit)


def _flow(
    send: Callable[[Event], None], experiment: FlowExperiment, memory_limit: int | None
) -> None:
    def events() -> Iterator[Progress | Flow]:
        from explorer.flow.compute import execute_flow

        return execute_flow(experiment, memory_limit=memory_limit)

    _measure(send, events, memory_limit)


def _measure(
    send: Callable[[Event], None],
    events: Callable[[], Iterator[Progress | Linearized | Result | Flow]],
    memory_limit: int | None,
) -> None:
    """Sends on what a run yields, when it has its turn; the last Result or Flow is what it did."""
    with turn(lambda place: send(Queued(place))):
        # What the engine warns of is among the result's notes; what f warns of, its own business.
        warnings.filterwarnings("ignore", category=UserWarning, module="explorer")
        memory.limit(memory.available() if memory_limit is None else memory_limit)
        result: Seen | None = None
        for seen in events():
            if isinstance(seen, (Result, Flow)):
                result = seen
                send(Partial(seen))
            else:
                send(seen)
        assert result is not None  # it ends with one
        send(Done(result))


def _try(send: Callable[[Tried], None], data: bytes, entries: tuple[str, ...]) -> None:
    from explorer.linearization import trials

    send(Tried(trials(data, entries)))


def _devices(send: Callable[[Found], None]) -> None:
    from explorer.devices import devices

    send(Found(devices()))


def _failed(error: BaseException) -> Failed:
    from explorer.execute import DoesNotFit

    if isinstance(error, DoesNotFit):
        return Failed("refused", str(error), {})
    # torch raises plain RuntimeErrors for a failed allocation on the CPU, a subclass on a GPU.
    text = str(error)
    if "allocate memory" in text or "out of memory" in text or "not enough memory" in text:
        return _out_of_memory()
    told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return Failed("error", told, {}, place=place.of(error))


def _out_of_memory() -> Failed:
    return Failed(
        "memory",
        "The run ran out of memory and was ended. Choose a smaller size, or float32.",
        {},
    )


def _end_with_parent(connection: Connection) -> None:
    """Makes this process end when its parent does, by whatever signal the parent ended."""

    def watch() -> None:
        try:
            connection.recv()  # the parent never sends: this returns when its end closes
        except (EOFError, OSError):
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if sys.platform == "linux":
        # For code that never lets the thread above run. The fork server ends when the last
        # holder of its "alive" pipe does, and then this process is killed with it; so the pipe
        # must not be held here.
        from multiprocessing.forkserver import _forkserver

        alive = getattr(_forkserver, "_forkserver_alive_fd", None)
        if alive is not None:
            os.close(alive)
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
