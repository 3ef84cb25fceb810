"""The differential equations: closed forms, what is conserved, and another solver."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.special import ellipj

from explorer.engine.gradients import jacobian
from explorer.functions.ode import FUNCTION, solver
from tests.estimates import require_calls
from tests.test_functions import DTYPES, build, setting


def ode(size: int, dtype: str = "float64", **given: Any) -> Any:
    return build("ode", size, dtype, **given)


@pytest.mark.parametrize("outputs", [1, 3, 7, 20, 30])
@pytest.mark.parametrize("size", [1, 7, 60])
@pytest.mark.parametrize("dtype", DTYPES)
def test_oscillator_is_the_closed_form_of_its_steps(dtype: str, size: int, outputs: int) -> None:
    problem = ode(size, dtype, outputs=outputs)
    # Each step rounds a few times, and what it rounds stays of its size.
    tolerance = 10 * (size + 5) * torch.finfo(problem.x.dtype).eps
    found = problem.f(problem.x).double(), jacobian(problem.f, problem.x).double()
    expected = problem.exact.value, problem.exact.jacobian
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_oscillator_nears_the_solution_with_the_fourth_power_of_the_step() -> None:
    cosine, sine = math.cos(5.0), math.sin(5.0)
    # q·cos ωt + q′/ω·sin ωt and its derivatives, at (1, 0, 1) and t = 5
    solution = torch.tensor([[cosine, cosine, sine, -5 * sine]], dtype=torch.float64)
    errors = []
    for size in (100, 200, 400):
        exact = ode(size, step=5 / size, outputs=1).exact
        found = torch.cat((exact.value[:, None], exact.jacobian), 1)
        errors.append((found - solution).abs().squeeze())
    for before, after in itertools.pairwise(errors):
        torch.testing.assert_close(before / after, torch.full_like(after, 16), rtol=0.1, atol=0)
    assert errors[-1].max() < 1e-7


def test_pendulum_swings_as_the_elliptic_functions_say() -> None:
    problem = ode(500, system="pendulum", step=0.01, outputs=10)
    times = np.linspace(0.5, 5.0, 10)
    k = math.sin(2.0 / 2)  # released at rest at 2 rad
    _, cn, dn, _ = ellipj(times, k * k)
    reference = torch.from_numpy(2 * np.arcsin(k * cn / dn))
    torch.testing.assert_close(problem.f(problem.x), reference, rtol=0, atol=1e-8)
    assert problem.exact is None


def test_pendulum_keeps_its_energy() -> None:
    chosen = setting("ode", 2000, system="pendulum", step=0.01, outputs=50)
    x = FUNCTION.build(chosen).x
    angle, velocity = solver(chosen)(x).T
    energy = velocity**2 / 2 - x[2] ** 2 * torch.cos(angle)
    assert angle.max() - angle.min() > 3
    torch.testing.assert_close(energy, energy[:1].expand_as(energy), rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("system", "step", "divergence"),
    [("harmonic_oscillator", 0.01, 0.0), ("pendulum", 0.01, 0.0), ("lorenz", 1e-3, -41 / 3)],
)
def test_volume_in_the_space_of_states_changes_with_the_divergence(
    system: str, step: float, divergence: float
) -> None:
    """Liouville: det ∂u(T)/∂u(0) = exp(T·div F), where div F is constant."""
    chosen = setting("ode", 300, system=system, step=step, outputs=1)
    trajectory, x = solver(chosen), FUNCTION.build(chosen).x
    states = 3 if system == "lorenz" else 2
    by_start = jacobian(lambda x: trajectory(x)[-1], x)[:, :states]
    expected = math.exp(300 * step * divergence)
    assert torch.linalg.det(by_start).item() == pytest.approx(expected, rel=1e-7)


def test_lorenz_is_what_another_solver_finds() -> None:
    size, step = 1000, 2e-3
    problem = ode(size, system="lorenz", step=step, outputs=4)
    *start, sigma, rho, beta = problem.x.tolist()

    def slopes(_: float, u: np.ndarray) -> list[float]:
        return [sigma * (u[1] - u[0]), u[0] * (rho - u[2]) - u[1], u[0] * u[1] - beta * u[2]]

    times = np.array([0.5, 1.0, 1.5, 2.0])
    other = solve_ivp(
        slopes, (0, 2), start, method="DOP853", t_eval=times, rtol=1e-12, atol=1e-12
    )
    reference = torch.from_numpy(other.y[0])
    torch.testing.assert_close(problem.f(problem.x), reference, rtol=1e-6, atol=1e-6)
    assert problem.exact is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("system", ["harmonic_oscillator", "pendulum", "lorenz"])
def test_largest_step_stays_finite(system: str, dtype: str) -> None:
    problem = ode(1000, dtype, system=system, step=FUNCTION.parameters[1].maximum)
    assert problem.f(problem.x).isfinite().all()


@pytest.mark.parametrize("outputs", [1, 10, 100])
@pytest.mark.parametrize("system", ["harmonic_oscillator", "pendulum", "lorenz"])
def test_operators_are_as_many_as_estimated(system: str, outputs: int) -> None:
    require_calls(FUNCTION, setting("ode", 100, system=system, outputs=outputs))
