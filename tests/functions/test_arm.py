"""The robot arm: rotations composed by scipy, the geometric Jacobian, and the two constraints."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from explorer.accuracy import exact_gradient, relative_difference
from explorer.engine.gradients import gradients, jacobian
from explorer.functions.arm import FUNCTION
from explorer.heads import Head
from tests.estimates import require_calls
from tests.test_functions import DTYPES, build, setting


def arm(size: int, dtype: str = "float64", seed: int = 0, **given: Any) -> Any:
    return build("robot_arm", size, dtype, seed, **given)


@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_position_and_orientation_are_those_of_rotations_in_a_row(size: int) -> None:
    problem = arm(size, base_norm=1.0)
    x = problem.x.clone()
    x[size:] /= x[size:].norm()  # it is 1 to the precision of float32
    angles, base = x[:size].numpy(), x[size:].numpy()
    orientation = Rotation.from_quat(np.roll(base, -1))  # scipy has the scalar last
    position = np.zeros(3)
    for joint, angle in enumerate(angles):
        orientation *= Rotation.from_euler("zy"[joint % 2], angle)
        position += orientation.apply([1 / size, 0, 0])
    y = problem.f(x)
    torch.testing.assert_close(y[:3], torch.from_numpy(position), rtol=0, atol=1e-12)
    quaternion = torch.from_numpy(np.roll(orientation.as_quat(), 1))
    quaternion *= torch.sign(quaternion @ y[3:])  # q and −q are one orientation
    torch.testing.assert_close(y[3:], quaternion, rtol=0, atol=1e-12)


def test_straight_arm_points_along_the_axis_of_its_base() -> None:
    problem = arm(9)
    x = torch.zeros(13, dtype=torch.float64)
    x[9] = 2.0  # the quaternion 2: no rotation, and lengths times 4
    expected = torch.tensor([4.0, 0, 0, 2.0, 0, 0, 0], dtype=torch.float64)
    torch.testing.assert_close(problem.f(x), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("size", [1, 6, 40])
@pytest.mark.parametrize("base_norm", [0.0, 0.5, 1.1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_jacobian_is_the_geometric_one(dtype: str, base_norm: float, size: int) -> None:
    problem = arm(size, dtype, base_norm=base_norm)
    tolerance = 5 * (size + 5) * torch.finfo(problem.x.dtype).eps
    found = problem.f(problem.x).double(), jacobian(problem.f, problem.x).double()
    expected = problem.exact.value, problem.exact.jacobian
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**31 - 1), base_norm=st.floats(0, 2))
def test_norm_of_the_orientation_is_that_of_the_base(seed: int, base_norm: float) -> None:
    problem = arm(8, seed=seed, base_norm=base_norm)
    y = problem.f(problem.x)
    assert y[3:].norm().item() == pytest.approx(base_norm, rel=1e-6, abs=1e-30)
    assert y[:3].norm().item() <= base_norm**2 * (1 + 1e-6)


def test_heads_are_those_described() -> None:
    assert set(arm(3).heads) == {head.name for head in FUNCTION.heads}
    assert set(FUNCTION.default_heads) <= set(arm(3).heads)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_heads_are_their_formulas(dtype: torch.dtype) -> None:
    heads = arm(3).heads
    y = torch.tensor([0.5, 0.5, 3.5, 0.0, 0.0, 0.0, 3.0], dtype=dtype)
    assert heads["plane"](y).item() == 9.0
    assert heads["target"](y).item() == 3.0
    assert heads["unit_norm"](y).item() == 4.0
    assert heads["unit_square"](y).item() == 64.0
    assert all(head(y).dtype == dtype and head(y).shape == () for head in heads.values())


@pytest.mark.parametrize("norm", [1e-3, 1e-6])
def test_constraints_differ_in_smoothness_at_a_small_quaternion(norm: float) -> None:
    heads = arm(3).heads
    y = torch.tensor([0.0, 0, 0, 0, 0.6, 0, -0.8], dtype=torch.float64) * norm
    y.requires_grad_()
    (kinked,) = torch.autograd.grad(heads["unit_norm"](y), y)
    (smooth,) = torch.autograd.grad(heads["unit_square"](y), y)
    assert kinked.norm().item() == pytest.approx(2 * (1 - norm), rel=1e-12)
    assert smooth.norm().item() == pytest.approx(4 * norm * (1 - norm**2), rel=1e-12)


def test_gradients_of_the_heads_are_exact() -> None:
    problem = arm(20)
    names = list(problem.heads)
    found = gradients(problem.f, [problem.heads[name] for name in names], problem.x)
    for name, gradient in zip(names, found.gradients, strict=True):
        expected = exact_gradient(Head(name, "", problem.heads[name]), problem.exact, problem.x)
        assert relative_difference(gradient, expected) < 1e-12
    # The angles turn the orientation, and leave its norm.
    for name in ("unit_norm", "unit_square"):
        gradient = found.gradients[names.index(name)]
        assert gradient[:20].abs().max() < 1e-14 < 0.1 < gradient[20:].norm()


def test_angles_are_smaller_where_there_are_more() -> None:
    spread = arm(10_000).x[:-4].std().item()
    assert spread == pytest.approx(2 / math.sqrt(10_000), rel=0.05)


@pytest.mark.parametrize("size", [1, 30, 200])
def test_operators_are_as_many_as_estimated(size: int) -> None:
    require_calls(FUNCTION, setting("robot_arm", size))
