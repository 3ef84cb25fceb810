"""How long a run will take, before it is made: what may run by itself, and what the button says."""

from __future__ import annotations

from explorer import scan
from explorer.engine.plan import Costs, Passes, Sizes, predicted_seconds
from explorer.experiment import Along, Experiment
from explorer.functions.description import Cost, Setting
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
        for path in result.paths.values():
            if path.seconds is not None:
                seconds += path.seconds.minimum
                counts = path.forward_passes, path.backward_passes, path.forward_mode_passes
                flops += _flops(experiment.described.cost(experiment.setting), Passes(*counts))
                passes += sum(counts)
        if not passes:
            return
        if flops / passes > _LARGE:
            self._rates[_kind(experiment)] = flops / seconds
        else:
            self._passes[_kind(experiment)] = seconds / passes

    def seconds(self, experiment: Experiment) -> float:
        """Seconds to expect of a whole run: warm-ups, repeats, spectral norms and the scaling."""
        setting, described = experiment.setting, experiment.described
        outputs, inputs = described.outputs(setting), described.inputs(setting)
        sizes = Sizes(len(experiment.heads), outputs, inputs)
        costs = self._costs(experiment, setting)
        once = sum(predicted_seconds(path, sizes, costs) for path in experiment.paths)
        decomposition = 20.0 * outputs * inputs * min(outputs, inputs) / _RATE
        scaling = sum(self._scan(experiment, along) for along in experiment.scaling)
        whole = _START + (experiment.repeats + _WARM_UPS) * once + decomposition + scaling
        return whole if experiment.budget is None else min(whole, experiment.budget)

    def _costs(self, experiment: Experiment, setting: Setting) -> Costs:
        """Seconds of one pass of each kind; a head takes no time beside them."""
        rate = self._rates.get(_kind(experiment), _RATE)
        each = self._passes.get(_kind(experiment), _PASS)
        cost = experiment.described.cost(setting)
        return Costs.of(each + cost.forward_flops / rate, each + cost.backward_flops / rate)

    def _scan(self, experiment: Experiment, along: Along) -> float:
        return scan.seconds(
            experiment,
            along,
            lambda count: self._costs(experiment, scan.setting(experiment, along, count)),
        )


def _kind(experiment: Experiment) -> Kind:
    return experiment.function, experiment.dtype, experiment.device


def _flops(cost: Cost, passes: Passes) -> float:
    """Operations of the passes; one in forward mode has those of the other two."""
    return (passes.forward + passes.forward_mode) * cost.forward_flops + (
        passes.backward + passes.forward_mode
    ) * cost.backward_flops
