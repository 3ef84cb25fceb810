"""f's that count their own passes, apart from the engine's counts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class Count:
    forward: int = 0
    backward: int = 0
    forward_mode: int = 0


class _Gate(torch.autograd.Function):
    """The identity, which counts what goes through it in either direction."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, count: Count) -> Tensor:
        ctx.count = count
        count.forward += 1
        return y.clone()

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:
        ctx.count.backward += 1
        return cotangent, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, count: None) -> Tensor:
        ctx.count.forward_mode += 1
        return tangent.clone()


def counting(f: Callable[[Tensor], Tensor]) -> tuple[Callable[[Tensor], Tensor], Count]:
    """(f with a gate inside it, the count of the passes through that gate)."""
    count = Count()
    gate: Callable[..., Tensor] = _Gate.apply
    return lambda x: torch.sin(gate(f(x), count)), count
