"""y = ∫ p(a, t) dt over the unit cube [0, 1]ᵈ, by Gauss–Legendre nodes or by Monte Carlo.

Both take as many points t as the size says, so that they can be compared at the same work:
Gauss–Legendre the product grid of n = ⌊N^(1/d)⌋ nodes in each dimension, Monte Carlo N points
drawn uniformly with the seed. x is a ∈ Rᵈ, drawn uniformly from [½, 2]ᵈ; y is one number.

Two integrands have an integral in closed form, and are a product of one factor a dimension (the
real part of one):

- gaussian, exp(−Σ aᵢ tᵢ²): Π √(π/aᵢ)/2 · erf √aᵢ;
- oscillatory, cos(Σ aᵢ tᵢ): Re Π (exp(i·aᵢ) − 1)/(i·aᵢ), of A. Genz, Testing multidimensional
  integration routines (1984).

The exact value and gradient are those of the sum that f computes, not of the integral: a rule
with few nodes is off by its own error, which is no error of a gradient. On a product grid the sum
of a product is the product of d sums over n nodes. From about 10 nodes on it is the closed form
to rounding, as the tests hold. No exact answer is there for Monte Carlo, whose points lie on no
grid, nor for the softened Yukawa potential, exp(−r)/r with r² = 1 + Σ aᵢ tᵢ², which does not
factorise.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from explorer.fields import Field
from explorer.functions.description import Code, Cost, Exact, Function, Problem, Setting, Work

if TYPE_CHECKING:
    from torch import Tensor


def nodes(setting: Setting) -> int:
    """n: the most nodes a dimension whose grid has no more points than the size."""
    d = setting.parameters["dimensions"]
    n = round(setting.size ** (1 / d))
    return int(n if n**d <= setting.size else n - 1)


def points(setting: Setting) -> int:
    """How many points the integrand is evaluated at."""
    if setting.parameters["method"] == "monte_carlo":
        return setting.size
    return int(nodes(setting) ** setting.parameters["dimensions"])


def build(setting: Setting) -> Problem:
    """f and x = a; Monte Carlo's points are drawn after a, with the same generator."""
    import numpy as np
    import torch

    d, name = setting.parameters["dimensions"], setting.parameters["integrand"]
    power = 1 if name == "oscillatory" else 2  # the integrand is a function of Σ aᵢ tᵢ^power
    dtype = getattr(torch, setting.dtype)
    generator = torch.Generator().manual_seed(setting.seed)
    x = (0.5 + 1.5 * torch.rand(d, generator=generator)).to(setting.device, dtype)

    def integrand(s: Tensor) -> Tensor:
        if name == "gaussian":
            return torch.exp(-s)
        if name == "oscillatory":
            return torch.cos(s)
        r = torch.sqrt(1 + s)
        return torch.exp(-r) / r

    if setting.parameters["method"] == "monte_carlo":
        drawn = torch.rand(setting.size, d, generator=generator).to(setting.device, dtype)
        drawn = drawn.pow_(power)

        def mean(x: Tensor) -> Tensor:
            return integrand(drawn @ x).mean()

        return Problem(mean, x)

    t, w = np.polynomial.legendre.leggauss(nodes(setting))
    t, w = (t + 1) / 2, w / 2  # from [−1, 1] to [0, 1]
    at = torch.tensor(t**power).to(setting.device, dtype)
    weights = torch.tensor(w).to(setting.device, dtype)
    axes = [[-1 if axis == other else 1 for other in range(d)] for axis in range(d)]

    def grid_sum(x: Tensor) -> Tensor:
        # By broadcasting, so that only the last of the d sums has as many entries as the grid.
        terms = [(x[axis] * at).reshape(shape) for axis, shape in enumerate(axes)]
        values = integrand(reduce(torch.add, terms))
        for _ in axes:
            values = values @ weights
        return values

    return Problem(grid_sum, x, _exact(x, t, w, name))


def _exact(x: Tensor, t: object, w: object, name: str) -> Exact | None:
    """The sum over the grid and its gradient, as products of sums over n nodes; see above."""
    import torch

    if name == "yukawa":
        return None
    a = x.to("cpu", torch.float64)
    nodes, weights = torch.tensor(t), torch.tensor(w)
    exponent = -(nodes**2) if name == "gaussian" else 1j * nodes
    factors = torch.exp(a[:, None] * exponent)
    sums = (factors * weights).sum(1)
    slopes = (factors * exponent * weights).sum(1)
    value = sums.prod()
    gradient = [
        slopes[axis] * sums[:axis].prod() * sums[axis + 1 :].prod() for axis in range(len(sums))
    ]
    return Exact(value.real.clone(), torch.stack(gradient).real.clone())


def code(setting: Setting) -> Code:
    d, name = setting.parameters["dimensions"], setting.parameters["integrand"]
    squared = "" if name == "oscillatory" else "**2"
    integrand = {
        "gaussian": "return torch.exp(-s)",
        "oscillatory": "return torch.cos(s)",
        "yukawa": "r = torch.sqrt(1 + s)\n            return torch.exp(-r) / r",
    }[name]
    p = f"""
        def integrand(s):
            {integrand}
        """
    if setting.parameters["method"] == "monte_carlo":
        given = f"""
            d, count = {d}, {setting.size}
            generator = torch.Generator().manual_seed({setting.seed})
            x = (0.5 + 1.5 * torch.rand(d, generator=generator)).to(device, dtype)
            points = torch.rand(count, d, generator=generator).to(device, dtype){squared}
            """
        f = """
            def f(x):
                return integrand(points @ x).mean()
            """
        return Code((given, p, f), y_shape=())
    at = f"((t + 1) / 2){squared}" if squared else "(t + 1) / 2"
    given = f"""
        d, n = {d}, {nodes(setting)}
        generator = torch.Generator().manual_seed({setting.seed})
        x = (0.5 + 1.5 * torch.rand(d, generator=generator)).to(device, dtype)
        t, weights = np.polynomial.legendre.leggauss(n)  # on [-1, 1], and from here on [0, 1]
        t = torch.tensor({at}).to(device, dtype)
        weights = torch.tensor(weights / 2).to(device, dtype)
        """
    f = """
        def f(x):
            # Each dimension of the grid is a dimension of the tensor.
            s = integrand(sum((a * t).view([n] + [1] * k) for k, a in enumerate(x)))
            for _ in range(d):
                s = s @ weights
            return s
        """
    return Code((given, p, f), y_shape=(), imports=("import numpy as np",))


def cost(setting: Setting) -> Cost:
    """Every pass reads and writes a few numbers a point, and one or two functions of each.

    Monte Carlo reads the points themselves as well, d numbers each. They are held, and float64
    ones in the beginning beside the float32 ones that they are drawn as.
    """
    d, name = setting.parameters["dimensions"], setting.parameters["integrand"]
    count, item = points(setting), 8 if setting.dtype == "float64" else 4
    monte_carlo = setting.parameters["method"] == "monte_carlo"
    read = count * d * item if monte_carlo else 0
    forward, backward, held = _OF_A_POINT[name]
    moved = count * item * (2 if count * item > _GIVEN_BACK else 1)
    calls = 1 if monte_carlo else d
    drawn = read + (count * d * 4 if monte_carlo and item == 8 else 0)
    return Cost(
        forward=Work(0.0, read + moved * forward, 7 * calls),
        backward=Work(0.0, read + moved * backward, 12 * calls),
        memory_bytes=_WORKSPACE + max(drawn, read + count * item * held),
    )


# By integrand, as measured: numbers that a point takes to be read and written in a forward and in
# a backward pass, what exp and cos take counted so too; numbers a point at the peak.
_OF_A_POINT = {"gaussian": (5, 5, 3), "oscillatory": (6, 9, 5), "yukawa": (10, 14, 7)}
_GIVEN_BACK = 32 * 2**20  # bytes from which the C library gives an array back to the system at once
_WORKSPACE = 1e6

FUNCTION = Function(
    name="integral",
    title="Integral over a cube",
    formula="y = ∫ p(a, t) dt over t ∈ [0, 1]ᵈ, as a sum over N points",
    why_slow="every pass evaluates the integrand at each point, and a grid that is twice as fine "
    "has 2ᵈ times as many.",
    size=Field(
        "size",
        "integer",
        "Points N",
        default=1_000_000,
        minimum=1,
        maximum=100_000_000,
        help="points of the sum; Gauss–Legendre takes ⌊N^(1/d)⌋ nodes in each dimension",
    ),
    # Below three dimensions as many nodes as one needs are no work.
    parameters=(
        Field(
            "dimensions",
            "integer",
            "Dimensions d",
            default=3,
            minimum=3,
            maximum=8,
            help="of the cube, and of x = a",
        ),
        Field(
            "method",
            "choice",
            "Method",
            default="gauss_legendre",
            choices=("gauss_legendre", "monte_carlo"),
            help="a grid of Gauss–Legendre nodes, or random points",
        ),
        Field(
            "integrand",
            "choice",
            "Integrand",
            default="gaussian",
            choices=("gaussian", "oscillatory", "yukawa"),
            help="exp(−Σ aᵢ tᵢ²), cos(Σ aᵢ tᵢ), or exp(−r)/r with r² = 1 + Σ aᵢ tᵢ²",
        ),
    ),
    inputs=lambda setting: int(setting.parameters["dimensions"]),
    outputs=lambda setting: 1,
    cost=cost,
    build=build,
    code=code,
    inaccuracy="the sum over all points rounds with every term, and so do its nodes and weights",
    default_heads=("square", "exp"),
)
