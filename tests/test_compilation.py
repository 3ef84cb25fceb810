"""f as torch.compile makes it: the same gradients, the compile time told apart."""

from shutil import which

import pytest
import torch

from explorer.compilation import compiled
from explorer.engine.plan import PATHS
from explorer.execute import execute
from explorer.experiment import Experiment, InvalidExperiment
from explorer.result import Result
from explorer.sentences import notes

needs_compiler = pytest.mark.skipif(which("g++") is None, reason="no g++ here")
X = torch.tensor([0.3, -0.7], dtype=torch.float64)


@needs_compiler
def test_compiled_f_has_its_gradients_and_goes_back_several_times() -> None:
    f, seconds, warned = compiled(lambda x: torch.sin(x) * x.sum(), X)
    assert seconds > 0 and warned == []
    x = X.clone().requires_grad_()
    y = f(x)
    assert "CompiledFunction" in type(y.grad_fn).__name__
    rows = [torch.autograd.grad(each, x, retain_graph=True)[0] for each in y]
    expected = torch.autograd.functional.jacobian(lambda x: torch.sin(x) * x.sum(), X)
    torch.testing.assert_close(torch.stack(rows), expected)


@needs_compiler
def test_every_path_but_forward_mode_runs_on_a_compiled_f() -> None:
    *_, result = execute(
        Experiment("tanh_network", 10, compile=True, paths=tuple(PATHS), repeats=1)
    )
    assert isinstance(result, Result)
    assert result.function.compile_seconds is not None
    for head in result.heads.values():
        for path in PATHS:
            if path != "jvp":
                assert head.error[path] is not None and head.error[path] < 1e-13, path
    assert result.paths["jvp"].status == "predicted"
    assert "forward mode does not go through a compiled f" in result.paths["jvp"].note
    assert any(note.startswith("torch.compile took ") for note in notes(result))
    assert Result.from_json(result.to_json()) == result


def test_an_f_that_was_not_compiled_says_nothing_of_it() -> None:
    *_, result = execute(Experiment(size=5, repeats=1))
    assert isinstance(result, Result) and result.function.compile_seconds is None
    assert not any("compile" in note for note in notes(result))


def test_a_missing_compiler_is_said() -> None:
    import torch._inductor.config as inductor

    without = {"cpp.cxx": ("no-such-compiler",), "force_disable_caches": True}
    with inductor.patch(without), pytest.raises(InvalidExperiment) as error:
        compiled(lambda x: x.exp() + 1, X)
    assert "torch.compile finds no compiler here" in error.value.problems["compile"]
    assert "switch torch.compile off" in error.value.problems["compile"]


def test_what_f_raises_is_its_own() -> None:
    def wrong(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("of my own")

    with pytest.raises(ValueError, match="of my own"):
        compiled(wrong, X)


@needs_compiler
def test_scaling_of_a_compiled_f_leaves_out_what_would_be_compiled_anew() -> None:
    experiment = Experiment(
        *("tanh_network", 5),
        compile=True,
        scaling=("outputs",),
        paths=("retain_graph", "jvp"),
        repeats=1,
    )
    *_, result = execute(experiment)
    assert isinstance(result, Result)
    assert not result.scaling
    assert any("No scaling along outputs" in note for note in result.notes)
