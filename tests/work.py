"""Work for a process of its own, and a look at the processes there are."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import psutil

from explorer import memory
from explorer.events import Done, Event, Partial, Progress, Queued
from explorer.experiment import Experiment
from explorer.turn import turn
from explorer.worker import Run, Worker, _experiment
from tests.results import every_field

Send = Callable[[Event], None]


def run_of(work: Callable[..., None], *arguments: Any) -> Run:
    """The work in a process like that of an experiment."""
    return Run(Worker()._context, work, arguments)


def last(run: Run) -> Event:
    """The event that a run ends with."""
    *_, event = run.events()
    return event


def exit_with(send: Send, code: int) -> None:
    os._exit(code)


def die_of(send: Send, number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


def send_a_part_and_die(send: Send) -> None:
    send(Partial(every_field(status="running")))
    die_of(send, signal.SIGSEGV)


def send_a_part_and_raise(send: Send) -> None:
    send(Partial(every_field(status="running")))
    raise ValueError("halfway")


def tell_the_limit(send: Send, experiment: Experiment, limit: int | None) -> None:
    """Runs an experiment, then tells in a Progress what limit on its memory that had set."""
    import resource

    _experiment(lambda event: None, b"", experiment.to_json(), False, False, limit)
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    send(Progress("limit", -1.0 if soft == resource.RLIM_INFINITY else float(soft)))
    send(Done(every_field()))


def raise_error(send: Send, error: BaseException) -> None:
    raise error


def allocate(send: Send, limit: int, size: int) -> None:
    import torch

    memory.limit(limit)
    torch.ones(size, dtype=torch.uint8)
    send(Done(every_field()))


def take_long(send: Send, remaining: float | None) -> None:
    send(Progress("one long step", remaining))
    time.sleep(60)


def exponentiate(send: Send, done: Path) -> None:
    """One matrix exponential of many seconds; a file tells that it came to its end."""
    import torch

    send(Progress("exponential", None))
    torch.matrix_exp(torch.full((3000, 3000), 1e6, dtype=torch.float64))  # some 40 products
    done.touch()
    send(Done(every_field()))


def tell_of_interrupts(send: Send) -> None:
    """Tells in Progresses how this process takes Ctrl-C."""
    blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    send(Progress("blocked" if blocked else "not blocked", None))
    send(Progress(str(signal.getsignal(signal.SIGINT) == signal.SIG_IGN), None))
    send(Done(every_field()))


def keep_the_interpreter(send: Send) -> None:
    """A computation that lets no other thread of its process run."""
    send(Progress("one forward pass", None))
    pow(3, 10**9)


def take_turn(send: Send, log: Path, until: Path) -> None:
    """Tells the log when it had its turn, which it keeps until a file is there."""
    with turn(lambda place: send(Queued(place))):
        send(Progress("turn", None))
        with log.open("a") as file:
            print("begin", os.getpid(), file=file)
        while not until.exists():
            time.sleep(0.01)
        with log.open("a") as file:
            print("end", os.getpid(), file=file)
    send(Done(every_field()))


def workers() -> list[psutil.Process]:
    """The processes of runs: the children of this process's fork server."""
    server: int | None = getattr(forkserver._forkserver, "_forkserver_pid")  # noqa: B009
    return psutil.Process(server).children(recursive=True) if server else []


def session(leader: int) -> list[psutil.Process]:
    """The processes of a session, which outlast the one that leads it."""
    left = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
    return left


def handles(process: int, number: int) -> bool:
    """Whether a process has a handler for the signal; Linux only."""
    status = Path(f"/proc/{process}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (number - 1) & 1)


def soon(condition: Callable[[], object], seconds: float = 10) -> bool:
    """Whether it holds within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.03)  # a look at all processes takes milliseconds, of a busy core
    return bool(condition())


def until(events: Iterator[Event], wanted: Event | str) -> Event:
    """Reads to the first event that is this one, or the Progress of this text."""
    for event in events:
        if event == wanted or getattr(event, "text", None) == wanted:
            return event
    raise AssertionError(f"the events ended without {wanted}")
