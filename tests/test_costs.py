"""The cost model: points made from known costs give these back, and the lines through them."""

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.costs import CostModel, fitted
from explorer.engine.plan import AUTOMATIC, NAIVE, PATHS, Costs, Sizes, choose, predicted_seconds
from explorer.experiment import Along, Experiment
from explorer.functions import FUNCTIONS
from explorer.result import BreakEven, Result, ScalingPath
from explorer.scan import counts, setting, sizes
from tests.results import modelled, scaled, seconds

KNOWN = Costs(
    forward=1e-3, backward=3e-3, forward_mode=5e-3, batch=2e-3, batched=5e-4, head=4e-5, rows=2e-4
)
EVERY = tuple(PATHS)
# Times alone that are far off, so that whatever follows them is seen.
OFF: Callable[[float], float] = lambda seconds: 3 * seconds  # noqa: E731


def same(costs: Costs) -> Callable[[int], Costs]:
    return lambda count: costs


def model_in(result: Result, along: Along) -> CostModel:
    return fitted(result.scaling[along], result.function.inputs)


def model_of(*paths: str, **given_: object) -> CostModel:
    return model_in(modelled(same(KNOWN), paths, **given_), "heads")  # type: ignore[arg-type]


def test_the_costs_that_made_the_points_are_found() -> None:
    model = model_of(*EVERY, alone=OFF)
    for name in ("forward", "backward", "forward_mode", "batch", "batched", "head", "rows"):
        wanted = getattr(KNOWN, name)
        assert model.ends(name) == pytest.approx((wanted, wanted), rel=1e-4)
        assert name in model.determined
    assert model.misfit < 1e-5
    assert set(model.typical) == set(EVERY)


cost = st.floats(1e-5, 1.0)


@given(
    costs=st.builds(Costs, cost, cost, cost, cost, cost, cost, cost),
    paths=st.sets(st.sampled_from(EVERY), min_size=1).map(sorted),
    outputs=st.sampled_from([1, 3, 40]),
)
def test_the_lines_go_through_points_that_have_no_noise(
    costs: Costs, paths: list[str], outputs: int
) -> None:
    result = modelled(same(costs), paths, outputs=outputs)
    model = model_in(result, "heads")
    for path in set(paths) - {"auto"}:  # whose choice what was never measured may turn
        for count in (1, 7, 100):
            wanted = predicted_seconds(path, Sizes(count, outputs, 5), costs)
            assert model.seconds(path, count) == pytest.approx(wanted, rel=1e-3)


def test_along_the_outputs_a_cost_grows_evenly() -> None:
    def costs(count: int) -> Costs:
        share = (count - 1) / 99
        return replace(KNOWN, forward=1e-3 + 7e-3 * share, backward=3e-3 + 12e-3 * share)

    model = model_in(modelled(costs, EVERY, "outputs", alone=OFF), "outputs")
    assert model.ends("forward") == pytest.approx((1e-3, 8e-3), rel=1e-3)
    assert model.ends("backward") == pytest.approx((3e-3, 15e-3), rel=1e-3)
    assert model.ends("head") == pytest.approx((4e-5, 4e-5), rel=1e-2)
    assert {"forward", "backward", "forward_mode", "head"} <= model.determined


def test_one_disturbed_point_moves_little() -> None:
    model = model_of(
        *EVERY, disturb=lambda path, count: 8.0 if (path, count) == ("reuse", 20) else 1.0
    )
    for name in ("forward", "backward", "forward_mode", "head"):
        assert model.ends(name)[0] == pytest.approx(getattr(KNOWN, name), rel=0.03)
    assert (max(model.misfits).path, max(model.misfits).count) == ("reuse", 20)
    assert max(model.misfits).part == pytest.approx(7 / 8, rel=0.01)
    assert model.misfit < 0.01


def test_what_the_points_leave_open_is_not_called_determined() -> None:
    # With one output reuse is a forward and a VJP, recompute as many of both as there are heads.
    model = model_of("recompute", "reuse", outputs=1)
    assert model.determined == {"forward + backward", "head"}
    assert model.ends("forward + backward")[0] == pytest.approx(4e-3, rel=1e-4)
    assert "forward" in model_of("retain_graph", outputs=1).determined


def test_a_path_without_a_point_follows_the_others_and_else_the_passes_timed_alone() -> None:
    result = modelled(same(KNOWN), ("retain_graph", "recompute", "jvp"), alone=OFF)
    scaling = result.scaling["heads"]
    for empty, wanted in (("recompute", 1.0), ("jvp", None)):
        paths = {**scaling.paths}
        paths[empty] = paths[empty].model_copy(update={"measured": ()})
        changed = scaling.model_copy(update={"paths": paths})
        model = model_in(result.model_copy(update={"scaling": {"heads": changed}}), "heads")
        assert empty not in model.typical
        exact = predicted_seconds(empty, Sizes(50, 3, 5), KNOWN)
        if wanted:
            assert model.seconds(empty, 50) == pytest.approx(exact, rel=1e-3)
        else:  # no point has a forward-mode pass
            assert model.seconds(empty, 50) == pytest.approx(3 * exact, rel=1e-3)
            assert "forward_mode" not in model.determined


def test_without_a_point_the_passes_timed_alone_are_all_there_is() -> None:
    model = model_of("recompute", "reuse", most=0, alone=OFF)
    assert model.misfits == () and model.determined == frozenset()
    assert model.seconds("reuse", 10) == pytest.approx(
        3 * predicted_seconds("reuse", Sizes(10, 3, 5), KNOWN)
    )
    assert model_of("auto", most=0).seconds("auto", 3) == 0, "nothing tells"


def test_a_slower_f_takes_longer_and_its_heads_do_not() -> None:
    model = model_of(*EVERY).slower(10)
    slow = Costs(1e-2, 3e-2, 5e-2, 2e-2, 5e-3, head=4e-5, rows=2e-4)
    for path, count in itertools.product(EVERY, (1, 10, 100)):
        wanted = predicted_seconds(path, Sizes(count, 3, 5), slow)
        assert model.seconds(path, count) == pytest.approx(wanted, rel=1e-3), path


def test_the_break_even_moves_with_f() -> None:
    # A head costs as much as ten backward passes here: reuse spares passes, and that shows late.
    costs = Costs.of(1e-3, 1e-3, 1e-2)
    model = model_in(modelled(same(costs), ("retain_graph", "reuse"), outputs=20), "heads")
    assert model.break_even == BreakEven(
        path="reuse", reference="retain_graph", count=21, side="from"
    )
    cheap = Costs(1e-3, 1e-3, 1.0, batch=1e-2, batched=0.0, head=0.0)
    paths = ("retain_graph", "batched_vjp")
    model = model_in(modelled(same(cheap), paths, outputs=200), "heads")
    assert model.break_even is not None and model.break_even.count == 11
    assert model_in(scaled(), "heads").break_even == scaled().scaling["heads"].break_even


@given(costs=st.builds(Costs.of, cost, cost, cost), heads=st.integers(1, 60))
def test_reuse_pays_up_to_the_outputs_that_are_told(costs: Costs, heads: int) -> None:
    result = modelled(same(costs), ("recompute", "retain_graph", "reuse"))
    model = model_in(result, "heads")
    for reference in NAIVE:
        told = model.outputs_up_to(heads, reference)
        assert told is not None
        naive = predicted_seconds(reference, Sizes(heads, 1, 5), model.low)
        last, next_ = (
            predicted_seconds("reuse", Sizes(heads, m, 5), model.low) for m in (told, told + 1)
        )
        assert (told == 0 or last < naive) and next_ > naive * (1 - 1e-6)
    exact = model_in(modelled(same(Costs.of(3.0, 2.0)), (*NAIVE, "reuse")), "heads")
    assert exact.outputs_up_to(1, "retain_graph") == 0
    assert exact.outputs_up_to(10, "retain_graph") == 9
    assert exact.outputs_up_to(10, "recompute") == 23  # 50 s against 3 s and 2 s for each of them
    alone = model_in(modelled(same(costs), ("recompute",)), "heads")
    assert alone.outputs_up_to(3, "recompute") is None


def test_auto_takes_in_the_model_what_is_then_cheapest() -> None:
    paths = ("reuse", "low_rank_vjp", "batched_vjp", "auto")
    # Alone a backward is cheap, under ten times its weight a batch is.
    costs = Costs(1e-3, 1e-4, 1.0, batch=5e-4, batched=1e-6, rows=4e-3)
    model = model_in(modelled(same(costs), paths, outputs=12), "heads").slower(10)
    slow = replace(costs, forward=1e-2, backward=1e-3, batch=5e-3, batched=1e-5)
    for count in (1, 100):
        plan = choose(Sizes(count, 12, 5), slow)
        assert plan.path == {1: "low_rank_vjp", 100: "batched_vjp"}[count]
        assert model.seconds("auto", count) == pytest.approx(plan.seconds[plan.path], rel=1e-3)


@pytest.mark.parametrize("path", AUTOMATIC)
def test_points_of_auto_alone_tell_the_costs_of_what_it_took(path: str) -> None:
    dear = Costs(1e-3, 2e-3, 1e3, batch=1e3, batched=1e3, head=1e-4, rows=1e3)
    costs = {
        "reuse": dear,
        "low_rank_vjp": replace(dear, rows=0.0),
        "jvp": replace(dear, backward=1e3, forward_mode=1e-3),
        "batched_vjp": replace(dear, backward=1e3, batch=1e-3, batched=1e-4),
    }[path]
    result = modelled(same(costs), ("auto",), outputs=30, inputs=4)
    assert {p.taken for p in result.scaling["heads"].paths["auto"].measured} >= {path}
    model = model_in(result, "heads")
    assert model.misfit < 1e-3


def test_with_few_points_the_passes_timed_alone_are_all_there_is() -> None:
    for most, fit in ((1, False), (2, True)):  # 8 costs, of which 7 are in 8 paths at one count
        model = model_of(*EVERY, most=most, alone=OFF)
        assert bool(model.misfits) == bool(model.determined) == fit
        factor = 1 if fit else 3
        exact = predicted_seconds("recompute", Sizes(50, 3, 5), KNOWN)
        assert model.seconds("recompute", 50) == pytest.approx(factor * exact, rel=1e-3)


def test_how_costs_grow_is_not_read_off_the_first_few_outputs_alone() -> None:
    def costs(count: int) -> Costs:
        share = (count - 1) / 99
        return replace(KNOWN, forward=1e-3 + 7e-3 * share, backward=3e-3 + 12e-3 * share)

    noise = random.Random(0)
    few = modelled(
        costs, EVERY, "outputs", most=5, disturb=lambda path, count: noise.uniform(0.8, 1.25)
    )
    scaling = modelled(costs, EVERY, "outputs").scaling["outputs"]
    # Forward mode was cut off early, and no other path has such a pass.
    jvp = scaling.paths["jvp"]
    start = [
        each.model_copy(update={"seconds": seconds(factor * each.seconds.median)})
        for each, factor in zip(jvp.measured[:2], (0.8, 1.25), strict=True)
    ]
    cut = {**scaling.paths, "jvp": jvp.model_copy(update={"measured": tuple(start)})}
    early = fitted(scaling.model_copy(update={"paths": cut}), 5)
    for model, paths in (
        (model_in(few, "outputs"), ("recompute", "retain_graph", "reuse", "jvp")),
        (early, ("jvp",)),
    ):
        assert model.misfits
        for path in paths:
            exact = predicted_seconds(path, Sizes(16, 100, 5), costs(100))
            assert model.seconds(path, 100) == pytest.approx(exact, rel=0.25)


def test_a_path_that_cannot_run_takes_forever_and_breaks_even_with_none() -> None:
    result = modelled(same(KNOWN), ("recompute", "reuse", "jvp"), outputs=20)
    scaling = result.scaling["heads"]
    never = tuple(
        each.model_copy(update={"seconds": math.inf}) for each in scaling.paths["jvp"].predicted
    )
    jvp = ScalingPath(predicted=never, ended="forward mode does not go through it")
    model = fitted(scaling.model_copy(update={"paths": {**scaling.paths, "jvp": jvp}}), 5)
    assert model.seconds("jvp", 1) == model.slower(10).seconds("jvp", 100) == math.inf
    assert model.break_even is not None and model.break_even.path == "reuse"


def test_what_a_later_version_measured_is_left_out() -> None:
    result = modelled(same(KNOWN), (*NAIVE, "reuse", "auto"))
    scaling = result.scaling["heads"]
    auto = scaling.paths["auto"]
    taken = [each.model_copy(update={"taken": "magic"}) for each in auto.measured]
    strange = {
        "magic": scaling.paths["reuse"],
        "auto": auto.model_copy(update={"measured": (*taken, auto.measured[0])}),
        "torchjd": auto.model_copy(update={"measured": ()}),
    }
    model = fitted(scaling.model_copy(update={"paths": {**scaling.paths, **strange}}), 5)
    assert set(model.typical) == {*NAIVE, "reuse", "auto"}
    assert len(model.misfits) == 3 * 7 + 1
    assert model.seconds("magic", 3) == math.inf


def test_times_of_nothing_are_left_out() -> None:
    # A clock that does not tell two moments apart.
    model = model_of("recompute", "reuse", disturb=lambda path, count: float(count > 1))
    assert len(model.misfits) == 2 * 6
    assert all(math.isfinite(each.part) for each in model.misfits)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_sizes_of_the_model_are_those_of_the_scan(name: str) -> None:
    experiment = Experiment(name)
    if not counts(experiment, "outputs"):
        return
    described, inputs = experiment.described, sizes(experiment, "heads", 1).inputs
    for count in counts(experiment, "outputs"):
        at = setting(experiment, "outputs", count)
        assert (described.outputs(at), described.inputs(at)) == (count, inputs)


def test_naive_paths_are_the_references() -> None:
    assert model_of("reuse", "jvp").break_even is None
    assert model_of(*NAIVE, "reuse").break_even.reference == NAIVE[0]  # type: ignore[union-attr]
