"""FlowExperiment, or a person's own steps → Flow.

The road of one run: the steps forward; one backward pass for each loss; every step's Jacobian once,
its norm, and the products of them; then, of an experiment, the naive way and the reuse of the
Jacobians timed in interleaved rounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from explorer import devices
from explorer.accuracy import relative_difference
from explorer.engine.flow import (
    FORMED,
    TOGETHER,
    Spread,
    Step,
    Walk,
    bound,
    chain,
    fan,
    lengths,
    spectral_norms,
)
from explorer.engine.heads import listed
from explorer.events import Progress
from explorer.execute import PARTIAL_EVERY, environment, gigabytes, require_memory
from explorer.fields import shown
from explorer.flow.experiment import FlowExperiment
from explorer.flow.network import network
from explorer.flow.result import Fan, Flow, Ways
from explorer.functions.description import decomposition_seconds
from explorer.measure import SLOW, statistics, timed
from explorer.recurrence import GATES, parts

_FAN = 40  # intervals between the steps at which the products are decomposed


def gradient_flow(
    modules: Sequence[Step] | torch.nn.Sequential | torch.nn.ModuleList,
    x: Tensor,
    losses: Mapping[str, Step] | Sequence[Step],
    *,
    batch: bool = False,
) -> Flow:
    """How gradients and Jacobians change from step to step of a stack of one's own.

    h_0 = x, h_t = modules[t−1](h_{t−1}), and losses of h_T. Nothing is timed, and no `.grad` is
    touched. A Jacobian of more than 64 MiB is not formed: its norm is then found by products with
    it, for which the step is called again.

    Args:
        modules: the steps, each from one real floating tensor to one, of any shape.
        losses: by name, or a list that gives the names; each takes h_T to one real number.
        batch: whether the first dimension of x, and of every state, is samples. A norm is then
            taken of each sample and the mean over the samples reported; a loss that is itself a
            mean over them has gradients as much smaller. Otherwise x as a whole is one sample.

    Raises:
        TypeError, ValueError: an argument is not as above, a step cuts the graph off, or, with
            `batch`, mixes the samples, as batch norm in training mode does.
    """
    steps, names = _steps(modules)
    _require_state(x, batch)
    labels = [f"step {t} ({name})" for t, name in enumerate(names, 1)]
    with torch.inference_mode(False):
        walk = Walk(steps, labels, x, batch)
        run = _Run(walk, names, labels, _losses(losses), str(x.device), _dtype(x))
        for _ in run.look():
            pass
        return run.flow("done")


def execute_flow(
    experiment: FlowExperiment, *, memory_limit: int | None = None
) -> Iterator[Progress | Flow]:
    """Runs an experiment in this process; the last thing it yields is the finished Flow.

    Args:
        memory_limit: bytes that the run may take, by default what the device has free.

    Raises:
        InvalidExperiment: the device is not there.
        DoesNotFit: the estimate of the memory it needs is above the limit.
    """
    devices.require(experiment.device)
    what = f"{experiment.cell} of hidden size {experiment.size} over {experiment.steps} steps"
    need = memory_bytes(experiment)
    require_memory(what, need, experiment.device, experiment.dtype, memory_limit)
    yield Progress("running the steps", None)
    built = network(experiment)
    names = [experiment.cell] * experiment.steps
    labels = [f"step {t} ({name})" for t, name in enumerate(names, 1)]
    walk = Walk(built.steps, labels, built.x, batch=False)
    run = _Run(
        walk, names, labels, built.losses, experiment.device, experiment.dtype, experiment
    )
    yield from run.look()
    yield from run.rounds(experiment.repeats)
    yield run.flow("done")


def memory_bytes(experiment: FlowExperiment) -> float:
    """The peak of a run: all step Jacobians, half as much again in the holes that its temporaries
    leave, what autograd keeps, and what goes on beside."""
    item = 8 if experiment.dtype == "float64" else 4
    width = parts(experiment.cell) * experiment.size
    gates = GATES[experiment.cell] * experiment.size
    kept = experiment.steps * (1.5 * width**2 + 8 * gates + 2 * len(experiment.losses) * width)
    return item * kept + _BESIDE


_BESIDE = 100e6  # bytes of the cotangents and matrices that go together, and of the decompositions


class _Run:
    """What is known so far of the steps, and what is left to do."""

    def __init__(
        self,
        walk: Walk,
        names: Sequence[str],
        labels: Sequence[str],
        losses: Mapping[str, Step],
        device: str,
        dtype: str,
        experiment: FlowExperiment | None = None,
    ) -> None:
        self._walk = walk
        self._names = tuple(names)
        self._labels = labels
        self._experiment = experiment
        self._environment = environment(device)
        self._dtype = dtype
        self._cotangents = {
            name: walk.cotangent(loss, f"loss {name}") for name, loss in losses.items()
        }
        self._jacobians: list[Tensor] | None = None  # where all may be kept
        self._notes: list[str] = []
        self._gradients: dict[str, tuple[float, ...]] = {}
        self._norms: list[Tensor] = []
        self._spreads: list[Spread] = []
        self._without_fan = self._too_large()
        self._seconds = dict.fromkeys(("naive", "jacobians", "chain"), math.nan)  # of the last run
        self._runs: dict[str, list[float]] = {name: [] for name in self._seconds}
        self._difference = math.nan
        self._told = -math.inf

    def _too_large(self) -> str:
        """Why not all Jacobians, or their products, can be kept; empty where they can."""
        sizes = [self._walk.jacobian_bytes(t) for t in range(1, len(self._walk) + 1)]
        largest = max(sizes)
        if largest > FORMED:
            label = self._labels[sizes.index(largest)]
            return (
                f"The Jacobian of {label} takes {gigabytes(largest)}, more than the "
                f"{gigabytes(FORMED)} up to which one is formed."
            )
        if sum(sizes) > TOGETHER:
            return (
                f"The Jacobians of all steps take {gigabytes(sum(sizes))} together, more than the "
                f"{gigabytes(TOGETHER)} up to which they are kept."
            )
        widest = self._walk.product_bytes
        if widest > FORMED:
            return (
                f"The products of the Jacobians take up to {gigabytes(widest)}, more than the "
                f"{gigabytes(FORMED)} up to which one is formed."
            )
        return ""

    # Looking, once.

    def look(self) -> Iterator[Progress | Flow]:
        """Gradients, step norms, and the fan; the time of the first runs."""
        yield Progress("one backward pass for each loss", None)
        self._seconds["naive"], found = timed(self._naive)
        self._gradients = {
            name: tuple(_mean(lengths(each)) for each in rows)
            for name, rows in zip(self._cotangents, found, strict=True)
        }
        del found
        yield from self._take_norms()
        yield self.flow("running")
        if self._jacobians is None:
            return
        last = len(self._walk)
        times = {round(last * number / _FAN) for number in range(_FAN + 1)}
        for spread in fan(self._jacobians, times, self._walk.epsilon):
            self._spreads.append(spread)
            if self._due():
                left = len(times) - len(self._spreads)
                yield Progress("products of the Jacobians", self._remaining(0, left))
        yield self.flow("running")  # or a run cancelled while it is timed would lose them

    def _take_norms(self) -> Iterator[Progress]:
        """The norm of every step, from its Jacobian where that may be formed."""
        keep, steps = not self._without_fan, len(self._walk)
        spent: list[float] = []
        kept: list[Tensor] = []
        for t in range(1, steps + 1):
            if self._due():
                left = None
                if keep and spent:  # the first one also pays for torch's own start
                    self._seconds["jacobians"] = steps * min(spent)
                    left = self._remaining(steps, _FAN) + (steps - t + 1) * min(spent)
                yield Progress("Jacobians of the steps", left)
            if self._walk.jacobian_bytes(t) > FORMED:
                norm, notes = self._walk.norms_without(t)
                self._norms.append(norm)
                self._notes += [f"{self._labels[t - 1]}: {note}" for note in notes]
                continue
            seconds, jacobian = timed(partial(self._walk.jacobian, t))
            spent.append(seconds)
            if keep:
                kept.append(jacobian)
            else:
                self._norms += spectral_norms([jacobian])
        if keep:
            self._jacobians = kept
            self._seconds["jacobians"] = sum(spent)
            for norm in spectral_norms(kept):
                self._norms.append(norm)
                if self._due():
                    left = len(kept) - len(self._norms)
                    yield Progress("norms of the Jacobians", self._remaining(left, _FAN))

    # The two ways, timed.

    def _naive(self) -> list[list[Tensor]]:
        return [self._walk.naive(cotangent) for cotangent in self._cotangents.values()]

    def _form(self) -> list[Tensor]:
        return [self._walk.jacobian(t) for t in range(1, len(self._walk) + 1)]

    def _chain(self) -> list[Tensor]:
        assert self._jacobians is not None
        samples = self._walk.samples
        rows = [each.reshape(samples, -1) for each in self._cotangents.values()]
        return chain(self._jacobians, torch.stack(rows))

    def rounds(self, repeats: int) -> Iterator[Progress | Flow]:
        """Naive and reuse, once a round each; all Jacobians have been formed before."""
        yield Progress("warming up the chain", self._remaining(0, 0, repeats))
        self._seconds["naive"], naive = timed(self._naive)
        self._seconds["chain"], rows = timed(self._chain)
        self._difference = _difference(naive, rows)
        del naive, rows
        ways: dict[str, Callable[[], Any]] = {
            "naive": self._naive,
            "jacobians": self._form,
            "chain": self._chain,
        }
        for name, seconds in self._seconds.items():
            if seconds > SLOW:
                self._runs[name].append(seconds)
        shown = time.monotonic()
        for number in range(1, repeats + 1):
            for name, way in ways.items():
                if len(self._runs[name]) >= number:
                    continue
                left = self._remaining(0, 0, repeats - number + 1)
                yield Progress(f"round {number} of {repeats}: {name}", left)
                if name == "jacobians":  # or they would be held twice
                    self._jacobians = None
                seconds, found = timed(way)
                if name == "jacobians":
                    self._jacobians = found
                del found
                self._seconds[name] = seconds
                self._runs[name].append(seconds)
            if time.monotonic() - shown > PARTIAL_EVERY:
                yield self.flow("running")
                shown = time.monotonic()

    # Time: when to tell, and what to expect.

    def _due(self) -> bool:
        """Whether to report again: not oftener than it can be seen."""
        now = time.monotonic()
        if now - self._told < 0.1:
            return False
        self._told = now
        return True

    def _remaining(self, norms: int, products: int, repeats: int | None = None) -> float:
        """Seconds of so many norms, singular values of products, and rounds to come."""
        if repeats is None:
            repeats = self._experiment.repeats if self._experiment else 0
        widths = [self._walk.width(t) for t in range(len(self._walk) + 1)]
        once = self._walk.samples * decomposition_seconds(max(widths), max(widths))
        rounds = sum(seconds for seconds in self._seconds.values() if not math.isnan(seconds))
        return once * (norms + products) + rounds * repeats

    # What is known, as a Flow.

    def flow(self, status: Literal["running", "done"]) -> Flow:
        without = self._without_fan or ("" if self._spreads else "They are not yet computed.")
        return Flow(
            status=status,
            experiment=self._experiment,
            environment=self._environment,
            dtype=self._dtype,
            samples=self._walk.samples,
            gradients=self._gradients,
            steps=tuple(map(_mean, self._norms)),
            bound=tuple(map(_mean, bound(self._norms))),
            names=self._names,
            fan=_fan(self._spreads) if self._spreads else None,
            without_fan=without,
            ways=self._ways(),
            notes=(*self._walk.notes, *self._notes),
        )

    def _ways(self) -> Ways | None:
        if not all(self._runs.values()):
            return None
        seconds = {name: statistics(runs)[0] for name, runs in self._runs.items()}
        return Ways(**seconds, difference=self._difference)


def _fan(spreads: Sequence[Spread]) -> Fan:
    ordered = sorted(spreads, key=lambda each: each.time)
    return Fan(
        times=tuple(each.time for each in ordered),
        largest=tuple(each.largest for each in ordered),
        upper=tuple(each.upper for each in ordered),
        median=tuple(each.median for each in ordered),
        lower=tuple(each.lower for each in ordered),
        smallest=tuple(each.smallest for each in ordered),
    )


def _mean(values: Tensor) -> float:
    return float(values.mean())


def _difference(naive: Sequence[Sequence[Tensor]], reuse: Sequence[Tensor]) -> float:
    """The largest relative difference over the losses and t, but for what the dtype does not hold
    with all of its digits."""
    worst = 0.0
    for number, rows in enumerate(naive):
        for one, together in zip(rows, reuse, strict=True):
            info = torch.finfo(one.dtype)
            other = together[number]
            if max(float(lengths(one).max()), float(lengths(other).max())) < info.tiny / info.eps:
                continue
            worst = max(worst, relative_difference(other, one), key=_nan_last)
    return worst


def _nan_last(value: float) -> tuple[bool, float]:
    return math.isnan(value), value


def _dtype(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


# What a person gives.


def _steps(modules: object) -> tuple[list[Step], list[str]]:
    """(the steps, a name for each)."""
    example = "torch.nn.Linear(8, 8)"
    if isinstance(modules, torch.nn.Sequential):
        if not len(modules):
            raise ValueError(f"`modules` is empty. Give at least one step, such as {example}.")
        named = list(modules._modules.items())  # named_children() leaves out one used again
        return [each for _, each in named], [
            _name(each) if name.isdigit() else name for name, each in named
        ]
    steps = listed(modules, "modules", example)
    for number, step in enumerate(steps):
        if not callable(step):
            raise TypeError(
                f"`modules[{number}]` is {shown(step)}, which cannot be called. Give steps that "
                "take one torch.Tensor to one."
            )
    return steps, [_name(step) for step in steps]


def _require_state(x: object, batch: bool) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"`x` is a {type(x).__name__}. Give one torch.Tensor.")
    if not x.is_floating_point():
        raise TypeError(
            f"`x` has dtype {x.dtype}. Give a real floating tensor, for example "
            "x.to(torch.float64)."
        )
    if not x.numel():
        raise ValueError(f"`x` has shape {tuple(x.shape)}, which has no entries.")
    if batch and not x.ndim:
        raise ValueError(
            "`x` is a single number, which has no samples. Give shape (samples, ...), or "
            "batch=False."
        )


def _losses(losses: object) -> dict[str, Step]:
    if isinstance(losses, Mapping):
        if not losses:
            raise ValueError("`losses` is empty. Give at least one, a function of the last state.")
        found = {str(name): loss for name, loss in losses.items()}
    else:
        given = listed(losses, "losses", "torch.sum")
        found = {}
        for number, loss in enumerate(given, 1):
            name = _name(loss)
            if name == "<lambda>" or not name:
                name = f"loss {number}"
            found[name if name not in found else f"{name} {number}"] = loss
    for name, loss in found.items():
        if not callable(loss):
            raise TypeError(
                f"The loss {shown(name)} is {shown(loss)}, which cannot be called. Give a "
                "function that takes the last state to one real number."
            )
    return found


def _name(step: object) -> str:
    return getattr(step, "__name__", type(step).__name__)
