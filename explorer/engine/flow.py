"""h_0 = x, h_t = step_t(h_{t−1}): how gradients and Jacobians change on their way back from h_T.

J_t = ∂h_t/∂h_{t−1}. States may have any real shape, another one after each step. With S samples
side by side in the first dimension of every state, J_t is `(S, m, n)`, one matrix for each sample;
without, S is 1 and a state as a whole is the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from explorer.engine.heads import scalar
from explorer.engine.paths import cut
from explorer.engine.spectrum import SpectralNorm, spectral_norm
from explorer.engine.structure import Layout
from explorer.engine.trunk import Counter, Graph, without_autocast

Step = Callable[[Tensor], Tensor]

FORMED = 64 * 2**20
"""Bytes up to which one J_t is formed, all samples together."""

TOGETHER = 2**30
"""Bytes up to which all J_t are formed."""

_CHUNK = 16 * 2**20  # bytes of the cotangents, or of the matrices, that go together


class Walk:
    """The states h_0 … h_T and the graph between them; every step is called once, here.

    Args:
        labels: what messages call the steps.
        batch: whether the first dimension of x is samples.

    Raises:
        TypeError: a step gave something else than one real floating tensor.
        ValueError: a step cut the graph off, or gave another number of samples than it got.
    """

    def __init__(self, steps: Sequence[Step], labels: Sequence[str], x: Tensor, batch: bool):
        self._steps = steps
        self._labels = labels
        self.batch = batch
        self.samples = len(x) if batch else 1
        self.notes: list[str] = []
        self._one_by_one: set[int] = set()  # steps that vmap cannot go through
        with torch.enable_grad():
            self.states = cut([x], False)
            for step, label in zip(steps, labels, strict=True):
                try:
                    # A clone: a step may change its input in place, as ReLU(inplace=True) does.
                    state = step(self.states[-1].clone())
                except Exception as error:
                    error.add_note(f"It was raised in {label}.")
                    raise
                self._check(state, label)
                self.states.append(state.clone())  # or a step that keeps it may change it later
        for number, state in enumerate(self.states):
            if not state.isfinite().all():
                where = self._labels[number - 1] if number else "x"
                self.notes.append(
                    f"h_{number} is not finite ({where}): what is computed from there on is not "
                    "finite either."
                )
                break

    def _check(self, state: object, label: str) -> None:
        if not isinstance(state, Tensor):
            raise TypeError(
                f"{label} returned a {type(state).__name__}. Let every step take one torch.Tensor "
                "to one, for example lambda h: lstm(h)[0]."
            )
        if not state.is_floating_point():
            raise TypeError(f"{label} returned dtype {state.dtype}. Return a real floating tensor.")
        if not state.numel():
            raise ValueError(f"{label} returned shape {tuple(state.shape)}, which has no entries.")
        if not state.requires_grad:
            raise ValueError(CUT_OFF.format(label=label))
        if self.batch and (not state.ndim or len(state) != self.samples):
            raise ValueError(
                f"{label} returned shape {tuple(state.shape)} for {self.samples} samples. The "
                "first dimension of every state has to be the samples; give one sample with "
                "batch=False where it is not."
            )

    def __len__(self) -> int:
        """T, the number of steps."""
        return len(self._steps)

    def width(self, t: int) -> int:
        """Entries of h_t, of one sample."""
        return self.states[t].numel() // self.samples

    def jacobian_bytes(self, t: int) -> int:
        """What J_t takes, all samples together, for t from 1."""
        return self._bytes(t, t - 1)

    @property
    def product_bytes(self) -> int:
        """What the largest of the products ∂h_T/∂h_t takes, all samples together."""
        return max(self._bytes(len(self), t) for t in range(len(self) + 1))

    def _bytes(self, rows: int, columns: int) -> int:
        item = Layout([self.states[rows]]).dtype.itemsize
        return self.samples * self.width(rows) * self.width(columns) * item

    @property
    def epsilon(self) -> float:
        """The relative precision of the coarsest state."""
        return max(torch.finfo(state.dtype).eps for state in self.states)

    def _graph(self, t: int, inputs: Sequence[Tensor]) -> Graph:
        cut_off = CUT_OFF.format(label=self._labels[t - 1])
        return Graph([self.states[t]], inputs, Counter(), cut_off=cut_off)

    def cotangent(self, loss: Step, label: str) -> Tensor:
        """∂L/∂h_T, of h_T's shape; zeros of a loss that does not depend on h_T."""
        end = self.states[-1].detach().requires_grad_()
        with torch.enable_grad():
            z = scalar(loss(end.clone()), label)
        if not z.requires_grad:
            return torch.zeros_like(end)
        with without_autocast(end.device.type):
            (found,) = torch.autograd.grad(z, end, allow_unused=True, materialize_grads=True)
        return found

    def naive(self, cotangent: Tensor) -> list[Tensor]:
        """∂L/∂h_t for t = 0 … T from ∂L/∂h_T, by one backward pass through all steps.

        Each is `(S, n)`, for the next by its own n.
        """
        flat = Layout([self.states[-1]]).rows([[cotangent]])[0]
        found = self._graph(len(self), self.states[:-1]).back(flat, keep=True)
        return [each.reshape(self.samples, -1) for each in (*found, cotangent)]

    def jacobian(self, t: int) -> Tensor:
        """J_t, `(S, m, n)`, for t from 1: one cotangent an entry of h_t, sent back together, the
        same for all samples at once.

        Raises:
            ValueError: the step does not keep the samples apart.
        """
        m, n = self.width(t), self.width(t - 1)
        graph = self._graph(t, [self.states[t - 1]])
        dtype, device = graph.layout.dtype, graph.layout.device
        found = torch.empty(m, self.samples, n, dtype=dtype, device=device)
        count = max(1, _CHUNK // (dtype.itemsize * self.samples * max(m, n)))
        for first in range(0, m, count):
            last = min(first + count, m)
            cotangents = torch.zeros(last - first, self.samples, m, dtype=dtype, device=device)
            cotangents.diagonal(first, 0, 2).fill_(1)
            rows = self._sent_back(t, graph, cotangents.flatten(1))
            found[first:last] = rows.reshape(last - first, self.samples, n)
        jacobian = found.movedim(0, 1)
        if self.samples > 1:
            self._require_apart(t, graph, jacobian)
        return jacobian

    def _sent_back(self, t: int, graph: Graph, cotangents: Tensor) -> Tensor:
        """c·J for all rows c at once, or, where vmap cannot go through the step, one by one."""
        if t not in self._one_by_one:
            try:
                return graph.back_together(cotangents, keep=True)[0]
            except Exception as error:  # vmap's own are of many kinds; the loop tells the step's
                rows = [graph.back(each, keep=True)[0] for each in cotangents]
                self._one_by_one.add(t)
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                self.notes.append(
                    f"The cotangents went back through {self._labels[t - 1]} one after the other: "
                    f"vmap cannot take it ({reason})."
                )
                return torch.stack(rows)
        return torch.stack([graph.back(each, keep=True)[0] for each in cotangents])

    def _require_apart(self, t: int, graph: Graph, jacobian: Tensor) -> None:
        """One random cotangent, another one for each sample, tells whether J_t is block diagonal:
        what a sample gets from another stands in no row of J_t."""
        generator = torch.Generator().manual_seed(t)
        c = torch.randn(jacobian.shape[:2], generator=generator).to(jacobian)
        (found,) = graph.back(c.flatten(), keep=True)
        expected = torch.einsum("sm,smn->sn", c, jacobian)
        difference = torch.linalg.vector_norm(found.reshape(expected.shape) - expected)
        size = torch.linalg.vector_norm(jacobian)
        if difference > torch.finfo(self.states[t].dtype).eps ** 0.5 * size:
            raise ValueError(_MIXED.format(label=self._labels[t - 1]))

    def norms_without(self, t: int) -> tuple[Tensor, list[str]]:
        """(‖J_t‖₂ of each sample, `(S,)`, notes), with no matrix formed: further calls of the step.

        Raises:
            ValueError: the step gives a sample something else alone than among the others.
        """
        step, label = self._steps[t - 1], self._labels[t - 1]
        start, end = self.states[t - 1].detach(), self.states[t].detach()
        if not self.batch:
            seen: list[Tensor] = []

            def again(h: Tensor) -> Tensor:
                state = step(h.clone())
                seen.append(state.detach().clone())
                return state

            values, notes = _values([spectral_norm(again, start)])
            return values, notes if _close(seen[0], end) else [*notes, _OTHER]
        found = []
        for number, together in enumerate(end):
            with torch.no_grad():
                alone = step(start[number : number + 1].clone())[0]
                if not _close(alone, together):
                    same = _close(step(start.clone()), end)
                    raise ValueError((_MIXED if same else _CHANGING).format(label=label))
            one = start[number : number + 1]
            found.append(spectral_norm(lambda h: step(h.clone()), one))
        return _values(found)


CUT_OFF = (
    "{label} returned a tensor that is cut off from the state it was given, so no gradient goes "
    "back through it. Leave out .detach(), .item(), torch.no_grad() and new torch.tensor(...)."
)

_MIXED = (
    "{label} mixes the samples of the batch, as batch norm in training mode does, so that no "
    "sample has a Jacobian of its own. Put it in .eval(), or give one sample with batch=False."
)


_CHANGING = (
    "{label} gives another state each time it is called, as dropout does, and it is too large for "
    "one call to tell the Jacobian of every sample. Put it in .eval()."
)

_OTHER = (
    "The step gave another state when it was called again for its norm, as dropout does: the norm "
    "is of that call, and the gradients are of the first."
)


def _close(state: Tensor, other: Tensor) -> bool:
    """Whether two states are one but for rounding."""
    limit = torch.finfo(other.dtype).eps ** 0.5
    size = float(other.nan_to_num(0, 0, 0).abs().amax())
    return torch.allclose(state, other, rtol=limit, atol=limit * size, equal_nan=True)


def _values(found: Sequence[SpectralNorm]) -> tuple[Tensor, list[str]]:
    values = torch.tensor([each.value for each in found], dtype=torch.float64)
    return values, list(dict.fromkeys(note for each in found for note in each.notes))


def chain(jacobians: Sequence[Tensor], cotangents: Tensor) -> list[Tensor]:
    """∂L/∂h_t for t = 0 … T from ∂L/∂h_T, for K losses together: one matrix product a step.

    `jacobians` are J_1 … J_T. `cotangents` is `(K, S, m)`, and so is each result, with its own m.
    """
    rows = cotangents.movedim(0, 1)
    found = [rows]
    for jacobian in reversed(jacobians):
        wide = torch.promote_types(rows.dtype, jacobian.dtype)
        rows = rows.to(jacobian.device, wide) @ jacobian.to(wide)
        found.append(rows)
    return [each.movedim(1, 0) for each in reversed(found)]


def lengths(vectors: Tensor) -> Tensor:
    """The 2-norms along the last dimension, float64 on the CPU; no square over- or underflows."""
    vectors = vectors.detach()
    largest = vectors.abs().amax(-1, keepdim=True)
    scale = torch.where(largest.isfinite() & (largest > 0), largest, torch.ones_like(largest))
    norms: Tensor = torch.linalg.vector_norm(vectors / scale, dim=-1)
    return norms.to("cpu", torch.float64).mul(scale[..., 0].to("cpu", torch.float64))


def spectral_norms(jacobians: Sequence[Tensor]) -> Iterator[Tensor]:
    """‖J‖₂ of each sample, `(S,)` in float64 on the CPU, for one matrix after the other; those of
    equal shape that follow one another are decomposed together. NaN where one is not finite."""
    for _, equal in groupby(jacobians, key=lambda each: each.shape):
        alike = list(equal)
        count = max(1, _CHUNK // max(1, alike[0].numel() * alike[0].itemsize))
        for first in range(0, len(alike), count):
            stacked = torch.stack(alike[first : first + count])
            if min(stacked.shape[-2:]) == 1:
                yield from lengths(stacked.flatten(-2))
            else:
                values = _singular_values(_scaled(stacked))
                yield from _sized(values.mantissa[..., 0], values.exponent)


def bound(norms: Sequence[Tensor]) -> list[Tensor]:
    """The product of the norms of the steps from t+1 to T, for t = 0 … T and each sample."""
    product = Scaled(torch.ones_like(norms[0]), torch.zeros_like(norms[0], dtype=torch.int64))
    found = [product.value]
    for norm in reversed(norms):
        mantissa, exponent = torch.frexp(product.mantissa * norm)
        product = Scaled(mantissa, product.exponent + exponent)
        found.append(product.value)
    return found[::-1]


@dataclass(frozen=True)
class Scaled:
    """mantissa·2^exponent, of which neither over- nor underflows where the number itself would."""

    mantissa: Tensor
    exponent: Tensor

    @property
    def value(self) -> Tensor:
        return _sized(self.mantissa, self.exponent)


def _sized(mantissa: Tensor, exponent: Tensor) -> Tensor:
    """mantissa·2^exponent in float64 on the CPU; in two halves, since 2^exponent may overflow."""
    mantissa, exponent = mantissa.to("cpu", torch.float64), exponent.to("cpu").clamp(-4000, 4000)
    half = exponent // 2
    return torch.ldexp(torch.ldexp(mantissa, half), exponent - half)


def _scaled(matrices: Tensor) -> Scaled:
    """Matrices `(..., m, n)` with entries of at most 2, for each its exponent `(...,)`."""
    largest = matrices.abs().amax((-2, -1))
    usable = largest.isfinite() & (largest > 0)
    # One less: 2^exponent itself may be just above the largest number.
    exponent = torch.where(usable, torch.frexp(largest).exponent - 1, 0)
    scale = torch.ldexp(torch.ones_like(largest), exponent)
    return Scaled(matrices / scale[..., None, None], exponent.to(torch.int64))


def _singular_values(matrices: Scaled) -> Scaled:
    """All of them `(..., k)`, from the largest; NaN of a matrix that is not finite."""
    finite = matrices.mantissa.isfinite().all(-1).all(-1)
    usable = torch.where(finite[..., None, None], matrices.mantissa, 0.0)
    values = torch.linalg.svdvals(usable)
    return Scaled(torch.where(finite[..., None], values, torch.nan), matrices.exponent)


@dataclass(frozen=True)
class Spread:
    """Singular values of a product ∂h_T/∂h_t, the means over the samples; None where rounding
    hides one of some sample, below n·ε of the largest."""

    time: int
    largest: float
    upper: float | None
    median: float | None
    lower: float | None
    smallest: float | None


def fan(jacobians: Sequence[Tensor], times: Iterable[int], epsilon: float) -> Iterator[Spread]:
    """The Spread of J_T ⋯ J_{t+1} at these steps t of 0 … T, from the last to the first."""
    wanted, steps = set(times), len(jacobians)
    end = jacobians[-1]
    unit = torch.eye(end.shape[1], dtype=end.dtype, device=end.device)
    product = _scaled(unit.expand(len(end), -1, -1))
    for t in range(steps, -1, -1):
        if t < steps:
            step = _scaled(jacobians[t])
            wide = torch.promote_types(product.mantissa.dtype, step.mantissa.dtype)
            factor = product.mantissa.to(step.mantissa.device, wide) @ step.mantissa.to(wide)
            scaled = _scaled(factor)
            exponent = product.exponent.to(step.exponent.device) + step.exponent + scaled.exponent
            product = Scaled(scaled.mantissa, exponent)
        if t in wanted:
            yield _spread(t, product, epsilon)


def _spread(t: int, product: Scaled, epsilon: float) -> Spread:
    rounding = max(product.mantissa.shape[-2:]) * epsilon
    values = _singular_values(product)
    parts = torch.tensor([1.0, 0.75, 0.5, 0.25, 0.0], dtype=values.mantissa.dtype)
    chosen = torch.quantile(values.mantissa, parts.to(values.mantissa.device), dim=-1)
    # Not `<`: nothing is known of what is not finite.
    known = (chosen >= rounding * chosen[0]).all(-1).tolist()
    means = _sized(chosen, values.exponent).mean(-1).tolist()
    rest = [mean if there else None for mean, there in zip(means[1:], known[1:], strict=True)]
    return Spread(t, means[0], *rest)
