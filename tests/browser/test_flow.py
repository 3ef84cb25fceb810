"""The panel of the gradient flow in a real browser."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE
from tests.browser.test_page import pictures

expect.set_options(timeout=PATIENCE)

Open = Callable[..., Page]


def wait_for_flow(page: Page) -> None:
    expect(page.locator(".explorer-message")).to_contain_text(re.compile(r"^Done in"))
    expect(page.locator(".js-plotly-plot")).to_have_count(3)


def left(page: Page) -> float:
    """What is left of the gradient by what the first picture has: a geometric mean over losses."""
    share = 1.0
    lines = [line for line in pictures(page)[0] if "before" not in line["name"]]
    for line in lines:
        share *= (line["y"][0] / line["y"][-1]) ** (1 / len(lines))
    return share


def told(page: Page) -> float:
    """What the sentence says is left."""
    said = page.locator(".explorer-summary").text_content() or ""
    found = re.search(r"steps? ([\d.]+(?:e[-+]?\d+)?) of it is left", said)
    assert found, said
    return float(found.group(1))


def test_the_tanh_network_vanishes_and_its_orthogonal_start_does_not(open_page: Open) -> None:
    page = open_page("?panel=flow&repeats=2")
    wait_for_flow(page)
    expect(page.get_by_text("Table:")).to_have_count(4)
    before = left(page)
    assert before < 1e-6
    # The sentence gives so small a number by its order of magnitude.
    assert told(page) == pytest.approx(before, rel=0.5)
    page.get_by_role("button", name="Start orthogonal").click()
    expect(page.locator(".explorer-compared")).to_contain_text("orthogonal instead of default")
    expect(page).to_have_url(re.compile("panel=flow&.*start=orthogonal"))
    page.wait_for_function(
        "document.querySelector('.js-plotly-plot').data.some(line => /before/.test(line.name))"
    )
    after = left(page)
    assert after > 1e4 * before
    assert told(page) == pytest.approx(after, rel=0.05)
    page.reload()
    wait_for_flow(page)
    expect(page.get_by_label("Start", exact=True)).to_have_value("orthogonal")


def test_the_switch_works_by_keyboard_and_the_address_follows(open_page: Open) -> None:
    page = open_page("?size=20&repeats=2")
    expect(page.locator(".explorer-message")).to_contain_text(re.compile(r"^Done in"))
    switch = page.get_by_role("button", name="Gradient flow")
    switch.focus()
    switch.press("Enter")
    wait_for_flow(page)
    expect(page).to_have_url(re.compile(r"\?panel=flow$"))
    page.set_viewport_size({"width": 360, "height": 740})
    page.wait_for_function(
        """() => [...document.querySelectorAll('.js-plotly-plot')].every(plot =>
            plot.querySelector('.main-svg').clientWidth < 360)"""
    )
    assert page.evaluate("document.querySelector('.explorer').scrollWidth") <= 360
    page.get_by_label("Steps T", exact=True).fill("501")
    expect(page.get_by_role("alert")).to_contain_text("Steps T is 501. Allowed:")
    expect(page.get_by_role("button", name="Run")).to_be_disabled()
    page.get_by_role("button", name="Heads on f").press("Enter")
    expect(page.get_by_label("Size n", exact=True)).to_have_value("20")
    expect(page).to_have_url(re.compile("size=20"))
    expect(page.locator(".js-plotly-plot")).to_have_count(4)
