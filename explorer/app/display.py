"""A Flow and a Study as a notebook shows them: the view of a panel, without its controls."""

from __future__ import annotations

import ipywidgets as widgets
from IPython.display import display

from explorer.app.flow import FlowPictures
from explorer.app.panel import style
from explorer.app.sweep import StudyPictures
from explorer.flow.result import Flow
from explorer.study.study import Study


def flow_view(flow: Flow) -> widgets.VBox:
    """Sentences, pictures and tables, without a button: there is nothing to run again."""
    pictures = FlowPictures(lambda call: call, lambda changed: None, lambda flow: None)
    pictures.show(flow)
    pictures.remedies.layout.display = "none"
    return _view(pictures.widget)


def study_view(study: Study) -> widgets.VBox:
    """The sentence, the pictures, the table and the notes."""
    pictures = StudyPictures(lambda call: call)
    pictures.show(study)
    return _view(pictures.widget)


def _view(pictures: widgets.Widget) -> widgets.VBox:
    view = widgets.VBox([style(), pictures])
    view.add_class("explorer")
    return view


def show_flow(flow: Flow) -> None:
    """Displays the view in the output of the cell that runs."""
    display(flow_view(flow))  # type: ignore[no-untyped-call]


def show_study(study: Study) -> None:
    """The same of a study."""
    display(study_view(study))  # type: ignore[no-untyped-call]
