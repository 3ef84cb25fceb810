"""The products c·J of the cotangents of all heads, in as few passes back through f as there can be.

What is sent back are the entries of y, or the directions of the cotangents, or the cotangents
themselves, whichever are fewest; one after the other, or together in one vectorized backward.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from explorer.engine import cost, rank
from explorer.engine.linear import Linear, restored
from explorer.engine.plan import Passes, Plan, Sizes, choose
from explorer.engine.structure import real_size
from explorer.engine.trunk import Graph

Products = list[list[Tensor] | None]
"""For each cotangent its product c·J for each tensor of x, or None for zeros."""

# Looking for directions may take so many seconds, or this part of what they could save.
_CHEAP, _WORTH = 1e-3, 0.25

_COMPILED = (
    "`f` is compiled, and vmap and forward mode go through few compiled functions: neither was "
    "tried."
)


@dataclass(frozen=True)
class Options:
    """How the products are to be taken.

    Attributes:
        path: one of the paths that cut the graph at y.
        create_graph: whether the gradients are to be differentiated again.
        chunk_size: how many cotangents go together; None for as many as fit.
        memory_limit: bytes that may be taken beside the graph of f; None for no limit.
        retain_graph: whether the graph must outlive the passes in any case.
        extend: whether it must where J is not known after them, for further heads.
    """

    path: str
    create_graph: bool = False
    chunk_size: int | None = None
    memory_limit: float | None = None
    retain_graph: bool = False
    extend: bool = True


class Combination:
    """The products for K cotangents, `(K, m)`, through one graph.

    Args:
        forward: seconds of the forward pass; None where it was not seen.
        saved: bytes that the graph holds, where a `memory_limit` asks for them.
        columns: takes J by forward mode; None where f is not there to be called.
    """

    def __init__(
        self,
        graph: Graph,
        cotangents: Tensor,
        options: Options,
        *,
        forward: float | None = None,
        saved: int = 0,
        columns: Callable[[], Linear] | None = None,
    ) -> None:
        self._graph = graph
        self._cotangents = cotangents
        self._options = options
        self._forward = forward
        self._saved = saved
        self._columns = columns
        self._sizes = Sizes(len(cotangents), graph.layout.size, real_size(graph.inputs))
        self._notes: list[str] = []
        self._together = False  # whether a batch was sent
        self._looked = False  # whether directions were looked for

    @cached_property
    def _scaled(self) -> rank.Scaled:
        return rank.scaled(self._cotangents)

    @cached_property
    def _rows(self) -> list[int]:
        """The cotangents that are sent; a zero one has no product to be taken."""
        return self._scaled.regular + self._scaled.odd

    def run(self) -> tuple[Products, Linear, Plan]:
        """(the products, what is then known of J, the plan that was followed)."""
        path = self._options.path
        basis = None
        if path == "auto":
            plan, basis = self.decide()
        else:
            plan = Plan(path, self._sizes, Passes())
            if path == "low_rank_vjp":
                basis = self._directions()
        if plan.path == "jvp":
            assert self._columns is not None  # or it would be no candidate
            try:
                linear = self._columns()
            except RuntimeError as error:
                self._notes.append(f"Forward mode was tried and left: {error}")
                plan, basis = self.decide(forward_mode=False)
            else:
                return split(linear.products(self._cotangents)), linear, plan
        before = self._graph.counter.backward
        products, linear = self._follow(plan, basis)
        sent = self._graph.counter.backward - before
        taken, sizes = plan.path, plan.sizes
        if path == "auto" and taken != "reuse":  # a batch may have failed, or paid after all
            taken = "batched_vjp" if self._together else "low_rank_vjp"
        if path in ("auto", "low_rank_vjp"):
            # As many as there are heads: that is their rank only if it was looked for.
            known = self._looked or sent < sizes.heads
            sizes = replace(sizes, rank=sent if known else None)
        passes = Passes(0 if self._forward is None else 1, sent)
        notes = (*plan.notes, *self._notes)
        return products, linear, Plan(taken, sizes, passes, plan.seconds, notes)

    # What is decided.

    def decide(self, forward_mode: bool = True) -> tuple[Plan, Tensor | None]:
        """(the plan of least predicted time, the directions if they were looked for)."""
        sizes, limit = self._sizes, self._options.memory_limit
        if min(sizes.heads, sizes.outputs) <= 1 and limit is None:  # nothing can be fewer
            path = "reuse" if sizes.outputs == 1 and sizes.heads else "low_rank_vjp"
            few = min(sizes.heads, sizes.outputs)
            sizes = Sizes(sizes.heads, sizes.outputs, sizes.inputs, few)
            return Plan(path, sizes, Passes(1, few)), None
        if self._forward is None:
            basis = self._directions()
            return Plan("low_rank_vjp", self._sizes, Passes()), basis
        costs = cost.estimated(self._forward, self._graph.operations, sizes)
        basis = None
        most = min(sizes.heads, sizes.outputs)
        if costs.rows < max(_CHEAP, _WORTH * (most - 1) * costs.backward):
            basis = self._directions()
            sizes = replace(sizes, rank=self._fewest(basis))
        else:
            sizes = replace(sizes, rank=most)
        costs = replace(costs, rows=0.0)  # spent by now, whatever is chosen
        sizes_of = self._memory(sizes)
        notes: tuple[str, ...] = ()
        if self._graph.compiled:
            del sizes_of["batched_vjp"]
            notes = (_COMPILED,)
        if self._columns is None or not forward_mode or self._graph.compiled:
            del sizes_of["jvp"]
        return choose(sizes, costs, candidates=sizes_of, memory_limit=limit, notes=notes), basis

    def _directions(self) -> Tensor | None:
        """A basis of the cotangents that is smaller than they are many.

        None where the gradients are to be differentiated again: the derivative of a cotangent
        need not lie in the basis. Rows that are not finite take no part.
        """
        if self._options.create_graph:
            return None
        self._looked = True
        coarse = max(torch.finfo(each.dtype).eps for each in self._graph.outputs)
        scaled = self._scaled
        every = len(scaled.regular) == len(scaled.unit)  # then there is nothing to leave out
        return rank.directions(scaled.unit if every else scaled.unit[scaled.regular], coarse)

    def _fewest(self, basis: Tensor | None) -> int:
        """How many cotangents have to be sent back."""
        fewest = min(len(self._rows), self._sizes.outputs)
        return fewest if basis is None else min(fewest, len(basis) + len(self._scaled.odd))

    def _memory(self, sizes: Sizes) -> dict[str, float]:
        """Bytes that each path takes beside the graph of f: what it sends gives as many rows of
        x's size, and the gradients are as many again where they are combined of those."""
        row = float(sum(each.numel() * each.dtype.itemsize for each in self._graph.inputs))
        results = len(self._rows) * row
        few = results + (sizes.directions * row if sizes.directions < len(self._rows) else 0.0)
        return {
            "reuse": results + sizes.outputs * row,
            "low_rank_vjp": few,
            "jvp": results + sizes.outputs * row,
            "batched_vjp": few + self._saved,
        }

    # What is done.

    def _follow(self, plan: Plan, basis: Tensor | None) -> tuple[Products, Linear]:
        if plan.path == "reuse":
            return self._by_entries(together=False)
        if plan.path == "batched_vjp" and self._options.path != "auto":
            return self._by_cotangents(together=True)
        # A graph that was there already: only its first pass tells what the others will take.
        learn = self._options.path == "auto" and self._forward is None
        together = None if learn else plan.path == "batched_vjp"
        fewest = self._fewest(basis)
        if fewest == self._sizes.outputs:  # then J itself, which answers for further heads too
            return self._by_entries(together)
        if basis is None or fewest == len(self._rows):
            return self._by_cotangents(together)
        return self._by_directions(basis, together)

    def _by_entries(self, together: bool | None) -> tuple[Products, Linear]:
        layout = self._graph.layout

        def entry(number: int) -> Tensor:
            unit = torch.zeros(layout.size, dtype=layout.dtype, device=layout.device)
            unit.select(0, number).fill_(1)
            return unit

        # In x's dtype, as autograd gives it; an entry too small for that is lost.
        rows = _Stack(self._graph, layout.size)
        self._send(rows, layout.size, entry, self._options.retain_graph, together)
        linear = Linear(layout, rows.finished())
        return split(linear.products(self._cotangents)), linear

    def _by_cotangents(self, together: bool | None) -> tuple[Products, Linear]:
        unit, norms, rows = self._scaled.unit, self._scaled.norms, self._rows
        found = _Products(self._graph, unit, norms[rows])
        self._send(found, len(rows), lambda number: unit[rows[number]], self._keep, together)
        return self._placed(rows, found.products), self._linear()

    def _by_directions(self, basis: Tensor, together: bool | None) -> tuple[Products, Linear]:
        odd, regular = self._scaled.odd, self._scaled.regular
        sent = torch.cat([basis, self._scaled.unit[odd]])
        stack = _Stack(self._graph, len(sent))
        self._send(stack, len(sent), lambda number: sent[number], self._keep, together)
        rows = stack.finished()
        linear = self._linear([each[: len(basis)] for each in rows], basis)
        unit, norms = self._scaled.unit[regular], self._scaled.norms[regular]
        found = split([restored(each, norms, own=True) for each in linear.products(unit)])
        alone = split([each[len(basis) :] for each in rows])
        return self._placed(regular + odd, found + alone), linear

    def _placed(self, rows: Sequence[int], found: Products) -> Products:
        """The products at the numbers of their cotangents, None for those that were not sent."""
        by_row = dict(zip(rows, found, strict=True))
        return [by_row.get(row) for row in range(len(self._cotangents))]

    @property
    def _keep(self) -> bool:
        return self._options.retain_graph or self._options.extend

    def _linear(self, rows: list[Tensor] | None = None, basis: Tensor | None = None) -> Linear:
        """What is known where J is not."""
        return Linear(self._graph.layout, rows, basis, self._graph if self._keep else None)

    # How it is sent.

    def _send(
        self,
        into: _Stack | _Products,
        count: int,
        cotangent: Callable[[int], Tensor],
        keep: bool,
        together: bool | None,
    ) -> None:
        """Sends so many cotangents back through f, and puts their products where they belong.

        `together` None decides after the first one. The graph is freed by the last unless it is
        to be kept.
        """
        first = 0
        if together is None and count > 2:
            start = time.perf_counter()
            into.put(0, [each[None] for each in self._graph.back(cotangent(0), keep=True)])
            together = self._is_faster_together(time.perf_counter() - start, count - 1)
            first = 1
        if together and first < count:
            first = self._send_together(into, first, count, cotangent)
        for number in range(first, count):
            last = number == count - 1
            found = self._graph.back(cotangent(number), keep=keep or not last)
            into.put(number, [each[None] for each in found])

    def _is_faster_together(self, seconds: float, count: int) -> bool:
        if self._graph.compiled or self._options.memory_limit is not None:
            return False
        costs = cost.learned(seconds, self._graph.operations, self._sizes)
        return costs.batch + count * costs.batched < count * costs.backward

    def _send_together(
        self,
        into: _Stack | _Products,
        first: int,
        count: int,
        cotangent: Callable[[int], Tensor],
    ) -> int:
        """Sends chunks of cotangents from the number `first` on; returns the first that is left.

        That is past the last one, unless vmap cannot go through some operation of f.
        """
        chunk = self._chunk(count)
        for number in range(first, count, chunk):
            numbers = range(number, min(number + chunk, count))
            stacked = torch.stack([cotangent(each) for each in numbers])
            try:
                into.put(number, self._graph.back_together(stacked, keep=True))
                self._together = True
            except Exception as error:  # vmap's own are of many kinds; the loop tells f's
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                self._notes.append(
                    f"The backward passes went one after the other: vmap cannot take `f` ({reason})"
                )
                return number
        return count

    def _chunk(self, count: int) -> int:
        """How many go together: what is asked for, or what fits the memory."""
        if self._options.chunk_size is not None:
            return self._options.chunk_size
        limit = self._options.memory_limit
        if limit is None or not self._saved:
            return count
        rest = limit - self._memory(self._sizes)["batched_vjp"] + self._saved
        return max(1, min(count, int(rest / self._saved)))


class _Stack:
    """Products that come in, as the rows of one matrix for every tensor of x."""

    def __init__(self, graph: Graph, count: int) -> None:
        self._parts: list[list[Tensor]] = []
        # Writing into a tensor would be part of a graph, and a single row needs none to be in.
        self._whole = graph.create_graph or count == 1
        shapes = [] if self._whole else [(each, (count, *each.shape)) for each in graph.inputs]
        self._rows = [each.new_empty(shape) for each, shape in shapes]

    def put(self, first: int, found: list[Tensor]) -> None:
        """Takes the products `(B, *shape)` of the numbers from `first` on."""
        if self._whole:
            self._parts.append(found)
            return
        for rows, each in zip(self._rows, found, strict=True):
            rows[first : first + len(each)] = each

    def finished(self) -> list[Tensor]:
        """`(count, *shape)` for each tensor of x."""
        if not self._whole:
            return self._rows
        if len(self._parts) == 1:
            return self._parts[0]
        return [torch.cat(each) for each in zip(*self._parts, strict=True)]


class _Products:
    """Products that come in, each a gradient of its own, brought back to its size."""

    def __init__(self, graph: Graph, sent: Tensor, norms: Tensor) -> None:
        self._graph = graph
        self._sent = sent
        self._norms = norms
        self.products: Products = []

    def put(self, first: int, found: list[Tensor]) -> None:
        """Takes the products `(B, *shape)` of the numbers from `first` on."""
        norms = self._norms[first : first + len(found[0])]
        own = self._graph.gives(found, self._sent)
        self.products += split([restored(each, norms, own=own) for each in found])


def split(rows: Sequence[Tensor]) -> Products:
    """By row, its part of each tensor."""
    return [list(each) for each in zip(*(rows.unbind() for rows in rows), strict=True)]
