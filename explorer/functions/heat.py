"""The heat equation u_t = κ(t) u_xx on [0, 1], by steps of the implicit Euler rule: y is the final
profile at m sensors, x the diffusivity κ in each step.

u vanishes at both ends and has n equally spaced values between; step j solves
(1 + κⱼ·Δt·L) u⁺ = u, with L the n×n second difference over Δx² and Δt = T/steps, T = 0.1. The
diffusivity changes from step to step, and the matrix with it, so that each step has a system of
its own to factorise. torch has no banded solver that autograd goes through, so it is a dense one.

Every start has an exact answer, of what f computes: L has the eigenvectors sin(kπxⱼ) and
eigenvalues λₖ = 4·sin²(kπΔx/2)/Δx², and a step divides the k-th part by 1 + κⱼ·Δt·λₖ. The sine
start is the first eigenvector itself. Sensors lie at i/(m + 1), and read between two values of u
by linear interpolation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from explorer.fields import Field
from explorer.functions.description import Code, Cost, Exact, Function, Problem, Setting, Work

if TYPE_CHECKING:
    from torch import Tensor

_END = 0.1  # the time T of the final profile: a sine has fallen to a third at κ = 1


def build(setting: Setting) -> Problem:
    """f and x ∈ R^steps, uniform in [½, 3/2]."""
    import torch

    n, steps = setting.size, setting.parameters["steps"]
    dtype = getattr(torch, setting.dtype)
    generator = torch.Generator().manual_seed(setting.seed)
    x = (0.5 + torch.rand(steps, generator=generator)).to(setting.device, dtype)
    start = _start(setting)
    ones = torch.ones(n - 1, dtype=torch.float64)
    second = 2 * torch.eye(n, dtype=torch.float64) - ones.diag(1) - ones.diag(-1)
    change = (_END / steps * (n + 1) ** 2 * second).to(setting.device, dtype)
    unit = torch.eye(n, dtype=dtype, device=setting.device)
    profile = start.to(setting.device, dtype)
    before, share = _sensors(setting)
    before, weights = before.to(setting.device), share.to(setting.device, dtype)

    def f(x: Tensor) -> Tensor:
        u = profile
        # The matrix in one operator: glibc does not use the place of a product again, so that
        # every step would take one more.
        for diffusivity in x:
            u = torch.linalg.solve(torch.addcmul(unit, diffusivity, change), u)
        u = torch.nn.functional.pad(u, (1, 1))  # the ends
        return (1 - weights) * u[before] + weights * u[before + 1]

    return Problem(f, x, _exact(x, setting, start))


def _start(setting: Setting) -> Tensor:
    """The first profile at the n inner points: a sine, or 1 in the middle half and 0 elsewhere."""
    import torch

    n = setting.size
    at = torch.arange(1, n + 1, dtype=torch.float64) / (n + 1)
    if setting.parameters["start"] == "sine":
        return torch.sin(math.pi * at)
    return ((at - 0.5).abs() < 0.25).double()


def _sensors(setting: Setting) -> tuple[Tensor, Tensor]:
    """For each sensor (the number of the value left of it, its distance from there in Δx)."""
    import torch

    m = setting.parameters["outputs"]
    at = torch.arange(1, m + 1) * (setting.size + 1)  # in units of Δx/(m + 1)
    return at // (m + 1), (at % (m + 1)).double() / (m + 1)


def _exact(x: Tensor, setting: Setting, start: Tensor) -> Exact:
    """The steps in the eigenvectors of L; see above."""
    import torch

    n = setting.size
    k = torch.arange(1, n + 1, dtype=torch.float64)
    eigenvalues = 4 * (n + 1) ** 2 * torch.sin(math.pi * k / (2 * (n + 1))) ** 2
    shape = torch.sin(math.pi * (k[:, None] * k % (2 * n + 2)) / (n + 1))  # of sin(kπx)
    growth = _END / len(x) * eigenvalues
    step = 1 + x.to("cpu", torch.float64)[:, None] * growth  # by step and eigenvector
    final = 2 / (n + 1) * (shape @ start) / step.prod(0)
    parts = torch.cat((final[None], -final * growth / step))
    u = torch.nn.functional.pad(parts @ shape, (1, 1))
    before, share = _sensors(setting)
    found = (1 - share) * u[:, before] + share * u[:, before + 1]
    return Exact(found[0].clone(), found[1:].T.contiguous())


def code(setting: Setting) -> Code:
    sine = setting.parameters["start"] == "sine"
    start = "torch.sin(torch.pi * at)" if sine else "((at - 0.5).abs() < 0.25)"
    given = f"""
        n, steps, sensors = {setting.size}, {setting.parameters["steps"]}, {_outputs(setting)}
        generator = torch.Generator().manual_seed({setting.seed})
        x = (0.5 + torch.rand(steps, generator=generator)).to(device, dtype)
        """
    grid = f"""
        at = torch.arange(1, n + 1, dtype=torch.float64) / (n + 1)
        start = {start}.to(device, dtype)
        ones = torch.ones(n - 1, dtype=torch.float64)
        second = 2 * torch.eye(n, dtype=torch.float64) - ones.diag(1) - ones.diag(-1)
        change = ({_END} / steps * (n + 1) ** 2 * second).to(device, dtype)
        unit = torch.eye(n, dtype=dtype, device=device)
        """
    reading = """
        places = torch.arange(1, sensors + 1) * (n + 1)
        left = (places // (sensors + 1)).to(device)
        share = ((places % (sensors + 1)).double() / (sensors + 1)).to(device, dtype)
        """
    f = """
        def f(x):
            u = start
            for kappa in x:
                u = torch.linalg.solve(unit + kappa * change, u)
            u = F.pad(u, (1, 1))  # u is 0 at both ends
            return (1 - share) * u[left] + share * u[left + 1]
        """
    imports = ("import torch.nn.functional as F",)
    return Code((given, grid, reading, f), y_shape=(_outputs(setting),), imports=imports)


def _outputs(setting: Setting) -> int:
    return int(setting.parameters["outputs"])


def cost(setting: Setting) -> Cost:
    """In each step an LU factorisation of 2n³/3 operations, which the backward uses again.

    It is kept for every step, with its matrix. The backward solves with it, and takes n×n
    products of vectors for the gradient of the matrix.
    """
    n, steps = setting.size, setting.parameters["steps"]
    item = 8 if setting.dtype == "float64" else 4
    matrix = float(n * n * item)
    return Cost(
        forward=Work(steps * 2 / 3 * n**3, steps * matrix * _FORWARD, 10 + 4 * steps),
        backward=Work(0.0, steps * matrix * _BACKWARD, 10 + 11 * steps),
        memory_bytes=_WORKSPACE + (2.2 * steps + 8) * matrix,
    )


_FORWARD, _BACKWARD = 8, 6  # times that a matrix is read or written
_WORKSPACE = 2e6

FUNCTION = Function(
    name="heat_equation",
    title="Heat equation",
    formula="(1 + κⱼ·Δt·L) uⱼ = uⱼ₋₁, y = u at m sensors at the end, x = κ",
    why_slow="each step solves a system of n equations with a matrix of its own, one step after "
    "the other; what is found there is kept for the way back.",
    size=Field(
        "size",
        "integer",
        "Points n",
        default=200,
        minimum=1,
        maximum=2000,
        help="values of the profile between the two ends",
    ),
    parameters=(
        Field(
            "steps",
            "integer",
            "Steps",
            default=20,
            minimum=1,
            maximum=1000,
            help="implicit steps, and entries of x",
        ),
        Field(
            "start",
            "choice",
            "Start",
            default="sine",
            choices=("sine", "step"),
            help="the first profile: a sine, or 1 in the middle half and 0 elsewhere",
        ),
        Field(
            "outputs",
            "integer",
            "Outputs m",
            default=10,
            minimum=1,
            maximum=1000,
            help="entries of y: sensors between the ends",
        ),
    ),
    inputs=lambda setting: int(setting.parameters["steps"]),
    outputs=lambda setting: int(setting.parameters["outputs"]),
    cost=cost,
    build=build,
    code=code,
    inaccuracy="the condition number of a step's matrix grows with n², and its rounding with that",
)
