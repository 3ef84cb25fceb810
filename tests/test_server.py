"""The two servers: where they listen, what they say, and that they leave no process behind."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import psutil
import pytest
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager

from explorer import server
from tests.work import session

# tornado leaves a socket that it could not bind to the garbage collector
leaves_a_socket = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

CHECKOUT = Path(server.__file__).parent.parent
UNUSED = "203.0.113.5"  # reserved for examples: no machine has it


def poll(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Whether `condition` came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def busy_port() -> Iterator[int]:
    """A port that is taken."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def test_finds_the_notebook_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert server.notebook_path().is_file()
    assert server.notebook_path().is_absolute()


def test_says_that_the_notebook_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(server, "_APP", tmp_path / "explorer" / "app")
    with pytest.raises(FileNotFoundError, match=r"app\.ipynb is missing"):
        server.notebook_path()


@pytest.mark.parametrize(
    ("ip", "link"),
    [
        ("127.0.0.1", "http://127.0.0.1:8866/"),
        ("localhost", "http://localhost:8866/"),
        ("::1", "http://[::1]:8866/"),
        ("2001:db8::7", "http://[2001:db8::7]:8866/"),
    ],
)
def test_one_address_has_one_link(ip: str, link: str) -> None:
    assert server.links(ip, 8866) == [link]


@pytest.mark.parametrize("ip", ["", "0.0.0.0"])
def test_every_network_has_a_link_for_this_machine_and_one_for_others(
    ip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_address", lambda family: ["198.51.100.7"])
    assert server.links(ip, 80) == ["http://127.0.0.1:80/", "http://198.51.100.7:80/"]


def test_without_a_network_only_this_machine_has_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_address", lambda family: [])
    assert server.links("::", 80) == ["http://[::1]:80/"]


@leaves_a_socket
def test_a_busy_port_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with busy_port() as port:
        assert server.serve_app("127.0.0.1", port, open_browser=False) == server.REFUSED
    said = capsys.readouterr().err
    assert f"Port {port} is busy" in said
    assert "choose another port" in said
    assert "Traceback" not in said


@leaves_a_socket
def test_without_a_port_the_next_free_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with busy_port() as port:
        monkeypatch.setattr(server, "DEFAULT_PORT", port)
        sockets = server.listen("127.0.0.1", None)
    assert port < sockets[0].getsockname()[1] < port + server.PORTS_TRIED
    for one in sockets:
        one.close()


@leaves_a_socket
@pytest.mark.parametrize(
    ("ip", "port", "words"),
    [
        (UNUSED, 8866, "not an address of this machine"),
        ("no such host", 8866, "not an address of this machine"),
        ("127.0.0.1", 70000, "Port 70000 does not exist"),
    ],
)
def test_a_bad_address_is_a_sentence(ip: str, port: int, words: str) -> None:
    with pytest.raises(server.AddressError, match=words):
        server.listen(ip, port)


def test_a_port_for_administrators_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(port: int, ip: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tornado.netutil.bind_sockets", refuse)
    with pytest.raises(server.AddressError, match="Port 80 is for administrators"):
        server.listen("127.0.0.1", 80)


@pytest.mark.skipif(os.name != "posix", reason="folders have other permissions there")
def test_lab_says_that_it_cannot_write(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("shutil.copyfile", refuse)  # root may write anywhere
    monkeypatch.chdir(tmp_path)
    assert server.serve_lab() == server.REFUSED
    assert "Change to a folder you can write to" in capsys.readouterr().err


def run_apart(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In a thread of its own: Playwright leaves a loop running in the main one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, scenario()).result()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.05)


def test_a_kernel_without_a_browser_is_ended(tmp_path: Path) -> None:
    async def scenario() -> None:
        kernels = AsyncMappingKernelManager(connection_dir=str(tmp_path))
        alone, visited = [await kernels.start_kernel() for _ in range(2)]
        kernels.notify_connect(visited)
        ending = asyncio.create_task(server._end_abandoned(kernels, patience=0.2, interval=0.02))
        await until(lambda: alone not in kernels)
        assert visited in kernels
        another = await kernels.start_kernel()  # its end is later than several looks at the other
        await until(lambda: another not in kernels)
        assert visited in kernels
        kernels.notify_disconnect(visited)
        await until(lambda: visited not in kernels)
        ending.cancel()
        await kernels.shutdown_all()

    run_apart(scenario)


def test_a_browser_that_comes_back_begins_the_count_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kernels:
        """One kernel, looked at once in a second, with a browser at the third look."""

        now = 0
        ended: ClassVar[list[int]] = []

        def list_kernels(self) -> list[dict[str, object]]:
            self.now += 1
            return [{"id": "one", "connections": int(self.now == 3)}]

        async def shutdown_kernel(self, kernel: str) -> None:
            self.ended.append(self.now)

    async def scenario() -> None:
        ending = asyncio.create_task(server._end_abandoned(kernels, patience=2, interval=0))
        await until(lambda: bool(kernels.ended))
        ending.cancel()

    kernels = Kernels()
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: kernels.now))
    run_apart(scenario)
    assert kernels.ended[0] == 6


def test_a_kernel_that_waits_for_its_visitor_is_not_ended() -> None:
    async def started(kernel: str) -> dict[str, object]:
        await asyncio.sleep(0.01)
        return {"kernel_id": kernel}

    async def failed() -> dict[str, object]:
        raise RuntimeError("it does not start")

    class Kernels:
        """Three kernels without a browser, two of them started ahead."""

        ended: ClassVar[list[str]] = []
        _pools: ClassVar[dict[str, list[object]]] = {}

        def list_kernels(self) -> list[dict[str, object]]:
            return [{"id": name, "connections": 0} for name in ("ahead", "left", "next")]

        async def shutdown_kernel(self, kernel: str) -> None:
            self.ended.append(kernel)

    async def scenario() -> None:
        tasks = [asyncio.ensure_future(each) for each in (started("ahead"), started("next"))]
        kernels._pools["app.ipynb"] = [*tasks, asyncio.ensure_future(failed())]
        ending = asyncio.create_task(server._end_abandoned(kernels, patience=0.0, interval=0.01))
        await until(lambda: bool(kernels.ended))
        assert set(kernels.ended) == {"left"}
        del kernels._pools["app.ipynb"][0]  # its visitor came, and went
        await until(lambda: "ahead" in kernels.ended)
        assert "next" not in kernels.ended
        ending.cancel()

    kernels = Kernels()
    run_apart(scenario)


BROKEN = """
import nbformat
cell = nbformat.v4.new_code_cell("raise RuntimeError('it does not start')")
nbformat.write(nbformat.v4.new_notebook(cells=[cell]), "app.ipynb")
server.notebook_path = lambda: server.Path("app.ipynb").resolve()
sys.stderr = open("told", "w", buffering=1)
"""


@pytest.fixture
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[psutil.Popen, str]]:
    """A server started from another folder, and its link; a parameter is code that it runs."""
    code = f"""
import sys
sys.path.insert(0, {str(CHECKOUT)!r})
from explorer import server
{getattr(request, "param", "")}
sys.exit(server.serve_app('127.0.0.1', 0, False))
"""
    process = psutil.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        lines = iter(process.stdout.readline, "")
        links = (re.search(r"http://\S+", line) for line in lines)
        yield process, next(link[0] for link in links if link)
    finally:
        for one in [*process.children(recursive=True), process] if process.is_running() else []:
            one.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("running", [BROKEN], indirect=True)
def test_why_a_page_did_not_start_is_told_in_the_terminal_alone(
    running: tuple[psutil.Popen, str], tmp_path: Path
) -> None:
    _, link = running
    with urllib.request.urlopen(link) as page:
        shown = page.read().decode()
    assert "explorer could not start" in shown and "it does not start" not in shown
    told = (tmp_path / "told").read_text()
    assert "RuntimeError" in told and "it does not start\n" in told


LONG = "?size=2000&paths=recompute"


@contextmanager
def run_in_mid_work(running: tuple[psutil.Popen, str]) -> Iterator[list[psutil.Process]]:
    """Opens a page, waits until its run computes; the kernel first, then all that it started."""
    process, link = running

    def computes() -> bool:
        """Whether a child of the kernel's fork server is in its matrix exponential."""
        with suppress(psutil.NoSuchProcess):
            started = [each for kernel in process.children() for each in kernel.children()]
            runs = [run for each in started for run in each.children()]
            return any(run.cpu_times().user > 1 for run in runs)
        return False

    with urllib.request.urlopen(link + LONG):  # the page comes bit by bit
        assert poll(computes, 60)
        (kernel,) = process.children()
        yield [kernel, *kernel.children(recursive=True)]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_server_leaves_no_process(
    running: tuple[psutil.Popen, str], how: signal.Signals
) -> None:
    process, _ = running
    with run_in_mid_work(running) as family:
        process.send_signal(how)
        assert process.wait(20) == (server.STOPPED if how == signal.SIGTERM else -how)
        _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == []


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
def test_a_killed_kernel_leaves_no_process_and_the_server_to_its_page_alone(
    running: tuple[psutil.Popen, str],
) -> None:
    process, link = running
    with run_in_mid_work(running) as family:
        family[0].kill()
        _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == []
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(link + "voila/files/app.ipynb")
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == server.STOPPED


@pytest.mark.skipif(os.name != "posix", reason="Windows has no sessions")
@pytest.mark.parametrize("running", ["server.PATIENCE = 5.0"], indirect=True)
def test_a_page_that_no_browser_holds_leaves_no_process(
    running: tuple[psutil.Popen, str],
) -> None:
    process, link = running

    def kernels() -> list[psutil.Process]:
        """The children that lead a session, as a kernel does and no helper of a library."""
        return [each for each in process.children() if session(each.pid)]

    with urllib.request.urlopen(link + LONG):
        assert poll(lambda: bool(kernels()))
        (kernel,) = kernels()
        assert poll(lambda: not session(kernel.pid), 60)
    assert process.is_running()
