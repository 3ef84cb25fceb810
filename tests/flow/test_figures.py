import json
import math
from typing import Any

import pytest

from explorer.flow import sentences
from explorer.flow.figures import figures
from explorer.flow.result import Flow
from explorer.flow.tables import tables, thinned
from tests.flow.flows import WAYS, infinite, linear

EVERY = [linear, infinite, lambda: linear(0.0), lambda: linear(fan=None, without_fan="Too large.")]


def drawn(flow: Flow, name: str, before: Flow | None = None) -> dict[str, Any]:
    """A figure as the strict JSON that the browser gets."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    text = figures(flow, before)[name].to_json()
    figure: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return figure


def curves(figure: dict[str, Any]) -> dict[str, tuple[list[float], list[float | None]]]:
    """x and y of every named curve."""
    return {each["name"]: (each["x"], each["y"]) for each in figure["data"] if each.get("name")}


def test_the_curves_are_the_numbers_of_the_flow() -> None:
    flow = linear()
    assert flow.fan is not None
    gradients = curves(drawn(flow, "gradients"))
    assert gradients == {
        name: (list(range(7)), list(rows)) for name, rows in flow.gradients.items()
    }
    assert curves(drawn(flow, "steps")) == {"now": ([1, 2, 3, 4, 5, 6], list(flow.steps))}
    fan = curves(drawn(flow, "fan"))
    times = list(flow.fan.times)
    assert fan["largest"] == (times, list(flow.fan.largest))
    assert fan["median"] == (times, list(flow.fan.median))
    assert fan["smallest"] == (times, list(flow.fan.smallest))
    assert fan["product of norms"] == (list(range(7)), list(flow.bound))


def test_the_numbers_of_the_sentence_are_those_of_the_curves() -> None:
    flow = linear(0.3)
    shares = [y[0] / y[-1] for _, y in curves(drawn(flow, "gradients")).values()]
    left = math.prod(shares) ** (1 / len(shares))
    assert sentences.amount(left) in sentences.summary(flow)
    assert sentences.left(flow) == pytest.approx(left)


def test_what_was_before_is_drawn_beside_and_faint() -> None:
    now, before = linear(1.0), linear(0.5)
    for name in ("gradients", "steps", "fan"):
        figure = drawn(now, name, before)
        old = [each for each in figure["data"] if each.get("name", "").endswith("before")]
        assert old and all(each["opacity"] < 1 for each in old)
        assert all(each["line"]["dash"] == "dash" for each in old)
    both = curves(drawn(now, "gradients", before))
    assert both["loss 1, before"][1] == list(before.gradients["loss 1"])
    assert curves(drawn(now, "steps", before))["before"][1] == list(before.steps)


def test_a_loss_looks_the_same_before_and_now() -> None:
    figure = drawn(linear(1.0), "gradients", linear(0.5))
    looks = {each["name"]: each["line"]["color"] for each in figure["data"]}
    assert looks["loss 1"] == looks["loss 1, before"] != looks["loss 2"]


def test_zero_stands_on_the_lower_edge_and_is_said() -> None:
    figure = drawn(linear(0.0), "gradients")
    for each in figure["data"]:
        assert all(value > 0 for value in each["y"])
        assert math.log10(each["y"][0]) == pytest.approx(figure["layout"]["yaxis"]["range"][0])
        assert "exactly 0" in each["hovertext"][0]
    assert "exactly 0" in figure["layout"]["title"]["subtitle"]["text"]
    assert "exactly 0" not in drawn(linear(), "gradients")["layout"]["title"]["subtitle"]["text"]


def test_what_is_not_finite_leaves_a_gap_and_is_said() -> None:
    figure = drawn(infinite(), "gradients")
    assert figure["data"][0]["y"][:6] == [None] * 6 and figure["data"][0]["y"][6] is not None
    assert "not finite" in figure["layout"]["title"]["subtitle"]["text"]


def test_one_is_marked_among_the_norms() -> None:
    (line,) = drawn(linear(), "steps")["layout"]["shapes"]
    assert line["y0"] == line["y1"] == 1


def test_few_steps_of_one_s_own_are_named_and_many_are_not() -> None:
    flow = linear(names=("Linear", "Tanh", "Linear", "Tanh", "Linear", "<b>"))
    ticks = drawn(flow, "gradients")["layout"]["xaxis"]["ticktext"]
    assert ticks == ["0 (x)", "1 Linear", "2 Tanh", "3 Linear", "4 Tanh", "5 Linear", "6 &lt;b&gt;"]
    assert "ticktext" not in drawn(linear(0.9, 30), "gradients")["layout"]["xaxis"]


def test_the_band_of_the_fan_lies_within_the_axis() -> None:
    fan = linear().fan
    assert fan is not None
    lower, none = tuple(value and 1e-9 * value for value in fan.lower), (None,) * len(fan.times)
    figure = drawn(linear(fan=fan.model_copy(update={"lower": lower, "smallest": none})), "fan")
    low, high = figure["layout"]["yaxis"]["range"]
    (band,) = (each for each in figure["data"] if each.get("name") == "middle half")
    assert band["y"] == list(lower)
    assert all(low <= math.log10(value) <= high for value in band["y"])


def test_without_a_fan_the_picture_says_why() -> None:
    figure = drawn(linear(fan=None, without_fan="Too large."), "fan")
    assert "Too large." in figure["layout"]["title"]["subtitle"]["text"]
    assert list(curves(figure)) == ["product of norms"]


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("before", [None, linear])
def test_a_table_stands_behind_every_figure(make: Any, before: Any) -> None:
    flow, old = make(), before() if before else None
    found = tables(flow, old)
    assert list(found) == [*figures(flow, old), "ways"]
    for name, table in found.items():
        assert {len(row) for row in table.rows} == {len(table.columns)}
        if name != "ways":
            drawn(flow, name, old)


@pytest.mark.parametrize("make", EVERY)
def test_the_figures_leave_the_theme_open(make: Any) -> None:
    flow = make()
    for name in figures(flow):
        layout = drawn(flow, name)["layout"]
        assert layout["plot_bgcolor"] == "rgba(0,0,0,0)"
        assert layout["paper_bgcolor"] == "white", "in a saved picture; the page shows its own"
        assert "width" not in layout and "color" not in layout["font"]


def test_tables_hold_the_numbers_of_the_flow() -> None:
    flow = linear(ways=WAYS)
    found = tables(flow, linear(0.25))
    assert found["gradients"].columns == (
        "t", "loss 1", "loss 2", "loss 1 (before)", "loss 2 (before)"
    )  # fmt: skip
    assert float(found["gradients"].rows[0][1]) == pytest.approx(
        flow.gradients["loss 1"][0], rel=1e-5
    )
    assert found["steps"].rows[0][2:] == ("0.5", "0.25")
    assert found["fan"].rows[0][1] == found["fan"].rows[0][6] == "0.015625"
    assert [row[1] for row in found["ways"].rows] == ["12 ms", "40 ms", "2 ms", "42 ms"]
    assert [row[4] for row in tables(linear())["ways"].rows] == ["0"] * 4


def test_a_thinned_table_has_its_first_and_its_last_row() -> None:
    table = tables(linear(0.9, 100))["gradients"]
    few = thinned(table, 11)
    assert [row[0] for row in few.rows] == [str(10 * number) for number in range(11)]
    assert few.title.endswith("(11 of 101 rows)")
    assert thinned(table, 101) is table
