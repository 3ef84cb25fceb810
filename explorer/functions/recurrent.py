"""s_t = cell(s_{t−1}, u_t): a recurrent network unrolled over T steps, y its last state of x, its
first. dy/dx is the product of T Jacobians: where gradients vanish or explode.

The cells are those of torch.nn.RNNCell, GRUCell and LSTMCell. The state of an LSTM is h and c one
behind the other, as x and as y: only of the whole state is dy/dx the product over the steps.

With ReLU and the identity as recurrent weights no unit sees another one, and each is a random walk
that 0 reflects, h_t = max(0, h_{t−1} + u_t). With S_k = u_1 + ⋯ + u_k this is

    h_T = S_T + max(h_0, −S_1, …, −S_T),   dh_T/dh_0 = 1 where h_0 + S_k > 0 for every k, else 0

(Lindley, Mathematical Proceedings of the Cambridge Philosophical Society 48, 1952): exact for what
f computes. The start itself: Le, Jaitly and Hinton, arXiv 1504.00941 (2015).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from explorer.fields import Field
from explorer.functions.description import (
    READ,
    Cost,
    Exact,
    Function,
    Problem,
    Setting,
    Work,
    rate,
)

if TYPE_CHECKING:
    from torch import Tensor

_GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}
"""Blocks of the weights, one below the other: of a GRU r, z, n, of an LSTM i, f, g, o."""


def states(setting: Setting) -> int:
    """Entries of the state: h, of an LSTM h and c."""
    return setting.size * (2 if setting.parameters["cell"] == "lstm" else 1)


def build(setting: Setting) -> Problem:
    """f and x, a standard normal state; so are the inputs, a vector of the size at each step.

    Weights and biases are uniform within ±1/√n, as torch has them; `start` is of the recurrent
    weights alone, and all else is the same for each. The inputs' part of the step, u_t = W_i·a_t
    and the biases, is one and the same in every pass and computed here.
    """
    import torch

    n, steps = setting.size, setting.parameters["steps"]
    cell, start = setting.parameters["cell"], setting.parameters["start"]
    rows = _GATES[cell] * n
    dtype = getattr(torch, setting.dtype)
    generator = torch.Generator().manual_seed(setting.seed)

    def uniform(*shape: int) -> Tensor:
        bound = 1 / math.sqrt(n)
        return torch.empty(shape).uniform_(-bound, bound, generator=generator)

    def there(tensor: Tensor) -> Tensor:
        return tensor.to(setting.device, dtype)

    x = there(torch.randn(states(setting), generator=generator))
    inputs = there(torch.randn(steps, n, generator=generator))
    bias, recurrent_bias = there(uniform(rows)), there(uniform(rows))
    u = torch.addmm(bias, inputs, there(uniform(rows, n)).T)
    if cell == "gru":  # its r stands between the two: n = tanh(u_n + r·(W_n·h + b_n))
        u[:, : 2 * n] += recurrent_bias[: 2 * n]
        recurrent_bias = recurrent_bias[2 * n :]
    else:
        u += recurrent_bias
    if start == "default":
        drawn = uniform(rows, n)
    elif start == "identity":
        drawn = torch.eye(n).repeat(_GATES[cell], 1)
    else:
        drawn = torch.empty(rows, n)
        for block in torch.split(drawn, n):
            torch.nn.init.orthogonal_(block, generator=generator)
    weights = there(drawn)

    # Plain operators: torch.nn.RNN and its like have kernels of their own on a GPU (cuDNN), which
    # neither vmap nor a second derivative goes through.

    def simple(x: Tensor) -> Tensor:
        activation = torch.tanh if cell == "tanh" else torch.relu
        for each in u:
            x = activation(each + weights @ x)
        return x

    def gru(x: Tensor) -> Tensor:
        for gates_u, new_u in zip(u[:, : 2 * n], u[:, 2 * n :], strict=True):
            gates, new = torch.split(weights @ x, [2 * n, n])
            r, z = torch.split(torch.sigmoid(gates_u + gates), n)
            new = torch.tanh(new_u + r * (new + recurrent_bias))
            x = new + z * (x - new)
        return x

    def lstm(x: Tensor) -> Tensor:
        h, c = torch.split(x, n)
        for each in u:
            i, f, g, o = torch.split(each + weights @ h, n)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return torch.cat([h, c])

    reflected = cell == "relu" and start == "identity"
    function = {"gru": gru, "lstm": lstm}.get(cell, simple)
    return Problem(function, x, _reflected_walk(x, u) if reflected else None)


def _reflected_walk(x: Tensor, u: Tensor) -> Exact:
    """The closed form of ReLU and the identity, of x and u as their dtype holds them."""
    import torch

    start, sums = x.to("cpu", torch.float64), u.to("cpu", torch.float64).cumsum(0)
    lowest = sums.amin(0)
    return Exact(
        value=sums[-1] + torch.maximum(start, -lowest),
        jacobian=torch.diag((start + lowest > 0).to(torch.float64)),
    )


def cost(setting: Setting) -> Cost:
    """A product of the recurrent weights and a vector for every step, which reads them all, and
    the operators of the cell. The memory is the weights, u, what autograd keeps of each step, and
    as much again in the holes that its temporaries leave; or the drawing of the weights."""
    n, steps, cell = setting.size, setting.parameters["steps"], setting.parameters["cell"]
    item = 8 if setting.dtype == "float64" else 4
    weights = _GATES[cell] * n * n
    calls, kept, transcendental = _CELLS[cell]
    moved = steps * (READ * weights * item + 50.0 * transcendental * n)
    products, fast = 2.0 * weights * steps, rate(setting.dtype)
    u = steps * _GATES[cell] * n * item
    drawing = weights * (12 if setting.dtype == "float64" else 4) + steps * n * item
    running = weights * item + 2 * steps * kept * n * item
    return Cost(
        forward=Work(products, moved, steps * calls, fast),
        backward=Work(products, moved, 2 * steps * calls, fast),
        memory_bytes=float(u + max(drawing, running)),
    )


# Of a step: operators, vectors that autograd keeps, and transcendental functions an entry.
_CELLS = {
    "tanh": (2.5, 1, 1),
    "relu": (2.5, 1, 0),
    "gru": (10.0, 5, 3),
    "lstm": (10.0, 6, 5),
}

FUNCTION = Function(
    name="recurrent_network",
    title="Recurrent network",
    formula="y = s_T of s_t = cell(s_{t−1}, u_t), s_0 = x, with seeded u_t",
    why_slow="no step can begin before the one before it is done, forward or backward, and each "
    "multiplies by all of the recurrent weights.",
    size=Field(
        "size",
        "integer",
        "Size n",
        default=100,
        minimum=1,
        maximum=2000,
        help="hidden units; the state of an LSTM is twice as long",
    ),
    parameters=(
        Field(
            "steps",
            "integer",
            "Steps T",
            default=50,
            minimum=1,
            maximum=2000,
            help="how often the cell is applied",
        ),
        Field(
            "cell",
            "choice",
            "Cell",
            default="tanh",
            choices=tuple(_GATES),
            help="what a step does with the state",
        ),
        Field(
            "start",
            "choice",
            "Start",
            default="default",
            choices=("default", "orthogonal", "identity"),
            help="the recurrent weights, for each gate: uniform within ±1/√n, a random rotation, "
            "or the identity",
        ),
    ),
    inputs=states,
    outputs=states,
    cost=cost,
    build=build,
    inaccuracy="every step rounds the state, later steps shrink or grow what it lost, and a ReLU "
    "at 0 may open or close with it",
    default_heads=("square", "sin"),
)
