"""The pictures and the tables behind them have the numbers of the Comparison."""

import json
import math
from typing import Any

import pytest

from explorer.comparing import sentences
from explorer.comparing.comparison import Comparison, compare
from explorer.comparing.figures import figures
from explorer.comparing.tables import tables
from explorer.drawing import PATH_STYLE
from explorer.export import to_html
from tests.comparing.results import elsewhere, measured, with_runs
from tests.results import COUNTS, every_field, good, inaccurate, inspected, scaled


def two() -> Comparison:
    return compare({"laptop": measured(), "gpu": elsewhere()})


def many() -> Comparison:
    return compare(
        {
            "<b>first": measured(),
            "a name that is longer than any row": measured(1.001),
            "wrong": inaccurate(),
            "few": good(),
            "none": every_field(),
            "scaled": scaled(),
            "again": scaled("cancelled"),
            "inspected": inspected(),
        }
    )


def zero() -> Comparison:
    return compare({"a": with_runs(0.0, 0.0), "b": with_runs(math.inf, 1.0)})


EVERY = [two, many, zero]


def drawn(comparison: Comparison, name: str) -> dict[str, Any]:
    """A figure as the strict JSON that the browser gets."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    figure: dict[str, Any] = json.loads(figures(comparison)[name].to_json(), parse_constant=refuse)
    return figure


def test_the_ratios_are_drawn_with_their_intervals_in_the_colour_of_the_path() -> None:
    found = two()
    figure = drawn(found, "ratio")
    marks = {each["name"]: each for each in figure["data"]}
    assert list(marks) == ["recompute", "reuse"]
    for path, mark in marks.items():
        ratio = found.ratios[path]["gpu"]
        assert ratio.low is not None and ratio.high is not None
        assert mark["x"] == [ratio.value]
        assert mark["error_x"]["array"] == [pytest.approx(ratio.high - ratio.value)]
        assert mark["error_x"]["arrayminus"] == [pytest.approx(ratio.value - ratio.low)]
        assert mark["marker"]["color"] == PATH_STYLE[path].colour
    words = [each["text"] for each in figure["layout"]["annotations"]]
    assert words == ["2.5× faster"] * 2
    low, high = figure["layout"]["xaxis"]["range"]
    assert low < math.log10(0.38) and high > 0  # the place of 1
    rows = figure["layout"]["yaxis"]["ticktext"]
    assert rows == ["<b>recompute</b>", "gpu", "<b>reuse</b>", "gpu"]


def test_what_is_not_significant_is_hollow_faint_and_said() -> None:
    figure = drawn(compare({"a": measured(), "b": measured(1.002)}), "ratio")
    for mark in figure["data"]:
        assert mark["marker"]["symbol"].endswith("-open") and mark["opacity"] < 1
    assert {each["text"] for each in figure["layout"]["annotations"]} == {
        "no significant difference"
    }


def test_the_times_are_the_medians_and_every_run_is_there() -> None:
    found = two()
    runs, *marks = drawn(found, "time")["data"]
    medians = [
        result.paths[path].seconds.median  # type: ignore[union-attr]
        for path in found.paths for result in found.results.values()
    ]  # fmt: skip
    assert [mark["x"][0] for mark in marks] == medians
    assert len(runs["x"]) == 4 * 5
    assert [mark["y"] for mark in marks] == [[1], [2], [4], [5]]
    filled = [not mark["marker"]["symbol"].endswith("-open") for mark in marks]
    assert filled == [True, False] * 2


def test_wrong_times_are_marked() -> None:
    figure = drawn(compare({"right": good(), "wrong": inaccurate()}), "time")
    wrong = [each for each in figure["layout"]["annotations"] if each["text"].endswith("wrong")]
    assert len(wrong) == 3
    assert sum(mark.get("opacity", 1) < 1 for mark in figure["data"]) == 3


def test_scalings_are_overlaid_where_two_have_one() -> None:
    assert "scaling-heads" not in figures(two())
    figure = drawn(compare({"a": scaled(), "b": scaled("cancelled")}), "scaling-heads")
    curves = [each for each in figure["data"] if each["x"] != [None]]
    assert len(curves) == 6
    seen = scaled().scaling["heads"].paths["reuse"].measured
    assert curves[2]["x"] == list(COUNTS)
    assert curves[2]["y"] == [point.seconds.median for point in seen]
    assert curves[2]["line"]["color"] == curves[3]["line"]["color"] == PATH_STYLE["reuse"].colour
    assert curves[2]["line"]["dash"] != curves[3]["line"]["dash"]


@pytest.mark.parametrize("make", EVERY)
def test_a_table_stands_behind_every_figure(make: Any) -> None:
    found = make()
    behind = tables(found)
    assert set(behind) >= set(figures(found))
    for table in behind.values():
        assert {len(row) for row in table.rows} <= {len(table.columns)}
    for name in figures(found):
        layout = drawn(found, name)["layout"]
        assert layout["paper_bgcolor"] == "white" and "width" not in layout
        assert "<b>first" not in json.dumps(layout)


@pytest.mark.parametrize("factor", [1.0, 1.1, 3.0, 30.0, 3e4, 1e-7])
def test_there_are_some_ticks_and_no_more_than_have_room(factor: float) -> None:
    for name in ("ratio", "time"):
        axis = drawn(compare({"a": measured(), "b": measured(factor)}), name)["layout"]["xaxis"]
        assert 2 <= len(axis["tickvals"]) <= 6
        low, high = axis["range"]
        assert all(low <= math.log10(tick) <= high for tick in axis["tickvals"])


def test_the_tables_hold_the_numbers() -> None:
    found = tables(two())
    assert found["ratio"].rows[0][:4] == ("recompute", "gpu", "laptop", "0.4")
    assert found["ratio"].rows[0][-1] == "2.5× faster"
    assert [row[:3] for row in found["time"].rows] == [
        ("recompute", "laptop", "10 s"), ("recompute", "gpu", "4 s"),
        ("reuse", "laptop", "1 s"), ("reuse", "gpu", "400 ms"),
    ]  # fmt: skip
    assert found["counts"].rows[0][:5] == ("recompute", "laptop", "10", "10", "0")
    assert ("Threads", "2", "16", "no") in found["environments"].rows
    assert ("Size n", "60", "60", "yes") in found["experiments"].rows
    assert found["gradients"].rows == (("square", "gpu", "laptop", "recompute", "exactly 0"),)


@pytest.mark.parametrize("make", EVERY)
def test_the_page_has_the_sentences_the_pictures_and_the_tables(make: Any) -> None:
    from html import escape

    found = make()
    page = to_html(found)
    said = [sentences.summary(found), *sentences.each(found), *sentences.experiments(found)]
    for sentence in (*said, *sentences.environments(found), *sentences.notes(found)):
        assert escape(sentence) in page
    for name in figures(found):
        assert f'id="figure-{name}"' in page
    for table in tables(found).values():
        assert escape(table.title) in page
    assert "<b>first" not in page.partition("<main>")[2].partition('<script type="text')[0]
