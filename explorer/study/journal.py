"""The file of a sweep: one line of JSON a point, each written at once and whole.

Whatever ends the program, a kill, a full disk or a power cut, what was written before stays: a line
that did not come to its end is found when the file is next opened, told, and cut off.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from explorer.experiment import DEFAULT_FUNCTION, table
from explorer.functions import FUNCTIONS
from explorer.study.axis import HEADS, Axis, Value, is_number
from explorer.study.point import MOST_BYTES, Point
from explorer.study.study import Study
from explorer.study.sweep import Sweep
from explorer.turn import folder

_BLOCK = 1 << 20


class JournalError(Exception):
    """The file cannot be used for this sweep; the message is a sentence that says why."""


class Journal:
    """The open file of one sweep, held for this program alone; to be used in a `with`.

    Attributes:
        points: what the file holds of the sweep, in its order.
        told: a sentence on what was cut off, empty where nothing was.

    Raises:
        JournalError: it is no file of this sweep, or another program has it.
        OSError: it cannot be read or written.
    """

    def __init__(self, path: str | Path, sweep: Sweep) -> None:
        self.path = Path(path)
        self.told = ""
        target = Path(os.path.realpath(self.path))
        # Not beside the file: a lock file would stay there.
        name = hashlib.sha256(os.fsencode(target)).hexdigest()[:16]
        self._lock = FileLock(folder() / f"{name}.sweep.lock", mode=0o666)
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            raise JournalError(
                f"{path} is being written by another sweep. Wait for it, or choose another file."
            ) from None
        try:
            self._open(target)
            try:
                self.points = self._read(sweep)
            except BaseException:
                os.close(self._file)
                raise
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._file)
        self._lock.release()

    def append(self, point: Point) -> None:
        """Writes a point's line, and returns when it is on the disk.

        Raises:
            OSError: it is not; of the line nothing stays in the file then.
        """
        try:
            _write(self._file, point.line)
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise type(error)(f"Cannot write {self.path}: {error.strerror or error}.") from error
        self._size += len(point.line)

    def _open(self, target: Path) -> None:
        there = target.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._file = os.open(target, flags, 0o666)
        if not there and hasattr(os, "O_DIRECTORY"):  # the new name, too, has to be on the disk
            directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def _read(self, sweep: Sweep) -> list[Point]:
        """The points there are; what is no whole line at the end of the file is cut off."""
        points: list[Point] = []
        keys = {place.key for place in sweep.places}
        seen: set[str] = set()
        self._size, ended = 0, True
        for number, line in enumerate(_lines(self._file, self.path), 1):
            point = _point(line)
            if point is None:
                end = self._size + len(line)
                if end < os.fstat(self._file).st_size or (not points and not _is_start(line)):
                    raise JournalError(
                        f"{self.path} is no file of a sweep: line {number} is none of its points. "
                        "Choose another file."
                    )
                self.told = (
                    f"The last line of {self.path} was incomplete, as a sweep that was killed "
                    f"leaves it: its {len(line)} bytes were cut off, and the point is measured "
                    "again."
                )
                break
            if point.sweep != sweep.key or point.point not in keys:
                raise JournalError(
                    f"{self.path} holds another sweep, over {', '.join(point.at)}, or with other "
                    "settings. Give the command that began it, or choose another file."
                )
            if point.point in seen:
                raise JournalError(
                    f"{self.path} has the point of line {number} twice. Choose another file."
                )
            seen.add(point.point)
            points.append(point)
            self._size += len(line)
            ended = line.endswith(b"\n")
        if os.fstat(self._file).st_size > self._size:
            os.ftruncate(self._file, self._size)
        if not ended:
            _write(self._file, b"\n")
            self._size += 1
        os.fsync(self._file)
        return points


def read_study(path: str | Path) -> Study:
    """The study of a file, which stays as it is; of its last line, what is incomplete is left out.

    Raises:
        JournalError: it is no file of a sweep.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        lines = list(_lines(file.fileno(), Path(path)))
    found = [_point(line) for line in lines]
    points = tuple(point for point in found if point is not None)
    if not points or None in found[:-1]:
        number = found.index(None) + 1 if found else 1
        raise JournalError(
            f"{path} is no file of a sweep: line {number} is none of its points."
        )  # fmt: skip
    values = _values_of(points)
    axes = _axes(points, values.get("function", DEFAULT_FUNCTION))
    swept = {axis.name for axis in axes}
    given = {name: value for name, value in values.items() if name not in swept}
    key, planned = points[0].sweep, len(points)
    return Study(
        key=key, given=given, axes=axes, points=points, planned=planned, status="done"
    )  # fmt: skip


def _values_of(points: Sequence[Point]) -> dict[str, Any]:
    """The fields of the first experiment that ran; none where its function is not known here."""
    for point in points:
        with suppress(ValueError):
            if (result := point.result) is not None:
                return result.experiment.values
    return {}


def _axes(points: Sequence[Point], function: str) -> tuple[Axis, ...]:
    """The axes as the points tell them."""
    names = list(points[0].at)
    function = str(points[0].at.get("function", function))
    fields = table(function if function in FUNCTIONS else DEFAULT_FUNCTION)
    return tuple(
        Axis(
            name,
            HEADS.label if name == "heads" else fields[name].label if name in fields else name,
            _values(point.at[name] for point in points),
        )
        for name in names
    )


def _values(found: Iterable[Value]) -> tuple[Value, ...]:
    values = tuple(dict.fromkeys(found))
    return tuple(sorted(values)) if all(map(is_number, values)) else values


def _point(line: bytes) -> Point | None:
    try:
        return Point.read(line if line.endswith(b"\n") else line + b"\n")
    except ValueError:
        return None


def _is_start(line: bytes) -> bool:
    """Whether a line can be the beginning of a first point, as a kill may leave it."""
    start = b'{"schema":1,"sweep":"'
    return line.startswith(start) or start.startswith(line)


def _lines(file: int, path: Path) -> Iterator[bytes]:
    """The lines with their ends, the last one as it is; raises JournalError for one too long."""
    rest, place = b"", 0
    while block := os.pread(file, _BLOCK, place) if hasattr(os, "pread") else _at(file, place):
        place += len(block)
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line + b"\n"
        if len(rest) > MOST_BYTES:
            raise JournalError(f"{path} is no file of a sweep: it has a line of {len(rest)} bytes.")
    if rest:
        yield rest


def _at(file: int, place: int) -> bytes:
    os.lseek(file, place, os.SEEK_SET)
    return os.read(file, _BLOCK)


def _write(file: int, text: bytes) -> None:
    """All of the text: a signal or a full disk may end a write early."""
    while text:
        text = text[os.write(file, text) :]
