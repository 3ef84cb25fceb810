"""What a sweep costs beside its measurements, and what it loses when it is killed.

    python benchmarks/sweep.py [--kills 50]

- overhead: wall time of a sweep of 100 small points, written to a file, less the seconds of their
  runs, a point; to reach: at most 30 ms;
- drawing: a file of 10 000 points in three axes read, made into a page, and that page opened in a
  real Chromium until its last picture stands; to reach: under 3 s;
- zoom: from a change of one picture's range until it is redrawn, the slowest of five pictures; to
  reach: at most 0.2 s;
- kills: a sweep of 200 points killed with SIGKILL at random moments and begun again, until it is
  done; to reach: no finished point lost or changed, none there twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent))
from explorer.events import Done
from explorer.experiment import Experiment
from explorer.export import to_html
from explorer.study.journal import read_study
from explorer.study.point import Point
from explorer.study.sweep import Sweep
from explorer.worker import Worker
from tests.browser import chromium
from tests.browser.conftest import CHROMIUM_ARGUMENTS

ZOOM = """async (number) => {
    const plot = document.querySelectorAll('.js-plotly-plot')[number];
    const range = plot._fullLayout.xaxis.range;
    const middle = (range[0] + range[1]) / 2;
    const begun = performance.now();
    await Plotly.relayout(plot, {'xaxis.range': [range[0], middle]});
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - begun;
}"""
DRAWN = """() => {
    const plots = [...document.querySelectorAll('.js-plotly-plot')];
    return plots.length >= 5 && plots.every(plot => plot.querySelector('.main-svg'));
}"""


# In a process of its own: each process of the worker imports its parent's main module again, which
# for the command is nothing, and here would be Playwright and the tests.
OVERHEAD = """
import sys
import time
from explorer.experiment import Experiment
from explorer.study.journal import Journal
from explorer.study.running import Running
from explorer.study.sweep import Sweep
from explorer.worker import Worker
wanted = Sweep({"repeats": 1, "paths": ("reuse",)}, ["size=2:101:lin100"])
worker = Worker()
*_, first = worker.submit(Experiment(size=2)).events()  # the first start of all imports torch
with Journal(sys.argv[1], wanted) as journal:
    start = time.perf_counter()
    *_, ending = Running(wanted, worker, journal=journal).events()
    wall = time.perf_counter() - start
points = ending.result.points
print((wall - sum(point.seconds for point in points)) / len(points))
"""


def overhead(folder: Path) -> float:
    """Seconds of a point beside its run."""
    command = [sys.executable, "-c", OVERHEAD, str(folder / "overhead.jsonl")]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def large(file: Path) -> None:
    """Writes 10 000 points of one result, at the places of a sweep over three fields."""
    wanted = Sweep({}, ["size=2:101:lin100", "heads=1:50:lin50", "dtype=float32,float64"])
    *_, ending = Worker().submit(Experiment(size=20, repeats=2)).events()
    assert isinstance(ending, Done)
    noise = random.Random(0)
    with file.open("wb") as lines:
        for place in wanted.places:
            point = Point.of(wanted.key, place.key, place.at, 0.1, ending.result)
            factor = int(place.at["size"]) * noise.uniform(0.9, 1.1)
            heads = int(place.at["heads"])
            paths = {
                name: path.model_copy(
                    update={
                        key: getattr(path, key) * factor * (heads if path.backward > 1 else 1)
                        for key in ("seconds", "low", "high")
                    }
                )
                for name, path in point.paths.items()
            }
            moved = point.model_copy(update={"paths": paths})
            head = moved.model_dump_json(by_alias=True, exclude_defaults=True)
            rest = json.loads(point.line)["result"]
            lines.write(f'{{"schema":1,{head[1:-1]},"result":{json.dumps(rest)}}}\n'.encode())


def drawing(folder: Path) -> tuple[dict[str, float], float]:
    """(seconds of reading, of making the page and of its drawing; of the slowest zoom)."""
    file, page_file = folder / "large.jsonl", folder / "large.html"
    large(file)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.find(), args=CHROMIUM_ARGUMENTS
        )
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto("about:blank")
        start = time.perf_counter()
        study = read_study(file)
        read = time.perf_counter()
        page_file.write_text(to_html(study), encoding="utf-8")
        written = time.perf_counter()
        page.goto(page_file.as_uri())
        page.wait_for_function(DRAWN)
        drawn = time.perf_counter()
        assert len(study.points) == 10_000
        zooms = [page.evaluate(ZOOM, number) / 1000 for number in range(5)]
        browser.close()
    return {"read": read - start, "page": written - read, "drawn": drawn - written}, max(zooms)


def kills(folder: Path, count: int) -> tuple[int, int]:
    """(how often it was killed, how many points the file then has); raises if one was lost."""
    file = folder / "kills.jsonl"
    command = [
        *(sys.executable, "-m", "explorer", "sweep", "--over", "size=2:201:lin200"),
        *("--path", "reuse", "--repeats", "1", "--jsonl", str(file)),
    ]
    moments, kept, killed = random.Random(0), b"", 0
    while True:
        program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # Anywhere from the program's start to some points on.
        patience = moments.uniform(0.0, 6.0) if killed < count else None
        try:
            program.wait(patience)
        except subprocess.TimeoutExpired:
            os.kill(program.pid, signal.SIGKILL)
            program.wait()
            killed += 1
        content = file.read_bytes() if file.exists() else b""
        assert content.startswith(kept), "a finished point was lost or changed"
        kept = content[: content.rfind(b"\n") + 1]
        if program.returncode == 0:
            break
    keys = [json.loads(line)["point"] for line in kept.splitlines()]
    assert len(keys) == len(set(keys)) == 200, "a point is missing or there twice"
    return killed, len(keys)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    count = parser.parse_args().kills
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"overhead: {1000 * overhead(folder):.1f} ms a point; to reach: 30")
        parts, zoom = drawing(folder)
        told = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in parts.items())
        print(f"10 000 points: {sum(parts.values()):.2f} s ({told}); to reach: 3")
        print(f"zoom: {zoom:.3f} s; to reach: 0.2")
        if count:
            killed, points = kills(folder, count)
            print(f"killed {killed} times: {points} points, none lost, none twice")


if __name__ == "__main__":
    main()
