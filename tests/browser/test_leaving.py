"""A tab that is closed takes its kernel along, and all that the kernel started."""

import psutil
from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE
from tests.work import session, soon

expect.set_options(timeout=PATIENCE)


def kernels(link: str) -> list[psutil.Process]:
    """Those of the server that listens at a link: of this process's children the one whose command
    names the port."""
    port = link.rstrip("/").rpartition(":")[2]
    (server,) = (each for each in psutil.Process().children() if port in each.cmdline())
    return server.children()


def test_a_tab_closed_in_mid_run_leaves_no_process(page: Page, voila: str) -> None:
    before = kernels(voila)
    page.goto(f"{voila.rstrip('/')}/?size=2000&paths=recompute")
    expect(page.locator(".explorer-message")).to_contain_text("forward")
    (kernel,) = (each for each in kernels(voila) if each not in before)
    assert len(session(kernel.pid)) >= 3  # with the fork server and the run
    # What watches the requests holds each one up, and what a tab sends as it closes for good.
    page.context.unroute_all()
    page.close(run_before_unload=True)  # as a person closes it
    assert soon(lambda: not session(kernel.pid), 60)  # sooner than one that no browser holds
