"""A link for a class in a real browser, made in a kernel that was started ahead."""

import re
import sys
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import PATIENCE, free_port, serving

expect.set_options(timeout=PATIENCE)

# As on a class's http://<address>, which is no secure context: there is no clipboard to ask.
WITHOUT_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"

# Asked again and again, since a picture that is drawn anew takes its old title off the page.
LARGE_TITLE = """() => [...document.querySelectorAll(".js-plotly-plot .gtitle")].some(
    title => parseFloat(getComputedStyle(title).fontSize) >= 24)"""


def clipboard(page: Page) -> str:
    """What was copied, pasted into a box as a person would."""
    page.evaluate("document.body.append(document.createElement('textarea'))")
    box = page.locator("body > textarea")
    box.focus()
    box.press("Control+v")
    text = box.input_value()
    box.evaluate("box => box.remove()")
    return text


def test_a_link_for_a_class_is_copied_and_opens_as_it_was_made(
    page: Page, context: BrowserContext, tmp_path_factory: pytest.TempPathFactory
) -> None:
    port = str(free_port())
    command = [sys.executable, "-m", "explorer", "app", "--no-browser", "--port", port]
    with serving([*command, "--preheat", "1"], tmp_path_factory.mktemp("class")) as link:
        page.goto(f"{link}?size=20&repeats=1&paths=recompute,reuse")
        expect(page).to_have_url(re.compile("size=20&x="))  # the address follows the state
        page.get_by_role("button", name="Copy link").click()
        expect(page.locator(".explorer-sharing .explorer-copied").first).to_have_text("Copied.")
        assert clipboard(page) == page.url

        page.evaluate(WITHOUT_CLIPBOARD)
        page.get_by_role("button", name="For a class").click()
        form = page.locator(".explorer-class-form")
        line = form.locator(".widget-hbox")
        line.filter(has_text="Seed").get_by_label("hide").check()
        line.filter(has_text="Size n").get_by_label("lock").check()
        form.get_by_label("projector").check()
        expect(form.locator("[data-query]")).to_have_attribute(
            "data-query", re.compile("&hide=seed&lock=size:20&view=projector$")
        )
        form.get_by_role("button", name="Copy the link").click()
        expect(form.locator(".explorer-copied")).to_have_text("Copied.")
        copied = clipboard(page)
        assert urlsplit(copied).query == form.locator("[data-query]").get_attribute("data-query")

        visitor = context.new_page()
        visitor.set_viewport_size({"width": 1920, "height": 1080})
        visitor.goto(copied)
        size = visitor.get_by_label("Size n", exact=True)
        expect(size).to_have_value("20")
        expect(visitor.get_by_label("Seed")).to_be_hidden()
        expect(visitor.get_by_text("The link allows at most 20.")).to_be_visible()
        visitor.wait_for_function(LARGE_TITLE, timeout=PATIENCE)
        size.fill("21")
        expect(visitor.get_by_role("alert")).to_contain_text(
            "Size n is 21. The link allows at most 20."
        )
        visitor.get_by_role("button", name="Reset").click()
        expect(size).to_have_value("20")
        expect(visitor).to_have_url(re.compile("lock=size:20"))
        for each in (page, visitor):
            each.goto("about:blank")
