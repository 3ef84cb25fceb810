"""How long a run will take, before it is made: what may run by itself, and what the button says."""

from __future__ import annotations

from explorer.engine.plan import expected_passes
from explorer.experiment import Experiment
from explorer.result import Result

_RATE = 2e10  # floating-point operations a second, until a run here has told
_PASS = 2e-4  # seconds of a pass that has next to nothing to compute, until a run has told
_START = 0.06  # seconds that any run takes
_WARM_UPS = 2
_LARGE = 1e8  # operations from which they and not the calls make up the time of a pass

Kind = tuple[str, str, str]


class Pace:
    """What runs on this machine took, by function, dtype and device.

    A pass takes a fixed time and one for its operations. Large runs teach the second, small
    ones the first: taken for the other, each would be wrong by orders of magnitude.
    """

    def __init__(self) -> None:
        self._rates: dict[Kind, float] = {}
        self._passes: dict[Kind, float] = {}

    def learn(self, result: Result) -> None:
        """Takes the pace from the quickest run of each path that a finished run measured."""
        experiment = result.experiment
        seconds = flops = passes = 0.0
        for name, path in result.paths.items():
            if path.seconds is not None:
                seconds += path.seconds.minimum
                flops += _flops(experiment, name)
                passes += path.forward_passes + path.backward_passes
        if not passes:
            return
        if flops / passes > _LARGE:
            self._rates[_kind(experiment)] = flops / seconds
        else:
            self._passes[_kind(experiment)] = seconds / passes

    def seconds(self, experiment: Experiment) -> float:
        """Seconds to expect of a whole run: warm-ups, repeats and spectral norms."""
        rate = self._rates.get(_kind(experiment), _RATE)
        each = self._passes.get(_kind(experiment), _PASS)
        once = sum(
            _flops(experiment, path) / rate + each * sum(_passes(experiment, path))
            for path in experiment.paths
        )
        setting, described = experiment.setting, experiment.described
        outputs, inputs = described.outputs(setting), described.inputs(setting)
        decomposition = 20.0 * outputs * inputs * min(outputs, inputs) / _RATE
        whole = _START + (experiment.repeats + _WARM_UPS) * once + decomposition
        return whole if experiment.budget is None else min(whole, experiment.budget)


def _kind(experiment: Experiment) -> Kind:
    return experiment.function, experiment.dtype, experiment.device


def _passes(experiment: Experiment, path: str) -> tuple[int, int]:
    outputs = experiment.described.outputs(experiment.setting)
    return expected_passes(path, len(experiment.heads), outputs)


def _flops(experiment: Experiment, path: str) -> float:
    """Operations of one execution of a path."""
    forward, backward = _passes(experiment, path)
    cost = experiment.described.cost(experiment.setting)
    return forward * cost.forward_flops + backward * cost.backward_flops
