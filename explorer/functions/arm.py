"""Forward kinematics of an arm of n joints: y = (p, q), the position of its end point and the
quaternion of its orientation there; x = (θ, b), the joint angles and the base's quaternion.

Joint i turns by θᵢ about the z axis (i odd) or the y axis (i even) of the link before it, and a
link of length 1/n along its x axis follows. With qᵢ = (cos θᵢ/2, axis·sin θᵢ/2) the orientation
after joint i is Qᵢ = b⊗q₁⊗⋯⊗qᵢ, Hamilton products of quaternions (w, x, y, z), and

    p = Σ Qᵢ⊗(0, 1/n, 0, 0)⊗Q̄ᵢ,   q = Qₙ.

The base's quaternion is four free numbers, as an optimiser of poses has it: a product of unit
quaternions has norm 1 whatever the angles, and a constraint ‖q‖ = 1 on it would have no gradient.
Here ‖q‖ = ‖b‖, and p is scaled by ‖b‖². The two heads that hold it to 1 differ where q nears 0,
which the norm of b sets: (‖q‖ − 1)² has a gradient of norm 2 there and none at 0, (‖q‖² − 1)² one
that falls to 0 smoothly.

The exact Jacobian is the geometric one, at every x: dp/dθᵢ = zᵢ × (p − pᵢ), with zᵢ the axis of
joint i and pᵢ its place, and dq/dθᵢ = ½ (0, zᵢ)⊗q, in the frame of the base; see L. Sciavicco,
B. Siciliano, Modelling and Control of Robot Manipulators (2000), chapter 3.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from explorer.fields import Field
from explorer.functions.description import (
    Code,
    Cost,
    Exact,
    Function,
    OwnHead,
    Problem,
    Setting,
    Work,
)

if TYPE_CHECKING:
    from torch import Tensor


def build(setting: Setting) -> Problem:
    """f, x and the heads; the angles are normal with standard deviation 2/√n rad, so that an arm
    of many joints is bent as one of few, and b has a random direction."""
    import torch

    n = setting.size
    dtype = getattr(torch, setting.dtype)
    generator = torch.Generator().manual_seed(setting.seed)
    angles = 2 / math.sqrt(n) * torch.randn(n, generator=generator)
    base = torch.randn(4, generator=generator)
    base *= setting.parameters["base_norm"] / torch.linalg.vector_norm(base)
    x = torch.cat((angles, base)).to(setting.device, dtype)
    axes = _axes(n).to(x)

    def f(x: Tensor) -> Tensor:
        half = x[:n, None] / 2
        turns = torch.cat((half.cos(), half.sin() * axes), 1)
        q = x[n:]
        after = []
        for turn in _right_products(turns):
            q = q @ turn
            after.append(q)
        position = _first_axis(torch.stack(after)).sum(0) / n
        return torch.cat((position, q))

    return Problem(f, x, _exact(x), _HEADS)


def _axes(n: int) -> Tensor:
    """The axis of every joint in the frame of the link before it, float64, shape (n, 3)."""
    import torch

    axes = torch.zeros(n, 3, dtype=torch.float64)
    axes[0::2, 2] = 1
    axes[1::2, 1] = 1
    return axes


def _right_products(q: Tensor) -> Tensor:
    """For quaternions (n, 4) the matrices (n, 4, 4) of p ↦ p⊗q, to be multiplied from the left."""
    import torch

    w, x, y, z = q.unbind(1)
    rows = (w, x, y, z), (-x, w, -z, y), (-y, z, w, -x), (-z, -y, x, w)
    return torch.stack([torch.stack(row, 1) for row in rows], 1)


def _first_axis(q: Tensor) -> Tensor:
    """q⊗(0, 1, 0, 0)⊗q̄ for quaternions (n, 4): the x axes, scaled by ‖q‖²; shape (n, 3)."""
    import torch

    w, x, y, z = q.unbind(1)
    return torch.stack((w * w + x * x - y * y - z * z, 2 * (x * y + w * z), 2 * (x * z - w * y)), 1)


def _exact(x: Tensor) -> Exact:
    """y and its Jacobian by the geometric formulas, see above: rotation matrices along the chain
    in the frame of the base, then b."""
    import numpy as np
    import torch

    n = len(x) - 4
    given = x.to("cpu", torch.float64).numpy()
    angles, b = given[:n], given[n:]
    axes = _axes(n).numpy()
    cross = -np.cross(axes[:, None], np.eye(3))  # the matrix of v ↦ axis × v
    turns = np.eye(3) + np.sin(angles)[:, None, None] * cross
    turns += (1 - np.cos(angles))[:, None, None] * cross @ cross
    halves = np.column_stack((np.cos(angles / 2), np.sin(angles / 2)[:, None] * axes))
    frame, place, r = np.eye(3), np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    z, places = np.empty((n, 3)), np.empty((n, 3))
    for i in range(n):
        z[i], places[i] = frame @ axes[i], place
        frame = frame @ turns[i]
        place = place + frame[:, 0] / n
        r = _left(r) @ halves[i]
    zero = np.zeros((n, 1))
    turned = _left(b) @ _right(r)  # the matrix of q ↦ b⊗q⊗r
    scaled = (_left(b) @ _right(b * _CONJUGATE))[1:, 1:]  # ‖b‖² times the rotation by b

    jacobian = np.empty((7, n + 4))
    jacobian[:3, :n] = scaled @ np.cross(z, place - places).T
    jacobian[3:, :n] = turned @ np.hstack((zero, z)).T / 2
    end = np.append(0.0, place)
    by_b = _right(_right(b * _CONJUGATE) @ end) + _left(_left(b) @ end) @ np.diag(_CONJUGATE)
    jacobian[:3, n:] = by_b[1:]
    jacobian[3:, n:] = _right(r)
    value = np.concatenate((scaled @ place, _left(b) @ r))
    return Exact(torch.from_numpy(value), torch.from_numpy(jacobian))


_CONJUGATE = (1.0, -1.0, -1.0, -1.0)


def _left(p: Any) -> Any:
    """The matrix of q ↦ p⊗q."""
    import numpy as np

    w, x, y, z = p
    return np.array(((w, -x, -y, -z), (x, w, -z, y), (y, z, w, -x), (z, -y, x, w)))


def _right(q: Any) -> Any:
    """The matrix of p ↦ p⊗q."""
    import numpy as np

    w, x, y, z = q
    return np.array(((w, -x, -y, -z), (x, w, z, -y), (y, -z, w, x), (z, y, -x, w)))


def _to_plane(y: Tensor) -> Tensor:
    return (y[2] - 0.5) ** 2


def _to_target(y: Tensor) -> Tensor:
    import torch

    distance: Tensor = torch.linalg.vector_norm(y[:3] - 0.5)
    return distance


def _norm_from_one(y: Tensor) -> Tensor:
    import torch

    distance: Tensor = (torch.linalg.vector_norm(y[3:]) - 1) ** 2
    return distance


def _square_from_one(y: Tensor) -> Tensor:
    return (y[3:].square().sum() - 1) ** 2


_HEADS = {
    "plane": _to_plane,
    "target": _to_target,
    "unit_norm": _norm_from_one,
    "unit_square": _square_from_one,
}


def code(setting: Setting) -> Code:
    given = f"""
        n = {setting.size}
        generator = torch.Generator().manual_seed({setting.seed})
        angles = 2 / n**0.5 * torch.randn(n, generator=generator)
        base = torch.randn(4, generator=generator)
        base *= {setting.parameters["base_norm"]!r} / torch.linalg.vector_norm(base)
        x = torch.cat((angles, base)).to(device, dtype)
        axes = torch.zeros(n, 3, dtype=dtype, device=device)  # z, y, z, y, … by joint
        axes[0::2, 2] = 1
        axes[1::2, 1] = 1
        """
    products = """
        def right_products(q):
            # For every quaternion q the matrix of p -> p⊗q, for p from the left.
            w, x, y, z = q.unbind(1)
            rows = (w, x, y, z), (-x, w, -z, y), (-y, z, w, -x), (-z, -y, x, w)
            return torch.stack([torch.stack(row, 1) for row in rows], 1)
        """
    f = """
        def f(x):
            half = x[:n, None] / 2
            turns = torch.cat((half.cos(), half.sin() * axes), 1)
            q, after = x[n:], []
            for turn in right_products(turns):
                q = q @ turn
                after.append(q)
            # A link lies along the x axis of the orientation after its joint.
            w, a, b, c = torch.stack(after, 1)
            links = w * w + a * a - b * b - c * c, 2 * (a * b + w * c), 2 * (a * c - w * b)
            return torch.cat((torch.stack(links).sum(1) / n, q))
        """
    heads = {
        "plane": "(y[2] - 0.5) ** 2",
        "target": "torch.linalg.vector_norm(y[:3] - 0.5)",
        "unit_norm": "(torch.linalg.vector_norm(y[3:]) - 1) ** 2",
        "unit_square": "(y[3:].square().sum() - 1) ** 2",
    }
    return Code((given, products, f), y_shape=(7,), heads=heads)


def cost(setting: Setting) -> Cost:
    """Operators of next to no work: so many a joint, and some for all of them together."""
    n = setting.size
    item = 8 if setting.dtype == "float64" else 4
    return Cost(
        forward=Work(0.0, n * 60 * item, 40 + 3 * n),
        backward=Work(0.0, n * 120 * item, 100 + 8 * n),
        memory_bytes=_WORKSPACE + n * _OF_A_JOINT,
    )


_OF_A_JOINT = 5.5e3  # bytes, most of them the bookkeeping of autograd: measured
_WORKSPACE = 1e6

FUNCTION = Function(
    name="robot_arm",
    title="Robot arm",
    formula="y = (p, q), end point and orientation of n joints in a row, x = (θ, b)",
    why_slow="each orientation follows from the one before, so that the joints are passed one by "
    "one, in each direction.",
    size=Field(
        "size",
        "integer",
        "Joints n",
        default=300,
        minimum=1,
        maximum=10_000,
        help="joints, as many as the links; an industrial arm has 6, a snake robot or the "
        "backbone of a protein far more",
    ),
    parameters=(
        Field(
            "base_norm",
            "number",
            "Norm of b",
            default=1.1,
            minimum=0.0,
            maximum=2.0,
            help="of the base's quaternion; near 0 the two constraints differ",
        ),
    ),
    inputs=lambda setting: setting.size + 4,
    outputs=lambda setting: 7,
    cost=cost,
    build=build,
    code=code,
    inaccuracy="every joint rounds the orientation of all that follow it",
    default_heads=tuple(_HEADS),
    heads=(
        OwnHead("plane", "(p_z − ½)²"),
        OwnHead("target", "‖p − (½, ½, ½)‖"),
        OwnHead("unit_norm", "(‖q‖ − 1)²"),
        OwnHead("unit_square", "(‖q‖² − 1)²"),
    ),
)
