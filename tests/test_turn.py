"""One measurement at a time on a machine, in the order in which they came."""

import os
import tempfile
from pathlib import Path

import pytest

from explorer import turn
from explorer.events import Done, Queued
from tests.work import last, run_of, soon, take_turn, until, workers


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def go(tmp_path: Path) -> Path:
    return tmp_path / "go"


def test_those_who_come_later_wait_in_their_order(log: Path, tmp_path: Path) -> None:
    gos = [tmp_path / f"go {number}" for number in range(3)]
    first, second, third = (run_of(take_turn, log, go).events() for go in gos)
    until(first, "turn")
    assert next(second) == Queued(1)
    assert next(third) == Queued(2)
    gos[0].touch()
    assert isinstance(list(first)[-1], Done)
    until(second, "turn")
    assert next(third) == Queued(1)
    gos[1].touch()
    assert isinstance(list(second)[-1], Done)
    gos[2].touch()
    assert isinstance(list(third)[-1], Done)
    lines = [line.split() for line in log.read_text().splitlines()]
    assert [what for what, _ in lines] == ["begin", "end"] * 3
    assert len({process for _, process in lines}) == 3
    for (_, one), (_, same) in zip(lines[::2], lines[1::2], strict=True):
        assert one == same


def test_place_is_told_only_when_it_changes(log: Path, go: Path) -> None:
    holder = run_of(take_turn, log, go)
    events = holder.events()
    until(events, "turn")
    waiting = run_of(take_turn, log, go).events()
    assert next(waiting) == Queued(1)
    assert soon(go.exists, 0.3) is False  # several looks at the queue later
    go.touch()
    assert isinstance(list(events)[-1], Done)
    assert not any(isinstance(event, Queued) for event in waiting)


def test_turn_of_one_that_is_killed_passes_on(log: Path, go: Path) -> None:
    holder = run_of(take_turn, log, go)
    events = holder.events()
    until(events, "turn")
    second = run_of(take_turn, log, go).events()
    third = run_of(take_turn, log, go)
    waiting = third.events()
    assert next(second) == Queued(1)
    assert next(waiting) == Queued(2)
    third.cancel()  # one that waits may go as well
    list(waiting)
    holder.cancel()
    list(events)
    until(second, "turn")
    go.touch()
    assert isinstance(list(second)[-1], Done)
    assert soon(lambda: not workers())


def test_queue_is_left_empty(log: Path, go: Path) -> None:
    go.touch()
    with turn.turn(lambda place: None):
        tickets = list(turn.folder().glob("*.ticket"))
        assert len(tickets) == 1  # those of the dead are thrown away
    assert not list(turn.folder().glob("*.ticket"))
    assert isinstance(last(run_of(take_turn, log, go)), Done)


def test_turn_ends_with_an_error_in_the_block() -> None:
    with pytest.raises(ZeroDivisionError), turn.turn(lambda place: None):
        raise ZeroDivisionError
    with turn.turn(lambda place: pytest.fail("no one else is there")):
        pass


# The folder of the queue.

posix = pytest.mark.skipif(os.name != "posix", reason="folders have other permissions there")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@posix
def test_folder_is_open_to_all_users_whatever_the_umask(place: Path) -> None:
    before = os.umask(0o077)
    try:
        assert turn.folder() == place / "explorer-queue"
    finally:
        os.umask(before)
    assert mode(place / "explorer-queue") == 0o777


@posix
def test_folder_of_another_user_is_shared_as_it_is(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = place / "explorer-queue"
    shared.mkdir()
    shared.chmod(0o775)
    monkeypatch.setattr(os, "getuid", lambda: shared.stat().st_uid + 1)
    assert turn.folder() == shared
    assert mode(shared) == 0o775


@posix
def test_link_in_the_place_of_the_folder_is_not_followed(place: Path, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(0o700)
    (place / "explorer-queue").symlink_to(private)
    with turn.turn(lambda place: pytest.fail("no one else is there")):
        assert turn.folder() == place / f"explorer-queue-{os.getuid()}"
    assert mode(turn.folder()) == 0o700
    assert mode(private) == 0o700 and not list(private.iterdir())


@posix
def test_no_folder_to_be_had_is_a_sentence(place: Path) -> None:
    (place / "explorer-queue").touch()
    (place / f"explorer-queue-{os.getuid()}").symlink_to(place)
    with pytest.raises(RuntimeError, match=r"neither \S+ nor \S+ is a folder .* set TMPDIR"):
        turn.folder()
    assert len(list(place.iterdir())) == 2
