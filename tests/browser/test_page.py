"""What a person meets on the page that `explorer app` serves."""

import json
import re
import sys
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE, free_port, serving

expect.set_options(timeout=PATIENCE)

Open = Callable[..., Page]
SMALL = "?size=20&repeats=2"


def pictures(page: Page) -> list[list[dict]]:
    """The data of every picture that is drawn, as plotly holds it in the page."""
    script = "JSON.stringify([...document.querySelectorAll('.js-plotly-plot')].map(p => p.data))"
    return json.loads(page.evaluate(script))


def wait_for_run(page: Page, pictures: int = 4) -> None:
    """Until a run is done and its pictures stand: four where x and y are single numbers."""
    expect(page.locator(".explorer-message")).to_contain_text(re.compile(r"^Done in"))
    expect(page.locator(".js-plotly-plot")).to_have_count(pictures)
    expect(page.locator(".explorer-summary")).to_contain_text("agree to")


def test_first_view_has_four_pictures_and_a_sentence_by_itself(open_page: Open) -> None:
    page = open_page()
    wait_for_run(page)
    assert all(data for data in pictures(page))
    expect(page.get_by_text("Table:")).to_have_count(4)
    assert page.title() == "explorer"


def test_a_changed_control_changes_the_pictures_and_a_reload_keeps_the_state(
    open_page: Open,
) -> None:
    page = open_page(SMALL)
    wait_for_run(page)
    before = pictures(page)
    page.get_by_label("Size n", exact=True).fill("57")  # which is no step of the slider
    expect(page).to_have_url(re.compile("size=57"))
    page.wait_for_function(
        "before => JSON.stringify([...document.querySelectorAll('.js-plotly-plot')]"
        ".map(p => p.data)) !== before",
        arg=json.dumps(before, separators=(",", ":")),
    )
    page.reload()
    wait_for_run(page)
    expect(page.get_by_label("Size n", exact=True)).to_have_value("57")
    expect(page.locator(".explorer-heading")).to_contain_text("n = 57")
    expect(page.get_by_label("Repeats")).to_have_value("2")


def test_a_typed_head_has_its_value_at_once_and_is_added(open_page: Open) -> None:
    page = open_page(SMALL)
    wait_for_run(page)
    typed = page.get_by_label("Type a head")
    typed.fill("y**2 + sinn(y)")
    expect(page.get_by_role("alert")).to_contain_text("Column 8: sinn is not a known function.")
    typed.fill("y**2 + sin(y)")
    trial = page.locator(".explorer-trial")
    expect(trial).to_contain_text(re.compile(r"^y² \+ sin y = [\d.]+, dz/dx = -?[\d.]+$"))
    expect(page.locator(".explorer-verdicts li")).to_have_count(2)
    typed.press("Enter")
    expect(typed).to_have_value("")
    page.get_by_role("button", name="Run").click()  # it does so by itself on a quick machine
    expect(page.locator(".explorer-verdicts")).to_contain_text("y**2 + sin(y), that is y² + sin y")
    expect(page).to_have_url(re.compile("heads=square,sqrt,y%2A%2A2"))
    expect(page.get_by_label("y**2 + sin(y)", exact=True)).to_be_checked()
    page.reload()
    wait_for_run(page)
    expect(page.locator(".explorer-verdicts li")).to_have_count(3)


def test_the_lines_of_a_scaling_follow_a_slider(open_page: Open) -> None:
    page = open_page("?size=20&repeats=1&paths=recompute,reuse&scaling=heads&cutoff=0.05")
    page.get_by_role("button", name="Run").click()  # a scaling does not run by itself
    expect(page.get_by_text("Fitted to the points")).to_have_count(1)
    wait_for_run(page, 6)
    *_, measured = pictures(page)
    slider = page.get_by_role("slider", name="f so many times slower")
    expect(slider).to_have_attribute("aria-valuetext", "1.0")
    for _ in range(20):
        slider.press("ArrowRight")
    expect(page.get_by_text("were f 10 times slower: ")).to_have_count(1)
    plot = page.locator(".explorer-card-scaling-heads-time .js-plotly-plot")
    expect(plot.locator(".gtitle-subtitle")).to_contain_text("were f 10 times")
    *_, slower = pictures(page)
    (line, points, *_), (line_before, points_before, *_) = slower, measured
    assert points == points_before
    assert 1 < line["y"][0] / line_before["y"][0] <= 10, "a head costs what it did"


def test_run_and_cancel_in_a_long_run(open_page: Open) -> None:
    page = open_page(SMALL)
    wait_for_run(page)
    page.get_by_label("Size n", exact=True).fill("1500")
    page.get_by_role("button", name="Run").click()
    cancel = page.get_by_role("button", name="Cancel")
    expect(cancel).to_be_enabled()
    expect(page.locator(".explorer-message")).to_contain_text("forward")
    cancel.click()
    expect(page.locator(".explorer-message")).to_contain_text("Cancelled")
    expect(page.locator(".js-plotly-plot")).to_have_count(4)


def test_a_bad_value_shows_its_sentence_and_stays_as_typed(open_page: Open) -> None:
    page = open_page(SMALL)
    wait_for_run(page)
    size = page.get_by_label("Size n", exact=True)
    size.fill("-3")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Size n is -3. Allowed: a whole number from 2 to 2000.")
    expect(size).to_have_value("-3")
    expect(page.get_by_role("button", name="Run")).to_be_disabled()
    size.fill("20")
    expect(alert).to_have_count(0)


def test_a_hostile_link_is_told_field_by_field_and_not_run(open_page: Open) -> None:
    page = open_page("?size=1e9&x=%3Cscript%3Ealert(1)%3C/script%3E&frobnicate=1")
    alerts = page.get_by_role("alert")
    expect(alerts).to_have_count(3)
    expect(page.locator(".explorer-summary")).to_contain_text("not run")
    assert not any(pictures(page))  # at most the empty frame that stands before a first run
    page.get_by_role("button", name="Reset").click()
    wait_for_run(page)
    expect(alerts).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/$"))


def test_a_narrow_window_has_no_sideways_scroll_and_dark_follows_the_browser(
    open_page: Open,
) -> None:
    page = open_page(SMALL)
    page.emulate_media(color_scheme="dark")
    wait_for_run(page)
    page.set_viewport_size({"width": 360, "height": 740})
    page.wait_for_function(  # the pictures are drawn anew, and keep their heights
        """() => [...document.querySelectorAll('.js-plotly-plot')].every(plot =>
            plot.querySelector('.main-svg').clientWidth < 360 && plot.clientHeight > 200)"""
    )
    # The page's own element may scroll in place of the window, so the widest thing is asked.
    assert page.evaluate("document.querySelector('.explorer').scrollWidth") <= 360
    brightness = """getComputedStyle(document.body).backgroundColor
        .match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0)"""
    page.wait_for_function(f"() => {brightness} < 200")
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"() => {brightness} > 600")


def test_every_control_has_a_name(open_page: Open) -> None:
    page = open_page(SMALL)
    wait_for_run(page)
    slider = page.get_by_role("slider")
    expect(slider).to_have_attribute("aria-label", re.compile("size n"))
    expect(slider).to_have_attribute("aria-valuetext", "20")
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "21")
    expect(page.get_by_label("Size n", exact=True)).to_have_value("21")
    for dtype, pressed in (("float64", "true"), ("float32", "false")):
        button = page.get_by_role("button", name=dtype)
        expect(button).to_have_attribute("aria-pressed", pressed)
    nameless = page.evaluate(
        """[...document.querySelectorAll('.explorer :is(input, select, button)')]
            .filter(e => e.offsetParent && !(e.labels?.length || e.textContent.trim()
                || e.title || e.getAttribute('aria-label')))
            .map(e => e.outerHTML)"""
    )
    assert nameless == []


def test_a_lost_connection_shows_a_banner_that_reloads(
    page: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    port = str(free_port())
    command = [sys.executable, "-m", "explorer", "app", "--no-browser", "--port", port]
    folder = tmp_path_factory.mktemp("lost")
    with serving(command, folder) as link:
        page.goto(f"{link}{SMALL}")
        wait_for_run(page)
        expect(page.get_by_role("alert")).to_have_count(0)
    banner = page.get_by_role("alert").filter(has_text="connection")
    expect(banner).to_be_visible()
    with serving(command, folder):
        banner.get_by_role("button", name="Reload").click()
        wait_for_run(page)
        expect(page.get_by_label("Size n", exact=True)).to_have_value("20")


def test_the_script_is_copied_also_where_the_page_is_not_secure(open_page: Open) -> None:
    page = open_page(SMALL)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    wait_for_run(page)
    script = page.locator(".explorer-code pre")
    expect(script).to_have_count(0)
    page.get_by_role("button", name="Copy code").click()
    expect(script).to_contain_text("n = 20\n")
    page.get_by_label("Path", exact=True).select_option("reuse")
    # The script of auto, which takes the same way, says so in other words.
    expect(script).to_contain_text("Path reuse:")
    expect(script).to_contain_text("(dy_dx,) = torch.autograd.grad(y, x)")
    page.evaluate("() => { window.board = navigator.clipboard; }")
    for take_away in (False, True):
        if take_away:  # as on http:// from another machine
            page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        page.evaluate("board.writeText('nothing')")
        page.get_by_role("button", name="Copy", exact=True).click()
        expect(page.locator(".explorer-code .explorer-copied")).to_have_text("Copied.")
        assert page.evaluate("board.readText()") == script.text_content()
        page.evaluate("document.querySelector('.explorer-code .explorer-copied').textContent = ''")
    page.get_by_label("Size n", exact=True).fill("30")
    expect(script).to_contain_text("n = 30\n")
