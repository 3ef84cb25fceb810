"""A Result survives JSON, which is strict, and nothing else is taken for one."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.result import Result
from tests.results import every_field


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not strict JSON")


@given(st.floats(allow_nan=False))
@settings(deadline=None)
def test_survives_json(number: float) -> None:
    before = every_field(number)
    assert Result.from_json(before.to_json()) == before
    assert Result.from_json(before.to_json().encode()) == before


@pytest.mark.parametrize(
    "number, text", [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_number_that_is_not_finite_is_a_string(number: float, text: str) -> None:
    written = every_field(number).to_json()
    plain = json.loads(written, parse_constant=refuse)
    assert plain["function"]["value"] == [1.0, text]
    assert plain["function"]["exact_value"] == text
    assert plain["paths"]["reuse"]["seconds"]["runs"] == [0.2, text]
    assert plain["paths"]["recompute"]["predicted_seconds"] == text
    assert plain["heads"]["log"]["gradient"]["reuse"] == [text, 1.0]
    assert plain["heads"]["log"]["error"]["reuse"] == text
    assert plain["heads"]["log"]["exact_gradient"]["norm"] == text
    assert plain["jacobian"]["heads"]["log"]["bound"] == text
    again = Result.from_json(written)
    assert again.to_json() == written
    assert repr(again.heads["log"].value) == repr(number)


def test_json_has_the_keys_it_promises() -> None:
    plain = json.loads(every_field().to_json())
    assert plain["schema"] == 1 and "schema_version" not in plain
    assert plain["experiment"] == every_field().experiment.to_json()
    assert plain["heads"]["log"]["exact_gradient"] == {
        "norm": 0.5,
        "shape": [2, 40],
        "first": [0.5, 2.0],
    }


def test_reads_what_was_written_before_there_was_a_plan_or_a_scaling() -> None:
    plain = json.loads(every_field(scaling={}).to_json())
    del plain["scaling"], plain["jacobian"]["source"]
    del plain["experiment"]["scaling"], plain["experiment"]["cutoff"]
    for path in plain["paths"].values():
        del path["taken"], path["plan"]
    old = Result.from_json(json.dumps(plain))
    assert (old.scaling, old.experiment.scaling, old.paths["reuse"].plan) == ({}, (), "")


def test_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        every_field().status = "running"


def changed(**changes: Any) -> str:
    return json.dumps(json.loads(every_field().to_json()) | changes)


def without_schema(**changes: Any) -> str:
    plain = json.loads(every_field().to_json())
    del plain["schema"]
    return json.dumps(plain | changes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "not json",
        b"\xff\xfe",
        "[" * 100_000,
        changed(schema=2),
        changed(schema=None),
        changed(schema=True),
        without_schema(),
        without_schema(schema_version=1),
        changed(paths={}),
        changed(heads={}),
        changed(status="finished"),
        changed(unknown=1),
        changed(experiment=[]),
        changed(experiment=None),
        changed(experiment={"size": -1}),
        changed(experiment={"size": 10**400}),
        changed(paths={"reuse": {}}),
        changed(paths={"reuse": 3}),
        changed(function="f"),
        every_field(0.25).to_json().replace("0.25", "NaN"),
        every_field(0.25).to_json().replace("0.25", "-Infinity"),
        changed(jacobian={"spectral_norm": "many", "heads": {}, "method": ""}),
    ],
    ids=lambda text: repr(text)[-30:],
)
def test_other_text_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        Result.from_json(text)


COUNTS = (
    "paths/reuse/forward_passes",
    "paths/reuse/backward_passes",
    "paths/reuse/forward_mode_passes",
    "paths/reuse/saved_bytes",
    "paths/reuse/peak_memory_bytes",
    "function/outputs",
    "environment/threads",
    "heads/log/exact_gradient/shape/0",
)
NUMBERS = (
    "heads/log/value",
    "heads/log/error/reuse",
    "heads/log/gradient/reuse/0",
    "heads/log/exact_gradient/norm",
    "function/exact_value",
    "paths/reuse/seconds/runs/0",
    "jacobian/spectral_norm",
)


@pytest.mark.parametrize(
    "place, value",
    [(place, value) for place in COUNTS for value in (-1, True, 1.5, "1")]
    + [(place, value) for place in NUMBERS for value in (True, "0.5", "inf")],
)
def test_number_of_another_kind_is_refused(place: str, value: Any) -> None:
    plain = inner = json.loads(every_field().to_json())
    *way, last = (int(key) if key.isdigit() else key for key in place.split("/"))
    for key in way:
        inner = inner[key]
    inner[last], before = value, inner[last]
    with pytest.raises(ValueError):
        Result.from_json(json.dumps(plain))
    inner[last] = before
    assert Result.from_json(json.dumps(plain)) == every_field()


@given(st.integers(0, len(every_field().to_json()) - 2))
@settings(deadline=None)
def test_truncated_text_is_refused(length: int) -> None:
    with pytest.raises(ValueError):
        Result.from_json(every_field().to_json()[:length])
