"""f(x) = Re tr exp(i·x·𝟙), with 𝟙 the n×n matrix of ones: a slow scalar function of a scalar.

𝟙 has the eigenvalue n once and 0 otherwise, so that tr exp(i·x·𝟙) = n − 1 + exp(i·n·x), and
f(x) = n − 1 + cos(n·x), df/dx = −n·sin(n·x): an exact answer for every size.
"""

from __future__ import annotations

import math

from explorer.fields import Field
from explorer.functions import exponentials
from explorer.functions.description import Code, Cost, Exact, Function, Problem, Setting


def build(setting: Setting) -> Problem:
    """f and x, a scalar in the setting's dtype; the matrix is complex."""
    import torch

    n = setting.size
    dtype = getattr(torch, setting.dtype)
    x = torch.tensor(setting.parameters["x"], dtype=dtype, device=setting.device)
    ones = torch.ones(n, n, dtype=dtype, device=setting.device)
    zeros = torch.zeros_like(ones)

    exp = exponentials.exponential(setting)

    def f(x: torch.Tensor) -> torch.Tensor:
        return exp(torch.complex(zeros, x * ones)).diagonal().sum().real

    point = x.item()  # as the dtype holds it: float32 moves x = 0.1, and n·x moves with it
    exact = Exact(
        value=torch.tensor(n - 1 + math.cos(n * point), dtype=torch.float64),
        jacobian=torch.tensor(-n * math.sin(n * point), dtype=torch.float64),
    )
    return Problem(f, x, exact)


def code(setting: Setting) -> Code:
    """The trace's own derivative, d tr exp(A) = tr(exp(A) dA), in the place of `matrix_exp`."""
    if setting.parameters["derivative"] == "torch":
        f = """
            def f(x):
                return torch.matrix_exp(1j * x * ones).diagonal().sum().real
            """
    else:
        f = """
            def f(x):
                a = 1j * x * ones
                exp = torch.matrix_exp(a.detach())
                # d tr exp(A) = tr(exp(A) dA): the second term, which is 0, has this derivative,
                # so that going back takes no product of matrices. Once only, not twice.
                return (exp.diagonal().sum() + (exp.mT * (a - a.detach())).sum()).real
            """
    x = f"""
        n = {setting.size}
        x = torch.tensor({setting.parameters["x"]!r}, dtype=dtype, device=device)
        ones = torch.ones(n, n, dtype=dtype, device=device)
        """
    return Code((x, f), y_shape=(), x_dims=0)


def cost(setting: Setting) -> Cost:
    """Complex products of 8·n³ operations, at ‖A‖₁ = n·|x|; the peak is the backward's."""
    n = setting.size
    forward, backward = exponentials.work(
        setting, n * abs(setting.parameters["x"]), 8.0 * n**3, trace=True
    )
    item = 16 if setting.dtype == "float64" else 8
    matrices = _MATRICES[setting.parameters["derivative"]]
    memory = exponentials.WORKSPACE + matrices * n**2 * item
    return Cost(forward, backward, memory)


# Measured as the peak of one forward and backward at n = 200, 400 and 1000, in both dtypes.
_MATRICES = {"torch": 64.0, "fast": 12.0}

FUNCTION = Function(
    name="matrix_exp_trace",
    title="Trace of a matrix exponential",
    formula="f(x) = Re tr exp(i·x·𝟙), 𝟙 the n×n matrix of ones",
    why_slow="exp takes 5 matrix products and a squaring for every doubling of n·|x|; "
    "its backward does so on a matrix twice as large.",
    size=Field(
        "size",
        "integer",
        "Size n",
        default=200,
        minimum=2,
        maximum=2000,
        help="rows and columns of the matrix",
    ),
    parameters=(
        Field(
            "x",
            "number",
            "x",
            default=1.0,
            minimum=-10.0,
            maximum=10.0,
            help="where the gradients are taken",
        ),
        exponentials.DERIVATIVE,
    ),
    inputs=lambda setting: 1,
    outputs=lambda setting: 1,
    cost=cost,
    build=build,
    code=code,
    inaccuracy="squaring the scaled exponential again and again loses digits at a large n·|x|, "
    "and torch's backward is not linear in the cotangent: a large one is scaled further and "
    "rounded otherwise",
)
