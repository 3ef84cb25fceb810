"""The table behind the pictures of a study."""

import math
from typing import Any

from explorer.study.tables import table
from explorer.tables import to_html
from tests.study.points import growing, ran, study


def test_a_row_a_point_along_the_axes_however_they_were_measured() -> None:
    found = table(study(["size=100,50,200", "heads=4,1"], growing))
    assert found.title == "Points of the sweep"
    assert found.columns == (
        "size", "heads", "Time, recompute", "Time, reuse", "Speed-up", "Largest error", "‖dy/dx‖₂",
    )  # fmt: skip
    assert found.rows == (
        ("100", "4", "4 s", "1 s", "4.0 (reuse)", "1e-13", "100"),
        ("100", "1", "1 s", "1 s", "1.00 (reuse)", "1e-13", "100"),
        ("50", "4", "2 s", "500 ms", "4.0 (reuse)", "1e-13", "50"),
        ("50", "1", "500 ms", "500 ms", "1.00 (reuse)", "1e-13", "50"),
        ("200", "4", "8 s", "2 s", "4.0 (reuse)", "1e-13", "200"),
        ("200", "1", "2 s", "2 s", "1.00 (reuse)", "1e-13", "200"),
    )


def test_what_is_not_there_or_wrong_is_told_in_its_cell() -> None:
    def seen(at: Any) -> Any:
        return {
            1: ran({"recompute": None, "reuse": 1.0}),
            2: ran({"recompute": 2.0, "reuse": 1.0}, error={"recompute": 0.5}, norm=None),
            3: ran({"reuse": 1.0}, error={"reuse": None}),
            4: "f raised",
            5: ran({"recompute": 2.0, "reuse": 1.0}, error={"recompute": math.nan, "reuse": 0.1}),
            6: ran({"recompute": 2.0, "reuse": 1.0}, error={"recompute": 0.1, "reuse": math.nan}),
        }[at["heads"]]

    rows = table(study(["heads=1,2,3,4,5,6"], seen)).rows
    assert rows[0] == ("1", "(100 s expected)", "1 s", "–", "1e-13", "3")
    assert rows[1] == ("2", "2 s (wrong)", "1 s", "2.0 (reuse)", "50%", "–")
    assert rows[2] == ("3", "–", "1 s", "–", "–", "3")
    assert rows[3] == ("4", "–", "–", "–", "–", "–")
    assert rows[4][4] == rows[5][4] == "NaN"


def test_three_axes_and_values_without_an_order_keep_theirs() -> None:
    found = table(study(["dtype=float64,float32", "x=1,0.5", "compile=on,off"], growing))
    assert [row[:3] for row in found.rows] == [
        (dtype, x, on) for dtype in ("float64", "float32") for x in ("1", "0.5")
        for on in ("on", "off")
    ]  # fmt: skip


def test_of_many_points_some_are_shown_the_first_and_the_last_among_them() -> None:
    found = study(["size=2:101:lin100"], growing)
    few = table(found, 12)
    assert few.title == "Points of the sweep (12 of 100 points)"
    assert [int(row[0]) for row in few.rows] == [2 + 9 * number for number in range(12)]
    whole = table(found, 100)
    assert len(whole.rows) == 100 and whole.title == "Points of the sweep"
    assert len(table(found).rows) == 60


def test_no_points_make_a_table_without_rows() -> None:
    found = table(study(["size=2,3"], growing, 0))
    assert found.rows == () and found.columns == ("size", "Speed-up", "Largest error", "‖dy/dx‖₂")
    assert "<tbody></tbody>" in to_html(found)
