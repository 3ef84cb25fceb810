"""What all tests share."""

import atexit
import os
import shutil
import tempfile
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A queue of their own: what else measures on this machine changes no test. Where tests run in
# several processes, each has its own, or they would wait for each other's measurements.
_FOLDER = tempfile.mkdtemp(prefix=os.environ.get("PYTEST_XDIST_WORKER", "explorer-"))
os.environ["TMPDIR"] = tempfile.tempdir = _FOLDER
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)

# A thread of torch's that waits for another lets a third have the core: while it spins, and
# two tests or a browser want the same two cores, small operations take tens of times longer.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# No test is of time: what else the machine has to do fails none.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """How `pytest -n` shares out the tests: a file to a process, and all on the page to one."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            # They share a server, which takes as long to start as several of them.
            return "tests/browser" if file.startswith("tests/browser/") else file

    # Few tests to a file are no sign of little work: the browser's would come last, and alone.
    config.option.loadscopereorder = False
    return ByFile(config, log)
