"""Files on their way from the browser: chosen or dropped there, bytes here.

A FileUpload takes no dropped files, and sends all at once however large they are. So the page's
script reads the files and enters them, some at a time, into a text box that is not seen; it waits
until the box is empty again before it enters more.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets
from traitlets import Unicode

from explorer.app.control import Guard

LARGEST = 5_000_000
"""Bytes up to which the page's script sends a file: written out in base64 it stays below tornado's
10 MiB for a message, beyond which the connection would be closed."""

CHOOSE = (
    '<label class="explorer-choose jupyter-button">{}'
    '<input class="explorer-chosen" type="file" multiple accept=".json,application/json"></label>'
)
"""A button that opens the browser's choice of files, with its words."""


@dataclass(frozen=True)
class File:
    """A file by its name and size; `data` is None where it was too large to be sent, or could not
    be read, as a folder cannot."""

    name: str
    size: int
    data: bytes | None


class _Box(widgets.Textarea):
    # What was entered is not sent back.
    value = Unicode().tag(sync=True, echo_update=False)


class Files:
    """The box, to be put somewhere on the page. `take` is called with what arrives, and whether it
    is the first of what was chosen or dropped together."""

    def __init__(self, guard: Guard, take: Callable[[Sequence[File], bool], None]) -> None:
        self.widget = _Box(continuous_update=False)
        self.widget.add_class("explorer-files")
        self._take = take
        self.widget.observe(guard(self._arrived), "value")

    def _arrived(self, change: Any) -> None:
        if not change["new"]:
            return
        try:
            entered = json.loads(change["new"])
            files = [_file(entry) for entry in entered["files"]]
        finally:
            self.widget.value = ""
        self._take(files, bool(entered["first"]))


def _file(entry: dict[str, Any]) -> File:
    content = entry["content"]
    data = None if content is None else base64.b64decode(content, validate=True)
    return File(str(entry["name"]), int(entry["size"]), data)
