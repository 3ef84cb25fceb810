"""Time of every path over the time of ONE gradient, for K heads on one slow scalar function.

    python benchmarks/heads.py [--size 300] [--rounds 5]

f is `matrix_exp_trace` in float64, the heads are sin(y/k), whose cotangents stay below 1 so that
none of them makes torch's backward scale further. ONE gradient is f, one head and one backward.
All are run in turn, in rounds, in one process; a ratio is taken within its round, and the table
shows the median of the rounds with their range.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
from torch import Tensor

from explorer.engine.gradients import gradients
from explorer.engine.plan import PATHS
from explorer.functions import FUNCTIONS
from explorer.functions.description import Setting
from explorer.measure import timed

COUNTS = (2, 4, 16)


def head(k: int) -> Callable[[Tensor], Tensor]:
    return lambda y: torch.sin(y / k)


def one_gradient(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """What a person writes for a single head."""
    x = x.detach().requires_grad_()
    (found,) = torch.autograd.grad(torch.sin(f(x)), x)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", type=int, default=300)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    problem = FUNCTIONS["matrix_exp_trace"].build(Setting(chosen.size, {"x": 1.0}, "float64"))
    f, x = problem.f, problem.x

    runs: dict[tuple[int, str], Callable[[], object]] = {
        (count, path): partial(gradients, f, [head(k) for k in range(1, count + 1)], x, path=path)
        for count in COUNTS
        for path in PATHS
    }
    one_gradient(f, x)  # torch's own start, paid once
    ratios: dict[tuple[int, str], list[float]] = {key: [] for key in runs}
    for _ in range(chosen.rounds):
        for key, run in runs.items():
            one, _ = timed(partial(one_gradient, f, x))
            seconds, _ = timed(run)
            ratios[key].append(seconds / one)

    print(
        f"n = {chosen.size}, float64, torch {torch.__version__}, {torch.get_num_threads()} threads"
    )
    print(f"time / time of ONE gradient: median (range) of {chosen.rounds} rounds")
    print(f"{'K':>3}  " + "".join(f"{path:>24}" for path in PATHS))
    for count in COUNTS:
        cells = (ratios[count, path] for path in PATHS)
        shown = (f"{median(c):.2f} ({min(c):.2f}-{max(c):.2f})" for c in cells)
        print(f"{count:>3}  " + "".join(f"{cell:>24}" for cell in shown))


if __name__ == "__main__":
    main()
