"""What `explorer app` and `explorer lab` start: Voila with the page, JupyterLab with the notebook.

Both find the notebook wherever they are called from. Voila runs by itself, never as an extension
of a Jupyter server: only so does it refuse to run code that a visitor sends.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from explorer import signals

DEFAULT_PORT = 8866
PORTS_TRIED = 50
PATIENCE = 120.0  # seconds that a kernel lives without a browser; a starting page has none yet
STOPPED, REFUSED = 0, 2

_APP = Path(__file__).parent / "app"
_LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
_EVERYWHERE = {"": socket.AF_INET, "0.0.0.0": socket.AF_INET, "::": socket.AF_INET6}
_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}  # reserved for examples


class AddressError(Exception):
    """No server can listen there; the message is a sentence that says why and what to do."""


def notebook_path() -> Path:
    """The notebook app.ipynb: in the package once installed, above it in a checkout.

    Raises FileNotFoundError if the package came without it.
    """
    for path in (_APP / "app.ipynb", _APP.parent.parent / "app.ipynb"):
        if path.is_file():
            return path
    raise FileNotFoundError("The notebook app.ipynb is missing. Install explorer again.")


def serve_app(ip: str, port: int | None, open_browser: bool, preheat: int = 0) -> int:
    """Serves the page at `ip` until Ctrl-C, SIGTERM or SIGHUP; returns the exit code.

    So many kernels as `preheat` are started ahead, for the first visitors. Without a `port` it
    takes DEFAULT_PORT or the next free one. Where it cannot listen, it says why on standard error
    and returns REFUSED.
    """
    try:
        sockets = listen(ip, port)
    except AddressError as error:
        print(error, file=sys.stderr)
        return REFUSED
    addresses = links(ip, sockets[0].getsockname()[1])
    # Where a kernel that was started ahead asks for its visitor's query.
    os.environ["VOILA_APP_IP"] = urlsplit(addresses[0]).netloc.rpartition(":")[0]
    asyncio.run(_run(_voila(sockets, preheat), addresses, open_browser))
    return STOPPED


def serve_lab() -> int:
    """Opens the notebook in JupyterLab, until a signal as above; returns the exit code.

    Uses the app.ipynb of the current folder, or writes a copy there; where it cannot, it says so on
    standard error and returns REFUSED. Raises SystemExit if JupyterLab refuses to start.
    """
    notebook = Path.cwd() / "app.ipynb"
    if not notebook.exists():
        try:
            shutil.copyfile(notebook_path(), notebook)
        except OSError as error:
            print(
                f"The notebook cannot be copied to {notebook}: {error.strerror}. "
                "Change to a folder you can write to and try again.",
                file=sys.stderr,
            )
            return REFUSED

    from jupyterlab.labapp import LabApp  # type: ignore[import-untyped]

    if hasattr(signal, "SIGHUP"):  # Jupyter would die of it and leave its kernels behind
        signal.signal(signal.SIGHUP, lambda number, frame: signal.raise_signal(signal.SIGTERM))
    # answer_yes: the first Ctrl-C stops it, without a question
    LabApp.launch_instance([str(notebook), "--ServerApp.answer_yes=True"])
    return STOPPED


def listen(ip: str, port: int | None) -> list[socket.socket]:
    """Sockets that listen at `ip`, all on one port: `port`, or the first free from DEFAULT_PORT on.

    Raises AddressError where that is not possible.
    """
    from tornado.netutil import bind_sockets

    if port is not None and not 0 <= port < 65536:  # bind() would take the remainder
        raise AddressError(f"Port {port} does not exist. Choose one from 1024 to 65535.")
    ports = range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED) if port is None else [port]
    for candidate in ports:
        try:
            return bind_sockets(candidate, ip)
        except (OSError, UnicodeError) as error:
            if port is not None or getattr(error, "errno", None) != errno.EADDRINUSE:
                raise AddressError(_reason(error, ip, candidate)) from error
    raise AddressError(f"Ports {ports[0]} to {ports[-1]} are all busy. Choose another with --port.")


def _reason(error: Exception, ip: str, port: int) -> str:
    """A sentence for an `error` of listening at `ip` and `port`."""
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return (
            f"Port {port} is busy: another program listens there. "
            "Stop that program, choose another port, or leave --port out to get a free one."
        )
    if number == errno.EACCES:
        return f"Port {port} is for administrators only. Choose one from 1024 to 65535."
    if number == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror | UnicodeError):
        return (
            f"{ip} is not an address of this machine. Use --ip localhost for this machine alone, "
            "or --ip 0.0.0.0 for every network it is on."
        )
    return f"Cannot listen at {ip}, port {port}: {error}. Choose another address or port."


def links(ip: str, port: int) -> list[str]:
    """The links that reach a server which listens at `ip`; this machine's own first."""
    hosts = [ip]
    if ip in _EVERYWHERE:
        family = _EVERYWHERE[ip]
        hosts = [_LOOPBACK[family], *_address(family)]
    return [f"http://{f'[{host}]' if ':' in host else host}:{port}/" for host in hosts]


def _address(family: socket.AddressFamily) -> list[str]:
    """The address at which others reach this machine; none without a network.

    Nothing is sent: to connect a datagram socket only chooses a route.
    """
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((_ELSEWHERE[family], 9))
            return [probe.getsockname()[0]]
    except OSError:
        return []


async def _run(voila: Any, addresses: list[str], open_browser: bool) -> None:
    """Serves until a signal comes, then ends every kernel."""
    stopped = _stopped()
    voila.start()
    # Those started ahead are not replaced: a successor would start while its visitor's page loads,
    # and take the time that was saved.
    voila.kernel_manager.fill_if_needed = lambda *_, **__: None
    print("explorer is ready. Open it in a browser:", *addresses, sep="\n    ")
    print("Ctrl-C stops it.", flush=True)
    if open_browser:
        threading.Thread(target=webbrowser.open, args=addresses[:1], daemon=True).start()
    kernels = voila.kernel_manager
    abandoned = asyncio.create_task(_end_abandoned(kernels, PATIENCE, PATIENCE / 20))
    await stopped.wait()
    abandoned.cancel()
    await voila.close()


async def _end_abandoned(kernels: Any, patience: float, interval: float) -> None:
    """Ends every kernel without a browser for so many seconds, looking once in an interval.

    A browser that is killed, or a phone that is gone, says no word. Jupyter's own culling asks how
    long a kernel was idle, which it never is while a run goes.
    """
    alone: dict[str, float] = {}  # since when, by the kernel's id
    while True:
        now = time.monotonic()
        ahead = await _ahead(kernels)
        alone_now = [one["id"] for one in kernels.list_kernels() if not one["connections"]]
        seen = [kernel for kernel in alone_now if kernel not in ahead]
        alone = {kernel: alone.get(kernel, now) for kernel in seen}
        late = [kernel for kernel, since in alone.items() if now - since >= patience]
        # One that meanwhile ended by itself is no fault, and one that stays is tried again.
        await asyncio.gather(*map(kernels.shutdown_kernel, late), return_exceptions=True)
        await asyncio.sleep(interval)


async def _ahead(kernels: Any) -> set[str]:
    """The kernels that were started ahead and still wait for a visitor."""
    starting = [task for pool in getattr(kernels, "_pools", {}).values() for task in pool]
    found = await asyncio.gather(*starting, return_exceptions=True)
    return {each["kernel_id"] for each in found if isinstance(each, dict)}


def _stopped() -> asyncio.Event:
    """An event that the signals set; further ones change nothing."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals.handle(lambda number, frame: loop.call_soon_threadsafe(event.set))
    return event


def _voila(sockets: list[socket.socket], preheat: int) -> Any:
    """Voila with the notebook and our template, ready to start on `sockets`."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from tornado.httpserver import HTTPServer
    from traitlets import default
    from traitlets.config import Config
    from voila.app import Voila

    class ThisPython(KernelSpecManager):
        """Knows one kernel, the running Python: one that the user installed may lack explorer."""

        @default("kernel_dirs")
        def _no_kernel_dirs(self) -> list[str]:
            return []

        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            spec = super().get_kernel_spec(kernel_name)
            spec.argv = [*spec.argv, "--log-level=ERROR"]  # else it warns of what is meant
            return spec

    class Server(Voila):  # type: ignore[misc]  # voila has no types
        """Voila on sockets that already listen, in a loop that already runs."""

        def setup_template_dirs(self) -> None:
            super().setup_template_dirs()
            self.template_paths.append(str(_APP))  # for page.js, which JupyterLab runs as well

        def listen(self) -> None:
            self.server = HTTPServer(self.app)
            self.server.add_sockets(sockets)

        async def close(self) -> None:
            self.server.stop()
            await self.kernel_manager.shutdown_all()
            await self.server.close_all_connections()
            shutil.rmtree(self.connection_dir, ignore_errors=True)

    # Else it tells of every refused request, and that it takes Jupyter's milliseconds for seconds.
    logging.getLogger("tornado").setLevel(logging.ERROR)
    # Of a server that is no singleton, Voila's parts tell here why a page did not start.
    logging.getLogger("traitlets").addHandler(logging.StreamHandler())
    logging.getLogger("traitlets").setLevel(logging.ERROR)
    # Where Voila looks for templates.
    jupyter_path = [str(_APP / "jupyter"), os.environ.get("JUPYTER_PATH", "")]
    os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, jupyter_path))
    server = Server(
        config=Config(_settings(ThisPython, preheat)),
        config_file_paths=[],  # the user's own settings are for other notebooks
        notebook_path=str(notebook_path()),
        port=sockets[0].getsockname()[1],
    )
    server.initialize([])
    return server


def _settings(kernel_specs: type, preheat: int) -> dict[str, dict[str, Any]]:
    """Voila's settings, by class."""
    return {
        "Voila": {
            "log_level": logging.ERROR,  # it warns of what is meant: a notebook without signature
            # Else the page's own request to end its kernel is refused, and a closed tab's kernel
            # stays. Voila has no cookie that another site could abuse.
            "tornado_settings": {"disable_check_xsrf": True},
        },
        "VoilaConfiguration": {
            "template": "explorer",
            "allow_template_override": "NO",
            "allow_theme_override": "NO",
            "show_tracebacks": False,
            "preheat_kernel": preheat > 0,
            "default_pool_size": preheat,
            "http_keep_alive_timeout": 3,  # s between signs of life while the page starts
            "file_allowlist": [],  # nothing that lies beside the notebook is served
            "kernel_spec_manager_class": kernel_specs,
            # What the page is made of. Other extensions that the user has would slow it down.
            "extension_allowlist": [
                "@jupyter-widgets/jupyterlab-manager",
                "@voila-dashboards/widgets-manager8",
                "jupyterlab-plotly",
            ],
        },
        "KernelManager": {"shutdown_wait_time": 2.0},
        # A kernel started afresh knows nothing of its page: let it stay dead, and say so soon.
        "KernelRestarter": {"restart_limit": 0, "time_to_dead": 1.0},
    }
