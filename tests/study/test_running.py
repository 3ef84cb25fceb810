"""Sweeps that really measure: here, by executors, resumed, cancelled, within their time."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer import InvalidExperiment, own, sweep
from explorer.events import Cancelled, Done, Event, Failed, Progress
from explorer.functions import FUNCTIONS
from explorer.study.journal import Journal
from explorer.study.running import Running, expected_seconds
from explorer.study.study import Study
from explorer.study.sweep import Sweep
from tests.work import soon

QUICK: dict[str, Any] = {"repeats": 1, "paths": ("retain_graph", "reuse")}
AXES = ["size=4,8", "heads=1,3"]


def every(events: Iterator[Event]) -> list[Event]:
    return list(events)


def last(running: Running) -> Event:
    return every(running.events(0.2))[-1]


def test_every_point_is_measured_and_says_where(tmp_path: Path) -> None:
    wanted = Sweep(QUICK, AXES)
    path = tmp_path / "study.jsonl"
    with Journal(path, wanted) as journal:
        events = every(Running(wanted, journal=journal).events(0.2))
    assert isinstance(events[-1], Done)
    study = events[-1].result
    assert isinstance(study, Study)
    assert (study.status, study.planned, len(study.points)) == ("done", 4, 4)
    assert [point.at for point in study.points] == [place.at for place in wanted.places]
    for point in study.points:
        count = int(point.at["heads"])
        result = point.result
        assert result is not None
        assert point.heads == len(result.heads) == count
        assert result.experiment.size == point.at["size"]
        # f once, and a backward a head; or one for the one entry of y.
        passes = {name: (p.forward, p.backward) for name, p in point.paths.items()}
        assert passes == {"retain_graph": (1, count), "reuse": (1, 1)}
        assert point.where.endswith("threads") or point.where.endswith("thread")
        # ‖dy/dx‖ of y = n − 1 + cos(n·x) at x = 1.
        n = torch.tensor(float(point.at["size"]), dtype=torch.float64)
        assert point.norm == pytest.approx((n * n.sin()).abs().item(), rel=1e-9)
    lines = path.read_bytes().splitlines()
    assert [json.loads(line)["point"] for line in lines] == [p.key for p in wanted.places]
    assert any(isinstance(event, Progress) and event.remaining for event in events)


def test_a_sweep_goes_on_where_it_stopped_and_measures_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    wanted = Sweep(QUICK, AXES)
    with Journal(path, wanted) as journal:
        running = Running(wanted, journal=journal)
        for event in running.events(0.05):
            if isinstance(event, Progress) and event.text.startswith("point 3 "):
                running.cancel()
        assert isinstance(event, Cancelled)
        assert isinstance(event.result, Study)
        kept = event.result.points
    assert 2 <= len(kept) < 4
    before = path.read_bytes()
    assert before == b"".join(point.line for point in kept)
    study = sweep(AXES, file=path, **QUICK)
    assert path.read_bytes().startswith(before)
    assert study.points[: len(kept)] == kept
    assert len({point.point for point in study.points}) == len(study.points) == 4
    # All there: nothing is measured.
    again = sweep({"size": [4, 8], "heads": "1,3"}, file=path, **QUICK)
    assert again.points == study.points


def test_time_for_all_points_ends_the_sweep_and_keeps_what_is_there() -> None:
    study = sweep(["size=4,8", "heads=1,3"], total=1e-6, **QUICK)
    assert (study.points, study.status, study.left_out) == ((), "cancelled", 4)
    assert any("for all points left some out" in note for note in study.notes)


def test_a_path_that_is_too_slow_for_the_budget_is_left_out_with_a_note() -> None:
    own.register(_slowing, torch.ones(()), ["y", "y**2"])
    try:
        study = sweep({"seconds": [0.0, 0.4]}, function="_slowing", budget=0.5, repeats=1,
                      paths=("recompute", "reuse"))  # fmt: skip
    finally:
        del FUNCTIONS["_slowing"]
    quick, slow = sorted(study.points, key=lambda point: point.at["seconds"])
    assert quick.paths["recompute"].seconds is not None
    recompute = slow.paths["recompute"]
    assert recompute.seconds is None
    assert recompute.note.startswith("not run: it would take about")
    assert (recompute.predicted or 0) >= 0.8


def _slowing(x: torch.Tensor, seconds: float = 0.0) -> torch.Tensor:
    import time

    time.sleep(seconds)
    return x * 2


def _stuck(x: torch.Tensor, seconds: float = 0.0) -> torch.Tensor:
    import time

    time.sleep(seconds)
    return x * 2


def test_a_point_that_ends_far_beyond_its_budget_is_ended_and_told() -> None:
    own.register(_stuck, torch.ones(()), ["y"])
    try:
        study = sweep({"seconds": [0.0, 30.0]}, function="_stuck", budget=0.2, **QUICK)
    finally:
        del FUNCTIONS["_stuck"]
    quick, stuck = sorted(study.points, key=lambda point: point.at["seconds"])
    assert not quick.problem
    assert stuck.problem.startswith("The point was ended after")
    assert stuck.problem.endswith("its budget is 0.2 s.")
    assert study.status == "done"


def _failing(x: torch.Tensor, power: int = 1) -> torch.Tensor:
    if power == 2:
        raise ValueError("no squares here")
    if power == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    return x**power


def test_a_point_that_fails_has_a_line_with_the_reason_and_the_others_go_on() -> None:
    own.register(_failing, torch.ones(()), ["y"])
    try:
        study = sweep({"power": [1, 2, 3, 4]}, function="_failing", **QUICK)
    finally:
        del FUNCTIONS["_failing"]
    problems = {point.at["power"]: point.problem for point in study.points}
    assert problems[1] == problems[4] == ""
    assert "no squares here" in problems[2]
    assert "SIGSEGV" in problems[3]
    assert all(len(point.line) <= 10_000 for point in study.points)


def test_what_no_point_can_have_ends_the_sweep_without_a_line(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    with pytest.raises(InvalidExperiment) as raised:
        sweep(["size=4,8"], file=path, device="cuda:99", **QUICK)
    assert set(raised.value.problems) == {"device"}
    assert path.read_bytes() == b""


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_any_executor_can_take_the_points(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    executor: Executor = (
        ThreadPoolExecutor(2)
        if kind == "threads"
        else ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    )
    with executor:
        study = sweep(AXES, file=path, executor=executor, at_once=3, **QUICK)
    assert study.status == "done"
    keys = [json.loads(line)["point"] for line in path.read_bytes().splitlines()]
    assert sorted(keys) == sorted(place.key for place in Sweep(QUICK, AXES).places)


def test_an_executor_that_breaks_ends_the_sweep_and_keeps_what_is_there() -> None:
    class Broken(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **more: Any) -> Any:
            return super().submit(_raise)

    with Broken(1) as executor:
        ending = last(Running(Sweep(QUICK, AXES), executor=executor, at_once=1))
    assert isinstance(ending, Failed)
    assert "was not measured: RuntimeError: the executor is gone." in ending.message


def _raise() -> None:
    raise RuntimeError("the executor is gone")


def test_a_killed_command_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    command = [
        *(sys.executable, "-m", "explorer", "sweep", "--over", "size=4:40:lin8", "--repeats", "1"),
        *("--path", "reuse", "--jsonl", str(path)),
    ]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert soon(lambda: path.exists() and path.read_bytes().count(b"\n") >= 2, 60)
    os.kill(program.pid, signal.SIGKILL)
    program.communicate()
    content = path.read_bytes()
    kept = content[: content.rindex(b"\n") + 1]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "8 points" in done.stdout
    after = path.read_bytes()
    assert after.startswith(kept)
    keys = [json.loads(line)["point"] for line in after.splitlines()]
    assert len(keys) == len(set(keys)) == 8


def test_what_is_left_is_told_from_the_estimates_and_then_from_the_points() -> None:
    small, large = Sweep(QUICK, ["size=4,8"]), Sweep(QUICK, ["size=1500,2000"])
    assert 0 < expected_seconds(small) < 5 < expected_seconds(large)
    assert expected_seconds(Sweep(QUICK, ["size=1500,2000"], total=3.0)) == 3.0
    told = [e.remaining for e in Running(small).events(0.2) if isinstance(e, Progress)]
    assert told
    assert all(left is not None and left >= 0 for left in told)
    limited = Running(Sweep(QUICK, ["size=100:150:lin51"], total=3.0))
    for event in limited.events(0.2):
        if isinstance(event, Progress):
            assert event.remaining is not None and event.remaining <= 3.0
            limited.cancel()
    assert event == Cancelled(None)  # nothing had finished
