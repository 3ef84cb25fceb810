"""What the Gradient flow panel is asked for, as plain data, checked against one table of fields.

Importing this module imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from explorer.experiment import DEVICE, DTYPES, InvalidExperiment, check_fields
from explorer.fields import Field

LOSSES = {
    "energy": "½‖h_T‖²",
    "readout": "wᵀh_T, w normal of norm 1",
    "class": "cross-entropy of a seeded readout with 10 classes",
}
"""The losses of the last state by name, with their formula; of an LSTM h is its hidden half."""

GATED = ("gru", "lstm")
"""The cells whose gates let the state through."""

FIELDS: dict[str, Field] = {
    each.name: each
    for each in (
        Field("cell", "choice", "Cell", "tanh", choices=("tanh", "relu", *GATED),
              help="what a step does with the state"),
        Field("start", "choice", "Start", "default",
              choices=("default", "orthogonal", "identity", "gain"),
              help="the recurrent weights, for each gate: uniform within ±1/√n, a random rotation, "
              "the identity, or gain times the first"),
        Field("gain", "number", "Gain", 1.0, minimum=0, maximum=100,
              help="what the start named gain multiplies by"),
        Field("size", "integer", "Hidden size n", 32, minimum=1, maximum=256,
              help="hidden units; the state of an LSTM is twice as long"),
        Field("steps", "integer", "Steps T", 40, minimum=1, maximum=500,
              help="how often the cell is applied"),
        Field("input_scale", "number", "Input scale", 0.05, minimum=0, maximum=100,
              help="standard deviation of the inputs, a vector of the size at each step"),
        Field("losses", "choices", "Loss", tuple(LOSSES), choices=tuple(LOSSES),
              help="what is differentiated by every state"),
        Field("dtype", "choice", "Data type", "float64", choices=DTYPES,
              help="precision of the computation"),
        DEVICE,
        Field("repeats", "integer", "Repeats", 5, minimum=1, maximum=1000,
              help="timed runs of each way"),
        Field("seed", "integer", "Seed", 0, minimum=0, maximum=2**31 - 1,
              help="seed of the random numbers"),
    )
}  # fmt: skip
"""The fields by name, in the order they are shown."""


def check(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """(the values that are allowed, parsed; a sentence for each one that is not), by field.

    A field that is not given has its default.
    """
    return check_fields(FIELDS, values)


@dataclass(frozen=True)
class FlowExperiment:
    """One run of the Gradient flow panel: h_t = cell(h_{t−1}, u_t) over T steps, losses of h_T.

    Every value is checked when the object is made. `gain` counts where `start` is "gain".

    Raises:
        InvalidExperiment: a value is not allowed; `.problems` says which and what is.
    """

    cell: str = FIELDS["cell"].default
    start: str = FIELDS["start"].default
    gain: float = FIELDS["gain"].default
    size: int = FIELDS["size"].default
    steps: int = FIELDS["steps"].default
    input_scale: float = FIELDS["input_scale"].default
    losses: tuple[str, ...] = FIELDS["losses"].default
    dtype: str = FIELDS["dtype"].default
    device: str = FIELDS["device"].default
    repeats: int = FIELDS["repeats"].default
    seed: int = FIELDS["seed"].default

    def __post_init__(self) -> None:
        parsed, problems = check(self.values)
        if problems:
            raise InvalidExperiment(problems)
        for name, value in parsed.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> FlowExperiment:
        """A FlowExperiment from field names to values, text or typed.

        Raises:
            InvalidExperiment: with a sentence for each value that is not allowed.
        """
        parsed, problems = check(values)
        if problems:
            raise InvalidExperiment(problems)
        return cls(**parsed)

    @property
    def values(self) -> dict[str, Any]:
        """Every field's name to its value; `from_values` reads it back."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def to_json(self) -> dict[str, Any]:
        """A mapping that `json.dumps` takes; `from_values` reads it back."""
        return {**self.values, "losses": list(self.losses)}
