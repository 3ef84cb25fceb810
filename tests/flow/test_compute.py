"""gradient_flow of a stack of one's own, and the run of a FlowExperiment."""

import math
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import explorer
from explorer.events import Progress
from explorer.execute import DoesNotFit
from explorer.experiment import InvalidExperiment
from explorer.flow import compute
from explorer.flow.compute import execute_flow, gradient_flow, memory_bytes
from explorer.flow.experiment import FIELDS, LOSSES, FlowExperiment
from explorer.flow.network import network
from explorer.flow.result import Flow

DOUBLE = torch.float64
CELLS = FIELDS["cell"].choices
STARTS = FIELDS["start"].choices


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=DOUBLE)


def seen(experiment: FlowExperiment, **options: Any) -> list[Progress | Flow]:
    return list(execute_flow(experiment, **options))


def finished(**values: Any) -> Flow:
    last = seen(FlowExperiment(**({"size": 6, "steps": 5, "repeats": 2} | values)))[-1]
    assert isinstance(last, Flow)
    return last


# A stack of one's own.


def test_linear_recurrence_is_told_as_its_powers_have_it() -> None:
    n, steps = 5, 60
    w, x, c = normal(n, n) / 3, normal(n, seed=1), normal(n, seed=2)
    losses = {"along c": lambda h: c @ h, "energy": lambda h: h @ h / 2}
    flow = gradient_flow([lambda h: w @ h] * steps, x, losses)
    powers = [torch.linalg.matrix_power(w, steps - t) for t in range(steps + 1)]
    end = powers[0] @ x
    for name, cotangent in (("along c", c), ("energy", end)):
        expected = [float((cotangent @ power).norm()) for power in powers]
        assert flow.gradients[name] == pytest.approx(expected, rel=1e-9)
    norm = float(torch.linalg.matrix_norm(w, 2))
    assert flow.steps == pytest.approx([norm] * steps)
    assert flow.bound == pytest.approx([norm ** (steps - t) for t in range(steps + 1)])
    assert flow.fan is not None
    assert flow.fan.times[0] == 0 and flow.fan.times[-1] == steps and len(flow.fan.times) == 41
    for t, largest in zip(flow.fan.times, flow.fan.largest, strict=True):
        assert largest == pytest.approx(float(torch.linalg.matrix_norm(powers[t], 2)), rel=1e-9)
    assert flow.names == ("<lambda>",) * steps
    assert (flow.status, flow.samples, flow.dtype) == ("done", 1, "float64")
    assert (flow.experiment, flow.ways, flow.without_fan, flow.notes) == (None, None, "", ())


def test_what_it_gives_is_public_and_plain_data() -> None:
    flow = explorer.gradient_flow([torch.tanh, torch.sin], torch.ones(3), [torch.sum])
    assert Flow.from_json(flow.to_json()) == flow
    assert flow.dtype == "float32" and flow.environment.torch == torch.__version__


def test_batch_is_the_mean_over_its_samples() -> None:
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.BatchNorm1d(6).eval(), nn.Linear(6, 3))
    net.double()
    x = normal(7, 4)
    losses: dict[str, Callable[[Tensor], Tensor]] = {
        "energy": lambda h: (h**2).sum(),
        "sum": torch.sum,
    }
    together = gradient_flow(net, x, losses, batch=True)
    alone = [gradient_flow(net, x[i : i + 1], losses) for i in range(7)]

    def mean(values: Callable[[Flow], Any]) -> list[float]:
        return torch.tensor([values(flow) for flow in alone], dtype=DOUBLE).mean(0).tolist()

    assert (together.samples, alone[0].samples) == (7, 1)
    for name in losses:
        assert together.gradients[name] == pytest.approx(mean(lambda f, n=name: f.gradients[n]))
    assert together.steps == pytest.approx(mean(lambda flow: flow.steps))
    assert together.bound == pytest.approx(mean(lambda flow: flow.bound))
    assert together.fan is not None
    assert together.fan.largest == pytest.approx(mean(lambda flow: flow.fan.largest))
    assert together.fan.smallest == pytest.approx(mean(lambda flow: flow.fan.smallest))


def test_batch_norm_in_training_mode_is_refused_by_name() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    with pytest.raises(ValueError, match=r"step 2 \(BatchNorm1d\) mixes the samples"):
        gradient_flow(net, torch.randn(3, 4), [torch.sum], batch=True)


def test_gradients_of_the_stack_itself_are_left_alone() -> None:
    net, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True)), torch.randn(3)
    kept = x.clone()
    gradient_flow(net, x, [torch.sum])
    assert all(parameter.grad is None for parameter in net.parameters())
    assert torch.equal(x, kept) and not x.requires_grad


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_runs_where_gradients_are_off(mode: Callable[[], Any]) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh()).double()
    expected = gradient_flow(net, normal(3), [torch.sum])
    with mode():
        found = gradient_flow(net, normal(3), [torch.sum])
    assert (found.steps, found.gradients) == (expected.steps, expected.gradients)


def test_step_that_gives_the_same_tensor_each_time() -> None:
    kept = torch.zeros(3, dtype=DOUBLE)
    flow = gradient_flow(3 * [lambda h: kept.copy_(2 * h)], normal(3), [torch.sum])
    assert flow.steps == pytest.approx((2, 2, 2)) and flow.bound[0] == pytest.approx(8)
    assert flow.gradients["sum"][1] == pytest.approx(4 * math.sqrt(3))


@pytest.mark.parametrize(
    "modules, names",
    [
        (nn.Sequential(nn.Linear(3, 3), nn.Tanh()), ("Linear", "Tanh")),
        (nn.ModuleList([nn.Tanh(), nn.Identity()]), ("Tanh", "Identity")),
        ((torch.tanh, nn.Tanh()), ("tanh", "Tanh")),
    ],
)
def test_steps_are_named(modules: Any, names: tuple[str, ...]) -> None:
    assert gradient_flow(modules, torch.ones(3), [torch.sum]).names == names


def test_steps_of_a_stack_with_names_have_them() -> None:
    net = nn.Sequential(OrderedDict(first=nn.Tanh(), second=nn.Tanh()))
    assert gradient_flow(net, torch.ones(3), [torch.sum]).names == ("first", "second")


def test_module_that_a_stack_holds_twice_is_two_steps() -> None:
    linear, tanh = nn.Linear(3, 3).double(), nn.Tanh()
    flow = gradient_flow(nn.Sequential(linear, tanh, linear, tanh), normal(3), [torch.sum])
    assert flow.names == ("Linear", "Tanh", "Linear", "Tanh")
    norm = float(torch.linalg.matrix_norm(linear.weight.detach(), 2))
    assert flow.steps[::2] == pytest.approx((norm, norm))


def test_losses_of_a_list_are_named_apart() -> None:
    def energy(h: Tensor) -> Tensor:
        return (h**2).sum()

    losses = [energy, lambda h: h.sum(), energy, torch.sum]
    flow = gradient_flow([torch.tanh], torch.ones(3), losses)
    assert list(flow.gradients) == ["energy", "loss 2", "energy 3", "sum"]


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ((nn.Linear(3, 3), torch.ones(3), [torch.sum]), TypeError, "`modules` is a Linear. Give a"),
        ((nn.Sequential(), torch.ones(3), [torch.sum]), ValueError, "`modules` is empty"),
        (([], torch.ones(3), [torch.sum]), ValueError, "`modules` is empty. Give at least one"),
        (([torch.tanh, 3], torch.ones(3), [torch.sum]), TypeError, r"`modules\[1\]` is 3, which"),
        (([torch.tanh], [1.0], [torch.sum]), TypeError, "`x` is a list. Give one torch.Tensor"),
        (([torch.tanh], torch.ones(3).long(), [torch.sum]), TypeError, "`x` has dtype torch.int64"),
        (([torch.tanh], torch.ones(3) + 1j, [torch.sum]), TypeError, "dtype torch.complex64"),
        (([torch.tanh], torch.ones(0), [torch.sum]), ValueError, r"`x` has shape \(0,\)"),
        (([torch.tanh], torch.ones(3), []), ValueError, "`losses` is empty. Give at least one"),
        (([torch.tanh], torch.ones(3), {}), ValueError, "`losses` is empty. Give at least one"),
        (([torch.tanh], torch.ones(3), torch.sum), TypeError, "`losses` is a builtin_function"),
        (([torch.tanh], torch.ones(3), {"a": 1}), TypeError, "The loss a is 1, which cannot be"),
        (([torch.tanh], torch.ones(3), {"a": torch.sin}), ValueError, "loss a returned shape"),
    ],
)
def test_what_it_does_not_take(
    arguments: tuple[Any, ...], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        gradient_flow(*arguments)


def test_single_number_is_no_batch() -> None:
    with pytest.raises(ValueError, match="`x` is a single number, which has no samples"):
        gradient_flow([torch.tanh], torch.tensor(1.0), [torch.sum], batch=True)


def test_not_finite_and_zero_are_told_as_they_are() -> None:
    flow = gradient_flow(
        [torch.sqrt, lambda h: 0 * h, torch.tanh], -torch.ones(2), {"sum": torch.sum}
    )
    assert math.isnan(flow.steps[0]) and math.isnan(flow.gradients["sum"][0])
    assert flow.fan is not None and math.isnan(flow.fan.largest[0])
    assert flow.notes == (
        "h_1 is not finite (step 1 (sqrt)): what is computed from there on is not finite either.",
    )
    flat = gradient_flow([torch.tanh, lambda h: 0 * h], torch.ones(2), {"sum": torch.sum})
    assert flat.steps[1] == 0 and flat.bound == (0, 0, 1)
    assert flat.gradients["sum"] == pytest.approx((0, 0, math.sqrt(2)))
    assert Flow.from_json(flat.to_json()) == flat


@pytest.mark.parametrize(
    "limit, words",
    [
        ("FORMED", r"The Jacobian of step 1 \(Linear\) takes 2e-07 GB, more than the"),
        ("TOGETHER", r"The Jacobians of all steps take 4e-07 GB together, more than the"),
    ],
)
def test_too_large_to_keep_has_no_fan_but_all_else(
    limit: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = nn.Sequential(nn.Linear(5, 5), nn.Tanh()).double()
    whole = gradient_flow(net, normal(5), [torch.sum])
    monkeypatch.setattr(compute, limit, 199)  # bytes; each of the two takes 200
    if limit == "FORMED":  # spectral_norm's own tests hold it against dense matrices
        monkeypatch.setattr(compute.Walk, "norms_without", norms_by_matrix)
    flow = gradient_flow(net, normal(5), [torch.sum])
    assert flow.fan is None
    assert flow.gradients == whole.gradients
    assert flow.steps == pytest.approx(whole.steps) and flow.bound == pytest.approx(whole.bound)
    assert re.match(words, flow.without_fan)
    told = ("step 1 (Linear): a note", "step 2 (Tanh): a note") if limit == "FORMED" else ()
    assert flow.notes == told


def test_products_wider_than_every_step_are_not_formed() -> None:
    net = nn.Sequential(nn.Linear(3000, 2), nn.Linear(2, 3000)).double()
    flow = gradient_flow(net, normal(3000), [torch.sum])
    assert flow.fan is None
    assert flow.without_fan.startswith("The products of the Jacobians take up to 0.072 GB, more")
    expected = [float(torch.linalg.matrix_norm(step.weight.detach(), 2)) for step in net]
    assert flow.steps == pytest.approx(expected)


def norms_by_matrix(walk: compute.Walk, t: int) -> tuple[Tensor, list[str]]:
    return torch.linalg.matrix_norm(walk.jacobian(t), 2), ["a note"]


# An experiment.


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("start", STARTS)
def test_every_network_runs_and_both_ways_agree(cell: str, start: str) -> None:
    flow = finished(cell=cell, start=start, gain=2.0)
    assert flow.status == "done" and flow.fan is not None and flow.ways is not None
    assert list(flow.gradients) == list(LOSSES)
    assert {len(each) for each in flow.gradients.values()} == {6}
    assert (len(flow.steps), len(flow.bound), flow.names) == (5, 6, (cell,) * 5)
    assert flow.ways.difference < 1e-13
    for way in (flow.ways.naive, flow.ways.jacobians, flow.ways.chain):
        assert len(way.runs) == 2
    assert Flow.from_json(flow.to_json()) == flow


def test_numbers_are_those_of_the_network() -> None:
    chosen = FlowExperiment(size=6, steps=5, losses=("energy",), repeats=1)
    flow = finished(**chosen.values)
    built = network(chosen)
    states = [built.x.clone().requires_grad_()]
    for step in built.steps:
        states.append(step(states[-1]))
    gradients = torch.autograd.grad(built.losses["energy"](states[-1]), states)
    assert flow.gradients["energy"] == pytest.approx([float(each.norm()) for each in gradients])
    for step, state, norm in zip(built.steps, states, flow.steps, strict=False):
        matrix = torch.autograd.functional.jacobian(step, state.detach())
        assert norm == pytest.approx(float(torch.linalg.matrix_norm(matrix, 2)))


def test_default_experiment_vanishes_and_an_orthogonal_start_does_not() -> None:
    default = finished(repeats=1, size=32, steps=40)
    orthogonal = finished(repeats=1, size=32, steps=40, start="orthogonal")
    for name in LOSSES:
        first, *_, last = default.gradients[name]
        assert first < 1e-6 * last
        first, *_, last = orthogonal.gradients[name]
        assert first > 0.1 * last


def test_progress_and_partial_flows_come_before_the_end() -> None:
    events = seen(FlowExperiment(size=4, steps=3, repeats=2))
    flows = [each for each in events if isinstance(each, Flow)]
    texts = [each.text for each in events if isinstance(each, Progress)]
    assert [each.status for each in flows[:-1]] == ["running"] * (len(flows) - 1)
    assert flows[-1].status == "done" and flows[-1] is events[-1]
    first = flows[0]
    assert first.fan is None and first.without_fan and first.ways is None
    assert first.gradients == flows[-1].gradients and first.steps == flows[-1].steps
    untimed = [each for each in flows if each.fan is not None and each.ways is None]
    assert untimed and untimed[-1].fan == flows[-1].fan
    assert texts[0] == "running the steps" and "round 2 of 2: chain" in texts
    left = [each.remaining for each in events if isinstance(each, Progress)]
    assert left[0] is None and all(each is not None and each >= 0 for each in left[-6:])


def test_vanishing_below_what_float32_holds_is_no_disagreement() -> None:
    flow = finished(cell="relu", size=8, steps=300, dtype="float32", repeats=1)
    assert flow.gradients["readout"][0] == 0 < flow.gradients["readout"][-1]
    assert flow.ways is not None and flow.ways.difference < 1e-4


def test_exploding_beyond_all_numbers_is_told() -> None:
    flow = finished(cell="relu", start="gain", gain=100.0, size=8, steps=400, repeats=1)
    assert flow.notes and "is not finite" in flow.notes[0]
    assert Flow.from_json(flow.to_json()).notes == flow.notes


def test_what_does_not_fit_is_refused_before_anything_runs() -> None:
    chosen = FlowExperiment(cell="lstm", size=256, steps=500)
    assert memory_bytes(chosen) > 500 * 512**2 * 8
    with pytest.raises(DoesNotFit, match="lstm of hidden size 256 over 500 steps in float64 needs"):
        next(execute_flow(chosen, memory_limit=10**9))


def test_device_that_is_not_there_is_invalid() -> None:
    with pytest.raises(InvalidExperiment) as caught:
        seen(FlowExperiment(device="cuda:99"))
    assert caught.value.problems.keys() == {"device"}
