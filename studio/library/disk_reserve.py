"""Space that a library reserves on its disk: used when the disk is full, so that items can still be deleted."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from studio.errors import LibraryFull
from studio.library.private_files import open_privately

log = logging.getLogger(__name__)

RESERVED = 2 * 2**20
"""Bytes: the size of SQLite's log when a thousand takes are deleted at a time."""
SPARE = 256 * 2**20
"""Free bytes that files which the library can do without leave it: as many as takes that wait in memory have."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_PIECE = 2**16


def is_full(folder: Path) -> bool:
    """Whether a folder's disk has no room for RESERVED bytes, or the user's share of it: only writing shows a quota."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as file:
            return file.write(os.urandom(_PIECE) * (RESERVED // _PIECE)) < RESERVED
    except OSError as error:
        return error.errno in NO_ROOM


def check_spare(folder: Path) -> None:
    """Raises LibraryFull if such a file would use up the room for others' takes, or even cost them the trash."""
    if shutil.disk_usage(folder).free < SPARE:
        raise LibraryFull(f"less than {SPARE >> 20} MiB are free on the library's disk: make room on it")


class DiskReserve:
    """A file of meaningless bytes. ``is_needed``: whether something could not be written for lack of room."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self.is_needed = is_full(path.parent)

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[bool]:
        """Use the reserve if the disk has no other space; yields whether it is used.

        Afterwards, the rest of it is reserved again.
        """
        with self._lock:
            reserved = self._path.stat().st_size if self._path.is_file() else 0
            free = shutil.disk_usage(self._path.parent).free
            is_needed = self.is_needed or free < RESERVED
            if reserved and is_needed:
                os.truncate(self._path, 0)
            try:
                yield is_needed
            finally:
                # Half of a small disk's room: the reserve itself must not fill it.
                self._set_aside(max(reserved, min(RESERVED, (reserved + free) // 2)))

    def _set_aside(self, size: int) -> None:
        """Write a reserve as large as the disk allows. Random bytes, since some disks would not store zeros."""
        if self._path.exists() and not self._path.is_file():  # opening a pipe would never end
            log.warning("no disk space can be reserved: %s is not a regular file; remove it", self._path)
            return
        try:
            with open(self._path, "ab" if self._path.exists() else "xb", buffering=0, opener=open_privately) as file:
                while (missing := size - file.tell()) > 0:
                    file.write(os.urandom(min(missing, _PIECE)))
            self.is_needed = self.is_needed and is_full(self._path.parent)
        except OSError as error:
            if error.errno not in NO_ROOM:
                log.warning("no disk space can be reserved in %s: %s", self._path, error)
