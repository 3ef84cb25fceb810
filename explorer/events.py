"""What a run reports while it goes, as plain data. Importing this module imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from explorer.flow.result import Flow
from explorer.result import Result
from explorer.study.study import Study

Seen = Result | Flow | Study
"""What a run shows: a Result of an Experiment, a Flow of a FlowExperiment, a Study of a sweep."""


@dataclass(frozen=True)
class Queued:
    """Another measurement has the machine; `place` 1 is the next one to run."""

    place: int


@dataclass(frozen=True)
class Progress:
    """What is being done, and the seconds until the run ends as far as is known, else None."""

    text: str
    remaining: float | None

    def later(self, seconds: float) -> Progress:
        """The same, so many seconds on."""
        left = None if self.remaining is None else max(0.0, self.remaining - seconds)
        return Progress(self.text, left)


@dataclass(frozen=True)
class Partial:
    """What is known so far."""

    result: Seen


@dataclass(frozen=True)
class Done:
    """The run ended and this is what it found."""

    result: Seen


@dataclass(frozen=True)
class Cancelled:
    """The run was cancelled; `result` holds what had finished, None if nothing had."""

    result: Seen | None


@dataclass(frozen=True)
class Place:
    """A line of a person's own code."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Failed:
    """The run did not come to its end; `message` is a sentence for the person.

    `kind` is "invalid" (`problems` names the fields at fault), "refused" (it cannot fit, and was
    not begun), "memory" (it ran out of memory), "crash" (the process died) or "error" (f or a
    head raised). `result` holds what had finished, None if nothing had. `place` is where a
    person's own code raised, None elsewhere; the message then names it.
    """

    kind: Literal["invalid", "refused", "memory", "crash", "error"]
    message: str
    problems: dict[str, str]
    result: Seen | None = None
    place: Place | None = None


@dataclass(frozen=True)
class Linearized:
    """y, x and dy/dx of the run, for heads to be tried on; `data` is for `linearization` alone."""

    data: bytes


Event = Queued | Progress | Partial | Linearized | Done | Cancelled | Failed
Ending = Done | Cancelled | Failed


@dataclass(frozen=True)
class Device:
    """A device by torch's name for it ("cpu", "cuda:0") and the maker's."""

    name: str
    title: str


@dataclass(frozen=True)
class Tried:
    """What heads give at y: for each entry the Trial, or a sentence on what is wrong with it."""

    trials: dict[str, Trial | str]


@dataclass(frozen=True)
class Trial:
    """One head at y: the formula as it was understood, its value, and dz/dx: `norm` and, where
    there are few, the entries."""

    formula: str
    value: float
    norm: float
    entries: tuple[float, ...] = ()


@dataclass(frozen=True)
class Found:
    """The answer to the question which devices there are."""

    devices: tuple[Device, ...]
