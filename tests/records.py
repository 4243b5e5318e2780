"""Results of long checks of unchanged sources, kept in files that are committed with the sources."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def digest(*parts: str | bytes) -> str:
    """Return a digest of everything on which a result depends."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part.encode() if isinstance(part, str) else part).digest())
    return whole.hexdigest()[:32]


class Record:
    """The digests of what has passed a check, by name. Only what has another digest need be checked again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def has(self, name: str, passed: str) -> bool:
        return self._read().get(name) == passed

    def add(self, **passed: str) -> None:
        """Write these to the file, which is to be committed."""
        self._path.write_text(json.dumps(self._read() | passed, indent=2, sort_keys=True) + "\n")

    def _read(self) -> dict[str, str]:
        return json.loads(self._path.read_text()) if self._path.exists() else {}
