"""A library that was temporarily read-only: later takes are kept."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from studio import ROOT

PROGRAM = """
import contextlib, os, sys
from pathlib import Path
from studio.library import Library
from studio.library.store import IDLE_CONNECTIONS
from tests.studio.library.worker import stored_take

if os.getuid() == 0:  # whom no permission stops
    os.setuid(65534)
library = Library(Path(sys.argv[1]) / "home")
library.takes.add(stored_take("before", "words", "anna"))
library.store.path.chmod(0o444)
with contextlib.ExitStack() as stack:  # more at once than are kept open: so some are opened now
    for _ in range(IDLE_CONNECTIONS + 2):
        stack.enter_context(library.store.reading())
library.store.path.chmod(0o600)
library.takes.add(stored_take("after", "words", "anna"))
print(*[take.id for take in library.takes.page()])
"""


@pytest.mark.posix
def test_take_is_stored_once_the_library_is_writable_again() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, folder], cwd=ROOT, capture_output=True, text=True, check=False
        )
    assert done.stdout == "after before\n", done.stderr
