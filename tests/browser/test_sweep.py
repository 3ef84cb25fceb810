"""The panel of the sweeps in a real browser."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE
from tests.browser.test_page import pictures

expect.set_options(timeout=PATIENCE)


def test_a_sweep_opened_by_its_link_fills_its_pictures_and_can_be_changed(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("?panel=sweep&over1=size%3D8,12&over2=heads%3D1,2&repeats=1")
    expect(page.locator(".explorer-message")).to_contain_text(re.compile(r"^Done in"))
    expect(page.locator(".js-plotly-plot")).to_have_count(5)
    expect(page.locator(".explorer-summary")).to_contain_text(
        "Over 4 points of size 8 to 12 and heads 1 to 2, "
    )
    speed_up, time, *_ = pictures(page)
    assert [(each["name"], each["x"]) for each in speed_up] == [
        ("heads=1", [8, 12]), ("heads=2", [8, 12]),
    ]  # fmt: skip
    for each in speed_up:
        said = each["hovertext"][0]
        found = re.search(r"([\d.]+) times as fast as", said)
        assert found, said
        assert float(found.group(1)) > 0 and each["y"][0] > 0
    # By path with the largest number of heads, until another is chosen.
    choice = page.get_by_label("Shown by path: heads")
    expect(choice).to_have_value("2")
    choice.select_option("1")
    page.wait_for_function(
        "before => JSON.stringify(document.querySelectorAll('.js-plotly-plot')[1].data[0].y)"
        " !== JSON.stringify(before)",
        arg=time[0]["y"],
    )
    # A wrong axis is told beside it and not run; a right one marks what is shown as old.
    axis = page.get_by_label("Axis 2")
    axis.fill("heads=1,x")
    expect(page.get_by_role("alert")).to_contain_text("Number of heads K is x. Allowed:")
    expect(page.get_by_role("button", name="Run")).to_be_disabled()
    axis.fill("heads=1:64:log7")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"panel=sweep&.*over2=heads%3D1:64:log7"))
    expect(page.locator(".explorer-pictures")).to_have_class(re.compile("explorer-stale"))
    # A long one is cancelled, and what had finished stays.
    page.get_by_label("Axis 1").fill("size=8:400:lin60")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".explorer-message")).to_contain_text(re.compile("point [3-9] of 420"))
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".explorer-message")).to_contain_text(re.compile(r"^Cancelled after"))
    expect(page.locator(".explorer-summary")).to_contain_text(re.compile(r"^Over \d+ of 420"))
    page.set_viewport_size({"width": 360, "height": 740})
    page.wait_for_function(
        """() => [...document.querySelectorAll('.js-plotly-plot')].every(plot =>
            plot.querySelector('.main-svg').clientWidth < 360)"""
    )
    assert page.evaluate("document.querySelector('.explorer').scrollWidth") <= 360
    # The other panel, and back.
    page.get_by_role("button", name="Heads on f").click()
    expect(page.get_by_label("Size n", exact=True)).to_be_visible()
    expect(page).not_to_have_url(re.compile("panel="))
    page.get_by_role("button", name="Sweep").click()
    expect(page.get_by_label("Axis 1")).to_have_value("size=8:400:lin60")
    expect(page.locator(".js-plotly-plot")).to_have_count(5)
