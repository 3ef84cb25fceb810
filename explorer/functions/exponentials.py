"""What the two functions of a matrix exponential share: whose derivative it has, and its cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from explorer.fields import Field
from explorer.functions.description import Setting, Work, rate

if TYPE_CHECKING:
    from torch import Tensor

DERIVATIVE = Field(
    "derivative",
    "choice",
    "Derivative",
    default="torch",
    choices=("torch", "fast"),
    help="of torch.matrix_exp, by the exponential of a matrix twice as large, or of "
    "explorer.matrix_exp, along the products of the forward",
)

WORKSPACE = 50e6
"""Bytes that the first products of a process take, whatever their size."""

_CALLS = {"torch": (40, 80), "fast": (200, 300)}  # operators of a forward and of a backward


def exponential(setting: Setting) -> Callable[[Tensor], Tensor]:
    """torch's matrix exponential, or explorer's, as the derivative is chosen."""
    if setting.parameters["derivative"] == "fast":
        from explorer import matrix_exp

        return matrix_exp
    import torch

    return torch.matrix_exp


def work(setting: Setting, norm: float, flops: float, trace: bool = False) -> tuple[Work, Work]:
    """(the forward, the backward) at a 1-norm, of products of so many operations each.

    Both forwards take 5 products and s squarings, with the norm scaled below 1.09 (float64) or
    3.01 (float32). torch's backward exponentiates a block matrix, 8 times the work; explorer's
    takes 3 times its forward's products, and none for the cotangent that a trace sends back.
    """
    reach = 1.09 if setting.dtype == "float64" else 3.01
    squarings = max(0, math.ceil(math.log2(norm / reach))) if norm > reach else 0
    products = 5 + squarings
    derivative = setting.parameters["derivative"]
    backward = 8 * products if derivative == "torch" else 0 if trace else 3 * products
    ahead, back = _CALLS[derivative]
    a_second = rate(setting.dtype)
    return (
        Work(products * flops, calls=ahead, rate=a_second),
        Work(backward * flops, calls=back, rate=a_second),
    )
