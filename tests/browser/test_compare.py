"""Results chosen and dropped in a real browser."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE
from tests.comparing.results import elsewhere, measured

expect.set_options(timeout=PATIENCE)

DROP = """([selector, files]) => {
    const data = new DataTransfer();
    for (const [name, content] of files) {
        const text = typeof content === "number" ? "x".repeat(content) : content;
        data.items.add(new File([text], name));
    }
    for (const kind of ["dragover", "drop"]) {
        document.querySelector(selector).dispatchEvent(
            new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
    }
}"""


def test_files_are_chosen_and_dropped_and_what_is_too_large_is_not_sent(
    page: Page, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    sent: list[int] = []
    page.on(
        "websocket",
        lambda socket: socket.on("framesent", lambda payload: sent.append(len(payload))),
    )
    open_page("?panel=compare")
    page.wait_for_selector(".explorer-chosen", state="attached")
    file = tmp_path / "laptop.json"
    file.write_text(measured().to_json())
    page.locator(".explorer-chosen").set_input_files(file)
    summary = page.locator(".explorer-summary")
    expect(summary).to_contain_text("laptop is loaded")
    # Together more than one message may have: sent in parts, and the connection stays.
    files = [["gpu.json", elsewhere().to_json()], ["large.json", 5_000_001]]
    page.evaluate(DROP, ["body", [*files, *([f"{n}.json", 4_000_000] for n in (1, 2, 3))]])
    expect(summary).to_contain_text("gpu is faster than laptop in recompute (2.5 times")
    alerts = page.get_by_role("alert")
    expect(alerts.filter(has_text="3.json")).to_contain_text("is not JSON")
    expect(alerts.filter(has_text="large.json")).to_contain_text("is larger than 5 MB")
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    expect(page.locator("#explorer-lost")).to_have_count(0)
    assert 5_000_000 < max(sent) < 10 * 2**20  # beyond which tornado closes the connection
    page.set_viewport_size({"width": 360, "height": 740})
    page.wait_for_function(
        """() => [...document.querySelectorAll('.js-plotly-plot')].every(plot =>
            plot.querySelector('.main-svg').clientWidth < 360)"""
    )
    assert page.evaluate("document.querySelector('.explorer').scrollWidth") <= 360
    page.get_by_role("button", name="Remove").last.press("Enter")
    expect(summary).to_contain_text("laptop is loaded")
