"""Room that a library sets aside on its disk: spent when the disk is full, so that something can still be deleted."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

from studio.library.private_files import open_privately

log = logging.getLogger(__name__)

RESERVED = 2 * 2**20
"""Bytes: what SQLite's log takes for deleting a thousand takes at a time."""
PLENTY = 8 * RESERVED
"""Room that must be free for a new reserve: the last of a disk is not ours to take."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_PIECE = 2**16


def is_full(folder: Path) -> bool:
    """Whether the disk of a folder has not even the room that opening a database takes."""
    return shutil.disk_usage(folder).free < _PIECE


class DiskReserve:
    """A file of bytes that mean nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[bool]:
        """Have its room where the disk has no other, and hear whether that was so.

        Afterwards, what is left of it is set aside again.
        """
        with self._lock:
            before = self._path.stat().st_size if self._path.exists() else 0
            free = shutil.disk_usage(self._path.parent).free
            is_needed = free < RESERVED
            if before and is_needed:
                os.truncate(self._path, 0)
            try:
                yield is_needed
            finally:
                self._set_aside(RESERVED if free > PLENTY else before)

    def _set_aside(self, size: int) -> None:
        """As far as there is room. Of random bytes: some disks would make nothing of zeros."""
        try:
            with open(self._path, "ab", buffering=0, opener=open_privately) as file:
                while (missing := size - file.tell()) > 0:
                    file.write(os.urandom(min(missing, _PIECE)))
        except OSError as error:
            if error.errno not in NO_ROOM:
                log.warning("no room can be set aside in %s: %s", self._path, error)
