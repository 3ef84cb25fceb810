"""A scan measures what it says: heads of full rank, counted passes, ends with their reason."""

import math
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import pytest
import torch

from explorer import scaling, scan
from explorer.engine.plan import PATHS, Costs, Passes, expected_passes
from explorer.experiment import Along
from explorer.functions import FUNCTIONS
from explorer.heads import random
from explorer.result import BreakEven, Scaling
from explorer.scaling import Scan
from tests.runs import experiment

NETWORK = {"function": "tanh_network", "size": 3, "outputs": 2}


@pytest.mark.parametrize("count, outputs", [(1, 3), (5, 3), (3, 5)])
def test_heads_have_the_highest_rank_there_is(count: int, outputs: int) -> None:
    y = torch.linspace(-1, 1, outputs, dtype=torch.float64).requires_grad_()
    rows = [torch.autograd.grad(head(y), y)[0] for head in random(count, y, seed=0)]
    assert torch.linalg.matrix_rank(torch.stack(rows)) == min(count, outputs)


def test_heads_are_seeded_sums_of_sines() -> None:
    y = torch.tensor([0.3, -1.2], dtype=torch.float64)
    weights = torch.randn(3, 2, generator=torch.Generator().manual_seed(7)).double()
    values = [head(y).item() for head in random(3, y, seed=7)]
    assert values == pytest.approx((weights @ y.sin()).tolist())
    few, narrow = random(2, y, seed=7), random(3, y.float(), seed=7)
    assert [head(y).item() for head in few] == values[:2]
    assert [head(y.float()).item() for head in narrow] == pytest.approx(values, rel=1e-6)


def test_heads_of_a_scalar() -> None:
    y = torch.tensor(0.5)
    assert all(head(y).shape == () for head in random(2, y, seed=0))


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few heads and outputs, or every path would be run for a thousand."""
    real = scan.counts
    monkeypatch.setattr(scan, "counts", lambda *given: real(*given)[:3])


@pytest.fixture
def a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pass through f takes a second, and a head alone another."""

    def timed(run: Callable[[], Any]) -> tuple[float, Any]:
        found = run()
        passes = found[0] if isinstance(found, tuple) else None
        return float(sum(astuple(passes)) if isinstance(passes, Passes) else 1), found

    monkeypatch.setattr(scaling, "timed", timed)


def made(
    left: float = math.inf, spare: float = math.inf, along: Along = "heads", **values: Any
) -> Scan:
    chosen = experiment(**NETWORK | values)
    problem = FUNCTIONS[chosen.function].build(chosen.setting)
    costs = Costs.of(1e-4, 1e-4)
    return Scan(chosen, along, problem, problem.f(problem.x).numel(), costs, lambda: left, spare)


def ran(one: Scan) -> Scaling:
    for _ in one.run():
        pass
    return one.result


@pytest.mark.parametrize("along", ["heads", "outputs"])
@pytest.mark.usefixtures("limited")
def test_every_path_is_measured_at_every_count_with_the_passes_it_took(along: Along) -> None:
    result = ran(made(along=along, paths=",".join(PATHS), cutoff=60.0))
    assert (result.along, result.counts) == (along, (1, 2, 5))
    assert (result.heads, result.outputs) == ((None, 2) if along == "heads" else (16, None))
    for name, path in result.paths.items():
        assert path.ended == "" and [point.count for point in path.measured] == [1, 2, 5]
        for point, predicted in zip(path.measured, path.predicted, strict=True):
            sizes = scan.sizes(experiment(**NETWORK), along, point.count)
            assert (point.taken == "") == (name != "auto")
            # `auto` sends a batch of the independent directions alone.
            taken = {"batched_vjp": "low_rank_vjp"}.get(point.taken, point.taken) or name
            passes = expected_passes(taken, sizes)
            assert (point.backward_passes, point.forward_mode_passes) == (
                passes.backward,
                passes.forward_mode,
            )
            assert len(point.seconds.runs) in (1, 2) and predicted.seconds > 0
            if name != "auto":
                assert predicted.backward_passes == passes.backward


@pytest.mark.usefixtures("limited", "a_second")
def test_predictions_are_from_one_pass_of_each_kind_and_one_head() -> None:
    result = ran(made(paths="recompute,retain_graph,reuse,jvp", cutoff=60.0))
    predicted = {
        name: [each.seconds for each in path.predicted] for name, path in result.paths.items()
    }
    assert predicted == {
        "recompute": [3, 6, 15],  # a forward, a backward and a head for each
        "retain_graph": [3, 5, 11],
        "reuse": [4, 5, 8],  # two entries of y
        "jvp": [4, 5, 8],  # three of x
    }


@pytest.mark.usefixtures("limited", "a_second")
def test_a_slow_path_is_cut_off_and_the_others_go_on() -> None:
    # Without the heads, which are predicted to take 1 s each and take nothing: 2, 4 and 10 s.
    result = ran(made(paths="recompute,reuse", cutoff=9.0))
    slow, quick = result.paths["recompute"], result.paths["reuse"]
    assert [point.count for point in slow.measured] == [1, 2]
    assert slow.ended == "5 heads would take about 10 s, more than the cut-off of 9 s"
    assert [point.count for point in quick.measured] == [1, 2, 5]
    assert (len(slow.predicted), quick.ended) == (3, "")


@pytest.mark.usefixtures("limited", "a_second")
def test_a_long_run_is_not_repeated() -> None:
    result = ran(made(paths="reuse", cutoff=60.0, repeats=5))
    assert [len(point.seconds.runs) for point in result.paths["reuse"].measured] == [1, 1, 1]


@pytest.mark.usefixtures("limited")
def test_a_run_much_longer_than_expected_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first use of a path in a process imports what it needs."""
    seconds = iter([1.5])  # of the first run of all, then as it was expected
    real = scaling.timed

    def timed(run: Callable[[], Any]) -> tuple[float, Any]:
        took, found = real(run)
        first = isinstance(found, tuple) and isinstance(found[0], Passes)
        return (next(seconds, took) if first else took), found

    monkeypatch.setattr(scaling, "timed", timed)
    point, *_ = ran(made(paths="retain_graph", cutoff=60.0)).paths["retain_graph"].measured
    assert point.seconds.median < 1.5


@pytest.mark.usefixtures("limited")
def test_the_budget_ends_the_scan_with_a_word() -> None:
    result = ran(made(left=0.0, paths="reuse"))
    assert result.paths["reuse"].measured == ()
    assert result.paths["reuse"].ended.endswith("more than is left of the budget")
    assert result.paths["reuse"].predicted[0].backward_passes == 2


@pytest.mark.usefixtures("limited")
def test_an_f_that_does_not_fit_into_memory_is_not_built() -> None:
    described = FUNCTIONS["tanh_network"]
    fits = described.cost(scan.setting(experiment(**NETWORK), "outputs", 2)).memory_bytes
    result = ran(made(spare=fits, along="outputs", paths="reuse"))
    path = result.paths["reuse"]
    assert [point.count for point in path.measured] == [1, 2]
    assert path.ended == "5 outputs would take more memory than is free"


@pytest.mark.usefixtures("limited")
def test_forward_mode_of_a_compiled_f_is_not_predicted() -> None:
    result = made(paths="retain_graph,jvp", compile=True).result
    assert result.paths["jvp"].ended == "forward mode does not go through a compiled f"
    assert {each.seconds for each in result.paths["jvp"].predicted} == {math.inf}
    assert all(math.isfinite(each.seconds) for each in result.paths["retain_graph"].predicted)
    assert Scaling.model_validate_json(result.model_dump_json()) == result


@pytest.mark.usefixtures("limited")
def test_what_remains_falls_to_nothing() -> None:
    one = made(paths="recompute,reuse", cutoff=60.0)
    remaining = [one.remaining for _ in one.run()]
    assert remaining[0] > 0 and one.remaining == 0


@pytest.mark.usefixtures("limited")
def test_the_break_even_is_that_of_the_points_once_there_are_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def timed(run: Callable[[], Any]) -> tuple[float, Any]:
        """Alone all takes a second; in a path a forward-mode pass 1.5 s, and a head nothing."""
        found = run()
        passes = found[0] if isinstance(found, tuple) else None
        if not isinstance(passes, Passes):
            return 1.0, found
        return passes.forward + passes.backward + 1.5 * passes.forward_mode, found

    monkeypatch.setattr(scaling, "timed", timed)
    scan = made(paths="retain_graph,jvp", cutoff=60.0)
    *_, last = [told for told in scan.run() if isinstance(told, Scaling)]
    alone = BreakEven(path="jvp", reference="retain_graph", count=3, side="from")
    assert last.break_even == alone  # 3 + K seconds against 1 + 2 K
    assert scan.result.break_even == alone.model_copy(update={"count": 4})  # 4.5 against 1 + K
