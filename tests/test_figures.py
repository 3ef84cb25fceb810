import json
import math
import re
from typing import Any

import pytest

from explorer import sentences, units
from explorer.drawing import CONFIG, PATH_STYLE, enlarged, mime_bundle, style
from explorer.engine.plan import PATHS
from explorer.figures import figures
from explorer.result import Curvature, HeadNorms, JacobianResult, Result
from tests.results import (
    NOTHING_YET,
    every_field,
    good,
    head,
    inaccurate,
    inspected,
    real,
    result,
    scaled,
    timed,
    untimed,
)


def drawn(seen: Result, name: str) -> dict[str, Any]:
    return as_json(figures(seen)[name])


def as_json(figure: Any) -> dict[str, Any]:
    """A figure as the strict JSON that the browser gets."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    read: dict[str, Any] = json.loads(figure.to_json(), parse_constant=refuse)
    return read


def traces(figure: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [trace for trace in figure["data"] if trace["type"] == kind]


def labels(figure: dict[str, Any]) -> list[str]:
    return [annotation["text"] for annotation in figure["layout"]["annotations"]]


def partial() -> Result:
    paths = {
        "recompute": untimed("running", predicted_seconds=3.0),
        "retain_graph": untimed("predicted", predicted_seconds=2.0, backward=2),
        "reuse": timed(1.0),
    }
    waiting = head({"reuse": None}, {"reuse": None}, error_reference="none yet")
    return result(paths, {"square": waiting}, status="running", jacobian=NOTHING_YET)


EVERY = [good, inaccurate, real, partial]


# Time.


@pytest.mark.parametrize("make", [good, inaccurate, real])
def test_a_bar_is_as_long_as_the_median_and_named_with_it(make: Any) -> None:
    seen = make()
    figure = drawn(seen, "time")
    bars = traces(figure, "bar")
    measured = sentences.measured(seen)
    assert {bar["name"]: bar["x"] for bar in bars} == {
        name: [seconds.median] for name, seconds in measured.items()
    }
    for label, (name, seconds) in zip(labels(figure), measured.items(), strict=True):
        assert label.startswith(f"<b>{units.seconds(seconds.median)}</b>")
        assert label.endswith(sentences.comparison(seen, name))


def test_the_speed_up_stands_at_the_bar() -> None:
    assert labels(drawn(good(), "time")) == [
        "<b>9.6 s</b><br>reference",
        "<b>1 s</b><br>9.6× faster",
    ]


def test_the_whisker_is_the_middle_half_of_the_runs() -> None:
    seen = result({"reuse": timed(1.0, 2.0, 3.0, 5.0, 9.0)}, {"sin": head({}, {})})
    (bar,) = traces(drawn(seen, "time"), "bar")
    assert bar["x"] == [3.0]
    assert (bar["error_x"]["arrayminus"], bar["error_x"]["array"]) == ([1.0], [2.0])
    (label,) = figures(seen)["time"].layout.annotations
    assert label.x == 5.0, "the label stands behind the whisker"


def test_every_run_is_a_point_on_demand() -> None:
    seen = real()
    (points,) = traces(drawn(seen, "time"), "scatter")
    assert points["visible"] == "legendonly"
    measured = sentences.measured(seen).values()
    assert points["x"] == [run for seconds in measured for run in seconds.runs]


def test_what_was_not_measured_is_hatched_and_says_so() -> None:
    figure = drawn(partial(), "time")
    bars = traces(figure, "bar")
    assert [bar["x"] for bar in bars] == [[0.0], [2.0], [1.0]]
    assert [bar["marker"]["pattern"]["shape"] for bar in bars] == [["/"], ["/"], [""]]
    assert labels(figure) == ["not yet run", "<b>2 s</b><br>predicted", "<b>1 s</b>"]


def test_wrong_paths_are_faint() -> None:
    wrong = {bar["marker"]["opacity"] for bar in traces(drawn(inaccurate(), "time"), "bar")}
    right = {bar["marker"]["opacity"] for bar in traces(drawn(good(), "time"), "bar")}
    assert max(wrong) < min(right)


def test_device_threads_and_dtype_are_named() -> None:
    subtitle = drawn(inaccurate(), "time")["layout"]["title"]["subtitle"]["text"]
    assert subtitle.startswith("A processor, 2 threads, float32<br>")


# Passes.


@pytest.mark.parametrize("make", EVERY)
def test_counts_are_drawn_and_written(make: Any) -> None:
    seen = make()
    figure = drawn(seen, "passes")
    paths = seen.paths.values()
    assert {bar["name"]: bar["x"] for bar in figure["data"]} == {
        "forward": [path.forward_passes for path in paths],
        "backward": [path.backward_passes for path in paths],
    }
    assert labels(figure) == [
        *(f"<b>{path.forward_passes}</b> forward" for path in paths),
        *(f"<b>{path.backward_passes}</b> backward" for path in paths),
    ]


def test_forward_mode_is_drawn_where_there_is_any() -> None:
    seen = result({"reuse": timed(1.0, backward=0, forward_mode_passes=7)}, {"sin": head({}, {})})
    bars = {bar["name"]: bar["x"] for bar in drawn(seen, "passes")["data"]}
    assert bars == {"forward": [1], "backward": [0], "forward mode": [7]}


@pytest.mark.parametrize(("largest", "step"), [(1, 1), (5, 1), (6, 2), (60, 20), (2000, 500)])
def test_counts_have_whole_ticks(largest: int, step: int) -> None:
    seen = result({"reuse": timed(1.0, backward=largest)}, {"sin": head({}, {})})
    assert drawn(seen, "passes")["layout"]["xaxis"]["dtick"] == step


# Accuracy.


def points(figure: dict[str, Any], path: str) -> tuple[list[float], list[float]]:
    """Where a path's agreement and its error stand."""
    hollow, filled = (trace["x"] for trace in figure["data"] if trace["name"] == path)
    return hollow, filled


def test_agreement_and_error_of_every_head_and_path() -> None:
    seen = inaccurate()
    figure = drawn(seen, "accuracy")
    heads = seen.heads.values()
    assert points(figure, "reuse") == (
        [each.agreement["reuse"] for each in heads],
        [each.error["reuse"] for each in heads],
    )
    hollow, filled = points(figure, "recompute")
    assert hollow == [], "the reference is not held against itself"
    assert filled == [each.error["recompute"] for each in heads]
    subtitle = figure["layout"]["title"]["subtitle"]["text"]
    assert subtitle == "hollow: agreement with recompute<br>filled: error against closed form"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_exact_zero_has_a_place_on_the_logarithmic_axis(dtype: str) -> None:
    error = {"recompute": 1e-9, "reuse": 0.0}
    seen = result(dict(good().paths), {"sin": head({"recompute": 0.0, "reuse": 0.0}, error)},
                  dtype=dtype)  # fmt: skip
    figure = drawn(seen, "accuracy")
    floor = min(1e-9, sentences.EPSILON[dtype]) / 10
    assert points(figure, "reuse") == ([floor], [floor])
    assert {t["hovertext"][0] for t in figure["data"] if t["name"] == "reuse"} == {
        "reuse<br>agreement exactly 0", "reuse<br>error exactly 0",
    }  # fmt: skip
    axis = figure["layout"]["xaxis"]
    assert axis["type"] == "log"
    assert (axis["tickvals"][0], axis["ticktext"][0]) == (floor, "0")
    assert axis["range"][0] < math.log10(floor)


def test_ticks_name_their_powers() -> None:
    axis = drawn(good(), "accuracy")["layout"]["xaxis"]
    named = dict(zip(axis["ticktext"], axis["tickvals"], strict=True))
    assert named["10⁻¹²"] == 1e-12
    assert named["1"] == 1


def test_an_infinite_difference_stands_at_the_end_of_the_axis() -> None:
    seen = result({"reuse": timed(1.0)}, {"sin": head({"reuse": None}, {"reuse": math.inf})})
    figure = drawn(seen, "accuracy")
    _, (place,) = points(figure, "reuse")
    assert math.log10(place) == pytest.approx(figure["layout"]["xaxis"]["range"][1])
    assert figure["data"][1]["hovertext"] == ["reuse<br>error inf"]


@pytest.mark.parametrize("make", [good, inaccurate])
def test_the_tolerance_divides_right_from_wrong(make: Any) -> None:
    seen = make()
    band, line, _ = drawn(seen, "accuracy")["layout"]["shapes"]
    limit = math.sqrt({"float32": 2**-23, "float64": 2**-52}[seen.experiment.dtype])
    assert band["x0"] == line["x0"] == limit


def test_a_head_that_is_not_finite_is_labelled_in_its_row() -> None:
    outside = head(
        {"recompute": math.nan, "reuse": math.nan}, {"recompute": math.nan, "reuse": math.nan},
        value=math.nan, domain="y lies outside the domain of log, y > 0: its value is NaN.",
    )  # fmt: skip
    right = good().heads["square"]
    nan = HeadNorms(spectral_norm=math.nan, composite=math.nan, bound=math.nan)
    one = HeadNorms(spectral_norm=1.0, composite=1.0, bound=1.0)
    norms = JacobianResult(spectral_norm=2.0, heads={"square": one, "log": nan}, method="dense")
    seen = result(dict(good().paths), {"square": right, "log": outside}, jacobian=norms)
    for name, row, words in (
        ("accuracy", 1, "left out here"),
        ("norms", 2, "left out here"),
    ):
        figure = drawn(seen, name)
        (label,) = (a for a in figure["layout"]["annotations"] if a["text"] == words)
        assert label["y"] == row
        assert label["hovertext"] == outside.domain.replace(">", "&gt;")
    assert points(drawn(seen, "accuracy"), "reuse") == ([2e-12], [4e-13])


def test_an_error_that_is_not_known_is_said_to_be() -> None:
    figure = drawn(partial(), "accuracy")
    assert figure["layout"]["title"]["subtitle"]["text"].endswith("error not known: none yet")
    assert "not known" in labels(figure)


# Norms.


def test_norms_and_their_bound() -> None:
    seen = inaccurate()
    figure = drawn(seen, "norms")
    assert {trace["name"]: trace["x"] for trace in figure["data"]} == {
        "‖dy/dx‖": [3.0], "‖dg/dy‖": [2.0, 2.0], "‖dz/dx‖": [6.0, 6.0], "bound": [6.0, 6.0],
    }  # fmt: skip
    assert figure["layout"]["xaxis"]["type"] == "linear"
    assert figure["layout"]["yaxis"]["ticktext"] == ["f", "square", "sqrt"]


def test_norms_of_very_different_size_stand_on_a_logarithmic_axis_and_zero_at_its_end() -> None:
    wide = HeadNorms(spectral_norm=1000.0, composite=0.0, bound=2000.0)
    norms = JacobianResult(spectral_norm=2.0, heads={"sin": wide}, method="dense")
    seen = result({"reuse": timed(1.0)}, {"sin": head({}, {})}, jacobian=norms)
    figure = drawn(seen, "norms")
    assert figure["layout"]["xaxis"]["type"] == "log"
    (composite,) = (trace for trace in figure["data"] if trace["name"] == "‖dz/dx‖")
    assert composite["x"] == [0.2]
    assert composite["hovertext"] == ["sin<br>‖dz/dx‖ exactly 0"]


def test_how_tight_a_bound_is_stands_beside_it() -> None:
    figure = drawn(inspected(), "norms")
    beside = {note["text"]: (note["x"], note["y"]) for note in figure["layout"]["annotations"]}
    assert beside == {"80% of the bound": (10.0, 1), "12% of the bound": (4.0, 2)}
    # On a logarithmic axis an annotation stands at the exponent.
    far = {"square": HeadNorms(spectral_norm=2.5e3, composite=5e3, bound=1e4)}
    figure = drawn(inspected(heads=far), "norms")
    assert figure["layout"]["xaxis"]["type"] == "log"
    (label,) = figure["layout"]["annotations"]
    assert (label["text"], label["x"]) == ("50% of the bound", 4.0)


def test_norms_that_are_not_there_yet() -> None:
    figure = drawn(partial(), "norms")
    assert labels(figure) == ["not yet run"]
    assert figure["data"] == []


# What else there is of the Jacobians.

FURTHER = ["singular-values", "direction", "sizes", "curvature"]


def test_singular_values_and_the_condition_number() -> None:
    figure = drawn(inspected(), "singular-values")
    (trace,) = figure["data"]
    assert (trace["x"], trace["y"]) == ([1, 2, 3], [4.0, 1.0, 0.0])
    assert figure["layout"]["yaxis"]["type"] == "linear"
    assert "all there are<br>condition number infinite" in json.dumps(figure["layout"]["title"])
    far = drawn(inspected(singular_values=(4.0, 1e-3), condition=None), "singular-values")
    assert far["layout"]["yaxis"]["type"] == "log"
    assert far["layout"]["yaxis"]["ticktext"] == ["10⁻³", "10⁻²", "10⁻¹", "1"]
    assert far["layout"]["title"]["subtitle"]["text"] == "the largest 2 of 3"


def test_direction_that_is_cut_says_so() -> None:
    figure = drawn(inspected(), "direction")
    (bars,) = figure["data"]
    assert (bars["x"], bars["y"]) == ([1, 2], [0.8, -0.6])
    assert figure["layout"]["title"]["subtitle"]["text"].endswith("the first 2 of 40 entries")
    whole = drawn(inspected(direction=(0.1,) * 40), "direction")
    assert "first" not in whole["layout"]["title"]["subtitle"]["text"]


def test_norms_by_size_have_a_line_for_f_and_each_head_on_logarithmic_axes() -> None:
    figure = drawn(inspected(), "sizes")
    assert {trace["name"]: trace["y"] for trace in figure["data"]} == {
        "‖dy/dx‖": [1.25, 4.0], "square": [2.5, 8.0], "sin": [None, 0.5],
    }  # fmt: skip
    assert "a gap: 0, or no finite value" in figure["layout"]["title"]["subtitle"]["text"]
    assert all(trace["x"] == [2, 60] for trace in figure["data"])
    assert {figure["layout"][axis]["type"] for axis in ("xaxis", "yaxis")} == {"log"}


def test_long_names_fit_the_legend_of_the_norms_by_size() -> None:
    found = inspected().jacobian.by_size
    long = "norm(y) / (1 + sum(y**2)) + sin(y[0])"
    by_size = tuple(each.model_copy(update={"heads": {long: 1.0}}) for each in found)
    figure = drawn(inspected(by_size=by_size), "sizes")
    assert figure["data"][1]["name"] == "norm(y) / (1 + su…"
    assert long in figure["data"][1]["hovertext"][0]
    assert "gap" not in figure["layout"]["title"]["subtitle"]["text"]


def test_curvature_goes_from_the_smallest_to_the_largest_eigenvalue() -> None:
    figure = drawn(inspected(), "curvature")
    assert figure["layout"]["yaxis"]["ticktext"] == ["square", "sin"]
    assert labels(figure) == ["-2 … 300", "0.25"]
    # 0.25 is the unit of an axis that is linear up to it and logarithmic beyond, of both signs.
    smallest, largest = figure["data"]
    assert smallest["x"] == pytest.approx([-math.log10(9), math.log10(2)])
    assert largest["x"] == pytest.approx([math.log10(1201), math.log10(2)])
    axis = figure["layout"]["xaxis"]
    ticks = dict(zip(axis["ticktext"], axis["tickvals"], strict=True))
    assert ticks["0"] == 0
    assert ticks["10²"] == pytest.approx(math.log10(401)) == -ticks["−10²"]
    near = {"square": Curvature(largest=3.0, smallest=-2.0, error=0.0, products=8)}
    assert drawn(inspected(curvature=near), "curvature")["data"][1]["x"] == [3.0]
    broken = {"square": Curvature(largest=math.nan, smallest=math.nan, error=0.0, products=8)}
    assert labels(drawn(inspected(curvature=broken), "curvature")) == ["not finite here"]


def test_what_says_nothing_is_not_drawn() -> None:
    assert [name for name in figures(inspected()) if name in FURTHER] == FURTHER
    nothing = {"singular_values": (4.0,), "direction": None, "by_size": (), "curvature": {}}
    assert not set(FURTHER) & set(figures(inspected(**nothing)))
    assert not set(FURTHER) & set(figures(good()))


def test_agreement_of_all_heads_together_has_a_row() -> None:
    figure = drawn(inspected(), "accuracy")
    assert figure["layout"]["yaxis"]["ticktext"] == ["square", "sin", "all heads"]
    (hollow,) = (
        trace
        for trace in figure["data"]
        if trace["name"] == "reuse" and trace["marker"]["symbol"].endswith("-open")
    )
    assert hollow["x"] == [1e-12, 1e-12, 3e-12]
    assert round(hollow["y"][-1]) == 2


# Scaling.


def scaling(kind: str, relative_to: str = "", slower: float = 1.0) -> dict[str, Any]:
    figure = figures(scaled(), relative_to, slower)[f"scaling-heads-{kind}"]
    drawn: dict[str, Any] = json.loads(figure.to_json())
    return drawn


def lines(figure: dict[str, Any]) -> dict[str, list[float]]:
    return {trace["name"]: trace["y"] for trace in figure["data"] if trace["mode"] == "lines"}


def marks(figure: dict[str, Any]) -> dict[str, list[float]]:
    return {trace["name"]: trace["y"] for trace in figure["data"] if trace["mode"] == "markers"}


def test_fitted_lines_go_through_the_points_and_on() -> None:
    figure = scaling("time")
    drawn = lines(figure)
    assert drawn["retain_graph"] == pytest.approx([2.04, 3.06, 6.12, 11.22])
    assert drawn["reuse"] == drawn["auto"] == pytest.approx([2.04] * 4)
    subtitle = figure["layout"]["title"]["subtitle"]["text"].replace("<br>", " ")
    assert re.search(r"line: fitted passes and heads, \S+% off$", subtitle)
    measured = marks(figure)
    assert measured["retain_graph"] == pytest.approx([2.04, 3.06, 6.12])
    assert measured["reuse"] == pytest.approx([2.04] * 4)
    assert {trace["x"][-1] for trace in figure["data"]} == {5, 10}
    for axis in ("xaxis", "yaxis"):
        assert figure["layout"][axis]["type"] == "log"


def test_all_passes_of_a_path_are_one_curve() -> None:
    figure = scaling("passes")
    assert lines(figure)["retain_graph"] == [2, 3, 6, 11]
    assert marks(figure) == {
        "retain_graph": [2, 3, 6], "reuse": [2, 2, 2, 2], "auto": [2, 2, 2, 2],
    }  # fmt: skip


def test_times_relative_to_a_path() -> None:
    figure = scaling("time", "retain_graph")
    assert lines(figure)["retain_graph"] == [1, 1, 1, 1]
    assert lines(figure)["reuse"] == pytest.approx([1, 2 / 3, 1 / 3, 2 / 11])
    # Only where the reference was measured too.
    assert marks(figure)["reuse"] == pytest.approx([1, 2 / 3, 1 / 3])
    assert scaling("passes", "retain_graph") == scaling("passes")
    assert scaling("time", "jvp") == scaling("time"), "it is not among the paths"


def test_the_lines_of_a_slower_f_rise_and_the_points_stay() -> None:
    slow, plain = scaling("time", slower=10), scaling("time")
    assert marks(slow) == marks(plain)
    assert lines(slow)["retain_graph"] == pytest.approx([20.4, 30.6, 61.2, 112.2])
    subtitle = slow["layout"]["title"]["subtitle"]["text"].replace("<br>", " ")
    assert subtitle.endswith("line: were f 10 times slower")
    assert scaling("passes", slower=10) == scaling("passes")
    # Costs of f alone: who is how many times faster than whom stays.
    relative = scaling("time", "retain_graph", slower=10)
    assert lines(relative)["reuse"] == pytest.approx([1, 2 / 3, 1 / 3, 2 / 11], rel=1e-3)


def test_the_break_even_is_marked_at_its_place() -> None:
    layout = scaling("time")["layout"]
    (line,), (label,) = layout["shapes"], layout["annotations"]
    assert line["x0"] == line["x1"] == 2
    assert label["x"] == pytest.approx(math.log10(2)), "plotly takes the logarithm there"
    assert label["text"] == "break-even: reuse from 2"


def test_what_is_scanned_and_on_what_is_named() -> None:
    subtitle = scaling("time")["layout"]["title"]["subtitle"]["text"].replace("<br>", " ")
    assert subtitle.startswith("heads Σ w·sin y, w normal; f with 1 output A processor, 2 threads")
    outputs = figures(every_field())["scaling-outputs-passes"].layout.title.subtitle.text
    assert outputs.startswith("16 heads Σ w·sin y")


def test_a_path_says_in_its_point_what_auto_took() -> None:
    (points,) = (
        trace for trace in scaling("time")["data"]
        if trace["name"] == "auto" and trace["mode"] == "markers"
    )  # fmt: skip
    assert points["hovertext"][0] == "auto, 1<br>2.04 s, by reuse"


def test_a_path_without_a_point_has_its_curve_and_its_place_in_the_legend() -> None:
    seen = scaled()
    empty = {
        name: path.model_copy(update={"measured": ()})
        for name, path in seen.scaling["heads"].paths.items()
    }
    waiting = seen.scaling["heads"].model_copy(update={"paths": empty})
    seen = seen.model_copy(update={"scaling": {"heads": waiting}})
    figure = drawn(seen, "scaling-heads-time")
    assert lines(figure)["retain_graph"] == pytest.approx([2, 3, 6, 11])
    subtitle = figure["layout"]["title"]["subtitle"]["text"].replace("<br>", " ")
    assert subtitle.endswith("line: predicted from passes timed alone")
    assert set(lines(figure)) == set(marks(figure)) == {"retain_graph", "reuse", "auto"}
    assert sum(trace["showlegend"] for trace in figure["data"]) == 3


# What the figures share.


@pytest.mark.parametrize("make", [*EVERY, scaled, inspected])
def test_the_figures_in_their_order_that_leave_the_theme_open(make: Any) -> None:
    seen = make()
    of_a_scaling = ["scaling-heads-passes", "scaling-heads-time"] if seen.scaling else []
    of_f = FURTHER if seen.jacobian.by_size else []
    assert list(figures(seen)) == ["time", "passes", "accuracy", "norms", *of_f, *of_a_scaling]
    for figure in figures(seen).values():
        layout = as_json(figure)["layout"]
        assert layout["plot_bgcolor"] == "rgba(0,0,0,0)"
        assert layout["paper_bgcolor"] == "white", "in a saved picture; the page shows its own"
        assert layout["autosize"] is True
        assert "width" not in layout
        assert "color" not in layout["font"]
        assert not {"gridcolor", "color", "linecolor"} & {*layout["xaxis"], *layout["yaxis"]}
        assert layout["template"].get("layout", {}) == {}
        assert layout["title"]["text"]


def test_eight_paths_have_room() -> None:
    """Every picture grows with the paths, and so does the room for their legend."""
    few, many = (
        good(),
        result(
            {path: timed(1.0, forward_mode_passes=int(path == "jvp")) for path in PATHS},
            {"square": head(dict.fromkeys(PATHS, 0.0), dict.fromkeys(PATHS, 1e-13))},
        ),
    )
    for name in ("time", "passes", "accuracy"):
        one, other = (drawn(seen, name)["layout"] for seen in (few, many))
        rows = len(one["yaxis"]["ticktext"]), len(other["yaxis"]["ticktext"])
        assert other["height"] > one["height"] + 30 * (rows[1] - rows[0])
    assert sum(text.endswith("forward mode") for text in labels(drawn(many, "passes"))) == 1


def test_every_path_has_a_look_of_its_own() -> None:
    assert PATH_STYLE.keys() >= PATHS.keys()
    for part in ("colour", "symbol", "dash"):
        looks = [getattr(PATH_STYLE[path], part) for path in PATHS]
        assert len(set(looks)) == len(PATHS)
    assert style("one of tomorrow") not in PATH_STYLE.values()


def test_a_path_looks_the_same_in_every_figure() -> None:
    seen = real()
    time, passes, accuracy = (drawn(seen, name) for name in ("time", "passes", "accuracy"))
    for row, path in enumerate(seen.paths):
        look = PATH_STYLE[path]
        assert traces(time, "bar")[row]["marker"]["color"] == [look.colour]
        assert {bar["marker"]["color"][row] for bar in passes["data"]} == {look.colour}
        marks = [t["marker"] for t in accuracy["data"] if t["name"] == path]
        assert [mark["color"] for mark in marks] == [look.colour] * 2
        assert [mark["symbol"] for mark in marks] == [f"{look.symbol}-open", look.symbol]


@pytest.mark.parametrize("name", ["time", "passes", "accuracy", "norms"])
def test_hostile_names_are_shown_as_text(name: str) -> None:
    evil = '<a href="https://example.org">x</a>'
    seen = result({evil: timed(1.0)}, {evil: head({evil: None}, {evil: 1e-13})}, device_name=evil)
    figure = drawn(seen, name)
    for trace in figure["data"]:
        trace.pop("legendgroup", None)  # a key, shown nowhere
    text = json.dumps(figure)
    assert "<a " not in text
    assert "&lt;a href=" in text


@pytest.mark.parametrize("name", ["sizes", "curvature"])
def test_hostile_names_of_heads_are_shown_as_text(name: str) -> None:
    evil = '<a href="https://example.org">x</a>'
    plain = inspected()
    (size, *_), (curved, *_) = plain.jacobian.by_size, plain.jacobian.curvature.values()
    at = size.model_copy(update={"heads": {evil: 1.0}})
    text = json.dumps(drawn(inspected(by_size=(at, at), curvature={evil: curved}), name))
    assert "<a " not in text
    assert "&lt;a href=" in text


def test_the_bundle_is_plain_data_with_the_configuration() -> None:
    figure = figures(good())["time"]
    bundle = mime_bundle(figure, "its-name", "svg")
    assert bundle["text/plain"] == "Time per path"
    drawing = bundle["application/vnd.plotly.v1+json"]
    button = drawing["config"].pop("toImageButtonOptions")
    assert drawing["config"] == CONFIG
    assert (button["filename"], button["format"], button["width"]) == ("its-name", "svg", 1000)
    assert {name: drawing[name] for name in ("data", "layout")} == json.loads(figure.to_json())
    assert json.loads(json.dumps(bundle, allow_nan=False)) == bundle


def test_an_enlarged_figure_is_the_same_with_larger_pixels() -> None:
    kind = "application/vnd.plotly.v1+json"
    for figure in (*figures(scaled()).values(), *figures(inspected()).values()):
        bundle = mime_bundle(figure)
        before, after = bundle[kind], enlarged(bundle, 2.0)[kind]
        assert enlarged(bundle, 1.0) == bundle and enlarged(bundle, 2.0)[kind] != before
        for name in ("height", ("margin", "t"), ("font", "size"), ("title", "font", "size")):
            path = (name,) if isinstance(name, str) else name
            one, two = before["layout"], after["layout"]
            for step in path:
                one, two = one[step], two[step]
            assert two == 2 * one
        for small, large in zip(before["data"], after["data"], strict=True):
            for name in ("x", "y", "width", "base", "text", "customdata"):  # in units of the axes
                assert small.get(name) == large.get(name)
            if isinstance(small.get("line", {}).get("width"), int | float):
                assert large["line"]["width"] == 2 * small["line"]["width"]
            if isinstance(small.get("marker", {}).get("size"), int | float):
                assert large["marker"]["size"] == 2 * small["marker"]["size"]
        # Back again is the same: nothing else has changed.
        again = enlarged(enlarged(bundle, 2.0), 0.5)
        assert again == bundle
