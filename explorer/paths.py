"""The paths: every dz_i/dx of z_i = g_i(f(x)) through a shared y = f(x).

`recompute` and `retain_graph` are the naive ways, as people write them: a backward through f for
every head. `reuse` takes dy/dx once, cuts the graph at y, differentiates each head alone and
combines the two by the chain rule, dz_i/dx = dg_i/dy · dy/dx (+ ∂g_i/∂x where a head uses x).

    >>> import torch
    >>> x = torch.tensor(2.0, dtype=torch.float64)
    >>> result = gradients(lambda x: x**3, [lambda y: y**2, torch.sqrt], x, path="reuse")
    >>> [round(gradient.item(), 12) for gradient in result.gradients]  # 6x⁵ and 1.5·√x
    [192.0, 2.12132034356]
    >>> result.passes
    Passes(forward=1, backward=1, forward_mode=0)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from explorer.fields import suggestion
from explorer.planning import PATHS

Head = Callable[..., Tensor]


@dataclass(frozen=True)
class Passes:
    """How often f was passed through: calls, cotangents sent back, tangents sent forward."""

    forward: int = 0
    backward: int = 0
    forward_mode: int = 0


@dataclass(frozen=True)
class Gradients:
    """The heads' values and gradients, in the order of the heads; nothing requires grad.

    Attributes:
        values: z_i, each of shape `()`.
        gradients: dz_i/dx, each of x's shape and dtype.
        passes: the passes through f that this took, counted as they happened.
        jacobian: dy/dx of shape `(*y.shape, *x.shape)` where the path formed it, else None.
    """

    values: tuple[Tensor, ...]
    gradients: tuple[Tensor, ...]
    passes: Passes
    jacobian: Tensor | None = field(default=None, repr=False)


def gradients(
    f: Callable[[Tensor], Tensor], heads: Iterable[Head], x: Tensor, *, path: str = "reuse"
) -> Gradients:
    """The gradients dz_i/dx of z_i = g_i(f(x)) for every head g_i.

    Args:
        f: takes x to y, one real floating tensor of any shape that depends on x.
        heads: the g_i, each `g(y)` or `g(y, x)` (read from its signature) to one real number.
        x: a real floating tensor of any shape, on any device; it is not changed.
        path: `"recompute"`, `"retain_graph"` or `"reuse"`. With K heads and m entries of y these
            pass through f K times forward and K backward; 1 and K; 1 and m.

    Raises:
        TypeError: `x`, y or a head's value is not a real floating tensor; `heads` is no list.
        ValueError: `path` is unknown, `heads` is empty, y holds a NaN or is cut off from x, or a
            head's value is not one number. What f or a head itself raises is passed on.
    """
    if path not in list(PATHS):
        raise ValueError(
            f"`path` is {path!r}. {suggestion(str(path), tuple(PATHS))}Allowed: {', '.join(PATHS)}."
        )
    if not isinstance(heads, Iterable):
        raise TypeError(f"`heads` is a {type(heads).__name__}. Give a list of heads, such as [g].")
    checked = [_Head(head, number) for number, head in enumerate(heads, start=1)]
    if not checked:
        raise ValueError("`heads` is empty. Give at least one head g(y) or g(y, x).")
    if not isinstance(x, Tensor):
        raise TypeError(f"`x` is a {type(x).__name__}. Give a torch.Tensor.")
    if not x.is_floating_point():
        raise TypeError(
            f"`x` has dtype {x.dtype}, which has no gradient. "
            "Give a real floating dtype, for example x.to(torch.float64)."
        )
    with torch.inference_mode(False), torch.enable_grad():
        leaf = _leaf(x)
        counted = _Counted(f, leaf)
        values, found, jacobian = _WAYS[path](counted, checked, leaf)
    return Gradients(tuple(values), tuple(found), counted.passes(), jacobian)


Found = tuple[list[Tensor], list[Tensor], Tensor | None]


def _recompute(f: _Counted, heads: Sequence[_Head], x: Tensor) -> Found:
    values, found = [], []
    for head in heads:
        z = head(f(x), x)
        values.append(z.detach())
        found.append(_gradient(z, x))
    return values, found, None


def _retain_graph(f: _Counted, heads: Sequence[_Head], x: Tensor) -> Found:
    y = f(x)
    values, found = [], []
    for head in heads:
        z = head(y, x)
        values.append(z.detach())
        found.append(_gradient(z, x, retain_graph=True))
    return values, found, None


def _reuse(f: _Counted, heads: Sequence[_Head], x: Tensor) -> Found:
    y = f(x)
    jacobian = _rows(y, x)
    cut = y.detach().requires_grad_()
    values, found = [], []
    for head in heads:
        z = head(cut, x)
        values.append(z.detach())
        cotangent, direct = _head_gradients(z, cut, x)
        # Scalar y multiplies; else dz_k = Σ_j c_j · J_jk over the entries j of y.
        chained = (
            cotangent.to(jacobian) * jacobian
            if y.ndim == 0
            else torch.tensordot(cotangent.to(jacobian), jacobian, dims=y.ndim)
        )
        found.append(chained if direct is None else chained + direct)
    return values, found, jacobian


_WAYS: dict[str, Callable[[_Counted, Sequence[_Head], Tensor], Found]] = {
    "recompute": _recompute,
    "retain_graph": _retain_graph,
    "reuse": _reuse,
}


def jacobian(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """dy/dx of shape `(*y.shape, *x.shape)` for y = f(x), one backward pass an entry of y.

    Raises as `gradients` does for f and y.
    """
    with torch.inference_mode(False), torch.enable_grad():
        leaf = _leaf(x)
        return _rows(_Counted(f, leaf)(leaf), leaf)


def _leaf(x: Tensor) -> Tensor:
    """A leaf of our own with x's values: the caller's keeps its graph, its hooks and its .grad."""
    # Autograd takes no tensor that was made in inference mode.
    return (x.clone() if x.is_inference() else x.detach()).requires_grad_()


def _rows(y: Tensor, x: Tensor) -> Tensor:
    """dy/dx by rows: one cotangent of norm 1, a single entry of y, at a time."""
    if y.ndim == 0:
        return _gradient(y, x)
    rows = torch.empty(y.numel(), x.numel(), dtype=x.dtype, device=x.device)
    cotangent = torch.zeros(y.numel(), dtype=y.dtype, device=y.device)
    for entry in range(y.numel()):
        cotangent[entry] = 1
        last = entry == y.numel() - 1  # which frees the graph as it goes
        row = _gradient(y, x, cotangent.view(y.shape), retain_graph=not last)
        rows[entry] = row.reshape(-1)
        cotangent[entry] = 0
    return rows.view(*y.shape, *x.shape)


def _gradient(
    z: Tensor, x: Tensor, cotangent: Tensor | None = None, *, retain_graph: bool = False
) -> Tensor:
    """The gradient of z, zeros where z does not depend on x."""
    if not z.requires_grad:
        return torch.zeros_like(x)
    (found,) = torch.autograd.grad(
        z, x, cotangent, retain_graph=retain_graph, allow_unused=True, materialize_grads=True
    )
    return found


def _head_gradients(z: Tensor, y: Tensor, x: Tensor) -> tuple[Tensor, Tensor | None]:
    """(∂z/∂y, ∂z/∂x with y held fixed or None where the head does not use x)."""
    if not z.requires_grad:
        return torch.zeros_like(y), None
    by_y, by_x = torch.autograd.grad(z, (y, x), allow_unused=True)
    return torch.zeros_like(y) if by_y is None else by_y, by_x


class _Counted:
    """f, checked and counted: a forward pass when it is called, a backward when a cotangent
    enters its output, so that the counts are what happened and not what was meant."""

    def __init__(self, f: Callable[[Tensor], Tensor], leaf: Tensor) -> None:
        self._f = f
        self._leaf = leaf
        self._forward = 0
        self._backward = 0

    def __call__(self, x: Tensor) -> Tensor:
        y = self._f(x)
        self._forward += 1
        self._check(y)
        # A tensor of our own for the hook: f may return x itself, or one tensor again and again.
        y = y.view_as(y)
        get_gradient_edge(y).node.register_prehook(self._count_backward)
        return y

    def passes(self) -> Passes:
        return Passes(self._forward, self._backward)

    def _count_backward(self, cotangents: tuple[Tensor, ...]) -> None:
        self._backward += 1

    def _check(self, y: object) -> None:
        if not isinstance(y, Tensor):
            raise TypeError(f"`f` returned a {type(y).__name__}. Return one torch.Tensor.")
        if not y.is_floating_point():
            raise TypeError(
                f"`f` returned dtype {y.dtype}. Return a real floating tensor; "
                "of a complex one take the real part, the imaginary part or the absolute value."
            )
        # The weights of f may require grad though its y is cut off from x. One look is enough.
        if not y.requires_grad or (self._forward == 1 and not _reaches(y, self._leaf)):
            raise ValueError(
                "`f` returned a tensor that is cut off from `x`, so it has no gradient. Leave out "
                ".detach(), .item(), .numpy(), torch.no_grad() and new torch.tensor(...) in `f`."
            )
        wrong = int(y.detach().isnan().sum())
        if wrong:
            raise ValueError(
                f"`f` returned NaN in {wrong} of {y.numel()} entries, so no gradient is right. "
                "Check the values of `x` and the operations in `f`."
            )


def _reaches(y: Tensor, x: Tensor) -> bool:
    """Whether the graph behind y leads to the leaf x."""
    goal = get_gradient_edge(x).node
    waiting = [get_gradient_edge(y).node]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if node is goal:
            return True
        following = {each for each, _ in node.next_functions if each is not None}
        waiting.extend(following - seen)
        seen |= following
    return False


class _Head:
    """A head, called as `g(y)` or `g(y, x)`, whose value is checked."""

    def __init__(self, head: Head, number: int) -> None:
        self._head = head
        self._uses_x = _takes_two(head)
        self._label = f"head {number} (`{getattr(head, '__name__', type(head).__name__)}`)"

    def __call__(self, y: Tensor, x: Tensor) -> Tensor:
        z = self._head(y, x) if self._uses_x else self._head(y)
        if not isinstance(z, Tensor):
            raise TypeError(
                f"{self._label} returned a {type(z).__name__}. Return a torch.Tensor of one number."
            )
        if z.numel() != 1:
            raise ValueError(
                f"{self._label} returned shape {tuple(z.shape)}. Return one number, "
                "for example with .sum() or .mean()."
            )
        if not z.is_floating_point():
            raise TypeError(f"{self._label} returned dtype {z.dtype}. Return a real floating one.")
        return z.reshape(())


def _takes_two(head: Head) -> bool:
    """Whether a head must be given x too: it has two positional parameters without a default."""
    try:
        # A module's own signature is that of its wrapper; the one that counts is forward's.
        signature = inspect.signature(getattr(head, "forward", head))
    except (TypeError, ValueError):  # built-in functions have none
        return False
    needed = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and parameter.default is parameter.empty
    ]
    return len(needed) >= 2
