"""Every dz_i/dx of z_i = g_i(f(x)) through a shared y = f(x).

    >>> import torch
    >>> x = torch.tensor(2.0, dtype=torch.float64)
    >>> result = gradients(lambda x: x**3, [lambda y: y**2, torch.sqrt], x)
    >>> [round(gradient.item(), 12) for gradient in result.gradients]  # 6x⁵ and 1.5·√x
    [192.0, 2.12132034356]
    >>> result.passes
    Passes(forward=1, backward=1, forward_mode=0)
    >>> print(result.plan.sentence)
    1 backward pass instead of 2: y has 1 entry, and one pass gives the row of dy/dx for each.

The chain rule, dz_i/dx = dg_i/dy · dy/dx + ∂g_i/∂x, needs dy/dx, or its products with the r
independent directions of the dg_i/dy, once for all heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import optree
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.autograd.graph import get_gradient_edge

from explorer.engine import paths
from explorer.engine.combination import Combination, Options, split
from explorer.engine.heads import (
    CheckedHead,
    Head,
    HeadPass,
    Parameters,
    differentiated,
    listed,
    named,
    parameters_of,
    scalar,
)
from explorer.engine.linear import Linear
from explorer.engine.paths import NAIVELY, Found, counted, cut, require_peer
from explorer.engine.plan import NAIVE, PATHS, PEER, Passes, Plan, Sizes
from explorer.engine.structure import Inputs, real_size, require_one_device
from explorer.engine.trunk import (
    Counter,
    Graph,
    Outputs,
    SlowFunction,
    hooked,
    require_alive,
    restored_grad,
    unhooked,
)
from explorer.fields import shown, suggestion


@dataclass(frozen=True, eq=False)  # tensors have no single truth to be compared by
class Gradients:
    """The heads' values and gradients, in the order of the heads.

    Unless `create_graph` was given, none of them requires grad. While it lives, a result holds
    dy/dx or, where fewer passes were enough, the graph of f: that is what further heads cost no
    pass, or one at most, for.

    Attributes:
        values: z_i, each of shape `()`.
        gradients: dz_i/dx, each in x's structure, shapes and dtypes; of a module, a dict of its
            parameters that require grad.
        head_gradients: dz_i/dθ_i by name, for the parameters of each head; empty dicts for heads
            that have none.
        plan: which path was taken, and why.
        passes: the passes through f that this took, counted as they happened.
    """

    values: tuple[Tensor, ...]
    gradients: tuple[Any, ...]
    head_gradients: tuple[dict[str, Tensor], ...]
    plan: Plan
    passes: Passes
    _source: _Source = field(repr=False)

    @property
    def jacobian(self) -> Tensor | None:
        """dy/dx of shape `(*y.shape, *x.shape)`, where x and y are one tensor each, y is real, and
        the path formed it; else None."""
        return self._source.jacobian()

    def add(self, *heads: Any) -> Gradients:
        """This result with further heads behind its own (of `pullback`: further losses).

        No pass through f is made where dy/dx is known, or where the heads depended on y along
        fewer directions than they were many, and the new one along the same; else one backward
        pass a head, on the graph that was kept.

        Raises:
            RuntimeError: such a pass is needed, and the path or `pullback` kept no graph.
        """
        return self._source.added(self, heads)

    def surrogate(self, x: Any) -> Any:
        """y_s = y + J·(x − x₀) at x = x₀: y by value, with dy/dx as it was taken here behind it.

        For code that calls `.backward()` itself: what is computed from y_s has the gradients by x
        that it would have through f, and costs no pass through f where dy/dx is known. First
        order only: a second derivative does not see f, and is refused.

        Args:
            x: the x of this result, with tensors that require grad; its values are not read.

        Raises:
            ValueError: x has another structure, or nothing in it requires grad.
        """
        return self._source.surrogate(x)


def gradients(
    f: Callable[..., Any],
    heads: Iterable[Head],
    x: Any,
    *,
    path: str = "auto",
    create_graph: bool = False,
    chunk_size: int | None = None,
    memory_limit: int | None = None,
    head_parameters: Iterable[Parameters] | None = None,
) -> Gradients:
    """The gradients dz_i/dx of z_i = g_i(f(x)) for every head g_i.

    With K heads on m entries of y and n of x (a complex entry counts twice), and r the rank of the
    K cotangents dg_i/dy, the paths pass through f

    - `recompute`: K times forward and K backward; `retain_graph`: 1 and K. As people write them.
    - `reuse`: 1 and m. `low_rank_vjp`: 1 and r. `batched_vjp`: 1 and K, in one vmapped backward,
      or one after the other, with a note in the plan, where vmap cannot take f.
    - `jvp`: n times in forward mode.
    - `auto`: 1, and what is predicted to be the quickest of the last four.
    - `torchjd`: 1 and K, by that package, if it is installed; for comparison.

    Every gradient but the naive ones is within 1e-10·‖dy/dx‖₂·‖dg_i/dy‖ of the exact product in
    float64.

    Args:
        f: takes x to y: one floating or complex tensor of any shape, or several in a structure.
        heads: a list of the g_i, each `g(y)` or `g(y, x)` (read from its signature) to one real
            number; a head may not change y or x in place, since y is shared by all of them.
        x: a floating or complex tensor of any shape, or several in tuples, lists and dicts, or a
            module: f is then given the module, and its parameters that require grad are meant.
            All on one device; nothing in x is changed.
        path: one of the above.
        create_graph: whether the gradients are to be differentiated again, by x or by whatever
            else f and the heads depend on. A rank below K and m is then not made use of: the
            derivative of a cotangent need not lie among the others.
        chunk_size: how many cotangents go together in a batched backward; by default as many as
            `memory_limit` allows.
        memory_limit: bytes that `auto` may take beside the graph of f; by default no limit.
        head_parameters: for each head a module, a dict of tensors by name, or None: what else it
            is differentiated by, in the same pass. A head that is a module needs none given. What
            f holds of the same tensors counts on the naive paths alone, which do not cut the graph.

    Raises:
        TypeError: something in `x`, y or a head's value is of the wrong type; `heads` is no list;
            `f` or a head cannot be called.
        ValueError: an argument is not allowed, y holds a NaN or is cut off from x, a head's value
            is not one number, tensors are on several devices, f changes x in place, or a head y
            or x; `create_graph` with a compiled f.
        RuntimeError: `path` is `jvp` and f has no forward mode.
        ModuleNotFoundError: `path` is `torchjd`, and it is not installed.
        What f or a head itself raises is passed on.

    Warns:
        UserWarning: f is random, or keeps state. Every pass of one call gets the same random
            numbers and buffers, but a second call is another function.

    The formulas: Griewank and Walther, Evaluating Derivatives (2008), chapter 3.
    """
    options = _options(path, PATHS, create_graph, chunk_size, memory_limit)
    if path == PEER:
        require_peer(create_graph)
    checked = _checked_heads(heads, head_parameters)
    with torch.inference_mode(False), torch.enable_grad():
        inputs = Inputs.of(x, "x")
        own = cut(inputs.tensors, create_graph)
        counter = Counter()
        way = NAIVELY.get(path, paths.through_y)
        found = way(SlowFunction(f, inputs, counter), checked, inputs, own, counter, options)
        return _OfFunction(inputs, own, counter, options, found).result(checked)


def pullback(
    losses: Iterable[Tensor],
    features: Any,
    inputs: Any,
    *,
    path: str = "auto",
    retain_graph: bool = False,
    create_graph: bool = False,
    chunk_size: int | None = None,
    memory_limit: int | None = None,
    head_parameters: Iterable[Parameters] | None = None,
) -> Gradients:
    """The gradient of every loss by the inputs, on a graph that is there already.

    For training loops: the same result as that of `gradients`, with no call of f. Hooks of the
    features and inputs are called once for each loss, with its whole gradient there.

        >>> trunk, heads = torch.nn.Linear(3, 2), [torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)]
        >>> features = trunk(torch.ones(5, 3))
        >>> losses = [head(features).square().mean() for head in heads]
        >>> result = pullback(losses, features, trunk, head_parameters=heads)
        >>> [sorted(each) for each in (result.gradients[0], result.head_gradients[0])]
        [['bias', 'weight'], ['bias', 'weight']]

    Args:
        losses: a list of the z_i, each a real tensor of one number.
        features: the shared y: the tensor, or the tensors in a structure, through which the
            losses depend on the inputs. What of a loss does not go through them is added.
        inputs: x: a tensor, tensors in a structure, or a module, of which the parameters that
            require grad are meant.
        path: `retain_graph`, `reuse`, `batched_vjp`, `low_rank_vjp` or `auto`: the others call f.
        retain_graph: whether the graph between features and inputs is to stay. By default it is
            freed, as by `torch.autograd.grad`, unless a batch was sent.
        memory_limit: with one, `auto` sends no batch: what that would take is not known here.
        create_graph, chunk_size, head_parameters: as for `gradients`.

    Raises:
        TypeError, ValueError: as `gradients` does; and where no loss depends on the features, or
            they not on the inputs.
        RuntimeError: the graph was already freed.
    """
    known = {name: PATHS[name] for name in PATHS if name not in ("recompute", "jvp", PEER)}
    options = replace(
        _options(path, known, create_graph, chunk_size, memory_limit),
        retain_graph=retain_graph,
        extend=False,
    )
    values = listed(losses, "losses", "loss")
    given = parameters_of(head_parameters, len(values))
    x = Inputs.of(inputs, "inputs")
    y = Inputs.of(features, "features")
    require_one_device(y.tensors, "features")
    _require_grad(y, "features")
    _require_grad(x, "inputs")
    with torch.inference_mode(False), torch.enable_grad():
        source = _OfGraph(x, y, Counter(), options)
        return source.taken(
            [scalar(z, f"loss {number}") for number, z in enumerate(values, start=1)],
            [named(each, f"loss {number}") for number, each in enumerate(given, start=1)],
        )


def plan(
    f: Callable[..., Any],
    heads: Iterable[Head],
    x: Any,
    *,
    create_graph: bool = False,
    memory_limit: int | None = None,
) -> Plan:
    """What `gradients` with path `auto` would do, and why: f forward once and the heads, no more.

        >>> print(plan(lambda x: x * 2.0, [torch.sum, torch.mean], torch.ones(3)).sentence)
        1 backward pass instead of 2: the 2 heads depend on y through one direction only.

    Arguments and errors are those of `gradients`.
    """
    options = _options("auto", PATHS, create_graph, None, memory_limit)
    checked = _checked_heads(heads, None)
    with torch.inference_mode(False), torch.enable_grad():
        inputs = Inputs.of(x, "x")
        own = cut(inputs.tensors, create_graph)
        counter = Counter()
        function = SlowFunction(f, inputs, counter)
        combination = paths.prepared(function, checked, inputs, own, counter, options)[0]
        return combination.decide()[0].noting(function.notes)


def jacobian(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """dy/dx of shape `(*y.shape, *x.shape)` for y = f(x), one backward pass an entry of y.

    Raises as `gradients` does for f, x and y; TypeError where x or y is not one tensor, or y is
    complex.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"`x` is a {type(x).__name__}. Give one torch.Tensor.")
    with torch.inference_mode(False), torch.enable_grad():
        inputs = Inputs.of(x, "x")
        own = cut(inputs.tensors, False)
        counter = Counter()
        y = SlowFunction(f, inputs, counter)(own)
        if len(y.leaves) > 1 or y.tensors[0].is_complex():
            what = "several tensors" if len(y.leaves) > 1 else "a complex tensor"
            raise TypeError(f"`f` returned {what}. Return one real tensor.")
        graph = Graph(y.tensors, own, counter)
        nothing = graph.layout.rows([[None]])
        _, linear, _ = Combination(graph, nothing, Options("reuse")).run()
        assert linear.rows is not None  # that is what `reuse` takes
        return linear.rows[0].reshape((*y.tensors[0].shape, *x.shape))


def _options(
    path: object,
    known: Mapping[str, str],
    create_graph: bool,
    chunk_size: int | None,
    memory_limit: int | None,
) -> Options:
    if path not in list(known):
        hint = suggestion(str(path), tuple(known))
        raise ValueError(f"`path` is {path!r}. {hint}Allowed: {', '.join(known)}.")
    for name, value in (("chunk_size", chunk_size), ("memory_limit", memory_limit)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (whole and value > 0):
            allowed = "a whole number above 0, or None"
            raise ValueError(f"`{name}` is {shown(value)}. Allowed: {allowed}.")
    return Options(str(path), create_graph, chunk_size, memory_limit)


def _checked_heads(heads: object, head_parameters: object) -> list[CheckedHead]:
    given = listed(heads, "heads", "g")
    parameters = parameters_of(head_parameters, len(given))
    pairs = zip(given, parameters, strict=True)
    return [CheckedHead(head, number, each) for number, (head, each) in enumerate(pairs, start=1)]


def _require_grad(tensors: Inputs, name: str) -> None:
    wrong = sum(not tensor.requires_grad for tensor in tensors.tensors)
    if wrong:
        of = f"{wrong} of {len(tensors.tensors)} tensors do" if wrong > 1 else "a tensor does"
        raise ValueError(
            f"`{name}`: {of} not require grad. Give those that the losses were computed from, "
            "with no .detach() and outside of torch.no_grad()."
        )


class _Source:
    """What a result was taken from, and what is known of it: for further heads."""

    def __init__(self, inputs: Inputs, y: Outputs | Inputs | None, counter: Counter,
                 options: Options) -> None:  # fmt: skip
        self.inputs = inputs
        self.y = y
        self.counter = counter
        self.options = options
        self.linear: Linear | None = None

    def assembled(
        self,
        passes: Sequence[HeadPass],
        products: Iterator[list[Tensor] | None],
        plan: Plan,
        before: Gradients | None = None,
        passed: Passes | None = None,
    ) -> Gradients:
        """The result of these heads, behind those of another one."""
        found = [
            self.inputs.build(
                [
                    self.finished(tensor, _sum(tensor, *parts))
                    for tensor, *parts in zip(
                        self.inputs.tensors,
                        (next(products, None) if each.depends_on_y else None) or self._nothing,
                        each.direct,
                        strict=True,
                    )
                ]
            )
            for each in passes
        ]
        return Gradients(
            (*(before.values if before else ()), *(each.value for each in passes)),
            (*(before.gradients if before else ()), *found),
            (*(before.head_gradients if before else ()), *(each.parameters for each in passes)),
            plan,
            passed or self.counter.passes,
            self,
        )

    @property
    def _nothing(self) -> list[Tensor | None]:
        return [None] * len(self.inputs.tensors)

    def added(self, result: Gradients, heads: Sequence[Any]) -> Gradients:
        with torch.inference_mode(False), torch.enable_grad():
            linear = self._known()
            already = self.counter.backward
            passes = self.further(heads, len(result.values) + 1)
            dependent = [each.cotangents for each in passes if each.depends_on_y]
            rows = linear.layout.rows(dependent)
            products = split(linear.further(rows, self._missing)) if dependent else []
            backward = result.passes.backward + self.counter.backward - already
            passed = replace(result.passes, backward=backward)
            return self.assembled(passes, iter(products), result.plan, result, passed)

    def finished(self, tensor: Tensor, gradient: Tensor) -> Tensor:
        """A whole gradient by one tensor of x, as it is handed out."""
        return gradient

    def further(self, heads: Sequence[Any], first: int) -> list[HeadPass]:
        """Further heads, numbered from `first`, each differentiated alone."""
        raise NotImplementedError

    _missing = ""
    """What is said where a pass is needed, and the graph was not kept."""

    def _known(self) -> Linear:
        if self.linear is None:
            raise RuntimeError(
                f"The path {self.options.path!r} keeps nothing of f for further heads. Take the "
                "gradients by another path, such as 'auto'."
            )
        return self.linear

    def jacobian(self) -> Tensor | None:
        y, x = self.y, self.inputs.tensors
        if self.linear is None or not self.linear.complete or y is None:
            return None
        rows = self.linear.rows
        if rows is None or len(x) > 1 or len(y.tensors) > 1 or y.tensors[0].is_complex():
            return None
        return rows[0].reshape((*y.tensors[0].shape, *x[0].shape))

    def surrogate(self, x: Any) -> Any:
        linear = self._known()
        assert self.y is not None  # it is there wherever something is known of it
        given = Inputs.of(x, "x")
        one, other = (optree.tree_structure(i.build(i.tensors)) for i in (given, self.inputs))
        if one != other:
            raise ValueError(
                f"`x` has the structure {one}, and that of this result was {other}. Give the x "
                "that the gradients are taken by."
            )
        shapes = [tuple(each.shape) for each in self.inputs.tensors]
        if [tuple(each.shape) for each in given.tensors] != shapes:
            raise ValueError(
                f"`x` has tensors of the shapes {[tuple(t.shape) for t in given.tensors]}, and "
                f"those of this result were {shapes}. Give the x that the gradients are taken by."
            )
        if not any(each.requires_grad for each in given.tensors):
            raise ValueError("`x` does not require grad. Call .requires_grad_() on it first.")
        back = _Back(linear, self._missing)
        values = [each.detach() for each in self.y.tensors]
        apply: Callable[..., tuple[Tensor, ...]] = _Surrogate.apply
        found = apply(back, len(values), *values, *given.tensors)
        return self.y.build(found)


@dataclass(frozen=True)
class _Back:
    """How a surrogate's cotangent becomes a gradient."""

    linear: Linear
    missing: str

    def __call__(self, cotangents: Sequence[Tensor | None]) -> list[Tensor]:
        row = self.linear.layout.rows([cotangents])
        return [each[0] for each in self.linear.further(row, self.missing)]


class _Surrogate(torch.autograd.Function):
    """y by value, with J·x̄ behind it."""

    @staticmethod
    def forward(ctx: Any, back: _Back, outputs: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.back = back
        ctx.dtypes = [each.dtype for each in tensors[outputs:]]
        ctx.outputs = outputs
        return tuple(each.clone() for each in tensors[:outputs])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        found = ctx.back(cotangents)
        narrowed = [each.to(dtype) for each, dtype in zip(found, ctx.dtypes, strict=True)]
        return (None, None, *[None] * ctx.outputs, *narrowed)


class _OfFunction(_Source):
    """The source of `gradients`: y and x as the heads were given them."""

    _missing = "The graph of f was not kept."  # it always is

    def __init__(self, inputs: Inputs, own: list[Tensor], counter: Counter, options: Options,
                 found: Found) -> None:  # fmt: skip
        super().__init__(inputs, found.y, counter, options)
        self.linear = found.linear
        self._own = own
        self._found = found

    def result(self, heads: Sequence[CheckedHead]) -> Gradients:
        found = self._found
        return self.assembled(found.passes, iter(found.products), found.plan)

    def further(self, heads: Sequence[Any], first: int) -> list[HeadPass]:
        y, create_graph = self._found.y, self.options.create_graph
        assert y is not None
        checked = [CheckedHead(head, number, None) for number, head in enumerate(heads, first)]
        # Afresh each time: a head that is refused for changing them may not spoil them for others.
        apart = cut(y.tensors, create_graph)
        beside = cut(self._own, create_graph) if any(h.takes_x for h in checked) else self._own
        return [h.alone(y, apart, self.inputs, beside, create_graph=create_graph) for h in checked]


class _OfGraph(_Source):
    """The source of `pullback`: the tensors of a graph that was there already."""

    _missing = (
        "The graph between `features` and `inputs` was freed. Give `pullback` retain_graph=True to "
        "add losses later."
    )

    def __init__(self, x: Inputs, y: Inputs, counter: Counter, options: Options) -> None:
        super().__init__(x, y, counter, options)
        self._features = {_edge(each) for each in y.tensors}
        self._x = {_edge(each) for each in x.tensors}
        self._dead_ends: set[Any] = set()

    def taken(self, losses: Sequence[Tensor], parameters: Sequence[dict[str, Tensor]]) -> Gradients:
        x, y, options = self.inputs, self.y, self.options
        assert y is not None
        with restored_grad([*y.tensors, *x.tensors]):
            if options.path in NAIVE:
                return self._naive(losses, parameters)
            passes = self._alone(losses, parameters)
            if not any(each.depends_on_y for each in passes):
                raise ValueError(
                    "`features` are not part of the graph of any of the `losses`. Give the tensors "
                    "themselves that the losses were computed from."
                )
            graph = Graph(
                y.tensors,
                x.tensors,
                self.counter,
                name="features",
                cut_off="`features` do not depend on `inputs`. Give the inputs or parameters that "
                "they were computed from.",
                create_graph=options.create_graph,
            )
            rows = graph.layout.rows([each.cotangents for each in passes if each.depends_on_y])
            products, self.linear, plan = Combination(graph, rows, options).run()
            return self.assembled(passes, iter(products), plan)

    def _naive(
        self, losses: Sequence[Tensor], parameters: Sequence[dict[str, Tensor]]
    ) -> Gradients:
        """A backward through the whole graph for every loss."""
        y, x, options = self.y, self.inputs.tensors, self.options
        assert y is not None
        passes = []
        for number, (z, named_tensors) in enumerate(zip(losses, parameters, strict=True), start=1):
            retain = options.retain_graph or number < len(losses)
            with counted(y.tensors, self.counter), alive("losses"), unhooked(x):
                passes.append(
                    differentiated(
                        z, (), x, named_tensors, len(x), options.create_graph, retain or None
                    )
                )
        sizes = Sizes(self.counter.backward, real_size(y.tensors), real_size(x))
        plan = Plan(options.path, sizes, self.counter.passes)
        return self.assembled(passes, iter(()), plan)

    def _alone(
        self, losses: Sequence[Tensor], parameters: Sequence[dict[str, Tensor]]
    ) -> list[HeadPass]:
        """Each loss differentiated by the features, and by the inputs with the features held."""
        y, x, create_graph = self.y, self.inputs.tensors, self.options.create_graph
        assert y is not None
        # A feature that is given twice has one cotangent, not one for each time.
        first = {_edge(each): place for place, each in reversed(list(enumerate(y.tensors)))}
        places = sorted(first.values())
        passes = []
        # Held with no direct term too: a feature may be computed from another one.
        with held(y.tensors), alive("losses"), unhooked(x):
            for z, named_tensors in zip(losses, parameters, strict=True):
                # Kept: losses may share more than the features, and be used for more than this.
                found = differentiated(
                    z,
                    [y.tensors[place] for place in places],
                    x if self._uses_x(z) else (),
                    named_tensors,
                    len(x),
                    create_graph,
                    retain_graph=True,
                )
                by_place = dict(zip(places, found.cotangents, strict=True))
                cotangents = [by_place.get(place) for place in range(len(y.tensors))]
                passes.append(replace(found, cotangents=cotangents))
        return passes

    def finished(self, tensor: Tensor, gradient: Tensor) -> Tensor:
        return hooked(tensor, gradient)

    def further(self, heads: Sequence[Any], first: int) -> list[HeadPass]:
        losses = [scalar(z, f"loss {number}") for number, z in enumerate(heads, start=first)]
        return self._alone(losses, [{}] * len(losses))

    def _uses_x(self, z: Tensor) -> bool:
        """Whether z depends on x by a way that does not lead through the features."""
        if not z.requires_grad:
            return False
        start = _edge(z)
        waiting, seen = [start], {start}
        while waiting:
            edge = waiting.pop()
            if edge in self._features or edge[0] in self._dead_ends:
                continue
            if edge in self._x:
                return True
            ahead = [each for each in edge[0].next_functions if each[0] is not None]
            waiting += [each for each in ahead if each not in seen]
            seen.update(ahead)
        self._dead_ends |= {node for node, _ in seen} - {node for node, _ in self._features}
        return False


def _edge(tensor: Tensor) -> tuple[Any, int]:
    edge = get_gradient_edge(tensor)
    return edge.node, edge.output_nr


@contextmanager
def held(tensors: Sequence[Tensor]) -> Iterator[None]:
    """A block in which no gradient goes back beyond these tensors.

    What autograd captures of a tensor, it takes before the node behind it is entered; there the
    gradient is made undefined, and all that follows of it is too, at no cost but the calls.
    """
    places: dict[Any, set[int]] = {}
    for tensor in tensors:
        node, number = _edge(tensor)
        places.setdefault(node, set()).add(number)

    def without(numbers: set[int]) -> Callable[[tuple[Tensor, ...]], Any]:
        return lambda gradients: tuple(
            None if number in numbers else each for number, each in enumerate(gradients)
        )

    handles = [node.register_prehook(without(numbers)) for node, numbers in places.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def alive(name: str) -> Iterator[None]:
    """A block whose error of a graph that is gone says what to do."""
    try:
        yield
    except RuntimeError as error:
        require_alive(error, name)
        raise


def _sum(tensor: Tensor, product: Tensor | None, direct: Tensor | None) -> Tensor:
    """The gradient by one tensor of x, in its dtype: both ways to it together."""
    if product is None or direct is None:
        only = product if direct is None else direct
        return torch.zeros_like(tensor) if only is None else only.to(tensor.dtype)
    return (product + direct).to(tensor.dtype)
