"""Reads untrusted files of bounded size."""

from __future__ import annotations

import stat
from pathlib import Path

from engine.engine_errors import CheckpointError


def read_bounded(path: Path, most: int) -> bytes:
    """The content of a regular file of at most ``most`` bytes. Raises CheckpointError, FileNotFoundError."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # a pipe or a device might never end
            raise CheckpointError(f"{path} is not a file")
        if found.st_size > most:
            raise CheckpointError(f"{path} has {found.st_size:,} bytes; at most {most:,} are allowed")
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
