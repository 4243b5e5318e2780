"""Work that never ends by itself, for processes, and the processes that do such work."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path


def hang(*values: object) -> None:
    """Sleep for ever."""
    while True:
        time.sleep(60)


def hang_in_another(*values: object) -> None:
    """Sleep for ever, beside a child process that does the same."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "studio.work"])
    hang()


def children(parent: int | None = None) -> list[int]:
    """The studio's worker processes started by this process or by ``parent``, and their descendants."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, status = (folder / "cmdline").read_bytes(), (folder / "stat").read_text()
        except OSError:
            continue
        above = int(status.rpartition(")")[2].split()[1])
        is_zombie = status.rpartition(")")[2].split()[0] == "Z"
        if b"studio.work" in command and above == (parent or os.getpid()) and not is_zombie:
            pids += [int(folder.name), *children(int(folder.name))]
    return pids
