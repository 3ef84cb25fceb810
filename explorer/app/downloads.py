"""What a person takes along from the page: files made when a button is pressed, and the kind that
the pictures' own button saves."""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import ipywidgets as widgets

from explorer.app.control import Guard, caption
from explorer.comparing.comparison import Comparison
from explorer.drawing import Kind
from explorer.events import Seen
from explorer.filenames import stem
from explorer.rows import to_csv


def _page(seen: Seen | Comparison) -> str:
    from explorer.export import to_html  # it must not delay the page

    return to_html(seen)


Kinds = Mapping[str, tuple[str, Callable[[Any], str]]]
"""Kinds of files by what their buttons say: the ending of the name, and what makes the text."""

_TABLE_AND_PAGE: Kinds = {"CSV": ("csv", to_csv), "HTML": ("html", _page)}

OF_A_RUN: Kinds = {"JSON": ("json", lambda seen: seen.to_json() + "\n"), **_TABLE_AND_PAGE}
"""The files of a Result or a Flow."""

OF_A_STUDY: Kinds = {
    "JSON lines": ("jsonl", lambda study: b"".join(p.line for p in study.points).decode()),
    **_TABLE_AND_PAGE,
}
"""The files of a Study; its lines are what `explorer sweep --jsonl` writes and goes on with."""

OF_A_COMPARISON = _TABLE_AND_PAGE
"""The files of a Comparison."""


class Downloads:
    """A button for each kind of file, disabled until there is something to `offer`.

    The file goes to the browser in a hidden element, from which the page's script makes a download;
    then the script says that it has it, so that the element does not hold it any longer. No server
    has to hand it out: in Voila and in JupyterLab alike, widgets are all there is.

    Args:
        guard: wraps the callbacks.
        shown: gives what is on show once a button is pressed; the file is made then.
    """

    def __init__(self, guard: Guard, shown: Callable[[], Any], kinds: Kinds) -> None:
        self._shown = shown
        self._sent = widgets.HTML()
        self._taken = widgets.Button(layout={"display": "none"})
        self._taken.add_class("explorer-download-taken")
        self._taken.on_click(guard(lambda button: self._forget()))
        self._buttons = []
        for words, kind in kinds.items():
            button = widgets.Button(
                description=words, tooltip=f"Download what is on show as {words}", disabled=True
            )
            button.on_click(guard(lambda pressed, kind=kind: self._send(*kind)))
            self._buttons.append(button)
        self.widget = widgets.HBox([caption("Download"), *self._buttons, self._sent, self._taken])
        self.widget.add_class("explorer-downloads")

    def offer(self, possible: bool = True) -> None:
        """Whether there is something to take along."""
        for button in self._buttons:
            button.disabled = not possible

    def _send(self, ending: str, write: Callable[[Any], str]) -> None:
        seen = self._shown()
        content = b64encode(write(seen).encode()).decode()
        # A number of its own: a second press is a second download, a second view of it is none.
        self._sent.value = (
            f'<span class="explorer-download" data-id="{secrets.token_hex(8)}" '
            f'data-name="{escape(stem(seen), quote=True)}.{ending}" '
            f'data-content="{content}" hidden></span>'
        )

    def _forget(self) -> None:
        self._sent.value = ""


def picture_kind(guard: Guard, changed: Callable[[Kind], None]) -> widgets.Dropdown:
    """The choice of what the button in each picture's corner saves."""
    dropdown = widgets.Dropdown(
        description="A picture's camera button saves",
        options=[("PNG", "png"), ("SVG", "svg")],
        tooltip="the kind of file that the button in the corner of each picture saves",
        style={"description_width": "initial"},
    )
    dropdown.add_class("explorer-picture-kind")
    dropdown.observe(guard(lambda change: changed(change["new"])), "value")
    return dropdown
