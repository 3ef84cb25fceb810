"""Copy code: the script of the chosen experiment on one of its paths, with a button that copies it.

The page's own script does the copying, in the browser.
"""

from __future__ import annotations

from html import escape

import ipywidgets as widgets

from explorer.app.control import Guard, hint, problem
from explorer.app.runner import Runner
from explorer.app.state import State
from explorer.result import Result
from explorer.scripts import NoScript, script


class CodePart:
    """A button that opens it; the script is made while it is open, and follows the state."""

    def __init__(self, state: State, runner: Runner, guard: Guard) -> None:
        self._state, self._runner = state, runner
        self.toggle = widgets.ToggleButton(
            description="Copy code", tooltip="This experiment as a PyTorch script of its own"
        )
        self.path = widgets.Dropdown(
            description="Path",
            tooltip="the path that the script takes",
            style={"description_width": "initial"},
        )
        self.copy = widgets.Button(description="Copy", tooltip="Copy the script to the clipboard")
        self.copy.add_class("explorer-copy")
        # The page's script writes here that it was copied.
        copied = widgets.HTML('<span class="explorer-copied" role="status"></span>')
        self.text = widgets.HTML()
        line = widgets.HBox([self.path, self.copy, copied])
        self._body = widgets.VBox([line, self.text], layout={"display": "none"})
        self.widget = widgets.VBox([self.toggle, self._body])
        self.widget.add_class("explorer-code")
        self.toggle.observe(guard(lambda change: self._show()), "value")
        self.path.observe(guard(lambda change: self._write()), "value")
        state.observe(guard(lambda change: self._show()), "experiment")
        runner.observe(guard(lambda change: self._write()), "result")  # it tells what auto took

    def _show(self) -> None:
        """Opens or closes it, and offers the chosen paths; the one that was taken stays."""
        self._body.layout.display = None if self.toggle.value else "none"
        experiment = self._state.experiment
        if not self.toggle.value:
            return
        if experiment is not None and self.path.options != experiment.paths:
            paths, chosen = experiment.paths, self.path.value
            self.path.options = paths
            wanted = (each for each in (chosen, "auto", *paths) if each in paths)
            self.path.value = next(wanted)
        self._write()

    def _write(self) -> None:
        """Writes the script of the path, where it is another one than stands there."""
        experiment, path = self._state.experiment, self.path.value
        if not self.toggle.value:
            return
        self.copy.disabled = True
        if experiment is None:
            self.text.value = hint("Put right what is marked.")
        elif path is not None:
            try:
                text = script(experiment, path, self._taken())
            except NoScript as error:
                self.text.value = problem(str(error))
                return
            self.text.value = f'<pre tabindex="0" aria-label="script">{escape(text)}</pre>'
            self.copy.disabled = False

    def _taken(self) -> str:
        """The path that `auto` took, where this experiment was run; "" where it was not."""
        result = self._runner.result
        if not isinstance(result, Result) or result.experiment != self._state.experiment:
            return ""
        return result.paths["auto"].taken if "auto" in result.paths else ""
