"""The README's Python, run as it stands."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import nbformat
import torch
from nbclient import NotebookClient

import explorer

README = Path(__file__).parent.parent / "README.md"
SWEPT, CALLED, JACOBIANS, LAB, MODULE = re.findall(
    r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
)


def test_the_example_runs_and_gives_what_it_says(capsys):
    names: dict = {}
    exec(compile(CALLED, str(README), "exec"), names)
    assert "Passes(forward=1, backward=1, forward_mode=0)" in capsys.readouterr().out
    assert [gradient.shape for gradient in names["dz"]] == [(300,)] * 3
    again = explorer.gradients(names["slow"], names["heads"], names["x"], path="recompute")
    for gradient, naive in zip(names["dz"], again.gradients, strict=True):
        torch.testing.assert_close(gradient, naive, rtol=1e-10, atol=1e-14)


def test_the_sweep_has_a_result_at_every_point(capsys):
    names: dict = {}
    exec(compile(SWEPT, str(README), "exec"), names)
    assert capsys.readouterr().out == "{'size': 4, 'heads': 1} 1\n"
    assert len(names["study"].points) == 4 and names["result"].experiment.size == 4


def test_the_jacobians_are_what_they_say():
    names: dict = {}
    exec(compile(JACOBIANS, str(README), "exec"), names)
    dense = torch.autograd.functional.jacobian(names["blur"], names["x"])
    exact = torch.linalg.svdvals(dense)
    assert abs(names["norm"].value - exact[0].item()) <= 1e-6 * exact[0].item()
    torch.testing.assert_close(
        torch.tensor(names["leading"], dtype=torch.float64), exact[:3], rtol=1e-5, atol=0
    )
    assert abs(names["apart"] / (0.01 * exact[0].item()) - 1) < 1e-5
    hessian = torch.autograd.functional.hessian(
        lambda x: names["blur"](x).square().sum(), names["x"]
    )
    assert abs(names["sharpness"] / torch.linalg.eigvalsh(hessian)[-1].item() - 1) < 1e-4
    assert len(names["flow"].steps) == 10


WAIT = """
import gc
import time
from explorer.app.laboratory import Laboratory

(lab,) = [each for each in gc.get_objects() if type(each) is Laboratory]
while lab.runner.status in ("idle", "running"):
    time.sleep(0.02)
print(lab.runner.status, *lab.runner.result.heads, lab.runner.result.experiment.values["steps"])
"""


def test_the_page_on_one_s_own_function_opens_in_a_notebook_and_runs():
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(code) for code in (LAB, WAIT)]
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    opened, waited = notebook.cells
    shown = [kind for output in opened.outputs for kind in output.get("data", {})]
    assert "application/vnd.jupyter.widget-view+json" in shown
    assert waited.outputs[0].text == "done g1 y[0]**2 100\n"


def test_the_command_on_one_s_own_module_runs(tmp_path):
    (tmp_path / "mine.py").write_text(textwrap.dedent(MODULE))
    (command,) = re.findall(r"`explorer (run --function mine:.*?)`", README.read_text())
    arguments = command.replace("'", "").split()
    done = subprocess.run(
        [sys.executable, "-m", "explorer", *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "roughness: " in done.stdout and "y[0], that is y₀: " in done.stdout
