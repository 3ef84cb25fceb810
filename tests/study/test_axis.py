"""An axis as it is written: its values, typed, and a sentence for everything that is none."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from explorer.experiment import table
from explorer.fields import Field, FieldError
from explorer.study.axis import MOST_POINTS, Axis, axis, axis_of, entry, text

FIELDS = table()
ANY = {
    "count": Field("count", "integer", "Count"),
    "factor": Field("factor", "number", "Factor"),
    "word": Field("word", "choice", "Word", choices=("a", "b")),
    "layers": Field("layers", "integer", "Layers", optional=True, minimum=1, maximum=50),
}
"""Fields as a function of one's own may have them: of any number."""


def values(written: str) -> tuple[object, ...]:
    return axis(written, FIELDS).values


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("size=50,100,200", (50, 100, 200)),
        (" size = 200 , 50 ", (200, 50)),
        ("size=50:800:log5", (50, 100, 200, 400, 800)),
        ("size=10:30:lin3", (10, 20, 30)),
        ("size=2:4:log9", (2, 3, 4)),
        ("x=0:1:lin5", (0.0, 0.25, 0.5, 0.75, 1.0)),
        ("x=-1:1:lin3", (-1.0, 0.0, 1.0)),
        ("x=0.001:1:log4", (0.001, 0.01, 0.1, 1.0)),
        ("x=1,2.5,1e-3", (1.0, 2.5, 0.001)),
        ("heads=1,4,16", (1, 4, 16)),
        ("heads=1:1000:log4", (1, 10, 100, 1000)),
        ("dtype=float32, float64", ("float32", "float64")),
        ("paths=reuse,recompute", ("reuse", "recompute")),
        ("compile=off,on", (False, True)),
        ("device=cpu,cuda:1", ("cpu", "cuda:1")),
        ("function=ode,matrix_exp_trace", ("ode", "matrix_exp_trace")),
        ("budget=1,2.5", (1.0, 2.5)),
        ("size=20", (20,)),
    ],
)
def test_the_values_of_an_axis_are_typed_and_in_their_order(
    written: str, expected: tuple[object, ...]
) -> None:
    found = axis(written, FIELDS)
    assert found.name == written.partition("=")[0].strip()
    assert found.values == expected
    assert [type(each) for each in found.values] == [type(each) for each in expected]


def test_values_of_python_are_read_as_their_text_is() -> None:
    assert axis_of("size", [50, 100.0, "200"], FIELDS) == axis("size=50,100,200", FIELDS)
    assert axis_of("heads", (1, 4), FIELDS) == axis("heads=1,4", FIELDS)
    assert axis_of("compile", [False, "on"], FIELDS) == axis("compile=off,on", FIELDS)
    assert axis_of("paths", ["reuse", "auto"], FIELDS) == axis("paths=reuse,auto", FIELDS)


def test_labels_are_those_of_the_fields_and_numbers_have_an_order() -> None:
    size, heads = axis("size=2,3", FIELDS), axis("heads=1,2", FIELDS)
    assert (size.label, heads.label) == (FIELDS["size"].label, "Number of heads K")
    assert size.numeric and heads.numeric and axis("x=0,1", FIELDS).numeric
    for written in ("dtype=float32", "compile=off,on", "paths=reuse", "function=ode"):
        assert not axis(written, FIELDS).numeric


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("size", "size is no axis. Allowed: NAME=A,B,C, NAME=LOW:HIGH:logN or NAME=LOW:HIGH:linN, "
                 "for example size=50:800:log5."),
        ("", "'' is no axis. Allowed: NAME=A,B,C,"),
        ("sise=1,2", "sise is not a field. Did you mean size? Allowed: function, size,"),
        ("scaling=heads", "scaling is no axis: it measures many numbers of heads in each run: "
                          "sweep heads instead."),
        ("size=", "Size n is empty. Allowed: a whole number from 2 to 2000."),
        ("size=2,,4", "Size n is empty. Allowed: a whole number from 2 to 2000."),
        ("size=2,x", "Size n is x. Allowed: a whole number from 2 to 2000."),
        ("size=1,2", "Size n is 1. Allowed: a whole number from 2 to 2000."),
        ("size=2,3,2", "size has the value 2 more than once."),
        ("x=1,1.0", "x has the value 1 more than once."),
        ("compile=on,on", "compile has the value on more than once."),
        ("size=50:800", "size=50:800 is no range. Allowed: LOW:HIGH:logN or LOW:HIGH:linN, for "
                        "example 50:800:log5."),
        ("size=50:800:6", "size=50:800:6 is no range."),
        ("size=50:800:exp6", "size=50:800:exp6 is no range."),
        ("size=50:800:log-3", "size=50:800:log-3 is no range."),
        ("size=50:800:log5,900", "is no range."),
        ("size=50:9000:log5", "Size n is 9000. Allowed: a whole number from 2 to 2000."),
        ("size=50:2.5:log5", "Size n is 2.5. Allowed: a whole number from 2 to 2000."),
        ("size=800:50:log5", "size goes from 800 to 50. The first has to be smaller."),
        ("size=50:50:lin2", "size goes from 50 to 50. The first has to be smaller."),
        ("size=50:800:log1", "log1 has 1 values. Allowed: 2 to 10000."),
        ("size=2:2000:lin999999999", "lin999999999 has 999999999 values. Allowed: 2 to 10000."),
        ("x=0:1:log3", "x goes from 0.0 in even ratios. Start above 0, or use lin."),
        ("dtype=float16", "Data type float16 is not known."),
        ("dtype=float32:float64:lin2", "is not known."),
        ("paths=reused", "Path reused is not known. Did you mean reuse?"),
        ("paths=", "No path is chosen."),
        ("compile=maybe", "torch.compile is maybe. Allowed: on or off."),
        ("device=gpu:x", "Device is gpu:x. Allowed: cpu, cuda"),
        ("heads=0", "Number of heads K is 0. Allowed: a whole number from 1 to 1000."),
        ("heads=square,sin", "Number of heads K is square. Allowed: a whole number"),
        ("budget=", "Time budget is empty. Allowed: a number above 0 and up to 86400 seconds."),
        ("seed=" + ",".join(map(str, range(MOST_POINTS + 1))),
         "seed has 10001 values. Allowed: at most 10000."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_axis_is_a_sentence(written: str, sentence: str) -> None:
    with pytest.raises(FieldError) as wrong:
        axis(written, FIELDS)
    told = str(wrong.value)
    assert sentence in told
    assert len(told) < 400 and told.endswith(".") and "\n" not in told


def test_no_values_are_refused_and_no_nothing_is_a_place_on_an_axis() -> None:
    with pytest.raises(FieldError, match=r"size has no values\. Give some, such as size=1,2\."):
        axis_of("size", [], FIELDS)
    with pytest.raises(FieldError, match=r"Layers is empty\. Allowed: a whole number from 1 to 50"):
        axis_of("layers", [2, None], ANY)
    with pytest.raises(FieldError, match="Size n is True"):
        axis_of("size", [True], FIELDS)


WHOLE = st.integers(-(10**18), 10**18)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)


@given(
    ends=st.tuples(WHOLE, WHOLE) | st.tuples(NUMBER, NUMBER),
    kind=st.sampled_from(["log", "lin"]),
    count=st.integers(2, 40),
)
@example(ends=(1.0000001, 1.0000002), kind="lin", count=5)
@example(ends=(1.0, 1.0000000000000002), kind="log", count=5)
@example(ends=(-1.7e308, 1.7e308), kind="lin", count=4)
@example(ends=(5e-324, 1.7e308), kind="log", count=4)
@example(ends=(2**53 + 1, 2**53 + 3), kind="lin", count=3)
@example(ends=(1, 3), kind="lin", count=40)
def test_a_range_has_both_ends_and_rises_between_them(
    ends: tuple[float, float], kind: str, count: int
) -> None:
    low, high = sorted(ends)
    name = "count" if isinstance(low, int) else "factor"
    written = f"{name}={low!r}:{high!r}:{kind}{count}"
    if low == high or (kind == "log" and low <= 0):
        with pytest.raises(FieldError):
            axis(written, ANY)
        return
    found = axis(written, ANY)
    assert (found.values[0], found.values[-1]) == (low, high)
    assert 2 <= len(found.values) <= count
    assert all(one < other for one, other in pairwise(found.values))
    assert {type(each) for each in found.values} == {type(low)}
    assert axis(str(found), ANY) == found


@given(st.floats(1e-3, 1e3), st.floats(2, 1e3), st.integers(3, 12))
def test_between_the_ends_are_even_ratios_or_even_steps(
    low: float, ratio: float, count: int
) -> None:
    high = low * ratio
    spaced = axis(f"factor={low!r}:{high!r}:log{count}", ANY).values
    for one, other in pairwise(map(float, spaced)):
        assert other / one == pytest.approx(ratio ** (1 / (count - 1)), rel=1e-4)
    for one, other in pairwise(map(float, axis(f"factor={low!r}:{high!r}:lin{count}", ANY).values)):
        assert other - one == pytest.approx((high - low) / (count - 1), rel=1e-2)


LISTS = st.one_of(
    st.tuples(st.just("count"), st.lists(st.integers(-(10**18), 10**18), min_size=1, unique=True)),
    st.tuples(
        st.just("factor"),
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, unique=True),
    ),
    st.tuples(st.just("word"), st.permutations(["a", "b"])),
)


@given(LISTS)
def test_an_axis_is_written_so_that_it_is_read_back(named: tuple[str, list[object]]) -> None:
    name, given_ = named
    found = axis_of(name, given_, ANY)
    assert found.values == tuple(given_)
    assert axis(str(found), ANY) == found


def test_values_are_written_as_a_person_writes_them() -> None:
    assert [text(each) for each in (True, False, 0.5, 1e-6, 100.0, 3, "a", 0.1 + 0.2)] == [
        "on", "off", "0.5", "1e-06", "100", "3", "a", "0.30000000000000004",
    ]  # fmt: skip
    assert str(Axis("compile", "torch.compile", (True, False))) == "compile=on,off"


def test_what_an_experiment_has_at_a_value() -> None:
    assert entry("heads", 16) == ("powers(16)",)
    assert entry("paths", "reuse") == ("reuse",)
    assert entry("size", 50) == 50
