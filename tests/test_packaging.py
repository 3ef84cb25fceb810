"""What is handed out: the wheel, the source distribution, the conda environment, the notebook."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAMES = {"torch": "pytorch"}


def hatch_build(target: str, tree: Path, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module", params=["checkout", "sdist"])
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel built from the checkout, and in one built from the sdist."""
    tree = ROOT
    if request.param == "sdist":
        sdist = hatch_build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))
        unpacked = tmp_path_factory.mktemp("unpacked")
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        (tree,) = unpacked.iterdir()
    with zipfile.ZipFile(hatch_build("wheel", tree, tmp_path_factory.mktemp("wheel"))) as archive:
        return set(archive.namelist())


def test_wheel_carries_the_package_and_nothing_else(wheel: set[str]) -> None:
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "explorer").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    assert "explorer/app/jupyter/voila/templates/explorer/index.html.j2" in package
    carried = {name for name in wheel if not name.startswith("explorer-")}
    assert carried == package | {"explorer/app/app.ipynb"}


def test_conda_environment_asks_for_what_pip_asks_for() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    listed = environment["dependencies"]
    conda = [Requirement(entry) for entry in listed if isinstance(entry, str)]
    pip = [Requirement(entry) for entry in PROJECT["dependencies"]]
    expected = {CONDA_NAMES.get(each.name, each.name): each.specifier for each in pip}
    expected |= {"python": Requirement(f"python{PROJECT['requires-python']}").specifier}
    expected |= {"pip": Requirement("pip").specifier}
    assert {each.name: each.specifier for each in conda} == expected
    # Without this line Binder installs everything but the package itself.
    assert listed[-1] == {"pip": ["-e ."]}


def test_notebook_is_committed_without_results() -> None:
    notebook = json.loads((ROOT / "app.ipynb").read_text())
    assert "widgets" not in notebook["metadata"]
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


# Programs that stand in for the real ones: make tells what it was given, a Python has no pip of
# its own but in the environments it makes, and there pip knows of one constraint.
STANDING_IN = {
    "make": 'echo "$PIP_CONSTRAINT"',
    "python3.11": """
case "$*" in
  *chromium.py) ;;
  "-m venv --clear .venv")
    mkdir -p .venv/bin
    echo "echo \\"global.constraint='/etc/theirs.txt'\\"" > .venv/bin/python
    chmod +x .venv/bin/python ;;
  *) echo "No module named pip" >&2; exit 1 ;;
esac""",
}


@pytest.mark.skipif(not (ROOT / ".ci").is_dir(), reason="only a checkout has it")
def test_ci_keeps_the_constraints_that_pip_has_where_python_comes_without_pip(
    tmp_path: Path,
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "bin").mkdir()
    for name, script in STANDING_IN.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    path = os.pathsep.join((str(tmp_path / "bin"), os.environ["PATH"]))
    done = subprocess.run(
        [tmp_path / ".ci" / "run"],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [".ci/constraints.txt", "/etc/theirs.txt"]
