"""What a function says that its passes do, held against what torch counts of them."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from explorer.functions.description import Function, Setting

C = TypeVar("C", bound=AbstractContextManager[Any])


class Operators(TorchDispatchMode):
    """Counts torch's operators that are called in its block, those of a backward too."""

    count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def require_calls(described: Function, chosen: Setting) -> None:
    """Asserts that a forward and a backward call as many operators as estimated, to a tenth."""
    forward, backward = Operators(), Operators()
    _pass(described, chosen, forward, backward)
    cost = described.cost(chosen)
    assert cost.forward.calls == pytest.approx(forward.count, rel=0.1)
    assert cost.backward.calls == pytest.approx(backward.count, rel=0.1)


def require_flops(described: Function, chosen: Setting) -> None:
    """Asserts that a forward and a backward do as many operations in products as estimated."""
    # torch counts products of matrices, and leaves out a matrix times a vector.
    mv = {torch.ops.aten.mv: lambda matrix, vector, **_: 2 * math.prod(matrix)}
    forward, backward = (FlopCounterMode(display=False, custom_mapping=mv) for _ in range(2))
    _pass(described, chosen, forward, backward)
    cost = described.cost(chosen)
    assert cost.forward.flops == forward.get_total_flops()
    assert cost.backward.flops == backward.get_total_flops()


def _pass(described: Function, chosen: Setting, forward: C, backward: C) -> None:
    """One forward and one backward, each within a counter of its own."""
    problem = described.build(chosen)
    x = problem.x.clone().requires_grad_()
    with forward:
        y = problem.f(x)
    with backward:
        torch.autograd.grad(y.sum(), x)
