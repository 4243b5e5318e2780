"""Who has signed in: random tokens, each for one API key, until they are signed out or too old."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
import time
from collections.abc import Collection
from pathlib import Path

from studio.library.private_files import open_privately

log = logging.getLogger(__name__)

KEPT_SECONDS = 30 * 86_400
MOST = 1000
"""Sessions at a time; one more ends the oldest."""


class Sessions:
    """A browser gets a token, this keeps its SHA-256: neither key nor token can be read from the file.

    The file outlives a restart, as a sign-in should. One that cannot be written costs the sign-ins at the next
    restart, and is logged. Threads may share it, and processes: each sees what another has written.
    """

    def __init__(self, file: Path, keys: Collection[bytes]) -> None:
        """``keys``: SHA-256 digests of the keys that are good now; sessions of all others are over."""
        self._file = file
        self._keys = {key.hex() for key in keys}
        self._lock = threading.Lock()
        self._written = _version(file)
        self._open = _read(file, self._keys)

    def begin(self, key: bytes) -> str:
        """A new token for the key of this digest. Blocking: writes the file."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._catch_up()
            now = time.time()
            live = {name: session for name, session in self._open.items() if session[1] > now}
            live[_digest(token)] = (key.hex(), now + KEPT_SECONDS)
            self._open = dict(list(live.items())[-MOST:])
            self._write()
        return token

    def key_of(self, token: str) -> bytes | None:
        """The digest of the key that the token stands for; None for one that is unknown, too old or signed out."""
        if self._lock.acquire(blocking=False):  # else this process is writing, and knows best
            try:
                self._catch_up()
            finally:
                self._lock.release()
        key, until = self._open.get(_digest(token), ("", 0.0))
        return bytes.fromhex(key) if until > time.time() else None

    def end(self, token: str) -> None:
        """Sign out. Blocking: writes the file."""
        with self._lock:
            self._catch_up()
            if self._open.pop(_digest(token), None):
                self._write()

    def _catch_up(self) -> None:
        """Read the file again if somebody else has written it. To ask that, no disk is waited for."""
        if (now := _version(self._file)) != self._written:
            self._written = now
            self._open = _read(self._file, self._keys)

    def _write(self) -> None:
        part = self._file.with_suffix(".part")
        try:
            with open(part, "w", encoding="utf-8", opener=open_privately) as file:
                json.dump(self._open, file)
            part.replace(self._file)
            self._written = _version(self._file)
        except OSError as error:
            log.warning("sign-ins will not outlive a restart: %s", error)
            part.unlink(missing_ok=True)


def _version(file: Path) -> tuple[int, int] | None:
    """Another one for each time that the file is written; None where there is none."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _read(file: Path, keys: Collection[str]) -> dict[str, tuple[str, float]]:
    try:
        kept = json.loads(file.read_text("utf-8"))
        return {str(name): (str(key), float(until)) for name, (key, until) in kept.items() if key in keys}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        log.warning("everybody has to sign in again: %s cannot be read: %s", file, error)
        return {}


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
