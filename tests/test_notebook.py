"""app.ipynb, run by a kernel without a browser."""

import nbformat
from nbclient import NotebookClient

from explorer.server import notebook_path


def test_the_notebook_is_a_title_one_import_and_one_call():
    title, imported, call = nbformat.read(notebook_path(), as_version=4).cells
    assert title.cell_type == "markdown" and title.source.startswith("# explorer")
    assert imported.source == "from explorer.app import page"
    assert call.source == "page()"


def test_the_notebook_runs_and_shows_the_page_without_torch_in_its_kernel():
    notebook = nbformat.read(notebook_path(), as_version=4)
    check = "import sys; print('torch' in sys.modules)"
    notebook.cells.append(nbformat.v4.new_code_cell(check))
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    _, _, call, checked = notebook.cells
    shown = [kind for output in call.outputs for kind in output.get("data", {})]
    assert "application/vnd.jupyter.widget-view+json" in shown
    assert checked.outputs[0].text == "False\n"
