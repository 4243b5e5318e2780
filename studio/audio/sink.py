"""A write-only buffer for muxers and archives: it cannot seek, and is emptied as it is read."""

from __future__ import annotations


class Sink:
    """Bytes on their way; nothing that was written can be changed."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def write(self, data: bytes) -> int:
        self._bytes += data
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def take(self) -> bytes:
        """What was written since the last time."""
        taken = bytes(self._bytes)
        self._bytes.clear()
        return taken
