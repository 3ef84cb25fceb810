"""What was seen → files: a self-contained page, and text that is written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.io import to_html as plotly_div
from plotly.offline import get_plotlyjs

from explorer import scaling_sentences, sentences, tables
from explorer.comparing import figures as comparing_figures
from explorer.comparing import sentences as comparing_sentences
from explorer.comparing import tables as comparing_tables
from explorer.comparing.comparison import Comparison
from explorer.drawing import config
from explorer.events import Seen
from explorer.experiment import table
from explorer.fields import Field
from explorer.figures import figures
from explorer.filenames import stem
from explorer.flow import figures as flow_figures
from explorer.flow import sentences as flow_sentences
from explorer.flow import tables as flow_tables
from explorer.flow.experiment import FIELDS as FLOW_FIELDS
from explorer.flow.result import Flow
from explorer.result import Environment, Result
from explorer.study import figures as study_figures
from explorer.study import sentences as study_sentences
from explorer.study import tables as study_tables
from explorer.study.axis import text
from explorer.study.study import Study


def write_text(path: str | Path, text: str) -> None:
    """Writes a text file in UTF-8: it appears whole, or what was there before stays.

    The text is written beside the file and then takes its place. What is no file, such as a
    terminal or a pipe, is written to as it is.

    Raises:
        OSError: it cannot be written; the message says which file and why.
    """
    write_bytes(path, text.encode())


def write_bytes(path: str | Path, content: bytes) -> None:
    """The same for what is no text."""
    path = Path(path)
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        if path.exists() and not path.is_file():
            # Not the target: that of /dev/stdout has no name that could be opened.
            path.write_bytes(content)
        elif not target.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {target.parent}")
        else:
            _replace(target, content)
    except OSError as error:
        raise type(error)(f"Cannot write {path}: {error.strerror or error}.") from error


def _replace(target: Path, content: bytes) -> None:
    beside = target.with_name(f".explorer-{secrets.token_hex(4)}.part")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def to_html(seen: Seen | Comparison) -> str:
    """A page of its own: the sentences, the figures with their tables, the settings.

    It asks for nothing from outside and opens without a network; it follows the reader's light
    or dark. What was seen is in it as JSON, in the element `explorer-result`.
    """
    if isinstance(seen, Comparison):
        return _of_comparison(seen)
    if isinstance(seen, Study):
        return _of_study(seen)
    return _of_flow(seen) if isinstance(seen, Flow) else _of_result(seen)


def _of_result(result: Result) -> str:
    described = result.experiment.described
    title = f"{described.title}, {described.size.label.lower()} = {result.experiment.size}"
    verdicts = (
        f"<b>{escape(sentences.title(result, name))}</b>: "
        f"{escape(sentences.verdict(result, name))}"
        for name in sentences.few(result).heads
    )
    scaling = (
        sentence
        for along in result.scaling
        for sentence in scaling_sentences.scaling(result, along)
    )
    return _page(
        result,
        title=f"{title}, {result.experiment.dtype}",
        formula=described.formula,
        summary=sentences.summary(result),
        plan=sentences.plan(result),
        verdicts=_list(verdicts),
        figures=_figures(result, figures(result), tables.tables(result)),
        jacobian=_list(map(escape, sentences.jacobian(result))),
        scaling=_list(map(escape, scaling)),
        notes=sentences.notes(result),
        experiment=_settings(table(result.experiment.function), result.experiment.values),
        environment=_environment(result.environment),
    )


def _of_flow(flow: Flow) -> str:
    experiment = flow.experiment
    steps = f"{len(flow.steps)} step{'' if len(flow.steps) == 1 else 's'}"
    own = f"a stack of one's own, {steps}, {flow.dtype}"
    behind = flow_tables.tables(flow)
    ways = "" if flow.ways is None else _folded(behind["ways"])
    told = (flow_sentences.cause, flow_sentences.ways, flow_sentences.advice)
    said = filter(None, (tell(flow) for tell in told))
    return _page(
        flow,
        title=f"Gradient flow, {flow_sentences.setting(experiment) if experiment else own}",
        formula="h_t = step_t(h_{t−1}), h_0 = x, and losses L of h_T",
        summary=flow_sentences.summary(flow),
        plan="",
        verdicts=_list(map(escape, said)),
        figures=_figures(flow, flow_figures.figures(flow), behind),
        jacobian="",
        scaling=ways,
        notes=flow_sentences.notes(flow),
        experiment=_settings(FLOW_FIELDS, experiment.values) if experiment else "",
        environment=_environment(flow.environment),
    )


_EMBEDDED = 2000  # points up to which the page of a sweep has them as JSON; its file has them all


def _of_study(study: Study) -> str:
    drawn = study_figures.figures(study) if study.points else {}
    behind = study_tables.table(study)
    where = sorted({point.where for point in study.points} - {""})
    rows = tuple((axis.label, ", ".join(map(text, axis.values))) for axis in study.axes)
    names = " and ".join(axis.name for axis in study.axes)
    what = study_sentences.setting(study)
    # A file of thousands of points would take the browser longer than the pictures of them.
    embedded = study if len(study.points) <= _EMBEDDED else study.model_copy(update={"points": ()})
    return _page(
        embedded,
        title=f"Sweep of {what} over {names}" if what else f"Sweep over {names}",
        formula="Experiments along " + ", ".join(axis.label for axis in study.axes),
        summary=study_sentences.summary(study),
        plan="",
        verdicts="",
        figures="".join(
            f'<section aria-label="{escape(figure.layout.title.text)}">'
            f"{_drawing(study, name, figure)}</section>"
            for name, figure in drawn.items()
        ),
        jacobian="",
        scaling=_folded(behind),
        notes=study_sentences.notes(study),
        experiment=tables.to_html(tables.Table("Axes", ("Field", "Values"), rows)),
        environment=tables.to_html(
            tables.Table("Measured on", ("Host, device, threads",), tuple((w,) for w in where))
        ),
    )


def _of_comparison(comparison: Comparison) -> str:
    said = comparing_sentences
    behind = comparing_tables.tables(comparison)
    drawn = comparing_figures.figures(comparison)
    return _page(
        comparison,
        title=f"Comparison of {', '.join(comparison.results)}",
        formula=f"Times of every path over those in {comparison.first}",
        summary=said.summary(comparison),
        plan="",
        verdicts=_list(map(escape, (*said.each(comparison), *said.gradients(comparison)))),
        figures=_figures(comparison, drawn, behind),
        jacobian="".join(_folded(table) for name, table in behind.items() if name not in drawn),
        scaling=_list(map(escape, said.experiments(comparison) + said.environments(comparison))),
        notes=said.notes(comparison),
        experiment="",
        environment="",
    )


def _page(
    seen: Seen | Comparison,
    *,
    title: str,
    formula: str,
    summary: str,
    plan: str,
    verdicts: str,
    figures: str,
    jacobian: str,
    scaling: str,
    notes: Iterable[str],
    experiment: str,
    environment: str,
) -> str:
    """The page; what is no sentence is HTML already."""
    return _PAGE.format(
        title=escape(title),
        formula=escape(formula),
        style=_STYLE + Path(__file__).with_name("figures.css").read_text(encoding="utf-8"),
        plotly=get_plotlyjs(),
        summary=escape(summary),
        plan=escape(plan),
        jacobian=jacobian,
        scaling=scaling,
        verdicts=verdicts,
        notes=_list(map(escape, notes)),
        figures=figures,
        experiment=experiment,
        environment=environment,
        # Inside a script, "<" could begin a tag that ends it.
        result=seen.to_json().replace("<", "\\u003c"),
    )


def _list(items: Iterable[str]) -> str:
    entries = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{entries}</ul>" if entries else ""


def _figures(
    seen: Seen | Comparison,
    drawn: Mapping[str, go.Figure],
    behind: Mapping[str, tables.Table],
) -> str:
    return "".join(
        f'<section aria-label="{escape(behind[name].title)}">'
        f"{_drawing(seen, name, figure)}{_folded(behind[name])}</section>"
        for name, figure in drawn.items()
    )


def _folded(table: tables.Table) -> str:
    return (
        f"<details><summary>Table: {escape(table.title)}</summary>"
        f'<div class="wide">{tables.to_html(table)}</div></details>'
    )


def _drawing(seen: Seen | Comparison, name: str, figure: go.Figure) -> str:
    return str(
        plotly_div(
            figure,
            config=config(figure, f"{stem(seen)}-{name}"),
            include_plotlyjs=False,
            full_html=False,
            div_id=f"figure-{name}",
            default_height=f"{figure.layout.height}px",
        )
    )


def _settings(fields: Mapping[str, Field], values: Mapping[str, Any]) -> str:
    """The experiment's fields by their labels, as the page and the command line name them."""
    rows = []
    for name, field in fields.items():
        text = field.text(values[name]) or field.empty
        unit = f" {field.unit}" if field.unit and values[name] is not None else ""
        rows.append((field.label, text.replace(",", ", ") + unit))
    return tables.to_html(tables.Table("Experiment", ("Field", "Value"), tuple(rows)))


def _environment(seen: Environment) -> str:
    rows = (
        ("Device", seen.device_name),
        ("Threads", str(seen.threads)),
        ("torch", seen.torch),
        ("Python", seen.python),
        ("Host", seen.host),
        ("Started (UTC)", seen.started),
    )
    return tables.to_html(tables.Table("Environment", ("What", "Value"), rows))


_STYLE = """
:root {
  color-scheme: light dark;
  --jp-ui-font-color1: #1f1f1f; --jp-ui-font-color2: #555;
  --jp-border-color1: #bbb; --jp-border-color2: #ddd; --jp-layout-color1: #fff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --jp-ui-font-color1: #eee; --jp-ui-font-color2: #bbb;
    --jp-border-color1: #666; --jp-border-color2: #3a3a3a; --jp-layout-color1: #16181c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 1200px; padding: 12px;
  font: 16px/1.45 system-ui, sans-serif;
  color: var(--jp-ui-font-color1); background: var(--jp-layout-color1);
}
h1 { font-size: 1.4em; line-height: 1.25; margin: 8px 0; }
li { overflow-wrap: anywhere; }
.summary { font-size: 1.25em; overflow-wrap: anywhere; }
.plan:empty { display: none; }
.formula, .notes { color: var(--jp-ui-font-color2); }
.grid {
  display: grid; gap: 12px; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(480px, 100%), 1fr));
}
section {
  min-width: 0; padding: 6px; border: 1px solid var(--jp-border-color2); border-radius: 6px;
}
.wide { overflow-x: auto; }
summary { cursor: pointer; }
table { border-collapse: collapse; font-size: 0.9em; margin: 8px 0; }
caption { text-align: left; font-weight: 600; }
th, td {
  padding: 3px 10px 3px 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--jp-border-color2);
}
.settings td { overflow-wrap: anywhere; }
"""

# The policy holds the page to its word: it loads nothing, from anywhere.
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
<script>{plotly}</script>
</head>
<body>
<main>
<h1>{title}</h1>
<p class="formula">{formula}</p>
<p class="summary">{summary}</p>
<p class="plan">{plan}</p>
<div class="verdicts">{verdicts}</div>
<noscript><p>The pictures need JavaScript; the tables behind them do not.</p></noscript>
<div class="grid">{figures}</div>
<div class="jacobian">{jacobian}</div>
<div class="scaling">{scaling}</div>
<div class="notes">{notes}</div>
<div class="grid settings">{experiment}{environment}</div>
</main>
<script type="application/json" id="explorer-result">{result}</script>
</body>
</html>
"""
