"""An Experiment: what to do, as plain data, checked against one table of fields.

The table (`table(function)`) makes the page's controls, the command line's options, the link's
query string, the JSON and the validation. Importing this module imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Literal

from explorer.engine.plan import PATHS, PEER
from explorer.fields import Field, FieldError, shown, suggestion
from explorer.functions import FUNCTIONS
from explorer.functions.description import Function, Setting
from explorer.heads import HEADS, HeadsField

DTYPES = ("float32", "float64")

LACKING: dict[tuple[str, str], str] = {
    ("float64", "mps"): "Apple's MPS computes in float32 only",
}
"""The pairs of dtype and device type that torch lacks, with the reason."""

DEFAULT_FUNCTION = "matrix_exp_trace"

DEFAULT_PATHS = ("recompute", "retain_graph", "reuse", "auto")
"""What people write, the chain rule, and what the plan makes of it."""

Along = Literal["heads", "outputs"]
ALONG: tuple[Along, ...] = ("heads", "outputs")
"""What the Scaling view can be measured along: the number of heads, and of entries of y."""


class InvalidExperiment(ValueError):
    """Values that no Experiment can have; `problems` has a sentence for each field at fault."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        super().__init__(" ".join(self.problems.values()))

    def __reduce__(self) -> tuple[type[InvalidExperiment], tuple[dict[str, str]]]:
        return InvalidExperiment, (self.problems,)


class _DeviceField(Field):
    """A device by torch's name for it; whether it is there, only the worker knows."""

    def parse(self, value: Any) -> str:
        text = value.strip().lower() if isinstance(value, str) else ""
        kind, colon, index = text.partition(":")
        known = kind.isascii() and kind.isalpha() and len(kind) <= 20
        if not known or (colon and not (index.isascii() and index.isdigit() and len(index) < 4)):
            raise FieldError(f"{self.label} is {shown(value)}. Allowed: {self.allowed}.")
        return text

    @property
    def allowed(self) -> str:
        return "cpu, cuda, cuda:1, mps or another device of torch"


DEVICE = _DeviceField("device", "choice", "Device", "cpu", help="where it runs")
"""The field of the device, the same for every kind of experiment."""


def table(function: str = DEFAULT_FUNCTION) -> dict[str, Field]:
    """The fields of an experiment on a function, by name, in the order they are shown.

    The function's own parameters stand behind `size`; its own heads are among the heads.
    """
    described = FUNCTIONS[function]
    fields = (
        Field("function", "choice", "Function", DEFAULT_FUNCTION, choices=tuple(FUNCTIONS),
              help="the slow function f"),
        described.size,
        *described.parameters,
        Field("dtype", "choice", "Data type", described.dtype, choices=DTYPES,
              help="precision of the computation"),
        DEVICE,
        Field("compile", "switch", "torch.compile", False,
              help="run f as torch.compile makes it"),
        heads_field(described),
        *_COMMON,
    )  # fmt: skip
    return {each.name: each for each in fields}


def heads_field(described: Function) -> HeadsField:
    """The field of the heads that an experiment on a function can have."""
    choices = (*(head.name for head in described.heads), *HEADS)
    return HeadsField("heads", "choices", "Head", described.default_heads, choices=choices,
                      help="the cheap functions g of y")  # fmt: skip


_COMMON = (
    Field("paths", "choices", "Path", DEFAULT_PATHS, choices=tuple(PATHS),
          help="the ways to the gradients"),
    Field("repeats", "integer", "Repeats", 5, minimum=1, maximum=1000,
          help="timed runs of each path"),
    Field("scaling", "choices", "Scaling", (), choices=ALONG, optional=True, empty="not measured",
          help="time and passes against the number of heads, or of outputs"),
    Field("cutoff", "number", "Cut-off", 1.0, minimum=0, maximum=3600, exclusive_minimum=True,
          unit="seconds", help="longest single run in the scaling"),
    Field("sizes", "switch", "Norms against size", False,
          help="spectral norms of smaller sizes of f too"),
    Field("curvature", "switch", "Curvature", False,
          help="the largest and smallest eigenvalue of each head's Hessian"),
    Field("seed", "integer", "Seed", 0, minimum=0, maximum=2**31 - 1,
          help="seed of the random numbers"),
    Field("budget", "number", "Time budget", None, minimum=0, maximum=86_400,
          exclusive_minimum=True, unit="seconds", optional=True, empty="no limit",
          help="seconds after which repeats stop"),
)  # fmt: skip


def check(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """(the values that are allowed, parsed; a sentence for each one that is not), by field.

    A field that is not given has its default. With an unknown function the other fields are
    checked against the default function's, so that every problem is told at once.
    """
    function = values.get("function", DEFAULT_FUNCTION)
    known = function if isinstance(function, str) and function in FUNCTIONS else DEFAULT_FUNCTION
    return check_fields(table(known), values)


def check_fields(
    fields: Mapping[str, Field], values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The same against any table with a dtype and a device in it."""
    parsed: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, known_field in fields.items():
        try:
            parsed[name] = (
                known_field.parse(values[name]) if name in values else known_field.default
            )
        except FieldError as error:
            problems[name] = str(error)
    for name in values:
        if name not in fields:
            problems[name] = (
                f"{shown(name)} is not a field. {suggestion(str(name), tuple(fields))}"
                f"Allowed: {', '.join(fields)}."
            )
    if "dtype" in parsed and "device" in parsed:
        reason = lacking(parsed["dtype"], parsed["device"])
        if reason:
            problems["dtype"] = reason
            del parsed["dtype"]
    return parsed, problems


def lacking(dtype: str, device: str) -> str:
    """Why torch lacks a dtype on a device, as a sentence; empty where it has it."""
    reason = LACKING.get((dtype, device.partition(":")[0]))
    return f"{dtype} is not available on {device}: {reason}." if reason else ""


def missing(device: str, names: Sequence[str]) -> str:
    """That a device is not among those there are, as a sentence; empty where it is."""
    # torch takes "cuda" for the first of them.
    if device in names or f"{device}:0" in names:
        return ""
    return f"Device {shown(device)} is not on this machine. Allowed: {', '.join(names)}."


def uninstalled(paths: Sequence[str]) -> str:
    """That a path's package is not installed, as a sentence; empty where none is lacking.

    The package is looked for and not imported: it would bring torch.
    """
    if PEER not in paths or find_spec(PEER) is not None:
        return ""
    return f"Path {PEER} needs a package that is not installed here. Get it: pip install {PEER}"


_OF_FUNCTION: Any = None  # stands for the default that the function has


@dataclass(frozen=True)
class Experiment:
    """One run of the laboratory: which f, in what size and precision, which heads and paths.

    Every value is checked when the object is made, and none can be changed. `parameters` holds
    the function's own parameters; those left out have their defaults. None for the size, the
    dtype or the heads stands for the function's default. An entry of the heads is the name of
    one, a set such as `powers(16)`, or an expression such as `y**2 + sin(y)`. `compile` runs f
    as torch.compile makes it. `scaling` names what of `ALONG` to measure along, and `cutoff` is
    the longest single run in it in seconds. `sizes` asks for the norms of smaller sizes of f, and
    `curvature` for the extreme eigenvalues of each head's Hessian. `budget` is in seconds, None for
    no limit.

    Raises:
        InvalidExperiment: a value is not allowed; `.problems` says which and what is.
    """

    function: str = DEFAULT_FUNCTION
    size: int = _OF_FUNCTION
    parameters: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = _OF_FUNCTION
    device: str = "cpu"
    compile: bool = False
    heads: tuple[str, ...] = _OF_FUNCTION
    paths: tuple[str, ...] = DEFAULT_PATHS
    repeats: int = 5
    scaling: tuple[Along, ...] = ()
    cutoff: float = 1.0
    sizes: bool = False
    curvature: bool = False
    seed: int = 0
    budget: float | None = None

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in _OWN}
        for name in ("size", "dtype", "heads"):
            if given[name] is _OF_FUNCTION:
                del given[name]
        parsed = _check_apart(self.parameters, given)
        for name in _OWN:
            object.__setattr__(self, name, parsed[name])
        own = {name: value for name, value in parsed.items() if name not in _OWN}
        object.__setattr__(self, "parameters", MappingProxyType(own))

    def __reduce__(self) -> tuple[Any, ...]:
        return Experiment.from_json, (self.to_json(),)  # a read-only mapping does not pickle

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Experiment:
        """An Experiment from one flat mapping of field names to values, text or typed.

        Raises:
            InvalidExperiment: with a sentence for each value that is not allowed.
        """
        parsed, problems = check(values)
        if problems:
            raise InvalidExperiment(problems)
        own = {name: value for name, value in parsed.items() if name in _OWN}
        return cls(**own, parameters={k: v for k, v in parsed.items() if k not in _OWN})

    @property
    def values(self) -> dict[str, Any]:
        """One flat mapping of every field's name to its value; `from_values` reads it back."""
        return {
            name: self.parameters[name] if name in self.parameters else getattr(self, name)
            for name in table(self.function)
        }

    @property
    def described(self) -> Function:
        """The function's description."""
        return FUNCTIONS[self.function]

    @property
    def setting(self) -> Setting:
        """What the function's builder and its estimates take."""
        return Setting(self.size, self.parameters, self.dtype, self.device, self.seed)

    def to_json(self) -> dict[str, Any]:
        """A mapping that `json.dumps` takes; `from_json` reads it back."""
        plain = {name: getattr(self, name) for name in _OWN}
        return {
            **plain,
            "parameters": dict(self.parameters),
            "heads": list(self.heads),
            "paths": list(self.paths),
            "scaling": list(self.scaling),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Experiment:
        """Reads what `to_json` wrote; raises InvalidExperiment, as the constructor does."""
        if not isinstance(plain, Mapping):
            problem = f"The experiment is {shown(plain)}. Allowed: a mapping of names to values."
            raise InvalidExperiment({"experiment": problem})
        rest = {name: value for name, value in plain.items() if name != "parameters"}
        return cls.from_values(_check_apart(plain.get("parameters", {}), rest))


def _check_apart(parameters: object, rest: Mapping[str, Any]) -> dict[str, Any]:
    """The parsed values of a function's parameters and of the other fields, given apart."""
    if not isinstance(parameters, Mapping):
        problem = f"parameters is {shown(parameters)}. Allowed: a mapping of names to values."
        raise InvalidExperiment({"parameters": problem})
    parsed, problems = check({**parameters, **rest})
    for name in parameters:
        if name in _OWN:
            problems[name] = f"{name} is a field of its own, not a parameter of the function."
        elif name in rest:
            problems[name] = f"{shown(name)} is given twice: in parameters and beside them."
    if problems:
        raise InvalidExperiment(problems)
    return parsed


_OWN = (
    *("function", "size", "dtype", "device", "compile", "heads", "paths", "repeats", "scaling"),
    *("cutoff", "sizes", "curvature", "seed", "budget"),
)
