"""Which way the norms of a Jacobian are taken, and the time that is expected of it."""

import math
from itertools import pairwise

import pytest

from explorer import spectra
from explorer.engine.plan import Costs
from explorer.experiment import Experiment
from explorer.functions import FUNCTIONS

A_PASS = Costs.of(forward=1.0, backward=2.0)
QUICK = Costs.of(forward=1e-6, backward=2e-6)


@pytest.mark.parametrize(
    ("shape", "costs", "dense"),
    [
        ((1, 1000), A_PASS, True),  # one backward
        ((3, 1000), A_PASS, True),
        ((1000, 1000), A_PASS, False),  # 1000 backwards
        ((100, 100), QUICK, True),  # within a moment all of it
        ((10_000, 10_000), QUICK, False),  # 400 s to decompose
    ],
)
def test_the_matrix_is_formed_where_that_is_quicker_or_soon_done(
    shape: tuple[int, int], costs: Costs, dense: bool
) -> None:
    assert spectra.way(*shape, costs).dense == dense


def test_what_does_not_fit_is_not_formed_and_what_is_there_is_used() -> None:
    assert not spectra.way(3, 1000, A_PASS, fits=False).dense
    assert not spectra.way(3, 1000, A_PASS, left=1.0).dense
    assert spectra.way(500, 500, A_PASS, formed=True, fits=False).dense
    one, other = (spectra.way(500, 500, A_PASS, formed=formed) for formed in (True, False))
    assert one.seconds < other.seconds
    # All singular values of a large one take longer than products with it.
    assert not spectra.way(5000, 5000, QUICK, formed=True).dense


def test_seconds_follow_the_passes() -> None:
    assert spectra.way(3, 1000, A_PASS).seconds == pytest.approx(7.0, abs=0.01)
    assert spectra.curvature_seconds(0, 10, A_PASS) == 0
    one = spectra.curvature_seconds(1, 10, A_PASS)
    assert spectra.curvature_seconds(5, 10, A_PASS) == pytest.approx(5 * one)
    assert spectra.curvature_seconds(100, 10, A_PASS) == pytest.approx(16 * one)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_sizes_are_at_most_eight_from_the_smallest_to_the_experiment_s(function: str) -> None:
    experiment = Experiment(function)
    sizes, smallest = spectra.sizes(experiment), experiment.described.size.minimum
    assert (sizes[0], sizes[-1]) == (smallest, experiment.size)
    assert len(sizes) <= 8 and list(sizes) == sorted(set(sizes))


def test_sizes_are_even_in_their_logarithm() -> None:
    sizes = spectra.sizes(Experiment("tanh_network", 1280))
    steps = [math.log(b / a) for a, b in pairwise(sizes[3:])]
    assert max(steps) - min(steps) < 0.05
    assert spectra.sizes(Experiment("tanh_network", 1)) == ()
    assert spectra.sizes(Experiment("tanh_network", 3)) == (1, 2, 3)


def test_seconds_of_the_sizes_are_of_those_below_the_experiment_s() -> None:
    experiment = Experiment("tanh_network", 100)

    def seconds(*sizes: int) -> float:
        return spectra.sizes_seconds(experiment, sizes, lambda size: A_PASS)

    assert seconds(100) == 0 < seconds(10) < seconds(10, 20) == seconds(10, 20, 100)
