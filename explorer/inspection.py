"""What a run looks at in its Jacobians: norms, agreement, curvature, and norms against size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

import torch
from torch import Tensor

from explorer import norms, sentences, spectra, units
from explorer.engine.plan import NAIVE, PATHS, Costs, Sizes, predicted_seconds
from explorer.experiment import Experiment
from explorer.expression import ExpressionError
from explorer.functions.description import Problem
from explorer.heads import Head, set_of
from explorer.result import Curvature, HeadResult, JacobianResult, Numbers, SizeNorms


@dataclass
class Inspection:
    """The Jacobians of a run under way; `result` is what is known so far.

    Attributes:
        problem: the experiment's own, as it is run.
        plain: its f, not compiled: what is compiled cannot be differentiated twice.
        heads_of: the heads of some entries for another f and its y.
        costs: of one pass through f, as far as they are known.
        left: seconds that are left of the budget.
        note: takes what to mind, as a sentence.
        numbers: a tensor as a Result has it.
        spare: bytes that are left on the CPU.
        room: bytes that are left on the device.
    """

    experiment: Experiment
    problem: Problem
    plain: Callable[[Tensor], Tensor]
    y: Tensor
    heads: Mapping[str, Head]
    heads_of: Callable[[Sequence[str], Problem, Tensor], dict[str, Head]]
    costs: Callable[[], Costs]
    left: Callable[[], float]
    note: Callable[[str], None]
    numbers: Callable[[Tensor], Numbers]
    spare: float
    room: float
    result: JacobianResult = field(
        default=JacobianResult(spectral_norm=None, heads={}, method="not yet computed"),
        init=False,
    )
    _norms_to_come: bool = field(default=True, init=False)
    _curved_to_come: int = field(default=0, init=False)
    _sizes_to_come: tuple[int, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        if self.experiment.curvature:
            self._curved_to_come = len(self.heads)
        if self.experiment.sizes and not self.experiment.compile:
            self._sizes_to_come = spectra.sizes(self.experiment)

    @property
    def matrix_bytes(self) -> int:
        """Bytes that forming dy/dx takes."""
        return norms.matrix_bytes(self.y, self.problem.x)

    @property
    def fits(self) -> bool:
        """Whether dy/dx can be held."""
        return self.matrix_bytes <= self.room

    @property
    def remaining(self) -> float:
        """Seconds that what is still to come is expected to take."""
        inputs, seconds = self.problem.x.numel(), 0.0
        if self._norms_to_come:
            formed = bool({"reuse", "jvp"} & set(self.experiment.paths))
            seconds += self._way(formed and self.fits).seconds
        seconds += spectra.curvature_seconds(self._curved_to_come, inputs, self.costs())
        return seconds + spectra.sizes_seconds(
            self.experiment, self._sizes_to_come, self._costs_at
        )

    # The norms.

    def take(
        self,
        gradients: Mapping[str, Sequence[Tensor]],
        formed: Mapping[str, Tensor],
        seen: Mapping[str, HeadResult],
    ) -> Tensor | None:
        """Takes the spectral norms, where the time allows them; returns dy/dx if it is there.

        Args:
            gradients: of all heads, by path.
            formed: dy/dx, by the paths that formed it.
            seen: what is known of the heads.
        """
        self._norms_to_come = False
        source = min(formed, key=list(PATHS).index, default="")
        found = self._spectrum(source, formed.get(source))
        if isinstance(found, str):
            method = f"left out: {found}"
            self.result = JacobianResult(spectral_norm=None, heads={}, method=method)
            return formed.get(source)
        for each in found.notes:
            self.note(each)
        heads = {
            name: norms.of_head(
                head,
                self.y,
                self.problem.x,
                found.norm,
                self._right(gradients, number, seen[name], source),
                found.matrix,
            )
            for number, (name, head) in enumerate(self.heads.items())
        }
        self.result = JacobianResult(
            spectral_norm=found.norm,
            heads={name: each for name, each in heads.items() if each is not None},
            method=found.method,
            source=source,
            error=found.error,
            products=found.products,
            singular_values=found.values[: spectra.LEADING],
            condition=found.condition,
            direction=None if found.direction is None else self.numbers(found.direction),
            agreement=self._agreement(gradients, seen),
        )
        return found.matrix

    def _spectrum(self, source: str, matrix: Tensor | None) -> norms.Spectrum | str:
        """The spectrum of dy/dx, which the path `source` may have formed, or why there is none."""
        outputs, x = self.y.numel(), self.problem.x
        way = self._way(matrix is not None)
        if matrix is not None:
            if way.dense:
                how = f"dense, from the Jacobian that {source} formed"
                return norms.of_matrix(matrix, outputs, x, how)
            if not self._proceed():
                return over_budget("the singular values", way.seconds)
            how = f"matrix-free, from products with the Jacobian that {source} formed"
            flat = matrix.detach().reshape(outputs, -1)
            return norms.by_products(lambda v: flat @ v.flatten(), x, how, self._proceed, matrix)
        costs = self.costs()
        if way.dense:
            torch.manual_seed(self.experiment.seed)
            return norms.formed_for(self.problem, outputs)
        if self.left() < costs.forward + spectra.FEW * costs.backward:
            dense = predicted_seconds("reuse", Sizes(0, outputs, x.numel()), costs)
            return over_budget("dy/dx", dense)
        torch.manual_seed(self.experiment.seed)
        try:
            return norms.by_products(self.plain, x, norms.WITHOUT, self._proceed)
        except RuntimeError as error:  # neither a second derivative nor forward mode
            return str(error).partition("\n")[0].rstrip(".")

    def _way(self, formed: bool) -> spectra.Way:
        outputs, inputs = self.y.numel(), self.problem.x.numel()
        return spectra.way(
            outputs, inputs, self.costs(), formed=formed, fits=self.fits, left=self.left()
        )

    def _proceed(self) -> bool:
        return self.left() > 0

    def _right(
        self,
        gradients: Mapping[str, Sequence[Tensor]],
        number: int,
        head: HeadResult,
        source: str,
    ) -> Tensor | None:
        """A head's gradient by a path that is right, if one is: that which formed dy/dx before
        the others."""
        limit = sentences.tolerance(self.experiment.dtype)

        def rank(path: str) -> tuple[bool, bool, int]:
            error = head.error.get(path)
            finite = bool(gradients[path][number].isfinite().all())
            wrong = not finite or (error is not None and not error <= limit)
            return wrong, path != source, list(PATHS).index(path)

        return gradients[min(gradients, key=rank)][number] if gradients else None

    def _agreement(
        self, gradients: Mapping[str, Sequence[Tensor]], seen: Mapping[str, HeadResult]
    ) -> dict[str, float | None]:
        counted = [number for number, head in enumerate(seen.values()) if not head.domain]
        naive = next((name for name in NAIVE if name in gradients), None)
        if naive is None or not counted:
            return {}
        rows = {path: [every[number] for number in counted] for path, every in gradients.items()}
        return norms.agreement(rows, naive, self.left(), self.spare)

    # What is asked for beside them.

    def further(self, seen: Mapping[str, HeadResult]) -> Iterator[str]:
        """Takes the curvature and the norms against size, where the experiment asks for them.

        Yields what is taken next, in words, and "" after each.
        """
        if self.experiment.curvature:
            yield from self._curvatures(seen)
        if self.experiment.sizes:
            yield from self._sizes(seen)

    def _curvatures(self, seen: Mapping[str, HeadResult]) -> Iterator[str]:
        counted = [name for name, head in seen.items() if not head.domain]
        if len(counted) > spectra.CURVED:
            self.note(
                f"Curvature of the first {spectra.CURVED} of {len(counted)} heads alone: it goes "
                "through f for each apart."
            )
        problem, found = replace(self.problem, f=self.plain), dict[str, Curvature]()
        chosen = counted[: spectra.CURVED]
        self._curved_to_come = len(chosen)
        for name in chosen:
            costs = self.costs()
            if self.left() < costs.forward + spectra.FEW * costs.backward:
                self.note(f"The budget ended the curvature before {name}.")
                break
            yield f"curvature of {name}"
            self._curved_to_come -= 1
            torch.manual_seed(self.experiment.seed)
            try:
                found[name], notes = norms.curvature(self.heads[name], problem, self._proceed)
            except Exception as error:  # of second derivatives alone: f and the head have run
                first = str(error).partition("\n")[0]
                self.note(f"No curvature of {name}: {type(error).__name__}: {first}")
                continue
            for each in notes:
                self.note(f"Curvature of {name}: {each}")
            if not self._proceed():
                self.note(
                    f"The budget ended the products for the curvature of {name}: see the estimate "
                    "of its error."
                )
            self.result = self.result.model_copy(update={"curvature": dict(found)})
            yield ""
        self._curved_to_come = 0

    def _sizes(self, seen: Mapping[str, HeadResult]) -> Iterator[str]:
        found: list[SizeNorms] = []
        if self.experiment.compile:
            self.note("No norms against size: f would be compiled anew for each size.")
            return
        if not self._sizes_to_come:
            self.note(
                f"No norms against size: {self.experiment.function} has no size below "
                f"{self.experiment.size}."
            )
            return
        while (size := self._sizes_to_come[0]) != self.experiment.size:
            if spectra.sizes_seconds(self.experiment, [size], self._costs_at) > self.left():
                self.note(f"The budget ended the norms against size before size {size}.")
                break
            yield f"norms at size {size}"
            self._sizes_to_come = self._sizes_to_come[1:]
            found.append(
                norms.at_size(self.experiment, size, self._heads_at, self._proceed, self.room)
            )
            self.result = self.result.model_copy(update={"by_size": tuple(found)})
            yield ""
        self._sizes_to_come = ()
        if self.result.spectral_norm is not None:
            by_size = (*found, self._own_size(self.result.spectral_norm, seen))
            self.result = self.result.model_copy(update={"by_size": by_size})

    def _heads_at(self, problem: Problem, y: Tensor) -> dict[str, Head]:
        """Those of the heads that there are for another y, which may lack the entry of one."""
        try:
            return self.heads_of(self.experiment.heads, problem, y)
        except ExpressionError:
            found: dict[str, Head] = {}
            for entry in self.experiment.heads:
                if set_of(entry) is None:
                    with suppress(ExpressionError):
                        found |= self.heads_of([entry], problem, y)
            return found

    def _own_size(self, norm: float, seen: Mapping[str, HeadResult]) -> SizeNorms:
        """The experiment itself, as a point of the norms against size."""
        heads = {
            name: self.result.heads[name].composite
            for name in islice(self.heads, spectra.LINES)
            if name in self.result.heads and not seen[name].domain
        }
        return SizeNorms(
            size=self.experiment.size,
            inputs=self.problem.x.numel(),
            outputs=self.y.numel(),
            spectral_norm=norm,
            error=self.result.error or 0.0,
            heads={name: each for name, each in heads.items() if math.isfinite(each)},
        )

    def _costs_at(self, size: int) -> Costs:
        """The costs of a pass at another size, as the estimates tell from those at this one."""
        described, costs = self.experiment.described, self.costs()
        at = described.cost(spectra.setting(self.experiment, size)).forward.seconds
        here = described.cost(self.experiment.setting).forward.seconds
        share = at / here if here else 1.0
        return Costs.of(costs.forward * share, costs.backward * share)


def over_budget(what: str, seconds: float) -> str:
    return f"{what} would take about {units.roughly(seconds)}, more than is left of the budget"
