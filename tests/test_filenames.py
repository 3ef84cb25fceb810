from typing import Any

import pytest

from explorer.comparing.comparison import compare
from explorer.filenames import stem
from explorer.flow.experiment import FlowExperiment
from tests.flow.flows import linear, of
from tests.results import good, real
from tests.study.points import growing, study


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        (real(), "explorer-matrix_exp_trace-20"),
        (of(FlowExperiment(cell="relu", size=4, steps=6)), "explorer-flow-relu-4"),
        (linear(), "explorer-flow"),
        (study({"size": "4,8", "heads": "1,2"}, growing),
         "explorer-sweep-matrix_exp_trace-size-heads"),
        (study({"function": "ode,heat_equation"}, growing), "explorer-sweep-function"),
        (compare({"a": good(), "../b": good()}), "explorer-comparison"),
    ],
)
def test_a_file_is_called_after_what_is_in_it(seen: Any, name: str) -> None:
    assert stem(seen) == name
