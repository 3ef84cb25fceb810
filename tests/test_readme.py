"""The README's Python, run as it stands."""

import re
from pathlib import Path

import torch

import explorer

README = Path(__file__).parent.parent / "README.md"


def test_the_example_runs_and_gives_what_it_says(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(compile(code, str(README), "exec"), names)
    assert "Passes(forward=1, backward=1, forward_mode=0)" in capsys.readouterr().out
    assert [gradient.shape for gradient in names["dz"]] == [(300,)] * 3
    again = explorer.gradients(names["slow"], names["heads"], names["x"], path="recompute")
    for gradient, naive in zip(names["dz"], again.gradients, strict=True):
        torch.testing.assert_close(gradient, naive, rtol=1e-10, atol=1e-14)
