"""The command line: explorer app | lab | list | run | compare | sweep | flow | code.

The options of `run`, `sweep`, `flow` and `code` come from the tables of fields. Importing this
module imports no torch, so that the help opens at once.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from explorer import own, place, signals
from explorer.engine.plan import PATHS
from explorer.events import Cancelled, Done, Ending, Failed, Progress, Queued, Seen
from explorer.experiment import (
    DEFAULT_FUNCTION,
    Experiment,
    InvalidExperiment,
    table,
    uninstalled,
)
from explorer.expression import GRAMMAR
from explorer.fields import Field, shown, suggestion
from explorer.flow import experiment as of_flow
from explorer.flow.experiment import FlowExperiment
from explorer.flow.result import Flow
from explorer.functions import FUNCTIONS
from explorer.heads import HEADS, SETS
from explorer.result import Result
from explorer.study.axis import NOT_SWEPT
from explorer.study.study import Study
from explorer.study.sweep import MOST_AXES, Sweep

if TYPE_CHECKING:
    from rich.console import Console

    from explorer.comparing.comparison import Comparison
    from explorer.drawing import Kind
    from explorer.tables import Table

DONE, FAILED, BAD_INPUT = 0, 1, 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="explorer")
def cli() -> None:
    """Every dz_i/dx of z_i = g_i(f(x)), for a slow f and cheap heads g_i.

    Runs f's backward once in the place of once a head, and shows what that saves.
    """


@cli.command()
@click.option(
    "--ip",
    metavar="ADDRESS",
    default="localhost",
    show_default=True,
    help="Address to listen on; 0.0.0.0 for every network of this machine.",
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(1, 65535),
    default=None,
    help="Port to listen on.  [default: 8866, or the next free one]",
)
@click.option("--no-browser", is_flag=True, help="Do not open the page in a browser.")
def app(ip: str, port: int | None, no_browser: bool) -> None:
    """Serve the page with Voila and print its link."""
    from explorer.server import serve_app

    sys.exit(serve_app(ip, port, open_browser=not no_browser))


@cli.command()
def lab() -> None:
    """Open the notebook in JupyterLab."""
    from explorer.server import serve_lab

    sys.exit(serve_lab())


@cli.command("list")
def list_() -> None:
    """Show the functions, heads, paths and devices there are."""
    from explorer.worker import Worker

    for function in FUNCTIONS.values():
        click.echo(f"function {function.name}: {function.formula}")
        click.echo(f"    --size: {function.size.allowed}; default {function.size.default}")
        for field in function.parameters:
            click.echo(
                f"    --param {field.name}=…: {field.allowed}; default "
                f"{field.empty if field.default is None else field.default}"
            )
        for each in function.heads:
            click.echo(f"    --head {each.name}: {each.formula}")
    for head in HEADS.values():
        click.echo(f"head {head.name}: {head.formula}, for {head.domain}")
    for name, words in SETS.items():
        click.echo(f"heads {name}(K): {words}")
    click.echo(f"head EXPRESSION: {GRAMMAR}")
    for name, words in PATHS.items():
        lacking = uninstalled([name])
        click.echo(f"path {name}: {words}" + (f". {lacking}" if lacking else ""))
    for device in Worker().devices():
        click.echo(f"device {device.name}: {device.title}")


# The options to be given several times.
_MANY = {"heads": "--head", "paths": "--path", "scaling": "--scaling", "losses": "--loss"}


def _field_options(fields: Sequence[Field]) -> Callable[[Any], Any]:
    """Adds an option for every one of the fields."""

    def add(command: Any) -> Any:
        for field in reversed(fields):
            command = _field_option(field)(command)
        return command

    return add


def _field_option(field: Field) -> Callable[[Any], Any]:
    if field.kind == "switch":
        return click.option(
            _option(field.name), field.name, is_flag=True, default=None, help=_help(field)
        )
    return click.option(
        _option(field.name),
        field.name,
        metavar=_METAVARS.get(field.name, field.kind.upper().removesuffix("S")),
        multiple=field.name in _MANY,
        default=None,
        help=_help(field),
    )


_METAVARS = {"function": "NAME|MODULE:NAME", "heads": "HEAD"}


def _shared_fields() -> list[Field]:
    first, *others = (table(function) for function in FUNCTIONS)
    return [field for name, field in first.items() if all(name in other for other in others)]


def _option(field: str) -> str:
    return _MANY.get(field, f"--{field.replace('_', '-')}")


def _help(field: Field) -> str:
    if any(field == each.size for each in FUNCTIONS.values()):  # its range is the function's
        return "Size of the problem; see `explorer list`."
    text = f"{field.help[0].upper()}{field.help[1:]}"
    if field.kind == "switch":
        return f"{text}."
    text += f": {field.allowed}"
    default = field.text(field.default) or field.empty
    if field.name in _MANY:
        text += "; may be given several times"
        given = (f"{_option(field.name)} {name}" for name in field.default)
        default = " ".join(given) or field.empty
    return f"{text}.  [default: {default}]"


_FILES = {
    "json": "Write the {} as JSON.",
    "csv": "Write the {} as one long table.",
    "html": "Write a self-contained page.",
    "png": "Write every picture as a PNG into a folder.",
    "svg": "Write every picture as an SVG into a folder.",
}
_PICTURES: dict[str, Kind] = {"png": "png", "svg": "svg"}


def _file_options(what: str, *, leave_out: str = "") -> Callable[[Any], Any]:
    """Adds an option for every kind of file but one; `what` it is that is written."""

    def add(command: Any) -> Any:
        for name, words in reversed(_FILES.items()):
            if name != leave_out:
                command = click.option(
                    f"--{name}",
                    f"{name}_file",
                    metavar="FOLDER" if name in _PICTURES else "FILE",
                    help=words.format(what),
                )(command)
        return command

    return add


def _files(values: dict[str, Any]) -> dict[str, str]:
    """Takes the places of the files that were asked for out of the options' values."""
    given = {name: values.pop(f"{name}_file", None) for name in _FILES}
    return {name: where for name, where in given.items() if where is not None}


_param_option = click.option(
    "--param",
    "parameters",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter of the function; see `explorer list`. May be given several times.",
)


@cli.command()
@_field_options(_shared_fields())
@_param_option
@_file_options("Result")
@click.option("--full", is_flag=True, help="List every entry of large gradients in the JSON.")
def run(
    parameters: tuple[str, ...],
    full: bool,
    **values: Any,
) -> None:
    """Run one experiment and print what it shows.

    The exit code is 0 when it is done, 2 for bad input, 1 for a failed run, 130 when cancelled.
    """
    files = _files(values)
    try:
        experiment = _experiment(values, parameters)
        _require_places(files)
    except InvalidExperiment as error:
        _refuse(error.problems, _SHARED)
    _run(experiment, files, _SHARED, full=full)


@cli.command()
@click.argument("results", metavar="FILE...", nargs=-1, required=True)
@_file_options("ratios", leave_out="json")
def compare(results: tuple[str, ...], **values: Any) -> None:
    """Lay Results that `run --json` wrote over each other, and compare them with the first.

    What can be read is compared. The exit code is 0 when all of it was, 1 when a file was left out
    or the page cannot be written, 2 when fewer than two Results are left, or for bad input.
    """
    from explorer.comparing import comparison
    from explorer.comparing.reading import Collection, Unreadable, read, read_file, short_names

    files = _files(values)
    try:
        _require_places(files)
    except InvalidExperiment as error:
        _refuse(error.problems, _SHARED)
    shelf, left_out = Collection(), 0
    for file, name in zip(results, short_names(results), strict=True):
        try:
            shelf.add(name, read(file, read_file(file)))
        except Unreadable as error:
            left_out += 1
            click.echo(str(error), err=True)
    if len(shelf.results) < 2:
        found = "1 Result is" if shelf.results else "No Result is"
        click.echo(f"{found} left, and a comparison takes two.", err=True)
        sys.exit(BAD_INPUT)
    compared = comparison.compare(shelf.results)
    problem = _write(compared, files)
    _print_comparison(compared)
    if problem:
        click.echo(problem, err=True)
    sys.exit(FAILED if problem or left_out else DONE)


@cli.command()
@_field_options([field for field in _shared_fields() if field.name not in NOT_SWEPT])
@_param_option
@click.option(
    "--over",
    metavar="AXIS",
    multiple=True,
    help="A field and its values: NAME=A,B,C, NAME=LOW:HIGH:logN or NAME=LOW:HIGH:linN, up to "
    f"{MOST_AXES} times. heads=K is the first K of the powers set, in the place of --head.",
)
@click.option("--total", metavar="SECONDS", help="Time for all points; --budget is that of each.")
@click.option(
    "--jsonl",
    "jsonl_file",
    metavar="FILE",
    help="Write every point at once, a line of JSON each; a second call goes on where one stopped.",
)
@_file_options("points", leave_out="json")
@click.option("--dask", "address", metavar="ADDRESS", help="Measure on the Dask cluster there.")
def sweep(
    parameters: tuple[str, ...],
    over: tuple[str, ...],
    total: str | None,
    jsonl_file: str | None,
    address: str | None,
    **values: Any,
) -> None:
    """Run experiments for all combinations of the values of up to three fields.

    The exit code is 0 when all points are there, 2 for bad input, 1 for a failure or where points
    were left out, 130 when cancelled.
    """
    from explorer.study.journal import Journal, JournalError
    from explorer.study.running import Running

    files = _files(values)
    try:
        given, problems = _flat(values, parameters)
        if problems:
            raise InvalidExperiment(problems)
        _require_places({"jsonl": jsonl_file, **files})
        wanted = Sweep(given, over, total=total)
        with ExitStack() as stack:
            journal = stack.enter_context(Journal(jsonl_file, wanted)) if jsonl_file else None
            executor, at_once = None, 1
            if address is not None:
                from explorer.study import cluster

                executor, at_once = stack.enter_context(cluster.executor(address))
            ending = _follow(
                Running(wanted, journal=journal, executor=executor, at_once=at_once)
            )
    except JournalError as error:
        _refuse({"jsonl": str(error)}, _SWEPT)
    except InvalidExperiment as error:
        _refuse(error.problems, _SWEPT)
    except OSError as error:
        click.echo(f"--jsonl: {jsonl_file} cannot be used: {error.strerror or error}.", err=True)
        sys.exit(FAILED)
    _end(ending, files, _SWEPT)


@cli.command()
@_field_options(list(of_flow.FIELDS.values()))
@_file_options("Flow")
def flow(**values: Any) -> None:
    """Show how gradients shrink or grow on their way back through a recurrent network.

    The exit code is 0 when it is done, 2 for bad input, 1 for a failed run, 130 when cancelled.
    """
    options, files = frozenset(of_flow.FIELDS), _files(values)
    try:
        experiment = FlowExperiment.from_values(_given(values))
        _require_places(files)
    except InvalidExperiment as error:
        _refuse(error.problems, options)
    _run(experiment, files, options)


_OF_CODE = ("function", "size", "dtype", "device", "compile", "heads", "seed")


@cli.command()
@_field_options([field for field in _shared_fields() if field.name in _OF_CODE])
@_param_option
@click.option(
    "--path",
    metavar="CHOICE",
    default="auto",
    show_default=True,
    help=f"The way to the gradients: one of {', '.join(PATHS)}.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the script to a file.")
def code(parameters: tuple[str, ...], path: str, output: str | None, **values: Any) -> None:
    """Print an experiment on one path as a PyTorch script of its own, without explorer.

    The exit code is 0 when it is done, 2 for bad input, 1 where the file cannot be written.
    """
    from explorer.scripts import NoScript, script

    options = frozenset((*_OF_CODE, "paths", "output"))
    try:
        experiment = _experiment(values | {"paths": (path,)}, parameters)
        _require_places({"output": output})
        text = script(experiment, *experiment.paths)
    except InvalidExperiment as error:
        _refuse(error.problems, options)
    except NoScript as error:
        click.echo(error, err=True)
        sys.exit(BAD_INPUT)
    if output is None:
        click.echo(text, nl=False)
        return
    from explorer.export import write_text

    try:
        write_text(output, text)
    except OSError as error:
        click.echo(error, err=True)
        sys.exit(FAILED)


def _run(
    experiment: Experiment | FlowExperiment,
    files: Mapping[str, str],
    options: frozenset[str],
    *,
    full: bool = False,
) -> NoReturn:
    """Runs it, and goes on as `_end` does.

    `options` are the fields that are options of their own.
    """
    from explorer.worker import Worker

    _end(_follow(Worker().submit(experiment, full=full)), files, options)


def _end(ending: Ending, files: Mapping[str, str], options: frozenset[str]) -> NoReturn:
    """Writes and prints what was seen, and ends with the exit code."""
    if isinstance(ending, Failed):
        if ending.kind == "invalid":
            _refuse(ending.problems, options)
        click.echo(ending.message, err=True)
    seen = ending.result
    if seen is not None:
        # The files first: a reader of the output who leaves early (`| head`) must not cost them.
        problem = _write(seen, files)
        if isinstance(seen, Flow):
            _print_flow(seen)
        elif isinstance(seen, Study):
            _print_study(seen)
        else:
            _print(seen)
        if problem:
            click.echo(problem, err=True)
            sys.exit(FAILED)
    if isinstance(ending, Cancelled):
        click.echo("Cancelled; what had finished is shown." if seen else "Cancelled.", err=True)
    sys.exit(_exit_code(ending))


def _exit_code(ending: Ending) -> int:
    if isinstance(ending, Done):
        return FAILED if isinstance(ending.result, Study) and ending.result.left_out else DONE
    if isinstance(ending, Cancelled):
        return signals.CANCELLED
    return BAD_INPUT if ending.kind == "refused" else FAILED


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the options that were given."""
    return {name: value for name, value in values.items() if value not in (None, ())}


def _experiment(values: Mapping[str, Any], parameters: Iterable[str]) -> Experiment:
    """The Experiment of the options that were given; raises InvalidExperiment."""
    given, problems = _flat(values, parameters)
    try:
        experiment = Experiment.from_values(given)
    except InvalidExperiment as error:
        problems |= error.problems
    if problems:
        raise InvalidExperiment(problems)
    return experiment


def _flat(
    values: Mapping[str, Any], parameters: Iterable[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """(the values of the options that were given, parameters among them; what is wrong with these).

    Raises:
        InvalidExperiment: a module of one's own cannot be imported.
    """
    given = _given(values)
    if ":" in given.get("function", ""):
        try:
            given["function"] = own.load(given["function"])
        except InvalidExperiment:
            raise
        except Exception as error:  # whatever a module raises while it is imported
            failed = Failed("error", f"{type(error).__name__}: {error}", {}, place=place.of(error))
            raise InvalidExperiment({"function": place.told(failed)}) from error
    function = FUNCTIONS.get(given.get("function", DEFAULT_FUNCTION))
    allowed = [field.name for field in function.parameters] if function else []
    problems: dict[str, str] = {}
    for text in parameters:
        name, equals, value = text.partition("=")
        if not equals or not name:
            problems[text] = f"{shown(text)} is not NAME=VALUE, for example x=0.5."
        elif name in _SHARED:
            problems[text] = f"{name} is not a parameter; give {_option(name)} {value}."
        elif function and name not in allowed:
            problems[text] = (
                f"{shown(name)} is not a parameter of {function.name}. "
                f"{suggestion(name, allowed)}Allowed: {', '.join(allowed)}."
            )
        else:
            given[name] = value
    return given, problems


_SHARED = frozenset(field.name for field in _shared_fields())


_SWEPT = _SHARED | {"over", "total", "jsonl", "dask"}


def _require_places(files: Mapping[str, str | None]) -> None:
    """Raises InvalidExperiment for what cannot be written, by the names of the options: before
    the run, not after."""
    for name, where in files.items():
        if where is None:
            continue
        if name not in _PICTURES:
            _require_place(name, where)
            continue
        from explorer.pictures import lacking

        if problem := _no_folder(Path(where)) or lacking():
            raise InvalidExperiment({name: problem})


def _require_place(name: str, file: str) -> None:
    """Raises InvalidExperiment unless a file can be written there."""
    path = Path(file)
    problem = ""
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            path.lstat()  # refuses a name that is too long
        folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
        if path.is_dir():
            problem = f"{path} is a folder. Give the name of a file."
        elif path.exists() and not path.is_file():  # a pipe or a terminal
            if not os.access(path, os.W_OK):
                problem = f"{path} cannot be written to. Choose another."
        elif not folder.is_dir():
            problem = f"The folder {folder} does not exist. Make it first, or choose another."
        elif not _takes_files(folder):
            problem = f"The folder {folder} cannot be written to. Choose another."
    except OSError as error:
        problem = f"{shown(file)} cannot be a file: {error.strerror}."
    if problem:
        raise InvalidExperiment({name: problem})


def _no_folder(path: Path) -> str:
    """Why there is, and can be made, no folder for pictures, as a sentence; else empty."""
    try:
        if path.exists() and not path.is_dir():
            return f"{path} is a file. Give the name of a folder."
        folder = path if path.exists() else path.parent
        if not folder.is_dir():
            return f"The folder {folder} does not exist. Make it first, or choose another."
        if not _takes_files(folder):
            return f"The folder {folder} cannot be written to. Choose another."
    except OSError as error:
        return f"{shown(path)} cannot be a folder: {error.strerror}."
    return ""


def _takes_files(folder: Path) -> bool:
    """Whether a file can be made there. Its permissions do not tell: root has them all."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _refuse(problems: Mapping[str, str], options: frozenset[str]) -> NoReturn:
    """Says what is wrong with every option, and ends with the exit code for bad input."""
    for name, problem in problems.items():
        option = _option(name) if name in (*options, *_FILES) else "--param"
        click.echo(f"{option}: {problem}", err=True)
    sys.exit(BAD_INPUT)


def _follow(run: Any) -> Ending:
    """The run's events as a progress bar on standard error, to its end.

    Ctrl-C, SIGTERM and SIGHUP cancel the run.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    start = time.monotonic()
    with (
        signals.handled(lambda number, frame: run.cancel()),
        Bar(*columns, console=Console(stderr=True), transient=True) as bar,
    ):
        task = bar.add_task("starting", total=None, left="")
        for event in run.events(heartbeat=0.5):
            if isinstance(event, Queued):
                bar.update(task, description=f"waiting, place {event.place} in the queue")
            elif isinstance(event, Progress):
                done, left = time.monotonic() - start, event.remaining
                bar.update(
                    task,
                    description=event.text,
                    completed=done,
                    total=None if left is None else done + left,
                    left="" if left is None else f"about {left:.0f} s left",
                )
            elif isinstance(event, Ending):
                return event
    raise AssertionError("a run's events end with an Ending")


def _print(result: Result) -> None:
    """The sentences, the verdicts and the tables, on standard output."""
    from explorer import sentences
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
        _say(*sentences.scaling(result, along))
    _say(*sentences.notes(result))


_ROWS = 11  # of a table over the steps; the JSON has them all
_POINTS = 40  # of a table of the points of a sweep; the file has them all


def _print_flow(flow: Flow) -> None:
    """The sentences, the tables with some of their rows, and the notes, on standard output."""
    from explorer.flow import sentences
    from explorer.flow.tables import tables, thinned

    _say(sentences.summary(flow), sentences.cause(flow))
    _say(sentences.ways(flow), sentences.advice(flow))
    _print_tables(thinned(each, _ROWS) for each in tables(flow).values())
    _say(*sentences.notes(flow))


def _print_study(study: Study) -> None:
    """The sentence, the table with some of its rows, and the notes, on standard output."""
    from explorer.study import sentences
    from explorer.study.tables import table

    _say(sentences.summary(study))
    if study.points:
        _print_tables([table(study, _POINTS)])
    _say(*sentences.notes(study))


def _print_comparison(comparison: Comparison) -> None:
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


def _write(seen: Seen | Comparison, files: Mapping[str, str]) -> str:
    """Writes the files that were asked for; returns what went wrong, as a sentence, or ""."""
    if not files:
        return ""
    from explorer.export import to_html, write_text
    from explorer.rows import to_csv

    make = {
        "json": lambda: seen.to_json() + "\n",
        "csv": lambda: to_csv(seen),
        "html": lambda: to_html(seen),
    }
    try:
        # In here a signal is an exception, so that no half of a file stays beside it.
        with signals.handled(signal.default_int_handler):
            for name, where in files.items():
                if name in _PICTURES:
                    from explorer.pictures import write_pictures

                    write_pictures(seen, where, _PICTURES[name])
                else:
                    write_text(where, make[name]())
    except (OSError, RuntimeError) as error:
        return str(error)
    except KeyboardInterrupt:
        signals.end_cancelled(signal.SIGINT, None)
    return ""
