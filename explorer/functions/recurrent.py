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

from typing import TYPE_CHECKING

from explorer.fields import Field
from explorer.functions.description import (
    READ,
    Code,
    Cost,
    Exact,
    Function,
    Problem,
    Setting,
    Work,
    rate,
)
from explorer.recurrence import GATES, driven, parts, recurrent_weights, uniform, unrolled

if TYPE_CHECKING:
    from torch import Tensor


def states(setting: Setting) -> int:
    """Entries of the state: h, of an LSTM h and c."""
    return setting.size * parts(setting.parameters["cell"])


def build(setting: Setting) -> Problem:
    """f and x, a standard normal state; so are the inputs, a vector of the size at each step.

    Weights and biases are uniform within ±1/√n, as torch has them; `start` is of the recurrent
    weights alone, and all else is the same for each. The inputs' part of the step is one and the
    same in every pass and computed here.
    """
    import torch

    n, steps = setting.size, setting.parameters["steps"]
    cell, start = setting.parameters["cell"], setting.parameters["start"]
    rows = GATES[cell] * n
    dtype = getattr(torch, setting.dtype)
    generator = torch.Generator().manual_seed(setting.seed)

    def there(tensor: Tensor) -> Tensor:
        return tensor.to(setting.device, dtype)

    def drawn(*shape: int) -> Tensor:
        return there(uniform(generator, n, *shape))

    x = there(torch.randn(states(setting), generator=generator))
    inputs = there(torch.randn(steps, n, generator=generator))
    bias, recurrent_bias = drawn(rows), drawn(rows)
    u = driven(cell, inputs, drawn(rows, n), bias, recurrent_bias)
    weights = there(recurrent_weights(cell, start, n, generator))
    unrolling = unrolled(cell, u, weights, recurrent_bias)

    def f(x: Tensor) -> Tensor:
        state = torch.split(x, n)
        for step in unrolling:
            state = step(*state)
        return state[0] if len(state) == 1 else torch.cat(state)

    reflected = cell == "relu" and start == "identity"
    return Problem(f, x, _reflected_walk(x, u) if reflected else None)


def _reflected_walk(x: Tensor, u: Tensor) -> Exact:
    """The closed form of ReLU and the identity, of x and u as their dtype holds them."""
    import torch

    start, sums = x.to("cpu", torch.float64), u.to("cpu", torch.float64).cumsum(0)
    lowest = sums.amin(0)
    return Exact(
        value=sums[-1] + torch.maximum(start, -lowest),
        jacobian=torch.diag((start + lowest > 0).to(torch.float64)),
    )


def code(setting: Setting) -> Code:
    """The cells as torch's documentation writes them, a GRU with both of its biases in the step."""
    cell = setting.parameters["cell"]
    gru = cell == "gru"
    recurrent = {
        "default": "uniform(gates * n, n)",
        "orthogonal": "torch.cat([orthogonal() for _ in range(gates)])",
        "identity": "torch.eye(n).repeat(gates, 1)",
    }[setting.parameters["start"]]
    given = f"""
        n, steps, gates = {setting.size}, {setting.parameters["steps"]}, {GATES[cell]}
        generator = torch.Generator().manual_seed({setting.seed})
        """
    uniform = """
        def uniform(*shape):
            return torch.empty(shape).uniform_(-(n**-0.5), n**-0.5, generator=generator)
        """
    orthogonal = """
        def orthogonal():
            return torch.nn.init.orthogonal_(torch.empty(n, n), generator=generator)
        """
    weights = f"""
        x = torch.randn({states(setting)}, generator=generator).to(device, dtype)
        inputs = torch.randn(steps, n, generator=generator).to(device, dtype)
        bias = uniform(gates * n).to(device, dtype)
        recurrent_bias = uniform(gates * n).to(device, dtype)
        input_weights = uniform(gates * n, n).to(device, dtype)
        u = inputs @ input_weights.T + bias{"" if gru else " + recurrent_bias"}
        weights = {recurrent}.to(device, dtype)
        """
    f = _STEPS["gru" if gru else "lstm" if cell == "lstm" else "simple"].format(cell=cell)
    own = (orthogonal,) if setting.parameters["start"] == "orthogonal" else ()
    return Code((given, uniform, *own, weights, f), y_shape=(states(setting),))


_STEPS = {
    "simple": """
        def f(h):
            for a in u:
                h = torch.{cell}(a + weights @ h)
            return h
        """,
    "gru": """
        def f(h):
            for a in u:
                a_r, a_z, a_n = a.chunk(3)
                h_r, h_z, h_n = (weights @ h + recurrent_bias).chunk(3)
                r, z = torch.sigmoid(a_r + h_r), torch.sigmoid(a_z + h_z)
                new = torch.tanh(a_n + r * h_n)
                h = new + z * (h - new)
            return h
        """,
    "lstm": """
        def f(state):
            h, c = state.chunk(2)
            for a in u:
                i, forget, g, o = (a + weights @ h).chunk(4)
                c = torch.sigmoid(forget) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
            return torch.cat((h, c))
        """,
}


def cost(setting: Setting) -> Cost:
    """A product of the recurrent weights and a vector for every step, which reads them all, and
    the operators of the cell. The memory is the weights, u, what autograd keeps of each step, and
    as much again in the holes that its temporaries leave; or the drawing of the weights."""
    n, steps, cell = setting.size, setting.parameters["steps"], setting.parameters["cell"]
    item = 8 if setting.dtype == "float64" else 4
    weights = GATES[cell] * n * n
    calls, kept, transcendental = _CELLS[cell]
    moved = steps * (READ * weights * item + 50.0 * transcendental * n)
    products, fast = 2.0 * weights * steps, rate(setting.dtype)
    u = steps * GATES[cell] * n * item
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
            choices=tuple(GATES),
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
    code=code,
    inaccuracy="every step rounds the state, later steps shrink or grow what it lost, and a ReLU "
    "at 0 may open or close with it",
    default_heads=("square", "sin"),
)
