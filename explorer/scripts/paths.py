"""The paths of a script: from f, x and the heads to the lists `values` and `gradients`."""

from __future__ import annotations

from collections.abc import Callable

from explorer.engine.plan import PEER
from explorer.heads import count
from explorer.scripts.heads import uses_x
from explorer.scripts.layout import Layout, Part


def written(layout: Layout, path: str) -> Part:
    """The pieces of a path; `path` is none that chooses among others."""
    part = Part(_PATHS[path](_Case(layout)))
    if path == PEER:
        part.imports.add("from torchjd.autojac import jac")
    return part


class _Case:
    """What differs between the scripts of one path."""

    def __init__(self, layout: Layout) -> None:
        self.heads = count(layout.experiment.heads)
        self.outputs = layout.outputs
        self.inputs = layout.entries
        self.x_dims, self.y_dims = layout.code.x_dims, layout.y_dims
        self.takes_x = uses_x(layout)
        self.compiled = layout.experiment.compile

    def alone(self, y: str) -> tuple[str, ...]:
        """The lines that differentiate a head at y, cut off from f; of one that takes x, the part
        of its gradient that does not go through y as well."""
        if self.takes_x:
            return (
                f"    z = g({y}, x)",
                f"    dz_dy, direct = torch.autograd.grad(z, ({y}, x), materialize_grads=True)",
            )
        return (f"    z = g({y})", f"    (dz_dy,) = torch.autograd.grad(z, {y})")

    def of(self, y: str) -> str:
        """The call of a head."""
        return f"g({y}, x)" if self.takes_x else f"g({y})"


def _lines(*lines: str) -> str:
    """The lines that are not empty."""
    return "\n".join(filter(None, lines))


def _several(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{_ENDINGS[noun]}"


_ENDINGS = {"pass": "es", "cotangent": "s"}


def _recompute(case: _Case) -> list[str]:
    return [
        _lines(
            f"# Naive: f runs again for every head, {_several(case.heads, 'pass')} forward and as "
            "many back.",
            "x.requires_grad_()",
            "values, gradients = [], []",
            "for g in heads.values():",
            f"    z = {case.of('f(x)')}",
            "    (gradient,) = torch.autograd.grad(z, x)",
            "    values.append(z.item())",
            "    gradients.append(gradient)",
        )
    ]


def _retain_graph(case: _Case) -> list[str]:
    return [
        _lines(
            "# Naive: f runs once, and every head goes back through it, "
            f"{_several(case.heads, 'pass')} back.",
            "x.requires_grad_()",
            "y = f(x)",
            "values, gradients = [], []",
            "for g in heads.values():",
            f"    z = {case.of('y')}",
            "    (gradient,) = torch.autograd.grad(z, x, retain_graph=True)",
            "    values.append(z.item())",
            "    gradients.append(gradient)",
        )
    ]


def _reuse(case: _Case) -> list[str]:
    if not case.y_dims:
        rows = _lines(
            "# y is one number: dy/dx takes one pass back, however many heads there are.",
            "x.requires_grad_()",
            "y = f(x)",
            "(dy_dx,) = torch.autograd.grad(y, x)",
        )
    else:
        each = "each entry" if case.outputs is None else f"each of the {case.outputs} entries"
        flat = "y" if case.y_dims == 1 else "flat"
        rows = _lines(
            f"# dy/dx by rows: one pass back for {each} of y, however many heads there are.",
            "x.requires_grad_()",
            "y = f(x)",
            "" if case.y_dims == 1 else "flat = y.flatten()",
            f"rows = [torch.autograd.grad({flat}[i], x, retain_graph=True)[0] "
            f"for i in range(len({flat}))]",
            "dy_dx = torch.stack(rows)",
        )
    return [rows, _chain_rule(case)]


def _jvp(case: _Case) -> list[str]:
    direct = "x.requires_grad_()  # for the heads that take it" if case.takes_x else ""
    if not case.x_dims:
        columns = _lines(
            "# x is one number: dy/dx takes one pass of f in forward mode.",
            "y, dy_dx = torch.func.jvp(f, (x,), (torch.ones_like(x),))",
            "" if case.y_dims < 2 else "dy_dx = dy_dx.flatten()",
            direct,
        )
    else:
        flat = case.x_dims == 1
        columns = _lines(
            f"# dy/dx by columns: f in forward mode for each of the {case.inputs} entries of x.",
            "columns = []",
            f"for i in range({'len(x)' if flat else 'x.numel()'}):",
            "    tangent = torch.zeros_like(x)",
            f"    tangent{'[i]' if flat else '.view(-1)[i]'} = 1",
            "    y, column = torch.func.jvp(f, (x,), (tangent,))",
            f"    columns.append(column{'' if case.y_dims < 2 else '.flatten()'})",
            f"dy_dx = torch.stack(columns, -1){'' if flat else '.view(-1, *x.shape)'}",
            direct,
        )
    return [columns, _chain_rule(case)]


def _chain_rule(case: _Case) -> str:
    """The gradients of dy/dx, a row for each entry of y, or of the one gradient of a scalar y."""
    dz_dy = "dz_dy" if case.y_dims < 2 else "dz_dy.flatten()"
    if not case.y_dims:
        product = "dz_dy * dy_dx"
    elif case.x_dims == 1:
        product = f"{dz_dy} @ dy_dx"
    else:
        product = f"torch.tensordot({dz_dy}, dy_dx, 1)"
    return _lines(
        "# The heads alone at y, cut off from f; then the chain rule.",
        "y = y.detach().requires_grad_()",
        "values, gradients = [], []",
        "for g in heads.values():",
        *case.alone("y"),
        "    values.append(z.item())",
        f"    gradients.append({product}{' + direct' if case.takes_x else ''})",
    )


def _cotangents(case: _Case) -> tuple[str, ...]:
    """The lines that run f once, and every head at a y of its own."""
    return (
        "x.requires_grad_()",
        "y = f(x)",
        "y_cut = y.detach().requires_grad_()",
        f"values, cotangents{', directs = [], [], []' if case.takes_x else ' = [], []'}",
        "for g in heads.values():",
        *case.alone("y_cut"),
        "    values.append(z.item())",
        "    cotangents.append(dz_dy)",
        "    directs.append(direct)" if case.takes_x else "",
    )


def _with_directs(case: _Case, rows: str) -> str:
    return f"gradients = list({rows}{' + torch.stack(directs)' if case.takes_x else ''})"


_BACK = "rows = [torch.autograd.grad(y, x, {}, retain_graph=True)[0] for each in {}]"


def _batched_vjp(case: _Case) -> list[str]:
    start = (
        "# The heads alone, cut off from f; then "
        f"{_several(case.heads, 'cotangent')} back through f"
    )
    if case.compiled:
        together: tuple[str, ...] = (
            _BACK.format("each", "cotangents"),
            _with_directs(case, "torch.stack(rows)"),
        )
        start += ",\n# one by one: vmap does not go through a compiled f."
    else:
        together = (
            "stacked = torch.stack(cotangents)",
            "(rows,) = torch.autograd.grad(y, x, stacked, is_grads_batched=True)",
            _with_directs(case, "rows"),
        )
        start += " in one batch."
    return [_lines(start, *_cotangents(case), *together)]


def _low_rank_vjp(case: _Case) -> list[str]:
    if not case.y_dims:
        return _reuse(case)
    most = case.heads if case.outputs is None else min(case.heads, case.outputs)
    mixed = "stacked @ basis.T"
    rows = f"{mixed} @ rows" if case.x_dims == 1 else f"torch.tensordot({mixed}, rows, 1)"
    return [
        _lines(
            "# The heads alone, cut off from f; then a pass back for each direction of their",
            f"# cotangents, at most {most}.",
            *_cotangents(case),
        ),
        _lines(
            "# With a largest entry of 1, so that small heads count; what is not finite does not.",
            "stacked = torch.stack(cotangents).flatten(1)",
            "scaled = (stacked / stacked.abs().amax(1, keepdim=True)).nan_to_num()",
            "_, singular, basis = torch.linalg.svd(scaled, full_matrices=False)",
            "rank = int((singular > max(scaled.shape) * torch.finfo(dtype).eps * singular[0])"
            ".sum())",
            "basis = basis[: max(rank, 1)]",
            _BACK.format("each.view_as(y)", "basis"),
            "rows = torch.stack(rows)",
            _with_directs(case, rows),
        ),
    ]


def _torchjd(case: _Case) -> list[str]:
    return [
        _lines(
            "# torchjd sends a cotangent back through f for every head, "
            f"{_several(case.heads, 'pass')}.",
            "x.requires_grad_()",
            "y = f(x)",
            f"zs = [{case.of('y')} for g in heads.values()]",
            "(rows,) = jac(zs, x, parallel_chunk_size=1)",
            "values = [z.item() for z in zs]",
            "gradients = list(rows)",
        )
    ]


_PATHS: dict[str, Callable[[_Case], list[str]]] = {
    "recompute": _recompute,
    "retain_graph": _retain_graph,
    "reuse": _reuse,
    "batched_vjp": _batched_vjp,
    "low_rank_vjp": _low_rank_vjp,
    "jvp": _jvp,
    "torchjd": _torchjd,
}
