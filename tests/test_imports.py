"""Only what computes imports torch, and imports run one way."""

import ast
import json
import pkgutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import explorer

ROOT = Path(explorer.__file__).parent
# What computes; everything else opens without torch.
ENGINE = {
    f"engine.{name}"
    for name in (
        *("combination", "cost", "flow", "gradients", "heads", "hessian", "krylov", "linear"),
        *("paths", "rank", "saved", "spectrum", "structure", "trunk"),
    )
}
COMPUTES = ENGINE | {
    *("accuracy", "compilation", "devices", "execute", "exponential", "flatten", "flow.compute"),
    *("flow.network", "inspection", "jacobian", "linearization", "measure", "norms", "scaling"),
}
MODULES = sorted(
    name.removeprefix("explorer.")
    for _, name, _ in pkgutil.walk_packages([str(ROOT)], "explorer.")
    if not name.endswith("__main__")
)
QUIET = [name for name in MODULES if name not in COMPUTES]


def source(module: str) -> ast.Module:
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text())


@cache
def imports(module: str) -> set[str]:
    """The modules that a module imports, wherever in it; those of explorer without `explorer.`."""
    found: set[str] = set()
    for node in ast.walk(source(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}".removeprefix("explorer.")
                found.add(whole if whole in MODULES else node.module.removeprefix("explorer."))
    return found


def reached(module: str) -> set[str]:
    """explorer's modules that a module's imports lead to, itself included."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name in MODULES and name not in found:
            found.add(name)
            waiting.extend(imports(name))
    return found


@pytest.fixture(scope="module")
def with_torch() -> dict[str, bool]:
    """Whether torch is there after the import of each of the quiet modules, one after the other."""
    code = f"""
import importlib, json, sys
found = {{}}
for name in {QUIET}:
    importlib.import_module("explorer." + name)
    found[name] = "torch" in sys.modules
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, bool] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("module", QUIET)
def test_what_does_not_compute_imports_no_torch(module: str, with_torch: dict[str, bool]) -> None:
    assert not with_torch[module]


def test_what_computes_is_there() -> None:
    assert set(MODULES) >= COMPUTES
    assert {name for name in COMPUTES if "torch" in imports(name)} == COMPUTES


def test_public_names_are_loaded_when_they_are_used() -> None:
    code = (
        "import explorer, sys; names = dir(explorer); first = 'torch' in sys.modules;"
        "explorer.Experiment, explorer.Result, explorer.Worker; plain = 'torch' in sys.modules;"
        "explorer.gradients; print(first, plain, 'torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "False", "True"]


@pytest.mark.parametrize("name", explorer.__all__)
def test_public_name_is_what_it_says(name: str) -> None:
    assert getattr(explorer, name).__name__ == name


def test_unknown_public_name() -> None:
    with pytest.raises(AttributeError, match="'explorer' has no attribute 'nothing'"):
        _ = explorer.nothing


@pytest.mark.parametrize("module", sorted(ENGINE | {"engine.plan"}))
def test_engine_knows_no_function_and_no_widget(module: str) -> None:
    assert reached(module) <= ENGINE | {"engine", "engine.plan", "fields"}


@pytest.mark.parametrize("module", [name for name in MODULES if not name.startswith("app")])
def test_only_the_page_knows_widgets(module: str) -> None:
    named = {name.partition(".")[0] for name in imports(module)}
    assert not named & {"ipywidgets", "IPython"}
    assert not any(name.startswith("app") for name in reached(module) if module != "server")


@pytest.mark.parametrize(
    "module",
    [
        *("figures", "tables", "sentences", "export", "pictures", "rows", "filenames"),
        *("flow.figures", "flow.tables", "flow.sentences"),
        *("comparing.figures", "comparing.tables", "comparing.sentences"),
    ],
)
def test_pictures_need_a_result_alone(module: str) -> None:
    # A description imports the exponential where f is built, as it does torch.
    computes = COMPUTES - {"exponential"}
    assert not reached(module) & (computes | {"worker", "turn", "memory", "cli"})


@pytest.mark.parametrize("module", [name for name in MODULES if name not in COMPUTES])
def test_only_what_computes_names_what_computes(module: str) -> None:
    # They import it in the process that computes, or where someone's own code has brought torch.
    allowed = {"explorer", "worker", "own", "functions.exponentials"}
    if module not in allowed:
        assert not imports(module) & COMPUTES
