from explorer.flow.experiment import FlowExperiment
from explorer.flow.result import Fan
from explorer.flow.rows import COLUMNS
from explorer.rows import to_csv
from tests.delimited import numbers, only, read
from tests.flow.flows import WAYS, infinite, linear, of


def test_a_flow_has_a_row_for_every_state_and_loss() -> None:
    fan = Fan(times=(0, 5), largest=(2.0, 1.0), upper=(1.5, None), median=(1.0, None),
              lower=(0.5, None), smallest=(0.25, 1.0))  # fmt: skip
    seen = linear(ways=WAYS, fan=fan)
    rows = read(to_csv(seen))
    assert tuple(rows[0]) == COLUMNS
    for loss, norms in seen.gradients.items():
        found = numbers(only(rows, record="gradient", loss=loss), "t", "gradient_norm")
        assert found == list(enumerate(norms))
    states = only(rows, record="state")
    assert numbers(states, "t", "bound") == list(enumerate(seen.bound))
    assert states[0]["step_norm"] == "", "no step leads to x"
    assert numbers(states[1:], "step_norm") == list(seen.steps)
    assert [row["step"] for row in states[1:]] == list(seen.names)
    names = ("largest", "upper_quartile", "median", "lower_quartile", "smallest")
    assert [states[0][name] for name in names] == ["2.0", "1.5", "1.0", "0.5", "0.25"]
    assert [states[5][name] for name in names] == ["1.0", "", "", "", "1.0"]
    assert states[1]["largest"] == ""
    for way in ("naive", "jacobians", "chain"):
        runs = numbers(only(rows, record="run", way=way), "seconds")
        assert runs == list(getattr(WAYS, way).runs)
    assert only(rows, steps="6", dtype="float64", samples="1", cell="") == rows


def test_a_flow_of_the_panel_says_its_setting() -> None:
    chosen = FlowExperiment(size=4, steps=6, start="gain", gain=0.5, seed=3)
    rows = read(to_csv(of(chosen)))
    assert only(rows, cell="tanh", start="gain", gain="0.5", size="4", seed="3") == rows


def test_a_flow_that_overflows_says_so() -> None:
    rows = only(read(to_csv(infinite())), record="gradient", loss="loss 1")
    assert [row["gradient_norm"] for row in rows[:6]] == ["Inf"] * 6
