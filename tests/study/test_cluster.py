"""A sweep on a real Dask cluster of two workers."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from explorer import InvalidExperiment
from explorer.events import Done, Progress
from explorer.study import cluster
from explorer.study.journal import Journal
from explorer.study.running import Running
from explorer.study.study import Study
from explorer.study.sweep import Sweep

WANTED = Sweep({"repeats": 1, "paths": ("reuse",)}, ["size=4:20:lin5"])


@pytest.fixture
def local() -> Iterator[Any]:
    """Two workers, which are daemonic processes of one thread each."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    ) as found:
        yield found


def test_a_worker_that_is_killed_loses_no_point_and_doubles_none(
    local: Any, tmp_path: Path
) -> None:
    path = tmp_path / "study.jsonl"
    with cluster.executor(local.scheduler_address) as (executor, at_once):
        assert at_once == 4
        with Journal(path, WANTED) as journal:
            running = Running(WANTED, journal=journal, executor=executor, at_once=at_once)
            killed = False
            for event in running.events(0.1):
                if isinstance(event, Progress) and path.stat().st_size and not killed:
                    killed = True
                    victim = _busy(local.scheduler_address)
                    os.kill(victim, signal.SIGKILL)
    assert killed
    assert isinstance(event, Done)
    assert isinstance(event.result, Study)
    assert event.result.status == "done"
    keys = [json.loads(line)["point"] for line in path.read_bytes().splitlines()]
    assert sorted(keys) == sorted(place.key for place in WANTED.places)
    for point in event.result.points:
        assert not point.problem
        assert point.where


def _busy(address: str) -> int:
    """The process of a worker that measures."""
    with Client(address, set_as_default=False) as client:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for worker, tasks in client.processing().items():
                if tasks:
                    pids: dict[str, int] = client.run(os.getpid, workers=[worker])
                    return pids[worker]
    raise AssertionError("no worker has work")


def test_no_cluster_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with (
        pytest.raises(InvalidExperiment, match=r"No Dask scheduler answers at tcp://127.0.0.1:9"),
        cluster.executor("tcp://127.0.0.1:9"),
    ):
        pass


def test_no_address() -> None:
    with pytest.raises(InvalidExperiment, match="No Dask scheduler"), cluster.executor("no where"):
        pass
