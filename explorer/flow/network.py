"""The recurrent network of the Gradient flow panel, step by step, and its losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor

from explorer.flow.experiment import FlowExperiment
from explorer.recurrence import GATES, driven, parts, recurrent_weights, uniform, unrolled


@dataclass(frozen=True)
class Network:
    """h_t = step_t(h_{t−1}), h_0 = x, and the losses of h_T by name, each one real number."""

    steps: list[Callable[[Tensor], Tensor]]
    x: Tensor
    losses: dict[str, Callable[[Tensor], Tensor]]


def network(experiment: FlowExperiment) -> Network:
    """The steps, x and losses of an experiment, in its dtype and on its device.

    A state is one vector: h, of an LSTM h and c one behind the other. x is normal with standard
    deviation 0.1: entries near 1 would saturate tanh in the first steps, whatever the recurrent
    weights are. Biases are 0, but for the gates that keep the state: z of a GRU and f of an LSTM
    have log U, U uniform in 1 … T−1, and i of an LSTM the opposite, so that the units remember for
    U steps (Tallec and Ollivier, arXiv 1804.11188, 2018); from torch's own biases the gradient of a
    gated cell vanishes too, only later. `start` and `gain` change the recurrent weights alone.
    """
    n, steps, cell = experiment.size, experiment.steps, experiment.cell
    rows = GATES[cell] * n
    dtype = getattr(torch, experiment.dtype)
    generator = torch.Generator().manual_seed(experiment.seed)

    def there(tensor: Tensor) -> Tensor:
        return tensor.to(experiment.device, dtype)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    x = there(_STATE * normal(parts(cell) * n))
    inputs = there(experiment.input_scale * normal(steps, n))
    input_weights = there(uniform(generator, n, rows, n))
    bias = there(_biases(cell, n, steps, generator))
    direction = there(torch.nn.functional.normalize(normal(n), dim=0))
    readout = there(uniform(generator, n, _CLASSES, n))
    label = torch.randint(_CLASSES, (1,), generator=generator).to(experiment.device)
    weights = there(recurrent_weights(cell, experiment.start, n, generator, experiment.gain))
    none = torch.zeros_like(bias)
    u = driven(cell, inputs, input_weights, bias, none)
    losses: dict[str, Callable[[Tensor], Tensor]] = {
        "energy": lambda h: h[:n].square().sum() / 2,
        "readout": lambda h: direction @ h[:n],
        "class": lambda h: torch.nn.functional.cross_entropy((readout @ h[:n])[None], label),
    }

    def whole(step: Callable[..., tuple[Tensor, ...]], state: Tensor) -> Tensor:
        found = step(*torch.split(state, n))
        return found[0] if len(found) == 1 else torch.cat(found)

    return Network(
        [partial(whole, step) for step in unrolled(cell, u, weights, none)],
        x,
        {name: losses[name] for name in experiment.losses},
    )


def _biases(cell: str, n: int, steps: int, generator: Generator) -> Tensor:
    bias = torch.zeros(GATES[cell], n)
    keep = torch.empty(n).uniform_(1, max(1, steps - 1), generator=generator).log()
    if cell in ("gru", "lstm"):
        bias[1] = keep
    if cell == "lstm":
        bias[0] = -keep
    return bias.flatten()


_STATE = 0.1  # standard deviation of the entries of x
_CLASSES = 10
