"""A real disk of a few MiB that can be filled, if this process may mount one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def tiny_disk(folder: Path, mebibytes: int) -> Iterator[Path]:
    """Mount a disk on the folder. Raises CalledProcessError if not permitted, OSError without a mount command."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def can_mount() -> bool:
    try:
        with tempfile.TemporaryDirectory() as folder, tiny_disk(Path(folder), 1):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def fill(folder: Path) -> Path:
    """Write until no space is free; the file that occupies it."""
    path = folder / "something else"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with contextlib.suppress(OSError):
        while True:
            os.write(handle, bytes(4096))
    os.close(handle)
    assert os.statvfs(folder).f_bavail == 0
    return path
