import math
from xml.etree import ElementTree

import pytest

from explorer.engine.plan import Costs
from explorer.figures import figures
from explorer.result import HeadNorms, JacobianResult
from explorer.tables import Table, tables, to_html
from tests.results import (
    NOTHING_YET,
    every_field,
    good,
    head,
    inaccurate,
    inspected,
    modelled,
    real,
    result,
    scaled,
    timed,
    untimed,
)


@pytest.mark.parametrize("make", [good, inaccurate, real, scaled, inspected])
def test_a_table_stands_behind_every_figure(make) -> None:  # type: ignore[no-untyped-def]
    seen = make()
    found = tables(seen)
    assert list(found) == list(figures(seen))
    for table in found.values():
        assert table.title
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_time_and_memory() -> None:
    paths = {
        "recompute": timed(9.5, 9.6, 9.7, saved_bytes=16_000_008, peak_memory_bytes=683_757_568),
        "retain_graph": untimed("predicted", predicted_seconds=40.0),
        "reuse": timed(0.99, 1.0, 1.01, saved_bytes=100, peak_memory_bytes=4096),
    }
    right = {"recompute": 1e-13, "reuse": 1e-13}
    seen = result(paths, {"sin": head({"recompute": 0.0, "reuse": 0.0}, right)})
    table = tables(seen)["time"]
    assert table.columns[5] == "Against recompute"
    assert table.rows == (
        ("recompute", "9.6 s", "100 ms", "9.5 s", "3", "reference", "16 MB", "684 MB"),
        ("retain_graph", "40 s (predicted)", "–", "–", "0", "predicted", "not measured",
         "not measured"),
        ("reuse", "1 s", "10 ms", "990 ms", "3", "9.6× faster", "100 B", "< 20 MB"),
    )  # fmt: skip


def test_one_run_has_no_spread() -> None:
    seen = result({"reuse": timed(2.0)}, {"sin": head({"reuse": None}, {"reuse": 0.0})})
    assert tables(seen)["time"].rows[0][1:5] == ("2 s", "–", "2 s", "1")


def test_a_path_still_to_run() -> None:
    waiting = untimed("running", forward=2, backward=2, predicted_seconds=3.0)
    seen = result({"recompute": waiting}, {"sin": head({}, {})}, status="running")
    assert tables(seen)["time"].rows[0][:6] == ("recompute", "–", "–", "–", "0", "not yet run")
    assert tables(seen)["passes"].rows == (("recompute (expected)", "2", "2", "0", "–"),)


def test_passes() -> None:
    assert tables(good())["passes"].rows == (
        ("recompute", "10", "10", "0", "–"), ("reuse", "1", "1", "0", "–"),
    )  # fmt: skip


def test_a_plan_stands_beside_the_passes() -> None:
    paths = {
        "reuse": timed(1.0, plan="1 backward pass."),
        "auto": timed(1.0, plan="1 backward pass.", taken="reuse"),
    }
    rows = tables(result(paths, {"sin": head({}, {})}))["passes"].rows
    assert [row[-1] for row in rows] == ["1 backward pass.", "reuse: 1 backward pass."]


def test_scaling() -> None:
    found = tables(scaled())
    time, passes = found["scaling-heads-time"], found["scaling-heads-passes"]
    assert time.columns == passes.columns == ("Heads K", "retain_graph", "reuse", "auto")
    assert time.rows[0] == ("1", *("2.04 s (2.04 s)",) * 3)
    assert time.rows[3] == ("10", "(11.2 s)", *("2.04 s (2.04 s)",) * 2)
    assert time.title == "Time against the number of heads K (in brackets: fitted)"
    off = modelled(
        lambda count: Costs.of(1.0, 1.0),
        ("retain_graph", "reuse", "jvp"),
        # The fit follows the most points: half of jvp's stay 20% above it.
        disturb=lambda path, count: 1.2 if path == "jvp" and count % 2 else 1.0,
    )
    first, *parts = tables(off)["scaling-heads-time"].rows[-1]
    off_by = [float(part.removesuffix("%")) for part in parts]
    assert first == "Fitted, off by (median)"
    assert off_by[0] < 1 and off_by[1] < 1 and 1 < off_by[2] < 20
    waiting = tables(modelled(lambda count: Costs.of(1.0, 1.0), ("reuse",), most=0))
    assert waiting["scaling-heads-time"].rows[-1] == ("100", "(4 s)")
    assert waiting["scaling-heads-time"].title.endswith("(in brackets: predicted)")
    assert passes.rows[2:] == (
        ("5", "1 + 5", "1 + 1", "1 + 1"), ("10", "(1 + 10)", "1 + 1", "1 + 1"),
    )  # fmt: skip
    outputs = tables(every_field())["scaling-outputs-passes"]
    assert outputs.columns[0] == "Entries of y, m" and outputs.rows[0] == ("1", "1 + 2 + 3")


def test_accuracy() -> None:
    assert tables(good())["accuracy"].rows == (
        ("square", "recompute", "2", "reference", "3e-13", "right"),
        ("square", "reuse", "2", "2e-12", "4e-13", "right"),
    )
    wrong = tables(inaccurate())["accuracy"].rows
    assert {row[-1] for row in wrong} == {"wrong"}
    assert wrong[1][3:5] == ("exactly 0", "0.00288")


def test_long_gradients_and_numbers_that_are_not_finite() -> None:
    norm = {"norm": 12.5, "shape": (5, 8), "first": (1.0, 2.0)}
    one = head({"reuse": None}, {"reuse": None}, gradient={"reuse": norm})
    two = head({"reuse": None}, {"reuse": math.nan}, gradient={"reuse": (3.0, 4.0)})
    three = head({}, {"reuse": math.inf})
    seen = result({"reuse": timed(1.0)}, {"sin": one, "exp": two, "mean": three})
    cells = [row[2:] for row in tables(seen)["accuracy"].rows]
    assert cells == [
        ("norm 12.5, shape 5×8", "–", "–", "not known"),
        ("norm 5, 2 entries", "–", "NaN", "not known"),
        ("–", "–", "infinite", "no gradient"),
    ]


def test_norms() -> None:
    assert tables(good())["norms"].rows == (
        ("f", "3", "–", "–", "–", "–"), ("square", "–", "2", "6", "6", "100%"),
    )  # fmt: skip
    waiting = result({"reuse": timed(1.0)}, {"sin": head({}, {})}, jacobian=NOTHING_YET)
    assert tables(waiting)["norms"].rows == (
        ("f", "–", "–", "–", "–", "–"), ("sin", "–", "–", "–", "–", "–"),
    )  # fmt: skip
    loose = {"sin": HeadNorms(spectral_norm=2.0, composite=1.5, bound=6.0)}
    some = JacobianResult(spectral_norm=3.0, heads=loose, method="dense")
    seen = result({"reuse": timed(1.0)}, {"sin": head({}, {})}, jacobian=some)
    assert tables(seen)["norms"].rows[1] == ("sin", "–", "2", "1.5", "6", "25%")


def test_what_else_there_is_of_the_jacobians() -> None:
    found = tables(inspected())
    assert found["singular-values"].rows == (
        ("1", "4", "1"), ("2", "1", "0.25"), ("3", "0", "0"),
    )  # fmt: skip
    assert found["direction"].rows == (("1", "0.8"), ("2", "-0.6"))
    assert found["direction"].title.endswith("the first 2 entries of 40")
    assert found["sizes"].columns[-2:] == ("‖dz/dx‖ of square", "‖dz/dx‖ of sin")
    assert found["sizes"].rows == (
        ("2", "2", "3", "1.25", "rounding", "2.5", "–"),
        ("60", "40", "3", "4", "1e-07", "8", "0.5"),
    )
    assert found["curvature"].rows == (
        ("square", "-2", "300", "1e-06", "8"), ("sin", "0.25", "0.25", "rounding", "1"),
    )  # fmt: skip


def test_agreement_of_all_heads_together_has_rows_of_its_own() -> None:
    cells = [row for row in tables(inspected())["accuracy"].rows if row[0] == "all heads"]
    assert cells == [("all heads", "reuse", "–", "3e-12", "–", "–")]


def test_html_is_semantic_and_escaped() -> None:
    evil = "<script>alert('&')</script>"
    table = Table(f"T {evil}", (f"A {evil}", "B"), ((f"a {evil}", "<b>1</b>"), ("c", "2")))
    root = ElementTree.fromstring(to_html(table))
    assert root.findtext("caption") == table.title
    heads = root.findall("thead/tr/th")
    assert [th.text for th in heads] == list(table.columns)
    assert {th.get("scope") for th in heads} == {"col"}
    rows = root.findall("tbody/tr")
    assert [tuple(cell.text for cell in row) for row in rows] == list(table.rows)
    assert [row[0].tag for row in rows] == ["th", "th"]
    assert {row[0].get("scope") for row in rows} == {"row"}
