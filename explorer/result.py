"""A Result: what was seen, and the environment it was seen in, as plain data.

A figure, a table, a sentence or a comparison needs nothing but Results. JSON is strict both
ways: a number that is not finite is written as the string "NaN", "Infinity" or "-Infinity".
Importing this module imports no torch.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
)
from pydantic_core import from_json

from explorer.experiment import Along, Experiment

SCHEMA: Final = 1


def _experiment(value: Any) -> Experiment:
    return value if isinstance(value, Experiment) else Experiment.from_json(value)


def number(value: Any) -> Any:
    # Pydantic would take true for 1, and "2" for 2.
    if isinstance(value, bool) or (isinstance(value, str) and value not in _NOT_FINITE):
        raise ValueError("a number, or one of " + ", ".join(map(repr, _NOT_FINITE)))
    return value


_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
Number = Annotated[float, BeforeValidator(number)]
Count = Annotated[int, Field(strict=True, ge=0)]


class Data(BaseModel):
    """Plain data that cannot be changed; a field that is not known is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Seconds(Data):
    """Wall time of one execution of a path: statistics of the raw `runs`, all in seconds."""

    median: Number
    iqr: Number
    minimum: Number
    runs: tuple[Number, ...]


class _Passes(Data):
    """Passes through f, as `explorer.engine.plan.Passes` counts them."""

    forward_passes: Count
    backward_passes: Count
    forward_mode_passes: Count = 0


class PathResult(_Passes):
    """What one path took.

    `status` is "measured"; "running" until the first timed run is in; or "predicted": not run,
    for the reason in `note`, with `predicted_seconds` in the place of a measurement and the
    passes that it would take. Bytes are None where they cannot be measured. `taken` is the path
    that was taken, which `auto` chooses; `plan` says in a sentence what it does and why.
    """

    status: Literal["running", "measured", "predicted"]
    seconds: Seconds | None = None
    predicted_seconds: Number | None = None
    saved_bytes: Count | None = None
    peak_memory_bytes: Count | None = None
    noise: str = ""
    note: str = ""
    taken: str = ""
    plan: str = ""


class Array(Data):
    """A tensor of more entries than are listed: its 2-norm, its shape and its first entries."""

    norm: Number
    shape: tuple[Count, ...]
    first: tuple[Number, ...]


Numbers = tuple[Number, ...] | Array
"""A tensor flattened, in full or, when large, as an `Array`."""


class HeadResult(Data):
    """One head: its value, and by path its gradient, agreement and error.

    `agreement` is ‖difference‖/‖reference‖ with `agreement_reference`, the naive path that was
    run, or None; `error` is the same with the exact gradient, or None; `error_reference` says
    what was taken as exact, or why nothing was. `domain` is empty where the head is defined at y
    and finite, else it says what is wrong in the head's own words, and the head is left out of
    every judgement. `formula` is the head as it was understood.
    """

    value: Number
    gradient: dict[str, Numbers]
    agreement: dict[str, Number | None]
    agreement_reference: str | None
    error: dict[str, Number | None]
    error_reference: str
    exact_gradient: Numbers | None = None
    domain: str = ""
    formula: str = ""


class HeadNorms(Data):
    """Spectral norms of dg/dy and of dz/dx, and the bound ‖dg/dy‖·‖dy/dx‖ on the second."""

    spectral_norm: Number
    composite: Number
    bound: Number


class Curvature(Data):
    """The largest and the smallest eigenvalue of the Hessian ∂²z/∂x² of a head, the larger of
    their error estimates, and the Hessian–vector products that were taken."""

    largest: Number
    smallest: Number
    error: Number
    products: Count


class SizeNorms(Data):
    """The norms at one size: of dy/dx with its error estimate, and of dz/dx of each head.

    A head that is outside its domain there, or not finite, is left out.
    """

    size: Count
    inputs: Count
    outputs: Count
    spectral_norm: Number
    error: Number
    heads: dict[str, Number]


class JacobianResult(Data):
    """Spectral norm of dy/dx and of each head's part; None where `method` says it was left out.

    Attributes:
        source: the path that formed dy/dx, empty where none did.
        error: the estimate of the norm's error; 0 of a dense decomposition, which only rounds.
        products: the products J·v and Jᵀ·u that were taken, None of a dense decomposition.
        singular_values: the leading ones, from the largest.
        condition: the largest over the smallest singular value; None where the smallest is not
            known, ∞ where it is 0.
        direction: of norm 1, the x-direction that dy/dx stretches most; None where none is.
        agreement: by path ‖Z − Z_ref‖₂/‖Z_ref‖₂ of the Jacobian Z of all heads together, with
            the naive path that the heads' agreement refers to.
        curvature: by head, where it was asked for.
        by_size: where it was asked for, from the smallest size.
    """

    spectral_norm: Number | None
    heads: dict[str, HeadNorms]
    method: str
    source: str = ""
    error: Number | None = None
    products: Count | None = None
    singular_values: tuple[Number, ...] = ()
    condition: Number | None = None
    direction: Numbers | None = None
    agreement: dict[str, Number | None] = {}
    curvature: dict[str, Curvature] = {}
    by_size: tuple[SizeNorms, ...] = ()


class ScalingPoint(_Passes):
    """One path at one count: its runs, and the path that was taken where `auto` chose."""

    count: Count
    seconds: Seconds
    taken: str = ""


class ScalingPrediction(_Passes):
    """What a path is predicted to take at one count, from passes timed alone."""

    seconds: Number


class ScalingPath(Data):
    """One path along the counts: what was measured, and for every count what is predicted.

    `ended` says why it was not continued to the last count, empty where it was.
    """

    measured: tuple[ScalingPoint, ...] = ()
    predicted: tuple[ScalingPrediction, ...]
    ended: str = ""


class BreakEven(Data):
    """Where a path that is not naive becomes faster than `reference`: as is predicted from passes
    timed alone while a scaling is under way, then by the cost model that is fitted to its points.

    `side` "from": at `count` and above; "up to": at `count` and below.
    """

    path: str
    reference: str
    count: Count
    side: Literal["from", "up to"]


class Scaling(Data):
    """Time and passes of every path against the number of heads, or of outputs, `counts`.

    `heads` and `outputs` are the numbers of the rest: None stands for the one that is counted.
    """

    along: Along
    counts: tuple[Count, ...]
    heads: Count | None
    outputs: Count | None
    paths: dict[str, ScalingPath]
    break_even: BreakEven | None = None


class FunctionResult(Data):
    """f at x: how many entries x and y have, y, and y exactly where a closed form is known.

    `compile_seconds` is what torch.compile took, None where f was not compiled.
    """

    name: str
    inputs: Count
    outputs: Count
    value: Number | Numbers
    exact_value: Number | Numbers | None = None
    compile_seconds: Number | None = None


class Environment(Data):
    """Where it was measured; `started` is the time in UTC, ISO 8601."""

    torch: str
    python: str
    device_name: str
    threads: Count
    host: str
    started: str


class Result(Data):
    """Everything an experiment showed. While it runs, partial Results have `status` "running"."""

    schema_version: Annotated[Literal[1], BeforeValidator(number)] = Field(
        default=SCHEMA, alias="schema"
    )
    status: Literal["running", "done", "cancelled"]
    experiment: Annotated[
        Experiment, PlainValidator(_experiment), PlainSerializer(Experiment.to_json)
    ]
    environment: Environment
    function: FunctionResult
    paths: dict[str, PathResult] = Field(min_length=1)
    heads: dict[str, HeadResult] = Field(min_length=1)
    jacobian: JacobianResult
    scaling: dict[Along, Scaling] = {}
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Strict JSON, indented; `from_json` reads it back to an equal Result, NaN aside."""
        return self.model_dump_json(by_alias=True, indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> Result:
        """Reads what `to_json` wrote.

        Raises:
            ValueError: the text is no strict JSON, or no Result.
        """
        plain = from_json(text, allow_inf_nan=False)
        if isinstance(plain, dict) and "schema" not in plain:
            raise ValueError(f"The text has no schema. A Result has schema {SCHEMA}.")
        return cls.model_validate(plain)
