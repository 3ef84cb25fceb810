"""A Flow as a notebook shows it: the view of the page's panel, without its controls."""

from __future__ import annotations

import ipywidgets as widgets
from IPython.display import display

from explorer.app.flow import FlowPictures
from explorer.app.panel import style
from explorer.flow.result import Flow


def flow_view(flow: Flow) -> widgets.VBox:
    """Sentences, pictures and tables, without a button: there is nothing to run again."""
    pictures = FlowPictures(lambda call: call, lambda changed: None, lambda flow: None)
    pictures.show(flow)
    pictures.remedies.layout.display = "none"
    view = widgets.VBox([style(), pictures.widget])
    view.add_class("explorer")
    return view


def show_flow(flow: Flow) -> None:
    """Displays the view in the output of the cell that runs."""
    display(flow_view(flow))  # type: ignore[no-untyped-call]
