"""f of any structure as a function of one real tensor to one real tensor, its heads likewise.

Everything that measures and compares gradients then has one x and one y.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import optree
import torch
from torch import Tensor

from explorer.engine.heads import positional
from explorer.engine.structure import Inputs, Layout, real_size
from explorer.engine.trunk import nothing_to_differentiate
from explorer.functions.description import Problem


def flattened(
    f: Callable[[Any], Any],
    x: Any,
    heads: Mapping[str, Callable[..., Any]],
    dtype: str,
    device: str,
) -> Problem:
    """f at x, x and y each one real tensor.

    A single real tensor keeps its shape; anything else is laid end to end, a dict in the order
    of its keys, a complex entry as its two parts. The heads get y, and x where they take it, as
    f has them.
    """
    real = getattr(torch, dtype)
    x = _as_tensor(x)
    inputs = Inputs.of(x, "x")
    tensors = [
        each.detach().to(device, real.to_complex() if each.is_complex() else real)
        for each in inputs.tensors
    ]
    one = isinstance(x, Tensor) and not tensors[0].is_complex()
    layout = Layout(tensors)
    outputs = _Outputs()

    def apart(vector: Tensor) -> list[Tensor]:
        return [vector] if one else layout.tensors(vector)

    def flat(vector: Tensor) -> Any:
        return outputs.join(inputs.call(f, apart(vector)))

    def of_both(g: Callable[..., Any]) -> Callable[[Tensor, Tensor], Any]:
        return lambda y, x: inputs.call(g, apart(x), outputs.apart(y))

    def of_y(g: Callable[..., Any]) -> Callable[[Tensor], Any]:
        return lambda y: g(outputs.apart(y))

    wrapped: dict[str, Callable[..., Any]] = {}
    for name, g in heads.items():
        g, takes_x = positional(g)
        wrapped[name] = of_both(g) if takes_x else of_y(g)
        wrapped[name].__name__ = name  # which errors tell
    return Problem(flat, tensors[0] if one else layout.rows([tensors])[0], heads=wrapped)


def measured(x: Any) -> tuple[int, bool]:
    """(the real entries of x, whether one of its tensors is of double precision).

    Raises:
        TypeError, ValueError: x is nothing that gradients can be taken by.
    """
    tensors = Inputs.of(_as_tensor(x), "x").tensors
    wide = any(each.dtype in (torch.float64, torch.complex128) for each in tensors)
    return real_size(tensors), wide


def _as_tensor(x: Any) -> Any:
    """x, a plain number as a tensor."""
    return torch.tensor(x, dtype=torch.float64) if isinstance(x, (int, float)) else x


class _Outputs:
    """y's structure, as the first call of f has shown it."""

    def __init__(self) -> None:
        self._known = False

    def join(self, y: Any) -> Any:
        """y as one real tensor; raises TypeError where it has no floating one."""
        leaves, spec = optree.tree_flatten(y)
        places = [place for place, leaf in enumerate(leaves) if _floating(leaf)]
        if not places:
            raise nothing_to_differentiate(y, leaves)
        tensors = [leaves[place] for place in places]
        if not self._known:
            self._one = isinstance(y, Tensor) and not y.is_complex()
            self._layout, self._spec, self._places = Layout(tensors), spec, places
            self._leaves = [None if place in places else leaf for place, leaf in enumerate(leaves)]
            self._known = True
        return y if self._one else self._layout.rows([tensors])[0]

    def apart(self, vector: Tensor) -> Any:
        """y in its structure, from the one tensor; other leaves are those of the first call."""
        if self._one:
            return vector
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, self._layout.tensors(vector), strict=True):
            leaves[place] = tensor
        return optree.tree_unflatten(self._spec, leaves)


def _floating(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.is_complex())
