"""Reads untrusted files of bounded size."""

from __future__ import annotations

import stat
from pathlib import Path

from engine.engine_errors import CheckpointError


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """The content of a regular file of at most ``max_bytes`` bytes. Raises CheckpointError, FileNotFoundError."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe or a device might never end
            raise CheckpointError(f"{path} is not a file")
        if status.st_size > max_bytes:
            raise CheckpointError(f"{path} has {status.st_size:,} bytes; at most {max_bytes:,} are allowed")
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
