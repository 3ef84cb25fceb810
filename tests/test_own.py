"""A person's own functions and heads: registered, sent to a process of their own, and run."""

import math
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

import explorer
from explorer import own
from explorer.events import Done, Failed
from explorer.execute import execute
from explorer.experiment import DEFAULT_FUNCTION, Experiment, InvalidExperiment, table
from explorer.functions import FUNCTIONS
from explorer.heads import HEADS
from explorer.result import Result
from explorer.worker import Worker
from tests.work import last

X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
PATHS = ("recompute", "retain_graph", "reuse", "batched_vjp", "low_rank_vjp", "jvp", "auto")


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """What a test registers is gone after it."""
    functions, heads = dict(FUNCTIONS), dict(HEADS)
    yield
    for registry, before in ((FUNCTIONS, functions), (HEADS, heads)):
        registry.clear()
        registry.update(before)


def run(function: str, **values: Any) -> Result:
    *_, result = execute(Experiment(function, **{"repeats": 1, **values}), full=True)
    assert isinstance(result, Result)
    return result


def gradient(result: Result, head: str, path: str = "reuse") -> list[float]:
    found = result.heads[head].gradient[path]
    assert isinstance(found, tuple)
    return list(found)


# The registry.


def test_parameters_are_read_from_the_signature() -> None:
    @explorer.function(x=X)
    def scaled(
        x: Tensor,
        table: Tensor = X,
        *,
        steps: int = 3,
        factor: float = np.float64(0.5),
        twice: bool = False,
        kind: Literal["sin", "cos"] = "cos",
        label: str = "kept as it is",
        tolerance: float = math.inf,  # which no control can show
        modulus: int = 2**127 - 1,
    ) -> Tensor:
        return x

    fields = {field.name: field for field in FUNCTIONS["scaled"].parameters}
    kinds = {name: (field.kind, field.default) for name, field in fields.items()}
    assert kinds == {
        "steps": ("integer", 3),
        "factor": ("number", 0.5),
        "twice": ("switch", False),
        "kind": ("choice", "cos"),
    }
    assert fields["factor"].text(fields["factor"].default) == "0.5"
    assert fields["kind"].choices == ("sin", "cos")
    chosen = Experiment("scaled", parameters={"steps": "7", "twice": "on", "kind": "sin"})
    assert dict(chosen.parameters) == {"steps": 7, "factor": 0.5, "twice": True, "kind": "sin"}
    assert chosen.size == 3 and chosen.dtype == "float64"
    with pytest.raises(InvalidExperiment, match="Allowed: one of sin, cos"):
        Experiment("scaled", parameters={"kind": "tan"})


def test_values_of_the_parameters_reach_f() -> None:
    @explorer.function(x=X)
    def polynomial(
        x: Tensor, power: int = 2, odd: bool = False, kind: Literal["sum", "prod"] = "sum"
    ) -> Tensor:
        return getattr(x ** (power + odd), kind)()

    given = {"power": 3, "odd": True, "kind": "prod"}
    found = gradient(run("polynomial", parameters=given, heads=("y",)), "y")
    assert found == pytest.approx([4 * 6**4 / each for each in (1, 2, 3)])


def test_size_seed_dtype_and_device_are_the_experiment_s() -> None:
    def start(size: int, seed: int) -> Tensor:
        return torch.randn(size, generator=torch.Generator().manual_seed(seed))

    @explorer.function(x=start)
    def shifted(
        x: Tensor, size: int = 4, *, dtype: Any = None, device: Any = None, seed: int = 0
    ) -> Tensor:
        return x * torch.arange(size, dtype=dtype, device=device) + seed

    described = FUNCTIONS["shifted"]
    assert described.size.default == 4 and described.parameters == ()
    assert described.dtype == "float32"  # as randn has it
    result = run("shifted", size=6, seed=5, dtype="float64", heads=("y",))
    assert gradient(result, "y") == [0, 1, 2, 3, 4, 5]
    x = start(6, 5).double()
    value = result.function.value
    assert list(value) == pytest.approx((x * torch.arange(6) + 5).tolist())  # type: ignore[arg-type]


def test_x_may_be_the_default_of_the_first_parameter_and_a_plain_number() -> None:
    @explorer.function
    def square(x: float = 3.0) -> Tensor:
        return x * x

    assert gradient(run("square", heads=("y", "y**2")), "y**2") == [4 * 27]


def test_registering_again_replaces() -> None:
    for factor in (2.0, 5.0):

        def again(x: Tensor, factor: float = factor) -> Tensor:
            return factor * x.sum()

        explorer.function(x=X)(again)
    assert gradient(run("again", heads=("y",)), "y") == [5.0] * 3


@pytest.mark.parametrize(
    "f, x, words",
    [
        (lambda x: x, None, "`x` of f is missing"),
        (lambda x, n: x, X, "Parameter `n` of f has no default"),
        (lambda x, heads=3: x, X, "Parameter `heads` of f has the name of a field"),
        (lambda x, size=0.5: x, X, "Parameter `size` of f is 0.5"),
        (lambda x, size=0: x, X, "Parameter `size` of f is 0"),
        (lambda: 1, X, "f takes nothing"),
        (3, X, "`f` is 3, which cannot be called"),
        (torch.compile(lambda x: x), X, "`f` is compiled"),
        (torch.compile(torch.nn.Linear(2, 2)), X, "`f` is compiled"),
        (lambda x: x, "text", "`x` is a str"),
        (lambda x: x, torch.arange(3), "`x` has dtype torch.int64"),
        (lambda x: x, [], "`x` holds no tensor"),
    ],
)
def test_what_cannot_be_registered_is_told(f: Any, x: Any, words: str) -> None:
    before = dict(FUNCTIONS)
    with pytest.raises((TypeError, ValueError)) as error:
        own.register(f, x, ())
    assert words in str(error.value)
    assert before == FUNCTIONS


def test_a_literal_has_strings_and_its_default_among_them() -> None:
    def f(x: Tensor, order: Literal[1, 2] = 1) -> Tensor:
        return x

    with pytest.raises(ValueError, match="Parameter `order` of f is 1"):
        own.register(f, X, ())


def test_names_of_explorer_are_kept() -> None:
    def sin(y: Tensor) -> Tensor:
        return y.sum()

    def sums(y: Tensor) -> Tensor:
        return y.sum()

    with pytest.raises(ValueError, match=f"{DEFAULT_FUNCTION} is a function of explorer"):
        explorer.function(x=X, name=DEFAULT_FUNCTION)(lambda x: x)
    with pytest.raises(ValueError, match="sin is a head of explorer"):
        explorer.head(sin)
    with pytest.raises(ValueError, match="sums cannot be a name here"):
        explorer.head(sums)
    with pytest.raises(ValueError, match="cannot be a name here"):
        explorer.function(x=X, name="two words")(lambda x: x)
    with pytest.raises(TypeError, match="A head is 3, which cannot be called"):
        explorer.head(3)  # type: ignore[type-var]


def test_heads_that_come_along_belong_to_the_function() -> None:
    def total(y: Tensor) -> Tensor:
        """Σ y, in words"""
        return y.sum()

    described = own.register(lambda x: x**2, X, [total, lambda y: y.prod(), "y[0]", "sin"])
    assert described.default_heads == ("total", "g2", "y[0]", "sin")
    assert [head.formula for head in described.heads] == ["Σ y, in words", "g2(y)"]
    assert "total" not in table()["heads"].choices
    result = run("f")
    assert gradient(result, "total") == [2, 4, 6]
    assert gradient(result, "g2") == pytest.approx([2 * 36 / each for each in (1, 2, 3)])
    assert result.heads["total"].formula == "Σ y, in words"


@pytest.mark.parametrize(
    "gs, words",
    [
        (lambda y: y, "`gs` is a function"),
        ("sin", "`gs` is a str"),
        ([3], "Head 1 of `gs` is 3"),
        (["sinn(y)"], "Column 1: sinn is not a known function"),
        (["cosh"], "Head cosh is not known"),
    ],
)
def test_heads_that_are_none_are_told(gs: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError)) as error:
        own.register(lambda x: x, X, gs)
    assert words in str(error.value)
    assert "f" not in FUNCTIONS


# What runs.


@pytest.mark.parametrize("path", PATHS)
def test_every_path_on_structures_of_x_and_y(path: str) -> None:
    start = {"a": torch.tensor(2.0, dtype=torch.float64), "b": [X]}

    @explorer.function(x=start)
    def parts(x: Any) -> Any:
        return {"product": x["a"] * x["b"][0], "square": x["a"] ** 2}

    @explorer.head
    def first(y: Any) -> Tensor:
        return y["product"].sum() * y["square"]

    @explorer.head
    def with_x(y: Any, x: Any) -> Tensor:
        return y["square"] * x["b"][0].sum()

    @explorer.head
    def by_name(y: Any, *, x: Any) -> Tensor:
        return y["square"] * x["a"]

    heads = ("first", "with_x", "by_name", "y[3]")
    result = run("parts", heads=heads, paths=tuple({"retain_graph": 1, path: 1}))
    a, total = 2.0, 6.0
    # x laid end to end is (a, b₁, b₂, b₃), and y (a·b, a²).
    assert gradient(result, "first", path) == pytest.approx([3 * a**2 * total, *[a**3] * 3])
    assert gradient(result, "with_x", path) == pytest.approx([2 * a * total, *[a**2] * 3])
    assert gradient(result, "by_name", path) == pytest.approx([3 * a**2, 0, 0, 0])
    assert gradient(result, "y[3]", path) == pytest.approx([2 * a, 0, 0, 0])
    assert result.function.inputs == 4 and result.function.outputs == 4


def test_complex_x_and_y_are_their_two_parts() -> None:
    @explorer.function(x=torch.tensor([1 + 2j]))
    def squared(x: Tensor) -> Tensor:
        return x * x

    result = run("squared", heads=("y[0]", "y[1]"))
    assert result.function.value == (-3.0, 4.0)
    assert gradient(result, "y[0]") == [2.0, -4.0]  # Re (a + ib)² = a² − b²
    assert gradient(result, "y[1]") == [4.0, 2.0]  # Im (a + ib)² = 2ab


def test_a_module_as_x_means_its_parameters() -> None:
    net = torch.nn.Linear(2, 1, dtype=torch.float64)
    batch = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    own.register(lambda net: net(batch), net, [lambda y: y.sum()])
    assert gradient(run("f"), "g1") == [2.0, 4.0, 6.0]  # bias and weight, as sorted by name


def test_a_reference_that_f_cannot_give_is_said() -> None:
    weights = torch.eye(3)
    own.register(lambda x: weights @ x, X.float(), ["y"])
    result = run("f")
    assert result.experiment.dtype == "float32"
    assert result.heads["y"].error["reuse"] is None
    assert result.heads["y"].error_reference.startswith("none: in float64 on the CPU f raises")


@pytest.mark.filterwarnings("ignore:`f` is random")
def test_a_random_f_is_one_function_in_all_that_a_run_does() -> None:
    own.register(lambda x: torch.nn.functional.dropout(x, 0.5), torch.ones(40).double(), ())
    result = run("f", heads=("y", "norm"), paths=PATHS)
    y = list(result.function.value)  # type: ignore[arg-type]
    assert {0.0, 2.0} == set(y)
    for head in result.heads.values():
        assert max(each for each in head.error.values() if each is not None) < 1e-12
    assert gradient(result, "y") == y  # as the mask that y shows has it


@pytest.mark.filterwarnings("ignore:`f` is random")
def test_a_random_f_has_no_reference_in_another_dtype() -> None:
    own.register(lambda x: x * torch.randn_like(x), X.float(), ["y"])
    head = run("f").heads["y"]
    assert head.error["reuse"] is None and "f is random" in head.error_reference
    assert head.agreement["reuse"] == 0


def test_what_cannot_be_registered_again_leaves_the_one_before() -> None:
    before = own.register(lambda x: x, X, ["y"])
    with pytest.raises(ValueError, match="sinn"):
        own.register(lambda x: 2 * x, X, ["sinn(y)"])
    assert FUNCTIONS["f"] is before


def test_scaling_along_the_heads_knows_the_entries_of_y() -> None:
    own.register(lambda x: torch.outer(x, x), X, ["y"])
    scaling = run("f", scaling=("heads",), paths=("reuse",)).scaling["heads"]
    assert scaling.outputs == 9
    assert {point.backward_passes for point in scaling.paths["reuse"].measured} == {9}


# In a process of its own.


def test_a_closure_reaches_the_worker_with_its_heads() -> None:
    factor = torch.tensor(3.0, dtype=torch.float64)

    @explorer.head
    def doubled(y: Tensor) -> Tensor:
        return 2 * y.sum()

    own.register(lambda x: factor * x, X, [lambda y: y.sum()])
    experiment = Experiment("f", heads=("g1", "doubled", "random(2)"), repeats=1)
    done = last(Worker().submit(experiment))
    assert isinstance(done, Done), done
    assert done.result.heads["doubled"].gradient["reuse"] == (6.0, 6.0, 6.0)
    assert done.result.experiment == experiment


def test_a_head_of_one_s_own_goes_with_a_function_of_explorer() -> None:
    @explorer.head
    def cubed(y: Tensor, x: Tensor) -> Tensor:
        return y**3 * x

    @explorer.head
    def by_name(y: Tensor, *, x: Tensor) -> Tensor:
        return y**3 * x

    done = last(Worker().submit(Experiment(size=5, heads=("cubed", "by_name"), repeats=1)))
    assert isinstance(done, Done), done
    for head in done.result.heads.values():
        assert head.error["reuse"] is not None and head.error["reuse"] < 1e-12


def test_what_cannot_be_sent_is_said() -> None:
    lock = threading.Lock()

    def locked(x: Tensor) -> Tensor:
        with lock:
            return x

    own.register(locked, X, ())
    failed = last(Worker().submit(Experiment("locked")))
    assert isinstance(failed, Failed) and failed.kind == "invalid"
    assert "locked cannot be sent to the process that would run it" in failed.problems["function"]
    assert "lock" in failed.problems["function"]


def test_what_is_noted_of_a_random_f_is_no_warning_of_the_process(
    capfd: pytest.CaptureFixture[str],
) -> None:
    own.register(lambda x: x * torch.randn(3), X, ())
    done = last(Worker().submit(Experiment("f", repeats=1)))
    assert isinstance(done, Done) and "`f` is random" in done.result.notes[0]
    assert "random" not in capfd.readouterr().err


def test_the_person_s_own_line_and_message_are_shown() -> None:
    def broken(x: Tensor) -> Tensor:
        matrix = torch.ones(2, 2, dtype=torch.float64)
        return matrix @ x  # the line at fault

    own.register(broken, X, ())
    failed = last(Worker().submit(Experiment("broken")))
    assert isinstance(failed, Failed) and failed.kind == "error"
    assert failed.place is not None and failed.place.function == "broken"
    line = broken.__code__.co_firstlineno + 2
    assert f"(in broken, line {line} of test_own.py: return matrix @ x" in failed.message
    assert failed.message.startswith("RuntimeError: ")


def test_a_head_s_own_line_is_shown() -> None:
    def short(y: Tensor) -> Tensor:
        return y[7]

    own.register(lambda x: x, X, [short])
    failed = last(Worker().submit(Experiment("f")))
    assert isinstance(failed, Failed)
    assert "in short, line" in failed.message and "return y[7]" in failed.message


@pytest.mark.parametrize("y, what", [(None, "NoneType"), (2.0, "float"), ((), "tuple")])
def test_a_y_without_a_tensor_is_told(y: Any, what: str) -> None:
    own.register(lambda x: y, X, ())
    with pytest.raises(TypeError, match=f"`f` returned a {what}. Return a torch.Tensor, or"):
        run("f")


def test_an_exit_in_f_is_its_own_line() -> None:
    def leaving(x: Tensor) -> Tensor:
        sys.exit("no more")

    own.register(leaving, X, ())
    failed = last(Worker().submit(Experiment("leaving")))
    assert isinstance(failed, Failed) and failed.kind == "error"
    assert failed.message.startswith("SystemExit: no more (in leaving, line ")


def test_a_head_that_returns_no_number_is_named() -> None:
    def worded(y: Tensor) -> str:
        return "no"

    own.register(lambda x: x, X, [worded])
    with pytest.raises(TypeError, match=r"head 1 \(`worded`\) returned a str"):
        run("f")


def test_a_script_s_functions_reach_the_worker(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import torch
            import explorer

            scale = 3.0

            @explorer.function(x=torch.tensor([1.0, 2.0], dtype=torch.float64))
            def tripled(x):
                return scale * x

            @explorer.head
            def total(y):
                return y.sum()

            if __name__ == "__main__":
                experiment = explorer.Experiment("tripled", heads=("total",), repeats=1)
                *_, done = explorer.Worker().submit(experiment).events()
                print(done.result.heads["total"].gradient["reuse"])
            """
        )
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "(3.0, 3.0)\n"


# By the name of a module.

MODULE = """
import torch
import explorer

def plain(x=torch.ones(2, dtype=torch.float64), power: int = 2):
    return x**power

@explorer.function(x=torch.ones(3, dtype=torch.float64), name="decorated_one")
def decorated(x):
    return 4 * x

without_x = lambda x: x
number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module in the folder one is in."""
    (tmp_path / "module_of_mine.py").write_text(MODULE)
    (tmp_path / "module_that_raises.py").write_text("import torch\nraise OSError('no such data')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "module_of_mine"
    for name in ("module_of_mine", "module_that_raises"):
        sys.modules.pop(name, None)


def test_load_imports_and_registers(module: str) -> None:
    assert own.load(f"{module}:plain") == "plain"
    assert own.load(f"{module}:plain") == "plain"
    assert own.load(f"{module}:decorated") == "decorated_one"
    done = last(Worker().submit(Experiment("plain", heads=("y",), repeats=1)))
    assert isinstance(done, Done), done
    assert done.result.heads["y"].gradient["reuse"] == (2.0, 2.0)


@pytest.mark.parametrize(
    "place, words",
    [
        ("module_of_mine:nothing", "Module module_of_mine has no nothing."),
        ("no_such_module:f", "There is no module 'no_such_module' here or installed."),
        ("module_of_mine:without_x", "`x` of f is missing"),
        ("module_of_mine:number", "`f` is 3, which cannot be called"),
        ("module_of_mine:", "Function 'module_of_mine:' is not MODULE:FUNCTION."),
        (":f", "Function :f is not MODULE:FUNCTION."),
        ("../mine:f", "Function '../mine:f' is not MODULE:FUNCTION."),
    ],
)
def test_what_cannot_be_loaded_is_told(module: str, place: str, words: str) -> None:
    with pytest.raises(InvalidExperiment) as error:
        own.load(place)
    assert words in error.value.problems["function"]


def test_what_a_module_raises_while_it_is_imported_is_its_own(module: str) -> None:
    with pytest.raises(OSError, match="no such data"):
        own.load("module_that_raises:f")


def test_a_link_imports_nothing(module: str) -> None:
    with pytest.raises(InvalidExperiment):
        Experiment.from_values({"function": f"{module}:plain"})
    assert module not in sys.modules
