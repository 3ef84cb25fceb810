"""What is predicted of a run, for the runs that start by themselves."""

import pytest

from explorer.engine.plan import Costs, Sizes, expected_passes
from explorer.experiment import DEFAULT_PATHS, Experiment
from explorer.pace import Pace
from explorer.result import Result
from tests.results import head, result, timed


def run(a_pass: float, **fields: object) -> Result:
    """What a run shows in which every pass through f took so many seconds."""
    paths = {}
    for path in DEFAULT_PATHS:
        passes = expected_passes(path, Sizes(heads=2, outputs=1, inputs=1), Costs.of(1.0, 1.0))
        took = a_pass * (passes.forward + passes.backward)
        paths[path] = timed(took, 1.5 * took, forward=passes.forward, backward=passes.backward)
    return result(paths, {name: head({}, {}) for name in ("square", "sqrt")}, **fields)


def test_a_toy_runs_by_itself_and_a_large_matrix_does_not():
    pace = Pace()
    assert pace.seconds(Experiment(size=20)) < 0.5
    assert pace.seconds(Experiment(size=1000)) > 10


def test_a_run_teaches_what_the_same_run_will_take_again():
    for size, a_pass in ((10, 1e-3), (400, 0.5)):
        pace, seen = Pace(), run(a_pass, size=size, repeats=3)
        pace.learn(seen)
        expected = 0.06 + (3 + 2) * 11 * a_pass  # the paths pass 4, 3, 2 and 2 times
        assert pace.seconds(seen.experiment) == pytest.approx(expected, rel=0.01)


def test_a_small_run_says_nothing_of_the_rate_and_a_large_one_nothing_of_a_pass():
    pace, small, large = Pace(), Experiment(size=10), Experiment(size=400)
    before = pace.seconds(large)
    pace.learn(run(1e-3, size=10))
    assert pace.seconds(large) == pytest.approx(before, rel=0.05)
    before = pace.seconds(small)
    pace.learn(run(0.01, size=120))
    assert pace.seconds(small) == pytest.approx(before, rel=0.05)


def test_another_dtype_has_a_pace_of_its_own():
    pace, other = Pace(), Experiment(size=120, dtype="float32")
    before = pace.seconds(other)
    pace.learn(run(0.5, size=120))
    assert pace.seconds(other) == before


def test_a_scaling_does_not_run_by_itself_and_ends_at_its_cut_off():
    pace, small = Pace(), {"size": 20, "scaling": ("heads",)}
    assert pace.seconds(Experiment(size=20)) < 0.5 < pace.seconds(Experiment(**small))
    assert pace.seconds(Experiment(**small, cutoff=0.01)) < pace.seconds(Experiment(**small))


def test_a_pass_in_forward_mode_is_learnt_from_and_predicted():
    pass_ = {"forward": 0, "backward": 0, "forward_mode_passes": 1}
    heads = {name: head({}, {}) for name in ("square", "sqrt")}
    pace = Pace()
    pace.learn(result({"jvp": timed(0.1, **pass_)}, heads, size=10))
    assert pace.seconds(Experiment(size=10, repeats=3, paths=("jvp",))) == pytest.approx(
        0.06 + 5 * 0.1, rel=0.01
    )


def test_no_run_is_expected_to_outlast_its_budget():
    assert Pace().seconds(Experiment(size=2000, budget=3.0)) == 3.0


def test_curvature_and_norms_by_size_are_counted_in():
    pace, small = Pace(), {"function": "tanh_network", "size": 100}
    plain = pace.seconds(Experiment(**small))
    for more in ("curvature", "sizes"):
        assert pace.seconds(Experiment(**small, **{more: True})) > plain
    both = Experiment(**small, curvature=True, sizes=True, budget=1e-3)
    assert pace.seconds(both) == 1e-3
