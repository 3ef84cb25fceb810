"""Flows for what needs no run of the panel: of a linear recurrence, whose numbers are known."""

from __future__ import annotations

import math
from typing import Any

import torch

from explorer.flow.compute import gradient_flow
from explorer.flow.experiment import FlowExperiment
from explorer.flow.result import Flow, Ways
from tests.results import seconds


def linear(scale: float = 0.5, steps: int = 6, losses: int = 2, **changes: Any) -> Flow:
    """h_t = scale·Q·h_{t−1}, Q a rotation: every step multiplies a gradient by `scale`."""
    generator = torch.Generator().manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=torch.float64)).Q
    weights = scale * rotation
    directions = torch.randn(losses, 4, generator=generator, dtype=torch.float64)
    found = gradient_flow(
        [lambda h: weights @ h] * steps,
        torch.ones(4, dtype=torch.float64),
        {f"loss {number}": each.dot for number, each in enumerate(directions, 1)},
    )
    return found.model_copy(update=changes)


def of(experiment: FlowExperiment, scale: float = 0.5, **changes: Any) -> Flow:
    """The same as if it came from an experiment."""
    return linear(scale, experiment.steps, experiment=experiment, **changes)


def infinite() -> Flow:
    """Gradients that are finite at h_T alone."""
    plain = linear()
    rows = {name: (*(math.inf,) * 6, each[-1]) for name, each in plain.gradients.items()}
    return plain.model_copy(update={"gradients": rows, "bound": (math.inf,) * 6 + (1.0,)})


WAYS = Ways(
    naive=seconds(0.011, 0.012, 0.013),
    jacobians=seconds(0.04, 0.04, 0.04),
    chain=seconds(0.002, 0.002, 0.002),
    difference=1e-15,
)
"""Of two losses: a further one takes 6 ms naively and 1 ms by the chain, so 40 ms pay from 9 on."""
