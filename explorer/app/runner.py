"""Long work on the page: one small state machine over the worker.

Requests come from callbacks; one background thread runs them one after the other, and it alone
changes the traits, so that the widgets which watch them are written from one thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from traitlets import Dict, Enum, Float, HasTraits, Instance, Tuple, Unicode

from explorer.events import Cancelled, Done, Linearized, Partial, Progress, Queued, Trial
from explorer.experiment import Experiment
from explorer.flow.experiment import FlowExperiment
from explorer.result import Data
from explorer.study.running import Running
from explorer.study.sweep import Sweep
from explorer.units import seconds
from explorer.worker import Run, Worker

_HEARTBEAT = 0.25  # seconds between two moves of the progress bar in one long step
_TELL_EVERY = 0.1  # seconds between two messages of progress
_DRAW_EVERY = 0.5  # seconds between two drawings of partial results


Work = Experiment | FlowExperiment | Sweep
"""What a panel has run."""


class Runner(HasTraits):
    """`status` says where the work is; `result` keeps the last good value on show.

    `fraction` is the part done as far as is known, from 0 to 1; `message` says what is going on,
    or how the last run ended; `problems` names the fields that the worker found at fault.
    `linearized` has y and dy/dx of the last run, for heads to be tried on; None where a whole run
    did not keep them.
    """

    status = Enum(("idle", "running", "done", "cancelled", "failed"), default_value="idle")
    fraction = Float(0.0)
    message = Unicode()
    result = Instance(Data, allow_none=True)
    linearized = Instance(Linearized, allow_none=True)
    devices = Tuple()
    problems = Dict()

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self._worker = worker
        self._next: Work | None = None
        self._run: Run | Running | None = None
        self._wake = threading.Condition()

    def start(self) -> None:
        """Begins the background thread; it first asks for the devices, which starts the worker."""
        threading.Thread(target=self._loop, daemon=True).start()

    def request(self, experiment: Work) -> None:
        """Runs something as soon as what goes is done; only the latest waits."""
        with self._wake:
            self._next = experiment
            self._wake.notify()

    def cancel(self) -> None:
        """Ends the run that goes, at once, and forgets the one that waits."""
        with self._wake:
            self._next = None
            if self._run is not None:
                self._run.cancel()

    def try_heads(self, entries: Sequence[str]) -> dict[str, Trial | str]:
        """What heads give at the y of the last run, without a pass through f; empty before one.

        Raises:
            RuntimeError: the process that computes it failed.
        """
        kept = self.linearized
        return {} if kept is None else self._worker.try_heads(kept, entries)

    def _loop(self) -> None:
        self._find_devices()
        while True:
            with self._wake:
                while self._next is None:
                    self._wake.wait()
                experiment, self._next = self._next, None
                self._run = run = self._submitted(experiment)
            try:
                self._follow(run)
            except Exception as error:  # a fault of ours: said on the page, which goes on
                logging.getLogger(__name__).exception("the page failed to show a run")
                run.cancel()
                self._end("failed", f"The page failed: {type(error).__name__}: {error}")
            with self._wake:
                self._run = None

    def _submitted(self, work: Work) -> Run | Running:
        if isinstance(work, Sweep):
            return Running(work, self._worker)
        return self._worker.submit(work, keep=True)

    def _find_devices(self) -> None:
        try:
            self.devices = self._worker.devices()
        except RuntimeError as error:
            self._end("failed", f"The worker does not start: {error}")

    def _follow(self, run: Run | Running) -> None:
        """Shows one run to its end."""
        self.problems = {}
        self.fraction, self.message, self.status = 0.0, "Starting…", "running"
        begun: float | None = None  # the time in the queue is not the run's
        kept: Linearized | None = None
        for event in run.events(_HEARTBEAT):
            now = time.monotonic()
            if isinstance(event, Queued):
                self.message = (
                    f"Another measurement has this machine. Place {event.place} in the queue."
                )
                continue
            if begun is None:
                if isinstance(event, Cancelled):
                    self._end("cancelled", "Cancelled before it began.")
                    return
                begun = drawn = told = now
            # What the browser does meanwhile, it does on the cores that measure: a short run
            # shows nothing before its end.
            if isinstance(event, Progress):
                if now - told > _TELL_EVERY:
                    told = now
                    self._show_progress(event, now - begun)
            elif isinstance(event, Linearized):
                self.linearized = kept = event
            elif isinstance(event, Partial):
                if now - drawn > _DRAW_EVERY:
                    drawn = now
                    self.result = event.result
            elif isinstance(event, Done):
                self.result = event.result
                self.linearized = kept  # not that of another run, at another y
                self._end("done", f"Done in {seconds(now - begun)}.")
            elif isinstance(event, Cancelled):
                self.result = event.result or self.result
                shown = " What had finished is shown." if event.result else ""
                self._end("cancelled", f"Cancelled after {seconds(now - begun)}.{shown}")
            else:
                self.result = event.result or self.result
                self.problems = event.problems
                marked = event.kind == "invalid"  # then the sentence stands beside the control
                self._end("failed", "Put right what is marked." if marked else event.message)

    def _show_progress(self, event: Progress, elapsed: float) -> None:
        left = event.remaining
        if left is None:
            message = f"{event.text}…"
        else:
            self.fraction = elapsed / (elapsed + left) if elapsed + left else 0.0
            message = f"{event.text}, about {seconds(left)} left"
        self.message = message + (" (the next run waits for this one)" if self._next else "")

    def _end(self, status: str, message: str) -> None:
        self.fraction = 1.0 if status == "done" else 0.0
        self.message = message
        self.status = status
