"""An experiment on one path as a PyTorch script that stands alone, as a person would write it.

The function's description has its text (`Function.code`); here it is put together with the heads
and the path. Importing this package imports no torch.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence

from explorer.engine.plan import PATHS, PEER, Costs, Sizes, choose
from explorer.experiment import Experiment
from explorer.fields import shown, suggestion
from explorer.functions.description import Code
from explorer.heads import count
from explorer.scripts import paths
from explorer.scripts.heads import heads
from explorer.scripts.layout import WIDTH, Layout, NoScript, Part, joined

__all__ = ["NoScript", "script"]

_LISTED = 16  # entries up to which a gradient is printed in full


def script(experiment: Experiment, path: str, taken: str = "") -> str:
    """The text of a script that prints every z = g(y) with its dz/dx, and leaves the gradients in
    the order of the heads in a list `gradients`.

    It needs torch and what the function is made with. Its numbers are those of the experiment to
    rounding: the same random numbers, dtype and device. An f that torch.compile makes is compiled.

    Args:
        taken: the path that `auto` took, as a Result has it; by default the one that is predicted
            from what f is estimated to cost, and with one direction for each head.

    Raises:
        ValueError: there is no such path.
        NoScript: a function or a head of one's own cannot stand alone; the message says why.
    """
    if path not in PATHS:
        raise ValueError(
            f"`path` is {shown(path)}. {suggestion(str(path), tuple(PATHS))}"
            f"Allowed: {', '.join(PATHS)}."
        )
    code = experiment.described.code(experiment.setting)
    entries = experiment.described.inputs(experiment.setting)
    layout = Layout(code, experiment, entries)
    chosen = (taken or _predicted(experiment)) if path == "auto" else path
    made, way = heads(layout), paths.written(layout, chosen)
    compiled = _compiled(chosen, way) if experiment.compile else Part()
    pieces = [*_setting(experiment, code), *compiled.pieces, *made.pieces, *way.pieces]
    pieces.append(_printing(entries))
    imports = {"import torch", *code.imports}.union(*(p.imports for p in (compiled, made, way)))
    title = _title(experiment, path, chosen)
    return f"{title}\n\n{_sorted(imports)}\n\n{joined(pieces)}\n"


def _predicted(experiment: Experiment) -> str:
    """What `auto` is predicted to take, from the function's own estimate."""
    described, setting = experiment.described, experiment.setting
    if described.own:  # of which neither the cost nor y is known: never more passes than heads
        return "low_rank_vjp"
    cost = described.cost(setting)
    number = count(experiment.heads)
    sizes = Sizes(number, described.outputs(setting), described.inputs(setting))
    candidates = ("reuse", "low_rank_vjp") if experiment.compile else None
    costs = Costs.of(cost.forward.seconds, cost.backward.seconds)
    return choose(sizes, costs, candidates=candidates and dict.fromkeys(candidates, 0.0)).path


def _title(experiment: Experiment, path: str, chosen: str) -> str:
    number = count(experiment.heads)
    of = "the head" if number == 1 else f"each of {number} heads"
    what = f"dz/dx of {of} z = g(y), where y = f(x): {experiment.described.title}."
    way = f"{path}, which is {chosen} here" if path == "auto" else path
    lines = (what, "", experiment.described.formula, f"Path {way}: {PATHS[chosen]}.")
    wrapped = (textwrap.fill(_plain(line), WIDTH - 3, break_on_hyphens=False) for line in lines)
    return '"""' + "\n".join(wrapped) + '\n"""'


def _plain(text: str) -> str:
    """The text as a docstring may hold it."""
    return text.replace("\\", "/").replace('"""', "'''")


def _setting(experiment: Experiment, code: Code) -> Sequence[str]:
    setting = f'device, dtype = "{experiment.device}", torch.{experiment.dtype}'
    first, *others = (textwrap.dedent(part).strip() for part in code.parts)
    if first.startswith(("def ", "@", "class ")):
        return setting, first, *others
    return f"{setting}\n{first}", *others


def _compiled(path: str, way: Part) -> Part:
    """What makes f a compiled one."""
    if path == "jvp":
        return Part(["# Not compiled: forward mode does not go through a compiled f."])
    if path != PEER and not any("retain_graph" in piece for piece in way.pieces):
        return Part(["f = torch.compile(f)"])
    several = "torch._functorch.config.donated_buffer = False  # else it goes back only once"
    return Part([f"{several}\nf = torch.compile(f)"], {"import torch._functorch.config"})


def _printing(entries: int) -> str:
    what = "{gradient.tolist()}" if entries <= _LISTED else "{gradient.norm().item()}"
    name = "dz/dx" if entries <= _LISTED else "|dz/dx|"
    return (
        "for name, value, gradient in zip(heads, values, gradients, strict=True):\n"
        f'    print(f"{{name}}: z = {{value}}, {name} = {what}")'
    )


def _sorted(imports: Iterable[str]) -> str:
    """The lines, those of Python's own modules first, as isort has them."""

    def module(line: str) -> str:
        return line.split()[1]

    def order(line: str) -> tuple[bool, str]:
        return line.startswith("from"), module(line)

    own = [each for each in imports if module(each).partition(".")[0] in sys.stdlib_module_names]
    others = [each for each in imports if each not in own]
    blocks = ("\n".join(sorted(block, key=order)) for block in (own, others) if block)
    return "\n\n".join(blocks)
