"""A person's own code, sent to the process that runs it.

What a module has is named; what only a notebook or a script has is sent whole.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from types import CodeType
from typing import Any

import cloudpickle

from explorer.experiment import Experiment, InvalidExperiment
from explorer.functions import FUNCTIONS
from explorer.heads import HEADS


def pack(experiment: Experiment) -> bytes:
    """What the process that runs an experiment needs of a person's own code; empty for none.

    Raises:
        InvalidExperiment: it holds something that cannot be sent.
    """
    described = experiment.described
    functions = [described] if described.own else []
    heads = [HEADS[name] for name in experiment.heads if name in HEADS and HEADS[name].own]
    if not functions and not heads:
        return b""
    file = io.BytesIO()
    try:
        _Pickler(file).dump((functions, heads))
    except Exception as error:  # an object may raise anything when it is pickled
        field, name = ("function", described.name) if functions else ("heads", heads[0].name)
        raise InvalidExperiment(
            {
                field: f"{name} cannot be sent to the process that would run it: "
                f"{type(error).__name__}: {error}. Let it make what it uses when it is called."
            }
        ) from error
    return file.getvalue()


def unpack(packed: bytes) -> None:
    """Registers what `pack` packed."""
    if packed:
        functions, heads = pickle.loads(packed)
        FUNCTIONS.update({each.name: each for each in functions})
        HEADS.update({each.name: each for each in heads})


def _with_file(code: CodeType) -> tuple[Callable[..., CodeType], tuple[Any, ...]]:
    """Code with the name of its file, which cloudpickle leaves out: errors name the line in it."""
    make, arguments = cloudpickle.Pickler.dispatch_table[CodeType](code)
    return _made, (make, arguments, code.co_filename)


def _made(make: Callable[..., CodeType], arguments: tuple[Any, ...], file: str) -> CodeType:
    return make(*arguments).replace(co_filename=file)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    dispatch_table = cloudpickle.Pickler.dispatch_table.new_child({CodeType: _with_file})
