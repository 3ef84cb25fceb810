"""A scaling → plain words: the break-even, what was fitted, and who was not continued."""

from __future__ import annotations

from explorer import units
from explorer.costs import CostModel, fitted
from explorer.experiment import Along
from explorer.result import Result, Scaling

ALONG = {"heads": "heads K", "outputs": "entries of y, m"}
"""What a scaling counts, with its letter."""

_NOTHING = 1e-7  # seconds: less than the call of anything
_COSTS = {
    "forward": "a forward",
    "backward": "a VJP",
    "forward + backward": "a forward and a VJP",
    "forward_mode": "a JVP",
    "head": "a head",
}


def scanned(scaling: Scaling) -> str:
    """The heads of a scaling, and the number that stands still in it."""
    if scaling.along == "heads":
        outputs = f"{scaling.outputs} output{'' if scaling.outputs == 1 else 's'}"
        return f"heads Σ w·sin y, w normal; f with {outputs}"
    return f"{scaling.heads} heads Σ w·sin y, w normal"


def scaling(result: Result, along: Along, slower: float = 1.0) -> list[str]:
    """Where the break-even lies; what was fitted, and by how much it is off; then why paths were
    not continued, a sentence a reason.

    With `slower` other than 1 the break-even is that of an f that takes so many times as long.

    Raises:
        KeyError: the Result has no such scaling.
    """
    model = fitted(result.scaling[along], result.function.inputs).slower(slower)
    found, counted = model.break_even, ALONG[along]
    throughout = ""
    if names := list(model.throughout):
        are = "is" if len(names) == 1 else "are"
        throughout = (
            f"{units.listed(names)} {are} predicted to be faster than {model.reference} throughout"
        )
    if model.reference is None:
        turn = "no naive path was chosen, with which others could break even"
    elif found is None and not throughout:
        turn = "no break-even with a naive path is predicted"
    elif found is None:
        turn = ""
    else:
        where = f"from {found.count} on" if found.side == "from" else f"up to {found.count}"
        turn = f"{where}, {found.path} is predicted to be faster than {found.reference}"
    supposed = "" if slower == 1 else f", were f {units.ratio(slower)} times slower"
    said = [f"By the number of {counted}{supposed}: {'; '.join(filter(None, (turn, throughout)))}."]
    if "outputs" not in result.scaling and (widest := _widest(model, len(result.heads))):
        said.append(widest)
    if slower == 1 and model.misfits:
        said.append(_fit(model))
    ended: dict[tuple[str, str], list[str]] = {}
    for name, path in model.scaling.paths.items():
        if path.ended:
            what = "continued" if path.measured else "measured"
            ended.setdefault((what, path.ended), []).append(name)
    for (what, why), names in ended.items():
        were = "was" if len(names) == 1 else "were"
        said.append(f"{units.listed(names)} {were} not {what}: {why}.")
    return said


def line(model: CostModel, slower: float) -> str:
    """What a line of the times is, in a few words."""
    if slower != 1:
        return f"were f {units.ratio(slower)} times slower"
    if not model.misfits:
        return "predicted from passes timed alone"
    return f"fitted passes and heads, {units.percent(model.misfit)} off"


def _widest(model: CostModel, heads: int) -> str:
    """Up to which y dy/dx by rows pays, as far as a scaling along the heads tells it."""
    reference = model.reference
    if heads < 2 or reference is None or "reuse" not in model.scaling.paths:
        return ""
    most = model.outputs_up_to(heads, reference)
    if most is None:
        return ""
    pays = f"up to {most} {'entry' if most == 1 else 'entries'} of y" if most else "for no y"
    return f"At these costs, with {heads} heads, reuse would be faster than {reference} {pays}."


def _fit(model: CostModel) -> str:
    """The costs that the points tell, and how far the lines are from these."""
    told = []
    for name, words in _COSTS.items():
        ends = model.ends(name)
        if name in model.determined:
            cost = " to ".join(dict.fromkeys(map(units.seconds, ends)))
            told.append(f"{words} {cost if max(ends) > _NOTHING else 'next to nothing'}")
    counts = model.scaling.counts
    of = f" of f with {counts[0]} to {counts[-1]} outputs" if model.low != model.high else ""
    costs = f"Fitted to the points{of}: {units.listed(told)}. " if told else ""
    worst = max(model.misfits)
    return (
        f"{costs}The fitted lines are {units.percent(model.misfit)} off at the median, "
        f"{units.percent(worst.part)} at most ({worst.path} at {worst.count})."
    )
