"""Experiment → Result: builds f, runs the paths, and holds what they give against the truth.

The road of one run: build f and time one forward; warm every path up, cheapest first, which
gives its gradients, its passes and its memory; take the exact gradients and the spectral norms;
then time the paths in interleaved rounds, so that a drift of the machine hits all alike; last,
what the experiment asks for of the Scaling view.
"""

from __future__ import annotations

import math
import platform
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Literal

import torch
from torch import Tensor

from explorer import devices, heads, memory, scan, units
from explorer.accuracy import exact_gradient, relative_difference, wide
from explorer.compilation import compiled
from explorer.engine.gradients import gradients
from explorer.engine.heads import takes_x
from explorer.engine.plan import (
    NAIVE,
    PEER,
    Costs,
    Passes,
    Plan,
    Sizes,
    expected_passes,
    predicted_seconds,
)
from explorer.engine.saved import saved_bytes
from explorer.events import Linearized, Progress
from explorer.experiment import Along, Experiment, InvalidExperiment, uninstalled
from explorer.expression import ExpressionError
from explorer.functions.description import Problem
from explorer.heads import EVERYWHERE, FINITE, Head
from explorer.inspection import Inspection, over_budget
from explorer.jacobian import spectral_norm
from explorer.linearization import linearized
from explorer.measure import SLOW, statistics, timed
from explorer.result import (
    Array,
    Environment,
    FunctionResult,
    HeadResult,
    Numbers,
    PathResult,
    Result,
    Scaling,
)
from explorer.scaling import Scan

LISTED = 16  # entries up to which a gradient is listed in full
PARTIAL_EVERY = 2.0  # seconds between partial Results while it is timed: drawing disturbs that


class DoesNotFit(RuntimeError):
    """The experiment needs more memory than there is; nothing of it was run."""


def execute(
    experiment: Experiment,
    *,
    full: bool = False,
    keep: bool = False,
    memory_limit: int | None = None,
) -> Iterator[Progress | Linearized | Result]:
    """Runs an experiment in this process; the last thing it yields is the finished Result.

    Args:
        full: list gradients of any size entry by entry.
        keep: yield a Linearized too, for further heads to be tried on, where dy/dx is known.
        memory_limit: bytes that the run may take, by default what the device has free. A reference
            in float64 that does not fit beside the rest is left out with a word.

    Raises:
        InvalidExperiment: the device is not there, or the package of a path.
        DoesNotFit: the estimate of the memory it needs is above the limit.
        Exception: whatever f or a head raises.
    """
    devices.require(experiment.device)
    problem = uninstalled(experiment.paths)
    if problem:
        raise InvalidExperiment({"paths": problem})
    spare, room = require_memory(
        f"{experiment.function} of size {experiment.size}",
        experiment.described.cost(experiment.setting).memory_bytes,
        experiment.device,
        experiment.dtype,
        memory_limit,
    )
    yield from _Run(experiment, full, keep, spare, room).events()


def require_memory(
    what: str, need: float, device: str, dtype: str, limit: int | None
) -> tuple[float, float]:
    """The bytes that are left beside what needs so many: on the CPU, and on the device.

    Args:
        limit: bytes that may be taken, by default what is free.

    Raises:
        DoesNotFit: there are not as many.
    """
    apart = device.startswith("cuda")  # a device with memory of its own
    here = memory.available() if limit is None else limit
    free = int(torch.cuda.mem_get_info(device)[0]) if apart and limit is None else here
    if need > free:
        raise DoesNotFit(
            f"{what} in {dtype} needs about {gigabytes(need)}, and {gigabytes(free)} are free on "
            f"{device}. Choose a smaller size" + (", or float32." if dtype == "float64" else ".")
        )
    return (here if apart else here - need), free - need


@dataclass(frozen=True)
class _Found:
    """What is kept of the engine's result, which itself holds f's graph while it lives."""

    gradients: tuple[Tensor, ...]
    passes: Passes
    plan: Plan
    jacobian: Tensor | None


class _Path:
    """What is known of one path so far."""

    def __init__(self) -> None:
        self.found: _Found | None = None
        self.runs: list[float] = []
        self.first = math.nan  # seconds of the warm-up
        self.saved: int | None = None
        self.peak: int | None = None
        self.left_out = ""  # why it is not run
        self.predicted = math.nan

    @property
    def typical(self) -> float:
        """Seconds to expect of the next run."""
        return min(self.runs) if self.runs else self.first


class _Run:
    """One experiment under way."""

    def __init__(
        self, experiment: Experiment, full: bool, keep: bool, spare: float, room: float
    ) -> None:
        self.experiment = experiment
        self._full = full
        self._keep = keep
        self._spare = spare  # bytes left on the CPU for the reference
        self._room = room  # bytes left on the device for dy/dx
        self._start = time.monotonic()
        self._heads: dict[str, Head] = {}
        self._paths = {name: _Path() for name in experiment.paths}
        self._environment = environment(experiment.device)
        self._exact: dict[str, Tensor] = {}
        self._reference = "none yet"
        self._notes: list[str] = []
        self._learnt: dict[str, float] = {}  # seconds of one pass, by its name in Costs
        self._scaling: dict[Along, Scaling] = {}
        self._scan: Scan | None = None  # the one under way
        self._compile_seconds: float | None = None

    def events(self) -> Iterator[Progress | Linearized | Result]:
        yield Progress("building f", None)
        self._problem = self.experiment.described.build(self.experiment.setting)
        self._plain = self._problem.f
        if self.experiment.compile:
            yield Progress("compiling f", None)
            f, self._compile_seconds, warned = compiled(self._problem.f, self._problem.x)
            self._problem = replace(self._problem, f=f)
            self._notes += warned
        yield Progress("one forward pass", None)
        self._first_forward()
        yield from self._warm_up()
        yield from self._look()
        yield from self._rounds()
        yield from self._further()
        yield from self._scans()
        yield self._result("done")

    # The steps, in their order.

    def _first_forward(self) -> None:
        """y, and the seconds of one forward and, as far as its cost tells, one backward."""

        def forward() -> Tensor:
            with torch.no_grad():
                return self._problem.f(self._problem.x)

        self._draw_anew()
        seconds, self._y = timed(forward)
        if seconds <= SLOW:  # the first one also paid for torch's own start
            self._draw_anew()
            again, self._y = timed(forward)
            seconds = min(seconds, again)
        self._heads = self._built_heads()
        self._inspection = Inspection(
            experiment=self.experiment,
            problem=self._problem,
            plain=self._plain,
            y=self._y,
            heads=self._heads,
            heads_of=self._heads_of,
            costs=lambda: self._costs,
            left=self._left,
            note=self._note,
            numbers=self._numbers,
            spare=self._spare,
            room=self._room,
        )
        cost = self.experiment.described.cost(self.experiment.setting)
        self._sizes = Sizes(len(self._heads), self._y.numel(), self._problem.x.numel())
        self._costs = Costs.of(seconds, seconds * cost.ratio)
        if self._problem.exact is not None:
            exact = self._problem.exact
            self._reference = exact.source
            x = wide(self._problem.x)
            self._exact = {
                name: exact_gradient(head, exact, x) for name, head in self._heads.items()
            }

    def _draw_anew(self) -> None:
        """The same random numbers for whatever is run next: an f that draws some is one f then."""
        torch.manual_seed(self.experiment.seed)

    def _built_heads(self) -> dict[str, Head]:
        """The heads by name; the weights of their sets have the shape of y."""
        try:
            return self._heads_of(self.experiment.heads, self._problem, self._y)
        except ExpressionError as error:
            raise InvalidExperiment({"heads": str(error)}) from error

    def _heads_of(self, entries: Sequence[str], problem: Problem, y: Tensor) -> dict[str, Head]:
        formulas = {each.name: each.formula for each in self.experiment.described.heads}
        own = {
            name: Head(name, formulas.get(name, name), g, FINITE, takes_x=any(takes_x(g)))
            for name, g in problem.heads.items()
        }
        return heads.build(entries, own, y, problem.x, self.experiment.seed)

    def _warm_up(self) -> Iterator[Progress | Result]:
        """The first run of every path, cheapest first, those that do not fit left out."""
        for name in sorted(self._paths, key=self._predicted):
            path = self._paths[name]
            path.predicted = self._predicted(name)
            if name == "jvp" and self.experiment.compile:
                path.left_out = "not run: forward mode does not go through a compiled f"
                continue
            if name in ("reuse", "jvp") and not self._inspection.fits:
                path.left_out = f"not run: {self._too_large}"
                continue
            if path.predicted > self._left():
                path.left_out = (
                    f"not run: it would take about {units.roughly(path.predicted)}, more than is "
                    f"left of the budget of {units.roughly(self.experiment.budget or 0)}"
                )
                continue
            yield Progress(f"warming up {name}", self._remaining())
            if name == PEER:
                import_module("torchjd.autojac")  # for seconds, which are no run's
            with memory.peak(self.experiment.device) as peak, saved_bytes() as saved:
                path.first, path.found = timed(self._execution(name))
            path.saved = saved.size
            if path.first > SLOW:
                path.runs.append(path.first)
            else:  # the first run of all also allocates what torch keeps for later ones
                path.found = None
                with memory.peak(self.experiment.device) as peak:
                    path.first, path.found = timed(self._execution(name))
            path.peak = peak.size
            self._learn(path)
            yield self._result("running")

    def _look(self) -> Iterator[Progress | Linearized | Result]:
        """The exact gradients, where no closed form gave them, and the spectral norms."""
        yield Progress("exact gradients", self._remaining())
        if self._problem.exact is None:
            self._take_reference()
        yield Progress("spectral norms", self._remaining())
        found = {name: path.found for name, path in self._paths.items() if path.found is not None}
        matrix = self._inspection.take(
            {name: each.gradients for name, each in found.items()},
            {n: each.jacobian for n, each in found.items() if each.jacobian is not None},
            self._head_results(),
        )
        if self._keep and matrix is not None:
            kept = linearized(self._y, self._problem.x, matrix)
            if kept is not None:
                yield kept
        yield self._result("running")

    def _rounds(self) -> Iterator[Progress | Result]:
        """The timed runs, every path once a round."""
        ran = {name: path for name, path in self._paths.items() if path.found is not None}
        shown = time.monotonic()
        for number in range(1, self.experiment.repeats + 1):
            for name, path in ran.items():
                if len(path.runs) >= number:
                    continue
                if path.typical > self._left():
                    self._note(
                        f"The budget of {units.roughly(self.experiment.budget or 0)} ended the "
                        f"repeats in round {number} of {self.experiment.repeats}."
                    )
                    self._count_warm_ups(ran)
                    return
                yield Progress(
                    f"round {number} of {self.experiment.repeats}: {name}", self._remaining()
                )
                seconds, _ = timed(self._execution(name))
                path.runs.append(seconds)
                if time.monotonic() - shown > PARTIAL_EVERY:
                    yield self._result("running")
                    shown = time.monotonic()

    def _further(self) -> Iterator[Progress | Result]:
        """The curvature and the norms against size, if they are asked for."""
        shown, news = time.monotonic(), True  # the last of the rounds may not have been shown
        for told in self._inspection.further(self._head_results()):
            news = news or not told
            # Before what takes long too: a run cancelled in it keeps what had finished.
            wait = max(time.monotonic() - shown, self._remaining() if told else 0.0)
            if news and wait > PARTIAL_EVERY:
                yield self._result("running")
                shown, news = time.monotonic(), False
            if told:
                yield Progress(told, self._remaining())

    def _scans(self) -> Iterator[Progress | Result]:
        """Time and passes along the number of heads, or of entries of y."""
        shown = -math.inf  # the predictions, which come first, are shown at once
        for along in self.experiment.scaling:
            if along == "outputs" and self.experiment.compile:
                self._note(
                    "No scaling along outputs: f would be compiled anew for each number of them."
                )
                continue
            if not scan.counts(self.experiment, along):
                self._note(
                    f"No scaling along {along}: {self.experiment.function} has no parameter for "
                    "the number of them."
                )
                continue
            self._scan = Scan(
                self.experiment,
                along,
                self._problem,
                self._y.numel(),
                self._costs,
                self._left,
                self._spare,
            )
            for told in self._scan.run():
                if isinstance(told, str):
                    yield Progress(told, self._remaining())
                else:
                    self._scaling[along] = told
                    if time.monotonic() - shown > PARTIAL_EVERY:
                        yield self._result("running")
                        shown = time.monotonic()
            self._scaling[along] = self._scan.result
            self._scan = None

    @staticmethod
    def _count_warm_ups(ran: dict[str, _Path]) -> None:
        """A path that the budget left without a timed run has its warm-up for one."""
        for path in ran.values():
            if not path.runs:
                path.runs.append(path.first)

    # Time: what is left, and what to expect.

    def _left(self) -> float:
        budget = self.experiment.budget
        return math.inf if budget is None else budget - (time.monotonic() - self._start)

    def _predicted(self, name: str) -> float:
        return predicted_seconds(name, self._sizes, self._costs)

    def _learn(self, path: _Path) -> None:
        """One pass that is not forward, from what a path took beyond its forwards; the rank."""
        assert path.found is not None
        passes, plan = path.found.passes, path.found.plan
        self._sizes = replace(self._sizes, rank=self._sizes.rank or plan.sizes.rank)
        for note in plan.notes:
            self._note(note)
        kind, count = {
            "batched_vjp": ("batched", passes.backward),
            "jvp": ("forward_mode", passes.forward_mode),
        }.get(plan.path, ("backward", passes.backward))
        if count:
            rest = path.first - passes.forward * self._costs.forward
            self._learnt[kind] = max(0.0, rest) / count
            backward = self._learnt.get("backward", self._costs.backward)
            self._costs = replace(Costs.of(self._costs.forward, backward), **self._learnt)

    def _note(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)

    def _remaining(self) -> float:
        """Seconds until the end, as the passes and the runs so far tell; within the budget."""
        repeats = self.experiment.repeats
        seconds = 0.0
        for name, path in self._paths.items():
            if path.left_out:
                continue
            if path.found is None:
                once = self._predicted(name)
                seconds += once * (repeats if once > SLOW else repeats + 2)
            else:
                seconds += path.typical * (repeats - len(path.runs))
        seconds += self._inspection.remaining
        for along in self.experiment.scaling:
            if along not in self._scaling and self._scan is None:
                seconds += scan.seconds(self.experiment, along, lambda count: self._costs)
        if self._scan is not None:
            seconds += self._scan.remaining
        return min(seconds, max(0.0, self._left()))

    # Memory: whether dy/dx can be held.

    @property
    def _too_large(self) -> str:
        return (
            f"dy/dx has {self._sizes.outputs} × {self._sizes.inputs} entries, and forming it "
            f"takes about {gigabytes(self._inspection.matrix_bytes)}, more than is free"
        )

    @property
    def _applied(self) -> list[Callable[..., Tensor]]:
        """The heads as the engine takes them, each g(y) or g(y, x)."""
        return [head.apply for head in self._heads.values()]

    def _execution(self, name: str) -> Callable[[], _Found]:
        every, problem = self._applied, self._problem

        def execution() -> _Found:
            self._draw_anew()
            found = gradients(problem.f, every, problem.x, path=name)
            return _Found(found.gradients, found.passes, found.plan, found.jacobian)

        return execution

    # What the gradients are held against.

    def _take_reference(self) -> None:
        """The gradients in float64 on the CPU, unless the memory or the budget forbids it."""
        described, setting = self.experiment.described, self.experiment.setting
        widest = replace(setting, dtype="float64", device="cpu")
        same = widest == setting
        path = min(
            ("retain_graph", "reuse"), key=lambda p: expected_passes(p, self._sizes).backward
        )
        need = 0.0 if same else described.cost(widest).memory_bytes  # beside what this run holds
        if need > self._spare:
            self._reference = (
                f"none: the reference in float64 on the CPU needs about {gigabytes(need)}, "
                "more than is left of the memory"
            )
            return
        if not same and any(note.startswith("`f` is random") for note in self._notes):
            self._reference = "none: f is random, and draws other numbers in float64"
            return
        problem = self._problem
        predicted = self._predicted(path)
        if not same and predicted <= self._left():  # in float64 it takes no less
            problem = described.build(widest)
            try:
                predicted = self._reference_seconds(problem, path)
            except Exception as error:
                if not described.own:
                    raise
                self._reference = (
                    "none: in float64 on the CPU f raises "
                    f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
                )
                return
        if predicted > self._left():
            self._reference = (
                f"none: {over_budget('the reference in float64 on the CPU', predicted)}"
            )
            return
        self._draw_anew()
        found = gradients(problem.f, self._applied, problem.x, path=path)
        self._exact = dict(zip(self._heads, found.gradients, strict=True))
        self._reference = "the same experiment in float64 on the CPU"
        if same:
            self._reference += ", the precision of this run: it shows rounding only"

    def _reference_seconds(self, problem: Problem, path: str) -> float:
        with torch.no_grad():
            seconds, _ = timed(lambda: problem.f(problem.x))
        ratio = self._costs.backward / self._costs.forward if self._costs.forward else 1.0
        return predicted_seconds(path, self._sizes, Costs.of(seconds, seconds * ratio))

    # What is known so far, as a Result.

    def _result(self, status: Literal["running", "done"]) -> Result:
        exact = self._problem.exact
        return Result(
            status=status,
            experiment=self.experiment,
            environment=self._environment,
            function=FunctionResult(
                name=self.experiment.function,
                inputs=self._problem.x.numel(),
                outputs=self._y.numel(),
                value=self._value(self._y),
                compile_seconds=self._compile_seconds,
                exact_value=None if exact is None else self._value(exact.value),
            ),
            paths={name: self._path_result(name) for name in self._paths},
            heads=self._head_results(),
            jacobian=self._inspection.result,
            scaling=dict(self._scaling),
            notes=tuple(self._notes),
        )

    def _head_results(self) -> dict[str, HeadResult]:
        return {
            name: self._head_result(number, name, head)
            for number, (name, head) in enumerate(self._heads.items())
        }

    def _path_result(self, name: str) -> PathResult:
        path = self._paths[name]
        if path.found is None:
            expected = expected_passes(name, self._sizes, self._costs)
            return PathResult(
                status="predicted" if path.left_out else "running",
                predicted_seconds=self._predicted(name),
                forward_passes=expected.forward,
                backward_passes=expected.backward,
                forward_mode_passes=expected.forward_mode,
                note=path.left_out,
            )
        seconds, noise = statistics(path.runs) if path.runs else (None, "")
        return PathResult(
            status="measured" if path.runs else "running",
            seconds=seconds,
            predicted_seconds=path.predicted,
            forward_passes=path.found.passes.forward,
            backward_passes=path.found.passes.backward,
            forward_mode_passes=path.found.passes.forward_mode,
            taken=path.found.plan.path if name == "auto" else "",
            plan=path.found.plan.sentence,
            saved_bytes=path.saved,
            peak_memory_bytes=path.peak,
            noise=noise,
        )

    def _head_result(self, number: int, name: str, head: Head) -> HeadResult:
        found = {
            path: state.found.gradients[number]
            for path, state in self._paths.items()
            if state.found is not None
        }
        naive = next((path for path in NAIVE if path in found), None)
        exact = self._exact.get(name)
        with torch.no_grad():
            value = head(self._y, self._problem.x)
        return HeadResult(
            formula=head.formula,
            value=value.item(),
            gradient={path: self._numbers(gradient) for path, gradient in found.items()},
            agreement={
                path: relative_difference(gradient, found[naive]) if naive else None
                for path, gradient in found.items()
            },
            agreement_reference=naive,
            error={
                path: None if exact is None else relative_difference(gradient, exact)
                for path, gradient in found.items()
            },
            error_reference=self._reference,
            exact_gradient=None if exact is None else self._numbers(exact),
            domain=_domain(head, self._y, value, list(found.values()), exact),
        )

    def _value(self, tensor: Tensor) -> float | Numbers:
        return tensor.item() if tensor.ndim == 0 else self._numbers(tensor)

    def _numbers(self, tensor: Tensor) -> Numbers:
        flat = tensor.detach().reshape(-1)
        if self._full or flat.numel() <= LISTED:
            return tuple(flat.tolist())
        return Array(
            norm=spectral_norm(flat, 1),
            shape=tuple(tensor.shape),
            first=tuple(flat[:LISTED].tolist()),
        )


def _domain(head: Head, y: Tensor, value: Tensor, found: list[Tensor], exact: Tensor | None) -> str:
    """What is wrong with a head at y, in its own words; empty where nothing is.

    A gradient that some path gives, or that is known and fits the dtype, is no fault of the head:
    a path that does not give it is wrong.
    """
    shown = {True: "NaN", False: "infinite"}[bool(value.isnan())]
    if head.inside is not None and not head.inside(y).all():
        outside = y.numel() - int(head.inside(y).sum())
        where = "y lies" if y.numel() == 1 else f"{outside} of {y.numel()} entries of y lie"
        return (
            f"{where} outside the domain of {head.name}, {head.domain}: "
            + ("its value is " + shown if not value.isfinite() else "its gradient is not defined")
            + "."
        )
    if not value.isfinite() and head.domain != EVERYWHERE:
        return f"{head.name} has no finite value at this y: it is {shown}."
    dtype, largest = str(y.dtype).removeprefix("torch."), torch.finfo(y.dtype).max
    overflows = f"overflows {dtype}, whose largest number is {largest:.1e}"
    if not value.isfinite():
        return f"{head.name} {overflows}: its value is {shown}."
    if not found or any(gradient.isfinite().all() for gradient in found):
        return ""
    if exact is None or not exact.isfinite().all():
        return (
            f"The gradient of {head.name} is not finite in {dtype} at this y, though its value is."
        )
    if exact.abs().max() > largest:
        return f"The gradient of {head.name} {overflows}; in float64 it is finite."
    return ""


def environment(device: str) -> Environment:
    """This machine, this process and the time, for what is measured from now on."""
    return Environment(
        torch=torch.__version__,
        python=platform.python_version(),
        device_name=devices.title(device),
        threads=torch.get_num_threads(),
        host=socket.gethostname(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def gigabytes(size: float) -> str:
    """A size in bytes as a person reads it."""
    return f"{size / 1e9:.2g} GB"
