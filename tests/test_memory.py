"""Peak memory is measured, and a limit turns a killing into an error."""

import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
import torch

from explorer import memory

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="read from Linux's /proc")
MB = 10**6


def test_available_is_at_most_what_the_machine_has() -> None:
    assert 0 < memory.available() <= psutil.virtual_memory().total


def test_available_in_a_container_is_its_limit_less_what_it_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text(f"{50 * MB}\n")
    (tmp_path / "memory.current").write_text(f"{30 * MB}\n")
    (tmp_path / "memory.stat").write_text(f"anon {18 * MB}\ninactive_file {12 * MB}\n")
    assert memory.available() == 32 * MB
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available() > 32 * MB


@on_linux
@pytest.mark.parametrize("size", [200 * MB, 400 * MB])
def test_peak_of_an_allocation(size: int) -> None:
    with memory.peak("cpu") as peak:
        torch.ones(size // 8, dtype=torch.float64)
    assert peak.size == pytest.approx(size, rel=0.15)


@on_linux
def test_peak_is_of_the_block_alone() -> None:
    kept = torch.ones(200 * MB // 8, dtype=torch.float64)
    torch.ones(400 * MB // 8, dtype=torch.float64)
    with memory.peak("cpu") as peak:
        torch.ones(100 * MB // 8, dtype=torch.float64)
    assert peak.size == pytest.approx(100 * MB, rel=0.15)
    assert kept.numel()


@on_linux
def test_peak_of_two_at_once_and_of_two_in_turn() -> None:
    def block() -> torch.Tensor:
        return torch.ones(100 * MB // 8, dtype=torch.float64)

    with memory.peak("cpu") as at_once:
        both = [block(), block()]
    del both
    with memory.peak("cpu") as in_turn:
        for _ in range(2):
            block()
    assert at_once.size == pytest.approx(200 * MB, rel=0.15)
    assert in_turn.size == pytest.approx(100 * MB, rel=0.15)


def test_peak_of_a_device_that_does_not_tell_is_none() -> None:
    with memory.peak("mps") as peak:
        pass
    assert peak.size is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_peak_on_a_gpu() -> None:
    with memory.peak("cuda:0") as peak:
        torch.ones(200 * MB // 8, dtype=torch.float64, device="cuda:0")
    assert peak.size == pytest.approx(200 * MB, rel=0.05)


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@on_linux
def test_allocation_above_the_limit_fails_with_an_error() -> None:
    said = python("""
        import torch
        from explorer import memory

        memory.limit(300_000_000)
        torch.ones(100_000_000, dtype=torch.uint8)
        try:
            torch.ones(400_000_000, dtype=torch.uint8)
        except RuntimeError as error:
            print("allocate memory" in str(error))
    """)
    assert said == "True"


@on_linux
def test_limit_stays_within_the_one_that_is_there() -> None:
    said = python("""
        import resource
        from explorer import memory

        resource.setrlimit(resource.RLIMIT_DATA, (10**9, 10**9))
        memory.limit(10**12)
        print(resource.getrlimit(resource.RLIMIT_DATA) == (10**9, 10**9))
    """)
    assert said == "True"
