"""A write-only buffer for muxers and archives: not seekable, emptied as it is read."""

from __future__ import annotations


class Sink:
    """Bytes to be sent to a client; written bytes cannot be changed."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def write(self, data: bytes) -> int:
        self._bytes += data
        return len(data)

    def flush(self) -> None:
        """Do nothing, because no bytes are held back."""

    def take(self) -> bytes:
        """The bytes written since the last call."""
        data = bytes(self._bytes)
        self._bytes.clear()
        return data
