"""The registry of slow functions f, one file each. Importing it imports no torch."""

from __future__ import annotations

from explorer.functions import digits, matrix_exp_trace, recurrent, tanh_network
from explorer.functions.description import Function

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        matrix_exp_trace.FUNCTION,
        tanh_network.FUNCTION,
        recurrent.FUNCTION,
        digits.FUNCTION,
    )
}

__all__ = ["FUNCTIONS"]
