"""Every dz_i/dx of z_i = g_i(f(x)), for a slow f and cheap heads g_i.

    import explorer

    result = explorer.gradients(f, [g1, g2], x)

The names below are imported when they are first used: only what computes imports torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.app.laboratory import lab
    from explorer.comparing.comparison import Comparison, compare
    from explorer.engine.gradients import Gradients, gradients, plan, pullback
    from explorer.engine.hessian import HessianEigenvalues, hessian_eigenvalues, hvp
    from explorer.engine.plan import Passes, Plan
    from explorer.engine.spectrum import (
        SingularValues,
        SpectralNorm,
        jacobian_distance,
        singular_values,
        spectral_norm,
    )
    from explorer.experiment import Experiment, InvalidExperiment
    from explorer.exponential import matrix_exp
    from explorer.flow.compute import gradient_flow
    from explorer.own import function, head
    from explorer.result import Result
    from explorer.scripts import script
    from explorer.study.journal import read_study
    from explorer.study.run import sweep
    from explorer.study.study import Study
    from explorer.worker import Worker

_HOME = {
    "Comparison": "comparing.comparison",
    "Experiment": "experiment",
    "Gradients": "engine.gradients",
    "HessianEigenvalues": "engine.hessian",
    "InvalidExperiment": "experiment",
    "Passes": "engine.plan",
    "Plan": "engine.plan",
    "Result": "result",
    "SingularValues": "engine.spectrum",
    "SpectralNorm": "engine.spectrum",
    "Study": "study.study",
    "Worker": "worker",
    "compare": "comparing.comparison",
    "function": "own",
    "gradient_flow": "flow.compute",
    "gradients": "engine.gradients",
    "head": "own",
    "hessian_eigenvalues": "engine.hessian",
    "hvp": "engine.hessian",
    "jacobian_distance": "engine.spectrum",
    "lab": "app.laboratory",
    "matrix_exp": "exponential",
    "plan": "engine.gradients",
    "pullback": "engine.gradients",
    "read_study": "study.journal",
    "script": "scripts",
    "singular_values": "engine.spectrum",
    "spectral_norm": "engine.spectrum",
    "sweep": "study.run",
}

__all__ = [
    "Comparison",
    "Experiment",
    "Gradients",
    "HessianEigenvalues",
    "InvalidExperiment",
    "Passes",
    "Plan",
    "Result",
    "SingularValues",
    "SpectralNorm",
    "Study",
    "Worker",
    "compare",
    "function",
    "gradient_flow",
    "gradients",
    "head",
    "hessian_eigenvalues",
    "hvp",
    "jacobian_distance",
    "lab",
    "matrix_exp",
    "plan",
    "pullback",
    "read_study",
    "script",
    "singular_values",
    "spectral_norm",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'explorer' has no attribute {name!r}")
    return getattr(import_module(f"explorer.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
