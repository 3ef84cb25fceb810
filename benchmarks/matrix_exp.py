"""explorer.matrix_exp beside torch.matrix_exp: time, memory and error.

    python benchmarks/matrix_exp.py [--size 400] [--memory-size 1000] [--rounds 7] [--table ...]

All ways of a case are run in turn, in rounds, in one process, after a warm run each. F is one
forward of torch.matrix_exp without a graph. The table has the shortest time of each way over the
shortest of F, and the median of its ratio to F in the same round, which says the same on a quiet
machine. Memory is the peak of one forward and backward, the least of three runs. Errors are the
largest of three seeds, n = 4, against 70 digits. Times are in no test; the numbers of products,
the errors and what is kept are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from explorer import gradients, matrix_exp, memory
from explorer.measure import timed

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.exponentials import FAMILIES, cotangents, exact, member, squarings

Ways = dict[str, Callable[[], Any]]


def normal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def scaled(a: Tensor, norm: float) -> Tensor:
    return a / torch.linalg.matrix_norm(a, 1) * norm


def matrices(n: int) -> dict[str, Tensor]:
    skew = normal(n, n, dtype=torch.complex128)
    wide = normal(n, n)
    return {
        "i𝟙": 1j * torch.ones(n, n, dtype=torch.complex128),
        "random, norm 1": scaled(normal(n, n), 1),
        "random, norm 30": scaled(normal(n, n), 30),
        "skew-Hermitian, norm 30": scaled(skew - skew.mH, 30),
        "negative definite, norm 1000": scaled(-wide @ wide.mT, 1000),
    }


def back(f: Callable[[Tensor], Tensor], a: Tensor, cotangent: Tensor) -> Tensor:
    a = a.detach().requires_grad_()
    (found,) = torch.autograd.grad(f(a), a, cotangent)
    return found


def trace_gradients(f: Callable[[Tensor], Tensor], a: Tensor) -> Any:
    """Of 16 heads on Re tr exp(x·A), at x = 1."""
    x = torch.ones((), dtype=a.dtype.to_real())
    heads = [lambda y, k=k: torch.sin(y / k) for k in range(1, 17)]
    return gradients(lambda x: f(x * a).diagonal().sum().real, heads, x)


def ratios(ways: Ways, rounds: int) -> dict[str, tuple[float, float]]:
    """For each way the ratio of its shortest time to F's, and the median ratio of a round."""
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for run in ways.values():
        run()
    for _ in range(rounds):
        for way, run in ways.items():
            seconds[way].append(timed(run)[0])
    return {
        way: (
            min(runs) / min(seconds["F"]),
            median(run / one for run, one in zip(runs, seconds["F"], strict=True)),
        )
        for way, runs in seconds.items()
    }


def show(row: str, found: float, target: float | None = None, more: str = "") -> None:
    text = f"  {row:36s} {found:8.3g}{more}"
    if target is not None:
        text += f"   to reach {target:.3g}: {'yes' if found <= target else 'NO'}"
    print(text, flush=True)


def show_times(n: int, rounds: int) -> None:
    targets = {
        "own forward": None,
        "Re tr exp, 16 gradients": 1.2,
        "general cotangent, kept": 3.2,
        "general cotangent × 1e8, kept": 3.2,
        "general cotangent, recomputed": 4.3,
        "each further cotangent, kept": 1.9,
        "double backward": None,
    }
    for name, a in matrices(n).items():
        cotangent = normal(n, n, dtype=a.dtype, seed=1)
        all_kept = partial(matrix_exp, save="all")
        leaf = a.clone().requires_grad_()
        y = all_kept(leaf)
        (first,) = torch.autograd.grad(y, leaf, cotangent, create_graph=True)
        further = partial(torch.autograd.grad, retain_graph=True)
        ways: Ways = {
            "F": lambda a=a: torch.matrix_exp(a),
            "own forward": lambda a=a: matrix_exp(a),
            "Re tr exp, 16 gradients": partial(trace_gradients, matrix_exp, a),
            "general cotangent, kept": partial(back, all_kept, a, cotangent),
            "general cotangent × 1e8, kept": partial(back, all_kept, a, 1e8 * cotangent),
            "general cotangent, recomputed": partial(back, matrix_exp, a, cotangent),
            "each further cotangent, kept": partial(further, y, leaf, cotangent),
            "double backward": partial(further, first, leaf, cotangent),
            "torch: 16 gradients": partial(trace_gradients, torch.matrix_exp, a),
            "torch: general cotangent": partial(back, torch.matrix_exp, a, cotangent),
            "torch: general cotangent × 1e8": partial(back, torch.matrix_exp, a, 1e8 * cotangent),
        }
        print(f"\ntime over F, {name} (n={n}, {str(a.dtype).removeprefix('torch.')})")
        for way, (ratio, middle) in ratios(ways, rounds).items():
            show(way, ratio, targets.get(way), f"  [{middle:.3g}]")


def show_memory(n: int) -> None:
    for name, a in matrices(n).items():
        cotangent = normal(n, n, dtype=a.dtype, seed=1)
        ways = (torch.matrix_exp, matrix_exp, partial(matrix_exp, save="all"))
        peaks: list[list[int]] = [[], [], []]
        for _ in range(4):
            for f, sizes in zip(ways, peaks, strict=True):
                with memory.peak("cpu") as peak:
                    back(f, a, cotangent)
                sizes.append(peak.size or 0)
        torchs, result, kept = (min(sizes[1:]) for sizes in peaks)  # the first of each is warm-up
        if not torchs:
            print("  not measurable here")
            return
        s = squarings(a)
        print(f"\npeak memory over torch's, {name} (n={n}), s={s}")
        show("recomputed", result / torchs, 0.25)
        show("kept", kept / torchs, 0.35 + 0.018 * s)
        show("torch, in matrices of n×n", torchs / (a.numel() * a.element_size()))


def show_errors() -> None:
    print("\nlargest error of three seeds, forward and gradient (n=4)")
    for dtype in (torch.float64, torch.complex128):
        for family in FAMILIES:
            for norm in (0.004, 0.05, 1.0, 10.0, 100.0, 1000.0):
                worst = {matrix_exp: [0.0, 0.0], torch.matrix_exp: [0.0, 0.0]}
                for seed in range(3):
                    size = norm / 2 if family in ("random", "Jordan blocks") else norm
                    a = member(family, 4, size, dtype, seed)
                    (cotangent,) = cotangents((4, 4), dtype, 1)
                    result, gradient = exact(a.mH.resolve_conj(), cotangent)
                    for f, errors in worst.items():
                        for k, (found, true) in enumerate(
                            ((f(a), result.mH), (back(f, a, cotangent), gradient))
                        ):
                            error = float((found - true).norm() / true.norm())
                            errors[k] = max(errors[k], error)
                own, other = worst.values()
                small = norm <= 0.05
                met = all(
                    mine <= (1e-15 if small else max(1e-15, 3 * theirs))
                    for mine, theirs in zip(own, other, strict=True)
                )
                name = f"{family}, norm {norm:g}, {str(dtype).removeprefix('torch.')}"
                print(
                    f"  {name:44s} {own[0]:.1e} {own[1]:.1e}  torch {other[0]:.1e} {other[1]:.1e}"
                    f"  {'yes' if met else 'NO'}",
                    flush=True,
                )


def main() -> None:
    tables = ("times", "memory", "errors")
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", type=int, default=400, help="n of the times")
    options.add_argument("--memory-size", type=int, default=1000, help="n of the memory")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--table", nargs="*", choices=tables, default=list(tables))
    chosen = options.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    if "times" in chosen.table:
        show_times(chosen.size, chosen.rounds)
    if "memory" in chosen.table:
        show_memory(chosen.memory_size)
    if "errors" in chosen.table:
        show_errors()


if __name__ == "__main__":
    main()
