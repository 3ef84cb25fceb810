import math
import statistics

import pytest

from explorer.result import Array
from explorer.rows import COLUMNS, to_csv
from tests.delimited import numbers, only, read
from tests.results import COUNTS, good, head, inspected, real, result, scaled, timed, untimed


def test_every_number_of_a_run_is_read_back_as_it_was() -> None:
    seen = real()
    rows = read(to_csv(seen))
    for name, path in seen.paths.items():
        assert path.seconds is not None
        assert numbers(only(rows, record="run", path=name), "seconds") == list(path.seconds.runs)
        (row,) = only(rows, record="path", path=name)
        assert float(row["median_seconds"]) == path.seconds.median
        assert int(row["backward_passes"]) == path.backward_passes
        assert row["taken"] == path.taken
    for name, each in seen.heads.items():
        (row,) = only(rows, record="head", head=name)
        assert float(row["value"]) == each.value
        assert float(row["dz_dx_norm"]) == seen.jacobian.heads[name].composite
        assert each.exact_gradient is not None
        exact = only(rows, record="exact gradient", head=name)
        assert numbers(exact, "gradient") == list(each.exact_gradient)
        for path, gradient in each.gradient.items():
            (row,) = only(rows, record="gradient", head=name, path=path)
            assert (float(row["gradient"]),) == gradient
            assert float(row["gradient_norm"]) == abs(gradient[0])
            assert float(row["error"]) == each.error[path]
            assert float(row["agreement"]) == each.agreement[path]
            assert row["agreement_with"] == each.agreement_reference
    assert len(only(rows, record="gradient")) == len(seen.heads) * len(seen.paths)
    (row,) = only(rows, record="function")
    assert float(row["dy_dx_norm"]) == seen.jacobian.spectral_norm


def test_a_row_says_its_setting_so_that_tables_can_be_put_together() -> None:
    seen = real()
    rows = read(to_csv(seen))
    same = {"function": "matrix_exp_trace", "size": "20", "parameters": "x=1.0; derivative=torch",
            "dtype": "float64", "device": "cpu", "compile": "off", "seed": "0",
            "threads": str(seen.environment.threads), "host": seen.environment.host,
            "started": seen.environment.started}  # fmt: skip
    assert only(rows, **same) == rows
    assert tuple(rows[0]) == COLUMNS


def test_a_scaling_has_its_points_measured_and_predicted() -> None:
    seen = scaled()
    rows = read(to_csv(seen))
    path = seen.scaling["heads"].paths["retain_graph"]
    points = only(rows, record="scaling", path="retain_graph", scaling="heads")
    assert [int(row["count"]) for row in points] == list(COUNTS)
    assert [row["status"] for row in points] == ["measured"] * 3 + ["predicted"]
    assert numbers(points, "predicted_seconds") == [each.seconds for each in path.predicted]
    measured = [(point.count, run) for point in path.measured for run in point.seconds.runs]
    runs = only(rows, record="scaling run", path="retain_graph")
    assert numbers(runs, "count", "seconds") == measured
    assert {row["taken"] for row in only(rows, record="scaling", path="auto")} == {"reuse"}
    assert len(only(rows, record="run")) == 6, "of the run itself alone"


def test_what_was_seen_of_the_jacobians_is_there() -> None:
    seen = inspected()
    rows = read(to_csv(seen))
    found = only(rows, record="singular value")
    assert numbers(found, "number", "singular_value") == [(1, 4.0), (2, 1.0), (3, 0.0)]
    (row,) = only(rows, record="head", head="square")
    assert (float(row["hessian_largest"]), float(row["hessian_smallest"])) == (300.0, -2.0)
    (small,) = only(rows, record="size", size="2", head="")
    assert float(small["dy_dx_norm"]) == 1.25
    (of_head,) = only(rows, record="size", size="2", head="square")
    assert float(of_head["dz_dx_norm"]) == 2.5


def test_a_gradient_of_many_entries_has_its_norm() -> None:
    long = Array(norm=7.0, shape=(40,), first=(1.0,))
    heads = {"a": head({"reuse": None}, {"reuse": None}, gradient={"reuse": (3.0, -4.0)}),
             "b": head({"reuse": None}, {"reuse": None}, gradient={"reuse": long})}  # fmt: skip
    rows = only(read(to_csv(result({"reuse": timed(1.0)}, heads))), record="gradient")
    assert [(row["gradient"], row["gradient_norm"]) for row in rows] == [("", "5.0"), ("", "7.0")]
    assert [row["error"] for row in rows] == ["", ""], "not known is not 0"


def test_what_is_not_finite_is_written_as_pandas_and_r_read_it() -> None:
    each = head({"reuse": None}, {"reuse": math.inf}, value=-math.inf,
                gradient={"reuse": (math.nan,)})  # fmt: skip
    text = to_csv(result({"reuse": timed(1.0)}, {"log": each}))
    (row,) = only(read(text), record="gradient")
    assert (row["gradient"], row["gradient_norm"], row["error"]) == ("NaN", "NaN", "Inf")
    (row,) = only(read(text), record="head")
    assert row["value"] == "-Inf"
    assert float(row["value"]) == -math.inf


def test_a_path_that_was_not_run_has_its_prediction_and_the_reason() -> None:
    paths = {"reuse": timed(1.0), "recompute": untimed("predicted", 2, 2, predicted_seconds=9.5,
                                                       note="it would take, 9.5 s")}  # fmt: skip
    seen = result(paths, {"square": head({"reuse": None}, {"reuse": 0.0})})
    rows = read(to_csv(seen))
    (row,) = only(rows, record="path", path="recompute")
    assert (row["median_seconds"], row["predicted_seconds"]) == ("", "9.5")
    assert row["note"] == "it would take, 9.5 s"
    assert only(rows, record="run", path="recompute") == []


@pytest.mark.parametrize("typed", ["-y", "+y", "=y", "@SUM(A1)", "\t=1", "\r=1", "＝y"])
def test_a_spreadsheet_runs_nothing_that_was_typed(typed: str) -> None:
    seen = result({"reuse": timed(1.0)}, {typed: head({"reuse": None}, {"reuse": 0.0})})
    rows = read(to_csv(seen))
    assert {row["head"] for row in only(rows, record="gradient")} == {f"'{typed}"}


def test_negative_numbers_stay_numbers() -> None:
    each = head({"reuse": None}, {"reuse": 0.0}, gradient={"reuse": (-2.5,)})
    (row,) = only(read(to_csv(result({"reuse": timed(1.0)}, {"-y": each}))), record="gradient")
    assert row["gradient"] == "-2.5"


def test_text_of_several_lines_with_quotes_and_commas_is_one_cell() -> None:
    name = 'a "head",\nof\rtwo lines, ‖y‖²'
    seen = result({"reuse": timed(1.0)}, {name: head({"reuse": None}, {"reuse": 0.0})})
    text = to_csv(seen)
    (row,) = only(read(text), record="gradient")
    assert row["head"] == name
    assert text.endswith("\r\n") and text.startswith("record,path,")


def test_of_many_heads_all_are_there() -> None:
    heads = {f"powers {k}": head({"reuse": None}, {"reuse": 1e-15 * k}) for k in range(1, 301)}
    rows = only(read(to_csv(result({"reuse": timed(1.0)}, heads))), record="gradient")
    assert numbers(rows, "error") == [1e-15 * k for k in range(1, 301)]


def test_the_median_of_the_runs_is_the_median() -> None:
    rows = read(to_csv(good()))
    (path,) = only(rows, record="path", path="recompute")
    runs = numbers(only(rows, record="run", path="recompute"), "seconds")
    assert statistics.median(runs) == float(path["median_seconds"])
