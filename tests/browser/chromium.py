"""Which Chromium drives the browser tests: `find()`, or run this file to see its path.

`CHROMIUM` names one; else the first on `PATH` that starts, else the one Playwright downloaded.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# In a process of its own: a test has Playwright running, and it starts only once in a thread.
PLAYWRIGHTS_OWN = """
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)
"""


def find() -> str | None:
    """The path of a Chromium or Chrome that starts, or None."""
    return next((path for path in _candidates() if path and _starts(path)), None)


def _candidates() -> Iterator[str | None]:
    if named := os.environ.get("CHROMIUM"):
        yield shutil.which(named)
        return
    yield from map(shutil.which, NAMES)
    yield _output([sys.executable, "-c", PLAYWRIGHTS_OWN])


def _starts(path: str) -> bool:
    # Ubuntu's chromium-browser is there without the snap it would start, and fails here.
    return _output([path, "--version"]) is not None


def _output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


if __name__ == "__main__":
    path = find()
    if path is None:
        sys.exit(1)
    print(path)
