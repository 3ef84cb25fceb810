"""The page's own time, each figure beside what it cannot be faster than, in one run.

    python benchmarks/page.py [--rounds 3]

In a real Chromium, alternating with a page of plain Voila that prints one line:

- controls: from opening the page until Run can be pressed, over the one-line page's time until
  its line shows; to reach: at most 2;
- pictures: from usable controls until the first four pictures stand, less the worker's first
  start and the first experiment, both measured apart; to reach: at most 1 s. Pictures come while
  the experiment runs, so `partial` takes off only the part up to its first partial Result;
- run: from the click on Run until the last picture stands, less the run's own work; to reach: at
  most 0.5 s;
- cancel: from the click on Cancel until "Cancelled" shows; to reach: at most 0.3 s.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import nbformat
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.browser import chromium
from tests.browser.conftest import CHROMIUM_ARGUMENTS, free_port, serving

APP = [sys.executable, "-m", "explorer", "app", "--no-browser"]
BOUNDS = {
    "controls": ("times the one-line page", 2.0),
    "pictures": ("s beyond the worker's start and the first experiment", 1.0),
    "partial": ("s beyond the start and the first partial result", None),
    "run": ("s beyond the run's own work", 0.5),
    "cancel": ("s", 0.3),
}
MOMENTS = """() => ({
    run: !!document.querySelector('.explorer-run button:not([disabled])'),
    pictures: document.querySelectorAll('.js-plotly-plot .main-svg').length >= 4
        && document.querySelector('.explorer-card-passes .js-plotly-plot')?.data?.length,
})"""


# In processes of their own: each process of the worker imports its parent's main module again,
# which in the page's kernel is nothing, and here would be Playwright and the tests.
FIRST_EXPERIMENT = """
import time
from explorer.events import Partial
from explorer.experiment import Experiment
from explorer.worker import Worker
start = time.perf_counter()
partial = None
for event in Worker().submit(Experiment(budget=60.0)).events():
    if partial is None and isinstance(event, Partial):
        partial = time.perf_counter() - start
print(partial, time.perf_counter() - start)
"""
OWN_WORK = """
import time
from statistics import median
from explorer.experiment import Experiment
from explorer.worker import Worker
worker = Worker()
worker.devices()  # now the fork server is up, as behind a page that has shown something
took = []
for _ in range(3):
    start = time.perf_counter()
    for _ in worker.submit(Experiment(size=60, repeats=3, budget=60.0)).events():
        pass
    took.append(time.perf_counter() - start)
print(median(took))
"""


def seconds(code: str) -> list[float]:
    """What a program of its own measures."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(number) for number in done.stdout.split()]


def until(page: Page, condition: str) -> float:
    """The moment, by this process's clock, at which a condition in the page holds."""
    page.wait_for_function(condition, polling=10, timeout=120_000)
    return time.perf_counter()


def one_line_page(page: Page, link: str) -> float:
    start = time.perf_counter()
    page.goto(link)
    return until(page, "() => document.body.innerText.includes('one line')") - start


def own_page(page: Page, link: str) -> tuple[float, float]:
    """(seconds until the controls are usable, seconds from then until four pictures stand)."""
    start = time.perf_counter()
    page.goto(link)
    controls = until(page, f"() => ({MOMENTS})().run")
    return controls - start, until(page, f"() => ({MOMENTS})().pictures") - controls


def run_and_cancel(page: Page, link: str) -> tuple[float, float]:
    """(seconds from the click on Run to the last picture, seconds from the click on Cancel on)."""
    page.goto(f"{link}?size=60&repeats=3")
    message = "document.querySelector('.explorer-message').textContent"
    until(page, f"() => ({MOMENTS})().pictures && {message}.startsWith('Done')")
    drawn = """() => { window.drawn = 0;
        document.querySelectorAll('.js-plotly-plot').forEach(plot => {
            new MutationObserver(() => window.drawn = performance.now())
                .observe(plot.parentElement.parentElement, {childList: true, subtree: true}); });
        const status = document.querySelector('.explorer-message');
        new MutationObserver(() => {
            if (status.textContent.startsWith('Done')) window.done = performance.now(); })
            .observe(status.parentElement, {childList: true, subtree: true}); }"""
    page.evaluate(drawn)
    clicked = page.evaluate(
        "() => { const now = performance.now();"
        " document.querySelector('.explorer-run button').click(); return now; }"
    )
    page.wait_for_timeout(3_000)
    last = page.evaluate("Math.max(window.drawn, window.done)")
    page.get_by_label("Size n", exact=True).fill("1500")
    page.get_by_role("button", name="Run").click()
    until(page, f"() => {message}.includes('forward')")
    start = time.perf_counter()
    page.get_by_role("button", name="Cancel").click()
    cancelled = until(page, f"() => {message}.startsWith('Cancelled')") - start
    return (last - clicked) / 1e3, cancelled


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ours = stack.enter_context(serving(APP, folder))
        theirs = stack.enter_context(serving(_voila(_one_line(folder)), folder))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=chromium.find(), args=list(CHROMIUM_ARGUMENTS)
        )

        def fresh(visit: Callable[[Page, str], object], link: str) -> object:
            with browser.new_page() as page:  # a context, and so a cache, of its own
                seen = visit(page, link)
                page.goto("about:blank")  # ends the kernel
                return seen

        figures: dict[str, list[float]] = {name: [] for name in BOUNDS}
        for _ in range(chosen.rounds):
            line = fresh(one_line_page, theirs)
            controls, pictures = fresh(own_page, ours)
            partial, whole = seconds(FIRST_EXPERIMENT)
            run, cancel = fresh(run_and_cancel, ours)
            (work,) = seconds(OWN_WORK)
            print(
                f"one-line page {line:.2f} s, controls {controls:.2f} s, pictures {pictures:.2f}"
                f" s later, first experiment {partial:.2f} s to a partial, {whole:.2f} s in all;"
                f" click to last picture {run:.2f} s, the run's own work {work:.2f} s"
            )
            seen = (controls / line, pictures - whole, pictures - partial, run - work, cancel)
            for name, value in zip(BOUNDS, seen, strict=True):
                figures[name].append(value)
        browser.close()
    print(f"median (range) of {chosen.rounds} rounds")
    for name, (unit, bound) in BOUNDS.items():
        values = figures[name]
        print(
            f"{name:>9}: {median(values):5.2f} ({min(values):.2f} to {max(values):.2f}) {unit}"
            f"{f'; to reach: at most {bound}' if bound else ''}"
        )


def _voila(notebook: Path) -> list[str]:
    """Voila as it comes, on another notebook."""
    command = [sys.executable, "-m", "voila", str(notebook), "--no-browser"]
    return [*command, f"--port={free_port()}"]


def _one_line(folder: Path) -> Path:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print('one line')")])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    path = folder / "line.ipynb"
    nbformat.write(notebook, path)
    return path


if __name__ == "__main__":
    main()
