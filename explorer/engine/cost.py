"""What one pass through f will cost, guessed from one forward pass and the size of its graph.

An operation takes a fixed time, whatever its size, and the time of its arithmetic. The fixed part
differs by the way through f: forward mode and vmap pass every operation through more layers of
torch than a plain backward does. In a batch, operations of little arithmetic share what they wait
for, and large ones gain nothing. So an f of many small operations is slow in forward mode and
quick in a batch, while for one of few large operations only the number of passes counts. The
factors are rounded from what ten functions took on two cores: chains of small operations, dense
and convolutional networks, matrix exponentials, decompositions, a Fourier transform.
"""

from __future__ import annotations

import functools
import sys
import time

import torch

from explorer.engine import rank
from explorer.engine.plan import Costs, Sizes

# Fixed time of an operation, and of a pass, in units of that of a forward operation.
_BACKWARD, _BACKWARD_CALL = 1.7, 5.0
_BATCHED, _BATCHED_CALL = 2.5, 100.0
_FORWARD_MODE, _FORWARD_MODE_CALL = 15.0, 100.0

# Arithmetic of a pass, in units of that of a forward pass.
_BACKWARD_WORK = 2.0
_FORWARD_MODE_WORK = 3.0

# Of a cotangent in a batch, in units of one alone: at most _BATCHED_WORK, half of it where the
# arithmetic of an operation takes _SHARED seconds.
_BATCHED_WORK, _SHARED = 1.6, 40e-6

# Seconds that the first use in a process takes beside, by the module that it imports.
_VMAP = "torch.fx.experimental.symbolic_shapes", 0.8
_FORWARD_AD = "torch._decomp.decompositions_for_jvp", 0.2


def estimated(forward: float, operations: int, sizes: Sizes) -> Costs:
    """The costs of an f whose forward pass took so many seconds, for so many operations."""
    fixed = _operation()
    work = max(0.0, forward - operations * fixed)
    each = work / operations
    return Costs(
        forward=forward,
        backward=_pass(fixed, operations, _BACKWARD, _BACKWARD_CALL) + _BACKWARD_WORK * work,
        forward_mode=_pass(fixed, operations, _FORWARD_MODE, _FORWARD_MODE_CALL)
        + _FORWARD_MODE_WORK * work
        + _first_use(*_FORWARD_AD),
        batch=_pass(fixed, operations, _BATCHED, _BATCHED_CALL) + _first_use(*_VMAP),
        batched=_BATCHED_WORK * each / (each + _SHARED) * _BACKWARD_WORK * work,
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
