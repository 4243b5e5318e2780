"""API keys: read from the setting, kept as digests; each has the owner name under which its takes are stored."""

from __future__ import annotations

import hashlib
import logging
import re
from typing import NamedTuple

SHORT = 16
"""Keys with fewer characters can be guessed."""

log = logging.getLogger(__name__)


class ApiKey(NamedTuple):
    """One of STUDIO_API_KEYS."""

    digest: bytes
    """SHA-256 of the key."""
    name: str = ""
    """Name of the holder; blank: takes and projects belong to the key itself."""

    @property
    def unnamed_owner(self) -> str:
        """Owner of takes and projects while the key has no name."""
        return f"key {self.digest.hex()[:12]}"

    @property
    def owner(self) -> str:
        """Owner of takes and projects as stored in the library; keys with the same name share them."""
        return f"owner {self.name}" if self.name else self.unnamed_owner


def read_keys(text: str) -> tuple[ApiKey, ...]:
    """Parse KEY or NAME=KEY, separated by commas; a key may be given as sha256:HEX. Raises ValueError."""
    return tuple(_read_key(part.strip()) for part in text.split(",") if part.strip())


def _read_key(text: str) -> ApiKey:
    name, _, key = text.partition("=")
    if not key.strip("="):  # no name, or base64 padding at the end of a key
        return ApiKey(_digest(text))
    if not re.fullmatch(r"[\w.@ -]{1,64}", name.strip()):
        raise ValueError("the name before = must consist of letters, digits, spaces and . _ - @")
    return ApiKey(_digest(key.strip()), name.strip())


def _digest(key: str) -> bytes:
    if not key.startswith("sha256:"):
        if len(key) < SHORT:
            log.warning("one of STUDIO_API_KEYS has fewer than %d characters and can be guessed", SHORT)
        return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
    if not re.fullmatch(r"sha256:[0-9a-fA-F]{64}", key):
        raise ValueError("each must be a key, or sha256: and 64 hexadecimal digits")
    return bytes.fromhex(key.removeprefix("sha256:"))
