"""The registry of slow functions f, one file each. Importing it imports no torch."""

from __future__ import annotations

from explorer.functions import (
    arm,
    digits,
    heat,
    integral,
    matrix_exp_entries,
    matrix_exp_trace,
    ode,
    recurrent,
    tanh_network,
)
from explorer.functions.description import Function

FUNCTIONS: dict[str, Function] = {
    module.FUNCTION.name: module.FUNCTION
    for module in (
        *(matrix_exp_trace, matrix_exp_entries, integral, ode, heat, arm),
        *(tanh_network, recurrent, digits),
    )
}

__all__ = ["FUNCTIONS"]
