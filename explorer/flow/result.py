"""A Flow: what gradients did on their way back through the steps, as plain data.

h_0 = x and h_t = step_t(h_{t−1}) up to h_T, and losses L of h_T. Importing this module imports no
torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator
from pydantic_core import from_json

from explorer.experiment import InvalidExperiment
from explorer.flow.experiment import FlowExperiment
from explorer.result import SCHEMA, Count, Data, Environment, Number, Seconds, number


def _experiment(value: Any) -> FlowExperiment | None:
    if value is None or isinstance(value, FlowExperiment):
        return value
    if not isinstance(value, dict):
        raise InvalidExperiment({"experiment": "The experiment is no mapping of names to values."})
    return FlowExperiment.from_values(value)


def _plain(experiment: FlowExperiment | None) -> dict[str, Any] | None:
    return None if experiment is None else experiment.to_json()


class Fan(Data):
    """Singular values of the product ∂h_T/∂h_t = J_T ⋯ J_{t+1}, at the steps t of `times`.

    From the largest to the smallest, with the quartiles between; None where one lies below what
    rounding leaves of the product, n·ε of the largest.
    """

    times: tuple[Count, ...]
    largest: tuple[Number, ...]
    upper: tuple[Number | None, ...]
    median: tuple[Number | None, ...]
    lower: tuple[Number | None, ...]
    smallest: tuple[Number | None, ...]


class Ways(Data):
    """All ∂L/∂h_t two ways: `naive`, a backward pass through the steps for each loss, and `reuse`,
    every step's Jacobian once (`jacobians`) and then one chain of products for all losses
    together (`chain`). The steps forward and the losses' own gradients by h_T, which both need, are
    in none of them. `difference` is the largest ‖difference‖/‖naive‖ over t and the losses."""

    naive: Seconds
    jacobians: Seconds
    chain: Seconds
    difference: Number


class Flow(Data):
    """What was seen of T steps; entries of a list over t are in the order of t.

    Attributes:
        experiment: None where the steps are a person's own.
        samples: 1 for one sample; else all norms, and the bound, are means over as many samples.
        gradients: for each loss ‖∂L/∂h_t‖₂ for t = 0 … T.
        steps: ‖∂h_t/∂h_{t−1}‖₂ for t = 1 … T.
        bound: the product of the step norms from t+1 to T, for t = 0 … T: at least ‖∂h_T/∂h_t‖₂.
        names: of each step, for t = 1 … T.
        fan: None where `without_fan` says why.
        ways: None where nothing was timed.
    """

    schema_version: Annotated[Literal[1], BeforeValidator(number)] = Field(
        default=SCHEMA, alias="schema"
    )
    kind: Literal["gradient flow"] = "gradient flow"
    status: Literal["running", "done", "cancelled"] = "done"
    experiment: Annotated[
        FlowExperiment | None, PlainValidator(_experiment), PlainSerializer(_plain)
    ] = None
    environment: Environment
    dtype: str
    samples: Count = 1
    gradients: dict[str, tuple[Number, ...]] = Field(min_length=1)
    steps: tuple[Number, ...] = Field(min_length=1)
    bound: tuple[Number, ...]
    names: tuple[str, ...]
    fan: Fan | None = None
    without_fan: str = ""
    ways: Ways | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Strict JSON, indented; `from_json` reads it back to an equal Flow, NaN aside."""
        return self.model_dump_json(by_alias=True, indent=2)

    def _ipython_display_(self) -> None:
        # By name, in a notebook alone: what computes a Flow, or prints it, needs no widgets.
        import_module("explorer.app.display").show_flow(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Flow:
        """Reads what `to_json` wrote.

        Raises:
            ValueError: the text is no strict JSON, or no Flow.
        """
        plain = from_json(text, allow_inf_nan=False)
        if isinstance(plain, dict) and "schema" not in plain:
            raise ValueError(f"The text has no schema. A Flow has schema {SCHEMA}.")
        return cls.model_validate(plain)
