"""Browser sessions: random tokens, each for one API key, until sign-out or expiry."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import secrets
from collections.abc import Collection
from pathlib import Path

from studio.library.private_files import make_private_folder, write_whole
from studio.library.trash import now

log = logging.getLogger(__name__)

LIFETIME_SECONDS = 30 * 86_400
MAX_SESSIONS = 1000
"""Maximum sessions; one more ends the oldest of the key with the most."""


class Sessions:
    """Gives tokens to browsers. A session is a file: its name is the token's SHA-256, its content the key's SHA-256 and
    the Unix time of its expiry. The folder reveals neither keys nor tokens.

    Threads and processes may share the folder, since no file is changed by two of them. Sessions survive restarts,
    except those that could not be written, which is logged.
    """

    def __init__(self, folder: Path, keys: Collection[bytes]) -> None:
        """``keys``: SHA-256 digests of the valid keys; sessions of other keys end."""
        self._folder = folder
        self._keys = frozenset(keys)
        self._unwritten: dict[str, str] = {}
        """Contents by file name."""

    def begin(self, key: bytes) -> str:
        """A new token for the key with this digest. Blocking: writes a file."""
        token = secrets.token_urlsafe(32)
        content = f"{key.hex()} {now() + LIFETIME_SECONDS:.0f}"
        try:
            make_private_folder(self._folder)
            write_whole(self._folder / _digest(token), io.BytesIO(content.encode()))
            self._end_oldest()
        except OSError as error:
            log.warning("sign-ins will be lost on a restart: %s", error)
            self._unwritten[_digest(token)] = content
        return token

    def key_of(self, token: str) -> bytes | None:
        """The digest of the token's key; None for a token that is unknown, expired or signed out. Reads 76 bytes."""
        name = _digest(token)
        try:
            digest, expires = (self._unwritten.get(name) or (self._folder / name).read_text("utf-8")).split()
            key = bytes.fromhex(digest)
            return key if key in self._keys and float(expires) > now() else None
        except (OSError, ValueError):  # also for a damaged file: only this session ends
            return None

    def end(self, token: str) -> None:
        """Sign out. Blocking: removes a file."""
        name = _digest(token)
        self._unwritten.pop(name, None)
        try:
            (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            log.warning("a sign-out is lost, its session ends after %d days: %s", LIFETIME_SECONDS / 86_400, error)

    def _end_oldest(self) -> None:
        by_key: dict[bytes, list[tuple[float, Path]]] = {}
        for path in self._folder.glob(f"{'[0-9a-f]' * 64}*"):  # the folder may have other people's files, too
            with contextlib.suppress(OSError), path.open("rb") as file:  # removed by another process, or a folder
                by_key.setdefault(file.read(64), []).append((path.stat().st_mtime, path))
        for begun in by_key.values():
            begun.sort(reverse=True)
            while begun and begun[-1][0] < now() - LIFETIME_SECONDS:
                begun.pop()[1].unlink(missing_ok=True)
        while sum(map(len, by_key.values())) > MAX_SESSIONS:
            max(by_key.values(), key=len).pop()[1].unlink(missing_ok=True)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
