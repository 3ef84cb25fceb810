"""How long a run will take, before it is made."""

from __future__ import annotations

from explorer import scan, spectra
from explorer.engine.plan import Costs, Sizes, predicted_seconds
from explorer.experiment import Along, Experiment
from explorer.functions.description import CALL, Setting, Work
from explorer.heads import count
from explorer.result import Result

_PASS = 2e-4  # seconds of a pass that has next to nothing to compute
_START = 0.06  # seconds that any run takes
_WARM_UPS = 2

Kind = tuple[str, str, str]


class Pace:
    """What runs on this machine took over what was estimated, by function, dtype and device.

    A pass takes a fixed time and calls, and moves and multiplies numbers. Runs that mostly do the
    second teach its pace, the others that of the first: taken for the other, each would be wrong
    by orders of magnitude.
    """

    def __init__(self) -> None:
        self._calls: dict[Kind, float] = {}
        self._numbers: dict[Kind, float] = {}

    def learn(self, result: Result) -> None:
        """Takes the pace from the quickest run of each path that a finished run measured."""
        experiment = result.experiment
        cost = experiment.described.cost(experiment.setting)
        seconds = calls = numbers = 0.0
        for path in result.paths.values():
            if path.seconds is not None:
                seconds += path.seconds.minimum
                # One in forward mode does the work of the two others.
                for count, works in (
                    (path.forward_passes, (cost.forward,)),
                    (path.backward_passes, (cost.backward,)),
                    (path.forward_mode_passes, (cost.forward, cost.backward)),
                ):
                    calls += count * sum(_calls(work) for work in works)
                    numbers += count * sum(_numbers(work) for work in works)
        if not calls:
            return
        kind = _kind(experiment)
        if numbers > calls:
            self._numbers[kind] = _left(seconds, calls * self._calls.get(kind, 1.0)) / numbers
        else:
            self._calls[kind] = _left(seconds, numbers * self._numbers.get(kind, 1.0)) / calls

    def seconds(self, experiment: Experiment) -> float:
        """Seconds to expect of a whole run: warm-ups, repeats, the Jacobians and the scaling."""
        setting, described = experiment.setting, experiment.described
        outputs, inputs = described.outputs(setting), described.inputs(setting)
        sizes = Sizes(count(experiment.heads), outputs, inputs)
        costs = self._costs(experiment, setting)
        once = sum(predicted_seconds(path, sizes, costs) for path in experiment.paths)
        formed = bool({"reuse", "jvp"} & set(experiment.paths))
        jacobians = spectra.way(outputs, inputs, costs, formed=formed).seconds
        if experiment.curvature:
            jacobians += spectra.curvature_seconds(count(experiment.heads), inputs, costs)
        if experiment.sizes and not experiment.compile:
            jacobians += spectra.sizes_seconds(
                experiment,
                spectra.sizes(experiment),
                lambda size: self._costs(experiment, spectra.setting(experiment, size)),
            )
        scaling = sum(self._scan(experiment, along) for along in experiment.scaling)
        whole = _START + (experiment.repeats + _WARM_UPS) * once + jacobians + scaling
        return whole if experiment.budget is None else min(whole, experiment.budget)

    def forward(self, experiment: Experiment) -> float:
        """Seconds to expect of one forward pass, below which no run stays."""
        return self._costs(experiment, experiment.setting).forward

    def _costs(self, experiment: Experiment, setting: Setting) -> Costs:
        """Seconds of one pass of each kind; a head takes no time beside them."""
        kind, cost = _kind(experiment), experiment.described.cost(setting)
        calls, numbers = self._calls.get(kind, 1.0), self._numbers.get(kind, 1.0)
        works = cost.forward, cost.backward
        forward, backward = (calls * _calls(work) + numbers * _numbers(work) for work in works)
        return Costs.of(forward, backward)

    def _scan(self, experiment: Experiment, along: Along) -> float:
        return scan.seconds(
            experiment,
            along,
            lambda count: self._costs(experiment, scan.setting(experiment, along, count)),
        )


def _kind(experiment: Experiment) -> Kind:
    return experiment.function, experiment.dtype, experiment.device


def _left(seconds: float, other: float) -> float:
    """What the smaller part leaves of a measured time, whatever that part was taken to be."""
    return max(seconds - other, seconds / 10)


def _calls(work: Work) -> float:
    """Seconds of a pass, estimated, that do not depend on how large the numbers' arrays are."""
    return _PASS + work.calls * CALL


def _numbers(work: Work) -> float:
    return work.seconds - work.calls * CALL
