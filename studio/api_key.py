"""Keys that page and API ask for: what a setting says of each, kept as a digest, and whose takes its holder has."""

from __future__ import annotations

import hashlib
import logging
import re
from typing import NamedTuple

SHORT = 16
"""Characters; a shorter key can be guessed."""

log = logging.getLogger(__name__)


class ApiKey(NamedTuple):
    """One of STUDIO_API_KEYS."""

    digest: bytes
    """SHA-256 of the key."""
    name: str = ""
    """Of its holder; blank: takes and projects belong to the key itself."""

    @property
    def unnamed_owner(self) -> str:
        """The owner of takes and projects as long as the key has no name."""
        return f"key {self.digest.hex()[:12]}"

    @property
    def owner(self) -> str:
        """The owner of takes and projects, as the library keeps it; several keys of one name share them."""
        return f"owner {self.name}" if self.name else self.unnamed_owner


def read_keys(text: str) -> tuple[ApiKey, ...]:
    """KEY or NAME=KEY, separated by commas; a key may be given as sha256:HEX. Raises ValueError."""
    return tuple(_read_key(part.strip()) for part in text.split(",") if part.strip())


def _read_key(text: str) -> ApiKey:
    name, _, key = text.partition("=")
    if not key.strip("="):  # no name, or what ends a key in base64
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
