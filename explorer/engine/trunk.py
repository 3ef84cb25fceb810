"""f, passed through and counted: called, with a tangent, and sent cotangents back through."""

from __future__ import annotations

import functools
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import optree
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.function import BackwardCFunction, once_differentiable
from torch.autograd.graph import get_gradient_edge
from torch.overrides import TorchFunctionMode

from explorer.engine.plan import Passes
from explorer.engine.structure import Inputs, Layout, require_one_device
from explorer.fields import shown

CUT_OFF = (
    "`f` returned a tensor that is cut off from `x`, so it has no gradient. Leave out .detach(), "
    ".item(), .numpy(), torch.no_grad() and new torch.tensor(...) in `f`."
)
FREED = (
    "The graph of `{name}` was already freed by an earlier backward. Take the gradients before "
    "that backward, or give that one retain_graph=True."
)


_make_dual: Callable[[Tensor, Tensor], Tensor] = forward_ad.make_dual
_unpack_dual: Callable[[Any], tuple[Tensor, Tensor | None]] = forward_ad.unpack_dual


class Counter:
    """The passes through f so far, counted as they happen."""

    def __init__(self) -> None:
        self.forward = 0
        self.backward = 0
        self.forward_mode = 0

    @property
    def passes(self) -> Passes:
        return Passes(self.forward, self.backward, self.forward_mode)


@dataclass(slots=True)
class Outputs:
    """y: the tensors in it that can be differentiated, and its structure around them.

    Leaves of another kind (an integer mask, a constant) are handed to the heads as they are.
    """

    tensors: list[Tensor]
    leaves: list[Any]
    places: list[int]
    spec: optree.PyTreeSpec

    def build(self, tensors: Sequence[Tensor]) -> Any:
        """y's structure with these tensors in their places."""
        if len(self.leaves) == 1:
            return optree.tree_unflatten(self.spec, tensors)
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        return optree.tree_unflatten(self.spec, leaves)


class SlowFunction:
    """f, checked and counted.

    A second call of an f that is random, or that keeps state in buffers, would be another
    function: every call gets the random numbers and the buffers of the first.
    """

    def __init__(self, f: Callable[..., Any], inputs: Inputs, counter: Counter) -> None:
        if not callable(f):
            raise TypeError(
                f"`f` is {shown(f)}, which cannot be called. "
                "Give a function that takes `x` to a torch.Tensor, or to several."
            )
        self._f = f
        self._inputs = inputs
        self._counter = counter
        self._repetition = _Repetition(f, inputs)
        self._first: list[Tensor] | None = None
        self._places: list[int] | None = None  # of y's tensors, where a graph has told
        self._switches = True  # whether f may enter no_grad(), as far as forward mode has told
        self._told = False  # whether it was said that f keeps state
        self.seconds = 0.0
        """Wall seconds of the last call."""
        self.notes: list[str] = []

    def rewind(self) -> None:
        """Puts random numbers and buffers back to what the first call found, where it changed
        them."""
        self._repetition.rewind()

    def repeated(self, x: Any) -> Any:
        """f itself, neither checked nor counted."""
        with self._repetition:
            return self._f(x)

    def __call__(self, own: Sequence[Tensor]) -> Outputs:
        """y at these tensors of x, with the graph that leads back to them."""
        y, leaves, spec = self._call(own)
        self._counter.forward += 1
        places = [place for place, leaf in enumerate(leaves) if _differentiable(leaf)]
        if not places:
            raise nothing_to_differentiate(y, leaves)
        for place in places:
            leaves[place] = _apart(leaves[place], own)
        self._places = places
        return self._checked(Outputs([leaves[place] for place in places], leaves, places, spec))

    def along(
        self, own: Sequence[Tensor], tangents: Mapping[int, Tensor], create_graph: bool
    ) -> tuple[Outputs, list[Tensor | None]]:
        """(y, its derivative along tangents of tensors of x, by their places), by forward mode.

        The derivative has a tensor for each of y's, None where y does not depend on those inputs.
        """
        # Not under no_grad(): what f itself puts under it would not be told from the rest.
        duals = list(own) if create_graph else [each.detach() for each in own]
        with dual_level():
            for index, tangent in tangents.items():
                duals[index] = _make_dual(duals[index], tangent)
            with heeding_no_grad() if self._switches else nullcontext() as heeding:
                y, leaves, spec = self._call(duals)
            # It slows every operation, and f does the same each time.
            self._switches = heeding is not None and heeding.needed
            self._counter.forward_mode += 1
            places = [
                place
                for place, leaf in enumerate(leaves)
                if isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.is_complex())
            ]
            if not places:
                raise nothing_to_differentiate(y, leaves)
            # Where f was called before, y is what required grad then: no constants beside it.
            places = places if self._places is None else self._places
            derivatives: list[Tensor | None] = []
            for place in places:
                primal, derivative = _unpack_dual(leaves[place])
                if not create_graph:  # the weights of f may require grad
                    primal = primal.detach()
                    derivative = None if derivative is None else derivative.detach()
                leaves[place] = primal
                derivatives.append(derivative)
            found = Outputs([leaves[place] for place in places], leaves, places, spec)
            return self._checked(found), derivatives

    def _call(self, own: Sequence[Tensor]) -> tuple[Any, list[Any], optree.PyTreeSpec]:
        versions = [tensor._version for tensor in own]
        bound = self._inputs.bound(self._f, own)
        with self._repetition:
            start = time.perf_counter()
            y = bound()
            self.seconds = time.perf_counter() - start
        if [tensor._version for tensor in own] != versions:
            raise ValueError("`f` changes `x` in place. Let it work on a copy, x.clone().")
        leaves, spec = optree.tree_flatten(y)
        return y, leaves, spec

    def _checked(self, found: Outputs) -> Outputs:
        require_one_device(found.tensors, "y")
        for tensor in found.tensors:
            missing = tensor.detach().isnan()
            if missing.any():
                wrong = int(missing.sum())
                raise ValueError(
                    f"`f` returned NaN in {wrong} of {tensor.numel()} entries, so no gradient is "
                    "right. Check the values of `x` and the operations in `f`."
                )
        plain = [tensor.detach() for tensor in found.tensors]
        if self._first is None:
            self._first = plain
            self.notes += self._repetition.notes
            self.notes += _autocast_note(found.tensors, self._inputs.tensors)
            for note in self._repetition.notes:
                warn(note)
        elif not (self._told or self._same(plain)):
            self._told = True
            note = (
                "`f` gave another y when it was called again with the same `x`, random numbers and "
                "buffers, so it keeps state: the passes of this result are of different functions."
            )
            self.notes.append(note)
            warn(note)
        return found

    def _same(self, plain: list[Tensor]) -> bool:
        """Whether y is that of the first call, but for rounding."""
        assert self._first is not None
        return len(plain) == len(self._first) and all(
            one.shape == other.shape
            and torch.allclose(one, other, rtol=torch.finfo(one.dtype).eps ** 0.5, atol=0.0)
            for one, other in zip(plain, self._first, strict=True)
        )


@contextmanager
def dual_level() -> Iterator[None]:
    """A block of forward mode, one at a time: torch has a single level for all threads."""
    with _LEVEL, forward_ad.dual_level():
        yield


_LEVEL = threading.RLock()  # f may ask for another level: torch says in its words that it cannot


@contextmanager
def heeding_no_grad() -> Iterator[_HeedingNoGrad]:
    """A block in which `torch.no_grad()` stops tangents too, as it does cotangents."""
    with forward_ad._set_fwd_grad_enabled(True), _HeedingNoGrad() as heeding:
        yield heeding


class _HeedingNoGrad(TorchFunctionMode):
    needed = False

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        # By no_grad() and its like, not by what surrounds the kernels of a compiled function.
        if func is torch._C._set_grad_enabled and sys._getframe(1).f_code.co_filename == _SWITCHES:
            torch._C._set_fwd_grad_enabled(torch.is_grad_enabled())
            self.needed = True
        return found


_SWITCHES = torch.autograd.grad_mode.__file__


def warn(message: str) -> None:
    """Warns at the line outside this package that asked for the gradients."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


_FOLDER = str(Path(__file__).parent)


def _differentiable(leaf: object) -> bool:
    return isinstance(leaf, Tensor) and leaf.requires_grad


def _apart(y: Tensor, own: Sequence[Tensor]) -> Tensor:
    """A tensor of our own for y: f may return x itself, or one tensor again and again.

    Apart from x, and no view of a view: a head that changes y is then seen to change y, while
    torch keeps some views from being changed, in its own words.
    """
    return y.clone() if y._is_view() or any(y is each for each in own) else y.view_as(y)


def nothing_to_differentiate(y: object, leaves: list[Any]) -> Exception:
    """Why y, of which no leaf requires grad, is no value of f, as the error to raise."""
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    if len(tensors) != len(leaves) or not tensors:
        what = type(y).__name__
        return TypeError(
            f"`f` returned a {what}. Return a torch.Tensor, or several in a tuple, list or dict."
        )
    if not any(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors):
        return TypeError(f"`f` returned dtype {tensors[0].dtype}. Return a floating tensor.")
    return ValueError(CUT_OFF)


def _autocast_note(y: Sequence[Tensor], x: Sequence[Tensor]) -> list[str]:
    if not torch.is_autocast_enabled(y[0].device.type):
        return []
    coarse = max((tensor.dtype for tensor in y), key=lambda dtype: torch.finfo(dtype).eps)
    if torch.finfo(coarse).eps <= max(torch.finfo(tensor.dtype).eps for tensor in x):
        return []
    return [
        f"`f` ran under autocast, so y is {str(coarse).removeprefix('torch.')}: "
        "the gradients have no more digits than that."
    ]


class _Repetition:
    """Gives every call of f the random numbers and the buffers that the first call had.

    After the last call both are as one single call leaves them.
    """

    def __init__(self, f: Callable[..., Any], inputs: Inputs) -> None:
        self._modules = _modules(f, inputs.module)
        self._device = inputs.tensors[0].device
        self._before: tuple[list[Tensor], list[Tensor]] | None = None
        self._after: tuple[list[Tensor], list[Tensor]] | None = None
        self.notes: list[str] = []

    def __enter__(self) -> None:
        if self._before is None:
            self._before = self._generators(), [each.clone() for each in self._buffers()]
        else:
            self._restore(self._before)

    def __exit__(self, *error: object) -> None:
        assert self._before is not None
        if self._after is None:
            generators = self._generators()
            buffers = self._buffers()
            self.notes = _changes(self._before, (generators, buffers))
            self._after = generators, [each.clone() for each in buffers] if self.notes else []
        else:
            self._restore(self._after)

    def rewind(self) -> None:
        if self._before is not None:
            self._restore(self._before)

    def _generators(self) -> list[Tensor]:
        states = [torch.get_rng_state()]
        if self._device.type == "cuda":
            states.append(torch.cuda.get_rng_state(self._device))
        elif self._device.type == "mps":
            states.append(torch.mps.get_rng_state())
        return states

    def _buffers(self) -> list[Tensor]:
        return [buffer for module in self._modules for buffer in module.buffers()]

    def _restore(self, state: tuple[list[Tensor], list[Tensor]]) -> None:
        if not self.notes:
            return
        generators, buffers = state
        torch.set_rng_state(generators[0])
        if self._device.type == "cuda":
            torch.cuda.set_rng_state(generators[1], self._device)
        elif self._device.type == "mps":
            torch.mps.set_rng_state(generators[1])
        with torch.no_grad():
            for buffer, kept in zip(self._buffers(), buffers, strict=True):
                # By .data: what autograd saved of a buffer counts as unchanged, as it is again
                # when the last call is over.
                buffer.data.copy_(kept)


def _changes(
    before: tuple[list[Tensor], list[Tensor]], after: tuple[list[Tensor], list[Tensor]]
) -> list[str]:
    """What a call of f changed beside x, as sentences."""
    notes = []
    if not all(map(torch.equal, before[0], after[0])):
        notes.append(
            "`f` is random (it drew random numbers, as dropout does): every pass here got the same "
            "ones, but a second run is another function, with other gradients."
        )
    if not all(map(torch.equal, before[1], after[1])):
        notes.append(
            "`f` keeps state (a buffer of its module changed, as those of batch norm in training "
            "mode do): every pass here began with the same state, but a second run is another "
            "function."
        )
    return notes


def _modules(f: object, x: torch.nn.Module | None) -> list[torch.nn.Module]:
    """The modules that f is, or holds in a closure, a partial, a method or a global it names."""
    found = [] if x is None else [x]
    waiting, seen = [f], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, torch.nn.Module):
            found.append(each)
        elif isinstance(each, functools.partial):
            waiting += [each.func, *each.args, *each.keywords.values()]
        elif isinstance(each, MethodType):
            waiting += [each.__self__, each.__func__]
        elif isinstance(each, FunctionType):
            waiting += [cell.cell_contents for cell in each.__closure__ or () if _filled(cell)]
            names = each.__code__.co_names
            waiting += [each.__globals__[name] for name in names if name in each.__globals__]
    return found


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name that is not bound yet
        return False


_ONCE = once_differentiable(lambda context: None).__code__


def _is_once_differentiable(node: object) -> bool:
    """Whether it is of a function in Python of which the backward is marked so."""
    if not isinstance(node, BackwardCFunction):
        return False
    backward = node._forward_cls.backward  # type: ignore[attr-defined]
    return getattr(backward, "__code__", None) is _ONCE


class Graph:
    """The graph that leads from the tensors of x to those of y: cotangents sent back through it.

    Backward runs outside of autocast, as torch asks: each operation in the dtype of its forward.
    """

    def __init__(
        self,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        counter: Counter,
        *,
        name: str = "y",
        cut_off: str = CUT_OFF,
        create_graph: bool = False,
    ) -> None:
        self.outputs = list(outputs)
        self.inputs = list(inputs)
        self.layout = Layout(outputs)
        self.create_graph = create_graph
        self.counter = counter
        self._name = name
        self._cut_off = cut_off

    def back(self, cotangent: Tensor, *, keep: bool) -> list[Tensor]:
        """cᵀ·dy/dx for each tensor of x, from c of shape `(m,)`, laid out as y is.

        With `keep` the graph stays for further passes.
        """
        found = self._found(self.layout.tensors(cotangent), keep)
        self.counter.backward += 1
        return found

    def back_together(self, cotangents: Tensor, *, keep: bool) -> list[Tensor]:
        """The same for B cotangents `(B, m)` in one vectorized backward: each result `(B, *shape)`.

        Raises:
            Exception: whatever vmap raises that cannot go through some operation of f.
        """
        # Not `is_grads_batched`: its older vmap took 4 to 17 times as long on dense layers.
        together = torch.vmap(lambda *each: tuple(self._found(each, keep)))
        found = together(*self.layout.tensors(cotangents))
        self.counter.backward += len(cotangents)
        return list(found)

    def _found(self, cotangents: Sequence[Tensor], keep: bool) -> list[Tensor]:
        device = self.outputs[0].device.type
        hooked = [*self.outputs, *self.inputs]
        with without_autocast(device), restored_grad(self.outputs), unhooked(hooked):
            try:
                found = torch.autograd.grad(
                    self.outputs,
                    self.inputs,
                    cotangents,
                    retain_graph=keep or self.create_graph,
                    create_graph=self.create_graph,
                    allow_unused=True,
                )
            except RuntimeError as error:
                require_alive(error, self._name)
                raise
        if all(each is None for each in found):
            raise ValueError(self._cut_off)
        return [
            torch.zeros_like(each) if gradient is None else gradient
            for each, gradient in zip(self.inputs, found, strict=True)
        ]

    @property
    def operations(self) -> int:
        """How many operations the graph holds."""
        return len(self._nodes)

    @property
    def compiled(self) -> bool:
        """Whether a part of f is a compiled function."""
        return any(node.name().startswith("CompiledFunction") for node in self._nodes)

    @property
    def once_differentiable(self) -> bool:
        """Whether a part has a gradient, or is one, that is not to be differentiated: torch says so
        only to who goes through it, and leaves its derivative out where others lead around it."""
        return any(
            node.name() == "torch::autograd::Error" or _is_once_differentiable(node)
            for node in self._nodes
        )

    @property
    def connected(self) -> bool:
        """Whether any tensor of x leads to y."""
        return any(get_gradient_edge(each).node in self._nodes for each in self.inputs)

    def gives(self, found: Sequence[Tensor], cotangent: Tensor) -> bool:
        """Whether these products of a cotangent are no one else's, and may be written over.

        Those of an f that only moves its input are the cotangent itself, those of a sum one and
        the same tensor; and what a function written in Python gives may be anything.
        """
        if self.create_graph:
            return False
        places = [each.untyped_storage().data_ptr() for each in (*found, cotangent)]
        if len(set(places)) < len(places):
            return False
        if not all(each.is_contiguous() for each in found):  # one number may stand for many
            return False
        return not any(isinstance(node, BackwardCFunction) for node in self._nodes)

    @cached_property
    def _nodes(self) -> set[Any]:
        waiting = [get_gradient_edge(each).node for each in self.outputs]
        seen = set(waiting)
        while waiting:
            for node, _ in waiting.pop().next_functions:
                if node is not None and node not in seen:
                    seen.add(node)
                    waiting.append(node)
        return seen


@contextmanager
def unhooked(tensors: Sequence[Tensor]) -> Iterator[None]:
    """A block in which the hooks of these tensors are not called: they are for whole gradients,
    not for what these are combined of."""
    hooks = [each._backward_hooks for each in tensors if each._backward_hooks]
    kept = [dict(each) for each in hooks]
    for each in hooks:
        each.clear()
    try:
        yield
    finally:
        for each, before in zip(hooks, kept, strict=True):
            each.update(before)


def hooked(tensor: Tensor, gradient: Tensor) -> Tensor:
    """The gradient as the tensor's hooks change it."""
    for hook in (tensor._backward_hooks or {}).values():
        changed = hook(gradient)
        gradient = gradient if changed is None else changed
    return gradient


def require_alive(error: RuntimeError, name: str) -> None:
    """Raises the error in words that say what to do, if it is that of a graph that is gone."""
    if "second time" in str(error):
        raise RuntimeError(FREED.format(name=name)) from error


def without_autocast(device_type: str) -> AbstractContextManager[Any]:
    """Where autocast is on, a block in which it is off."""
    if torch.is_autocast_enabled(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()


@contextmanager
def restored_grad(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Keeps what `.grad` of tensors with `retain_grad()` holds: our passes would overwrite it."""
    kept = [(each, each.grad) for each in tensors if each.retains_grad]
    try:
        yield
    finally:
        for each, gradient in kept:
            each.grad = gradient
