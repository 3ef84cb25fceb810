from explorer.rows import to_csv
from explorer.study.rows import COLUMNS
from tests.delimited import numbers, only, read
from tests.study.points import growing, ran, study


def test_a_row_for_each_path_at_each_point_in_the_order_of_the_file() -> None:
    seen = study({"size": "10,40", "heads": "1,3"}, growing, repeats="2")
    rows = read(to_csv(seen))
    assert tuple(rows[0]) == ("size", "heads", "repeats", *COLUMNS)
    paths = [(point, name, path) for point in seen.points for name, path in point.paths.items()]
    assert len(rows) == len(paths) == 8
    for row, (point, name, path) in zip(rows, paths, strict=True):
        assert {"size": int(row["size"]), "heads": int(row["heads"])} == point.at
        assert (row["path"], row["repeats"], row["problem"]) == (name, "2", "")
        times = (path.seconds, path.low, path.high)
        assert numbers([row], "median_seconds", "lower_quartile_seconds",
                       "upper_quartile_seconds") == [times]  # fmt: skip
        assert int(row["backward_passes"]) == path.backward
        assert numbers([row], "error", "agreement") == [(path.error, path.agreement)]
        assert numbers([row], "dy_dx_norm", "point_seconds") == [(point.norm, 0.5)]
        assert int(row["head_count"]) == point.heads
        assert row["wrong"] == "no"


def test_a_path_that_was_left_out_has_its_prediction_and_a_wrong_one_says_so() -> None:
    times = {"recompute": None, "reuse": 1.0}
    rows = read(to_csv(study({"size": "10"}, lambda at: ran(times, error={"reuse": 0.5}))))
    (left_out,) = only(rows, path="recompute")
    assert (left_out["median_seconds"], left_out["predicted_seconds"]) == ("", "100.0")
    (wrong,) = only(rows, path="reuse")
    assert (wrong["wrong"], wrong["error"]) == ("yes", "0.5")


def test_a_point_without_a_result_has_one_row_with_the_reason() -> None:
    seen = study({"size": "10,20"}, lambda at: growing(at) if at["size"] == 10 else "=f failed")
    (row,) = only(read(to_csv(seen)), size="20")
    assert (row["path"], row["head_count"], row["point_seconds"]) == ("", "", "0.5")
    assert row["problem"] == "'=f failed", "no spreadsheet runs it"


def test_values_are_written_as_a_person_writes_them() -> None:
    seen = study({"compile": "on,off", "x": "-1,2.5"}, growing, paths=("recompute", "reuse"))
    rows = read(to_csv(seen))
    assert {(row["compile"], row["x"]) for row in rows} == {
        ("on", "-1.0"), ("on", "2.5"), ("off", "-1.0"), ("off", "2.5")
    }  # fmt: skip
    assert {row["paths"] for row in rows} == {"recompute,reuse"}


def test_a_negative_number_that_was_typed_stays_a_number() -> None:
    (row, *_) = read(to_csv(study({"size": "10"}, growing, x="-1.5")))
    assert row["x"] == "-1.5"


def test_a_study_without_points_is_a_header() -> None:
    assert read(to_csv(study({"size": "10,20"}, growing, 0))) == []
