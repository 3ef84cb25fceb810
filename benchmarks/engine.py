"""The gradient engine beside its peers: a table of cases × paths.

    python benchmarks/engine.py [--rounds 5] [--case NAME ...] [--size 300]

All ways of a case are run in turn, in rounds, in one process, after a warm run each. The table has
for each way the median of its time over that of the quickest other way of the same round, and over
that of ONE gradient (f, one head, one backward); the passes through f; and the largest error of a
head, ‖Δ‖/(‖J‖₂·‖c‖), against J by rows in float64. torchjd and torch.func are run where they are
installed and would not take minutes. Times are in no test; the passes are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any

import torch
from torch import Tensor

from explorer import memory
from explorer.engine.gradients import Gradients, gradients, jacobian, pullback
from explorer.functions import FUNCTIONS
from explorer.functions.description import Setting
from explorer.measure import timed

Heads = list[Callable[[Tensor], Tensor]]
DOUBLE = torch.float64
ONE = "one gradient"


@dataclass
class Case:
    """f, its heads and x, and the paths to compare on them."""

    name: str
    f: Callable[[Tensor], Tensor]
    heads: Heads
    x: Tensor
    paths: tuple[str, ...] = ("retain_graph", "reuse", "batched_vjp", "low_rank_vjp", "jvp", "auto")
    peers: bool = True
    rounds: int | None = None
    ways: dict[str, Callable[[], Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.ways:
            return
        self.ways[ONE] = self.one
        for path in self.paths + (("torchjd",) if self.peers and find_spec("torchjd") else ()):
            self.ways[path] = partial(gradients, self.f, self.heads, self.x, path=path)
        if self.peers:
            self.ways["torch.func.jacrev"] = self.jacrev

    def one(self) -> Tensor:
        """What a person writes for a single head."""
        x = self.x.detach().requires_grad_()
        (found,) = torch.autograd.grad(self.heads[0](self.f(x)), x)
        return found

    def jacrev(self) -> Tensor:
        """All heads as one function, and its Jacobian by rows."""

        def stacked(x: Tensor) -> Tensor:
            y = self.f(x)
            return torch.stack([head(y) for head in self.heads])

        return torch.func.jacrev(stacked)(self.x)

    def error(self, result: Gradients) -> float:
        """The largest ‖Δ_k‖/(‖J‖₂·‖c_k‖) over the heads."""
        j = jacobian(self.f, self.x)
        y = self.f(self.x).detach().requires_grad_()
        rows = j.reshape(y.numel(), -1)
        norm = torch.linalg.matrix_norm(rows, 2)
        worst = 0.0
        for head, gradient in zip(self.heads, result.gradients, strict=True):
            (c,) = torch.autograd.grad(head(y), y)
            difference = gradient.reshape(-1) - c.reshape(-1) @ rows
            worst = max(worst, float(difference.norm() / (norm * c.norm())))
        return worst


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(), dtype=DOUBLE)


def directed(count: int, outputs: int, rank: int | None = None) -> Heads:
    """Heads Σ w·sin y with normal w, of which only `rank` are independent."""
    weights = normal(count, outputs)
    if rank is not None:
        weights = normal(count, rank) @ normal(rank, outputs)
    return [lambda y, w=w: w @ y.sin().reshape(-1) for w in weights]


def trace(size: int, count: int, peers: bool) -> Case:
    problem = FUNCTIONS["matrix_exp_trace"].build(Setting(size, {"x": 1.0}, "float64"))
    heads: Heads = [lambda y, k=k: torch.sin(y / k) for k in range(1, count + 1)]
    paths = ("auto", "reuse", "retain_graph") if peers else ("auto", "reuse")
    name = f"scalar y, K={count}"
    return Case(name, problem.f, heads, problem.x, paths, peers and count <= 16)


def entries(size: int) -> Case:
    a = normal(size, size) / size**0.5

    def f(x: Tensor) -> Tensor:
        return torch.matrix_exp(x * a)[:8, :8].reshape(-1)

    paths = ("retain_graph", "low_rank_vjp", "jvp", "auto")
    x = torch.tensor(0.7, dtype=DOUBLE)
    return Case("matrix_exp entries, y∈R⁶⁴, x∈R, K=16", f, directed(16, 64), x, paths)


def simulation() -> Case:
    a, start = normal(64, 64) / 8, normal(64)

    def f(x: Tensor) -> Tensor:
        y = start
        for _ in range(300):
            y = y + 0.01 * torch.tanh(a @ y * x)
        return y

    x = torch.tensor(0.7, dtype=DOUBLE)
    return Case("simulation, 300 steps, y∈R⁶⁴, x∈R, K=16", f, directed(16, 64), x)


def few_outputs(size: int) -> Case:
    basis = normal(10, size, size) / size**0.5

    def f(x: Tensor) -> Tensor:
        return torch.matrix_exp(torch.tensordot(x, basis, dims=1)).diagonal()[:4]

    x = normal(10) / 10
    paths = ("retain_graph", "reuse", "low_rank_vjp", "jvp", "auto")
    return Case("matrix_exp, y∈R⁴, x∈R¹⁰, K=16", f, directed(16, 4), x, paths)


def low_rank() -> Case:
    a, b = normal(1024, 1024) / 32, normal(1024, 1024) / 32

    def f(x: Tensor) -> Tensor:
        for _ in range(10):
            x = torch.tanh(b @ torch.tanh(a @ x))
        return x

    paths = ("retain_graph", "batched_vjp", "low_rank_vjp", "auto")
    return Case("y∈R¹⁰²⁴, K=64 of rank 3", f, directed(64, 1024, 3), normal(1024), paths)


def trunk() -> Case:
    """Eight losses of full rank on 10⁶ parameters, as a training step has them: on a graph."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(700, 700), torch.nn.Tanh(), torch.nn.Linear(700, 700), torch.nn.Tanh()
    )
    batch = torch.randn(256, 700)
    heads = [torch.nn.Linear(700, 1) for _ in range(8)]
    parameters = list(net.parameters())

    def graph() -> tuple[Tensor, list[Tensor]]:
        y = net(batch)
        return y, [head(y).square().mean() for head in heads]

    def by(path: str) -> Gradients:
        y, losses = graph()
        return pullback(losses, y, parameters, path=path)

    def loop() -> list[tuple[Tensor, ...]]:
        _, losses = graph()
        return [torch.autograd.grad(z, parameters, retain_graph=True) for z in losses]

    def batched() -> tuple[Tensor, ...]:
        _, losses = graph()
        z = torch.stack(losses)
        return torch.autograd.grad(z, parameters, torch.eye(8), is_grads_batched=True)

    def one() -> tuple[Tensor, ...]:
        return torch.autograd.grad(graph()[1][0], parameters)

    def torchjd(chunk: int | None) -> tuple[Tensor, ...]:
        from torchjd.autojac import jac

        return jac(graph()[1], parameters, parallel_chunk_size=chunk)

    ways: dict[str, Callable[[], Any]] = {ONE: one, "loop": loop, "is_grads_batched": batched}
    ways |= {f"pullback {path}": partial(by, path) for path in ("retain_graph", "auto")}
    if find_spec("torchjd"):
        ways |= {"torchjd, one by one": partial(torchjd, 1), "torchjd": partial(torchjd, None)}
    return Case(
        "10⁶ parameters, K=8 of full rank", net, [], batch, rounds=15, ways=ways
    )  # fmt: skip


def call() -> Iterator[Case]:
    """What the call itself takes, where f takes next to nothing."""
    for outputs in (1, 64):
        x = torch.rand((outputs,) if outputs > 1 else (), dtype=DOUBLE)
        heads: Heads = [lambda y: y.sin().sum(), lambda y: y.cos().sum()]
        name = f"trivial f, m={outputs}, K=2"
        yield Case(name, lambda x: 2 * x, heads, x, ("auto",), peers=False, rounds=200)


def show(case: Case, rounds: int) -> None:
    seconds: dict[str, list[float]] = {way: [] for way in case.ways}
    results = {way: run() for way, run in case.ways.items()}
    for _ in range(case.rounds or rounds):
        for way, run in case.ways.items():
            seconds[way].append(timed(run)[0])
    print(f"\n{case.name}")
    for way, runs in seconds.items():
        one = median(run / ref for run, ref in zip(runs, seconds[ONE], strict=True))
        others = [seconds[other] for other in seconds if other not in (way, ONE)]
        best = min(others, key=median) if others else runs
        against = median(run / ref for run, ref in zip(runs, best, strict=True))
        low, high = quartiles(runs)
        text = f"  {way:22s} {1e3 * median(runs):10.2f} ms  [{1e3 * low:.2f}, {1e3 * high:.2f}]"
        text += f"  {one:7.2f} × one gradient  {against:6.2f} × the best other"
        result = results[way]
        if isinstance(result, Gradients):
            passes = result.passes
            text += f"  forward {passes.forward}, backward {passes.backward}"
            text += f", forward mode {passes.forward_mode}"
            if case.heads:
                text += f", error {case.error(result):.0e}"
            if way.endswith("auto"):
                text += f"  → {result.plan.path}"
        print(text, flush=True)


def quartiles(runs: list[float]) -> tuple[float, float]:
    ordered = sorted(runs)
    return ordered[len(runs) // 4], ordered[-1 - len(runs) // 4]


def show_memory(size: int) -> None:
    """Peak memory of all 128 heads over that of one gradient."""
    case = trace(size, 128, peers=False)
    peaks = {}
    for name in (ONE, "auto"):
        case.ways[name]()
        with memory.peak("cpu") as peak:
            case.ways[name]()
        peaks[name] = peak.size
    one, all_of_them = peaks[ONE], peaks["auto"]
    print(f"\npeak memory, scalar y (n={size}), K=128")
    if one is None or all_of_them is None:
        print("  not measurable here")
        return
    ratio = all_of_them / one
    print(f"  one gradient {one / 1e6:.0f} MB, auto {all_of_them / 1e6:.0f} MB: {ratio:.2f}")


def cases(size: int) -> dict[str, Callable[[], list[Case]]]:
    return {
        "scalar": lambda: [trace(size, count, count <= 16) for count in (2, 16, 128, 1000)],
        "entries": lambda: [entries(size)],
        "simulation": lambda: [simulation()],
        "few": lambda: [few_outputs(size)],
        "rank": lambda: [low_rank()],
        "trunk": lambda: [trunk()],
        "call": lambda: list(call()),
    }


def main() -> None:
    known = cases(0)
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--size", type=int, default=300, help="of the matrix exponentials")
    options.add_argument(
        "--case", nargs="*", choices=[*known, "memory"], default=[*known, "memory"]
    )
    chosen = options.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    for name, build in cases(chosen.size).items():
        if name in chosen.case:
            for case in build():
                show(case, chosen.rounds)
    if "memory" in chosen.case:
        show_memory(800)


if __name__ == "__main__":
    main()
