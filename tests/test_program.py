"""Children that are programs, as runs in a daemonic process have them."""

import signal

import pytest

from explorer import Experiment
from explorer.events import Cancelled, Done, Failed, Progress
from explorer.program import Context
from explorer.worker import Run, _experiment
from tests.work import die_of, last, take_long


def run_of(work: object, *arguments: object) -> Run:
    return Run(Context(), work, arguments)  # type: ignore[arg-type]


def test_an_experiment_runs_in_a_program() -> None:
    experiment = Experiment(size=4, repeats=1, paths=("reuse",))
    event = last(run_of(_experiment, b"", experiment.to_json(), False, False, None))
    assert isinstance(event, Done)
    assert event.result.experiment == experiment


def test_a_program_is_cancelled_at_once() -> None:
    run = run_of(take_long, None)
    for event in run.events():
        if isinstance(event, Progress):
            run.cancel()
    assert event == Cancelled(None)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_how_a_program_died_is_told(number: int) -> None:
    event = last(run_of(die_of, number))
    assert isinstance(event, Failed)
    assert event.kind == ("memory" if number == signal.SIGKILL else "crash")
