"""The functions' estimates beside what they take: a table of settings.

    python benchmarks/functions.py [--function NAME ...] [--dtype NAME ...] [--seconds 60]

Of each function: the default size, the largest that is estimated at no more than so many seconds
and fits the memory, and one between; each with the default parameters and with every other value
of every choice; and the largest size with every whole number at its largest too. The largest are
halved until they fit. Time is one forward and one backward of Σ sin y, the least of several runs;
memory is the peak of the first of them and of what builds f. Each setting is measured in a process
of its own, as an experiment is, so that what another one left of its memory is in no one's way.

A ratio is the estimate over what was measured. A time is marked where it is off by more than a
factor of 3, a memory by more than 1.5 where either is above 500 MB: below that it is not counted.
Both cores must be free: two threads that wait for a third take a hundred times as long.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import torch

from explorer import memory
from explorer.experiment import DTYPES, Experiment
from explorer.fields import Field
from explorer.functions import FUNCTIONS
from explorer.functions.description import Cost, Function, Problem, Setting
from explorer.measure import timed

TIME, MEMORY = 3.0, 1.5  # factors within which an estimate is right
COUNTED = 500e6  # bytes from which an estimate of memory is held against the peak
ROUNDS, LONG = 20, 2.0  # timed runs, as many as there are in so many seconds


@dataclass(frozen=True)
class Row:
    """What a setting was estimated to take, and took: seconds, and bytes where they can be had."""

    estimated: float
    seconds: float
    estimated_bytes: float
    bytes: int | None

    @property
    def time(self) -> float:
        return self.estimated / self.seconds

    @property
    def memory(self) -> float | None:
        """The ratio of the memories; None where they are not counted."""
        if not self.bytes or max(self.estimated_bytes, self.bytes) < COUNTED:
            return None
        return self.estimated_bytes / self.bytes


def cost(setting: Setting, described: Function) -> tuple[float, Cost]:
    found = described.cost(setting)
    return found.forward.seconds + found.backward.seconds, found


def cases(described: Function, dtype: str, seconds: float) -> Iterator[dict[str, Any]]:
    """The values of the fields that each setting to measure has, defaults left out."""
    size = described.size
    chosen: list[dict[str, Any]] = [{}]
    for field in described.parameters:
        others = [value for value in field.choices if value != field.default]
        chosen += [{field.name: value} for value in others]
    # An optional number that is left empty follows from others.
    whole = [each for each in described.parameters if each.kind == "integer" and not each.optional]
    seen = []
    for given in chosen:
        largest = fitting(described, [size], given, dtype, seconds)
        middle = {size.name: round(math.sqrt(size.default * largest[size.name]))}
        corner = fitting(described, [size, *whole], given, dtype, seconds)
        for values in ({size.name: size.default}, middle, largest, corner):
            if values | given not in seen:
                seen.append(values | given)
                yield values | given


def fitting(
    described: Function, fields: list[Field], given: dict[str, Any], dtype: str, seconds: float
) -> dict[str, int]:
    """The largest values of these fields, all halved until time and memory are enough."""
    values = {each.name: int(each.maximum) for each in fields}
    defaults = {each.name: each.default for each in fields}
    while values != defaults:
        estimated, found = cost(of(described, {**given, **values}, dtype), described)
        if estimated <= seconds and found.memory_bytes <= 0.7 * memory.available():
            break
        values = {name: max(defaults[name], value // 2) for name, value in values.items()}
    return values


def of(described: Function, values: dict[str, Any], dtype: str) -> Setting:
    return Experiment.from_values({"function": described.name, "dtype": dtype, **values}).setting


def forward_and_backward(problem: Problem) -> None:
    x = problem.x.detach().requires_grad_()
    torch.autograd.grad(problem.f(x).sin().sum(), x)


def measured(name: str, values: dict[str, Any], dtype: str) -> Row:
    """One setting, in a process that has run nothing else yet."""
    described = FUNCTIONS[name]
    smallest = {described.size.name: described.size.minimum}
    forward_and_backward(described.build(of(described, smallest, dtype)))  # for what it imports
    setting = of(described, values, dtype)
    estimated, found = cost(setting, described)
    with memory.peak(setting.device) as peak:
        problem = described.build(setting)
        first, _ = timed(lambda: forward_and_backward(problem))
    runs = [first]
    while len(runs) < ROUNDS and sum(runs) < LONG:
        runs.append(timed(lambda: forward_and_backward(problem))[0])
    return Row(estimated, min(runs), found.memory_bytes, peak.size)


def shown(words: str, row: Row) -> str:
    text = f"  {words:44s} {1e3 * row.estimated:10.2f} {1e3 * row.seconds:10.2f} ms"
    text += f" {row.time:6.2f} {mark(row.time, TIME)}"
    text += f" {row.estimated_bytes / 1e6:9.0f} "
    text += f"{row.bytes / 1e6:9.0f} MB" if row.bytes is not None else "        ? MB"
    if row.memory is not None:
        text += f" {row.memory:6.2f} {mark(row.memory, MEMORY)}"
    return text


def mark(ratio: float, factor: float) -> str:
    return " " if 1 / factor <= ratio <= factor else "!"


def summary(rows: list[Row]) -> str:
    parts = []
    counted = [row.memory for row in rows if row.memory is not None]
    for name, ratios, factor in (
        ("times", [row.time for row in rows], TIME),
        ("memories", counted, MEMORY),
    ):
        if ratios:
            right = sum(mark(ratio, factor) == " " for ratio in ratios)
            low, high = min(ratios), max(ratios)
            parts.append(
                f"{right} of {len(ratios)} {name} within a factor of {factor:g} "
                f"(ratios {low:.2f} to {high:.2f})"
            )
    return "; ".join(parts) + "."


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--function", nargs="*", choices=[*FUNCTIONS], default=[*FUNCTIONS])
    options.add_argument("--dtype", nargs="*", choices=DTYPES, default=DTYPES)
    options.add_argument("--seconds", type=float, default=60.0, help="of one estimate at most")
    chosen = options.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    context = get_context("forkserver")
    context.set_forkserver_preload(["torch", "explorer.functions"])
    rows = []
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as alone:
        for name in chosen.function:
            for dtype in chosen.dtype:
                print(f"\n{name}, {dtype}: estimated, measured, ratio of time and memory")
                for values in cases(FUNCTIONS[name], dtype, chosen.seconds):
                    row = alone.submit(measured, name, values, dtype).result()
                    rows.append(row)
                    words = ", ".join(f"{field}={value}" for field, value in values.items())
                    print(shown(words, row), flush=True)
    print(f"\n{summary(rows)}")


if __name__ == "__main__":
    main()
