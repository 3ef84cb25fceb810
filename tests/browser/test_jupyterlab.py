"""The notebook as a person opens it in JupyterLab: run the cells, look, change, cancel."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE
from tests.browser.test_page import pictures, wait_for_run

expect.set_options(timeout=PATIENCE)


# The page and its pictures are narrow, and nothing in them is wider than they are.
FITS = """() => [...document.querySelectorAll('.explorer, .explorer .js-plotly-plot')]
    .every(e => 200 < e.clientWidth && e.clientWidth < 360 && e.scrollWidth <= e.clientWidth)"""
# Of the page's text, from 0 to 765.
BRIGHTNESS = """getComputedStyle(document.querySelector('.explorer-summary')).color
    .match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0)"""


def run_all(page: Page, notebook: str) -> None:
    page.goto(f"{notebook}?reset")  # without what another test had open
    expect(page.get_by_text("| Idle")).to_be_visible()  # cells run before that are lost
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def test_the_notebook_shows_the_same_page_in_jupyterlab(page: Page, jupyterlab: str) -> None:
    page.set_viewport_size({"width": 1500, "height": 1000})
    run_all(page, f"{jupyterlab}app.ipynb")
    wait_for_run(page)
    assert all(data for data in pictures(page))

    page.wait_for_function(f"() => {BRIGHTNESS} < 200")
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.get_by_text("Theme", exact=True).click()
    page.get_by_role("menuitem", name="JupyterLab Dark", exact=True).click()
    expect(page.locator("body")).to_have_attribute("data-jp-theme-light", "false")
    page.wait_for_function(f"() => {BRIGHTNESS} > 600")

    page.keyboard.press("Control+b")  # without the files there is room for the notebook
    page.set_viewport_size({"width": 360, "height": 740})
    page.wait_for_function(FITS)
    page.set_viewport_size({"width": 1500, "height": 1000})

    page.get_by_label("Size n", exact=True).fill("nonsense")
    expect(page.locator(".explorer-problem")).to_contain_text("Size n is nonsense. Allowed:")
    page.get_by_label("Size n", exact=True).fill("1500")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".explorer-message")).to_contain_text("Cancelled")
    expect(page.get_by_role("slider")).to_have_attribute("aria-label", re.compile("size n"))


def test_a_function_of_a_notebook_has_the_page_and_its_own_line_when_it_fails(
    page: Page, jupyterlab: str
) -> None:
    page.set_viewport_size({"width": 1500, "height": 1000})
    run_all(page, f"{jupyterlab}own.ipynb")
    wait_for_run(page, pictures=6)  # the singular values and the direction too
    expect(page.locator(".explorer-heading")).to_contain_text("mine: n = 2, power = 2, float32")
    expect(page.locator(".explorer-verdicts")).to_contain_text("g1: ")
    page.get_by_label("power", exact=True).fill("3")
    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_be_enabled()
    run.click()
    message = page.locator(".explorer-message")
    expect(message).to_contain_text("in mine, line 5 of Cell In[1]: return matrix @ (scale * x)")
    expect(message).to_contain_text("RuntimeError: ")
