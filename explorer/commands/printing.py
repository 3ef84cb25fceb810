"""What a person reads of something that was seen, on standard output."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from explorer.flow.result import Flow
from explorer.result import Result
from explorer.study.study import Study

if TYPE_CHECKING:
    from rich.console import Console

    from explorer.comparing.comparison import Comparison
    from explorer.tables import Table

_ROWS = 11  # of a table over the steps; the JSON has them all
_POINTS = 40  # of a table of the points of a sweep; the file has them all


def print_result(result: Result) -> None:
    """The sentences, the verdicts and the tables, on standard output."""
    from explorer import scaling_sentences, sentences
    from explorer.tables import tables

    _say(sentences.summary(result), sentences.plan(result))
    _say(
        *(
            f"{sentences.title(result, name)}: {sentences.verdict(result, name)}"
            for name in sentences.few(result).heads
        )
    )
    _print_tables(tables(result).values())
    _say(*sentences.jacobian(result))
    for along in result.scaling:
        _say(*scaling_sentences.scaling(result, along))
    _say(*sentences.notes(result))


def print_flow(flow: Flow) -> None:
    """The sentences, the tables with some of their rows, and the notes, on standard output."""
    from explorer.flow import sentences
    from explorer.flow.tables import tables, thinned

    _say(sentences.summary(flow), sentences.cause(flow))
    _say(sentences.ways(flow), sentences.advice(flow))
    _print_tables(thinned(each, _ROWS) for each in tables(flow).values())
    _say(*sentences.notes(flow))


def print_study(study: Study) -> None:
    """The sentence, the table with some of its rows, and the notes, on standard output."""
    from explorer.study import sentences
    from explorer.study.tables import table

    _say(sentences.summary(study))
    if study.points:
        _print_tables([table(study, _POINTS)])
    _say(*sentences.notes(study))


def print_comparison(comparison: Comparison) -> None:
    """The sentences, the tables and the notes, on standard output."""
    from explorer.comparing import sentences
    from explorer.comparing.tables import tables

    _say(sentences.summary(comparison), *sentences.each(comparison))
    _say(*sentences.experiments(comparison), *sentences.environments(comparison))
    _say(*sentences.gradients(comparison))
    # What differs is said above; the page has every field.
    said = ("experiments", "environments")
    _print_tables(each for name, each in tables(comparison).items() if name not in said)
    _say(*sentences.notes(comparison))


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200  # a file or a pipe has no edge to wrap at
    return console


def _say(*sentences: str) -> None:
    """Prints the sentences that are not empty, a line each."""
    console = _console()
    for sentence in filter(None, sentences):
        console.print(sentence, markup=False, soft_wrap=True)


def _print_tables(tables: Iterable[Table]) -> None:
    from rich.table import Table as Grid

    console = _console()
    for each in tables:
        # Not the grid's own title, which is folded to the width of a narrow table.
        console.print(each.title, style="italic", markup=False, soft_wrap=True)
        grid = Grid()
        for column in each.columns:
            grid.add_column(column, overflow="fold")
        for row in each.rows:
            grid.add_row(*row)
        console.print(grid, markup=False)
