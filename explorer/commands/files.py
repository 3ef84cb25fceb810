"""The files that the commands write: their options, what is wrong with them, and the writing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from explorer import signals
from explorer.events import Seen
from explorer.experiment import InvalidExperiment
from explorer.fields import shown

if TYPE_CHECKING:
    from explorer.comparing.comparison import Comparison
    from explorer.drawing import Kind

FILES = {
    "json": "Write the {} as JSON.",
    "csv": "Write the {} as one long table.",
    "html": "Write a self-contained page.",
    "png": "Write every picture as a PNG into a folder.",
    "svg": "Write every picture as an SVG into a folder.",
}
"""The kinds of files by their options, with the help of each."""

_PICTURES: dict[str, Kind] = {"png": "png", "svg": "svg"}


def file_options(what: str, *, leave_out: str = "") -> Callable[[Any], Any]:
    """Adds an option for every kind of file but one; `what` it is that is written."""

    def add(command: Any) -> Any:
        for name, words in reversed(FILES.items()):
            if name != leave_out:
                command = click.option(
                    f"--{name}",
                    f"{name}_file",
                    metavar="FOLDER" if name in _PICTURES else "FILE",
                    help=words.format(what),
                )(command)
        return command

    return add


def asked_for(values: dict[str, Any]) -> dict[str, str]:
    """Takes the places of the files that were asked for out of the options' values."""
    given = {name: values.pop(f"{name}_file", None) for name in FILES}
    return {name: where for name, where in given.items() if where is not None}


def require_places(files: Mapping[str, str | None]) -> None:
    """Raises InvalidExperiment for what cannot be written, by the names of the options: before
    the run, not after."""
    for name, where in files.items():
        if where is None:
            continue
        if name not in _PICTURES:
            require_place(name, where)
            continue
        from explorer.pictures import lacking

        if problem := _no_folder(Path(where)) or lacking():
            raise InvalidExperiment({name: problem})


def require_place(name: str, file: str) -> None:
    """Raises InvalidExperiment unless a file can be written there."""
    path = Path(file)
    problem = ""
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            path.lstat()  # refuses a name that is too long
        folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
        if path.is_dir():
            problem = f"{path} is a folder. Give the name of a file."
        elif path.exists() and not path.is_file():  # a pipe or a terminal
            if not os.access(path, os.W_OK):
                problem = f"{path} cannot be written to. Choose another."
        elif not folder.is_dir():
            problem = f"The folder {folder} does not exist. Make it first, or choose another."
        elif not _takes_files(folder):
            problem = f"The folder {folder} cannot be written to. Choose another."
    except OSError as error:
        problem = f"{shown(file)} cannot be a file: {error.strerror}."
    if problem:
        raise InvalidExperiment({name: problem})


def _no_folder(path: Path) -> str:
    """Why there is, and can be made, no folder for pictures, as a sentence; else empty."""
    try:
        if path.exists() and not path.is_dir():
            return f"{path} is a file. Give the name of a folder."
        folder = path if path.exists() else path.parent
        if not folder.is_dir():
            return f"The folder {folder} does not exist. Make it first, or choose another."
        if not _takes_files(folder):
            return f"The folder {folder} cannot be written to. Choose another."
    except OSError as error:
        return f"{shown(path)} cannot be a folder: {error.strerror}."
    return ""


def _takes_files(folder: Path) -> bool:
    """Whether a file can be made there. Its permissions do not tell: root has them all."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def write(seen: Seen | Comparison, files: Mapping[str, str]) -> str:
    """Writes the files that were asked for; returns what went wrong, as a sentence, or ""."""
    if not files:
        return ""
    from explorer.export import to_html, write_text
    from explorer.rows import to_csv

    make = {
        "json": lambda: seen.to_json() + "\n",
        "csv": lambda: to_csv(seen),
        "html": lambda: to_html(seen),
    }
    try:
        # In here a signal is an exception, so that no half of a file stays beside it.
        with signals.handled(signal.default_int_handler):
            for name, where in files.items():
                if name in _PICTURES:
                    from explorer.pictures import write_pictures

                    write_pictures(seen, where, _PICTURES[name])
                else:
                    write_text(where, make[name]())
    except (OSError, RuntimeError) as error:
        return str(error)
    except KeyboardInterrupt:
        signals.end_cancelled(signal.SIGINT, None)
    return ""
