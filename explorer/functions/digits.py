"""The features that a small network sees in real digits, by its parameters: one trunk, many losses.

The images are scikit-learn's handwritten digits (1797 of 8×8 pixels with 17 grey levels, part of
the package; Alpaydın and Kaynak, 1998), each turned by a seeded number of quarter turns. x holds
the parameters of the trunk, y the features; its heads are the losses of one training step of
several tasks: which digit it is, the image before its turn, which turn it was (Gidaris, Singh and
Komodakis, arXiv 1803.07728), and the size of the features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from explorer.fields import Field
from explorer.functions.description import (
    Code,
    Cost,
    Function,
    OwnHead,
    Problem,
    Setting,
    Work,
    rate,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

_SIDE = 8
_PIXELS = _SIDE * _SIDE
_LEVELS = 16.0
_IMAGES = 1797
_DIGITS = 10
_TURNS = 4


def weights(setting: Setting) -> list[tuple[int, ...]]:
    """The shape of the weights of each layer, outputs first; each has a bias beside them.

    Dense: 4n, 4n and n units. Convolutional: two of 2n channels, each averaged over 2×2 pixels,
    and n units.
    """
    n = setting.size
    if setting.parameters["trunk"] == "dense":
        return [(4 * n, _PIXELS), (4 * n, 4 * n), (n, 4 * n)]
    return [(2 * n, 1, 3, 3), (2 * n, 2 * n, 3, 3), (n, 2 * n * _PIXELS // 16)]


def sizes(setting: Setting) -> list[int]:
    """Numbers in the parts of x: weights and bias of each layer."""
    return [number for shape in weights(setting) for number in (math.prod(shape), shape[0])]


def build(setting: Setting) -> Problem:
    """f from the parameters as one vector to the features `(images, n)`, and the four losses.

    Weights are normal with variance 1/(their number for each output), biases zero; the images are
    drawn without repetition.
    """
    import torch
    from sklearn.datasets import load_digits

    dense = setting.parameters["trunk"] == "dense"
    dtype = getattr(torch, setting.dtype)
    generator = torch.Generator().manual_seed(setting.seed)
    shapes, parts = weights(setting), sizes(setting)
    layers = []
    for shape in shapes:
        layers.append(_normal(shape, generator).flatten())
        layers.append(torch.zeros(shape[0]))
    x = torch.cat(layers).to(setting.device, dtype)

    digits = load_digits()
    count = setting.parameters["images"]
    chosen = torch.randperm(_IMAGES, generator=generator)[:count]
    upright = torch.from_numpy(digits.images)[chosen] / _LEVELS  # as exact in float32
    turns = torch.randint(_TURNS, (count,), generator=generator)
    turned = torch.stack(
        [image.rot90(turn) for image, turn in zip(upright, turns.tolist(), strict=True)]
    )
    images = (turned.flatten(1) if dense else turned[:, None]).to(setting.device, dtype)

    def f(x: Tensor) -> Tensor:
        first, first_bias, second, second_bias, third, third_bias = torch.split(x, parts)
        first, second, third = (
            each.view(shape) for each, shape in zip((first, second, third), shapes, strict=True)
        )
        functional = torch.nn.functional
        if dense:
            y = torch.tanh(functional.linear(images, first, first_bias))
            y = torch.tanh(functional.linear(y, second, second_bias))
        else:
            y = torch.tanh(functional.conv2d(images, first, first_bias, padding=1))
            y = functional.avg_pool2d(y, 2)
            y = torch.tanh(functional.conv2d(y, second, second_bias, padding=1))
            y = functional.avg_pool2d(y, 2).flatten(1)
        return functional.linear(y, third, third_bias)

    labels = torch.from_numpy(digits.target)[chosen]
    return Problem(f, x, heads=_losses(setting.size, labels, turns, upright.flatten(1), generator))


def _normal(shape: tuple[int, ...], generator: Generator) -> Tensor:
    import torch

    return torch.randn(shape, generator=generator) / math.sqrt(math.prod(shape[1:]))


def _losses(
    n: int, digits: Tensor, turns: Tensor, pixels: Tensor, generator: Generator
) -> dict[str, Callable[[Tensor], Tensor]]:
    """The four heads, each a mean over the images; their weights are seeded and fixed."""
    import torch

    functional = torch.nn.functional
    classes = _normal((_DIGITS, n), generator)
    decoder = _normal((_PIXELS, n), generator)
    quarters = _normal((_TURNS, n), generator)

    def classification(y: Tensor) -> Tensor:
        return functional.cross_entropy(y @ classes.to(y).T, digits.to(y.device))

    def reconstruction(y: Tensor) -> Tensor:
        return functional.mse_loss(y @ decoder.to(y).T, pixels.to(y))

    def rotation(y: Tensor) -> Tensor:
        return functional.cross_entropy(y @ quarters.to(y).T, turns.to(y.device))

    def regulariser(y: Tensor) -> Tensor:
        return y.square().sum(1).mean()

    return {
        "classification": classification,
        "reconstruction": reconstruction,
        "rotation": rotation,
        "regulariser": regulariser,
    }


def code(setting: Setting) -> Code:
    n, count = setting.size, setting.parameters["images"]
    dense = setting.parameters["trunk"] == "dense"
    given = f"""
        n, count = {n}, {count}
        generator = torch.Generator().manual_seed({setting.seed})
        """
    normal = """
        def normal(*shape):
            fan_in = torch.Size(shape[1:]).numel()
            return torch.randn(shape, generator=generator) / fan_in**0.5
        """
    layers = f"""
        shapes = {weights(setting)}
        layers = []
        for shape in shapes:
            layers += [normal(*shape).flatten(), torch.zeros(shape[0])]
        sizes = [len(layer) for layer in layers]
        x = torch.cat(layers).to(device, dtype)
        """
    images = f"""
        digits = load_digits()
        chosen = torch.randperm({_IMAGES}, generator=generator)[:count]
        upright = torch.from_numpy(digits.images)[chosen] / {_LEVELS:g}
        turns = torch.randint({_TURNS}, (count,), generator=generator)
        pairs = zip(upright, turns.tolist(), strict=True)
        images = torch.stack([image.rot90(turn) for image, turn in pairs])
        images = images.{"flatten(1)" if dense else "unsqueeze(1)"}.to(device, dtype)
        """
    losses = f"""
        labels, turns = torch.from_numpy(digits.target)[chosen].to(device), turns.to(device)
        pixels = upright.flatten(1).to(device, dtype)
        classes = normal({_DIGITS}, n).to(device, dtype)
        decoder = normal({_PIXELS}, n).to(device, dtype)
        quarters = normal({_TURNS}, n).to(device, dtype)
        """
    heads = {
        "classification": "F.cross_entropy(y @ classes.T, labels)",
        "reconstruction": "F.mse_loss(y @ decoder.T, pixels)",
        "rotation": "F.cross_entropy(y @ quarters.T, turns)",
        "regulariser": "y.square().sum(1).mean()",
    }
    return Code(
        (given, normal, layers, images, _DENSE if dense else _CONVOLUTIONAL),
        y_shape=(count, n),
        imports=("from sklearn.datasets import load_digits", "import torch.nn.functional as F"),
        heads=heads,
        heads_text=losses,
    )


_DENSE = """
    def f(x):
        w1, b1, w2, b2, w3, b3 = x.split(sizes)
        h = torch.tanh(F.linear(images, w1.view(shapes[0]), b1))
        h = torch.tanh(F.linear(h, w2.view(shapes[1]), b2))
        return F.linear(h, w3.view(shapes[2]), b3)
    """
_CONVOLUTIONAL = """
    def f(x):
        w1, b1, w2, b2, w3, b3 = x.split(sizes)
        h = torch.tanh(F.conv2d(images, w1.view(shapes[0]), b1, padding=1))
        h = F.avg_pool2d(h, 2)
        h = torch.tanh(F.conv2d(h, w2.view(shapes[1]), b2, padding=1))
        h = F.avg_pool2d(h, 2).flatten(1)
        return F.linear(h, w3.view(shapes[2]), b3)
    """


def cost(setting: Setting) -> Cost:
    """Two operations a weight, image and place, and as many again for each of the two gradients of
    a layer, of which the first has one: the images are no part of x. The activations are the
    elementwise work, and the memory."""
    n, images = setting.size, setting.parameters["images"]
    dense = setting.parameters["trunk"] == "dense"
    item = 8 if setting.dtype == "float64" else 4
    first, second, third = (math.prod(shape) for shape in weights(setting))
    places = (1, 1) if dense else (_PIXELS, _PIXELS // 4)
    of_first = 2.0 * images * first * places[0]
    products = of_first + 2.0 * images * (second * places[1] + third)
    channels = 4 * n if dense else 2 * n
    entries = images * channels * sum(places)
    parameters = sum(sizes(setting))
    moved = 50.0 * entries + parameters * item
    calls = _DENSE_CALLS if dense else _CONVOLUTIONAL_CALLS
    fast = rate(setting.dtype)
    if not dense and setting.dtype == "float64":
        fast *= _SLOW
    return Cost(
        forward=Work(products, moved, calls, fast),
        backward=Work(2 * products - of_first, 2 * moved, 2 * calls, fast),
        memory_bytes=float(item * (_HELD * entries + 3 * parameters)),
    )


_DENSE_CALLS = 15.0
_CONVOLUTIONAL_CALLS = 20.0
_SLOW = 0.5  # torch's convolutions in float64 have no kernel of their own, one image at a time
_HELD = 3.0  # tensors of the size of all activations, as measured

FUNCTION = Function(
    name="digits_trunk",
    title="Trunk of a network on digits",
    formula="y = features of the images for the parameters x: two tanh layers and a linear one",
    why_slow="every pass takes all images through the layers, and back through the network goes "
    "each of the losses.",
    size=Field(
        "size",
        "integer",
        "Features n",
        default=16,
        minimum=1,
        maximum=256,
        help="features of an image; the layers before have 4n units, or 2n channels",
    ),
    parameters=(
        Field(
            "images",
            "integer",
            "Images",
            default=32,
            minimum=1,
            maximum=_IMAGES,
            help=f"of scikit-learn's {_IMAGES} digits; y has as many rows",
        ),
        Field(
            "trunk",
            "choice",
            "Trunk",
            default="convolutional",
            choices=("convolutional", "dense"),
            help="layers of 3×3 convolutions, or dense ones",
        ),
    ),
    inputs=lambda setting: sum(sizes(setting)),
    outputs=lambda setting: setting.parameters["images"] * setting.size,
    cost=cost,
    build=build,
    code=code,
    inaccuracy="each gradient is a sum over all images and places, in which large parts cancel",
    default_heads=("classification", "reconstruction", "rotation", "regulariser"),
    heads=(
        OwnHead("classification", "cross-entropy of the digits, of a linear classifier"),
        OwnHead("reconstruction", "mean squared error of the upright images, decoded linearly"),
        OwnHead("rotation", "cross-entropy of the quarter turns, of a linear classifier"),
        OwnHead("regulariser", "mean of ‖y of an image‖²"),
    ),
)
