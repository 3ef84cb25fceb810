"""What a path will take is arithmetic on its passes."""

import pytest

from explorer.engine.plan import NAIVE, PATHS, PassCost, expected_passes, predicted_seconds


@pytest.mark.parametrize("heads, outputs", [(1, 1), (3, 1), (3, 7), (10, 2)])
def test_expected_passes(heads: int, outputs: int) -> None:
    assert {path: expected_passes(path, heads, outputs) for path in PATHS} == {
        "recompute": (heads, heads),
        "retain_graph": (1, heads),
        "reuse": (1, outputs),
    }


def test_predicted_seconds_are_those_of_the_passes() -> None:
    cost = PassCost(forward=2.0, backward=7.0)
    assert predicted_seconds("recompute", 3, 5, cost) == 3 * 2 + 3 * 7
    assert predicted_seconds("retain_graph", 3, 5, cost) == 2 + 3 * 7
    assert predicted_seconds("reuse", 3, 5, cost) == 2 + 5 * 7


def test_naive_paths_are_paths() -> None:
    assert set(NAIVE) < set(PATHS)
