"""Where a person's own code raised: their line and message, not ours."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import traceback
from pathlib import Path

from explorer.events import Failed, Place

_PATHS = sysconfig.get_paths()
_NOT_THEIRS = (
    *(f"{_PATHS[name]}{os.sep}" for name in ("stdlib", "purelib", "platlib")),
    f"{Path(__file__).parent}{os.sep}",
    *("<frozen", "<eval_with_key>"),  # Python's own, and what torch writes from f's graph
)


def of(error: BaseException) -> Place | None:
    """The last line of a person's own code on the way to an error; None where there is none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.lineno is not None and not frame.filename.startswith(_NOT_THEIRS):
            return Place(frame.filename, frame.lineno, frame.name)
    return None


def told(failed: Failed) -> str:
    """A failure's message, with the line of the person's own code where that raised.

    The line is read here and not in the process that failed: a notebook's cells are known only
    to the kernel they were run in.
    """
    where = failed.place
    if where is None:
        return failed.message
    code = linecache.getline(where.file, where.line).strip()
    shown = f": {code}" if code else ""
    return f"{failed.message} (in {where.function}, line {where.line} of {_name(where)}{shown})"


def _name(where: Place) -> str:
    """The file, or the cell of a notebook as it is numbered there."""
    if "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
        named = shell and shell.compile.format_code_name(where.file)
        if named:
            return " ".join(named)
    return Path(where.file).name
