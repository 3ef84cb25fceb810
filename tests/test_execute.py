"""An Experiment gives a Result whose every number holds against a computation of its own."""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer import sentences
from explorer.engine.gradients import Gradients, gradients
from explorer.engine.plan import PATHS
from explorer.events import Progress
from explorer.execute import DoesNotFit, execute
from explorer.experiment import DEFAULT_PATHS, InvalidExperiment
from explorer.functions import FUNCTIONS
from explorer.functions.description import Problem, Setting
from explorer.heads import HEADS
from explorer.result import Array, Numbers, Result
from tests.runs import experiment, run, seen

ALL = ",".join(PATHS)

KEYS: dict[str, Any] = {
    "": ["schema", "experiment", "environment", "function", "paths", "heads", "jacobian"],
    "environment": ["torch", "python", "device_name", "threads", "host", "started"],
    "function": ["name", "inputs", "outputs", "value", "exact_value"],
    "paths/reuse": [
        "seconds", "forward_passes", "backward_passes", "forward_mode_passes", "saved_bytes",
        "peak_memory_bytes",
    ],
    "paths/reuse/seconds": ["median", "iqr", "minimum", "runs"],
    "heads/sqrt": ["value", "gradient", "agreement", "error", "error_reference"],
    "jacobian": ["spectral_norm", "heads", "method"],
    "jacobian/heads/sqrt": ["spectral_norm", "composite", "bound"],
}  # fmt: skip


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """The JSON of one small run."""
    found: dict[str, Any] = json.loads(run().to_json())
    return found


@pytest.mark.parametrize("place", KEYS)
def test_json_has_what_is_promised(plain: dict[str, Any], place: str) -> None:
    for key in filter(None, place.split("/")):
        plain = plain[key]
    assert set(KEYS[place]) <= plain.keys()


def entry(numbers: Numbers) -> float:
    """The one entry of a gradient in one variable."""
    assert isinstance(numbers, tuple)
    (number,) = numbers
    return number


def test_result_of_matrix_exp_trace_holds_its_closed_form() -> None:
    n, x = 50, 0.7
    result = run(size=n, x=x, paths=ALL)
    y, slope = n - 1 + math.cos(n * x), -n * math.sin(n * x)
    exact = {"square": 2 * y * slope, "sqrt": slope / (2 * math.sqrt(y))}
    assert result.function.value == pytest.approx(y, rel=1e-12)
    assert result.function.exact_value == pytest.approx(y, rel=1e-14)
    assert (result.function.inputs, result.function.outputs) == (1, 1)
    for name, head in result.heads.items():
        assert head.exact_gradient == pytest.approx((exact[name],), rel=1e-12)
        assert head.error_reference == "closed form"
        assert head.agreement_reference == "recompute"
        assert head.domain == ""
        for path in PATHS:
            gradient, naive = entry(head.gradient[path]), entry(head.gradient["recompute"])
            assert gradient == pytest.approx(exact[name], rel=1e-9)
            assert head.error[path] == pytest.approx(abs(gradient / exact[name] - 1), abs=1e-15)
            assert head.agreement[path] == pytest.approx(abs(gradient / naive - 1), abs=1e-15)
    assert result.heads["square"].value == pytest.approx(y**2, rel=1e-12)


def test_float32_is_held_against_the_truth_and_not_only_against_the_naive_path() -> None:
    result = run(size=200, dtype="float32", repeats=1, paths=ALL)
    slope = -200 * math.sin(200)
    for path in PATHS:
        error = result.heads["sqrt"].error[path]
        exact = slope / (2 * math.sqrt(199 + math.cos(200)))
        expected = abs(entry(result.heads["sqrt"].gradient[path]) / exact - 1)
        assert error == pytest.approx(expected, rel=1e-6)
        assert error is not None and error > 1e-6  # far above what agreement alone would show
    assert result.heads["sqrt"].agreement["recompute"] == 0


NETWORK: dict[str, Any] = {
    "function": "tanh_network",
    "size": 6,
    "outputs": 4,
    "seed": 3,
    "heads": "square,exp",
}


def dense(values: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """(y, dy/dx) of a function in float64, by torch's own Jacobian."""
    chosen = experiment(**values | {"dtype": "float64"})
    problem = FUNCTIONS[chosen.function].build(chosen.setting)
    jacobian: Callable[..., Tensor] = torch.autograd.functional.jacobian
    return problem.f(problem.x), jacobian(problem.f, problem.x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("paths", [ALL, "recompute", "retain_graph"])
def test_spectral_norms_are_those_of_a_dense_jacobian(paths: str, dtype: str) -> None:
    result = run(**NETWORK, paths=paths, dtype=dtype)
    rel = 1e-5 if dtype == "float32" else 1e-12
    y, matrix = dense(NETWORK)
    norm = torch.linalg.svdvals(matrix)[0].item()
    assert result.jacobian.spectral_norm == pytest.approx(norm, rel=rel)
    for name, cotangent in {"square": 2 * y, "exp": y.exp()}.items():
        found = result.jacobian.heads[name]
        assert found.spectral_norm == pytest.approx(cotangent.norm().item(), rel=rel)
        assert found.composite == pytest.approx((cotangent @ matrix).norm().item(), rel=rel)
        assert found.bound == pytest.approx(cotangent.norm().item() * norm, rel=rel)
        assert found.composite <= found.bound * (1 + rel)
    formed = "that reuse formed" if "reuse" in paths else "formed for this"
    assert formed in result.jacobian.method
    assert result.jacobian.source == ("reuse" if "reuse" in paths else "")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_network_is_held_against_float64(dtype: str) -> None:
    result = run(**NETWORK, dtype=dtype, paths=ALL)
    y, matrix = dense(NETWORK)
    expected = {"square": 2 * y @ matrix, "exp": y.exp() @ matrix}
    for name, head in result.heads.items():
        assert head.exact_gradient == pytest.approx(tuple(expected[name].tolist()), rel=1e-10)
        assert head.error_reference.startswith("the same experiment in float64 on the CPU")
        assert ("rounding only" in head.error_reference) == (dtype == "float64")
        for path in PATHS:
            gradient = torch.tensor(head.gradient[path], dtype=torch.float64)
            error = (gradient - expected[name]).norm() / expected[name].norm()
            assert head.error[path] == pytest.approx(error.item(), rel=1e-3, abs=1e-14)
            assert error < (1e-5 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("heads", ["square", "square,exp,mean"])
@pytest.mark.parametrize("outputs", [1, 5])
def test_passes_are_of_one_execution(heads: str, outputs: int) -> None:
    result = run(**NETWORK | {"heads": heads, "outputs": outputs}, repeats=3, paths=ALL)
    k = len(heads.split(","))
    passes = {
        name: (path.forward_passes, path.backward_passes, path.forward_mode_passes)
        for name, path in result.paths.items()
    }
    assert passes == {
        "recompute": (k, k, 0),
        "retain_graph": (1, k, 0),
        "reuse": (1, outputs, 0),
        "batched_vjp": (1, k, 0),
        "low_rank_vjp": (1, min(k, outputs), 0),
        "jvp": (0, 0, 6),
        "auto": passes[result.paths["auto"].taken],
        "torchjd": (1, k, 0),
    }
    assert (result.function.inputs, result.function.outputs) == (6, outputs)


@pytest.mark.parametrize("repeats", [1, 4])
def test_every_path_is_timed_as_often_as_asked(repeats: int) -> None:
    result = run(repeats=repeats)
    for path in result.paths.values():
        assert path.status == "measured" and path.seconds is not None
        assert len(path.seconds.runs) == repeats
        assert path.seconds.minimum == min(path.seconds.runs) > 0


def test_saved_bytes_are_counted_to_the_byte() -> None:
    # Of each of two layers: tanh saves its output, the product its weight, once for all heads;
    # `square` saves y, which is there already, and x needs no saving. reuse still holds f's graph
    # while it differentiates the heads, on a copy of y.
    result = run(function="tanh_network", size=10, layers=2, heads="square,mean", dtype="float32")
    weights, outputs = 2 * 10 * 10 * 4, 2 * 10 * 4
    assert result.paths["retain_graph"].saved_bytes == weights + outputs
    assert result.paths["recompute"].saved_bytes == weights + outputs
    assert result.paths["reuse"].saved_bytes == weights + outputs + 10 * 4


@pytest.mark.parametrize(
    "paths, reference",
    [
        ("recompute,retain_graph,reuse", "recompute"),
        ("reuse,retain_graph", "retain_graph"),
        ("reuse,recompute", "recompute"),
        ("reuse", None),
    ],
)
def test_agreement_is_with_the_first_naive_path_that_was_run(
    paths: str, reference: str | None
) -> None:
    head = run(paths=paths).heads["square"]
    assert head.agreement_reference == reference
    assert list(head.agreement) == paths.split(",")
    assert all((value is None) == (reference is None) for value in head.agreement.values())
    assert all(value is not None for value in head.error.values())


def test_partial_results_come_path_by_path() -> None:
    results = [each for each in seen(experiment()) if isinstance(each, Result)]
    known = [len(each.heads["square"].gradient) for each in results]
    assert known[:4] == [1, 2, 3, 4]
    assert all(each.status == "running" for each in results[:-1])
    assert results[-1].status == "done"
    assert [path.status for path in results[0].paths.values()].count("running") == 4
    for each in results:
        assert Result.from_json(each.to_json()) == each


def test_progress_counts_down_and_names_what_is_done() -> None:
    told = [each for each in seen(experiment(repeats=3)) if isinstance(each, Progress)]
    texts = [each.text for each in told]
    assert texts[0] == "building f"
    for path in DEFAULT_PATHS:
        assert f"warming up {path}" in texts
        assert f"round 3 of 3: {path}" in texts
    assert all(each.remaining is None or each.remaining >= 0 for each in told)
    assert told[-1].remaining is not None


def test_rounds_interleave_the_paths() -> None:
    told = [each.text for each in seen(experiment(repeats=2)) if isinstance(each, Progress)]
    rounds = [text for text in told if text.startswith("round")]
    assert [text.partition(": ")[2] for text in rounds] == [*DEFAULT_PATHS, *DEFAULT_PATHS]


# The budget.


class Clock:
    """A clock that stands still but for what is timed, which takes the next of some seconds."""

    def __init__(self, *seconds: float) -> None:
        self._now = 0.0
        self._seconds = list(seconds)  # the last of them again and again

    def monotonic(self) -> float:
        return self._now

    def timed(self, run: Callable[[], Any]) -> tuple[float, Any]:
        seconds = self._seconds.pop(0) if len(self._seconds) > 1 else self._seconds[0]
        self._now += seconds
        return seconds, run()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Starts a Clock of these seconds in the place of the real one."""

    def start(*seconds: float) -> None:
        clock = Clock(*seconds)
        monkeypatch.setattr("explorer.execute.time", clock)
        for module in ("execute", "scaling"):
            monkeypatch.setattr(f"explorer.{module}.timed", clock.timed)

    return start


ONE_PASS = {"function": "tanh_network", "outputs": 1, "heads": "mean"}  # each way, on every path


@pytest.mark.parametrize(
    "seconds, forward", [((0.5, 0.25), 0.25), ((0.25, 0.5), 0.25), ((2.0, 1.0), 1.0), ((3, 1), 3)]
)
def test_predictions_are_from_the_faster_of_two_forwards_or_a_slow_one(
    seconds: tuple[float, float], forward: float, clock: Callable[..., None]
) -> None:
    clock(*seconds, 1.0)
    result = run(**ONE_PASS)
    first, *_ = result.paths.values()
    cost = result.experiment.described.cost(result.experiment.setting)
    both = forward * (1 + cost.backward.seconds / cost.forward.seconds)
    assert first.predicted_seconds == pytest.approx(both)


def test_path_that_will_not_fit_is_predicted_and_not_run() -> None:
    result = run(size=300, budget=1e-6)
    for name, path in result.paths.items():
        assert path.status == "predicted"
        assert path.seconds is None and path.saved_bytes is None
        assert path.predicted_seconds is not None and path.predicted_seconds > 0
        assert "not run: it would take about" in path.note and "budget" in path.note
        assert (path.forward_passes, path.backward_passes) == {
            "recompute": (2, 2),
            "retain_graph": (1, 2),
            "reuse": (1, 1),
            "auto": (1, 1),
        }[name]
    assert result.heads["square"].gradient == {}
    assert result.heads["square"].value == pytest.approx((299 + math.cos(300)) ** 2)
    assert result.jacobian.spectral_norm is None
    assert result.jacobian.method.startswith("left out: dy/dx would take about")
    assert result.status == "done"


@pytest.mark.parametrize("budget, fits", [(60.0, False), (150.0, True)])
def test_cheap_path_runs_where_an_expensive_one_does_not_fit(
    budget: float, fits: bool, clock: Callable[..., None]
) -> None:
    # A pass takes 1 s, and 100 entries of y as many backward passes with reuse.
    clock(1.0, 1.0, 2.0)
    result = run(**ONE_PASS | {"outputs": 100}, budget=budget)
    for path in ("recompute", "retain_graph"):
        assert result.paths[path].status == "measured"
    reuse = result.paths["reuse"]
    assert reuse.predicted_seconds == 101
    assert (reuse.status == "measured") == fits == ("reuse" in result.heads["mean"].gradient)
    words = "not run: it would take about 101 s, more than is left of the budget of 60 s"
    assert reuse.note == ("" if fits else words)


# Two forwards and two warm-ups of three paths take 8 s, every repeat 1 s.
@pytest.mark.parametrize("budget, last, runs", [(16.0, 3, [3, 3, 2]), (9.0, 1, [1, 1, 1])])
def test_budget_ends_the_repeats_with_a_note(
    budget: float, last: int, runs: list[int], clock: Callable[..., None]
) -> None:
    clock(1.0)
    result = run(**ONE_PASS, paths="recompute,retain_graph,reuse", repeats=1000, budget=budget)
    assert result.notes == (
        f"The budget of {budget:.2g} s ended the repeats in round {last} of 1000.",
    )
    assert [len(path.seconds.runs) for path in result.paths.values() if path.seconds] == runs


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The dtypes in which a tanh_network is built."""
    described, dtypes = FUNCTIONS["tanh_network"], []

    def build(setting: Setting) -> Problem:
        dtypes.append(setting.dtype)
        return described.build(setting)

    monkeypatch.setitem(FUNCTIONS, "tanh_network", replace(described, build=build))
    return dtypes


def test_reference_is_left_out_with_a_word_where_the_budget_forbids_it(built: list[str]) -> None:
    result = run(function="tanh_network", size=50, dtype="float32", budget=1e-6)
    for head in result.heads.values():
        assert head.error_reference.startswith("none: the reference in float64 on the CPU would")
        assert head.error_reference.endswith("more than is left of the budget")
        assert head.exact_gradient is None
    assert built == ["float32"]


def test_reference_that_is_slower_in_float64_is_left_out(clock: Callable[..., None]) -> None:
    clock(1.0, 1.0, *[2.0] * 6, 40.0, 2.0)  # the forwards, the warm-ups, the forward in float64
    result = run(**ONE_PASS, dtype="float32", budget=100.0)
    assert result.heads["mean"].error_reference == (
        "none: the reference in float64 on the CPU would take about 80 s, "
        "more than is left of the budget"
    )


# Domains.


def test_head_outside_its_domain_is_told_and_the_others_stay() -> None:
    result = run(function="tanh_network", size=6, heads="sqrt,log,mean")
    outside = int((dense({"function": "tanh_network", "size": 6})[0] < 0).sum())
    assert 0 < outside < 6
    for name in ("sqrt", "log"):
        head = result.heads[name]
        assert math.isnan(head.value)
        assert head.domain == (
            f"{outside} of 6 entries of y lie outside the domain of {name}, "
            f"{HEADS[name].domain}: its value is NaN."
        )
    assert all(
        error is not None and math.isnan(error) for error in result.heads["sqrt"].error.values()
    )
    assert math.isfinite(result.heads["mean"].value) and result.heads["mean"].domain == ""
    assert result.heads["mean"].agreement["reuse"] == pytest.approx(0, abs=1e-12)
    assert math.isnan(result.jacobian.heads["sqrt"].composite)
    assert math.isfinite(result.jacobian.heads["mean"].composite)
    json.loads(result.to_json(), parse_constant=pytest.fail)


def test_head_that_overflows_is_told_and_the_others_stay() -> None:
    result = run(size=100, dtype="float32", heads="exp,square")
    assert result.heads["exp"].value == math.inf
    assert result.heads["exp"].domain == (
        "exp overflows float32, whose largest number is 3.4e+38: its value is infinite."
    )
    assert result.heads["square"].domain == ""
    assert result.heads["square"].agreement["reuse"] is not None


def test_gradient_that_overflows_is_told_and_the_value_stays() -> None:
    result = run(size=86, dtype="float32", heads="exp,square")
    exp = result.heads["exp"]
    assert math.isfinite(exp.value)
    assert exp.gradient == dict.fromkeys(DEFAULT_PATHS, (math.inf,))
    assert exp.domain == (
        "The gradient of exp overflows float32, whose largest number is 3.4e+38; "
        "in float64 it is finite."
    )
    assert "exp is left out: it has no finite gradient here" in sentences.summary(result)
    assert not sentences.wrong_paths(result)


def broken(monkeypatch: pytest.MonkeyPatch, paths: list[str]) -> None:
    """Makes some paths give infinite gradients."""

    def wrong(*given: Any, path: str) -> Gradients:
        found = gradients(*given, path=path)
        infinite = tuple(each * math.inf for each in found.gradients)
        return replace(found, gradients=infinite) if path in paths else found

    monkeypatch.setattr("explorer.execute.gradients", wrong)


@pytest.mark.parametrize("paths", [["reuse"], ["recompute", "retain_graph"], list(DEFAULT_PATHS)])
def test_path_without_a_finite_gradient_is_at_fault_where_there_is_one(
    paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, paths)
    result = run()
    for name, head in result.heads.items():
        assert head.domain == ""
        assert {sentences.judgement(result, name, path) for path in paths} == {"wrong"}
    assert sentences.wrong_paths(result) == set(paths)


def test_gradient_that_no_path_gives_and_nothing_else_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken(monkeypatch, list(DEFAULT_PATHS))
    result = run(**ONE_PASS)
    assert result.heads["mean"].domain == (
        "The gradient of mean is not finite in float64 at this y, though its value is."
    )
    assert not sentences.wrong_paths(result)


def test_large_gradients_are_compared_without_overflow() -> None:
    result = run(size=60, dtype="float32", heads="exp")  # exp(60) squared is above float32
    assert result.heads["exp"].domain == ""
    assert result.heads["exp"].error["reuse"] is not None
    assert 0 <= result.heads["exp"].error["reuse"] < 1
    norms = result.jacobian.heads["exp"]
    assert math.isfinite(norms.spectral_norm) and math.isfinite(norms.composite)


# Large gradients.


def test_gradient_of_more_than_16_entries_is_given_in_short() -> None:
    values = {"function": "tanh_network", "size": 17, "heads": "square"}
    short, full = run(**values), run(full=True, **values)
    whole = full.heads["square"].gradient["reuse"]
    assert isinstance(whole, tuple) and len(whole) == 17
    given = short.heads["square"].gradient["reuse"]
    assert isinstance(given, Array)
    assert given.shape == (17,)
    assert given.first == pytest.approx(whole[:16], rel=1e-12)
    assert given.norm == pytest.approx(math.hypot(*whole), rel=1e-12)
    assert isinstance(short.function.value, Array) and isinstance(full.function.value, tuple)


def test_gradient_of_16_entries_is_listed() -> None:
    result = run(function="tanh_network", size=16, heads="square")
    listed = result.heads["square"].gradient["reuse"]
    assert isinstance(listed, tuple) and len(listed) == 16


# What is refused before anything runs.


def test_experiment_that_cannot_fit_is_refused_before_it_is_begun() -> None:
    events = execute(experiment(size=1000), memory_limit=10**8)
    with pytest.raises(DoesNotFit) as caught:
        next(events)
    assert str(caught.value).startswith("matrix_exp_trace of size 1000 in float64 needs about ")
    assert "0.1 GB are free on cpu" in str(caught.value)
    assert str(caught.value).endswith("Choose a smaller size, or float32.")
    with pytest.raises(DoesNotFit, match=r"Choose a smaller size\.$"):
        next(execute(experiment(size=1000, dtype="float32"), memory_limit=10**8))


def test_reference_is_left_out_with_a_word_where_the_memory_forbids_it(built: list[str]) -> None:
    chosen = experiment(function="tanh_network", size=50, dtype="float32")
    own, wide = (
        int(chosen.described.cost(replace(chosen.setting, dtype=dtype)).memory_bytes)
        for dtype in ("float32", "float64")
    )
    for limit, dtypes in ((own + wide, ["float32", "float64"]), (own + wide - 1, ["float32"])):
        built.clear()
        result = seen(chosen, memory_limit=limit)[-1]
        assert isinstance(result, Result) and built == dtypes
        known = [head.exact_gradient is not None for head in result.heads.values()]
        assert known == [len(dtypes) == 2] * 2
    assert result.heads["square"].error_reference == (
        f"none: the reference in float64 on the CPU needs about {wide / 1e9:.2g} GB, "
        "more than is left of the memory"
    )
    same = experiment(function="tanh_network", size=50)
    *_, result = execute(same, memory_limit=wide)
    assert isinstance(result, Result) and result.heads["square"].exact_gradient is not None


def test_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidExperiment) as caught:
        next(execute(experiment(device="cuda:99")))
    problem = caught.value.problems["device"]
    assert problem.startswith("Device cuda:99 is not on this machine. Allowed: cpu")


def test_environment_is_recorded() -> None:
    environment = run().environment
    assert environment.torch == torch.__version__
    assert environment.threads == torch.get_num_threads()
    assert environment.device_name and environment.host
    assert environment.started.endswith("+00:00")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_runs_on_a_gpu(function: str) -> None:
    result = run(function=function, device="cuda:0")
    for head in result.heads.values():
        assert head.agreement["reuse"] is not None
    assert result.environment.device_name == torch.cuda.get_device_name(0)
    assert all(path.peak_memory_bytes is not None for path in result.paths.values())


# The plan.


def test_every_path_says_what_it_does_and_auto_what_it_took() -> None:
    result = run(paths=ALL)
    for name, path in result.paths.items():
        assert path.plan.endswith(".")
        assert path.taken == ("reuse" if name == "auto" else "")
    assert result.paths["auto"].plan == result.paths["reuse"].plan


def test_notes_of_a_plan_are_notes_of_the_result_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def noted(*given: Any, path: str) -> Gradients:
        found = gradients(*given, path=path)
        return replace(found, plan=replace(found.plan, notes=("f is random.", f"{path} is.")))

    monkeypatch.setattr("explorer.execute.gradients", noted)
    notes = run(paths="reuse,recompute").notes
    assert sorted(notes) == ["f is random.", "recompute is.", "reuse is."]


def test_rank_is_known_once_a_path_has_found_it() -> None:
    """Two heads that depend on y in one direction: by the sizes, the rank might be two."""
    values = {"function": "tanh_network", "size": 6, "heads": "mean,logsumexp", "gain": 1e-9}
    results = [
        each
        for each in seen(experiment(**values, paths="low_rank_vjp,torchjd"))
        if isinstance(each, Result)
    ]
    assert results[-1].paths["low_rank_vjp"].backward_passes == 1


def test_import_of_the_peer_is_no_run_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = []

    def noted(*arguments: Any, path: str, **options: Any) -> Any:
        imported.append("torchjd.autojac" in sys.modules)
        return gradients(*arguments, path=path, **options)

    monkeypatch.delitem(sys.modules, "torchjd.autojac", raising=False)
    monkeypatch.setattr("explorer.execute.gradients", noted)
    run(paths="torchjd")
    assert all(imported)


def test_path_whose_package_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.experiment.find_spec", lambda name: None)
    with pytest.raises(InvalidExperiment) as caught:
        next(execute(experiment(paths="reuse,torchjd")))
    assert caught.value.problems.keys() == {"paths"}
    assert "pip install torchjd" in caught.value.problems["paths"]
    assert run(paths="reuse").status == "done"


# The scaling.


def test_scaling_is_measured_where_it_is_asked_for() -> None:
    result = run(function="tanh_network", size=4, scaling="heads,outputs", cutoff=0.005)
    assert list(result.scaling) == ["heads", "outputs"]
    assert run().scaling == {}


def test_points_of_a_scaling_come_as_they_are_measured(clock: Callable[..., None]) -> None:
    clock(1.0)
    asked = experiment(size=4, scaling="heads", cutoff=100.0, paths="reuse")
    results = [each for each in seen(asked) if isinstance(each, Result)]
    scans = [each.scaling["heads"].paths["reuse"] for each in results if each.scaling]
    counts = [len(scan.measured) for scan in scans]
    assert counts[0] == 0 and sorted(counts) == counts and len(set(counts)) > 3
    assert {each.status for each in results[:-1]} == {"running"}


def test_scaling_that_f_has_no_parameter_for_is_told() -> None:
    result = run(scaling="outputs")
    assert result.scaling == {}
    assert (
        "No scaling along outputs: matrix_exp_trace has no parameter for the number of them."
    ) in result.notes


def test_scaling_stays_within_the_budget_and_counts_in_what_remains(
    clock: Callable[..., None],
) -> None:
    clock(1.0)  # 6 s before the scaling, 12 s for one pass of each kind
    asked = experiment(**ONE_PASS, paths="recompute", scaling="heads", cutoff=100.0, budget=22.0)
    told = seen(asked)
    (scan,) = [each.scaling for each in told if isinstance(each, Result)][-1].values()
    assert scan.paths["recompute"].ended == (
        "5 heads would take about 2.5 s, more than is left of the budget"
    )
    assert [point.count for point in scan.paths["recompute"].measured] == [1, 2]
    before = next(e for e in told if isinstance(e, Progress) and e.text.startswith("round 1"))
    assert before.remaining is not None and before.remaining == 18
