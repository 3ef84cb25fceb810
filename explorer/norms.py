"""What a run shows of its Jacobians: norms and their bounds, agreement, curvature, norms by size.

The norm of dy/dx is that of the matrix where one is there or quickly made, else from products
with it alone; that of dz/dx is a 2-norm of the gradient that a path gave.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from explorer import spectra
from explorer.accuracy import wide
from explorer.engine.gradients import gradients, jacobian
from explorer.engine.hessian import hessian_eigenvalues
from explorer.engine.linear import chain
from explorer.engine.plan import Costs
from explorer.engine.spectrum import decomposed
from explorer.engine.spectrum import spectral_norm as norm_of_f
from explorer.experiment import Experiment
from explorer.functions.description import Problem, decomposition_seconds
from explorer.heads import Head
from explorer.jacobian import head_gradients, spectral_norm
from explorer.measure import timed
from explorer.result import Curvature, HeadNorms, SizeNorms

WITHOUT = "matrix-free, from products with dy/dx alone"
"""How a norm is found for which no matrix is there."""

_AGREEMENT = 0.5  # seconds that one path's agreement of all heads together may take


@dataclass(frozen=True)
class Spectrum:
    """The norm of dy/dx and what was found with it.

    Attributes:
        method: how, in words.
        error, products: as in a JacobianResult.
        values: all singular values where the matrix was decomposed, else the largest alone.
        direction: of x's shape.
        matrix: dy/dx where it is there, of shape `(*y.shape, *x.shape)`.
        notes: what to mind, as sentences.
    """

    norm: float
    method: str
    error: float
    products: int | None
    values: tuple[float, ...]
    direction: Tensor | None
    matrix: Tensor | None
    notes: tuple[str, ...] = ()

    @property
    def condition(self) -> float | None:
        """The largest over the smallest singular value, where all are known and finite."""
        if self.products is not None or not self.values or not math.isfinite(self.norm):
            return None
        return self.norm / self.values[-1] if self.values[-1] else math.inf


def of_matrix(matrix: Tensor, outputs: int, x: Tensor, method: str) -> Spectrum:
    """The spectrum of a dy/dx that is there, by all its singular values."""
    values, direction = decomposed(matrix.detach().reshape(outputs, x.numel()))
    every = tuple(values.tolist())
    return Spectrum(
        norm=every[0] if every else 0.0,
        method=method,
        error=0.0,
        products=None,
        values=every,
        direction=None if direction is None else _signed(direction.reshape(x.shape)),
        matrix=matrix,
    )


def by_products(
    f: Callable[[Tensor], Tensor],
    x: Tensor,
    method: str,
    proceed: Callable[[], bool],
    matrix: Tensor | None = None,
) -> Spectrum:
    """The spectrum of y = f(x) by products alone: its largest singular value.

    With a `matrix` f is what multiplies by it.
    """
    found = norm_of_f(f, x, proceed=proceed)
    return Spectrum(
        norm=found.value,
        method=method,
        error=found.error,
        products=found.products,
        values=(found.value,) if math.isfinite(found.value) else (),
        direction=None if found.direction is None else _signed(found.direction),
        matrix=matrix,
        notes=found.notes,
    )


def formed_for(problem: Problem, outputs: int) -> Spectrum:
    """The spectrum of f at x from a dy/dx that is formed for it."""
    how = "dense, from a Jacobian formed for this, one backward an entry of y"
    return of_matrix(jacobian(problem.f, problem.x), outputs, problem.x, how)


def matrix_bytes(y: Tensor, x: Tensor) -> int:
    """Bytes that forming dy/dx takes: its rows, and the matrix of them."""
    return 2 * y.numel() * x.numel() * y.element_size()


def _signed(direction: Tensor) -> Tensor:
    """With its largest entry positive: the sign of a singular vector is arbitrary."""
    flat = direction.detach().flatten()
    return direction.detach() * flat[flat.abs().argmax()].sign()


# The heads.


def of_head(
    head: Head, y: Tensor, x: Tensor, norm: float, gradient: Tensor | None, matrix: Tensor | None
) -> HeadNorms | None:
    """The norms of a head, of which `gradient` is dz/dx, else it comes from dy/dx, `matrix`; None
    where neither is there. `norm` is that of dy/dx."""
    cotangent, direct = head_gradients(head, y, x)
    if gradient is None:
        if matrix is None:
            return None
        gradient = chain(cotangent, matrix)
        if direct is not None:
            gradient = gradient + direct
    own = spectral_norm(cotangent, 1)
    bound = own * norm + (0.0 if direct is None else spectral_norm(direct, 1))
    return HeadNorms(spectral_norm=own, composite=spectral_norm(gradient, 1), bound=bound)


def agreement(
    found: Mapping[str, Sequence[Tensor]], reference: str, left: float, spare: float
) -> dict[str, float | None]:
    """By path ‖Z − Z_ref‖₂/‖Z_ref‖₂ of the gradients of all heads as the rows of Z, in float64.

    NaN where some entry is not finite; None of what takes more than a moment, the seconds that
    are `left`, or the bytes to `spare`.
    """
    given = found[reference]
    heads, inputs = len(given), given[0].numel()
    quick = decomposition_seconds(heads, inputs) <= min(_AGREEMENT, left)
    if not quick or 4 * 8 * heads * inputs > spare:
        return dict.fromkeys(found)
    base = _stacked(given)
    size = _largest(base)
    return {
        path: _proportion(_largest(_stacked(gradients) - base), size)
        for path, gradients in found.items()
    }


def _stacked(gradients: Sequence[Tensor]) -> Tensor:
    return torch.stack([wide(gradient).flatten() for gradient in gradients])


def _largest(matrix: Tensor) -> float:
    if not matrix.isfinite().all():
        return math.nan
    values, _ = decomposed(matrix)
    return values[0].item() if len(values) else 0.0


def _proportion(part: float, whole: float) -> float:
    if part == 0:
        return 0.0 if math.isfinite(whole) else math.nan
    return part / whole if whole else part * math.inf


def curvature(
    head: Head, problem: Problem, proceed: Callable[[], bool]
) -> tuple[Curvature, tuple[str, ...]]:
    """The extreme eigenvalues of the Hessian of z = g(f(x)), and what to mind, as sentences."""
    found = hessian_eigenvalues(lambda x: head(problem.f(x), x), problem.x, proceed=proceed)
    seen = Curvature(
        largest=found.largest, smallest=found.smallest, error=found.error, products=found.products
    )
    return seen, found.notes


def at_size(
    experiment: Experiment,
    size: int,
    heads_of: Callable[[Problem, Tensor], dict[str, Head]],
    proceed: Callable[[], bool],
    room: float,
) -> SizeNorms:
    """The norms of the experiment's f at another size, built for this.

    `room` is the bytes that dy/dx may take, `heads_of` gives the heads that there are for a y.
    """
    described, at = experiment.described, spectra.setting(experiment, size)
    problem = described.build(at)

    def drawn() -> Problem:
        torch.manual_seed(experiment.seed)  # an f that draws random numbers is one f
        return problem

    with torch.no_grad():
        seconds, y = timed(lambda: drawn().f(problem.x))
    outputs, inputs = y.numel(), problem.x.numel()
    costs = Costs.of(seconds, seconds * described.cost(at).ratio)
    fits = matrix_bytes(y, problem.x) <= room
    if spectra.way(outputs, inputs, costs, fits=fits, wait=0.0).dense:
        found = formed_for(drawn(), outputs)
    else:
        found = by_products(drawn().f, problem.x, WITHOUT, proceed)
    every = dict(islice(heads_of(problem, y).items(), spectra.LINES))
    norms = {}
    if every:
        given = gradients(drawn().f, [each.apply for each in every.values()], problem.x)
        norms = {
            name: spectral_norm(gradient, 1)
            for name, value, gradient in zip(every, given.values, given.gradients, strict=True)
            if value.isfinite()  # log(-y) has a finite gradient where it has no value
        }
    return SizeNorms(
        size=size,
        inputs=inputs,
        outputs=outputs,
        spectral_norm=found.norm,
        error=found.error,
        heads={name: norm for name, norm in norms.items() if math.isfinite(norm)},
    )
