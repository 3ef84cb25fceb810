"""The pictures of a study: the numbers of its points, and what tells them apart."""

import json
import math
from itertools import pairwise
from typing import Any

import pytest

from explorer.drawing import style
from explorer.study import sentences
from explorer.study.axis import Axis
from explorer.study.figures import chosen, figures
from explorer.study.study import Study
from tests.study.points import growing, ran, study


def every(found: Study, choice: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """The figures as the strict JSON that the browser gets."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return {
        name: json.loads(figure.to_json(), parse_constant=refuse)
        for name, figure in figures(found, choice).items()
    }


def drawn(found: Study, name: str, choice: dict[str, Any] | None = None) -> dict[str, Any]:
    return every(found, choice)[name]


def curves(figure: dict[str, Any]) -> dict[str, tuple[list[Any], list[float]]]:
    """x and y of every named curve."""
    return {each["name"]: (each["x"], each["y"]) for each in figure["data"] if each.get("name")}


def one() -> Study:
    return study(["size=50,100,200"], growing)


def two() -> Study:
    return study(["size=50,100,200", "heads=1,4"], growing)


def three() -> Study:
    return study(["dtype=float32,float64", "size=50,100", "compile=off,on"], growing)


def wrong_below_100() -> Study:
    def seen(at: Any) -> Any:
        off = 0.5 if at["size"] < 100 else 1e-13
        return ran({"recompute": 4.0, "reuse": 1.0}, error={"recompute": off, "reuse": 2e-12})

    return study(["size=50,100,200"], seen)


def without_results() -> Study:
    return study(["size=50,100"], lambda at: "f raised")


def nothing() -> Study:
    return study(["size=50,100"], growing, 0)


EVERY = [one, two, three, wrong_below_100, without_results, nothing]


# Speed-up.


def test_the_speed_up_is_that_of_the_sentence_along_the_first_axis() -> None:
    found = drawn(two(), "speed-up")
    assert curves(found) == {
        "heads=1": ([50, 100, 200], pytest.approx([1.0] * 3)),
        "heads=4": ([50, 100, 200], pytest.approx([4.0] * 3)),
    }
    (level,) = found["layout"]["shapes"]
    assert level["y0"] == level["y1"] == 1
    words = found["data"][1]["hovertext"][0]
    assert words == "size=50, heads=4<br>reuse: 4.0 times as fast as recompute"


def test_points_lie_along_the_axis_in_whichever_order_they_were_measured() -> None:
    for over in ("size=50,100,200,400", "size=400,50,200,100"):
        x, y = curves(drawn(study([over], growing), "time"))["reuse"]
        assert (x, y) == ([50, 100, 200, 400], pytest.approx([0.5, 1.0, 2.0, 4.0]))


def test_an_open_mark_says_that_the_naive_gradients_are_wrong() -> None:
    found = drawn(wrong_below_100(), "speed-up")
    assert found["data"][0]["marker"]["symbol"] == ["circle-open", "circle", "circle"]
    assert found["data"][0]["hovertext"][0].endswith("<br>recompute gives wrong gradients")
    assert "open mark" in found["layout"]["title"]["subtitle"]["text"]
    right = drawn(study(["size=50,100"], growing), "speed-up")
    assert "open mark" not in right["layout"]["title"]["subtitle"]["text"]


def test_colour_is_the_second_axis_and_the_dash_the_third() -> None:
    found = drawn(three(), "speed-up")["data"]
    looks = {
        each["name"]: (each["line"]["color"], each["line"]["dash"], each["marker"]["symbol"][0])
        for each in found
    }
    assert list(looks) == [
        "size=50, compile=off", "size=50, compile=on",
        "size=100, compile=off", "size=100, compile=on",
    ]  # fmt: skip
    (a, b, c, d) = looks.values()
    assert a[0] == b[0] != c[0] == d[0]
    assert a[1:] == c[1:] != b[1:] == d[1:]
    assert all(each["x"] == ["float32", "float64"] for each in found)


def test_above_twelve_curves_a_colour_bar_stands_for_the_legend() -> None:
    few = drawn(study(["size=50,100", "heads=1:12:lin12"], growing), "speed-up")
    assert few["layout"]["showlegend"] is True and len(few["data"]) == 12
    many = drawn(study(["size=50,100", "heads=1:13:lin13"], growing), "speed-up")
    assert many["layout"]["showlegend"] is False
    *lines, bar = many["data"]
    assert len(lines) == 13 and not any(each["showlegend"] for each in lines)
    assert bar["marker"]["showscale"] is True
    assert bar["marker"]["colorbar"]["ticktext"] == ["1", "7", "13"]
    scale = bar["marker"]["colorscale"]
    assert scale[0][1] == lines[0]["line"]["color"]
    assert scale[-1][1] == lines[-1]["line"]["color"]
    assert len({each["line"]["color"] for each in lines}) == 13


def test_of_thousands_of_curves_some_are_drawn_and_the_picture_says_so() -> None:
    found = every(study(["size=50,100", "seed=1:201:lin201"], growing))
    *lines, _ = found["speed-up"]["data"]
    assert len(lines) == 200
    assert (lines[0]["name"], lines[-1]["name"]) == ("seed=1", "seed=201")
    assert "200 of 201 curves" in found["speed-up"]["layout"]["title"]["subtitle"]["text"]
    assert len(found["norm"]["data"]) == 1, "the seed is nothing to it"
    assert "curves" not in found["norm"]["layout"]["title"]["subtitle"]["text"]


def test_curves_of_many_points_have_no_marks() -> None:
    found = drawn(study(["size=2:302:lin301"], growing), "time")["data"]
    assert [each["mode"] for each in found] == ["lines", "lines"]
    assert not any("symbol" in each["marker"] for each in found)
    assert all("error_y" not in each or not each["error_y"].get("array") for each in found)
    few = drawn(study(["size=2:301:lin300"], growing), "time")["data"]
    assert [each["mode"] for each in few] == ["lines+markers"] * 2


# By path.


def test_times_have_their_quartiles() -> None:
    found = study(["size=60"], lambda at: ran({"recompute": (8.0, 10.0, 14.0), "reuse": 1.0}))
    (trace, _) = drawn(found, "time")["data"]
    assert (trace["name"], trace["x"], trace["y"]) == ("recompute", [60], [10.0])
    assert trace["error_y"]["array"] == pytest.approx([2.0])
    assert trace["error_y"]["arrayminus"] == pytest.approx([1.0])


def test_a_path_looks_as_everywhere_and_its_wrong_points_are_crosses() -> None:
    found = every(wrong_below_100())
    for name in ("time", "passes", "error"):
        for trace in found[name]["data"]:
            look = style(trace["name"])
            assert trace["line"]["color"] == trace["marker"]["line"]["color"] == look.colour
            right = f"{look.symbol}-open"
            first = "x-thin" if trace["name"] == "recompute" else right
            assert trace["marker"]["symbol"] == [first, right, right]
    assert "wrong gradients" in found["time"]["data"][0]["hovertext"][0]


def test_the_pictures_by_path_are_of_one_value_of_each_further_axis() -> None:
    found = two()
    assert chosen(found) == {"heads": 4}
    assert curves(drawn(found, "time"))["recompute"][1] == pytest.approx([2.0, 4.0, 8.0])
    few = drawn(found, "time", {"heads": 1})
    assert curves(few)["recompute"][1] == pytest.approx([0.5, 1.0, 2.0])
    assert "heads=1" in few["layout"]["title"]["subtitle"]["text"]
    assert drawn(found, "speed-up", {"heads": 1}) == drawn(found, "speed-up")
    assert chosen(found, {"heads": 9, "size": 50}) == {"heads": 4}, "9 is no value of the axis"
    assert chosen(three()) == {"size": 100, "compile": False}


def test_passes_are_counted_together() -> None:
    assert curves(drawn(two(), "passes")) == {
        "recompute": ([50, 100, 200], [5, 5, 5]), "reuse": ([50, 100, 200], [2, 2, 2]),
    }  # fmt: skip
    assert drawn(two(), "passes")["data"][0]["hovertext"][0].endswith("1 forward, 4 backward")


def test_what_has_no_place_on_a_logarithmic_axis_is_left_out_and_said_to_be() -> None:
    errors = {50: 0.0, 100: math.nan, 200: math.inf, 400: 1e-9, 800: None}

    def seen(at: Any) -> Any:
        each = errors[at["size"]]
        return ran({"reuse": 1.0}, error={"reuse": each}, norm=each)

    found = study(["size=50,100,200,400,800"], seen)
    some, all_ = every(found), every(two())
    for name in ("error", "norm"):
        (curve,) = curves(some[name]).values()
        assert curve == ([400], [1e-9])
        said = [each[name]["layout"]["title"]["subtitle"]["text"] for each in (some, all_)]
        assert "not drawn: 0, or no finite value" in said[0]
        assert "not drawn" not in said[1]


def test_a_path_that_was_not_timed_is_not_in_the_picture_of_the_times() -> None:
    def seen(at: Any) -> Any:
        return ran({"recompute": None if at["size"] > 100 else 4.0, "reuse": 1.0})

    found = every(study(["size=50,100,200"], seen))
    assert curves(found["time"])["recompute"][0] == [50, 100]
    assert curves(found["passes"])["recompute"][0] == [50, 100, 200]


# Norms.


def test_the_norm_has_one_curve_for_what_is_nothing_to_it() -> None:
    found = drawn(two(), "norm")
    assert list(curves(found).values()) == [([50, 100, 200], [50, 100, 200])]
    assert found["layout"]["showlegend"] is False

    def by_type(at: Any) -> Any:
        return ran({"reuse": 1.0}, norm=1.0 if at["dtype"] == "float32" else 2.0)

    both = drawn(study(["size=50,100", "dtype=float32,float64"], by_type), "norm")
    assert curves(both) == {
        "dtype=float32": ([50, 100], [1.0, 1.0]), "dtype=float64": ([50, 100], [2.0, 2.0]),
    }  # fmt: skip
    assert both["layout"]["showlegend"] is True


# Axes and frames.


def test_a_first_axis_over_decades_is_logarithmic_and_another_linear() -> None:
    def x(over: str) -> dict[str, Any]:
        axis: dict[str, Any] = drawn(study([over], growing), "time")["layout"]["xaxis"]
        return axis

    wide = x("size=10,100,80")
    assert wide["type"] == "log" and wide["ticktext"] == ["10", "80", "100"]
    low, high = wide["range"]
    assert low < math.log10(10) and math.log10(100) < high
    assert "type" not in x("size=50,100,200") and "type" not in x("x=-1,1")
    names = x("dtype=float64,float32")
    assert names["type"] == "category" and names["categoryarray"] == ["float64", "float32"]
    assert len(x("size=2:2000:log40")["ticktext"]) <= 7


@pytest.mark.parametrize("top", [1.5, 30.0, 1e5, 1e30])
def test_ticks_of_the_second_axis_are_round_rising_and_not_too_many(top: float) -> None:
    def seen(at: Any) -> Any:
        return ran({"recompute": 1.0 if at["size"] == 50 else top, "reuse": 1.0})

    axis = drawn(study(["size=50,100"], seen), "time")["layout"]["yaxis"]
    assert axis["type"] == "log"
    assert all(one < other for one, other in pairwise(axis["tickvals"]))
    assert axis["tickvals"][0] <= 1.0 and len(axis["tickvals"]) <= 12
    assert len(axis["ticktext"]) == len(set(axis["ticktext"])) == len(axis["tickvals"])


@pytest.mark.parametrize("make", EVERY)
def test_the_figures_in_their_order_fit_a_narrow_page_and_leave_the_theme_open(make: Any) -> None:
    found = make()
    seen = every(found)
    assert list(seen) == ["speed-up", "time", "passes", "error", "norm"]
    for figure in seen.values():
        layout = figure["layout"]
        assert (layout["paper_bgcolor"], layout["plot_bgcolor"]) == ("white", "rgba(0,0,0,0)")
        assert layout["autosize"] is True
        assert "width" not in layout and "color" not in layout["font"]
        assert not {"gridcolor", "color", "linecolor"} & {*layout["xaxis"], *layout["yaxis"]}
        assert layout["title"]["text"]
        lines = layout["title"]["subtitle"]["text"].split("<br>")
        assert all(len(line) <= 42 for line in lines)
        assert layout["margin"]["t"] >= 44 + 16 * len(list(filter(None, lines)))
        assert sentences.setting(found) in " ".join(lines)


def test_points_that_are_still_to_come_leave_room_and_colour_for_them() -> None:
    whole, some = two(), study(["size=50,100,200", "heads=1,4"], growing, 3)
    assert len(some.points) == 3
    looks = [
        {each["name"]: each["line"]["color"] for each in drawn(found, "speed-up")["data"]}
        for found in (whole, some)
    ]
    assert looks[1].items() <= looks[0].items()


def test_hostile_names_are_shown_as_text() -> None:
    evil = '<a href="https://example.org">x</a>'
    plain = study(["dtype=float32,float64", "derivative=torch,fast"], growing)
    axes = (Axis("dtype", evil, (evil, "b")), Axis("derivative", evil, (evil, "d")))
    values = {"float32": evil, "float64": "b", "torch": evil, "fast": "d"}
    points = tuple(
        p.model_copy(update={
            "at": {name: values[str(value)] for name, value in p.at.items()},
            "paths": {evil: p.paths["recompute"], **p.paths},
        })
        for p in plain.points
    )  # fmt: skip
    found = plain.model_copy(update={"axes": axes, "points": points, "given": {"function": evil}})
    for figure in every(found).values():
        text = json.dumps(figure)
        assert "<a " not in text
        assert "&lt;a href=" in text
