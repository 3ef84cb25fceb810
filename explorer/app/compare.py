"""The panel of the comparisons: the Results that are loaded, and what they are together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import ipywidgets as widgets

from explorer.app.control import Guard, caption, hint, problem
from explorer.app.downloads import OF_A_COMPARISON, Downloads
from explorer.app.files import CHOOSE, LARGEST, File
from explorer.app.panel import project, style
from explorer.app.part import Part
from explorer.app.pictures import Cards, grid_of, listed, status
from explorer.app.sharing import Sharing
from explorer.app.state import CompareState
from explorer.comparing import sentences
from explorer.comparing.comparison import Comparison, compare
from explorer.comparing.figures import figures
from explorer.comparing.reading import Collection, Unreadable, read, short_names
from explorer.comparing.tables import tables
from explorer.result import Result
from explorer.tables import Table, to_html
from explorer.units import size

NAMES = ("ratio", "time", "scaling-heads", "scaling-outputs")

_ABOUT = (
    '<p class="explorer-hint">Choose results, or drop them anywhere on the page: the files that '
    "<code>explorer run --json FILE</code> writes, here or on another machine. All are compared "
    "with the first.</p>"
)


class ComparePanel(Part):
    """The panel.

    Args:
        last: the last Result of the page's own runs, None where there is none.
        query: the query string of the link that opened it, "" for none.
    """

    def __init__(self, last: Callable[[], Result | None], query: str = "") -> None:
        super().__init__()
        self._last = last
        self.state = CompareState()
        told = self.state.load(query)
        self.sharing = Sharing(self.state, self._guarded)
        self._shelf = Collection()
        self.add = widgets.Button(
            description="Add the last result", tooltip="What Heads on f has on show"
        )
        self.clear = widgets.Button(description="Clear", tooltip="Removes all results")
        self._problems = widgets.HTML()
        self._list = widgets.VBox()
        self.pictures = ComparisonPictures(self._guarded)
        self.downloads = Downloads(
            self._guarded, lambda: self.pictures.comparison, OF_A_COMPARISON
        )
        self.widget = self._layout()
        self.add.on_click(self._guarded(lambda button: self._add_last()))
        self.clear.on_click(self._guarded(lambda button: self._cleared()))
        self.state.observe(self._guarded(lambda change: self._arrange()), "lesson")
        self._arrange()
        self._show([f"In the link: {each}" for each in told])

    def start(self) -> None:
        """Nothing: results are brought."""

    def _layout(self) -> widgets.Widget:
        choose = widgets.HTML(CHOOSE.format("Choose files…"))
        buttons = widgets.HBox([choose, self.add, self.clear])
        buttons.add_class("explorer-bring")
        about = widgets.HTML(_ABOUT)
        left = widgets.VBox(
            [buttons, self.sharing.widget, about, self._problems, self._fault, self._list]
        )
        left.add_class("explorer-left")
        right = widgets.VBox([self.pictures.widget, self.downloads.widget])
        right.add_class("explorer-right")
        body = widgets.Box([left, right])
        body.add_class("explorer-body")
        whole = widgets.VBox([style(), body])
        whole.add_class("explorer")
        return whole

    def _arrange(self) -> None:
        """Follows what the link, or the Projector button, asks of the page."""
        project(self.widget, self.pictures.cards, self.state.lesson.projector)
        self.sharing.tell()

    # What a person does.

    def take(self, files: Sequence[File], first: bool = True) -> None:
        """Adds what the files hold; what cannot be compared is told, the others are kept.

        Unless they are the first that were brought together, what was told of these stays.
        """
        found = [] if first else [*self._told]
        for file, name in zip(files, short_names(file.name for file in files), strict=True):
            try:
                self._shelf.add(name, read(file.name, _data(file)))
            except Unreadable as error:
                found.append(str(error))
        self._show(found)

    def _add_last(self) -> None:
        last = self._last()
        if last is None:
            self._show(["There is no result yet: run an experiment under Heads on f."])
            return
        try:
            moment = last.environment.started.partition("T")[2][:8]
            self._shelf.add(f"run {moment}", last)
        except Unreadable as error:
            self._show([str(error)])
        else:
            self._show()

    def _remove(self, name: str) -> None:
        self._shelf.remove(name)
        self._show()

    def _cleared(self) -> None:
        self._shelf = Collection()
        self._show()

    # What is shown.

    def _show(self, problems: Sequence[str] = ()) -> None:
        results = self._shelf.results
        self._fault.value = ""
        self._told = problems
        self._problems.value = "".join(map(problem, problems))
        self.clear.disabled = not results
        for row in self._list.children:
            row.close()
        rows = [self._row(name, result) for name, result in results.items()]
        self._list.children = [caption("Results"), *rows] if rows else []
        self.downloads.offer(len(results) > 1)
        if len(results) > 1:
            self.pictures.show(compare(results))
        else:
            (only,) = results or ("",)
            self.pictures.announce(
                f"{only} is loaded; a comparison takes two results." if only
                else "A comparison takes two results."
            )  # fmt: skip

    def _row(self, name: str, result: Result) -> widgets.Widget:
        described = result.experiment.described
        words = ", ".join(
            (
                f"{described.title}, {described.size.label.lower()} = {result.experiment.size}",
                result.experiment.dtype,
                result.environment.device_name,
            )
        )
        is_first = name == next(iter(self._shelf.results))
        first = " (the others are compared with it)" if is_first else ""
        said = widgets.HTML(f"<strong>{escape(name)}</strong>{first}<br>{hint(words)}")
        button = widgets.Button(description="Remove", tooltip=f"Removes {name}")
        button.on_click(self._guarded(lambda pressed: self._remove(name)))
        row = widgets.HBox([said, button])
        row.add_class("explorer-loaded")
        return row


def _data(file: File) -> bytes:
    if file.data is not None:
        return file.data
    if file.size > LARGEST:
        raise Unreadable(
            f"{file.name} is larger than {size(LARGEST)}, the most that the page takes; "
            "`explorer compare` takes larger files."
        )
    raise Unreadable(f"{file.name} cannot be read. A folder cannot be taken: choose its files.")


class ComparisonPictures:
    """Built once, empty; `show` fills it. `comparison` is the one on show, None for none."""

    def __init__(self, guard: Guard) -> None:
        self.comparison: Comparison | None = None
        self._summary, self._each, self._differences = (widgets.HTML() for _ in range(3))
        self._further, self._notes = widgets.HTML(), widgets.HTML()
        self.cards = Cards(guard, self._draw)
        self._grid = grid_of(())
        self._differences.add_class("explorer-differences")
        self.widget = widgets.VBox(
            [
                *(self._summary, self._each, self._grid, self._differences, self._further),
                *(self._notes, self.cards.kind),
            ]
        )
        self.widget.add_class("explorer-pictures")

    def announce(self, sentence: str) -> None:
        """Says why there is nothing to compare, in the place of what there was."""
        for part in (self._each, self._differences, self._further, self._notes):
            part.value = ""
        self._grid.children = ()
        self.comparison = None
        self._summary.value = status(sentence)

    def show(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self._summary.value = status(sentences.summary(comparison))
        self._each.value = listed(sentences.each(comparison))
        self._draw()
        self._differences.value = _captioned(
            "What differs",
            [*sentences.experiments(comparison), *sentences.environments(comparison)],
        ) + _captioned("Gradients", sentences.gradients(comparison))
        self._notes.value = listed(sentences.notes(comparison))

    def _draw(self) -> None:
        """Draws the comparison on show, with the tables."""
        if self.comparison is None:
            return
        behind = tables(self.comparison)
        drawn = figures(self.comparison)
        self.cards.draw(self.comparison, drawn)
        for name in drawn:
            self.cards[name].tabulate(behind[name])
        cards = [self.cards[name].widget for name in drawn]
        if list(self._grid.children) != cards:
            self._grid.children = cards
        self._further.value = "".join(
            _folded(table) for name, table in behind.items() if name not in drawn
        )


def _captioned(title: str, said: Sequence[str]) -> str:
    return f'<span class="explorer-caption">{title}</span>{listed(said)}' if said else ""


def _folded(table: Table) -> str:
    return (
        f'<details class="explorer-table"><summary>Table: {escape(table.title)}</summary>'
        f"{to_html(table)}</details>"
    )
