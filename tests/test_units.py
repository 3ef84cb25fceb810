import math

import pytest

from explorer import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.789, "1.79 s"),
        (0.01317, "13.2 ms"),
        (45e-6, "45 µs"),
        (2.5e-9, "2.5 ns"),
        (0.9996, "1 s"),
        (1234.0, "1230 s"),
        (0.0, "0 s"),
        (math.nan, "not known"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1_280_000, "1.28 MB"), (16_000_008, "16 MB"),
     (739_749_888, "740 MB"), (2_000_000_000, "2 GB"), (None, "not measured")],
)  # fmt: skip
def test_sizes(count: int | None, text: str) -> None:
    assert units.size(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "not measured"), (4096, "< 20 MB"), (19_999_999, "< 20 MB"), (20_000_000, "20 MB")],
)
def test_a_small_peak_is_only_an_upper_limit(count: int | None, text: str) -> None:
    assert units.peak(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (2.04e-12, "2e-12"),
        (9.7e-6, "1e-5"),
        (1.0549e-5, "1e-5"),
        (5e-4, "0.05%"),
        (0.00288, "0.3%"),
        (0.00925, "0.9%"),
        (0.014484, "1.4%"),
        (0.1234, "12%"),
        (3.0, "300%"),
        (2e4, "2e6%"),
        (math.inf, "∞"),
        (math.nan, "NaN"),
    ],
)
def test_relative_differences(value: float, text: str) -> None:
    assert units.relative(value) == text


def test_counts_in_words() -> None:
    assert [units.times(count) for count in (0, 1, 2, 3)] == ["0 times", "once", "twice", "3 times"]
    assert [units.everyone(count) for count in (1, 2, 3, 12)] == [
        "it",
        "both",
        "all three",
        "all 12",
    ]


@pytest.mark.parametrize(
    ("names", "text"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_lists(names: list[str], text: str) -> None:
    assert units.listed(names) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.04, "1.04"), (9.6, "9.6"), (9.97, "10"), (12.3, "12")]
)
def test_ratios(value: float, text: str) -> None:
    assert units.ratio(value) == text
