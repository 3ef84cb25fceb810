"""The paths: the ways from the heads' own gradients at y to the gradients by x.

`recompute` and `retain_graph` are the naive ways, as people write them: a backward through f for
every head, and cotangents as they come. The others cut the graph at y, differentiate each head
alone, and send cotangents of norm 1 back through f: an entry of y at a time (`reuse`), one for
each independent direction (`low_rank_vjp`), or all heads' together (`batched_vjp`); or they send
tangents of x forward (`jvp`). `auto` compares what these will take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from explorer.engine.combination import Combination, Options, Products, split
from explorer.engine.heads import CheckedHead, HeadPass, differentiated
from explorer.engine.linear import Linear
from explorer.engine.plan import PEER, Passes, Plan, Sizes
from explorer.engine.saved import saved_bytes
from explorer.engine.structure import Inputs, Layout, real_size
from explorer.engine.trunk import CUT_OFF, Counter, Graph, Outputs, SlowFunction


@dataclass
class Found:
    """What a path gives: the heads' own parts, the products, and what is known of J after it."""

    passes: list[HeadPass]
    products: Products
    plan: Plan
    linear: Linear | None = None
    y: Outputs | None = None


# The naive paths, and the peer's: the gradients come whole, with nothing to combine.


def recompute(f: SlowFunction, heads: Sequence[CheckedHead], x: Inputs, own: list[Tensor],
              counter: Counter, options: Options) -> Found:  # fmt: skip
    """f and a backward through it for every head."""
    passes, y = [], None
    for head in heads:
        y = _called(f, own, counter, options)
        passes.append(_whole(head(y, y.tensors, x, own), y.tensors, own, head, counter, options))
    assert y is not None  # there is at least one head
    return _naive(passes, x, y, options, counter, f.notes)


def retain_graph(f: SlowFunction, heads: Sequence[CheckedHead], x: Inputs, own: list[Tensor],
                 counter: Counter, options: Options) -> Found:  # fmt: skip
    """f once, and a backward through it for every head."""
    y = _called(f, own, counter, options)
    passes = [
        _whole(head(y, y.tensors, x, own), y.tensors, own, head, counter, options, retain=True)
        for head in heads
    ]
    return _naive(passes, x, y, options, counter, f.notes)


def _called(f: SlowFunction, own: list[Tensor], counter: Counter, options: Options) -> Outputs:
    y = f(own)
    if options.create_graph:
        _require_twice_differentiable(Graph(y.tensors, own, counter))
    return y


def _whole(
    z: Tensor,
    y: Sequence[Tensor],
    own: Sequence[Tensor],
    head: CheckedHead,
    counter: Counter,
    options: Options,
    retain: bool = False,
) -> HeadPass:
    """The whole gradient of z by x, which goes back through f where z depends on y."""
    with counted(y, counter):
        found = differentiated(
            z, (), own, head.parameters, len(own), options.create_graph, retain or None
        )
    if all(each is None for each in found.direct) and not Graph(y, own, counter).connected:
        raise ValueError(CUT_OFF)  # the weights of f may require grad, but x does not reach y
    return found


@contextmanager
def counted(y: Sequence[Tensor], counter: Counter) -> Iterator[None]:
    """Counts a backward through f if a cotangent enters y in the block."""
    entered: list[bool] = []
    # A leaf has no node that a cotangent could enter, and nothing behind it.
    nodes = [get_gradient_edge(each).node for each in y if each.grad_fn is not None]
    handles = [node.register_prehook(lambda cotangents: entered.append(True)) for node in nodes]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        counter.backward += bool(entered)


def _naive(
    passes: list[HeadPass], x: Inputs, y: Outputs, options: Options, counter: Counter,
    notes: Sequence[str],
) -> Found:  # fmt: skip
    sizes = Sizes(counter.backward, real_size(y.tensors), real_size(x.tensors))
    plan = Plan(options.path, sizes, counter.passes, notes=tuple(notes))
    return Found(passes, [], plan)


def torchjd(f: SlowFunction, heads: Sequence[CheckedHead], x: Inputs, own: list[Tensor],
            counter: Counter, options: Options) -> Found:  # fmt: skip
    """The Jacobian of all heads by torchjd, which sends a cotangent back for each of them."""
    from torchjd.autojac import jac

    y = f(own)
    values = [head(y, y.tensors, x, own) for head in heads]
    parts = [
        differentiated(z, y.tensors, (), head.parameters, len(own), False, retain_graph=True)
        for z, head in zip(values, heads, strict=True)
    ]
    wanted = [row for row, z in enumerate(values) if z.requires_grad]
    if wanted:
        # One after the other: together, as is its default, takes longer where f is arithmetic.
        found = jac([values[row] for row in wanted], own, parallel_chunk_size=1)
        for place, row in enumerate(wanted):
            parts[row] = replace(parts[row], direct=[each[place] for each in found])
    # It sends zeros along for the others, so that each of them takes a pass if any does.
    counter.backward += len(wanted) * any(each.depends_on_y for each in parts)
    parts = [replace(each, cotangents=()) for each in parts]
    return _naive(parts, x, y, options, counter, f.notes)


def require_peer(create_graph: bool) -> None:
    """Raises unless torchjd is there and can do what is asked."""
    if find_spec("torchjd") is None:
        raise ModuleNotFoundError(
            f"`path` {PEER!r} needs the package torchjd, for comparison only: pip install torchjd."
        )
    if create_graph:
        raise ValueError(f"`path` {PEER!r} takes no `create_graph`. Choose another path.")


NAIVELY: dict[str, Callable[..., Found]] = {
    "recompute": recompute,
    "retain_graph": retain_graph,
    "torchjd": torchjd,
}


# The paths that cut the graph at y.


def cut(tensors: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    """y for the heads: values of its own that f is not behind, unless a later derivative is to
    go through f; and a node of its own at which a head's gradient ends in either case.

    It is no leaf: torch refuses to change a leaf in place, in words that name no culprit, while
    of any other tensor the change is seen, and told in the same sentence on every path.
    """
    if create_graph:
        return [each.clone() if each.requires_grad else _own(each) for each in tensors]
    return [_own(each) for each in tensors]


def _own(tensor: Tensor) -> Tensor:
    """A copy that requires grad: the given one keeps its values, graph, hooks and .grad."""
    # Autograd takes no tensor that was made in inference mode.
    values = tensor.clone() if tensor.is_inference() else tensor.detach()
    return values.requires_grad_().clone()


def through_y(f: SlowFunction, heads: Sequence[CheckedHead], x: Inputs, own: list[Tensor],
              counter: Counter, options: Options) -> Found:  # fmt: skip
    """Every path but the naive: f once, the heads alone at y, and the products of the plan."""
    if options.path == "jvp":
        y, linear = by_columns(f, own, options.create_graph)
        found = _alone(heads, y, x, own, options)
        cotangents = linear.layout.rows(_cotangents(found.passes))
        sizes = Sizes(len(cotangents), linear.layout.size, real_size(own))
        plan = Plan("jvp", sizes, counter.passes, notes=tuple(f.notes))
        found.products = split(linear.products(cotangents))
        found.linear, found.plan = linear, plan
        return found
    combination, found = prepared(f, heads, x, own, counter, options)
    found.products, found.linear, plan = combination.run()
    found.plan = plan.noting(f.notes)
    return found


def prepared(f: SlowFunction, heads: Sequence[CheckedHead], x: Inputs, own: list[Tensor],
             counter: Counter, options: Options) -> tuple[Combination, Found]:  # fmt: skip
    """f once and the heads alone: all but the products of their cotangents with dy/dx."""
    with saved_bytes() if options.memory_limit is not None else nullcontext() as saved:
        y = f(own)
    graph = Graph(y.tensors, own, counter, create_graph=options.create_graph)
    if options.create_graph:
        _require_twice_differentiable(graph)
    forward = f.seconds
    found = _alone(heads, y, x, own, options)
    combination = Combination(
        graph,
        graph.layout.rows(_cotangents(found.passes)),
        options,
        forward=forward,
        saved=saved.size if saved else 0,
        columns=lambda: by_columns(f, own, options.create_graph)[1],
    )
    return combination, found


def _alone(heads: Sequence[CheckedHead], y: Outputs, x: Inputs, own: Sequence[Tensor],
           options: Options) -> Found:  # fmt: skip
    """The heads, each differentiated at y with f cut off."""
    create_graph = options.create_graph
    apart = cut(y.tensors, create_graph)
    # The heads' x is another node than f's, so that their gradients by x end there.
    beside = cut(own, create_graph) if any(head.takes_x for head in heads) else list(own)
    passes = [head.alone(y, apart, x, beside, create_graph=create_graph) for head in heads]
    return Found(passes, [], Plan(options.path, Sizes(0, 0, 0), Passes()), None, y)


def _cotangents(passes: Sequence[HeadPass]) -> list[Sequence[Tensor | None]]:
    return [each.cotangents for each in passes if each.depends_on_y]


def _require_twice_differentiable(graph: Graph) -> None:
    if graph.compiled:
        raise ValueError(
            "`create_graph` needs gradients that can be differentiated again, and those of a "
            "compiled `f` cannot. Give the function as it was before torch.compile."
        )


def by_columns(
    f: SlowFunction, own: Sequence[Tensor], create_graph: bool
) -> tuple[Outputs, Linear]:
    """(y, J by columns): a pass forward with a tangent for each entry of x.

    A complex entry has two tangents, 1 and i, of which the two parts of its gradient follow.

    Raises:
        RuntimeError: some operation of f has no forward mode.
    """
    y, layout = None, None
    columns: list[list[Tensor]] = [[] for _ in own]
    depends = False
    for index, tensor in enumerate(own):
        for tangent in _units(tensor):
            y, derivatives = _column(f, own, index, tangent, create_graph)
            layout = layout or Layout(y.tensors)
            depends = depends or any(each is not None for each in derivatives)
            columns[index].append(layout.rows([derivatives])[0])
    if y is None or layout is None:  # x has no entries
        y = f(own)
        layout = Layout(y.tensors)
    elif not depends:
        raise ValueError(CUT_OFF)
    rows = [_from_columns(each, layout, tensor) for each, tensor in zip(columns, own, strict=True)]
    return y, Linear(layout, rows)


def _units(tensor: Tensor) -> Iterator[Tensor]:
    """The tangents of a tensor: a single entry 1, and i where it is complex."""
    for entry in range(tensor.numel()):
        tangent = torch.zeros(tensor.numel(), dtype=tensor.dtype, device=tensor.device)
        tangent[entry] = 1
        yield tangent.view(tensor.shape)
        if tensor.is_complex():
            yield (1j * tangent).view(tensor.shape)


def _column(
    f: SlowFunction, own: Sequence[Tensor], index: int, tangent: Tensor, create_graph: bool
) -> tuple[Outputs, list[Tensor | None]]:
    try:
        return f.along(own, {index: tangent}, create_graph)
    except RuntimeError as error:  # NotImplementedError is one
        text = str(error).splitlines()[0] if str(error) else ""
        words = ("forward AD", "forward mode", "jvp", "does not require grad", "used in the graph")
        if not any(word in text for word in words):
            raise
        raise RuntimeError(
            f"`f` cannot be passed through in forward mode: {text} Choose another path than 'jvp'."
        ) from error


def _from_columns(columns: list[Tensor], layout: Layout, tensor: Tensor) -> Tensor:
    """dy/dx of shape `(m, *shape)` for one tensor of x."""
    if not columns:
        return tensor.new_zeros((layout.size, *tensor.shape))
    matrix = torch.stack(columns, dim=1)
    if tensor.is_complex():
        matrix = torch.view_as_complex(matrix.reshape(layout.size, -1, 2))
    return matrix.reshape((layout.size, *tensor.shape))
