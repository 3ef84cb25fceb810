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
from explorer.drawing import Kind
from explorer.events import Seen
from explorer.filenames import stem
from explorer.rows import to_csv

Make = Callable[[], tuple[str, str]]
"""Makes a file: its name and its text."""


class Downloads:
    """A button for each kind of file, disabled until `enable`.

    The file goes to the browser in a hidden element, from which the page's script makes a download;
    then the script says that it has it, so that the element does not hold it any longer. No server
    has to hand it out: in Voila and in JupyterLab alike, widgets are all there is.

    Args:
        guard: wraps the callbacks.
        files: by what the button says, what makes the file once the button is pressed.
    """

    def __init__(self, guard: Guard, files: Mapping[str, Make]) -> None:
        self._sent = widgets.HTML()
        self._taken = widgets.Button(layout={"display": "none"})
        self._taken.add_class("explorer-download-taken")
        self._taken.on_click(guard(lambda button: self._forget()))
        self._buttons = []
        for kind, make in files.items():
            button = widgets.Button(
                description=kind, tooltip=f"Download what is on show as {kind}", disabled=True
            )
            button.on_click(guard(lambda pressed, make=make: self._send(*make())))
            self._buttons.append(button)
        self.widget = widgets.HBox([caption("Download"), *self._buttons, self._sent, self._taken])
        self.widget.add_class("explorer-downloads")

    def enable(self) -> None:
        """For when there is something to take along."""
        for button in self._buttons:
            button.disabled = False

    def _send(self, name: str, text: str) -> None:
        # A number of its own: a second press is a second download, a second view of it is none.
        self._sent.value = (
            f'<span class="explorer-download" data-id="{secrets.token_hex(8)}" '
            f'data-name="{escape(name, quote=True)}" '
            f'data-content="{b64encode(text.encode()).decode()}" hidden></span>'
        )

    def _forget(self) -> None:
        self._sent.value = ""


def files_of(shown: Callable[[], Any]) -> dict[str, Make]:
    """The files of the Result or the Flow on show, each under the name that `stem` gives."""

    def made(ending: str, write: Callable[[Seen], str]) -> Make:
        def make() -> tuple[str, str]:
            seen = shown()
            return f"{stem(seen)}.{ending}", write(seen)

        return make

    return {
        "JSON": made("json", lambda seen: seen.to_json() + "\n"),
        "CSV": made("csv", to_csv),
        "HTML": made("html", _page),
    }


def _page(seen: Seen) -> str:
    from explorer.export import to_html  # it must not delay the page

    return to_html(seen)


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
