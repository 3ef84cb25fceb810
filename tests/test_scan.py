"""The Scaling view's arithmetic: counts, cut-off and break-even."""

import pytest
import torch

from explorer import own, scan
from explorer.engine.plan import Costs, predicted_seconds
from explorer.experiment import Experiment

MATRIX, NETWORK = Experiment(), Experiment("tanh_network", 7, {"outputs": 3})
ONE = Costs.of(forward=1.0, backward=1.0)


def test_counts_are_1_2_5_up_to_the_most_there_are() -> None:
    assert scan.counts(MATRIX, "heads") == (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    assert scan.counts(NETWORK, "outputs") == (*scan.counts(NETWORK, "heads"), 2000)
    assert scan.counts(MATRIX, "outputs") == ()


def test_outputs_of_ones_own_f_are_counted_to_1000_where_it_sets_no_limit() -> None:
    def wide(x: torch.Tensor, outputs: int = 3) -> torch.Tensor:
        return x.sum() * torch.ones(outputs)

    chosen = Experiment(own.register(wide, torch.ones(2), ()).name)
    assert scan.counts(chosen, "outputs") == scan.counts(MATRIX, "heads")
    assert scan.sizes(chosen, "outputs", 500).outputs == 500


def test_sizes_at_a_count() -> None:
    heads, outputs = scan.sizes(NETWORK, "heads", 20), scan.sizes(NETWORK, "outputs", 20)
    assert (heads.heads, heads.outputs, heads.inputs) == (20, 3, 7)
    assert (outputs.heads, outputs.outputs, outputs.inputs) == (16, 20, 7)
    assert (heads.directions, outputs.directions) == (3, 16)


def test_setting_at_a_count_is_the_experiments_but_for_the_outputs() -> None:
    assert scan.setting(NETWORK, "heads", 20) == NETWORK.setting
    setting = scan.setting(NETWORK, "outputs", 20)
    assert setting.parameters == {**NETWORK.parameters, "outputs": 20}
    assert (setting.size, setting.seed) == (7, 0)


@pytest.mark.parametrize(
    "first, repeats, runs", [(0.05, 5, 4), (0.05, 2, 3), (0.05, 1, 2), (0.2, 5, 1)]
)
def test_a_long_point_is_run_once(first: float, repeats: int, runs: int) -> None:
    assert scan.executions(first, repeats) == runs


def test_seconds_of_a_scan_end_at_the_cut_off() -> None:
    chosen = Experiment(paths=("retain_graph",), repeats=1, cutoff=11.0)
    # 1 forward and as many backward as heads, each run once: 1, 2, 5 and 10 heads.
    assert scan.seconds(chosen, "heads", lambda count: ONE) == 2 + 3 + 6 + 11
    quick = Costs.of(0.01, 0.01)
    short = Experiment(paths=("reuse",), repeats=2)
    assert scan.seconds(short, "heads", lambda count: quick) == pytest.approx(10 * 3 * 0.02)


def test_costs_between_two() -> None:
    assert scan.between(Costs.of(1.0, 2.0), Costs.of(3.0, 6.0), 0.5) == Costs.of(2.0, 4.0)


def turn(paths: str, along: str, costs: Costs = ONE) -> tuple[str, str, int, str] | None:
    chosen = Experiment("tanh_network", 7, {"outputs": 3}, paths=tuple(paths.split(",")))
    found = scan.break_even(
        chosen.paths,
        scan.counts(chosen, along),  # type: ignore[arg-type]
        lambda path, n: predicted_seconds(path, scan.sizes(chosen, along, n), costs),  # type: ignore[arg-type]
    )
    return found and (found.path, found.reference, found.count, found.side)


def test_break_even_is_where_a_path_overtakes_the_naive_reference() -> None:
    # 2K passes against 1 + 3, and 1 + K against the same.
    assert turn("recompute,retain_graph,reuse", "heads") == ("reuse", "recompute", 3, "from")
    assert turn("reuse,retain_graph", "heads") == ("reuse", "retain_graph", 4, "from")


def test_break_even_of_a_path_that_is_overtaken_is_the_last_one_before() -> None:
    # 16 heads: 1 + m passes against 1 + 16.
    assert turn("retain_graph,reuse", "outputs") == ("reuse", "retain_graph", 15, "up to")


def test_the_first_path_to_overtake_counts_before_one_that_is_overtaken() -> None:
    assert turn("recompute,reuse,low_rank_vjp", "heads") == ("low_rank_vjp", "recompute", 2, "from")


@pytest.mark.parametrize(
    "paths", ["reuse", "recompute,retain_graph", "retain_graph,batched_vjp", "recompute,torchjd"]
)
def test_no_break_even_without_a_naive_path_or_where_nothing_is_overtaken(paths: str) -> None:
    assert turn(paths, "heads") is None
