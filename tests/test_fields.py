"""A field reads what a person may write, and refuses the rest, saying what is allowed."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.fields import Field, FieldError, shown, suggestion

WHOLE = Field("n", "integer", "Size n", default=5, minimum=2, maximum=2000)
NUMBER = Field("x", "number", "x", default=1.0, minimum=-10.0, maximum=10.0)
BUDGET = Field(
    "b", "number", "Budget", None, minimum=0, maximum=86_400, exclusive_minimum=True,
    unit="seconds", optional=True, empty="no limit",
)  # fmt: skip
ONE = Field("g", "choice", "Head", "sqrt", choices=("square", "sqrt"))
MANY = Field("gs", "choices", "Head", ("sqrt",), choices=("square", "sqrt", "log"))

GOOD: list[tuple[Field, Any, Any]] = [
    (WHOLE, 7, 7),
    (WHOLE, 7.0, 7),
    (WHOLE, "7", 7),
    (WHOLE, " 007 ", 7),
    (WHOLE, "2", 2),
    (WHOLE, "2000", 2000),
    (NUMBER, "-10", -10.0),
    (NUMBER, " 1e-3 ", 0.001),
    (NUMBER, 10, 10.0),
    (NUMBER, ".5", 0.5),
    (BUDGET, "0.1", 0.1),
    (BUDGET, 86_400, 86_400.0),
    (BUDGET, "", None),
    (BUDGET, "  ", None),
    (BUDGET, None, None),
    (ONE, "square", "square"),
    (MANY, "square,log", ("square", "log")),
    (MANY, " square , log ", ("square", "log")),
    (MANY, ["log"], ("log",)),
    (MANY, ("sqrt", "square"), ("sqrt", "square")),
]


@pytest.mark.parametrize("field, value, expected", GOOD)
def test_allowed_value_is_read(field: Field, value: Any, expected: Any) -> None:
    found = field.parse(value)
    assert found == expected and type(found) is type(expected)


def test_numbers_of_numpy_are_read() -> None:
    numpy = pytest.importorskip("numpy")
    assert WHOLE.parse(numpy.int64(7)) == 7
    assert type(WHOLE.parse(numpy.int64(7))) is int
    assert NUMBER.parse(numpy.float32(0.5)) == 0.5
    with pytest.raises(FieldError):
        WHOLE.parse(numpy.zeros(0))


NOT_WHOLE = [
    0, 1, -3, 2001, 2.5, True, None, "", " ", "0", "-3", "2001", "2.5", "2.0", "1e2", "0x10",
    "1_000", "٣", "²", "five", "nan", "inf", "--5", "-", "5\x00", "5 5", "5" * 20, "9" * 10**6,
    math.nan, math.inf, 1e300, 10**400, 10**5000, [], [5], (), {}, object(),
]  # fmt: skip
NOT_NUMBER = [
    10.1, -10.1, "10.1", "1e400", "-1e400", "nan", "NaN", "inf", "-Infinity", "1_0", "٣", "½",
    "", "one", "1,5", "0x1p3", "1\x000", "1" * 10**6, True, None, math.nan, -math.inf, 10**400,
    10**5000, [], [1.0], 1j,
]  # fmt: skip


@pytest.mark.parametrize("value", NOT_WHOLE, ids=lambda value: shown(value)[:20])
def test_not_a_whole_number_in_range(value: Any) -> None:
    with pytest.raises(FieldError) as caught:
        WHOLE.parse(value)
    message = str(caught.value)
    assert message.startswith("Size n is ")
    assert message.endswith(" Allowed: a whole number from 2 to 2000.")
    assert len(message) < 150 and message.isprintable()


@pytest.mark.parametrize("value", NOT_NUMBER, ids=lambda value: shown(value)[:20])
def test_not_a_number_in_range(value: Any) -> None:
    with pytest.raises(FieldError) as caught:
        NUMBER.parse(value)
    message = str(caught.value)
    assert message.endswith(" Allowed: a number from -10 to 10.")
    assert len(message) < 150 and message.isprintable()


@pytest.mark.parametrize("value", [0, "0", -1, "-0.0", 86_401, "nan", "soon"])
def test_not_a_budget(value: Any) -> None:
    with pytest.raises(
        FieldError,
        match=r"Allowed: a number above 0 and up to 86400 seconds, or nothing \(no limit\)\.$",
    ):
        BUDGET.parse(value)


def test_minimum_that_is_excluded() -> None:
    open_end = Field("g", "number", "Gain", minimum=0.0, exclusive_minimum=True)
    assert open_end.allowed == "a number above 0"
    assert Field("g", "number", "Gain").allowed == "a number"


@pytest.mark.parametrize(
    "value, hint",
    [("sqare", "Did you mean square? "), ("SQRT", "Did you mean sqrt? "), ("tan", ""), (3, "")],
)
def test_unknown_choice_names_the_nearest(value: Any, hint: str) -> None:
    with pytest.raises(FieldError) as caught:
        ONE.parse(value)
    assert str(caught.value) == f"Head {value} is not known. {hint}Allowed: one of square, sqrt."


@pytest.mark.parametrize(
    "value, message",
    [
        ("", "No head is chosen. Allowed: one or more of square, sqrt, log."),
        ([], "No head is chosen. Allowed: one or more of square, sqrt, log."),
        (" , ", "No head is chosen. Allowed: one or more of square, sqrt, log."),
        ("square,square", "Head square is chosen more than once."),
        ("square,", "Head '' is not known. Allowed: one or more of square, sqrt, log."),
        (["square", None], "Head None is not known. Allowed: one or more of square, sqrt, log."),
        (3, "Head is 3. Allowed: one or more of square, sqrt, log."),
        (None, "Head is empty. Allowed: one or more of square, sqrt, log."),
    ],
)
def test_wrong_choices(value: Any, message: str) -> None:
    with pytest.raises(FieldError) as caught:
        MANY.parse(value)
    assert str(caught.value) == message


@pytest.mark.parametrize("field", [WHOLE, NUMBER, BUDGET, ONE, MANY])
def test_huge_text_is_refused_in_a_short_sentence(field: Field) -> None:
    for text in ("1" * 10**6, "a" * 10**6, "," * 10**6, "square," * 10**5, "\x1b[2J" * 10**5):
        with pytest.raises(FieldError) as caught:
            field.parse(text)
        assert len(str(caught.value)) < 200


@given(st.text() | st.integers() | st.floats() | st.none() | st.binary() | st.lists(st.text()))
def test_whatever_is_given_is_read_or_refused(value: Any) -> None:
    for field in (WHOLE, NUMBER, BUDGET, ONE, MANY):
        try:
            found = field.parse(value)
        except FieldError as error:
            assert str(error).isprintable()
        else:
            assert field.parse(field.text(found)) == found


@given(st.floats(-10, 10))
def test_number_survives_its_text(number: float) -> None:
    assert NUMBER.parse(NUMBER.text(number)) == number


@given(st.integers(2, 2000))
def test_whole_number_survives_its_text(number: int) -> None:
    assert WHOLE.parse(WHOLE.text(number)) == number


@given(st.lists(st.sampled_from(MANY.choices), min_size=1, unique=True).map(tuple))
def test_choices_survive_their_text(chosen: tuple[str, ...]) -> None:
    assert MANY.parse(MANY.text(chosen)) == chosen


def test_nothing_survives_its_text() -> None:
    assert BUDGET.text(None) == ""
    assert BUDGET.parse(BUDGET.text(None)) is None


@pytest.mark.parametrize(
    "value, text",
    [("abc", "abc"), ("a b", "'a b'"), ("", "''"), ("\n", r"'\n'"), (-1.5, "-1.5"), (None, "None")],
)
def test_value_as_a_message_shows_it(value: Any, text: str) -> None:
    assert shown(value) == text


def test_suggestion_names_only_what_is_near_or_begins_so() -> None:
    assert (
        suggestion("Matrix_Exp", ("matrix_exp_trace", "tanh")) == "Did you mean matrix_exp_trace? "
    )
    assert suggestion("tanh", ("matrix_exp_trace", "tanh_network")) == "Did you mean tanh_network? "
    assert suggestion("t", ("matrix_exp_trace", "tanh_network")) == ""
    assert suggestion("zzz", ("matrix_exp_trace", "tanh")) == ""


def test_choices_may_be_none_where_that_is_allowed() -> None:
    field = Field(
        "scaling", "choices", "Scaling", (), choices=("a", "b"), optional=True, empty="not measured"
    )
    for nothing in ("", " ", (), [], None):
        assert field.parse(nothing) == ()
    assert field.text(()) == ""
    assert field.parse("b,a") == ("b", "a")
    with pytest.raises(FieldError, match=r"one or more of a, b, or nothing \(not measured\)"):
        field.parse("c")
