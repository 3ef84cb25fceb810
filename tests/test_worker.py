"""An experiment runs in a process of its own, reports, ends at once, and leaves nothing behind."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from explorer.events import Cancelled, Device, Done, Failed, Partial, Progress, Queued
from explorer.experiment import Experiment
from explorer.flow.experiment import FlowExperiment
from explorer.flow.result import Flow
from explorer.result import Result
from explorer.worker import Worker
from tests import work
from tests.results import every_field
from tests.runs import experiment
from tests.work import last, run_of, soon, until, workers

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
LONG = Experiment(size=1000, repeats=1, paths=("recompute",))


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    assert soon(lambda: not workers()), "a test left a process behind"


# Events.


def test_a_run_reports_its_steps_and_ends_with_its_result() -> None:
    events = list(Worker().submit(experiment()).events())
    *steps, done = events
    assert all(isinstance(step, Progress | Partial) for step in steps)
    parts = [step.result for step in steps if isinstance(step, Partial)]
    assert [len(part.heads["sqrt"].gradient) for part in parts[:3]] == [1, 2, 3]
    assert isinstance(done, Done)
    assert done.result == parts[-1]
    assert done.result.status == "done"
    assert done.result.experiment == experiment()
    assert Result.from_json(done.result.to_json()) == done.result


@pytest.mark.parametrize("full", [False, True])
def test_full_lists_every_entry(full: bool) -> None:
    values = {"function": "tanh_network", "size": 20, "heads": "mean"}
    done = last(Worker().submit(experiment(**values), full=full))
    assert isinstance(done, Done)
    assert isinstance(done.result.heads["mean"].gradient["reuse"], tuple) == full


def test_runs_of_one_worker_may_be_read_from_several_threads() -> None:
    worker = Worker()
    endings: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda seed=seed: endings.append(
                last(worker.submit(experiment(seed=seed, repeats=1)))
            )
        )
        for seed in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ending.result.experiment.seed for ending in endings) == [0, 1, 2]


def test_devices_are_found_in_another_process() -> None:
    first, *_ = Worker().devices()
    assert isinstance(first, Device)
    assert first.name == "cpu" and first.title


def test_heartbeat_repeats_the_last_progress_with_less_time_left() -> None:
    events = run_of(work.take_long, 0.1).events(heartbeat=0.04)
    until(events, "one long step")
    beats = [next(events) for _ in range(4)]
    assert [beat.text for beat in beats if isinstance(beat, Progress)] == ["one long step"] * 4
    left = [beat.remaining for beat in beats if isinstance(beat, Progress)]
    assert left == pytest.approx([0.06, 0.02, 0.0, 0.0])
    events.close()  # type: ignore[attr-defined]


def test_heartbeat_repeats_the_place_in_the_queue(tmp_path: Any) -> None:
    go = tmp_path / "go"
    holder = run_of(work.take_turn, tmp_path / "log", go).events()
    until(holder, "turn")
    events = Worker().submit(experiment()).events(heartbeat=0.05)
    until(events, Queued(1))
    assert [next(events) for _ in range(3)] == [Queued(1)] * 3
    go.touch()
    list(holder)
    assert isinstance(list(events)[-1], Done)


def test_flow_experiment_ends_with_its_flow() -> None:
    chosen = FlowExperiment(size=5, steps=4, repeats=1)
    *steps, done = Worker().submit(chosen).events()
    assert all(isinstance(step, Progress | Partial) for step in steps)
    parts = [step.result for step in steps if isinstance(step, Partial)]
    assert isinstance(done, Done) and isinstance(done.result, Flow)
    assert done.result == parts[-1]
    assert [part.status for part in parts] == ["running"] * (len(parts) - 1) + ["done"]
    assert done.result.experiment == chosen


# Cancel.


def test_cancel_ends_a_long_matrix_exponential_at_once(tmp_path: Path) -> None:
    done = tmp_path / "done"
    run = run_of(work.exponentiate, done)
    events = run.events()
    until(events, "exponential")
    (process,) = workers()
    assert soon(lambda: process.cpu_times().user > 0.5, 60)  # it is in the exponential
    run.cancel()
    assert list(events) == [Cancelled(None)]
    assert not process.is_running()
    assert not done.exists(), "the exponential came to its end"


def test_cancel_keeps_the_paths_that_had_finished() -> None:
    run = Worker().submit(experiment(repeats=1000, size=100))
    events = run.events()
    for event in events:
        if isinstance(event, Partial):
            break
    run.cancel()
    ending = list(events)[-1]
    assert isinstance(ending, Cancelled) and ending.result is not None
    assert ending.result.status == "cancelled"
    assert len(ending.result.heads["square"].gradient) == 1
    assert Result.from_json(ending.result.to_json()) == ending.result


def test_cancel_keeps_what_was_seen_of_a_flow() -> None:
    run = Worker().submit(FlowExperiment(size=20, steps=20, repeats=1000))
    events = run.events()
    for event in events:
        if isinstance(event, Partial):
            break
    run.cancel()
    ending = list(events)[-1]
    assert isinstance(ending, Cancelled) and isinstance(ending.result, Flow)
    assert ending.result.status == "cancelled" and ending.result.ways is None
    assert len(ending.result.gradients["energy"]) == 21


def test_cancel_before_the_start_and_after_the_end() -> None:
    run = Worker().submit(experiment())
    run.cancel()
    assert last(run) == Cancelled(None)
    run = Worker().submit(experiment())
    ending = last(run)
    run.cancel()
    run.cancel()
    assert isinstance(ending, Done)


def test_cancel_of_what_cannot_be_started_is_no_failure() -> None:
    assert isinstance(last(run_of(lambda send: None)), Failed)  # now the fork server is up
    run = run_of(lambda send: None)
    run.cancel()
    assert last(run) == Cancelled(None)


def test_cancel_from_another_thread_and_while_queued(tmp_path: Any) -> None:
    holder = run_of(work.take_turn, tmp_path / "log", tmp_path / "go")
    held = holder.events()
    until(held, "turn")
    run = Worker().submit(experiment())
    events = run.events()
    assert next(events) == Queued(1)
    threading.Timer(0.05, run.cancel).start()
    assert list(events) == [Cancelled(None)]
    holder.cancel()
    list(held)


def test_reader_that_stops_early_stops_the_run() -> None:
    events = Worker().submit(LONG).events()
    until(events, "one forward pass")
    (process,) = workers()
    events.close()  # type: ignore[attr-defined]
    assert soon(lambda: not process.is_running())


# Failures take nothing else along.


@pytest.mark.parametrize(
    "what, arguments, kind, words",
    [
        (work.exit_with, (3,), "crash", "exit code 3"),
        (work.exit_with, (0,), "crash", "exit code 0"),
        (work.die_of, (signal.SIGSEGV,), "crash", "signal SIGSEGV"),
        (work.die_of, (signal.SIGABRT,), "crash", "signal SIGABRT"),
        (work.die_of, (signal.SIGKILL,), "memory", "The system killed the run"),
        (work.raise_error, (ValueError("no such"),), "error", "ValueError: no such"),
        (work.raise_error, (SystemExit(5),), "error", "SystemExit: 5"),
        (work.raise_error, (KeyboardInterrupt(),), "error", "KeyboardInterrupt"),
        (work.raise_error, (MemoryError(),), "memory", "ran out of memory"),
        (work.allocate, (200 * 10**6, 10**9), "memory", "ran out of memory"),
    ],
)
@posix
def test_failure_is_reported_as_what_it_is(
    what: Any, arguments: tuple[Any, ...], kind: str, words: str
) -> None:
    ending = last(run_of(what, *arguments))
    assert isinstance(ending, Failed)
    assert ending.kind == kind and words in ending.message
    assert ending.problems == {} and ending.result is None


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("limit", [None, 10**9])
def test_experiment_has_a_limit_on_its_memory(limit: int | None) -> None:
    told = until(run_of(work.tell_the_limit, experiment(), limit).events(), "limit")
    assert isinstance(told, Progress) and told.remaining is not None
    assert told.remaining > (0 if limit is None else limit)


def test_allocation_within_the_limit_is_no_failure() -> None:
    assert isinstance(last(run_of(work.allocate, 200 * 10**6, 10**7)), Done)


@posix
@pytest.mark.parametrize(
    "what, kind", [(work.send_a_part_and_die, "crash"), (work.send_a_part_and_raise, "error")]
)
def test_failure_keeps_what_had_finished(what: Any, kind: str) -> None:
    ending = last(run_of(what))
    assert isinstance(ending, Failed) and ending.kind == kind
    assert ending.result == every_field(status="running")


def test_work_that_cannot_be_started_is_reported() -> None:
    ending = last(run_of(lambda send: None))  # which no other process can be told of
    assert isinstance(ending, Failed)
    assert ending.message.startswith("The run could not be started. ")


def test_worker_goes_on_after_a_crash() -> None:
    worker = Worker()
    assert isinstance(last(run_of(work.exit_with, 1)), Failed)
    assert isinstance(last(worker.submit(experiment())), Done)


def test_device_that_is_not_there_is_invalid() -> None:
    ending = last(Worker().submit(experiment(device="cuda:99")))
    assert isinstance(ending, Failed) and ending.kind == "invalid"
    assert ending.problems.keys() == {"device"}
    assert "Allowed: cpu" in ending.problems["device"]


def test_experiment_that_cannot_fit_is_refused() -> None:
    ending = last(Worker(memory_limit=10**8).submit(LONG))
    assert isinstance(ending, Failed) and ending.kind == "refused"
    assert "needs about" in ending.message and "Choose a smaller size" in ending.message


def test_flow_experiment_that_cannot_fit_is_refused() -> None:
    ending = last(Worker(memory_limit=10**8).submit(FlowExperiment()))
    assert isinstance(ending, Failed) and ending.kind == "refused"
    assert ending.message.startswith("tanh of hidden size 32 over 40 steps in float64 needs about")


def test_events_survive_the_way_between_processes() -> None:
    for event in (
        Queued(2),
        Progress("x", None),
        Done(every_field()),
        Failed("crash", "m", {"a": "b"}),
    ):
        assert pickle.loads(pickle.dumps(event)) == event


# Ctrl-C, which a terminal sends to all processes, is the parent's.

INTERRUPTED = """
import os, signal, threading
from multiprocessing import forkserver
from explorer.worker import Worker
from tests.work import handles, soon

def mask():
    return signal.pthread_sigmask(signal.SIG_BLOCK, ())

def make():
    signal.pthread_sigmask(signal.SIG_SETMASK, {blocked})
    before = mask()
    made.append(Worker())
    assert mask() == before, mask()

made = []
signal.signal(signal.SIGINT, lambda number, frame: None)  # which no other process inherits
handler = signal.getsignal(signal.SIGINT)
{make}
assert signal.getsignal(signal.SIGINT) is handler
# Python itself is up there, and would answer with a traceback; torch is not.
assert soon(lambda: handles(forkserver._forkserver._forkserver_pid, signal.SIGINT))
os.killpg(0, signal.SIGINT)
print(made[0].devices()[0].name)
"""


IN_A_THREAD = "maker = threading.Thread(target=make); maker.start(); maker.join()"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says there when Python is up")
@pytest.mark.parametrize("make, blocked", [("make()", "()"), (IN_A_THREAD, "{signal.SIGINT}")])
def test_fork_server_is_deaf_to_interrupts_from_its_start(make: str, blocked: str) -> None:
    code = INTERRUPTED.format(make=make, blocked=blocked)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "cpu\n", "")


@posix
def test_run_ignores_interrupts_and_blocks_none() -> None:
    events = run_of(work.tell_of_interrupts).events()
    assert [event.text for event in events if isinstance(event, Progress)] == [
        "not blocked",
        "True",
    ]


DESERTED = """
from explorer import worker
from explorer.events import Queued

worker._end_with_parent = lambda connection: None  # which may come too late
ours, theirs = worker._context().Pipe()
ours.close()
worker._child(theirs, lambda send: send(Queued(1)), ())
"""


def test_run_that_no_one_reads_ends_without_a_word() -> None:
    done = subprocess.run([sys.executable, "-c", DESERTED], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


# A parent that goes takes all of its processes along.

PARENT = """
import signal
from tests import work
from explorer.experiment import Experiment
from explorer.flow.experiment import FlowExperiment
from explorer.flow.result import Flow
from explorer.worker import Worker

# As in a terminal: what a script starts in the background inherits that Ctrl-C is ignored, and
# what nohup starts that SIGHUP is.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
run = Worker().submit(Experiment(size=1000)) if {experiment} else work.run_of({work})
for event in run.events():
    print(event, flush=True)
"""
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL")
RUNNING = {name: PARENT.format(experiment=True, work=None) for name in SIGNALS}
RUNNING["SIGKILL, while no other thread can run"] = PARENT.format(
    experiment=False, work="work.keep_the_interpreter"
)


@pytest.fixture(scope="module")
def parents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """One parent for each signal; they start together, each with a queue of its own."""
    started = {
        name: subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env=os.environ
            | {
                "TMPDIR": str(tmp_path_factory.mktemp("queue")),
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
        )
        for name, code in RUNNING.items()
    }
    yield started
    for parent in started.values():
        parent.kill()
        parent.communicate()


@posix
@pytest.mark.parametrize("name", RUNNING)
def test_no_process_stays_when_the_parent_goes(
    parents: dict[str, subprocess.Popen[str]], name: str
) -> None:
    parent = parents[name]
    assert parent.stdout is not None
    assert any("one forward pass" in line for line in parent.stdout)
    family = psutil.Process(parent.pid).children(recursive=True)
    assert len(family) >= 2  # the fork server and the run
    parent.send_signal(getattr(signal, name.partition(",")[0]))
    parent.wait(10)
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive
