from explorer.comparing.comparison import compare
from explorer.comparing.rows import COLUMNS
from explorer.rows import to_csv
from tests.comparing.results import elsewhere, measured
from tests.delimited import numbers, only, read


def test_every_path_of_every_result_has_its_ratio() -> None:
    seen = compare({"laptop": measured(), "=gpu": elsewhere(0.4, threads=16)})
    rows = read(to_csv(seen))
    assert tuple(rows[0]) == COLUMNS
    for path, found in seen.ratios.items():
        ratio = found["=gpu"]
        (row,) = only(rows, record="path", path=path, result="'=gpu")
        assert numbers([row], "ratio", "ratio_low", "ratio_high", "p") == [
            (ratio.value, ratio.low, ratio.high, ratio.p)
        ]
        assert (row["against"], row["runs"], row["runs_against"]) == ("laptop", "5", "5")
        assert (row["host"], row["threads"], row["wrong"]) == ("there", "16", "no")
        (first,) = only(rows, record="path", path=path, result="laptop")
        assert (first["ratio"], first["against"]) == ("", "")
        assert float(first["median_seconds"]) == (10 if path == "recompute" else 1)


def test_gradients_have_their_distance() -> None:
    seen = compare({"one": measured(), "other": measured(gradient=2.5)})
    (row,) = only(read(to_csv(seen)), record="gradient", result="other")
    assert (row["head"], row["against"]) == ("square", "one")
    assert float(row["distance"]) == seen.gradients["square"]["other"].value == 0.25


def test_wrong_paths_are_not_compared() -> None:
    wrong = measured()
    head = wrong.heads["square"].model_copy(update={"error": {"recompute": 0.5, "reuse": 1e-13}})
    wrong = wrong.model_copy(update={"heads": {"square": head}})
    rows = only(read(to_csv(compare({"right": measured(), "wrong": wrong}))), result="wrong")
    told = {row["path"]: (row["wrong"], row["ratio"]) for row in only(rows, record="path")}
    assert told["recompute"] == ("yes", "")
    assert told["reuse"][0] == "no" and told["reuse"][1] != ""
