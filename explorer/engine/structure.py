"""Tensors in a nested structure, as a flat list and back, and laid end to end as one vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import optree
import torch
from torch import Tensor


@dataclass(frozen=True)
class Inputs:
    """x as a list of tensors.

    Attributes:
        tensors: the tensors of x, in the order of its structure.
        build: x's structure, from as many tensors; of a module, a dict by parameter name.
        module: the module that x is, else None.
    """

    tensors: list[Tensor]
    build: Callable[[Sequence[Tensor]], Any]
    module: torch.nn.Module | None = None

    @classmethod
    def of(cls, x: Any, name: str) -> Inputs:
        """Reads x: a tensor, nested tuples, lists and dicts of them, or a module, of which the
        parameters that require grad are meant.

        Raises:
            TypeError: something in x is no real or complex floating tensor.
            ValueError: x holds no tensor, or tensors on several devices.
        """
        module = x if isinstance(x, torch.nn.Module) else None
        if module is not None:
            x = {key: each for key, each in module.named_parameters() if each.requires_grad}
        elif isinstance(x, Iterator):  # such as module.parameters()
            x = list(x)
        leaves, spec = optree.tree_flatten(x)
        if not leaves:
            what = "no parameter that requires grad" if module is not None else "no tensor"
            raise ValueError(f"`{name}` holds {what}, so there is nothing to differentiate by.")
        for number, leaf in enumerate(leaves):
            if not (isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.is_complex())):
                raise _no_input(leaf, spec.accessors()[number].codify(name))
        require_one_device(leaves, name)
        return cls(leaves, lambda tensors: optree.tree_unflatten(spec, tensors), module)

    def call(self, function: Callable[..., Any], tensors: Sequence[Tensor], *first: Any) -> Any:
        """`function(*first, x)`, with these tensors in the place of x's own."""
        return self.bound(function, tensors)(*first)

    def bound(self, function: Callable[..., Any], tensors: Sequence[Tensor]) -> Callable[..., Any]:
        """`function` with x as its last argument."""
        if self.module is None:
            x = self.build(tensors)
            return lambda *first: function(*first, x)
        caller = _Caller(self.module, function)
        named = {f"module.{key}": each for key, each in self.build(tensors).items()}
        return lambda *first: torch.func.functional_call(caller, named, first)


class _Caller(torch.nn.Module):
    """Calls a function with a module, whose parameters `functional_call` replaces meanwhile."""

    def __init__(self, module: torch.nn.Module, function: Callable[..., Any]) -> None:
        super().__init__()
        self.module = module
        self._function = (function,)  # in a tuple: a function that is a module is no part of x

    def forward(self, *first: Any) -> Any:
        return self._function[0](*first, self.module)


def _no_input(leaf: object, name: str) -> TypeError:
    if not isinstance(leaf, Tensor):
        return TypeError(
            f"`{name}` is a {type(leaf).__name__}. Give a torch.Tensor, or several in tuples, "
            "lists and dicts; whatever else `f` needs, it can hold itself."
        )
    return TypeError(
        f"`{name}` has dtype {leaf.dtype}. Give a floating tensor, for example "
        f"{name}.to(torch.float64); an integer has no gradient."
    )


def require_one_device(tensors: Sequence[Tensor], name: str) -> None:
    """Raises ValueError unless all tensors are on one device."""
    devices = list(dict.fromkeys(tensor.device for tensor in tensors))
    if len(devices) > 1:
        raise ValueError(
            f"`{name}` has tensors on several devices ({', '.join(map(str, devices))}). "
            "Bring them to one with .to(device)."
        )


def real_size(tensors: Sequence[Tensor]) -> int:
    """How many real numbers the tensors hold; a complex entry is two."""
    return sum(tensor.numel() * (2 if tensor.is_complex() else 1) for tensor in tensors)


class Layout:
    """How tensors lie end to end in one real vector; a complex entry is its two parts.

    `size` is the vector's length. `dtype` is the widest of the tensors' real dtypes, at least
    float32: in a half precision products and decompositions would lose what the tensors hold.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._shapes = [tensor.shape for tensor in tensors]
        self._dtypes = [tensor.dtype for tensor in tensors]
        self._sizes = [real_size([tensor]) for tensor in tensors]
        self.size = sum(self._sizes)
        self.device = tensors[0].device
        self.dtype = reduce(torch.promote_types, map(_real, self._dtypes), torch.float32)
        self._plain = self._dtypes == [self.dtype]  # the usual case, with nothing to convert

    def rows(self, many: Sequence[Sequence[Tensor | None]]) -> Tensor:
        """Several sets of tensors as the rows of a matrix `(len(many), size)`; None is zeros."""
        if not many:
            return torch.zeros(0, self.size, dtype=self.dtype, device=self.device)
        if self._plain:
            vectors = [self._row(each) if each[0] is None else each[0] for each in many]
            return torch.stack([v.reshape(self.size) for v in vectors])
        return torch.stack([self._row(tensors) for tensors in many])

    def _row(self, tensors: Sequence[Tensor | None]) -> Tensor:
        parts = [self._part(index, tensor) for index, tensor in enumerate(tensors)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _part(self, index: int, tensor: Tensor | None) -> Tensor:
        if tensor is None:
            return torch.zeros(self._sizes[index], dtype=self.dtype, device=self.device)
        real = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
        return real.reshape(-1).to(self.device, self.dtype)

    def tensors(self, vector: Tensor) -> list[Tensor]:
        """The tensors of a vector `(..., size)`, each in its dtype, of shape `(..., *shape)`."""
        batch = vector.shape[:-1]
        if self._plain:
            return [vector.reshape((*batch, *self._shapes[0]))]
        found, start = [], 0
        for shape, dtype, size in zip(self._shapes, self._dtypes, self._sizes, strict=True):
            part = vector[..., start : start + size].to(_real(dtype))
            if dtype.is_complex:
                # No view_as_complex: behind real entries a part may begin at an odd place.
                part = torch.complex(*part.reshape((*batch, *shape, 2)).unbind(-1))
            found.append(part.reshape((*batch, *shape)))
            start += size
        return found


def _real(dtype: torch.dtype) -> torch.dtype:
    """The dtype of a complex dtype's parts; any other as it is."""
    return dtype.to_real()
