"""Disk writes without waiting: no test loses power, and data written by a killed process is kept anyway.

The written data stays the same.
"""

from __future__ import annotations

import os

from studio.library import store


def hasten() -> None:
    """Let the system decide when files and databases of this process are written to disk."""
    os.fsync = lambda fd: None
    store.SYNCHRONOUS = "off"
