"""Y = exp(Σ_k x_k·G_k), all n² entries of it, with seeded n×n generators G_k and a vector x.

∂Y/∂x_k is the Fréchet derivative L(A, G_k) at A = Σ_k x_k·G_k, the upper right block of the
exponential of [[A, G_k], [0, A]] (Van Loan, Computing integrals involving the matrix exponential,
IEEE Trans. Automat. Control 23 (1978) 395): the exact answer, with no derivative in it. It is taken
by `explorer.matrix_exp` in float64; scipy's `expm` was 50 roundings off for a 4×4 A of norm 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from explorer.fields import Field
from explorer.functions import exponentials
from explorer.functions.description import Code, Cost, Exact, Function, Problem, Setting

if TYPE_CHECKING:
    from torch import Tensor


def generators(setting: Setting) -> int:
    return int(setting.parameters["generators"])


def build(setting: Setting) -> Problem:
    """f and x ∈ R^K, standard normal times the scale; the entries of G_k are normal with variance
    1/n. All are drawn in float32 on the CPU, so that one seed is the same function everywhere."""
    import torch

    n, count = setting.size, generators(setting)
    dtype = getattr(torch, setting.dtype)
    generator = torch.Generator().manual_seed(setting.seed)
    drawn = torch.randn(count, n, n, generator=generator) / math.sqrt(n)
    scale = setting.parameters["scale"]
    x = (scale * torch.randn(count, generator=generator)).to(setting.device, dtype)
    matrices = drawn.to(setting.device, dtype)
    exp = exponentials.exponential(setting)

    def f(x: torch.Tensor) -> torch.Tensor:
        return exp(torch.tensordot(x, matrices, 1))

    return Problem(f, x, _exact(drawn.double(), x.cpu().double()))


def _exact(matrices: Tensor, x: Tensor) -> Exact:
    import torch

    from explorer import matrix_exp

    n = matrices.shape[-1]
    block = torch.zeros(2 * n, 2 * n, dtype=torch.float64)
    block[:n, :n] = block[n:, n:] = torch.tensordot(x, matrices, 1)
    columns = []
    for g in matrices:
        block[:n, n:] = g
        found = matrix_exp(block)
        columns.append(found[:n, n:].clone())
    value = found[:n, :n].clone()
    return Exact(value, torch.stack(columns, -1), source="block exponentials in float64")


def code(setting: Setting) -> Code:
    """With torch's derivative in any case: the fast one is too long for a script."""
    given = f"""
        n, count = {setting.size}, {generators(setting)}
        generator = torch.Generator().manual_seed({setting.seed})
        matrices = (torch.randn(count, n, n, generator=generator) / n**0.5).to(device, dtype)
        x = {setting.parameters["scale"]!r} * torch.randn(count, generator=generator)
        x = x.to(device, dtype)
        """
    exp = """
        def f(x):
            return torch.matrix_exp(torch.tensordot(x, matrices, 1))
        """
    of_torch = """
        def f(x):
            # The fast derivative, along the products of the exponential itself, is too long to
            # stand here. This is torch's, by a matrix twice as large: the same, but slower.
            return torch.matrix_exp(torch.tensordot(x, matrices, 1))
        """
    fast = setting.parameters["derivative"] == "fast"
    return Code((given, of_torch if fast else exp), y_shape=(setting.size, setting.size))


def cost(setting: Setting) -> Cost:
    """Real products of 2·n³ operations. The 1-norm of A is about √(2·n·K/π) times the scale, for
    K normal x; the memory is the generators and the backward's peak, or that of the exact ones."""
    n, count = setting.size, generators(setting)
    norm = math.sqrt(2 * n * count / math.pi) * setting.parameters["scale"]
    forward, backward = exponentials.work(setting, norm, 2.0 * n**3)
    item = 8 if setting.dtype == "float64" else 4
    matrices = _MATRICES[setting.parameters["derivative"]] + 3 * count
    held = (10 * 4 + 2 * count) * n**2 * 8  # by the exact ones
    memory = exponentials.WORKSPACE + max(matrices * n**2 * item, held)
    return Cost(forward, backward, memory)


_MATRICES = {"torch": 64.0, "fast": 14.0}  # as measured for the trace

FUNCTION = Function(
    name="matrix_exp_entries",
    title="Entries of a matrix exponential",
    formula="Y = exp(Σ x_k·G_k), all n² entries, G_k normal with variance 1/n",
    why_slow="exp takes 5 matrix products and a squaring for every doubling of its norm, and the "
    "rows of the Jacobian are as many as the entries of Y: its columns are few.",
    size=Field(
        "size",
        "integer",
        "Size n",
        default=16,
        minimum=1,
        maximum=500,
        help="rows and columns of the matrix",
    ),
    parameters=(
        Field(
            "generators",
            "integer",
            "Generators K",
            default=4,
            minimum=1,
            maximum=50,
            help="entries of x, and matrices that they weight",
        ),
        Field(
            "scale",
            "number",
            "Scale of x",
            default=1.0,
            minimum=0.0,
            maximum=10.0,
            help="standard deviation of the entries of x",
        ),
        exponentials.DERIVATIVE,
    ),
    inputs=generators,
    outputs=lambda setting: setting.size**2,
    cost=cost,
    build=build,
    code=code,
    inaccuracy="squaring the scaled exponential again and again loses digits at a large norm, and "
    "torch's backward is not linear in the cotangent",
    default_heads=("square", "sin"),
)
