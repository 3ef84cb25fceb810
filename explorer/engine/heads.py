"""A head g_i, called and checked, and differentiated alone: the graph is cut at y."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from explorer.engine.structure import Inputs
from explorer.engine.trunk import Outputs, without_autocast
from explorer.fields import shown

Head = Callable[..., Tensor]
Parameters = torch.nn.Module | Mapping[str, Tensor] | None


@dataclass(slots=True)
class HeadPass:
    """What one head gives, f apart.

    Attributes:
        value: z, of shape `()`.
        cotangents: dz/dy for each tensor of y, None where z does not depend on it.
        direct: ∂z/∂x with y held fixed for each tensor of x, None where z does not use it.
        parameters: dz/dθ for each of the head's own parameters.
    """

    value: Tensor
    cotangents: Sequence[Tensor | None]
    direct: Sequence[Tensor | None]
    parameters: dict[str, Tensor] = field(default_factory=dict)

    @property
    def depends_on_y(self) -> bool:
        return any(each is not None for each in self.cotangents)


class CheckedHead:
    """A head, called as `g(y)` or with x too; what it returns is checked, and what it left."""

    def __init__(self, head: Head, number: int, parameters: Parameters) -> None:
        if not callable(head):
            raise TypeError(
                f"head {number} is {shown(head)}, which cannot be called. "
                "Give a function g(y) or g(y, x)."
            )
        self._head = head
        self.label = f"head {number} (`{getattr(head, '__name__', type(head).__name__)}`)"
        self._two, self._by_name = takes_x(head)
        if parameters is None and isinstance(head, torch.nn.Module):
            parameters = head
        self.parameters = named(parameters, self.label)

    @property
    def takes_x(self) -> bool:
        return self._two or self._by_name

    def __call__(self, y: Outputs, y_tensors: Sequence[Tensor], x: Inputs, own: Sequence[Tensor]
    ) -> Tensor:  # fmt: skip
        """z at these tensors of y and x."""
        watched = [("y", y_tensors), *([("x", own)] if self.takes_x else [])]
        versions = [[tensor._version for tensor in tensors] for _, tensors in watched]
        z = self._call(y.build(y_tensors), x, own)
        for (name, tensors), before in zip(watched, versions, strict=True):
            if [tensor._version for tensor in tensors] != before:
                raise ValueError(
                    f"{self.label} changes `{name}` in place. "
                    f"Let it work on a copy, {name}.clone()."
                )
        return scalar(z, self.label)

    def _call(self, y: Any, x: Inputs, own: Sequence[Tensor]) -> Any:
        if self._by_name:
            return x.call(lambda y, x: self._head(y, x=x), own, y)
        return x.call(self._head, own, y) if self._two else self._head(y)

    def alone(
        self,
        y: Outputs,
        y_tensors: Sequence[Tensor],
        x: Inputs,
        own: Sequence[Tensor],
        *,
        create_graph: bool,
    ) -> HeadPass:
        """The head and its gradients by y, by x with y held fixed, and by its parameters.

        The tensors are cut off from f, or stand for themselves in a graph that goes on behind
        them: what they depend on is not gone into.
        """
        z = self(y, y_tensors, x, own)
        return differentiated(
            z, y_tensors, own if self.takes_x else (), self.parameters, len(own), create_graph
        )


def differentiated(
    z: Tensor,
    y: Sequence[Tensor],
    x: Sequence[Tensor],
    parameters: Mapping[str, Tensor],
    inputs: int,
    create_graph: bool,
    retain_graph: bool | None = None,
) -> HeadPass:
    """The gradients of z by the tensors of y, of x (none of them, or all `inputs`), and by the
    head's parameters, in one backward through the head."""
    value = z if create_graph else z.detach()
    nothing: list[Tensor | None] = [None] * inputs
    if not z.requires_grad:
        zeros = {name: torch.zeros_like(each) for name, each in parameters.items()}
        return HeadPass(value, [None] * len(y), nothing, zeros)
    wanted = [*y, *x, *parameters.values()]
    if not wanted:
        return HeadPass(value, [], nothing)
    with without_autocast(z.device.type):  # as torch asks of every backward
        found = torch.autograd.grad(
            z, wanted, allow_unused=True, create_graph=create_graph, retain_graph=retain_graph
        )
    by_parameter = found[len(y) + len(x) :]
    return HeadPass(
        value,
        found[: len(y)],
        found[len(y) : len(y) + len(x)] if x else nothing,
        {
            name: torch.zeros_like(each) if gradient is None else gradient
            for (name, each), gradient in zip(parameters.items(), by_parameter, strict=True)
        },
    )


def scalar(z: object, label: str) -> Tensor:
    """z as a tensor of shape `()`, if it is one real floating number."""
    if not isinstance(z, Tensor):
        raise TypeError(
            f"{label} returned a {type(z).__name__}. Return a torch.Tensor of one number."
        )
    if z.numel() != 1:
        raise ValueError(
            f"{label} returned shape {tuple(z.shape)}. Return one number, "
            "for example with .sum() or .mean()."
        )
    if not z.is_floating_point():
        raise TypeError(f"{label} returned dtype {z.dtype}. Return a real floating one.")
    return z if z.ndim == 0 else z.reshape(())


def listed(items: object, name: str, example: str) -> list[Any]:
    """The items, unless they are one head or tensor, which is often iterable too, or names."""
    # A ModuleList can be "called" like every module, but it is nothing except a list.
    one = callable(items) and not isinstance(items, torch.nn.ModuleList)
    if one or not isinstance(items, Iterable) or isinstance(items, (str, Mapping, Tensor)):
        raise TypeError(f"`{name}` is a {type(items).__name__}. Give a list, such as [{example}].")
    found = list(items)
    if not found:
        raise ValueError(f"`{name}` is empty. Give at least one {example}.")
    return found


def parameters_of(given: object, count: int) -> list[Parameters]:
    """`head_parameters`, one entry a head; all None where it is not given."""
    if given is None:
        return [None] * count
    entries = listed(given, "head_parameters", "{'weight': weight}")
    if len(entries) != count:
        raise ValueError(
            f"`head_parameters` has {len(entries)} entries for {count} heads. "
            "Give one for each: a module, a dict of tensors by name, or None."
        )
    return entries


def named(parameters: Parameters, label: str) -> dict[str, Tensor]:
    """The parameters that a head is to be differentiated by, by name."""
    if parameters is None:
        return {}
    if isinstance(parameters, torch.nn.Module):
        return {name: each for name, each in parameters.named_parameters() if each.requires_grad}
    if not isinstance(parameters, Mapping):
        raise TypeError(
            f"`head_parameters` of {label} is a {type(parameters).__name__}. "
            "Give a module, a dict of tensors by name, or None."
        )
    for name, each in parameters.items():
        if not (isinstance(each, Tensor) and each.requires_grad):
            raise ValueError(
                f"`head_parameters` of {label}: {shown(name)} is no tensor that requires grad. "
                "Call .requires_grad_() on it before the head uses it."
            )
    return dict(parameters)


def positional(head: Head) -> tuple[Head, bool]:
    """(the head as `g(y)` or `g(y, x)`, whether it is given x)."""
    second, by_name = takes_x(head)
    if not by_name:
        return head, second

    @wraps(head)
    def g(y: Any, x: Any) -> Tensor:
        return head(y, x=x)

    return g, True


def takes_x(head: Head) -> tuple[bool, bool]:
    """Whether a head must be given x too: (as its second positional parameter, by its name)."""
    # A module's own signature is that of its wrapper; the one that counts is forward's.
    function = getattr(head, "forward", head)
    if isinstance(function, FunctionType) and not function.__code__.co_kwonlyargcount:
        # The usual head, told without the cost of its signature.
        return function.__code__.co_argcount - len(function.__defaults__ or ()) >= 2, False
    if getattr(function, "__text_signature__", "") is None:
        return False, False  # as torch's own functions, which have no signature to be read
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built-in functions have none
        return False, False
    needed = [each for each in signature.parameters.values() if each.default is each.empty]
    positional = [each for each in needed if each.kind <= each.POSITIONAL_OR_KEYWORD]
    keyword = [each.name for each in needed if each.kind is each.KEYWORD_ONLY]
    return len(positional) >= 2, "x" in keyword
