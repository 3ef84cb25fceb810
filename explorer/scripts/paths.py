"""The paths of a script: from f, x and the heads to the lists `values` and `gradients`."""

from __future__ import annotations

from collections.abc import Callable

from explorer.engine.plan import PEER
from explorer.heads import count
from explorer.scripts.heads import uses_x
from explorer.scripts.layout import Layout, Part

class Ways(Part):
    """`compiled` where f is to be compiled before the heads are defined."""

    compiled = False


def written(layout: Layout, path: str) -> Ways:
    """The path's pieces; `path` is none that chooses among others."""
    part = Ways()
    compile = layout.experiment.compile
    part.compiled = compile and path != "jvp"
    text = _PATHS[path](_Words(layout))
    if part.compiled:
        part.imports.add("import torch._functorch.config")
    elif compile:
        text = f"# Forward mode does not go through a compiled f: it is f as it is.\n{text}"
    if path == PEER:
        part.imports.add("from torchjd.autojac import jac")
    part.pieces = text.strip("\n").split("\n\n")
    return part


class _Words:
    """What differs between scripts of one path: a scalar y or x, heads that take x."""

    def __init__(self, layout: Layout) -> None:
        self.heads = count(layout.experiment.heads)
        self.scalar = layout.code.y_shape == ()
        self.outputs = layout.experiment.described.outputs(layout.experiment.setting)
        self.known = layout.code.y_shape is not None
        self.inputs = layout.entries
        self.x_dims = layout.code.x_dims
        self.y_dims = layout.y_dims
        self.takes_x = uses_x(layout)
        self.compiled = layout.experiment.compile

    def call(self, y: str) -> str:
        return f"g({y}, x)" if self.takes_x else f"g({y})"

    def cotangent(self, y: str) -> str:
        """The lines of a loop that give z, dz/dy and, where heads take x, their direct part."""
        if self.takes_x:
            return (
                f"    z = g({y}, x)\n"
                f"    dz_dy, direct = torch.autograd.grad(z, ({y}, x), materialize_grads=True)\n"
            )
        return f"    z = g({y})\n    (dz_dy,) = torch.autograd.grad(z, {y})\n"

    def entries(self, number: int, of: str) -> str:
        return f"the one entry of {of}" if number == 1 else f"each of the {number} entries of {of}"

    def passes(self, number: int, kind: str) -> str:
        return f"{number} {kind} pass" + ("" if number == 1 else "es")


def _recompute(words: _Words) -> str:
    return f"""
# Naive: f runs again for every head, {words.passes(words.heads, "forward")} and as many back.
x.requires_grad_()
values, gradients = [], []
for g in heads.values():
    z = {words.call("f(x)")}
    (gradient,) = torch.autograd.grad(z, x)
    values.append(z.item())
    gradients.append(gradient)
"""


def _retain_graph(words: _Words) -> str:
    return f"""
# Naive: f runs once, and every head goes back through it, {words.passes(words.heads, "backward")}.
x.requires_grad_()
y = f(x)
values, gradients = [], []
for g in heads.values():
    z = {words.call("y")}
    (gradient,) = torch.autograd.grad(z, x, retain_graph=True)
    values.append(z.item())
    gradients.append(gradient)
"""


def _reuse(words: _Words) -> str:
    if words.scalar:
        found = """# y is one number: dy/dx takes one backward pass, however many heads there are.
x.requires_grad_()
y = f(x)
(dy_dx,) = torch.autograd.grad(y, x)
"""
    else:
        each = words.entries(words.outputs, "y") if words.known else "each entry of y"
        of, flat = ("y", "") if words.y_dims == 1 else ("flat", "flat = y.flatten()\n")
        found = f"""# dy/dx by rows: one backward pass for {each}, however many heads.
x.requires_grad_()
y = f(x)
{flat}rows = [torch.autograd.grad({of}[i], x, retain_graph=True)[0] for i in range(len({of}))]
dy_dx = torch.stack(rows)
"""
    return f"{found}\n{_chain_rule(words)}"


def _jvp(words: _Words) -> str:
    head = f"# dy/dx by columns: f in forward mode, with a tangent for {{}}.\n"
    if not words.x_dims:
        found = (
            head.format("x, which is one number")
            + "y, dy_dx = torch.func.jvp(f, (x,), (torch.ones_like(x),))\n"
        )
    else:
        place, count = ("[i]", "len(x)") if words.x_dims == 1 else (".view(-1)[i]", "x.numel()")
        column = "column" if words.y_dims < 2 else "column.flatten()"
        stacked = "torch.stack(columns, -1)"
        if words.x_dims > 1:
            stacked += ".view(-1, *x.shape)"
        found = f"""{head.format(words.entries(words.inputs, "x"))}columns = []
for i in range({count}):
    tangent = torch.zeros_like(x)
    tangent{place} = 1
    y, column = torch.func.jvp(f, (x,), (tangent,))
    columns.append({column})
dy_dx = {stacked}
"""
    direct = "x.requires_grad_()  # heads take it too\n" if words.takes_x else ""
    return f"{found}{direct}\n{_chain_rule(words)}"


def _chain_rule(words: _Words) -> str:
    if words.scalar:
        product = "dz_dy * dy_dx"
    elif words.x_dims == 1:
        product = "dz_dy @ dy_dx" if words.y_dims == 1 else "dz_dy.flatten() @ dy_dx"
    else:
        product = "torch.tensordot(dz_dy.flatten(), dy_dx, 1)"
    plus = " + direct" if words.takes_x else ""
    return f"""# The heads alone at y, cut off from f; then the chain rule.
y = y.detach().requires_grad_()
values, gradients = [], []
for g in heads.values():
{words.cotangent("y")}    values.append(z.item())
    gradients.append({product}{plus})
"""


def _alone(words: _Words) -> str:
    """f once, and the heads' cotangents at a y of their own."""
    directs = ", directs" if words.takes_x else ""
    return f"""x.requires_grad_()
y = f(x)
y_cut = y.detach().requires_grad_()
values, cotangents{directs} = [], []{", []" if words.takes_x else ""}
for g in heads.values():
{words.cotangent("y_cut")}    values.append(z.item())
    cotangents.append(dz_dy)
""" + ("    directs.append(direct)\n" if words.takes_x else "")


def _batched_vjp(words: _Words) -> str:
    plus = " + torch.stack(directs)" if words.takes_x else ""
    start = f"# The heads alone, cut off from f; then {_all(words)} back through f"
    if words.compiled:
        return f"""{start}
# one after the other: vmap does not go through a compiled f.
{_alone(words)}rows = [torch.autograd.grad(y, x, each, retain_graph=True)[0] for each in cotangents]
gradients = list(torch.stack(rows){plus})
"""
    return f"""{start} in one batch.
{_alone(words)}stacked = torch.stack(cotangents)
(rows,) = torch.autograd.grad(y, x, stacked, is_grads_batched=True)
gradients = list(rows{plus})
"""


def _all(words: _Words) -> str:
    return "its cotangent" if words.heads == 1 else f"all {words.heads} cotangents"


def _low_rank_vjp(words: _Words) -> str:
    if words.scalar:
        return _reuse(words)
    plus = " + torch.stack(directs)" if words.takes_x else ""
    mixed = "stacked @ basis.T"
    product = f"{mixed} @ rows" if words.x_dims == 1 else f"torch.tensordot({mixed}, rows, 1)"
    return f"""# The heads alone, cut off from f; then a backward pass for each direction of their cotangents,
# at most {min(words.heads, words.outputs) if words.known else words.heads}.
{_alone(words)}
# Scaled to a largest entry of 1, so that small heads count; what is not finite takes no part.
stacked = torch.stack(cotangents).flatten(1)
scaled = (stacked / stacked.abs().amax(1, keepdim=True)).nan_to_num()
_, singular, basis = torch.linalg.svd(scaled, full_matrices=False)
rank = int((singular > max(scaled.shape) * torch.finfo(dtype).eps * singular[0]).sum())
basis = basis[: max(rank, 1)]
rows = [torch.autograd.grad(y, x, each.view_as(y), retain_graph=True)[0] for each in basis]
rows = torch.stack(rows)
gradients = list({product}{plus})
"""


def _torchjd(words: _Words) -> str:
    return f"""# torchjd sends a cotangent back for every head, {words.passes(words.heads, "backward")}.
x.requires_grad_()
y = f(x)
zs = [{words.call("y")} for g in heads.values()]
(rows,) = jac(zs, x, parallel_chunk_size=1)
values = [z.item() for z in zs]
gradients = list(rows)
"""


_PATHS: dict[str, Callable[[_Words], str]] = {
    "recompute": _recompute,
    "retain_graph": _retain_graph,
    "reuse": _reuse,
    "batched_vjp": _batched_vjp,
    "low_rank_vjp": _low_rank_vjp,
    "jvp": _jvp,
    "torchjd": _torchjd,
}
