"""A link's query string: its values, and what it asks of the page for a class."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer import link
from explorer.experiment import check, table
from explorer.fields import Field
from explorer.link import Lesson, read, read_lesson

FIELDS = table()
VALUES = check({"budget": "10"})[0]


def lesson(query: str, values: dict[str, Any] = VALUES) -> tuple[Lesson, list[str]]:
    return read_lesson(read(query)[0], FIELDS, values)


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", {}),
        ("?", {}),
        ("?size=50", {"size": "50"}),
        ("size=50&size=60", {"size": "60"}),
        ("size=&heads=", {"size": "", "heads": ""}),
        ("size=5&token=abc&template=explorer&theme=dark", {"size": "5"}),
        ("heads=square%2Csqrt", {"heads": "square,sqrt"}),
        ("x=%00%FF&&=&%", {"x": "\x00\ufffd", "": "", "%": ""}),
    ],
)
def test_values_of_a_link(query: str, values: dict[str, str]) -> None:
    assert read(query)[0] == values


@given(st.text())
def test_any_address_is_read_and_checked(query: str) -> None:
    values, told = read(query)
    _, found = check(values)
    _, wrong = lesson(query)
    assert all(sentence.isprintable() for sentence in [*found.values(), *told, *wrong])


def test_a_name_given_twice_is_told_once() -> None:
    assert read("size=5&size=6&size=7&seed=1&token=a&token=b") == (
        {"size": "7", "seed": "1"},
        ["size is given 3 times; the last one counts."],
    )


def test_an_address_of_very_many_values_is_read_in_part() -> None:
    values, told = read("size=50&" + "&".join(f"a{number}=1" for number in range(10**5)))
    assert len(values) == 100 and values["size"] == "50"
    assert told == ["It has more than 100 values; the first 100 are read."]
    _, found = check(values)
    assert len(found) == 99


@pytest.mark.parametrize(
    ("name", "text", "entry", "words"),
    [
        ("size", "99999", "2000", "Size n is 99999 in the link; 2000 was taken."),
        ("size", "1e9", "2000", "Size n is 1e9 in the link; 2000 was taken."),
        ("size", "-7", "2", "Size n is -7 in the link; 2 was taken."),
        ("repeats", "9" * 5000, "1000", f"Repeats is {'9' * 60}… in the link; 1000 was taken."),
        ("budget", "inf", "86400.0", "Time budget is inf in the link; 86400.0 was taken."),
        ("budget", "-1", "-1", ""),  # no number is the nearest one above 0
        ("size", "nan", "nan", ""),
        ("size", "2.5", "2.5", ""),
        ("size", "1_0000", "1_0000", ""),
        ("size", "٩٩٩٩٩", "٩٩٩٩٩", ""),
        ("dtype", "complex64", "complex64", ""),
        ("paths", "", (), ""),
        ("heads", "square,f(1,2)", ("square", "f(1,2)"), ""),
    ],
)
def test_what_is_taken_for_the_text_of_a_link(
    name: str, text: str, entry: Any, words: str
) -> None:
    found, said = link.taken(FIELDS[name], text)
    assert found == entry
    assert said.partition(" Allowed: ")[0] == words


def test_of_a_list_without_end_the_first_entries_are_taken() -> None:
    typed = [f"y**{power}" for power in range(2, 1002)]
    entries, words = link.taken(FIELDS["heads"], ",".join(typed))
    assert entries == tuple(typed[:100])
    assert words == "The link names 1000 heads; 100 were taken."


@given(st.sampled_from(["size", "repeats", "seed", "cutoff", "budget", "x"]), st.floats())
def test_a_number_in_range_is_left_and_another_gets_an_end_of_the_range(
    name: str, number: float
) -> None:
    field = FIELDS[name]
    nearest = field.nearest(repr(number))
    if nearest is None:
        inside = field.minimum <= number <= field.maximum
        assert inside or number != number or field.exclusive_minimum
    else:
        assert field.parse(field.text(nearest)) == nearest
        assert nearest == (field.maximum if number > field.maximum else field.minimum)


def test_what_a_link_asks_of_the_page() -> None:
    found, told = lesson(
        "hide=seed,budget,panels&lock=size:300,seed,heads,paths:reuse+jvp&view=projector"
    )
    assert told == []
    assert found.hidden == ("seed", "budget", "panels")
    assert found.limits == {"size": 300, "seed": 0, "heads": 2, "paths": ("reuse", "jvp")}
    assert found.projector


def test_nothing_asked_is_nothing() -> None:
    assert lesson("size=5&hide=&lock=&view=") == (Lesson(), [])


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("hide=sede", "hide sede is not known. Did you mean seed?"),
        ("hide=<script>alert(1)</script>", "is not known. Allowed: one of function, size"),
        ("lock=link", "lock link is not known."),
        ("lock=size:abc", "Size n is abc. Allowed: a whole number from 2 to 2000."),
        ("lock=size:99999", "Size n is 99999. Allowed:"),
        ("lock=heads:0", "lock: the number of heads is 0. Allowed: a whole number from 1 to 1000."),
        ("lock=size:", "Size n is empty."),
        ("lock=paths:", "No path is chosen."),
        ("view=huge", "View huge is not known. Allowed: one of page, projector."),
        ("view=page,projector&hide=%00", "hide '\\x00' is not known."),
    ],
)
def test_what_is_wrong_is_told_and_left_out(query: str, words: str) -> None:
    found, told = lesson(query)
    assert any(words in each for each in told)
    assert found == Lesson()


def test_what_is_wrong_leaves_the_rest() -> None:
    found, told = lesson("hide=seed,nix&lock=nix:3,size:50")
    assert (found.hidden, found.limits, len(told)) == (("seed",), {"size": 50}, 2)


def test_a_field_without_a_right_value_cannot_be_locked_at_it() -> None:
    values = {name: value for name, value in VALUES.items() if name != "size"}
    assert lesson("lock=size:20", values) == (Lesson(limits={"size": 20}), [])
    assert lesson("lock=size", values) == (
        Lesson(),
        ["lock: Size n has no right value to lock it at."],
    )


def test_of_names_without_end_the_first_are_read() -> None:
    many = ",".join(f"name{number}" for number in range(10**5))
    found, told = lesson(f"hide=seed,{many}&lock={many}")
    assert found == Lesson(("seed",))
    assert len(told) == 1 + 99 + 1 + 100


def test_everything_can_be_hidden_and_locked() -> None:
    names = ",".join(FIELDS)
    found, told = lesson(f"hide={names},panels,link&lock={names}")
    assert told == []
    assert set(found.hidden) == {*FIELDS, "panels", "link"} and set(found.limits) == set(FIELDS)


@given(st.data())
def test_a_lesson_survives_its_link(data: st.DataObject) -> None:
    hidden = data.draw(st.lists(st.sampled_from([*FIELDS, *link.PARTS]), unique=True))
    locked = data.draw(st.lists(st.sampled_from(list(FIELDS)), unique=True))
    limits = {name: link.amount(FIELDS[name], VALUES[name]) for name in locked}
    asked = Lesson(tuple(hidden), limits, data.draw(st.booleans()))
    query = link.write(link.lesson_texts(asked, FIELDS))
    assert lesson(query) == (asked, [])


def test_a_limit_stays_when_the_value_has_become_less() -> None:
    asked, _ = lesson("lock=size:300,heads:4,paths:reuse+jvp,scaling:,budget:")
    fewer = check({"size": "20", "heads": "exp", "paths": "jvp", "budget": "5"})[0]
    assert lesson(link.write(link.lesson_texts(asked, FIELDS)), fewer) == (asked, [])


@pytest.mark.parametrize(
    ("name", "limit", "words", "allowed", "refused"),
    [
        ("size", 300, "at most 300", (2, 300), (301,)),
        ("budget", 2.5, "at most 2.5 seconds", (0.1, 2.5), (2.6, None)),
        ("budget", None, "any", (0.1, None), ()),
        ("seed", 7, "only 7", (7,), (6, 8)),
        ("dtype", "float32", "only float32", ("float32",), ("float64",)),
        ("compile", False, "only off", (False,), (True,)),
        ("heads", 3, "at most 3 heads", (("exp",), ("powers(2)", "exp")), (("powers(3)", "exp"),)),
        ("heads", 1, "at most 1 head", (("exp",),), (("exp", "sin"),)),
        ("paths", ("reuse", "jvp"), "only reuse, jvp", (("jvp",),), (("jvp", "auto"),)),
        ("scaling", (), "nothing", ((),), (("heads",),)),
    ],
)
def test_what_a_limit_allows(
    name: str, limit: Any, words: str, allowed: tuple[Any, ...], refused: tuple[Any, ...]
) -> None:
    field: Field = FIELDS[name]
    assert link.allowed(field, limit) == words
    assert not any(link.exceeds(field, limit, value) for value in allowed)
    assert all(link.exceeds(field, limit, value) for value in refused)
