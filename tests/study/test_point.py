"""A point of a sweep: one line of JSON of at most 10 kB, whatever the run showed."""

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer import sentences
from explorer.engine.plan import PATHS
from explorer.experiment import Experiment
from explorer.result import (
    Array,
    Curvature,
    Environment,
    HeadNorms,
    HeadResult,
    JacobianResult,
    Result,
    Seconds,
    SizeNorms,
)
from explorer.study.point import MOST_BYTES, Point
from explorer.study.sweep import MOST_SETTING
from tests.results import every_field, good, head, inaccurate, inspected, result, timed
from tests.results import untimed as not_timed

KEYS = "0123456789abcdef", "fedcba9876543210"
NASTY = "\n\0\u2028\u2029\x85\x1b\"\\\ud800😀é" * 100
NUMBER = 0.12345678901234567


def of(seen: Result | None, problem: str = "", **at: Any) -> Point:
    return Point.of(*KEYS, at or {"size": 60}, 1.5, seen, problem)


def checked(point: Point) -> Point:
    """The point, after what holds of every one."""
    line = point.line
    assert len(line) <= MOST_BYTES
    assert line.endswith(b"}\n") and line.count(b"\n") == 1 and b"\r" not in line
    json.loads(line, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    read = Point.read(line)  # in every line the Result is one, or none
    assert read.result is None or isinstance(read.result, Result)
    assert read.line == line
    # As JSON, where NaN is NaN.
    assert read.model_dump_json() == point.model_dump_json()
    return point


def kept(point: Point) -> Result:
    found = checked(point).result
    assert found is not None
    return found


@pytest.mark.parametrize("make", [good, inaccurate, inspected, every_field])
def test_a_line_is_read_back_to_the_point(make: Any) -> None:
    point = checked(of(make(), size=60, dtype="float64", x=0.5, compile=False))
    assert Point.read(point.line) == point
    assert point.at == {"size": 60, "dtype": "float64", "x": 0.5, "compile": False}
    assert [type(value) for value in Point.read(point.line).at.values()] == [int, str, float, bool]


def test_a_float_that_is_whole_stays_a_float() -> None:
    point = Point.read(of(good(), x=1.0).line)
    assert type(point.at["x"]) is float


@pytest.mark.parametrize("make", [good, inaccurate, inspected])
def test_the_result_in_a_line_has_norms_in_the_place_of_gradients(make: Any) -> None:
    seen = make()
    found = kept(of(seen))
    assert found.experiment == seen.experiment and list(found.heads) == list(seen.heads)
    for name, each in found.heads.items():
        for path, gradient in seen.heads[name].gradient.items():
            norm = math.hypot(*gradient) if isinstance(gradient, tuple) else gradient.norm
            short = each.gradient[path]
            assert isinstance(short, Array) and short.first == ()
            assert short.norm == pytest.approx(norm)
        assert each.error == seen.heads[name].error
    assert found.jacobian.direction is None
    for name, path in found.paths.items():
        one, other = path.seconds, seen.paths[name].seconds
        assert one is not None and other is not None
        assert (one.median, one.minimum) == (other.median, other.minimum)
        assert one.runs == pytest.approx(other.runs, rel=1e-4)
    # The sentences are the same from the line and from the Result.
    assert sentences.wrong_paths(found) == sentences.wrong_paths(seen)
    assert sentences.summary(found) == sentences.summary(seen)


def test_a_point_without_a_result_says_why() -> None:
    point = checked(of(None, "f raised\nValueError: no"))
    assert point.result is None and point.paths == {} and point.where == ""
    assert point.problem == "f raised\nValueError: no"


def test_a_partial_result_is_kept_beside_the_problem() -> None:
    point = of(good(), "The point was ended after 30 s: its budget is 10 s.")
    assert kept(point) is not None and point.problem.startswith("The point was ended")


# What is shown without the Result.


def test_the_numbers_of_a_point_are_those_of_its_result() -> None:
    seen = inaccurate()
    point = of(seen)
    assert list(point.paths) == list(seen.paths)
    for name, path in point.paths.items():
        measured = seen.paths[name]
        assert measured.seconds is not None
        assert path.seconds == pytest.approx(measured.seconds.median, rel=1e-5)
        quartiles = sentences.middle_half(measured.seconds)
        assert (path.low, path.high) == pytest.approx(quartiles, rel=1e-5)
        assert (path.forward, path.backward) == (measured.forward_passes, measured.backward_passes)
        errors = [each.error[name] for each in seen.heads.values()]
        agreements = [each.agreement[name] for each in seen.heads.values()]
        most = max(errors), max(agreements)
        assert (path.error, path.agreement) == pytest.approx(most, rel=1e-5)
        assert path.wrong is (name in sentences.wrong_paths(seen))
    assert {path.wrong for path in point.paths.values()} == {True}
    assert (point.heads, point.outputs, point.inputs, point.norm) == (2, 1, 1, 3.0)
    assert point.where == "here, A processor, 2 threads"


def test_one_path_of_several_may_be_wrong_and_auto_tells_what_it_took() -> None:
    seen = result(
        {"recompute": timed(2.0, 2.1), "reuse": timed(1.0, 1.1), "auto": timed(1.0, taken="reuse")},
        {"square": head({"recompute": 0.0, "reuse": 0.5, "auto": 1e-9},
                        {"recompute": 1e-13, "reuse": 0.5, "auto": 1e-9})},
    )  # fmt: skip
    paths = of(seen).paths
    assert {name: path.wrong for name, path in paths.items()} == {
        "recompute": False, "reuse": True, "auto": False,
    }  # fmt: skip
    assert [path.taken for path in paths.values()] == ["", "", "reuse"]
    assert paths["reuse"].agreement == 0.5


def test_a_path_that_was_not_timed_says_what_it_would_take_and_why() -> None:
    waiting = not_timed("predicted", predicted_seconds=40.0, backward=9, note="not run: too slow")
    seen = result({"recompute": waiting, "reuse": timed(1.0)}, {"sin": head({}, {})})
    path = of(seen).paths["recompute"]
    assert path.model_dump() == {
        "seconds": None, "low": None, "high": None, "predicted": 40.0, "forward": 1, "backward": 9,
        "forward_mode": 0, "error": None, "agreement": None, "wrong": False, "taken": "",
        "note": "not run: too slow",
    }  # fmt: skip


def test_a_head_outside_its_domain_counts_for_no_path_and_nan_is_the_largest() -> None:
    right = head({"reuse": 1e-12}, {"reuse": 1e-12})
    outside = head({"reuse": 9.0}, {"reuse": 9.0}, domain="y lies outside")
    unknown = head({"reuse": None}, {"reuse": None})
    broken = head({"reuse": math.nan}, {"reuse": math.nan}, gradient={"reuse": (math.nan,)})

    def reuse(**heads: HeadResult) -> Any:
        return checked(of(result({"reuse": timed(1.0)}, heads))).paths["reuse"]

    assert reuse(a=right, b=outside, c=unknown).error == 1e-12
    assert not reuse(a=right, b=outside).wrong
    assert reuse(c=unknown).error is None
    for heads in ({"a": right, "d": broken}, {"d": broken, "a": right}):
        assert math.isnan(reuse(**heads).error) and reuse(**heads).wrong


# The line is never too long.


def seconds(count: int) -> Seconds:
    runs = tuple(NUMBER * (1 + number / 1e3) for number in range(count))
    return Seconds(median=runs[count // 2], iqr=NUMBER, minimum=min(runs), runs=runs)


def worst(
    heads: int, runs: int, text: str, own: str = "", experiment: Experiment | None = None
) -> Result:
    """Eight paths with so many runs, so many heads with names of their own, everything measured,
    and a text wherever there is one."""
    names = [f"{own}{number}" for number in range(heads)]
    gradient = {path: (NUMBER,) * 16 for path in PATHS}
    each = HeadResult(
        value=NUMBER,
        gradient=gradient,
        agreement=dict.fromkeys(PATHS, NUMBER),
        agreement_reference="recompute",
        error=dict.fromkeys(PATHS, NUMBER),
        error_reference=text,
        exact_gradient=(NUMBER,) * 16,
        formula=text,
    )
    paths = {
        path: timed(1.0, noise=text, note=text, plan=text, forward_mode_passes=3, taken="reuse",
                    saved_bytes=10**12, peak_memory_bytes=10**12, predicted_seconds=NUMBER)
        .model_copy(update={"seconds": seconds(runs)})
        for path in PATHS
    }  # fmt: skip
    norms = HeadNorms(spectral_norm=NUMBER, composite=NUMBER, bound=NUMBER)
    curved = Curvature(largest=NUMBER, smallest=NUMBER, error=NUMBER, products=100)
    sizes = tuple(
        SizeNorms(size=size, inputs=10**6, outputs=10**6, spectral_norm=NUMBER, error=NUMBER,
                  heads=dict.fromkeys(names, NUMBER))
        for size in range(12)
    )  # fmt: skip
    jacobian = JacobianResult(
        spectral_norm=NUMBER,
        heads=dict.fromkeys(names, norms),
        method=text,
        source="low_rank_vjp",
        error=NUMBER,
        products=10**4,
        singular_values=(NUMBER,) * 500,
        condition=NUMBER,
        direction=(NUMBER,) * 500,
        agreement=dict.fromkeys(PATHS, NUMBER),
        curvature=dict.fromkeys(names, curved),
        by_size=sizes,
    )
    seen = result(
        paths, dict.fromkeys(names, each), jacobian=jacobian, notes=(text,) * 50, outputs=10**6
    )
    where = Environment(
        torch=text, python=text, device_name=text, threads=10**3, host=text, started="2026-12-01"
    )
    changes: dict[str, Any] = {"environment": where}
    if experiment is not None:
        changes["experiment"] = experiment
    return seen.model_copy(update=changes)


@pytest.mark.parametrize("text", ["", "some words " * 100, NASTY, "\x00" * 5000, "😀" * 5000])
def test_the_largest_result_there_can_be_is_a_line_with_the_result_in_it(text: str) -> None:
    # As long as a sweep allows.
    typed = ",".join(f"{number}.123456789*sin(y)" for number in range(65))
    experiment = Experiment(heads=tuple(typed.split(",")))
    assert MOST_SETTING - 100 < len(json.dumps(experiment.to_json())) < MOST_SETTING
    seen = worst(1000, 1000, text, "powers ", experiment)
    point = of(seen, text, function="matrix_exp_entries", heads=1000, derivative="torch")
    found = kept(point)
    assert (point.heads, len(point.paths), found.experiment) == (1000, 8, seen.experiment)
    assert 1 <= len(found.heads) < 1000 and list(found.paths) == list(PATHS)
    assert set(found.jacobian.heads) == set(found.jacobian.curvature) == set(found.heads)
    assert f"{len(found.heads)} of 1000 heads are kept one by one." in found.notes
    for path in found.paths.values():
        assert path.seconds is not None and 3 <= len(path.seconds.runs) <= 50
        assert path.seconds.runs[0] == pytest.approx(NUMBER, rel=1e-4)
        assert path.seconds.runs[-1] == pytest.approx(NUMBER * 1.999, rel=1e-4)


def test_heads_with_something_wrong_are_kept_before_the_others() -> None:
    plain = worst(1000, 100, "")
    wrong = plain.heads["7"].model_copy(update={"error": dict.fromkeys(PATHS, 0.5)})
    right = plain.heads["7"].model_copy(update={"error": dict.fromkeys(PATHS, 1e-12)})
    heads = {name: wrong if name == "983" else right for name in plain.heads}
    found = kept(of(plain.model_copy(update={"heads": heads})))
    assert "983" in found.heads


@pytest.mark.parametrize("own", ["h" * 1900, "é" * 320])
def test_names_of_heads_that_leave_no_room_cost_the_result_and_no_more(own: str) -> None:
    experiment = Experiment(heads=("square",))
    point = checked(of(worst(12, 50, NASTY, own, experiment), size=3))
    assert len(point.paths) == 8 and point.heads == 12
    if point.result is None:
        assert point.problem == "the whole Result takes more than a line has room for."


TEXT = st.text(max_size=60).map(lambda text: text * 20)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    heads=st.integers(1, 40),
    runs=st.integers(1, 60),
    text=TEXT,
    problem=TEXT,
    own=st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
def test_every_point_is_one_line_of_at_most_ten_kilobytes(
    heads: int, runs: int, text: str, problem: str, own: str
) -> None:
    point = checked(of(worst(heads, runs, text, own), problem))
    assert point.result is not None
    assert point.paths["reuse"].seconds == pytest.approx(seconds(runs).median, rel=1e-5)


def test_what_is_no_line_of_a_point_is_refused() -> None:
    line = of(good()).line
    for wrong in (
        b"", b"\n", b"[]", b"null", b"{}", line[:-5], line.replace(b'"sweep"', b'"swept"'),
        line.replace(b'{"schema":1', b'{"schema":2', 1), line.replace(b'{"schema":1,', b"{", 1),
        line.replace(b'"seconds":1.5', b'"seconds":NaN'), b'{"schema":1,"result":null}',
        b"\xff\xfe",
        line.replace(b'"at":{"size":60}', b'"at":{}'),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            Point.read(wrong)
