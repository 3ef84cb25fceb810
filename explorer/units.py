"""Numbers as people read them: SI units, counts in words, percentages.

Everything that shows a number to a person (a sentence, a figure, a table, the terminal) takes it
from here, so that one number reads the same everywhere.
"""

from __future__ import annotations

import math

MEASURABLE_PEAK = 20_000_000
"""Bytes below which a measured peak of memory says nothing (see `explorer.memory`)."""

_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))

_WORDS = {
    2: "both",
    3: "all three",
    4: "all four",
    5: "all five",
    6: "all six",
    7: "all seven",
    8: "all eight",
}


def seconds(value: float) -> str:
    """Three significant digits in s, ms, µs or ns: `1.79 s`, `13.2 ms`, `45 µs`."""
    return _si(value, "s", _SMALL)


def roughly(value: float) -> str:
    """Seconds as an estimate has them, in at most two significant digits: `0.25 s`, `1e-06 s`."""
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"


def size(count: int | None) -> str:
    """Three significant digits in B, kB, MB, GB or TB; None is `not measured`."""
    return "not measured" if count is None else _si(count, "B", _LARGE)


def peak(count: int | None) -> str:
    """The same for a measured peak, which below 20 MB is only `< 20 MB`."""
    if count is not None and count < MEASURABLE_PEAK:
        return f"< {size(MEASURABLE_PEAK)}"
    return size(count)


def times(count: int) -> str:
    """`once`, `twice`, `10 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def everyone(count: int) -> str:
    """`both`, `all three`: what many things have in common; `it` for one."""
    return "it" if count == 1 else _WORDS.get(count, f"all {count}")


def listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def ratio(value: float) -> str:
    """A quotient of two times: `1.04`, `9.6`, `12`."""
    if value < 1.095:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def number(value: float, digits: int = 4) -> str:
    """So many significant digits: `0.8415`, `1.2e+09`; `infinite` or `NaN`."""
    if math.isnan(value):
        return "NaN"
    return f"{value:.{digits}g}" if math.isfinite(value) else "infinite"


def relative(value: float) -> str:
    """A relative difference: a percentage from 0.01% on, else as `2e-12`; `0`, `∞` or `NaN`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    return power(value) if value < 1e-4 else percent(value)


def percent(fraction: float) -> str:
    """`0.05%`, `0.9%`, `1.4%`, `12%`; from 10000% on as `1e6%`."""
    number = 100 * fraction
    if number < 0.095:
        return f"{number:.1g}%"
    if number < 9.95:
        return f"{number:.1f}%"
    return f"{number:.0f}%" if number < 1e4 else f"{power(number)}%"


def power(value: float) -> str:
    """One significant digit and the power of ten, `2e-12`: an order of magnitude."""
    digit, exponent = f"{value:.0e}".split("e")
    return f"{digit}e{int(exponent)}"


def _si(value: float, unit: str, prefixes: tuple[tuple[float, str], ...]) -> str:
    if not math.isfinite(value):
        return "not known"
    if value == 0:
        return f"0 {unit}"
    rounded = float(f"{value:.3g}")  # first, so that 999.6 ms becomes 1 s and not 1000 ms
    scale, prefix = next((p for p in prefixes if rounded >= p[0]), prefixes[-1])
    number = rounded / scale
    return f"{number:.0f} {prefix}{unit}" if number >= 100 else f"{number:.3g} {prefix}{unit}"
