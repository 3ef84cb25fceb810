"""The trunk on real digits is its formula, and its heads are the losses that they say."""

import math
from functools import partial
from typing import Any

import numpy
import pytest
import torch
from sklearn.datasets import load_digits

from explorer.engine.gradients import gradients
from explorer.engine.saved import saved_bytes
from explorer.experiment import DTYPES, Experiment
from explorer.functions.description import Problem, Setting
from explorer.functions.digits import FUNCTION
from tests.estimates import require_flops

Array = numpy.ndarray[Any, numpy.dtype[numpy.float64]]

TRUNKS = ("convolutional", "dense")
every_trunk = pytest.mark.parametrize("trunk", TRUNKS)


def setting(size: int, dtype: str = "float64", seed: int = 0, **given: Any) -> Setting:
    return Experiment("digits_trunk", size, given, dtype=dtype, seed=seed).setting


def build(size: int, dtype: str = "float64", seed: int = 0, **given: Any) -> Problem:
    return FUNCTION.build(setting(size, dtype, seed, **given))


class Drawn:
    """What a seed draws, and the formulas in NumPy."""

    def __init__(self, n: int, count: int, trunk: str, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> Array:
            drawn = torch.randn(shape, generator=generator) / math.sqrt(math.prod(shape[1:]))
            return drawn.double().numpy()

        self.dense = trunk == "dense"
        shapes = (
            [(4 * n, 64), (4 * n, 4 * n), (n, 4 * n)]
            if self.dense
            else [(2 * n, 1, 3, 3), (2 * n, 2 * n, 3, 3), (n, 8 * n)]
        )
        self.weights = [normal(*shape) for shape in shapes]
        chosen = torch.randperm(1797, generator=generator)[:count].numpy()
        digits = load_digits()
        self.pixels = digits.images[chosen] / 16
        self.labels = digits.target[chosen]
        self.turns = torch.randint(4, (count,), generator=generator).numpy()
        self.classes, self.decoder, self.quarters = (normal(rows, n) for rows in (10, 64, 4))

    def features(self, biases: list[Array]) -> Array:
        first, second, third = self.weights
        images = numpy.stack(
            [numpy.rot90(image, turn) for image, turn in zip(self.pixels, self.turns, strict=True)]
        )
        if self.dense:
            y = numpy.tanh(images.reshape(len(images), -1) @ first.T + biases[0])
            y = numpy.tanh(y @ second.T + biases[1])
        else:
            y = halved(numpy.tanh(convolved(images[:, None], first, biases[0])))
            y = halved(numpy.tanh(convolved(y, second, biases[1])))
            y = y.reshape(len(images), -1)
        return y @ third.T + biases[2]

    def losses(self, y: Array) -> dict[str, float]:
        decoded = y @ self.decoder.T - self.pixels.reshape(len(y), -1)
        return {
            "classification": cross_entropy(y @ self.classes.T, self.labels),
            "reconstruction": float((decoded**2).mean()),
            "rotation": cross_entropy(y @ self.quarters.T, self.turns),
            "regulariser": float((y**2).sum(1).mean()),
        }


def convolved(images: Array, weights: Array, bias: Array) -> Array:
    """The 3×3 correlation with zeros around the image."""
    padded = numpy.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    side = images.shape[-1]
    parts = [
        numpy.einsum(
            "ncij,oc->noij", padded[:, :, i : i + side, j : j + side], weights[:, :, i, j]
        )
        for i in range(3)
        for j in range(3)
    ]
    return sum(parts) + bias[:, None, None]


def halved(images: Array) -> Array:
    return (
        images[..., ::2, ::2] + images[..., 1::2, ::2]
        + images[..., ::2, 1::2] + images[..., 1::2, 1::2]
    ) / 4  # fmt: skip


def cross_entropy(scores: Array, right: Array) -> float:
    logs = numpy.log(numpy.exp(scores).sum(1)) - scores[numpy.arange(len(scores)), right]
    return float(logs.mean())


@every_trunk
@pytest.mark.parametrize("n, count, seed", [(1, 1, 0), (3, 5, 1), (16, 32, 2)])
def test_features_and_losses_are_their_formulas(trunk: str, n: int, count: int, seed: int) -> None:
    problem = build(n, seed=seed, images=count, trunk=trunk)
    drawn = Drawn(n, count, trunk, seed)
    biases = [numpy.zeros(len(weights)) for weights in drawn.weights]
    layers = zip(drawn.weights, biases, strict=True)
    flat = numpy.concatenate([part.reshape(-1) for layer in layers for part in layer])
    assert numpy.array_equal(problem.x.numpy(), flat)
    y = problem.f(problem.x)
    assert y.shape == (count, n)
    numpy.testing.assert_allclose(y.numpy(), drawn.features(biases), rtol=1e-12, atol=1e-14)
    losses = drawn.losses(y.numpy())
    found = {name: head(y).item() for name, head in problem.heads.items()}
    assert found == pytest.approx(losses, rel=1e-12)


@every_trunk
def test_biases_stand_behind_the_weights_of_their_layer(trunk: str) -> None:
    problem, drawn = build(2, images=3, trunk=trunk), Drawn(2, 3, trunk, 0)
    generator = numpy.random.default_rng(0)
    biases = [generator.normal(size=len(weights)) for weights in drawn.weights]
    layers = zip(drawn.weights, biases, strict=True)
    flat = numpy.concatenate([part.reshape(-1) for layer in layers for part in layer])
    y = problem.f(torch.from_numpy(flat))
    numpy.testing.assert_allclose(y.numpy(), drawn.features(biases), rtol=1e-12, atol=1e-14)


@every_trunk
def test_is_one_function_in_both_dtypes(trunk: str) -> None:
    narrow, wide = (build(8, dtype, seed=3, trunk=trunk) for dtype in DTYPES)
    assert torch.equal(narrow.x.double(), wide.x)
    y = wide.f(wide.x)
    torch.testing.assert_close(narrow.f(narrow.x).double(), y, rtol=1e-4, atol=1e-5)
    # The heads' own numbers are the same to the last bit.
    for name, head in narrow.heads.items():
        assert torch.equal(head(y), wide.heads[name](y))


@every_trunk
def test_seed_decides(trunk: str) -> None:
    one, same, other = (build(4, seed=seed, trunk=trunk) for seed in (1, 1, 2))
    y = one.f(one.x)
    assert torch.equal(y, same.f(same.x))
    assert not torch.equal(one.x, other.x)
    for name, head in one.heads.items():
        assert torch.equal(head(y), same.heads[name](y))
        # Only the regulariser has nothing of the images or of weights in it.
        assert torch.equal(head(y), other.heads[name](y)) == (name == "regulariser")


@every_trunk
def test_every_image_is_there_once(trunk: str) -> None:
    problem = build(1, images=1797, trunk=trunk)
    y = torch.zeros(1797, 1, dtype=torch.float64)
    # Of features that are 0 every class is as likely, and the decoded image is black.
    pixels = load_digits().images / 16
    assert problem.heads["reconstruction"](y).item() == pytest.approx((pixels**2).mean())
    assert problem.heads["classification"](y).item() == pytest.approx(math.log(10))
    assert problem.heads["rotation"](y).item() == pytest.approx(math.log(4))


@every_trunk
def test_weighted_sums_of_the_losses_cost_no_pass_more(trunk: str) -> None:
    """Twelve heads, of which the rank is four."""
    problem = build(16, trunk=trunk)
    losses = list(problem.heads.values())
    weights = torch.rand(8, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def weighted(row: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return row @ torch.stack([loss(y) for loss in losses])

    heads = losses + [partial(weighted, row) for row in weights]
    found = gradients(problem.f, heads, problem.x, path="low_rank_vjp")
    assert found.plan.sizes.rank == 4
    assert (found.passes.forward, found.passes.backward) == (1, 4)
    own = torch.stack(found.gradients[:4])
    for gradient, row in zip(found.gradients[4:], weights, strict=True):
        torch.testing.assert_close(gradient, row @ own, rtol=1e-10, atol=1e-13)
    taken = gradients(problem.f, heads, problem.x)
    assert (taken.passes.forward, taken.passes.backward) == (1, 4)
    for one, other in zip(taken.gradients, found.gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-13)


@every_trunk
@pytest.mark.parametrize("images", [1, 5])
def test_costs_two_operations_a_weight_image_and_place(trunk: str, images: int) -> None:
    require_flops(FUNCTION, setting(3, images=images, trunk=trunk))


@every_trunk
@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_is_above_what_autograd_keeps(trunk: str, dtype: str) -> None:
    chosen = setting(8, dtype, images=200, trunk=trunk)
    problem = FUNCTION.build(chosen)
    with saved_bytes() as saved:
        problem.f(problem.x.clone().requires_grad_())
    assert saved.size is not None
    assert saved.size < FUNCTION.cost(chosen).memory_bytes < 4 * saved.size
