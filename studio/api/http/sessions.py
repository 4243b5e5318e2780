"""Browser sessions: random tokens, each for one API key, until sign-out or expiry."""

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

LIFETIME_SECONDS = 30 * 86_400
MAX_SESSIONS = 1000
"""Maximum sessions; one more ends the oldest."""


class Sessions:
    """Gives tokens to browsers and stores their SHA-256: the file reveals neither keys nor tokens.

    The file preserves sessions across restarts; if it cannot be written, that is logged. Threads and processes may
    share it: each reads what another has written.
    """

    def __init__(self, file: Path, keys: Collection[bytes]) -> None:
        """``keys``: SHA-256 digests of the valid keys; sessions of other keys end."""
        self._file = file
        self._keys = {key.hex() for key in keys}
        self._lock = threading.Lock()
        self._file_version = _version(file)
        self._open = _read(file, self._keys)

    def begin(self, key: bytes) -> str:
        """A new token for the key with this digest. Blocking: writes the file."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._catch_up()
            now = time.time()
            live = {name: session for name, session in self._open.items() if session[1] > now}
            live[_digest(token)] = (key.hex(), now + LIFETIME_SECONDS)
            self._open = dict(list(live.items())[-MAX_SESSIONS:])
            self._write()
        return token

    def key_of(self, token: str) -> bytes | None:
        """The digest of the token's key; None for a token that is unknown, expired or signed out."""
        if self._lock.acquire(blocking=False):  # otherwise this process is writing, and is up to date
            try:
                self._catch_up()
            finally:
                self._lock.release()
        key, expires = self._open.get(_digest(token), ("", 0.0))
        return bytes.fromhex(key) if expires > time.time() else None

    def end(self, token: str) -> None:
        """Sign out. Blocking: writes the file."""
        with self._lock:
            self._catch_up()
            if self._open.pop(_digest(token), None):
                self._write()

    def _catch_up(self) -> None:
        """Read the file again, a few kB, if another process has written it: at a sign-in or sign-out there."""
        if (now := _version(self._file)) != self._file_version:
            self._file_version = now
            self._open = _read(self._file, self._keys)

    def _write(self) -> None:
        part = self._file.with_suffix(".part")
        try:
            with open(part, "w", encoding="utf-8", opener=open_privately) as file:
                json.dump(self._open, file)
            part.replace(self._file)
            self._file_version = _version(self._file)
        except OSError as error:
            log.warning("sign-ins will be lost on a restart: %s", error)
            part.unlink(missing_ok=True)


def _version(file: Path) -> tuple[int, int] | None:
    """Identifies a state of the file; None if it does not exist."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _read(file: Path, keys: Collection[str]) -> dict[str, tuple[str, float]]:
    try:
        sessions = json.loads(file.read_text("utf-8"))
        return {str(name): (str(key), float(expires)) for name, (key, expires) in sessions.items() if key in keys}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        log.warning("all users have to sign in again: %s cannot be read: %s", file, error)
        return {}


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
