"""What a function f says of itself: its fields, its cost, and how to build it.

A description imports no torch, so that the page and the command line's help open at once; its
`build` does, and is called only where the work is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from explorer.fields import Field

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Setting:
    """One choice of a function's fields, as its builder and its estimates take it."""

    size: int
    parameters: Mapping[str, Any]
    dtype: str
    device: str = "cpu"
    seed: int = 0


@dataclass(frozen=True)
class Exact:
    """The exact value and Jacobian, known apart from autograd; both float64 on the CPU.

    `value` has the shape of y; `jacobian` has shape `(*y.shape, *x.shape)`. `source` says what
    they are from.
    """

    value: Tensor
    jacobian: Tensor
    source: str = "closed form"


@dataclass(frozen=True)
class Problem:
    """A function built and ready to run: `f(x)` is y; `exact` is None where nothing is known.

    x and y are one real tensor each, of the setting's dtype and on its device. `heads` has a
    callable for each head that the function's description names; it takes y in any dtype and on
    any device, and computes there.
    """

    f: Callable[[Tensor], Tensor]
    x: Tensor
    exact: Exact | None = None
    heads: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=dict)


@dataclass(frozen=True)
class Code:
    """A function as a person would write it, for a script that stands alone.

    `parts` are pieces of Python that define x and f, of `device` and `dtype`, however indented;
    `imports` the lines that they need beside `import torch`. `y_shape` is the shape of y, None
    where it is not known, and `x_dims` the number of dimensions of x. `heads` has the function's
    own heads, each an expression of y, and `heads_text` what they need; `own_heads` those that
    are a person's own. No piece may define a name that the rest of a script has, see
    `explorer.scripts.layout.NAMES`, but x, f and `generator`.
    """

    parts: tuple[str, ...]
    y_shape: tuple[int, ...] | None
    x_dims: int = 1
    imports: tuple[str, ...] = ()
    heads: Mapping[str, str] = field(default_factory=dict)
    heads_text: str = ""
    own_heads: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class OwnHead:
    """A head that only one function has, by its name and formula; `Problem.heads` has the rest."""

    name: str
    formula: str


RATE = 5e10
"""Floating-point operations a second in matrix products in float64, of a modest CPU."""

BANDWIDTH = 1e10
"""Bytes a second that its memory gives and takes."""

READ = 0.4
"""Of the bytes of a matrix that is multiplied by a vector, the part that counts as moved: both
cores only read, in one stream and often from a cache."""

CALL = 4e-6
"""Seconds of one operator of torch that has next to nothing to compute."""


def decomposition_seconds(outputs: int, inputs: int) -> float:
    """Of the singular values of an m×n matrix, in float64: about 4·max(m, n)·min(m, n)² operations
    to make it square, and then 20·min(m, n)³."""
    small, large = sorted((outputs, inputs))
    return (4.0 * large + 20.0 * small) * small**2 / RATE


def rate(dtype: str) -> float:
    """`RATE`, twice of it in float32, of which a register holds twice as many."""
    return RATE * (2 if dtype == "float32" else 1)


@dataclass(frozen=True)
class Work:
    """What one pass does: operations in matrix products, bytes read and written apart from
    those, and operators of torch called; `rate` is how many of the first are done in a second."""

    flops: float = 0.0
    moved_bytes: float = 0.0
    calls: float = 0.0
    rate: float = RATE

    @property
    def seconds(self) -> float:
        """On a modest CPU, within a factor of about 3."""
        return self.flops / self.rate + self.moved_bytes / BANDWIDTH + self.calls * CALL


@dataclass(frozen=True)
class Cost:
    """What a function costs, estimated before anything runs: `forward` and `backward` are one
    pass each; `memory_bytes` is the peak of one forward and backward, above what is there. All
    is 0 where nothing is known of f."""

    forward: Work
    backward: Work
    memory_bytes: float

    @property
    def ratio(self) -> float:
        """The time of a backward pass over that of a forward one."""
        forward = self.forward.seconds
        return self.backward.seconds / forward if forward else 2.0  # as it is for most f


@dataclass(frozen=True)
class Function:
    """A slow function f, described. `build` is the one part that imports torch."""

    name: str
    title: str
    formula: str
    why_slow: str
    size: Field
    parameters: tuple[Field, ...]
    inputs: Callable[[Setting], int]
    outputs: Callable[[Setting], int]
    cost: Callable[[Setting], Cost]
    build: Callable[[Setting], Problem]
    code: Callable[[Setting], Code]
    """The same as text; the two give the same numbers."""
    inaccuracy: str
    """Why its gradients can be wrong in a low precision, for the sentence that says they are."""
    default_heads: tuple[str, ...] = ("square", "sqrt")
    """The heads that a page begins with: of the registry, or its own."""
    heads: tuple[OwnHead, ...] = ()
    dtype: str = "float64"
    """The dtype that a page begins with."""
    own: bool = False
    """Whether it is a person's own: then nothing is known of its cost, nor of y before it ran."""
