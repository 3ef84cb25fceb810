"""What all tests share."""

import atexit
import os
import shutil
import tempfile

# A queue of their own: what else measures on this machine changes no test.
_FOLDER = tempfile.mkdtemp(prefix="explorer-tests-")
os.environ["TMPDIR"] = tempfile.tempdir = _FOLDER
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
