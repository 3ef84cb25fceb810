"""Jacobians and gradient flow beside what else there is: one line for each way of a case.

    python benchmarks/jacobian.py [--rounds 5] [--case NAME ...]

All ways of a case are run in turn, in rounds, in one process, after a warm run each. Each line has
the median of a way's time, the middle half, and the median of its ratio to the first way of the
same round. Times are in no test.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor

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


CASES: dict[str, Callable[[], tuple[str, Ways]]] = {"steps": step_jacobians}


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
    options.add_argument("--case", nargs="*", choices=list(CASES), default=list(CASES))
    chosen = options.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    for name in chosen.case:
        show(*CASES[name](), chosen.rounds)


if __name__ == "__main__":
    main()
