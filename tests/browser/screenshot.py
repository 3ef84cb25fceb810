"""Takes the README's picture of the page: python -m tests.browser.screenshot FILE.

Serves the page, opens it in Chromium, waits for the first experiment and writes a PNG.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.browser import chromium
from tests.browser.conftest import CHROMIUM_ARGUMENTS, PATIENCE, serving
from tests.browser.test_page import wait_for_run

SIZE = {"width": 1400, "height": 1000}
COMMAND = [sys.executable, "-m", "explorer", "app", "--no-browser"]


def main(file: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(COMMAND, Path(folder)) as link,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=chromium.find(), args=list(CHROMIUM_ARGUMENTS)
        )
        page = browser.new_page(viewport=SIZE)
        expect.set_options(timeout=PATIENCE)
        page.goto(link)
        wait_for_run(page)
        page.screenshot(path=file)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
