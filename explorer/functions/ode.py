"""An ordinary differential equation, solved by torchdiffeq in n steps of the 4th-order Runge–Kutta
rule: y is its first coordinate at m times, x its start and its constants.

- harmonic_oscillator: q″ = −ω² q, x = (q, q′, ω) = (1, 0, 1);
- pendulum: θ″ = −ω² sin θ, x = (θ, θ′, ω) = (2, 0, 1), which keeps ½θ′² − ω² cos θ;
- lorenz: u′ = σ(v − u), v′ = u(ρ − w) − v, w′ = u·v − β·w, x = (u, v, w, σ, ρ, β) =
  (1, 1, 1, 10, 28, 8/3), of E. Lorenz, Deterministic nonperiodic flow (1963).

The steps are of one length h, so that f is deterministic and smooth; the m times are spread evenly
up to n·h, with linear interpolation between two steps. Autograd goes through the solver. The
adjoint method would save memory, but it solves another equation for the gradient, with an error of
its own: not the derivative of what f computes.

The exact value and Jacobian of the oscillator are those of the steps too. One step multiplies
q + i·q′/ω by the conjugate of R(i·ω·h), with R(z) = 1 + z + z²/2 + z³/6 + z⁴/24, as every 4-stage
rule of order 4 does: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, chapter
IV.2. From the solution q·cos ωt + q′/ω·sin ωt it is n·O(h⁵) away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from explorer.fields import Field
from explorer.functions.description import Code, Cost, Exact, Function, Problem, Setting, Work

if TYPE_CHECKING:
    from torch import Tensor

_START = {
    "harmonic_oscillator": (1.0, 0.0, 1.0),
    "pendulum": (2.0, 0.0, 1.0),
    "lorenz": (1.0, 1.0, 1.0, 10.0, 28.0, 8 / 3),
}
_STATES = {"harmonic_oscillator": 2, "pendulum": 2, "lorenz": 3}


def build(setting: Setting) -> Problem:
    """f and x; the seed decides nothing."""
    import torch

    system = setting.parameters["system"]
    dtype = getattr(torch, setting.dtype)
    x = torch.tensor(_START[system], dtype=dtype, device=setting.device)
    trajectory = solver(setting)

    def f(x: Tensor) -> Tensor:
        return trajectory(x)[1:, 0]

    oscillator = system == "harmonic_oscillator"
    return Problem(f, x, _exact(x, setting) if oscillator else None)


def solver(setting: Setting) -> Callable[[Tensor], Tensor]:
    """Takes x to the whole state at the start and at the m times; shape (m + 1, coordinates)."""
    import torch
    from torchdiffeq import odeint

    system, end = setting.parameters["system"], setting.size * setting.parameters["step"]
    steps, times = (
        torch.linspace(0, end, count + 1, dtype=torch.float64).to(
            setting.device, getattr(torch, setting.dtype)
        )
        for count in (setting.size, setting.parameters["outputs"])
    )
    states = _STATES[system]

    def trajectory(x: Tensor) -> Tensor:
        solution: Tensor = odeint(
            _right_hand_side(system, x[states:]),
            x[:states],
            times,
            method="rk4",
            options={"grid_constructor": lambda *_: steps},
        )
        return solution

    return trajectory


def _right_hand_side(system: str, constants: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """The derivative of the state by the time, at a time and a state."""
    import torch

    if system == "lorenz":
        sigma, rho, beta = constants

        def lorenz(_: Tensor, state: Tensor) -> Tensor:
            u, v, w = state
            return torch.stack((sigma * (v - u), u * (rho - w) - v, u * v - beta * w))

        return lorenz

    stiffness = constants[0] ** 2

    def swinging(_: Tensor, state: Tensor) -> Tensor:
        position, velocity = state
        force = position if system == "harmonic_oscillator" else torch.sin(position)
        return torch.stack((velocity, -stiffness * force))

    return swinging


def _exact(x: Tensor, setting: Setting) -> Exact:
    """The steps of the oscillator in closed form; see above."""
    import torch

    position, velocity, omega = x.tolist()
    n, m, h = setting.size, setting.parameters["outputs"], setting.parameters["step"]
    z = 1j * omega * h
    factor = 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24
    slope = 1j * h * (1 + z + z**2 / 2 + z**3 / 6)  # of the factor, by ω
    steps = torch.arange(n + 1, dtype=torch.float64)
    powers = factor**steps
    slopes = steps * factor ** (steps - 1) * slope
    by_position = powers.real
    by_velocity = powers.imag / omega
    values = position * by_position + velocity * by_velocity
    by_omega = position * slopes.real + velocity * (slopes.imag - by_velocity) / omega
    at_steps = torch.stack((values, by_position, by_velocity, by_omega))
    before = torch.arange(1, m + 1) * n // m
    share = (torch.arange(1, m + 1) * n % m).double() / m
    after = (before + 1).clamp(max=n)
    found = at_steps[:, before] * (1 - share) + at_steps[:, after] * share
    return Exact(found[0].clone(), found[1:].T.contiguous())


def code(setting: Setting) -> Code:
    system = setting.parameters["system"]
    names, derivative = {
        "harmonic_oscillator": ("position, velocity", "velocity, -(omega**2) * position"),
        "pendulum": ("angle, velocity", "velocity, -(omega**2) * torch.sin(angle)"),
        "lorenz": ("u, v, w", "sigma * (v - u), u * (rho - w) - v, u * v - beta * w"),
    }[system]
    x = ", ".join("8 / 3" if each == 8 / 3 else f"{each:g}" for each in _START[system])
    constants = "sigma, rho, beta" if system == "lorenz" else "omega"
    taken = f"{constants} = x[{'3:' if system == 'lorenz' else '2'}]"
    given = f"""
        # {names} at the start, then {constants}
        x = torch.tensor([{x}], dtype=dtype, device=device)
        end = {setting.size} * {setting.parameters["step"]!r}  # steps times the length of one
        steps = torch.linspace(0, end, {setting.size} + 1, dtype=torch.float64)
        times = torch.linspace(0, end, {setting.parameters["outputs"]} + 1, dtype=torch.float64)
        steps, times = steps.to(device, dtype), times.to(device, dtype)
        """
    f = f"""
        def f(x):
            {taken}

            def change(t, state):
                {names} = state
                return torch.stack(({derivative}))

            grid = {{"grid_constructor": lambda *_: steps}}
            return odeint(change, x[:{_STATES[system]}], times, method="rk4", options=grid)[1:, 0]
        """
    imports = ("from torchdiffeq import odeint",)
    return Code((given, f), y_shape=(setting.parameters["outputs"],), imports=imports)


def cost(setting: Setting) -> Cost:
    """Operators of next to no work: so many a step, and some for each of the m times."""
    step, back = _CALLS[setting.parameters["system"]]
    n, m = setting.size, setting.parameters["outputs"]
    forward, backward = n * step + 12 * m, n * back + 9 * m
    return Cost(
        forward=Work(calls=forward),
        backward=Work(calls=backward),
        memory_bytes=_WORKSPACE + forward * _OF_A_CALL,
    )


# Operators of a step and of its backward, as counted.
_CALLS = {"harmonic_oscillator": (46, 48), "pendulum": (50, 56), "lorenz": (70, 116)}
_OF_A_CALL = 870.0  # bytes that autograd keeps of an operator, whatever the dtype: measured
_WORKSPACE = 1e6

FUNCTION = Function(
    name="ode",
    title="Ordinary differential equation",
    formula="y = u₁(t₁), …, u₁(tₘ), u′ = F(u), by n Runge–Kutta steps of order 4",
    why_slow="n steps follow one another, each of some fifty operators on two or three numbers: "
    "nothing of it is done at once, and going back takes the same steps.",
    size=Field(
        "size",
        "integer",
        "Steps n",
        default=100,
        minimum=1,
        maximum=10_000,
        help="Runge–Kutta steps, each of four evaluations of F",
    ),
    parameters=(
        Field(
            "system",
            "choice",
            "System",
            default="harmonic_oscillator",
            choices=tuple(_START),
            help="the equation: linear, nonlinear, or chaotic",
        ),
        Field(
            "step",
            "number",
            "Step h",
            default=0.05,
            minimum=0.0,
            maximum=0.1,
            exclusive_minimum=True,
            help="time of one step",
        ),
        Field(
            "outputs",
            "integer",
            "Outputs m",
            default=10,
            minimum=1,
            maximum=1000,
            help="entries of y: times at which it is taken",
        ),
    ),
    inputs=lambda setting: len(_START[setting.parameters["system"]]),
    outputs=lambda setting: int(setting.parameters["outputs"]),
    cost=cost,
    build=build,
    code=code,
    inaccuracy="every step rounds, and the equation carries that on: a chaotic one multiplies it "
    "by a constant in every unit of time, and the gradient with it",
    default_heads=("square", "sin"),
)
