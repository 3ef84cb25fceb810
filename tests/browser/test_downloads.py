"""What the page lets a person take along, in a real browser."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from playwright.sync_api import Page, expect

from explorer.result import Result
from explorer.rows import to_csv
from tests.browser.conftest import PATIENCE
from tests.browser.test_page import pictures

expect.set_options(timeout=PATIENCE)


def downloaded(page: Page, press: Callable[[], None], folder: Path) -> Path:
    with page.expect_download(timeout=PATIENCE) as found:
        press()
    path = folder / found.value.suggested_filename
    found.value.save_as(path)
    return path


def test_the_result_on_show_and_a_picture_of_it_are_downloaded(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page("?size=20&repeats=2&paths=recompute,reuse")
    page.emulate_media(color_scheme="dark")
    expect(page.locator(".explorer-message")).to_contain_text("Done")
    expect(page.locator(".explorer-card-norms .js-plotly-plot")).to_be_visible()
    part = page.locator(".explorer-downloads")
    files = {
        kind: downloaded(page, part.get_by_role("button", name=kind).click, tmp_path)
        for kind in ("JSON", "CSV", "HTML")
    }
    assert [file.name for file in files.values()] == [
        f"explorer-matrix_exp_trace-20.{ending}" for ending in ("json", "csv", "html")
    ]
    result = Result.from_json(files["JSON"].read_text())
    times = {time for trace in pictures(page)[0] for time in trace["x"]}
    for path in result.paths.values():
        assert path.seconds is not None and {*path.seconds.runs, path.seconds.median} <= times
    assert files["CSV"].read_bytes().decode() == to_csv(result)
    embedded = files["HTML"].read_text().rpartition('id="explorer-result">')[2]
    assert json.loads(embedded.partition("</script>")[0]) == json.loads(result.to_json())
    expect(page.locator(".explorer-download")).to_have_count(0)  # nothing stays in the page
    # The picture is dark on white, whatever the page is.
    page.get_by_label("A picture's camera button saves").select_option("SVG")
    page.wait_for_function(
        "document.querySelector('.js-plotly-plot')._context.toImageButtonOptions.format === 'svg'"
    )
    plot = page.locator(".explorer-card-time .js-plotly-plot")
    plot.hover()
    camera = plot.locator('[data-title^="Download plot"]')
    file = downloaded(page, camera.click, tmp_path)
    assert file.name == "explorer-matrix_exp_trace-20-time.svg"
    drawing = ElementTree.parse(file).getroot()
    styles = [text.get("style") or "" for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert styles and all("fill: rgb(68, 68, 68)" in style for style in styles)
    background = drawing.find("{http://www.w3.org/2000/svg}rect")
    assert background is not None
    assert "fill: rgb(255, 255, 255)" in (background.get("style") or "")
