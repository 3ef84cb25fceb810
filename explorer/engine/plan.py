"""The plan: which path to the gradients is cheapest here, and why.

With K heads on y ∈ Rᵐ and x ∈ Rⁿ, never more than r backward passes are needed, r ≤ min(K, m)
the rank of the stacked cotangents dz/dy, nor more than n forward-mode passes. The fewest are not
always the fastest, so the choice is made by predicted time. Plain arithmetic on counts and
seconds; nothing here imports torch.

    >>> sizes = Sizes(heads=64, outputs=1024, inputs=100, rank=4)
    >>> chosen = choose(sizes, Costs.of(forward=1.0, backward=2.0))
    >>> print(chosen.sentence)
    4 backward passes instead of 64: the 64 heads depend on y through 4 directions only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

PATHS: dict[str, str] = {
    "recompute": "naive: f again for every head, and a backward through it",
    "retain_graph": "naive: f once, then a backward through it for every head",
    "reuse": "dy/dx by rows, a backward for each entry of y, then the chain rule",
    "batched_vjp": "the cotangents of all heads in one vectorized backward",
    "low_rank_vjp": "a backward for each independent direction of the cotangents",
    "jvp": "dy/dx by columns, a forward-mode pass for each entry of x, then the chain rule",
    "auto": "whichever of the four before it is predicted to take the least time",
    "torchjd": "the peer library torchjd, a backward for every head",
}
"""The paths by name, each with the words that say what it does."""

NAIVE = ("recompute", "retain_graph")
"""The naive paths, in the order in which they serve as the reference of an agreement."""

AUTOMATIC = ("reuse", "low_rank_vjp", "jvp", "batched_vjp")
"""The paths that `auto` chooses from; of two that are predicted equal it takes the first."""

PEER = "torchjd"
"""The path that a package which need not be installed takes; for comparison only."""


@dataclass(frozen=True)
class Passes:
    """How often f was passed through.

    Attributes:
        forward: calls of f.
        backward: cotangents sent back through f, each of a batch counted.
        forward_mode: calls of f with a tangent, which compute y and its derivative at once.
    """

    forward: int = 0
    backward: int = 0
    forward_mode: int = 0


@dataclass(frozen=True)
class Sizes:
    """K heads that depend on y, m entries of y, n of x (a complex entry counts twice).

    `rank` is that of the stacked cotangents, at most min(K, m); None while it is not known.
    """

    heads: int
    outputs: int
    inputs: int
    rank: int | None = None

    @property
    def directions(self) -> int:
        """The rank, or the most that it can be."""
        return min(self.heads, self.outputs) if self.rank is None else self.rank


@dataclass(frozen=True)
class Costs:
    """Seconds of one pass through f of each kind, and of one head with its gradient.

    A batched backward takes `batch` whatever is in it, and `batched` for each cotangent.
    `rows` is what finding the directions of the cotangents takes.
    """

    forward: float
    backward: float
    forward_mode: float
    batch: float
    batched: float
    head: float = 0.0
    rows: float = 0.0

    @classmethod
    def of(cls, forward: float, backward: float, head: float = 0.0) -> Costs:
        """The costs of an f whose time is arithmetic: there a batch saves nothing, and forward
        mode takes a forward and about the work of a backward."""
        return cls(forward, backward, forward + backward, 0.0, backward, head)


def expected_passes(path: str, sizes: Sizes, costs: Costs | None = None) -> Passes:
    """The passes through f that a path takes; `auto`, which depends on the costs, needs them.

    Raises:
        ValueError: `path` is unknown, or it is `auto` and there are no `costs`.
    """
    heads, outputs, inputs = sizes.heads, sizes.outputs, sizes.inputs
    if path == "auto":
        if costs is None:
            raise ValueError("The passes of `auto` depend on `costs`, and none are given.")
        return choose(sizes, costs).passes
    known = {
        "recompute": Passes(heads, heads),
        "retain_graph": Passes(1, heads),
        "reuse": Passes(1, outputs),
        "batched_vjp": Passes(1, heads),
        "low_rank_vjp": Passes(1, sizes.directions),
        # y comes along with the first column, and from a plain call where x is empty.
        "jvp": Passes(0 if inputs else 1, 0, inputs),
        "torchjd": Passes(1, heads),
    }
    if path not in known:
        raise ValueError(f"`path` is {path!r}. Allowed: {', '.join(PATHS)}.")
    return known[path]


def predicted_seconds(path: str, sizes: Sizes, costs: Costs) -> float:
    """Seconds of one execution of a path: its passes through f, and the heads."""
    if path == "auto":
        taken = choose(sizes, costs)
        return taken.seconds[taken.path]
    passes = expected_passes(path, sizes)
    seconds = sizes.heads * costs.head + passes.forward * costs.forward
    if path == "batched_vjp":
        return seconds + costs.batch + passes.backward * costs.batched
    if path == "low_rank_vjp" and sizes.outputs > 1:
        seconds += costs.rows
    return seconds + passes.backward * costs.backward + passes.forward_mode * costs.forward_mode


def candidate_seconds(path: str, sizes: Sizes, costs: Costs) -> float:
    """Seconds of one execution of `auto` that takes the path, one of `AUTOMATIC`: it batches
    directions in the place of heads, and has run f forward before it chose forward mode."""
    seconds = predicted_seconds(path, sizes, costs)
    if path == "batched_vjp":
        fewest = replace(sizes, heads=sizes.directions)
        spared = (sizes.heads - sizes.directions) * costs.head
        return predicted_seconds(path, fewest, costs) + spared
    return seconds + costs.forward if path == "jvp" and sizes.inputs else seconds


@dataclass(frozen=True)
class Plan:
    """Which path is taken, the passes through f it takes, and why.

    Attributes:
        path: the path that is taken; never `auto`.
        sizes: how many heads, entries of y and of x there are, and the rank where it was computed.
        passes: the passes through f of the whole execution, as far as they are known before it.
        seconds: by path, the predicted seconds of the candidates; empty where none were compared.
        notes: what to mind: why a path was not taken, what f does that a second run will not.
    """

    path: str
    sizes: Sizes
    passes: Passes
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", MappingProxyType(dict(self.seconds)))

    def noting(self, notes: Sequence[str]) -> Plan:
        """The same plan with further notes before its own."""
        if not notes:
            return self
        return replace(self, notes=(*notes, *self.notes))

    def __reduce__(self) -> tuple[object, ...]:
        # A read-only mapping does not pickle.
        return Plan, (self.path, self.sizes, self.passes, dict(self.seconds), self.notes)

    @property
    def sentence(self) -> str:
        """What is done and why, in one sentence."""
        sizes, passes = self.sizes, self.passes
        naive = f" instead of {sizes.heads}" if sizes.heads != passes.backward else ""
        backward = _several(passes.backward, "backward pass", "backward passes")
        if not sizes.heads:
            return "No pass back through f: no head depends on y."
        why = {
            "recompute": "f again for every head, as the naive code has it",
            "retain_graph": "one a head, as the naive code has it",
            "reuse": f"y has {_several(sizes.outputs, 'entry', 'entries')}, "
            "and one pass gives the row of dy/dx for each",
            "low_rank_vjp": self._directions(),
            "batched_vjp": "the cotangents of all heads go back together"
            if passes.backward == sizes.heads
            else self._directions(),
            "torchjd": "one a head, by torchjd",
        }
        if self.path == "jvp":
            forward = _several(passes.forward_mode, "forward-mode pass", "forward-mode passes")
            others = _several(sizes.directions, "backward pass", "backward passes")
            entries = _several(sizes.inputs, "entry", "entries")
            return (
                f"{forward} instead of {others}: x has {entries}, "
                "and one pass gives the column of dy/dx for each."
            )
        if self.path == "batched_vjp":
            backward += " in one batch"
        return f"{backward}{naive}: {why[self.path]}."

    def _directions(self) -> str:
        heads = _several(self.sizes.heads, "head depends", "heads depend")
        directions = self.sizes.directions
        if directions == self.sizes.heads:
            known = directions > 1 and self.sizes.rank is not None
            return "one a head" + (", none of which follows from the others" if known else "")
        only = "one direction" if directions == 1 else f"{directions} directions"
        return f"the {heads} on y through {only} only"


def choose(
    sizes: Sizes,
    costs: Costs,
    *,
    candidates: Mapping[str, float] | None = None,
    memory_limit: float | None = None,
    notes: tuple[str, ...] = (),
) -> Plan:
    """The plan of `auto`: the candidate with the least predicted time that fits the memory.

    Args:
        candidates: by path, the bytes that it takes beside the graph of f; by default all of
            `AUTOMATIC`, nothing being known of their memory.
        memory_limit: bytes that a candidate may take; None for no limit.

    Raises:
        ValueError: no candidate fits `memory_limit`.
    """
    sizes_of = candidates if candidates is not None else dict.fromkeys(AUTOMATIC, 0.0)
    fits = [
        path for path in AUTOMATIC
        if path in sizes_of and (memory_limit is None or sizes_of[path] <= memory_limit)
    ]  # fmt: skip
    if not fits:
        least = min(sizes_of.values())
        raise ValueError(
            f"`memory_limit` is {memory_limit:.3g} bytes, and the path that takes the least "
            f"needs about {least:.3g}. Give at least that, or None for no limit."
        )
    passes = {path: expected_passes(path, sizes) for path in fits}
    if "batched_vjp" in fits:  # of the same directions as one after the other
        passes["batched_vjp"] = expected_passes("low_rank_vjp", sizes)
    if "jvp" in fits and sizes.inputs:  # f, which has run forward by now, runs again
        passes["jvp"] = replace(passes["jvp"], forward=1)
    seconds = {path: candidate_seconds(path, sizes, costs) for path in fits}
    best = min(fits, key=lambda path: seconds[path])
    return Plan(best, sizes, passes[best], seconds, notes)


def _several(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
