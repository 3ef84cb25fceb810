"""What a function f says of itself: its fields, its cost, and how to build it.

A description imports no torch, so that the page and the command line's help open at once; its
`build` does, and is called only where the work is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

    `value` has the shape of y; `jacobian` has shape `(*y.shape, *x.shape)`.
    """

    value: Tensor
    jacobian: Tensor


@dataclass(frozen=True)
class Problem:
    """A function built and ready to run: `f(x)` is y; `exact` is None where nothing is known."""

    f: Callable[[Tensor], Tensor]
    x: Tensor
    exact: Exact | None = None


@dataclass(frozen=True)
class Cost:
    """What one pass costs, estimated before anything runs.

    `forward_flops` and `backward_flops` are floating-point operations of one forward and of one
    backward pass; `memory_bytes` is the peak of one forward and backward, above what is there.
    """

    forward_flops: float
    backward_flops: float
    memory_bytes: float


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
    inaccuracy: str
    """Why its gradients can be wrong in a low precision, for the sentence that says they are."""
