"""Which line of an error's way is a person's own."""

from pathlib import Path

import pytest
import torch

import explorer
from explorer import place
from explorer.events import Place

PACKAGE = Path(explorer.__file__).parent


def error_of(file: str) -> Exception:
    """What `g` raises, of a file by this name."""
    code = compile("def g(f):\n    return f()\n", file, "exec")
    space: dict[str, object] = {}
    exec(code, space)
    with pytest.raises(ValueError) as caught:
        space["g"](lambda: int("no number"))  # type: ignore[operator]
    # Without the frame of the test above it, and that of the lambda below.
    caught.value.__traceback__ = caught.value.__traceback__.tb_next  # type: ignore[union-attr]
    caught.value.__traceback__.tb_next = None  # type: ignore[union-attr]
    return caught.value


@pytest.mark.parametrize("file", [f"{PACKAGE}_of_mine.py", "/tmp/f.py", "<ipython-input-1>"])
def test_a_person_s_own_line(file: str) -> None:
    assert place.of(error_of(file)) == Place(file, 2, "g")


@pytest.mark.parametrize("file", [str(PACKAGE / "heads.py"), torch.__file__, "<frozen abc>"])
def test_a_line_of_no_person(file: str) -> None:
    assert place.of(error_of(file)) is None
