"""The heads g: cheap functions of y, each to one number, and what a person may name them by.

An entry of an experiment's heads is a head of the registry or of the function by its name, a set
of heads such as `powers(16)`, or an expression such as `y**2 + sin(y)`. Importing this module
imports no torch: the formulas are tensor methods.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from explorer import expression
from explorer.expression import Expression, ExpressionError, norm
from explorer.fields import Field, FieldError, shown, suggestion

if TYPE_CHECKING:
    from torch import Tensor

MOST = 1000
"""Heads of one experiment, the members of its sets counted."""

EVERYWHERE = "every real y"
"""The domain of a head that has a value and a gradient wherever neither overflows."""

FINITE = "where it is finite"
"""The domain of a head of which no more is known."""


@dataclass(frozen=True)
class Head:
    """A head by its name, formula and domain; calling it takes y of any shape to a scalar.

    `apply` is g(y), or g(y, x) where `takes_x`. `inside` is True for each entry of y in the
    domain, None where every real y is or where that is not known. `expression` is the head as it
    could be typed, where it can be.
    """

    name: str
    formula: str
    apply: Callable[..., Tensor]
    domain: str = EVERYWHERE
    inside: Callable[[Tensor], Tensor] | None = None
    takes_x: bool = False
    own: bool = False
    """Whether it is a person's own."""
    expression: str = ""

    def __call__(self, y: Tensor, x: Tensor | None = None) -> Tensor:
        return self.apply(y, x) if self.takes_x else self.apply(y)


HEADS: dict[str, Head] = {
    head.name: head
    for head in (
        Head("square", "Σ y²", lambda y: (y * y).sum(), expression="y**2"),
        Head("sqrt", "Σ √y", lambda y: y.sqrt().sum(), "y ≥ 0", lambda y: y >= 0,
             expression="sqrt(y)"),
        Head("log", "Σ log y", lambda y: y.log().sum(), "y > 0", lambda y: y > 0,
             expression="log(y)"),
        Head("exp", "Σ exp y", lambda y: y.exp().sum(), expression="exp(y)"),
        Head("sin", "Σ sin y", lambda y: y.sin().sum(), expression="sin(y)"),
        Head("norm", "‖y‖₂", norm, expression="norm(y)"),
        Head("mean", "mean of y", lambda y: y.mean(), expression="mean(y)"),
        Head("logsumexp", "log Σ exp y", lambda y: y.flatten().logsumexp(0),
             expression="logsumexp(y)"),
    )
}  # fmt: skip

SETS: dict[str, str] = {
    "powers": "Σ y, Σ y², … up to the power K",
    "random": "K heads Σ w·sin y with seeded normal w: cotangents of the highest rank there is",
    "sums": "K seeded weighted sums of the other heads: they add nothing to the rank",
}
"""The sets of heads, by name, written `powers(16)`, with a word on what is in each."""

_SET = re.compile(r"\s*([a-z]+)\s*\(\s*([0-9]{1,20})\s*\)\s*")
_LIKE_A_SET = re.compile(rf"\s*({'|'.join(SETS)})\s*\(")


def set_of(entry: str) -> tuple[str, int] | None:
    """(the name of a set, how many heads it has) of an entry such as `powers(16)`, else None."""
    found = _SET.fullmatch(entry)
    return (found[1], int(found[2])) if found and found[1] in SETS else None


def count(entries: Sequence[str]) -> int:
    """How many heads the entries stand for."""
    return sum(found[1] if (found := set_of(entry)) else 1 for entry in entries)


class HeadsField(Field):
    """The heads of an experiment: names of `choices`, sets and expressions.

    Text is split at the commas outside of brackets. What is parsed is written in one way: two
    expressions that differ by a space are the same entry.
    """

    @property
    def allowed(self) -> str:
        sets = ", ".join(f"{name}(K)" for name in SETS)
        return (
            f"one or more of {', '.join(self.choices)}; of the sets {sets}; "
            "and of expressions such as y**2 + sin(y)"
        )

    def split(self, text: str) -> list[str]:
        return expression.split(text)

    def _choices(self, value: Any) -> tuple[str, ...]:
        entries = super()._choices(value)
        if count(entries) > MOST:
            raise FieldError(f"These are {count(entries)} heads. Allowed: at most {MOST}.")
        if entries and all((found := set_of(each)) and found[0] == "sums" for each in entries):
            raise FieldError(f"{entries[0]} has nothing to sum. Choose other heads beside it.")
        sets = [found[0] for each in entries if (found := set_of(each))]
        for name in sets:
            if sets.count(name) > 1:  # the one has the heads of the other
                raise FieldError(f"The set {name} is chosen more than once.")
        return entries

    def _choice(self, value: Any) -> str:
        if not isinstance(value, str) or value in self.choices:
            return super()._choice(value)
        if found := set_of(value):
            name, members = found
            if 1 <= members <= MOST:
                return f"{name}({members})"
        if wrong := _LIKE_A_SET.match(value):
            raise FieldError(
                f"Head {shown(value)}: a set has 1 to {MOST} heads, as in {wrong[1]}(16)."
            )
        if value.isidentifier() and value not in ("x", "y"):
            hint = suggestion(value, (*self.choices, *SETS))
            raise FieldError(f"Head {value[:60]} is not known. {hint}Allowed: {self.allowed}.")
        try:
            return expression.read(value).text
        except ExpressionError as error:
            raise FieldError(f"Head {shown(value)}: {error}") from None


def build(
    entries: Sequence[str],
    own: Mapping[str, Head],
    y: Tensor,
    x: Tensor,
    seed: int,
) -> dict[str, Head]:
    """The heads of an experiment's entries by name, for y and x of these shapes.

    Args:
        own: the heads that only this function has.
        seed: of the weights of the sets.

    Raises:
        ExpressionError: an expression does not fit the shapes, such as an index out of range.
    """
    known = {**HEADS, **own}
    single: dict[str, Head] = {}
    sets: list[tuple[str, int]] = []
    for entry in entries:
        if found := set_of(entry):
            sets.append(found)
        else:
            single[entry] = known[entry] if entry in known else _typed(entry, y, x)
    for name, members in sets:
        if name == "powers":
            made = [_power(exponent) for exponent in range(1, members + 1)]
        elif name == "random":
            formula = "Σ w·sin y, w normal"
            every = random(members, y, seed)
            made = [Head(f"random {k}", formula, g) for k, g in enumerate(every, 1)]
        else:
            continue
        single |= {head.name: head for head in made}
    for name, members in sets:
        if name == "sums":
            single |= {head.name: head for head in _sums(members, tuple(single.values()), seed)}
    return single


def random(count: int, y: Tensor, seed: int) -> list[Callable[[Tensor], Tensor]]:
    """g_k(y) = Σ w_k·sin y with seeded normal w_k: almost surely of the highest rank there is.

    The w_k are drawn in float32 on the CPU, so that a head is the same in every dtype and on
    every device, and the first of many heads the same as the first of few.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(count, *y.shape, generator=generator).to(y)

    def head(weight: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda y: (weight.to(y) * y.sin()).sum()

    return [head(weight) for weight in weights]


def _typed(text: str, y: Tensor, x: Tensor) -> Head:
    found: Expression = expression.read(text)
    summed = found.value(y, x).ndim > 0
    formula = found.summed_formula if summed else found.formula
    apply = (lambda y, x: found(y, x)) if found.uses_x else (lambda y: found(y))
    return Head(text, formula, apply, FINITE, takes_x=found.uses_x)


def _power(exponent: int) -> Head:
    return Head(f"powers {exponent}", f"Σ y^{exponent}", lambda y: (y**exponent).sum())


def _sums(count: int, heads: tuple[Head, ...], seed: int) -> list[Head]:
    """Weighted sums of heads: each adds nothing to the rank of their cotangents."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(count, len(heads), generator=generator).tolist()
    takes_x = any(head.takes_x for head in heads)

    def weighted(row: list[float]) -> Callable[..., Tensor]:
        def total(y: Tensor, x: Tensor | None = None) -> Tensor:
            terms = [weight * head(y, x) for weight, head in zip(row, heads, strict=True)]
            return torch.stack(terms).sum()

        return (lambda y, x: total(y, x)) if takes_x else (lambda y: total(y))

    formula = f"Σ w·g over the {len(heads)} other heads, w normal"
    return [
        Head(f"sums {k}", formula, weighted(row), FINITE, takes_x=takes_x)
        for k, row in enumerate(weights, 1)
    ]
