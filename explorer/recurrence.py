"""The cells of recurrent networks, those of torch.nn.RNNCell, GRUCell and LSTMCell, step by step.

The state is a tuple of vectors: h, of an LSTM h and c. Importing this module imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor

GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}
"""By cell, blocks of the weights, one below the other: of a GRU r, z, n, of an LSTM i, f, g, o."""


def parts(cell: str) -> int:
    """Vectors in the state."""
    return 2 if cell == "lstm" else 1


def uniform(generator: Generator, n: int, *shape: int) -> Tensor:
    """Uniform within ±1/√n, as torch draws the weights of n hidden units; float32."""
    import torch

    bound = 1 / math.sqrt(n)
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)


def recurrent_weights(
    cell: str, start: str, n: int, generator: Generator, gain: float = 1.0
) -> Tensor:
    """`(gates·n, n)` in float32, for each gate: uniform within ±1/√n ("default"), `gain` times that
    ("gain"), a random rotation ("orthogonal") or the identity ("identity")."""
    import torch

    rows = GATES[cell] * n
    if start == "identity":
        return torch.eye(n).repeat(GATES[cell], 1)
    if start == "orthogonal":
        drawn = torch.empty(rows, n)
        for block in torch.split(drawn, n):
            torch.nn.init.orthogonal_(block, generator=generator)
        return drawn
    drawn = uniform(generator, n, rows, n)
    return gain * drawn if start == "gain" else drawn


def driven(
    cell: str, inputs: Tensor, input_weights: Tensor, bias: Tensor, recurrent_bias: Tensor
) -> Tensor:
    """u_t = W_i·a_t and the biases, for each row a_t of the inputs `(T, n)`: `(T, gates·n)`.

    Of a GRU without the recurrent bias of n, which `unrolled` adds at its place. Weights are
    `(gates·n, n)`, biases `(gates·n,)`, as torch's cells have them.
    """
    import torch

    u = torch.addmm(bias, inputs, input_weights.T)
    gates = 2 * inputs.shape[1] if cell == "gru" else len(bias)
    u[:, :gates] += recurrent_bias[:gates]
    return u


def unrolled(
    cell: str, u: Tensor, weights: Tensor, recurrent_bias: Tensor
) -> list[Callable[..., tuple[Tensor, ...]]]:
    """A step for each row of u: from the vectors of a state to those of the next."""
    import torch

    # Plain operators: torch.nn.RNN and its like have kernels of their own on a GPU (cuDNN), which
    # neither vmap nor a second derivative goes through.
    n = weights.shape[1]
    activation = torch.tanh if cell == "tanh" else torch.relu
    inner_bias = recurrent_bias[2 * n :]  # of a GRU, between r and n

    def simple(u: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        return (activation(u + weights @ h),)

    def gru(gates_u: Tensor, new_u: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        gates, new = torch.split(weights @ h, [2 * n, n])
        r, z = torch.split(torch.sigmoid(gates_u + gates), n)
        new = torch.tanh(new_u + r * (new + inner_bias))
        return (new + z * (h - new),)

    def lstm(u: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        i, f, g, o = torch.split(u + weights @ h, n)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    if cell == "gru":
        pairs = zip(u[:, : 2 * n], u[:, 2 * n :], strict=True)
        return [partial(gru, *each) for each in pairs]
    return [partial(lstm if cell == "lstm" else simple, each) for each in u]
