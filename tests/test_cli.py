"""The command line: what it prints where, and the exit code it ends with."""

import json
import math
import os
import signal
import subprocess
import sys
from html import escape
from importlib.metadata import distributions, version
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner, Result

import explorer
from explorer import scaling_sentences, sentences, signals
from explorer.cli import cli
from explorer.engine.plan import PATHS
from explorer.experiment import table
from explorer.fields import shown
from explorer.flow import sentences as flow_sentences
from explorer.flow.experiment import FIELDS as FLOW_FIELDS
from explorer.flow.experiment import FlowExperiment
from explorer.flow.result import Flow
from explorer.flow.tables import tables as flow_tables
from explorer.flow.tables import thinned
from explorer.functions import FUNCTIONS
from explorer.heads import HEADS
from explorer.rows import to_csv
from explorer.tables import tables
from tests.work import handles, session, soon

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
SMALL = ("run", "--size", "20", "--repeats", "2")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "explorer", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


# Good input.


def test_run_prints_the_sentence_the_verdicts_and_the_tables(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    done = invoke(*SMALL, "--json", str(file))
    assert done.exit_code == 0, done.output
    result = explorer.Result.from_json(file.read_text())
    lines = done.stdout.splitlines()
    verdicts = [f"{name}: {sentences.verdict(result, name)}" for name in ("square", "sqrt")]
    assert lines[:4] == [sentences.summary(result), sentences.plan(result), *verdicts]
    for each in tables(result).values():
        assert any(line.strip() == each.title for line in lines)
        for row in each.rows:
            assert any(all(cell in line for cell in row) for line in lines)
    y, dy = 19 + math.cos(20), -20 * math.sin(20)  # the closed form at n = 20
    for gradient in (2 * y * dy, dy / (2 * math.sqrt(y))):
        assert f"{gradient:.9g}" in done.stdout


def test_progress_goes_to_standard_error_and_the_result_to_standard_output() -> None:
    process = start(*SMALL)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "reuse" in out and "Traceback" not in err
    assert "reuse was" not in err


def test_json_is_the_result(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    heads_and_paths = (
        "--head",
        "exp",
        "--head",
        "sin",
        "--path",
        "reuse",
        "--path",
        "retain_graph",
    )
    given = ("--param", "x=0.5", "--seed", "3", "--dtype", "float32", "--budget", "30")
    result = invoke(*SMALL, *heads_and_paths, *given, "--json", str(file))
    assert result.exit_code == 0, result.output
    found = explorer.Result.from_json(file.read_text())
    assert found.status == "done"
    assert found.experiment == explorer.Experiment(
        size=20,
        parameters={"x": 0.5},
        dtype="float32",
        heads=("exp", "sin"),
        paths=("reuse", "retain_graph"),
        repeats=2,
        seed=3,
        budget=30.0,
    )
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("full", [False, True])
def test_full_lists_every_entry(tmp_path: Path, full: bool) -> None:
    file = tmp_path / "result.json"
    arguments = (*SMALL, "--function", "tanh_network", "--head", "mean", "--json", str(file))
    assert invoke(*arguments, *(["--full"] if full else [])).exit_code == 0
    gradient = json.loads(file.read_text())["heads"]["mean"]["gradient"]["reuse"]
    assert len(gradient) == 20 if full else gradient["shape"] == [20]


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout on this system")
def test_json_to_a_pipe_comes_before_the_tables() -> None:
    process = start(*SMALL, "--json", "/dev/stdout")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    written, end = json.JSONDecoder().raw_decode(out)
    result = explorer.Result.from_json(json.dumps(written))
    assert out[end:].strip().startswith(sentences.summary(result))


def test_html_is_a_page_of_its_own_and_csv_the_table_of_the_same_run(tmp_path: Path) -> None:
    file, table_file, json_file = (tmp_path / f"result.{kind}" for kind in ("html", "csv", "json"))
    places = ("--html", str(file), "--csv", str(table_file), "--json", str(json_file))
    assert invoke(*SMALL, *places).exit_code == 0
    result = explorer.Result.from_json(json_file.read_text())
    assert table_file.read_bytes().decode() == to_csv(result)
    page = file.read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "matrix exponential" in page.lower()


def test_result_with_a_head_outside_its_domain_is_printed() -> None:
    result = invoke(*SMALL, "--function", "tanh_network", "--head", "log", "--head", "mean")
    assert result.exit_code == 0, result.output
    assert "outside the domain of log" in result.stdout


def test_path_that_does_not_fit_the_budget_is_printed() -> None:
    result = invoke("run", "--size", "100", "--budget", "0.000001")
    assert result.exit_code == 0, result.output
    assert "not run" in result.stdout


def test_scaling_is_printed_with_its_sentences_and_auto_with_its_plan(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    done = invoke(*SMALL, "--scaling", "heads", "--cutoff", "0.01", "--json", str(file))
    assert done.exit_code == 0, done.output
    result = explorer.Result.from_json(file.read_text())
    assert result.experiment.scaling == ("heads",) and result.experiment.cutoff == 0.01
    lines = done.stdout.splitlines()
    assert lines[1] == sentences.plan(result) and "auto (reuse): 1 backward pass" in lines[1]
    for sentence in scaling_sentences.scaling(result, "heads"):
        assert sentence in lines
    for name in ("scaling-heads-passes", "scaling-heads-time"):
        for row in tables(result)[name].rows:
            assert any(all(cell in line for cell in row) for line in lines)


def test_list_says_how_to_get_the_package_of_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.experiment.find_spec", lambda name: None)
    assert "pip install torchjd" in invoke("list").stdout


def test_list_names_everything_there_is() -> None:
    result = invoke("list")
    assert result.exit_code == 0
    for function in FUNCTIONS.values():
        assert f"function {function.name}: {function.formula}" in result.stdout
        for field in (function.size, *function.parameters):
            assert field.allowed in result.stdout
    for head in HEADS.values():
        assert f"head {head.name}: {head.formula}" in result.stdout
    for path, words in PATHS.items():
        assert f"path {path}: {words}" in result.stdout
    assert "device cpu: " in result.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["run", "-h"]])
def test_help_opens(arguments: list[str]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 0 and result.stdout


@pytest.mark.skipif(
    not list(distributions(name="explorer")), reason="explorer is imported, not installed, here"
)
def test_version_is_that_of_the_package() -> None:
    assert version("explorer") in invoke("--version").stdout


def test_help_of_run_names_every_field_and_what_is_allowed() -> None:
    said = " ".join(invoke("run", "--help").stdout.split())
    assert "--head" in said and "--path" in said and "--param NAME=VALUE" in said
    for name in ("dtype", "device", "repeats", "seed", "budget", "size", "function"):
        assert f"--{name}" in said
        if name != "size":
            assert table()[name].allowed in said
    assert "[default: --head square --head sqrt]" in said  # as they are given
    assert "[default: --path recompute --path retain_graph --path reuse --path auto]" in said


def test_the_real_command_opens_its_help_without_torch() -> None:
    code = (
        "import sys; from explorer.cli import cli;"
        "cli(['run', '--help'], standalone_mode=False); print('torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1] == "False"


# Bad input: exit code 2, and a sentence for every option that is wrong.

BAD: dict[str, tuple[list[str], list[str]]] = {
    "size 0": (["--size", "0"], ["--size: Size n is 0. Allowed: a whole number from 2 to 2000."]),
    "size negative": (["--size=-3"], ["--size: Size n is -3. Allowed: a whole number from 2"]),
    "size not whole": (["--size", "2.5"], ["--size: Size n is 2.5. Allowed: a whole number"]),
    "size too large": (["--size", "2001"], ["--size: Size n is 2001. Allowed: a whole number"]),
    "size empty": (["--size", ""], ["--size: Size n is empty. Allowed: a whole number"]),
    "function": (["--function", "tanh"], ["--function: Function tanh is not known. Did you mean"]),
    "head": (["--head", "squrt"], ["--head: Head squrt is not known. Did you mean sqrt? Allowed"]),
    "path": (["--path", "reus"], ["--path: Path reus is not known. Did you mean reuse? Allowed"]),
    "no head": (["--head", ""], ["--head: No head is chosen. Allowed: one or more of square"]),
    "head twice": (["--head", "log", "--head", "log"], ["--head: Head log is chosen more than"]),
    "dtype": (["--dtype", "float16"], ["--dtype: Data type float16 is not known"]),
    "device": (["--device", "moon base"], ["--device: Device is 'moon base'. Allowed: cpu, cuda"]),
    "mps": (["--device", "mps"], ["--dtype: float64 is not available on mps: Apple's MPS"]),
    "budget": (["--budget", "-1"], ["--budget: Time budget is -1. Allowed: a number above 0"]),
    "several": (
        ["--size", "0", "--seed", "x", "--head", "cube"],
        ["--size: Size n", "--seed: Seed is x", "--head: Head cube"],
    ),
    "parameter": (["--param", "y=1"], ["--param: y is not a parameter of matrix_exp_trace. "]),
    "parameter value": (["--param", "x=99"], ["--param: x is 99. Allowed: a number from -10"]),
    "parameter form": (["--param", "x"], ["--param: x is not NAME=VALUE"]),
    "parameters": (
        ["--param", "x", "--param", "=1", "--param", "y=1", "--param", "size=3"],
        ["x is not NAME=VALUE", "'=1' is not", "y is not a parameter", "give --size 3"],
    ),
    "json folder": (["--json", "/no/such/r.json"], ["--json: The folder /no/such does not exist"]),
    "html folder": (["--html", "/no/such/r.html"], ["--html: The folder /no/such does not exist"]),
    "csv folder": (["--csv", "/no/such/r.csv"], ["--csv: The folder /no/such does not exist"]),
    "png folder": (["--png", "/no/such/pictures"], ["--png: The folder /no/such does not exist"]),
    "svg is a file": (["--svg", __file__], [f"--svg: {__file__} is a file. Give the name of a fo"]),
    "json is a folder": (["--json", "/"], ["--json: / is a folder. Give the name of a file."]),
    "json empty": (["--json", ""], ["--json: . is a folder."]),
    "json too long": (["--json", "a" * 300], ["--json: aaa", "cannot be a file"]),
}
if sys.platform == "linux":  # where not even root can make a file
    BAD["json nowhere"] = (["--json", "/proc/r.json"], ["--json: The folder /proc cannot be"])


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_by_option(name: str) -> None:
    arguments, sentences = BAD[name]
    result = invoke("run", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    for sentence in sentences:
        assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == len(sentences) or name == "json too long"


def test_typed_heads_and_sets_are_run_and_shown_as_understood() -> None:
    heads = ("--head", "y**2 + x", "--head", "powers(2)", "--head", "sums(2)")
    done = invoke(*SMALL, *heads)
    assert done.exit_code == 0, done.output
    for words in ("y**2 + x, that is y² + x: ", "powers 2, that is Σ y^2: ", "sums 2, that is "):
        assert words in done.stdout


def test_of_many_heads_a_dozen_is_printed() -> None:
    done = invoke(*SMALL, "--head", "random(30)", "--path", "reuse")
    assert done.exit_code == 0, done.output
    assert "random 12, that is" in done.stdout and "random 13" not in done.stdout
    assert "12 of the 30 heads are shown by themselves" in done.stdout


MODULE = """
import torch
import explorer

@explorer.function(x=torch.ones(2, dtype=torch.float64))
def mine(x, power: int = 2):
    if power > 5:
        raise ValueError("that is too much")
    return x**power

@explorer.head
def total(y):
    return y.sum()
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """The folder of a module with a function and a head, and of one that cannot be imported."""
    (tmp_path / "of_mine.py").write_text(MODULE)
    (tmp_path / "broken_one.py").write_text("import torch\n\nraise OSError('no such data')\n")
    return tmp_path


def run_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "explorer", "run", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_function_and_head_of_a_module_are_run(module: Path) -> None:
    given = ("--function", "of_mine:mine", "--head", "total", "--param", "power=3")
    done = run_in(module, *given, "--repeats", "1", "--json", "own.json", "--html", "own.html")
    assert done.returncode == 0, done.stderr
    assert "total: the paths agree" in done.stdout
    result = json.loads((module / "own.json").read_text())
    assert result["heads"]["total"]["gradient"]["reuse"] == [3.0, 3.0]
    assert "mine(x)" in (module / "own.html").read_text()


@pytest.mark.parametrize(
    "given, code, words",
    [
        (("of_mine:mine", "--param", "power=9"), 1,
         "ValueError: that is too much (in mine, line 8 of of_mine.py: raise ValueError("),
        (("of_mine:mine", "--param", "power=no"), 2, "--param: power is no. Allowed: a whole"),
        (("of_mine:other",), 2, "--function: Module of_mine has no other."),
        (("broken_one:f",), 2,
         "--function: OSError: no such data (in <module>, line 3 of broken_one.py: raise OSError("),
    ],
)  # fmt: skip
def test_what_is_wrong_with_one_s_own_is_their_own_message(
    module: Path, given: tuple[str, ...], code: int, words: str
) -> None:
    done = run_in(module, "--function", *given)
    assert done.returncode == code
    assert words in done.stderr and "Traceback" not in done.stderr
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("arguments", [["runn"], ["run", "--sise", "3"], ["run", "more"]])
def test_unknown_command_or_option_is_bad_input(arguments: list[str]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2 and "Error: " in result.stderr


def test_misspelt_option_names_the_nearest() -> None:
    assert "--size" in invoke("run", "--sise", "3").stderr.partition("Error: ")[2]


@pytest.mark.parametrize("device", ["hpu", "cuda:99"])
def test_device_that_is_not_there_is_bad_input(device: str) -> None:
    result = invoke(*SMALL, "--device", device)
    assert result.exit_code == 2
    told = f"--device: Device {shown(device)} is not on this machine. Allowed: cpu"
    assert told in result.stderr and "'hpu'" not in told


def test_bad_input_of_the_real_command() -> None:
    process = start("run", "--size", "many")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert out == ""
    assert err == "--size: Size n is many. Allowed: a whole number from 2 to 2000.\n"


def test_nothing_is_written_for_bad_input(tmp_path: Path) -> None:
    assert invoke("run", "--size", "0", "--json", str(tmp_path / "r.json")).exit_code == 2
    assert not list(tmp_path.iterdir())


def test_file_that_was_there_stays_when_the_run_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text("kept")
    assert invoke(*SMALL, "--device", "cuda:99", "--json", str(file)).exit_code == 2
    assert file.read_text() == "kept" and list(tmp_path.iterdir()) == [file]


# Signals.


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says there when the command begins")
@pytest.mark.parametrize("seconds", [0, 0.05, 0.15, 0.3, 0.6, 1.0, 1.6])
def test_interrupt_at_any_moment_is_a_clean_cancel(seconds: float) -> None:
    process = start("run", "--size", "1000", "--path", "recompute")
    assert soon(lambda: handles(process.pid, signal.SIGTERM), 60)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(seconds)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err.strip()) == ("", "Cancelled.")
    assert soon(lambda: not session(process.pid), 60)


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_signal_in_mid_run_leaves_no_process_and_no_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    process = start("run", "--size", "1000", "--path", "recompute", "--json", str(file))
    # The fork server's child is the run itself, and it has come to its matrix exponential.
    family = psutil.Process(process.pid)
    assert soon(lambda: any(each.cpu_times().user > 1 for each in grandchildren(family)), 60)
    if name == "SIGKILL":  # which its children cannot be told of
        process.kill()
    else:
        os.killpg(process.pid, getattr(signal, name))
    _, err = process.communicate(timeout=20)
    assert process.returncode == (-signal.SIGKILL if name == "SIGKILL" else 130)
    assert "Traceback" not in err and ("Cancelled." in err) == (name != "SIGKILL")
    assert soon(lambda: not session(process.pid), 20)
    assert not list(tmp_path.iterdir())


def grandchildren(process: psutil.Process) -> list[psutil.Process]:
    return [each for child in process.children() for each in child.children()]


def test_signal_while_a_file_is_written_leaves_no_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: signal.raise_signal(signal.SIGTERM))
    monkeypatch.setattr(signals, "end_cancelled", lambda number, frame: sys.exit(130))
    assert invoke(*SMALL, "--json", str(tmp_path / "r.json")).exit_code == 130
    assert not list(tmp_path.iterdir())


def test_signals_are_as_they_were_after_a_run() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert invoke(*SMALL).exit_code == 0
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


# The gradient flow.

FLOW = ("flow", "--size", "8", "--steps", "12", "--repeats", "2")


def test_flow_prints_its_sentences_and_tables_and_writes_its_files(tmp_path: Path) -> None:
    json_file, html_file, csv_file = (tmp_path / f"flow.{kind}" for kind in ("json", "html", "csv"))
    given = ("--cell", "relu", "--start", "gain", "--gain", "0.5", "--input-scale", "0.1")
    losses = ("--loss", "energy", "--loss", "class")
    files = ("--json", str(json_file), "--html", str(html_file), "--csv", str(csv_file))
    done = invoke(*FLOW, *given, *losses, *files)
    assert done.exit_code == 0, done.output
    seen = Flow.from_json(json_file.read_text())
    assert seen.experiment == FlowExperiment(
        cell="relu", start="gain", gain=0.5, size=8, steps=12, input_scale=0.1,
        losses=("energy", "class"), repeats=2,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    said = flow_sentences
    assert lines[:3] == [said.summary(seen), said.cause(seen), said.ways(seen)]
    assert lines[3].startswith("What may help: Start orthogonal; Use a GRU")
    for each in flow_tables(seen).values():
        few = thinned(each, 11)
        assert any(line.strip() == few.title for line in lines)
        for row in few.rows:
            assert any(all(cell in line for cell in row) for line in lines)
    assert escape(said.summary(seen)) in html_file.read_text()
    assert csv_file.read_bytes().decode() == to_csv(seen)


BAD_FLOW = {
    "cell": (["--cell", "grue"], "--cell: Cell grue is not known. Did you mean gru?"),
    "steps": (["--steps", "0"], "--steps: Steps T is 0. Allowed: a whole number from 1 to 500."),
    "input scale": (["--input-scale", "x"], "--input-scale: Input scale is x. Allowed: a number"),
    "loss": (["--loss", "enrgy"], "--loss: Loss enrgy is not known. Did you mean energy?"),
    "json folder": (["--json", "/no/such/f.json"], "--json: The folder /no/such does not exist"),
    "device": (["--device", "cuda:99"], "--device: Device cuda:99 is not on this machine."),
}


@pytest.mark.parametrize("name", BAD_FLOW)
def test_bad_input_of_flow_is_told_by_option(name: str) -> None:
    arguments, sentence = BAD_FLOW[name]
    result = invoke("flow", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(list(filter(None, result.stderr.splitlines()))) == 1


def test_help_of_flow_names_every_field_and_what_is_allowed() -> None:
    said = " ".join(invoke("flow", "--help").stdout.split())
    for name, field in FLOW_FIELDS.items():
        option = {"losses": "--loss"}.get(name, "--" + name.replace("_", "-"))
        assert option in said
        assert field.allowed in said


# Copy code.


def test_code_prints_a_script_and_writes_it_to_a_file(tmp_path: Path) -> None:
    given = (
        *("--function", "ode", "--size", "20", "--param", "system=lorenz", "--param", "outputs=3"),
        *("--head", "norm", "--head", "y[0] * x[1]", "--seed", "5", "--dtype", "float32"),
    )
    done = invoke("code", *given, "--path", "reuse")
    assert done.exit_code == 0, done.output
    chosen = explorer.Experiment(
        "ode", size=20, parameters={"system": "lorenz", "outputs": 3}, dtype="float32",
        heads=("norm", "y[0] * x[1]"), seed=5,
    )  # fmt: skip
    assert done.stdout == explorer.script(chosen, "reuse")
    file = tmp_path / "script.py"
    written = invoke("code", *given, "-o", str(file))
    assert (written.exit_code, written.output) == (0, "")
    assert file.read_text() == explorer.script(chosen, "auto")


BAD_CODE = {
    "path": (["--path", "resue"], "--path: Path resue is not known. Did you mean reuse?"),
    "size": (["--size", "0"], "--size: Size n is 0. Allowed: a whole number from 2 to 2000."),
    "parameter": (["--param", "z=1"], "--param: z is not a parameter of matrix_exp_trace."),
    "folder": (["-o", "/no/such/f.py"], "--output: The folder /no/such does not exist"),
}


@pytest.mark.parametrize("name", BAD_CODE)
def test_bad_input_of_code_is_told_by_option(name: str) -> None:
    arguments, sentence = BAD_CODE[name]
    result = invoke("code", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sentence in result.stderr
