"""y, x and dy/dx of a run, kept so that further heads are tried without a pass through f."""

from __future__ import annotations

import io
from collections.abc import Sequence

import torch
from torch import Tensor

from explorer import heads
from explorer.engine.linear import chain
from explorer.events import Linearized, Trial
from explorer.expression import ExpressionError
from explorer.fields import FieldError
from explorer.heads import Head, HeadsField
from explorer.jacobian import head_gradients, spectral_norm

LARGEST = 64_000_000
"""Bytes up to which dy/dx is kept."""

LISTED = 4  # entries up to which a gradient is listed


def linearized(y: Tensor, x: Tensor, jacobian: Tensor) -> Linearized | None:
    """What `trials` needs; None where dy/dx, of shape `(*y.shape, *x.shape)`, is too large."""
    if jacobian.numel() * jacobian.element_size() > LARGEST:
        return None
    file = io.BytesIO()
    kept = {"y": y, "x": x, "jacobian": jacobian}
    torch.save({name: each.detach().cpu().contiguous() for name, each in kept.items()}, file)
    return Linearized(file.getvalue())


def trials(data: bytes, entries: Sequence[str]) -> dict[str, Trial | str]:
    """What each head gives at y, through the dy/dx that was kept; a sentence for one that fails.

    `entries` are names of the registry and expressions.
    """
    kept = torch.load(io.BytesIO(data), weights_only=True)
    found: dict[str, Trial | str] = {}
    for entry in entries:
        try:
            (text,) = _FIELD.parse([entry])
            (head,) = heads.build([text], {}, kept["y"], kept["x"], seed=0).values()
            found[entry] = _trial(head, kept["y"], kept["x"], kept["jacobian"])
        except (FieldError, ExpressionError) as error:
            found[entry] = str(error)
    return found


_FIELD = HeadsField("heads", "choices", "Head", choices=tuple(heads.HEADS))


def _trial(head: Head, y: Tensor, x: Tensor, jacobian: Tensor) -> Trial:
    by_y, by_x = head_gradients(head, y, x)
    gradient = chain(by_y, jacobian)
    if by_x is not None:
        gradient = gradient + by_x
    flat = gradient.reshape(-1)
    entries = tuple(flat.tolist()) if flat.numel() <= LISTED else ()
    return Trial(head.formula, head(y, x).item(), spectral_norm(gradient, 1), entries)
