"""What one pass through f will cost, guessed from one forward pass and the size of its graph.

An operation takes a fixed time, whatever its size, and the time of its arithmetic. The fixed part
differs by the way through f: forward mode and vmap pass every operation through more layers of
torch than a plain backward does. So an f of many small operations is slow in forward mode and
quick in a batch, and one of few large operations gains nothing from a batch. The factors below
were measured on a simulation of 1500 small operations, a matrix exponential and a dense network.
"""

from __future__ import annotations

import functools
import sys
import time

import torch

from explorer.engine import rank
from explorer.engine.plan import Costs, Sizes

# Fixed time of an operation, and of a pass, in units of that of a forward operation.
_BACKWARD, _BACKWARD_CALL = 1.8, 5.0
_BATCHED, _BATCHED_CALL = 4.0, 30.0
_FORWARD_MODE, _FORWARD_MODE_CALL = 16.0, 100.0

# Arithmetic of a pass, in units of that of a forward pass.
_BACKWARD_WORK = 2.0
_BATCHED_WORK = 2.6  # of each cotangent: no more work, but in memory that is K times as large
_FORWARD_MODE_WORK = 3.0

# Seconds that the first use in a process takes beside, by the module that it imports.
_VMAP = "torch.fx.experimental.symbolic_shapes", 0.8
_FORWARD_AD = "torch._decomp.decompositions_for_jvp", 0.2


def estimated(forward: float, operations: int, sizes: Sizes) -> Costs:
    """The costs of an f whose forward pass took so many seconds, for so many operations."""
    fixed = _operation()
    work = max(0.0, forward - operations * fixed)
    return Costs(
        forward=forward,
        backward=_pass(fixed, operations, _BACKWARD, _BACKWARD_CALL) + _BACKWARD_WORK * work,
        forward_mode=_pass(fixed, operations, _FORWARD_MODE, _FORWARD_MODE_CALL)
        + _FORWARD_MODE_WORK * work
        + _first_use(*_FORWARD_AD),
        batch=_pass(fixed, operations, _BATCHED, _BATCHED_CALL) + _first_use(*_VMAP),
        batched=_BATCHED_WORK * work,
        rows=rank.seconds(sizes.heads, sizes.outputs),
    )


def learned(backward: float, operations: int, sizes: Sizes) -> Costs:
    """The same from the seconds of one backward pass, where no forward was seen."""
    fixed = _pass(_operation(), operations, _BACKWARD, _BACKWARD_CALL)
    work = max(0.0, backward - fixed) / _BACKWARD_WORK
    return estimated(operations * _operation() + work, operations, sizes)


def _pass(fixed: float, operations: int, each: float, call: float) -> float:
    return fixed * (each * operations + call)


def _first_use(module: str, seconds: float) -> float:
    return 0.0 if module in sys.modules else seconds


@functools.cache
def _operation() -> float:
    """Seconds of a forward operation that has next to nothing to compute, on this machine."""
    best = float("inf")
    for _ in range(3):
        x = torch.ones((), requires_grad=True)
        start = time.perf_counter()
        for _ in range(50):
            x = x * 1.0
        best = min(best, (time.perf_counter() - start) / 50)
    return best
