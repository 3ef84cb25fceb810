"""A Flow as the result of a notebook's cell."""

import nbformat
from nbclient import NotebookClient

from explorer.app.display import flow_view
from explorer.flow import sentences
from tests.flow.flows import WAYS, linear

CODE = """
import torch
import explorer

explorer.gradient_flow([torch.nn.Linear(4, 4)] * 3, torch.ones(4), [torch.sum])
"""


def texts(widget: object) -> list[str]:
    """The HTML of a widget and of all below it."""
    found = [getattr(widget, "value", "")]
    for child in getattr(widget, "children", ()):
        found += texts(child)
    return [text for text in found if isinstance(text, str)]


def test_the_view_has_the_sentences_and_a_table_for_each_picture() -> None:
    flow = linear(ways=WAYS)
    html = "".join(texts(flow_view(flow)))
    for words in (sentences.summary(flow), sentences.ways(flow)):
        assert words in html
    assert html.count("<table>") == 4


def test_a_flow_as_the_last_line_of_a_cell_is_shown() -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE)])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (cell,) = notebook.cells
    shown = [kind for output in cell.outputs for kind in output.get("data", {})]
    assert "application/vnd.jupyter.widget-view+json" in shown
