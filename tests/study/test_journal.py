"""The file of a sweep: nothing that was finished is lost, nothing that is another's is touched."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.study.journal import Journal, JournalError, read_study
from explorer.study.point import Point
from explorer.study.sweep import Sweep
from tests.study.writing import SWEEP, finished
from tests.work import soon

OTHER = Sweep({"repeats": 2}, ["size=10:100:lin91"])


def filled(path: Path, count: int = 3) -> bytes:
    """A file with so many points; what is in it."""
    with Journal(path, SWEEP) as journal:
        for number in range(count):
            journal.append(finished(number))
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.jsonl"


def test_every_point_is_one_line_and_is_read_back(path: Path) -> None:
    content = filled(path, 3)
    assert content.splitlines(keepends=True) == [finished(n).line for n in range(3)]
    with Journal(path, SWEEP) as journal:
        assert journal.points == [finished(n) for n in range(3)]
        assert not journal.told
    study = read_study(path)
    assert study.points == tuple(finished(n) for n in range(3))
    assert [axis.name for axis in study.axes] == ["size"]
    assert study.axes[0].values == tuple(sorted(finished(n).at["size"] for n in range(3)))


def test_a_line_that_was_cut_anywhere_is_told_cut_off_and_measured_again(path: Path) -> None:
    content = filled(path, 2)
    last = len(finished(1).line)
    # Less than the whole object: its edges, and a few moments between.
    for kept in (1, 2, *range(3, last - 2, last // 12), last - 3, last - 2):
        path.write_bytes(content[: len(content) - last + kept])
        with Journal(path, SWEEP) as journal:
            assert journal.points == [finished(0)]
            assert f"its {kept} bytes were cut off" in journal.told
            journal.append(finished(1))
        assert path.read_bytes() == content


def test_the_first_line_too_may_be_cut(path: Path) -> None:
    content = filled(path, 1)
    for kept in (1, 10, 22, 60, len(content) - 2):
        path.write_bytes(content[:kept])
        with Journal(path, SWEEP) as journal:
            assert journal.points == []
            assert journal.told
        assert path.read_bytes() == b""


def test_a_whole_line_that_lacks_its_end_alone_is_kept(path: Path) -> None:
    content = filled(path, 2)
    path.write_bytes(content[:-1])
    with Journal(path, SWEEP) as journal:
        assert journal.points == [finished(0), finished(1)]
        assert not journal.told
        journal.append(finished(2))
    assert path.read_bytes() == content + finished(2).line


def test_zeros_that_a_power_cut_leaves_are_cut_off(path: Path) -> None:
    content = filled(path, 2)
    path.write_bytes(content + bytes(4096))
    with Journal(path, SWEEP) as journal:
        assert len(journal.points) == 2
        assert "4096 bytes were cut off" in journal.told
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"my notes\n", "line 1 is none of its points"),
        (b"my notes", "line 1 is none of its points"),
        (b'{"schema":1,"status":"done"}', "line 1 is none of its points"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "line 1 is none of its points"),
        (b"{" * 20_000, "a line of 20000 bytes"),
        (finished(0).line + b"{}\n" + finished(1).line, "line 2 is none of its points"),
        (finished(0).line * 2, "the point of line 2 twice"),
    ],
)
def test_a_file_of_something_else_is_refused_and_stays_as_it_is(
    path: Path, content: bytes, words: str
) -> None:
    path.write_bytes(content)
    with pytest.raises(JournalError, match=words):
        Journal(path, SWEEP)
    assert path.read_bytes() == content


def test_a_file_of_another_sweep_is_refused_and_stays_as_it_is(path: Path) -> None:
    content = filled(path)
    with pytest.raises(JournalError, match="holds another sweep, over size, or with other settin"):
        Journal(path, OTHER)
    assert path.read_bytes() == content


def test_a_file_is_one_program_s_alone(path: Path) -> None:
    with Journal(path, SWEEP), pytest.raises(JournalError, match="is being written by another"):
        Journal(path, SWEEP)
    filled(path)  # free again


@pytest.mark.parametrize("name", ["", "missing/study.jsonl"])
def test_what_cannot_be_a_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(OSError, match="directory"):
        Journal(tmp_path / name, SWEEP)


FULL = """
import resource, signal, sys
from explorer.study.journal import Journal
from tests.study.writing import SWEEP, finished
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Journal(sys.argv[1], SWEEP) as journal:
    journal.append(finished(0))
    # Room for a part of the next line: the write ends in the middle of it, as on a full disk.
    room = len(finished(0).line) + 40
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    try:
        journal.append(finished(1))
    except OSError as error:
        print(error)
"""


def test_a_full_disk_leaves_no_half_of_a_line(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout == f"Cannot write {path}: File too large.\n"
    assert path.read_bytes() == finished(0).line


WRITING = """
import sys
from explorer.study.journal import Journal
from tests.study.writing import SWEEP, finished
with Journal(sys.argv[1], SWEEP) as journal:
    for number in range(len(journal.points), len(SWEEP)):
        journal.append(finished(number))
"""


def test_a_kill_at_any_moment_loses_no_finished_point(path: Path) -> None:
    moments = random.Random(0)
    kept = b""
    kills = 0
    while kills < 6:
        program = subprocess.Popen(
            [sys.executable, "-c", WRITING, str(path)], cwd=Path(__file__).parents[2]
        )
        wanted = len(kept) + moments.randrange(1, 30_000)
        assert soon(lambda w=wanted: path.exists() and path.stat().st_size >= w, 60)
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        kills += 1
        content = path.read_bytes()
        assert content.startswith(kept)
        *whole, cut = content.split(b"\n")
        kept = content[: len(content) - len(cut)]
        assert [json.loads(line)["point"] for line in whole] == [
            finished(n).point for n in range(len(whole))
        ]
        if len(whole) > 800:
            path.write_bytes(kept := b"")
    with Journal(path, SWEEP) as journal:
        assert b"".join(point.line for point in journal.points) == kept


def test_points_are_the_same_whatever_wrote_them() -> None:
    assert Point.read(finished(5).line) == finished(5)
