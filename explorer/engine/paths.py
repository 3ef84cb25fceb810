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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from explorer.fields import shown, suggestion
from explorer.engine.plan import PATHS, Passes

Head = Callable[..., Tensor]


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
        heads: a list of the g_i, each `g(y)` or `g(y, x)` (read from its signature) to one real
            number; a head may not change y or x in place, since y is shared by all of them.
        x: a real floating tensor of any shape, on any device; it is not changed.
        path: `"recompute"`, `"retain_graph"` or `"reuse"`. With K heads and m entries of y these
            pass through f K times forward and K backward; 1 and K; 1 and m.

    Raises:
        TypeError: `x`, y or a head's value is not a real floating tensor; `heads` is no list; `f`
            or a head cannot be called.
        ValueError: `path` is unknown, `heads` is empty, y holds a NaN or is cut off from x, a
            head's value is not one number, f changes x in place, or a head y or x. What f or a
            head itself raises is passed on.
    """
    if path not in list(PATHS):
        raise ValueError(
            f"`path` is {path!r}. {suggestion(str(path), tuple(PATHS))}Allowed: {', '.join(PATHS)}."
        )
    checked = [_Head(head, number) for number, head in enumerate(_listed(heads), start=1)]
    if not checked:
        raise ValueError("`heads` is empty. Give at least one head g(y) or g(y, x).")
    with torch.inference_mode(False), torch.enable_grad():
        own = _own(_real(x))
        counted = _Counted(f, own)
        values, found, jacobian = _WAYS[path](counted, checked, own)
    return Gradients(tuple(values), tuple(found), counted.passes(), jacobian)


def _listed(heads: object) -> Iterable[Head]:
    """The heads, unless they are one head, which is often iterable too, or names."""
    # A ModuleList can be "called" like every module, but it is nothing except a list.
    one = callable(heads) and not isinstance(heads, torch.nn.ModuleList)
    if one or not isinstance(heads, Iterable) or isinstance(heads, (str, Mapping)):
        raise TypeError(f"`heads` is a {type(heads).__name__}. Give a list of heads, such as [g].")
    return heads


def _real(x: object) -> Tensor:
    """x, a real floating tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"`x` is a {type(x).__name__}. Give a torch.Tensor.")
    if not x.is_floating_point():
        instead = "torch.view_as_real(x)" if x.is_complex() else "x.to(torch.float64)"
        raise TypeError(
            f"`x` has dtype {x.dtype}. Give a real floating tensor, for example {instead}."
        )
    return x


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
    cut = _own(y)
    values, found = [], []
    for head in heads:
        z = head(cut, x)
        values.append(z.detach())
        cotangent, direct = _head_gradients(z, cut, x)
        gradient = chain(cotangent, jacobian)
        found.append((gradient if direct is None else gradient + direct).to(x.dtype))
    return values, found, jacobian


_WAYS: dict[str, Callable[[_Counted, Sequence[_Head], Tensor], Found]] = {
    "recompute": _recompute,
    "retain_graph": _retain_graph,
    "reuse": _reuse,
}


def jacobian(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """dy/dx of shape `(*y.shape, *x.shape)` for y = f(x), one backward pass an entry of y.

    Raises as `gradients` does for f, x and y.
    """
    with torch.inference_mode(False), torch.enable_grad():
        own = _own(_real(x))
        return _rows(_Counted(f, own)(own), own)


def chain(cotangent: Tensor, jacobian: Tensor) -> Tensor:
    """dz/dx, Σ_j c_j · J_jk over the entries j of y, from c = dz/dy and J = dy/dx.

    `cotangent` has y's shape, `jacobian` the shape `(*y.shape, *x.shape)` on x's device. The
    result has x's shape and the wider dtype of the two: narrowed first, a large cotangent that
    meets a small J would overflow. Where J is exactly 0 its product is 0 even with an infinite
    cotangent: f has no edge there for it to go along.
    """
    wide = torch.promote_types(cotangent.dtype, jacobian.dtype)
    cotangent, jacobian = cotangent.to(jacobian.device, wide), jacobian.to(wide)
    if cotangent.isfinite().all():
        gradient: Tensor = torch.tensordot(cotangent, jacobian, dims=cotangent.ndim)
        return gradient
    rows = jacobian.reshape(cotangent.numel(), -1)
    products = torch.where(rows == 0, 0.0, cotangent.reshape(-1, 1) * rows)
    return products.sum(0).reshape(jacobian.shape[cotangent.ndim :])


def _own(tensor: Tensor) -> Tensor:
    """A copy that requires grad: the given one keeps its values, graph, hooks and .grad.

    It is no leaf: torch refuses to change a leaf in place, in words that name no culprit, while
    of any other tensor the change is seen, and told in the same sentence on every path.
    """
    # Autograd takes no tensor that was made in inference mode.
    values = tensor.clone() if tensor.is_inference() else tensor.detach()
    return values.requires_grad_().clone()


def _rows(y: Tensor, x: Tensor) -> Tensor:
    """dy/dx by rows: one cotangent of norm 1, a single entry of y, at a time.

    In x's dtype, as autograd gives it; an entry too small for that is lost.
    """
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

    def __init__(self, f: Callable[[Tensor], Tensor], x: Tensor) -> None:
        if not callable(f):
            raise TypeError(
                f"`f` is {shown(f)}, which cannot be called. "
                "Give a function that takes `x` to one torch.Tensor."
            )
        self._f = f
        self._x = x
        self._forward = 0
        self._backward = 0

    def __call__(self, x: Tensor) -> Tensor:
        version = x._version
        y = self._f(x)
        self._forward += 1
        if x._version != version:
            raise ValueError("`f` changes `x` in place. Let it work on a copy, x.clone().")
        self._check(y)
        # A tensor of our own for the hook: f may return x itself, or one tensor again and again.
        # Apart from x, and no view of a view: a head that changes y is then seen to change y, while
        # torch keeps some views from being changed, in its own words.
        y = y.clone() if y is x or y._is_view() else y.view_as(y)
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
        if not y.requires_grad or (self._forward == 1 and not _reaches(y, self._x)):
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
    """Whether the graph behind y leads to x."""
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
    """A head, called as `g(y)` or with x too; what it returns is checked, and what it left."""

    def __init__(self, head: Head, number: int) -> None:
        if not callable(head):
            raise TypeError(
                f"head {number} is {shown(head)}, which cannot be called. "
                "Give a function g(y) or g(y, x)."
            )
        self._head = head
        self._label = f"head {number} (`{getattr(head, '__name__', type(head).__name__)}`)"
        self._two, self._by_name = _takes_x(head)

    def __call__(self, y: Tensor, x: Tensor) -> Tensor:
        versions = y._version, x._version
        z = self._call(y, x)
        for name, tensor, version in zip("yx", (y, x), versions, strict=True):
            if tensor._version != version:
                raise ValueError(
                    f"{self._label} changes `{name}` in place. "
                    f"Let it work on a copy, {name}.clone()."
                )
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

    def _call(self, y: Tensor, x: Tensor) -> Tensor:
        if self._by_name:
            return self._head(y, x=x)
        return self._head(y, x) if self._two else self._head(y)


def _takes_x(head: Head) -> tuple[bool, bool]:
    """Whether a head must be given x too: (as its second positional parameter, by its name)."""
    try:
        # A module's own signature is that of its wrapper; the one that counts is forward's.
        signature = inspect.signature(getattr(head, "forward", head))
    except (TypeError, ValueError):  # built-in functions have none
        return False, False
    needed = [each for each in signature.parameters.values() if each.default is each.empty]
    positional = [each for each in needed if each.kind <= each.POSITIONAL_OR_KEYWORD]
    named = [each.name for each in needed if each.kind is each.KEYWORD_ONLY]
    return len(positional) >= 2, "x" in named
