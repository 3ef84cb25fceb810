"""Jacobians and gradient flow beside what else there is: one line for each way of a case.

    python benchmarks/jacobian.py [--rounds 5] [--case NAME ...]

All ways of a case are run in turn, in rounds, in one process, after a warm run each. Each line has
the median of a way's time, the middle half, and the median of its ratio to the first way of the
same round. The large map, whose dense Jacobian would take 3.2 GB, has its peak memory instead.
curvlinops is run where it is installed (pip install curvlinops-for-pytorch). Times are in no test.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from statistics import median
from typing import Any

import torch
from scipy.sparse.linalg import eigsh, svds
from torch import Tensor

from explorer import hessian_eigenvalues, memory, spectral_norm
from explorer.engine.flow import Walk, spectral_norms
from explorer.measure import timed

Ways = dict[str, Callable[[], Any]]


def step_jacobians() -> tuple[str, Ways]:
    """All J_t = ∂h_t/∂h_{t−1} of h_t = tanh(W_t·h_{t−1}); both ways run the steps too."""
    steps, n = 200, 128
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(steps, n, n, generator=generator, dtype=torch.float64) / n**0.5
    x = torch.randn(n, generator=generator, dtype=torch.float64)
    network: list[Callable[[Tensor], Tensor]] = [lambda h, w=w: torch.tanh(w @ h) for w in weights]
    labels = [f"step {t}" for t in range(1, steps + 1)]

    def together() -> list[Tensor]:
        walk = Walk(network, labels, x, batch=False)
        return [walk.jacobian(t)[0] for t in range(1, steps + 1)]

    def one_by_one() -> list[Tensor]:
        found, h = [], x
        for step in network:
            found.append(torch.autograd.functional.jacobian(step, h))
            h = step(h)
        return found

    kept = together()
    for ours, theirs in zip(kept, one_by_one(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    return f"all step Jacobians, T = {steps}, hidden {n}, tanh", {
        "explorer": together,
        "autograd.functional.jacobian": one_by_one,
        "their norms, apart": lambda: list(spectral_norms([each[None] for each in kept])),
    }


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


class _Model(torch.nn.Module):
    """f of a parameter, as curvlinops takes it: one sample, on which it does not depend."""

    def __init__(self, f: Callable[[Tensor], Tensor], x: Tensor) -> None:
        super().__init__()
        self.f = f
        self.x = torch.nn.Parameter(x)

    def forward(self, sample: Tensor) -> Tensor:
        return self.f(self.x).reshape(1, -1) + 0 * sample.sum()


def _curvlinops(kind: str, f: Callable[[Tensor], Tensor], x: Tensor, loss: Any = None) -> Any:
    """A linear operator of curvlinops for scipy."""
    import curvlinops

    model = _Model(f, x)
    data = [(torch.zeros(1, 1, dtype=x.dtype), torch.zeros(1, 1, dtype=x.dtype))]
    operator = getattr(curvlinops, f"{kind}LinearOperator")
    arguments = (model, [model.x], data) if loss is None else (model, loss, [model.x], data)
    return operator(*arguments, check_deterministic=False, num_data=1).to_scipy()


def norm(layers: int) -> tuple[str, Ways]:
    """‖J‖₂ of layers of tanh; all ways run f too. The nearer σ₂ is to σ₁, the more products."""
    n = 1000
    weights = [normal(n, n, seed=layer) / n**0.5 for layer in range(1, layers + 1)]
    x = 0.3 * normal(n)

    def f(x: Tensor) -> Tensor:
        for each in weights:
            x = torch.tanh(each @ x)
        return x

    jacobian = torch.autograd.functional.jacobian
    ways: Ways = {
        "explorer": lambda: spectral_norm(f, x).value,
        "functional.jacobian, svdvals": lambda: float(torch.linalg.svdvals(jacobian(f, x))[0]),
        "func.jacrev, svdvals": lambda: float(torch.linalg.svdvals(torch.func.jacrev(f)(x))[0]),
    }
    if find_spec("curvlinops"):
        ways["curvlinops, scipy's svds"] = lambda: float(
            svds(_curvlinops("Jacobian", f, x), k=1, tol=1e-6, return_singular_vectors=False)[0]
        )
    found = spectral_norm(f, x)
    exact = torch.linalg.svdvals(jacobian(f, x))
    off, second = abs(found.value / exact[0] - 1), exact[1] / exact[0]
    title = f"spectral norm, m = n = {n}, {layers} layers, σ₂/σ₁ = {second:.3f}: {found.products}"
    error = found.error / found.value
    return f"{title} products, relative error {off:.1e}, estimated {error:.1e}", ways


def curvature() -> tuple[str, Ways]:
    """Both extreme eigenvalues of the Hessian of a network's loss by its 10 410 parameters."""
    sizes = (64, 90, 50, 3)
    batch, labels = normal(200, sizes[0]), torch.arange(200) % sizes[-1]
    shapes = [(m, n) for n, m in pairwise(sizes)]
    x = torch.cat([(normal(m, n, seed=m) / n**0.5).reshape(-1) for m, n in shapes])

    def loss(x: Tensor) -> Tensor:
        parts = torch.split(x, [m * n for m, n in shapes])
        h = batch
        for part, shape in zip(parts[:-1], shapes, strict=False):
            h = torch.tanh(h @ part.reshape(shape).mT)
        return torch.nn.functional.cross_entropy(h @ parts[-1].reshape(shapes[-1]).mT, labels)

    ways: Ways = {"explorer": lambda: hessian_eigenvalues(loss, x)}
    if find_spec("curvlinops"):

        def peer() -> Any:
            operator = _curvlinops("Hessian", loss, x, _Same())
            return [eigsh(operator, 1, which=end, tol=1e-6, return_eigenvectors=False)[0]
                    for end in ("LA", "SA")]  # fmt: skip

        found, theirs = hessian_eigenvalues(loss, x), peer()
        ours = torch.tensor([found.largest, found.smallest], dtype=torch.float64)
        torch.testing.assert_close(ours, torch.tensor(theirs, dtype=torch.float64), rtol=1e-5,
                                   atol=0.0)  # fmt: skip
        ways["curvlinops, scipy's eigsh twice"] = peer
    products = hessian_eigenvalues(loss, x).products
    return f"extreme Hessian eigenvalues, n = {x.numel()}: {products} products", ways


class _Same(torch.nn.MSELoss):
    """The loss that is the model's output itself; curvlinops asks for one of torch's."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return output.sum()


def large() -> None:
    """Peak memory and time of ‖J‖₂ of a convolutional and of a banded map with m = n = 20 000."""
    n = 20_000
    kernels = [normal(8, 1, 9, seed=1) / 3, normal(1, 8, 9, seed=2) / 8]
    bands = normal(5, n, seed=3)

    def convolution(x: Tensor) -> Tensor:
        h = torch.tanh(torch.conv1d(x[None, None], kernels[0], padding=4))
        return torch.conv1d(h, kernels[1], padding=4)[0, 0]

    def banded(x: Tensor) -> Tensor:
        return sum((torch.roll(band * x.sin(), s) for s, band in enumerate(bands)), x)

    print(f"\nspectral norm, m = n = {n}, the dense Jacobian {8e-9 * n * n:.1f} GB")
    for name, f in (("convolutional", convolution), ("banded", banded)):
        x = normal(n)
        torch.autograd.functional.vjp(f, x, x)  # what the model itself and torch take
        with memory.peak("cpu") as peak:
            seconds, found = timed(partial(spectral_norm, f, x))
        print(
            f"  {name:30s} {1e3 * seconds:10.2f} ms  {found.products} products, estimated relative "
            f"error {found.error / found.value:.0e}, peak {(peak.size or 0) / 1e6:.0f} MB above"
        )


CASES: dict[str, Callable[[], tuple[str, Ways]]] = {
    "norm": partial(norm, 4),
    "two layers": partial(norm, 2),
    "curvature": curvature,
    "steps": step_jacobians,
}


def show(title: str, ways: Ways, rounds: int) -> None:
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for run in ways.values():
        run()
    for _ in range(rounds):
        for way, run in ways.items():
            seconds[way].append(timed(run)[0])
    print(f"\n{title}")
    first = next(iter(seconds.values()))
    for way, runs in seconds.items():
        ordered = sorted(runs)
        low, high = ordered[len(runs) // 4], ordered[-1 - len(runs) // 4]
        ratio = median(run / ref for run, ref in zip(runs, first, strict=True))
        text = f"  {way:30s} {1e3 * median(runs):10.2f} ms  [{1e3 * low:.2f}, {1e3 * high:.2f}]"
        print(f"{text}  {ratio:7.2f} × the first", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--case", nargs="*", choices=[*CASES, "large"], default=[*CASES, "large"])
    chosen = options.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    for name in chosen.case:
        if name == "large":
            large()
        else:
            show(*CASES[name](), chosen.rounds)


if __name__ == "__main__":
    main()
