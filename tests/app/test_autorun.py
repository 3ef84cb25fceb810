"""What is predicted of a run, for the runs that start by themselves."""

import pytest

from explorer.app.autorun import Pace
from explorer.execute import execute
from explorer.experiment import Experiment
from explorer.result import Result


def run(**fields: object) -> Result:
    *_, result = execute(Experiment(**fields))
    return result


def test_a_toy_runs_by_itself_and_a_large_matrix_does_not():
    pace = Pace()
    assert pace.seconds(Experiment(size=20)) < 0.5
    assert pace.seconds(Experiment(size=1000)) > 10


def test_a_run_teaches_what_the_same_run_will_take_again():
    for size in (10, 120):
        pace, result = Pace(), run(size=size, repeats=3)
        pace.learn(result)
        measured = sum(path.seconds.minimum for path in result.paths.values())
        expected = 0.06 + 5 * measured
        assert pace.seconds(result.experiment) == pytest.approx(expected, rel=0.5)


def test_a_small_run_says_nothing_of_the_rate_and_a_large_one_nothing_of_a_pass():
    pace, small, large = Pace(), Experiment(size=10), Experiment(size=400)
    before = pace.seconds(large)
    pace.learn(run(size=10))
    assert pace.seconds(large) == pytest.approx(before, rel=0.05)
    before = pace.seconds(small)
    pace.learn(run(size=120, repeats=1))
    assert pace.seconds(small) == pytest.approx(before, rel=0.05)


def test_another_dtype_has_a_pace_of_its_own():
    pace, other = Pace(), Experiment(size=120, dtype="float32")
    before = pace.seconds(other)
    pace.learn(run(size=120, repeats=1))
    assert pace.seconds(other) == before


def test_no_run_is_expected_to_outlast_its_budget():
    assert Pace().seconds(Experiment(size=2000, budget=3.0)) == 3.0
