"""What every part of the page has: its widget, its start, and a place where its faults are told."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from explorer.app.control import problem
from explorer.app.state import Entries


class Part:
    """One of the parts that the switch of the page chooses from; `widget` is the whole of it, and
    `state` what it holds."""

    widget: widgets.Widget
    state: Entries

    def __init__(self) -> None:
        self._fault = widgets.HTML()

    def start(self) -> None:
        """Begins the work of the part, once it is shown."""
        raise NotImplementedError

    def _guarded(self, callback: Callable[..., None]) -> Callable[..., None]:
        """A callback whose fault is shown: neither JupyterLab nor Voila would say a word."""

        @functools.wraps(callback)
        def guarded(*arguments: Any) -> None:
            try:
                callback(*arguments)
            except Exception as error:
                logging.getLogger(__name__).exception("a callback of the page failed")
                self._show_fault(
                    f"The page failed: {type(error).__name__}: {error}. Press Reset, or reload."
                )

        return guarded

    def _show_fault(self, message: str) -> None:
        self._fault.value = problem(message)
