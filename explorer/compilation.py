"""f as torch.compile makes it, and the time that takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from explorer.experiment import InvalidExperiment
from explorer.measure import timed

Trunk = Callable[[Tensor], Tensor]


def compiled(f: Trunk, x: Tensor) -> tuple[Trunk, float, list[str]]:
    """(f compiled for x, with a graph for its gradients and without; the seconds that took; what
    torch warned of meanwhile).

    The seconds are those of the first runs, forward and back, beyond those of the second.

    Raises:
        InvalidExperiment: torch has no compiler to work with here, or cannot compile f.
    """
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    functorch.donated_buffer = False  # else nothing goes back through f a second time
    inductor.compile_threads = 1  # others are processes that would outlive a cancelled run
    found: Trunk = torch.compile(f)

    def once() -> None:
        leaf = x.detach().requires_grad_()
        y = found(leaf)
        torch.autograd.grad(y, leaf, torch.ones_like(y))
        with torch.no_grad():
            found(x)

    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            first, _ = timed(once)
    except Exception as error:
        if sentence := _refusal(error):
            raise InvalidExperiment({"compile": sentence}) from error
        raise
    second, _ = timed(once)
    notes = [f"torch.compile: {str(each.message).splitlines()[0]}" for each in warned
             if issubclass(each.category, UserWarning)]  # fmt: skip
    return found, max(0.0, first - second), list(dict.fromkeys(notes))


def _refusal(error: BaseException) -> str:
    """Why torch cannot compile, as a sentence; empty where f itself failed."""
    chain = list(_causes(error))
    for each in chain:
        if type(each).__name__ in ("InvalidCxxCompiler", "TritonMissing", "GPUTooOldForTriton"):
            return (
                f"torch.compile finds no compiler here ({str(each).splitlines()[0]}). Install "
                "one, such as g++ for the CPU or Triton for a GPU, or switch torch.compile off."
            )
    torchs = ("torch._dynamo", "torch._inductor")
    if any(type(each).__module__.startswith(torchs) for each in chain):
        reason = str(chain[-1]).strip().splitlines()
        return (
            f"torch.compile cannot compile f: {type(chain[-1]).__name__}"
            f"{': ' + reason[0] if reason else ''}. Switch torch.compile off."
        )
    return ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what led to it, each once."""
    seen: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in seen:
        seen.append(each)
        yield each
        each = getattr(each, "inner_exception", None) or each.__cause__
