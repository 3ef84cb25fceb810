"""Small experiments, run in this process."""

from typing import Any

from explorer.events import Progress
from explorer.execute import execute
from explorer.experiment import Experiment
from explorer.result import Result


def experiment(**values: Any) -> Experiment:
    """A small Experiment from a flat mapping, with what is not given as small as it can be."""
    return Experiment.from_values({"size": 20, "repeats": 2} | values)


def seen(experiment: Experiment, **options: Any) -> list[Progress | Result]:
    return list(execute(experiment, **options))


def run(*, full: Any = False, **values: Any) -> Result:
    """The finished Result of a small experiment."""
    last = seen(experiment(**values), full=full)[-1]
    assert isinstance(last, Result)
    return last
