"""y = tanh(W_L ⋯ tanh(W_1 x)): seeded dense tanh layers, a vector function with a full Jacobian."""

from __future__ import annotations

import math
from collections.abc import Iterator

from explorer.fields import Field
from explorer.functions.description import (
    READ,
    Code,
    Cost,
    Function,
    Problem,
    Setting,
    Work,
    rate,
)


def outputs(setting: Setting) -> int:
    """m: what `outputs` says, else n."""
    return int(setting.parameters["outputs"] or setting.size)


def shapes(setting: Setting) -> Iterator[tuple[int, int]]:
    """The shape (rows, columns) of each weight: n×n, the last one m×n."""
    n, layers = setting.size, setting.parameters["layers"]
    for layer in range(layers):
        yield (outputs(setting) if layer == layers - 1 else n), n


def build(setting: Setting) -> Problem:
    """f and x ∈ Rⁿ; the weights are normal with variance gain²/n, x is standard normal.

    All are drawn in float32 on the CPU, so that one seed is the same function, to the last bit,
    in every dtype and on every device.
    """
    import torch

    dtype = getattr(torch, setting.dtype)
    generator = torch.Generator().manual_seed(setting.seed)
    scale = setting.parameters["gain"] / math.sqrt(setting.size)

    def drawn(shape: tuple[int, int]) -> torch.Tensor:
        # Its place first: drawn before it, each left a hole, half of all the weights together.
        place = torch.empty(shape, dtype=dtype, device=setting.device)
        return place.copy_(torch.randn(shape, generator=generator).mul_(scale))

    weights = [drawn(shape) for shape in shapes(setting)]
    x = torch.randn(setting.size, generator=generator).to(setting.device, dtype)

    def f(x: torch.Tensor) -> torch.Tensor:
        for weight in weights:
            x = torch.tanh(weight @ x)
        return x

    return Problem(f, x)


def code(setting: Setting) -> Code:
    given = f"""
        n, m, layers = {setting.size}, {outputs(setting)}, {setting.parameters["layers"]}
        generator = torch.Generator().manual_seed({setting.seed})
        scale = {setting.parameters["gain"]!r} / n**0.5
        weights = [
            (scale * torch.randn(width, n, generator=generator)).to(device, dtype)
            for width in [n] * (layers - 1) + [m]
        ]
        x = torch.randn(n, generator=generator).to(device, dtype)
        """
    f = """
        def f(x):
            for weight in weights:
                x = torch.tanh(weight @ x)
            return x
        """
    return Code((given, f), y_shape=(outputs(setting),))


def cost(setting: Setting) -> Cost:
    """Two operations a weight in each direction; the weights are the memory, read once a pass."""
    sizes = [rows * columns for rows, columns in shapes(setting)]
    weights = sum(sizes)
    item = 8 if setting.dtype == "float64" else 4
    read = READ * weights * item
    drawn = 4 * max(sizes)  # in float32
    calls = 2.0 * setting.parameters["layers"]  # a product and a tanh
    fast = rate(setting.dtype)
    return Cost(
        forward=Work(2.0 * weights, read, calls, fast),
        backward=Work(2.0 * weights, read, 2 * calls, fast),
        memory_bytes=float(weights * item + drawn),
    )


FUNCTION = Function(
    name="tanh_network",
    title="Dense tanh network",
    formula="y = tanh(W_L ⋯ tanh(W₁ x)), W normal with variance gain²/n",
    why_slow="each pass multiplies by every weight; the Jacobian takes one backward per output.",
    size=Field(
        "size",
        "integer",
        "Size n",
        default=200,
        minimum=1,
        maximum=2000,
        help="inputs, and the width of the layers",
    ),
    parameters=(
        Field(
            "outputs",
            "integer",
            "Outputs m",
            minimum=1,
            maximum=2000,
            optional=True,
            empty="as many as the size",
            help="entries of y",
        ),
        Field(
            "layers",
            "integer",
            "Layers",
            default=3,
            minimum=1,
            maximum=50,
            help="dense layers, each followed by tanh",
        ),
        Field(
            "gain",
            "number",
            "Gain",
            default=1.0,
            minimum=0.0,
            maximum=10.0,
            exclusive_minimum=True,
            help="scale of the weights",
        ),
    ),
    inputs=lambda setting: setting.size,
    outputs=outputs,
    cost=cost,
    build=build,
    code=code,
    inaccuracy="rounding grows with every layer and with the gain",
    default_heads=("square", "sin"),
)
