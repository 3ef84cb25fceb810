"""What a path will take is arithmetic on its passes, and `auto` takes the least."""

import doctest
import importlib
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import explorer.engine
from explorer.engine.gradients import gradients, plan
from explorer.engine.plan import (
    AUTOMATIC,
    NAIVE,
    PATHS,
    PEER,
    Costs,
    Passes,
    Plan,
    Sizes,
    choose,
    expected_passes,
    predicted_seconds,
)
from tests.passes import counting

ARITHMETIC = Costs.of(forward=1.0, backward=2.0)

counts = st.integers(0, 50)
some_sizes = st.builds(
    lambda heads, outputs, inputs, rank: Sizes(heads, outputs, inputs, min(heads, outputs, rank)),
    counts,
    counts,
    counts,
    counts,
)
seconds = st.floats(0, 10)
some_costs = st.builds(Costs, seconds, seconds, seconds, seconds, seconds, seconds, seconds)


# Passes and seconds.


@pytest.mark.parametrize("heads, outputs, rank", [(1, 1, 1), (3, 1, 1), (3, 7, 2), (10, 2, None)])
def test_expected_passes(heads: int, outputs: int, rank: int | None) -> None:
    sizes = Sizes(heads, outputs, inputs=5, rank=rank)
    expected = {
        "recompute": Passes(heads, heads),
        "retain_graph": Passes(1, heads),
        "reuse": Passes(1, outputs),
        "batched_vjp": Passes(1, heads),
        "low_rank_vjp": Passes(1, min(heads, outputs) if rank is None else rank),
        "jvp": Passes(0, 0, 5),
        "torchjd": Passes(1, heads),
    }
    assert {path: expected_passes(path, sizes) for path in PATHS if path != "auto"} == expected


def test_forward_mode_of_an_empty_x_still_calls_f() -> None:
    assert expected_passes("jvp", Sizes(2, 3, 0)) == Passes(1, 0, 0)


def test_passes_of_auto_are_those_of_what_it_chooses() -> None:
    sizes = Sizes(4, 9, 100, 2)
    assert expected_passes("auto", sizes, ARITHMETIC) == Passes(1, 2)
    with pytest.raises(ValueError, match="`auto` depend on `costs`"):
        expected_passes("auto", sizes)
    with pytest.raises(ValueError, match=r"`path` is 'zzz'. Allowed: recompute"):
        expected_passes("zzz", sizes)


def test_predicted_seconds_are_those_of_the_passes() -> None:
    costs = Costs(
        forward=2.0, backward=7.0, forward_mode=11.0, batch=5.0, batched=3.0, head=0.5, rows=0.25
    )
    sizes = Sizes(heads=3, outputs=5, inputs=4, rank=2)
    heads = 3 * 0.5
    assert predicted_seconds("recompute", sizes, costs) == heads + 3 * 2 + 3 * 7
    assert predicted_seconds("retain_graph", sizes, costs) == heads + 2 + 3 * 7
    assert predicted_seconds("torchjd", sizes, costs) == heads + 2 + 3 * 7
    assert predicted_seconds("reuse", sizes, costs) == heads + 2 + 5 * 7
    assert predicted_seconds("batched_vjp", sizes, costs) == heads + 2 + 5 + 3 * 3
    assert predicted_seconds("low_rank_vjp", sizes, costs) == heads + 2 + 0.25 + 2 * 7
    assert predicted_seconds("jvp", sizes, costs) == heads + 4 * 11
    chosen = choose(sizes, costs)
    assert predicted_seconds("auto", sizes, costs) == chosen.seconds[chosen.path]


def test_one_entry_has_one_direction_that_is_not_looked_for() -> None:
    costs = replace(ARITHMETIC, rows=100.0)
    assert predicted_seconds("low_rank_vjp", Sizes(3, 1, 5, 1), costs) == 1 + 2


def test_named_paths_are_paths() -> None:
    assert {*NAIVE, *AUTOMATIC, PEER, "auto"} == set(PATHS)


# Choosing.


@pytest.mark.parametrize(
    "sizes, path",
    [
        (Sizes(64, 1, 100, 1), "reuse"),
        (Sizes(64, 8, 100, 8), "reuse"),
        (Sizes(64, 1024, 100, 4), "low_rank_vjp"),
        (Sizes(1, 1024, 100, 1), "low_rank_vjp"),
        (Sizes(64, 1024, 2, 64), "jvp"),
    ],
    ids=str,
)
def test_fewest_passes_where_time_is_arithmetic(sizes: Sizes, path: str) -> None:
    assert choose(sizes, ARITHMETIC).path == path


def test_batch_where_passes_have_a_fixed_cost() -> None:
    costs = Costs(forward=1.0, backward=2.0, forward_mode=50.0, batch=4.0, batched=0.01)
    chosen = choose(Sizes(64, 1024, 10, 32), costs)
    assert chosen.path == "batched_vjp" and chosen.passes == Passes(1, 32)  # the directions
    # A batch of two is not worth its fixed cost.
    assert choose(Sizes(64, 1024, 10, 2), costs).path == "low_rank_vjp"


def test_forward_mode_runs_f_again() -> None:
    chosen = choose(Sizes(64, 1024, 2, 64), ARITHMETIC)
    assert chosen.passes == Passes(1, 0, 2) and chosen.seconds["jvp"] == 1 + 2 * 3


@given(some_sizes, some_costs)
def test_the_choice_is_the_least_of_all_candidates(sizes: Sizes, costs: Costs) -> None:
    chosen = choose(sizes, costs)
    assert set(chosen.seconds) == set(AUTOMATIC)
    assert chosen.seconds[chosen.path] == min(chosen.seconds.values())
    assert chosen.passes.backward <= max(sizes.directions, sizes.outputs)
    assert chosen.sentence.endswith(".") and chosen.sizes == sizes


@given(some_sizes)
def test_never_more_passes_back_than_heads_or_entries(sizes: Sizes) -> None:
    chosen = choose(sizes, ARITHMETIC)
    assert chosen.passes.backward <= min(sizes.heads, sizes.outputs)


@given(some_sizes, some_costs, st.floats(0, 100))
def test_memory_limit_is_kept(sizes: Sizes, costs: Costs, limit: float) -> None:
    needs = {"reuse": 40.0, "low_rank_vjp": 10.0, "jvp": 30.0, "batched_vjp": 60.0}
    if limit < 10:
        with pytest.raises(ValueError, match=r"`memory_limit` is .*needs about 10\."):
            choose(sizes, costs, candidates=needs, memory_limit=limit)
        return
    chosen = choose(sizes, costs, candidates=needs, memory_limit=limit)
    assert needs[chosen.path] <= limit
    assert set(chosen.seconds) == {path for path in needs if needs[path] <= limit}


def test_candidates_that_are_left_out_are_not_chosen() -> None:
    chosen = choose(Sizes(64, 1024, 2, 64), ARITHMETIC, candidates={"low_rank_vjp": 0.0})
    assert chosen.path == "low_rank_vjp" and list(chosen.seconds) == ["low_rank_vjp"]


# Sentences.

SENTENCES: dict[str, tuple[str, Sizes, Passes, str]] = {
    "recompute": (
        "recompute",
        Sizes(3, 5, 2),
        Passes(3, 3),
        "3 backward passes: f again for every head, as the naive code has it.",
    ),
    "recompute one": (
        "recompute",
        Sizes(1, 5, 2),
        Passes(1, 1),
        "1 backward pass: f again for every head, as the naive code has it.",
    ),
    "retain_graph": (
        "retain_graph",
        Sizes(3, 5, 2),
        Passes(1, 3),
        "3 backward passes: one a head, as the naive code has it.",
    ),
    "reuse": (
        "reuse",
        Sizes(9, 5, 2),
        Passes(1, 5),
        "5 backward passes instead of 9: y has 5 entries, and one pass gives the row of dy/dx "
        "for each.",
    ),
    "reuse one": (
        "reuse",
        Sizes(2, 1, 2),
        Passes(1, 1),
        "1 backward pass instead of 2: y has 1 entry, and one pass gives the row of dy/dx for "
        "each.",
    ),
    "low_rank_vjp": (
        "low_rank_vjp",
        Sizes(64, 99, 2, 4),
        Passes(1, 4),
        "4 backward passes instead of 64: the 64 heads depend on y through 4 directions only.",
    ),
    "low_rank_vjp one": (
        "low_rank_vjp",
        Sizes(2, 99, 2, 1),
        Passes(1, 1),
        "1 backward pass instead of 2: the 2 heads depend on y through one direction only.",
    ),
    "low_rank_vjp full": (
        "low_rank_vjp",
        Sizes(3, 99, 2, 3),
        Passes(1, 3),
        "3 backward passes: one a head, none of which follows from the others.",
    ),
    "low_rank_vjp unknown": (
        "low_rank_vjp",
        Sizes(3, 99, 2),
        Passes(1, 3),
        "3 backward passes: one a head.",
    ),
    "low_rank_vjp one head": (
        "low_rank_vjp",
        Sizes(1, 99, 2, 1),
        Passes(1, 1),
        "1 backward pass: one a head.",
    ),
    "batched_vjp": (
        "batched_vjp",
        Sizes(3, 99, 2),
        Passes(1, 3),
        "3 backward passes in one batch: the cotangents of all heads go back together.",
    ),
    "batched_vjp of the directions": (
        "batched_vjp",
        Sizes(9, 99, 2, 3),
        Passes(1, 3),
        "3 backward passes in one batch instead of 9: the 9 heads depend on y through 3 directions "
        "only.",
    ),
    "batched_vjp one": (
        "batched_vjp",
        Sizes(1, 99, 2),
        Passes(1, 1),
        "1 backward pass in one batch: the cotangents of all heads go back together.",
    ),
    "jvp": (
        "jvp",
        Sizes(9, 99, 2),
        Passes(1, 0, 2),
        "2 forward-mode passes instead of 9 backward passes: x has 2 entries, and one pass gives "
        "the column of dy/dx for each.",
    ),
    "jvp one": (
        "jvp",
        Sizes(1, 99, 1),
        Passes(1, 0, 1),
        "1 forward-mode pass instead of 1 backward pass: x has 1 entry, and one pass gives the "
        "column of dy/dx for each.",
    ),
    "torchjd": (
        "torchjd", Sizes(3, 5, 2), Passes(1, 3), "3 backward passes: one a head, by torchjd."
    ),
    "nothing": (
        "low_rank_vjp", Sizes(0, 5, 2, 0), Passes(1, 0),
        "No pass back through f: no head depends on y.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SENTENCES)
def test_sentence(case: str) -> None:
    path, sizes, passes, sentence = SENTENCES[case]
    assert Plan(path, sizes, passes).sentence == sentence


def test_every_path_has_a_sentence() -> None:
    assert {path for path, *_ in SENTENCES.values()} == set(PATHS) - {"auto"}


# The plan as an object.


def test_plan_pickles() -> None:
    """A process that runs a plan sends it back to the page."""
    whole = Plan("jvp", Sizes(3, 4, 1, 2), Passes(1, 0, 1), {"jvp": 1.0, "reuse": 2.0}, ("a", "b"))
    copy = pickle.loads(pickle.dumps(whole))
    assert copy == whole and copy.sentence == whole.sentence
    with pytest.raises(TypeError):
        copy.seconds["jvp"] = 0.0


def test_noting_puts_further_notes_first() -> None:
    whole = Plan("reuse", Sizes(1, 1, 1), Passes(1, 1), notes=("old",))
    assert whole.noting(["new"]).notes == ("new", "old")
    assert whole.noting([]) is whole


# The plan of a function.


@pytest.mark.parametrize("outputs", [1, 3, 8])
@pytest.mark.parametrize("heads", [1, 2, 5])
def test_plan_runs_f_forward_once_and_says_what_will_be_done(outputs: int, heads: int) -> None:
    inner, count = counting(lambda x: x[:outputs])
    x = torch.linspace(0.5, 1.5, 20, dtype=torch.float64)
    gs = [lambda y, k=k: (y**k).sum() for k in range(1, heads + 1)]
    found = plan(inner, gs, x)
    assert (count.forward, count.backward, count.forward_mode) == (1, 0, 0)
    taken = gradients(inner, gs, x)
    fewest = min(heads, outputs)
    assert found.sizes == Sizes(heads, outputs, 20, fewest)
    assert found.passes == taken.passes == Passes(1, fewest)


def test_plan_knows_heads_that_agree() -> None:
    inner, count = counting(lambda x: x)
    x = torch.ones(6, dtype=torch.float64)
    heads = [torch.sum, torch.mean, lambda y: 3 * y[:2].sum(), lambda y: y[:2].sum() - y.sum()]
    found = plan(inner, heads, x)
    assert count.backward == 0 and found.sizes.rank == 2
    assert "the 4 heads depend on y through 2 directions only" in found.sentence
    # The derivative of a cotangent need not lie along them.
    assert plan(inner, heads, x, create_graph=True).passes.backward == 4


def test_plan_of_heads_that_do_not_use_y() -> None:
    found = plan(torch.sin, [lambda y: torch.ones(()), lambda y, x: x.sum()], torch.ones(3))
    assert found.sizes.heads == 0 and found.passes.backward == 0
    assert found.sentence == "No pass back through f: no head depends on y."


def test_plan_refuses_what_gradients_refuses() -> None:
    with pytest.raises(ValueError, match="`heads` is empty"):
        plan(torch.sin, [], torch.ones(3))
    with pytest.raises(TypeError, match="`x` is a float"):
        plan(torch.sin, [torch.sum], 2.0)
    with pytest.raises(ValueError, match="cut off from `x`"):
        plan(lambda x: x.detach(), [torch.sum], torch.ones(3))


# The examples in the docstrings of the engine.

MODULES = sorted(
    path.stem for path in Path(explorer.engine.__path__[0]).glob("*.py") if path.stem != "__init__"
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"explorer.engine.{name}"))
    assert found.failed == 0


def test_there_are_examples() -> None:
    """What a docstring shows is run."""
    for name in ("gradients", "hessian", "plan"):
        module = importlib.import_module(f"explorer.engine.{name}")
        assert any(test.examples for test in doctest.DocTestFinder().find(module))
