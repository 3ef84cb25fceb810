"""Heads tried on y and dy/dx that are kept give what a run would, and f is not called."""

import pytest
import torch

from explorer.events import Done, Linearized, Trial
from explorer.execute import execute
from explorer.experiment import Experiment
from explorer.linearization import LARGEST, linearized, trials
from explorer.worker import Worker

DOUBLE = torch.float64
Y = torch.tensor([2.0, 3.0], dtype=DOUBLE)
X = torch.tensor([5.0, 7.0, 11.0], dtype=DOUBLE)
J = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=DOUBLE)


def tried(*entries: str) -> dict[str, Trial | str]:
    kept = linearized(Y, X, J)
    assert kept is not None
    return trials(kept.data, entries)


def test_value_and_gradient_are_those_of_the_chain_rule() -> None:
    found = tried("y**2", "y[0]*y[1]", "square", "y[0] + x[2]")
    assert found["y**2"] == Trial("Σ(y²)", 13.0, found["y**2"].norm, (28.0, 38.0, 48.0))  # type: ignore[union-attr]
    assert found["y[0]*y[1]"].entries == (11.0, 16.0, 21.0)  # type: ignore[union-attr]
    assert found["square"].value == 13.0  # type: ignore[union-attr]
    assert found["y[0] + x[2]"].entries == (1.0, 2.0, 4.0)  # type: ignore[union-attr]
    assert found["y[0] + x[2]"].norm == pytest.approx(21**0.5)  # type: ignore[union-attr]


def test_many_entries_are_told_by_their_norm() -> None:
    kept = linearized(Y, torch.ones(9, dtype=DOUBLE), torch.ones(2, 9, dtype=DOUBLE))
    assert kept is not None
    found = trials(kept.data, ["y"])["y"]
    assert isinstance(found, Trial) and found.entries == () and found.norm == pytest.approx(6.0)


@pytest.mark.parametrize(
    "entry, words",
    [("y[2]", "y"), ("sinn(y)", "Did you mean sin?"), ("cosh", "not known"), ("y + x", "shape")],
)
def test_a_wrong_one_is_a_sentence_and_costs_the_others_nothing(entry: str, words: str) -> None:
    found = tried(entry, "y")
    assert isinstance(found[entry], str) and words in found[entry]
    assert isinstance(found["y"], Trial)


def test_a_value_that_is_not_finite_is_told_as_it_is() -> None:
    found = tried("log(y - 2)")["log(y - 2)"]
    assert isinstance(found, Trial) and found.value == -float("inf")


def test_a_large_jacobian_is_not_kept() -> None:
    entries = LARGEST // 8 + 1
    large = torch.empty(1, device="meta", dtype=DOUBLE).expand(entries)
    assert linearized(Y, X, large) is None


@pytest.mark.parametrize("function", ["matrix_exp_trace", "tanh_network"])
def test_a_run_keeps_what_the_worker_tries_heads_on(function: str) -> None:
    worker, expression = Worker(), "y[0] * 3" if function == "tanh_network" else "y * 3"
    experiment = Experiment(function, 20, repeats=1, heads=("mean", expression))
    kept, done = None, None
    for event in worker.submit(experiment, full=True, keep=True).events():
        kept = event if isinstance(event, Linearized) else kept
        done = event
    assert kept is not None and isinstance(done, Done)
    found = worker.try_heads(kept, [expression])[expression]
    assert isinstance(found, Trial)
    head = done.result.heads[expression]
    assert found.value == pytest.approx(head.value, rel=1e-12)
    gradient = torch.tensor(head.gradient["reuse"], dtype=DOUBLE)
    assert found.norm == pytest.approx(gradient.norm().item(), rel=1e-10)
    assert found.formula == head.formula


def test_a_run_keeps_nothing_unless_asked() -> None:
    assert not any(isinstance(each, Linearized) for each in execute(Experiment(size=5, repeats=1)))
