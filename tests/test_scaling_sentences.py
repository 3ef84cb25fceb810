"""A scaling in words: the numbers are right, and what the points do not tell is not told."""

import re
from dataclasses import replace

from explorer.engine.plan import NAIVE, Costs
from explorer.scaling_sentences import scaling
from tests.results import modelled, scaled, scanned


def test_a_scaling_says_its_break_even_what_was_fitted_and_who_was_not_continued() -> None:
    turn, fit, ended = scaling(scaled(), "heads")
    assert turn == (
        "By the number of heads K: from 2 on, reuse is predicted to be faster than retain_graph."
    )
    assert fit.startswith("Fitted to the points: a forward 1.02 s, a VJP 1.02 s")
    assert re.search(r"The fitted lines are \S+% off at the median, \S+% at most \(.+\).$", fit)
    assert ended == (
        "retain_graph was not continued: 10 heads would take about 11 s, more than the cut-off "
        "of 9 s."
    )
    seen = modelled(lambda count: Costs.of(1.0, 1.0), ("recompute", "retain_graph"))
    assert scaling(seen, "heads")[0] == (
        "By the number of heads K: no break-even with a naive path is predicted."
    )


def test_what_was_fitted_is_told_as_far_as_the_points_tell_it() -> None:
    costs = Costs(2e-3, 3e-3, 7e-3, 1.0, 1.0, head=5e-5)
    known = [
        (("retain_graph",), "a forward 2 ms."),
        (("recompute", "reuse"), "a forward and a VJP 5 ms and a head 50 µs."),
        (("recompute", "jvp", "retain_graph", "reuse"),
         "a forward 2 ms, a VJP 3 ms, a JVP 7 ms and a head 50 µs."),
    ]  # fmt: skip
    for paths, words in known:
        seen = modelled(lambda count: costs, paths, outputs=1)
        assert scaling(seen, "heads")[1].startswith(f"Fitted to the points: {words} ")

    def growing(count: int) -> Costs:
        return replace(costs, backward=3e-3 * count)

    seen = modelled(growing, ("recompute", "retain_graph", "reuse"), "outputs")
    assert scaling(seen, "outputs")[1].startswith(
        "Fitted to the points of f with 1 to 100 outputs: a forward 2 ms, a VJP 3 ms to 300 ms and "
        "a head 50 µs. "
    )
    fixed = modelled(growing, ("retain_graph", "reuse"), "outputs")
    assert scaling(fixed, "outputs")[1].startswith(
        "Fitted to the points of f with 1 to 100 outputs: a VJP 3 ms to 300 ms. "
    ), "a forward and 16 heads are always paid together"
    waiting = modelled(lambda count: costs, ("retain_graph", "reuse"), most=0)
    assert len(scaling(waiting, "heads")) == 1


def test_without_a_scaling_along_the_outputs_the_widest_y_is_reckoned() -> None:
    def said(heads: int, *paths: str) -> list[str]:
        seen = modelled(lambda count: Costs.of(3.0, 2.0), paths)
        (one,) = seen.heads.values()
        many = {f"{number}": one for number in range(heads)}
        return scaling(seen.model_copy(update={"heads": many}), "heads")

    words = "At these costs, with 10 heads, reuse would be faster than"
    assert f"{words} recompute up to 23 entries of y." in said(10, *NAIVE, "reuse")
    assert f"{words} retain_graph up to 9 entries of y." in said(10, "retain_graph", "reuse")
    for silent in (said(1, *NAIVE, "reuse"), said(10, *NAIVE), said(10, "reuse", "jvp")):
        assert not any("At these costs" in each for each in silent)


def test_a_cost_of_nothing_is_told_as_well() -> None:
    seen = modelled(lambda count: Costs(0.0, 3e-3, 7e-3, 1.0, 1.0, 5e-5), (*NAIVE, "reuse"))
    words = "Fitted to the points: a forward next to nothing, a VJP 3 ms and a head 50 µs. "
    assert any(each.startswith(words) for each in scaling(seen, "heads"))


def test_without_a_naive_path_there_is_nothing_to_break_even_with() -> None:
    for paths in (("reuse",), ("jvp", "auto")):
        said = scaling(modelled(lambda count: Costs.of(1.0, 1.0), paths), "heads")[0]
        assert said.endswith(" K: no naive path was chosen, with which others could break even.")


def test_a_supposed_f_has_its_own_break_even_and_no_fit() -> None:
    costs = Costs.of(1e-3, 1e-4, 1e-3)
    seen = modelled(lambda count: replace(costs, rows=1e-3), ("retain_graph", "low_rank_vjp"))
    plain, slow = (scaling(seen, "heads", slower)[0] for slower in (1, 10))
    assert plain.startswith("By the number of heads K: from 14 on, low_rank_vjp")
    assert slow.startswith(
        "By the number of heads K, were f 10 times slower: from 5 on, low_rank_vjp"
    )
    assert len(scaling(seen, "heads", 10)) == 1


def test_a_scaling_tells_a_path_that_was_never_measured() -> None:
    seen = scaled()
    found = seen.scaling["heads"]
    paths = {**found.paths, "reuse": scanned(lambda count: 1, measured=0, ended="why")}
    changed = seen.model_copy(
        update={"scaling": {"heads": found.model_copy(update={"paths": paths})}}
    )
    assert scaling(changed, "heads")[-1] == "reuse was not measured: why."


def test_a_scaling_names_the_paths_that_are_faster_throughout() -> None:
    costs = Costs(1.0, 1.0, 0.1, 1.0, 1.0)  # five JVPs take less than a forward and a VJP
    clause = "jvp is predicted to be faster than retain_graph throughout."
    both = modelled(lambda count: costs, ("retain_graph", "reuse", "jvp"))
    assert scaling(both, "heads")[0] == (
        "By the number of heads K: from 4 on, reuse is predicted to be faster than retain_graph; "
        + clause
    )
    only = modelled(lambda count: costs, ("retain_graph", "jvp"))
    assert scaling(only, "heads")[0] == f"By the number of heads K: {clause}"
