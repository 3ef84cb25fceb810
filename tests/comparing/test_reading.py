"""What is no Result is told in a sentence that names the file."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from explorer.comparing import reading
from explorer.comparing.comparison import MOST
from explorer.comparing.reading import Collection, Unreadable, read, read_file, short_names
from explorer.result import SCHEMA, Result
from tests.comparing.results import measured
from tests.flow.flows import linear
from tests.results import every_field, good

TEXT = good().to_json()


def told(data: bytes | str, name: str = "b.json") -> str:
    with pytest.raises(Unreadable) as error:
        read(name, data.encode() if isinstance(data, str) else data)
    return str(error.value)


def changed(**changes: Any) -> str:
    return json.dumps(json.loads(TEXT) | changes)


def test_what_run_wrote_is_read() -> None:
    assert read("a.json", good().to_json().encode()) == good()
    assert read("a.json", every_field().to_json().encode()) == every_field()
    assert read("a.json", b"\xef\xbb\xbf" + TEXT.encode() + b"\n") == good()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\x89PNG\r\n\x1a\n\x00", "is no text"),
        (TEXT.encode("utf-16"), "is no text"),
        ("<!DOCTYPE html><html></html>", "Take the file of --json, not of --html"),
        (TEXT[: len(TEXT) // 2], "breaks off in the middle"),
        (TEXT.strip()[:-1], "breaks off in the middle"),
        ("{'schema': 1}", "is not JSON: "),
        ("[" * 100_000, "is not JSON: "),
        (TEXT + TEXT, "holds more than one JSON text"),
        ('{"a": 1}\n{"a": 2}\n', "as the file of a sweep does"),
        ("[1, 2]", "is JSON, but no Result of explorer"),
        ('{"name": "other program"}', "is JSON, but no Result of explorer"),
        (changed(schema="1"), "is JSON, but no Result of explorer"),
        (changed(schema=True), "is JSON, but no Result of explorer"),
        (linear().to_json(), "is of a gradient flow"),
        (changed(schema=SCHEMA + 1), f"written by a newer explorer, in schema {SCHEMA + 1}"),
        (changed(schema=SCHEMA - 1), f"written by an older explorer, in schema {SCHEMA - 1}"),
        (changed(paths={}), "is no Result as explorer writes it: paths: "),
        (changed(frob=1, heads={}), r"(and 1 more)."),
        (changed(experiment={"function": "mine"}), "is of the function mine, which explorer does"),
        (changed(experiment={"size": 0}), "explorer writes it: experiment: Size n is 0. Allowed: "),
        (TEXT.replace('"median"', '"middle"'), "is no Result as explorer writes it: paths."),
    ],
)
def test_what_is_wrong_is_told_with_the_name_of_the_file(data: bytes | str, words: str) -> None:
    said = told(data)
    assert said.startswith("b.json ") and words in said and said.endswith(".")
    assert "\n" not in said and len(said) < 400


def test_a_huge_file_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reading, "LARGEST", 100_000)
    file = tmp_path / "b.json"
    with file.open("wb") as sparse:
        sparse.truncate(10**12)  # a terabyte that takes no room
    data = read_file(str(file))
    assert len(data) == 100_001
    assert told(data) == "b.json is larger than 100 kB, up to which a file is read."


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero on this system")
def test_a_file_without_an_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST", 100_000)
    assert "is larger than 100 kB" in told(read_file("/dev/zero"))


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path, f"{tmp_path} is a folder. Give the files in it."),
        (tmp_path / "none.json", f"There is no file {tmp_path / 'none.json'}."),
        (Path("a\0b"), "cannot be read: "),
        (tmp_path / ("long" * 100), "cannot be read: "),
    ):
        with pytest.raises(Unreadable) as error:
            read_file(str(path))
        assert words in str(error.value)


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    file.write_text(TEXT)
    file.chmod(0)
    if os.geteuid() == 0:  # may read all
        assert read_file(str(file)) == TEXT.encode()
        return
    with pytest.raises(Unreadable, match=r"b\.json cannot be read: Permission denied\."):
        read_file(str(file))


def test_the_same_result_counts_once_whatever_the_file_is_called() -> None:
    shelf = Collection()
    shelf.add("a", good())
    with pytest.raises(Unreadable, match="copy is the same Result as a, and counts once"):
        shelf.add("copy", Result.from_json(TEXT))
    assert list(shelf.results) == ["a"]


def test_names_are_made_distinct() -> None:
    shelf = Collection()
    for factor in (1.0, 2.0, 3.0):
        shelf.add("result", measured(factor))
    assert list(shelf.results) == ["result", "result (2)", "result (3)"]
    shelf.remove("result (2)")
    shelf.add("result", measured(4.0))
    assert list(shelf.results) == ["result", "result (3)", "result (2)"]


def test_no_more_are_taken_than_can_be_compared() -> None:
    shelf = Collection()
    for number in range(MOST):
        shelf.add("a", measured(1.0 + number))
    with pytest.raises(Unreadable, match=f"b is left out: at most {MOST} Results are compared"):
        shelf.add("b", measured(0.5))


def test_files_are_called_by_their_names_and_where_these_are_alike_by_their_folders() -> None:
    paths = ["out/gpu.json", "a/result.json", "/tmp/b/result.json", "plain", "result.json"]
    assert short_names(paths) == ["gpu", "a/result", "b/result", "plain", "result"]
