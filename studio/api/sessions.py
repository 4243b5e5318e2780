"""Browser sessions: random tokens, each for one API key, until sign-out or expiry."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import secrets
from collections.abc import Collection, Hashable, Iterable
from pathlib import Path
from typing import TypeVar

from studio.library.private_files import make_private_folder, write_whole
from studio.library.trash import now

log = logging.getLogger(__name__)

Item = TypeVar("Item")

LIFETIME_SECONDS = 30 * 86_400
MAX_SESSIONS = 1000
"""Maximum sessions; one more ends the oldest ones of the keys with the most."""


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
        """End sessions if there are too many, and 5 % more, so that not every later sign-in reads all of them again."""
        paths = list(self._folder.glob(f"{'[0-9a-f]' * 64}*"))  # the folder may have other people's files, too
        if len(paths) <= MAX_SESSIONS:
            return
        held, since = list[tuple[bytes, float, Path]](), now() - LIFETIME_SECONDS
        for path in paths:
            with contextlib.suppress(OSError), path.open("rb") as file:  # removed by another process, or a folder
                held.append((file.read(64), path.stat().st_mtime, path))
        expired = [path for _, begun, path in held if begun < since]
        for path in expired + surplus((each for each in held if each[1] >= since), MAX_SESSIONS - MAX_SESSIONS // 20):
            path.unlink(missing_ok=True)


def surplus(held: Iterable[tuple[Hashable, float, Item]], most: int) -> list[Item]:
    """What to end so that ``most`` remain: each time, the oldest of the caller who holds the most, so that nobody's
    crowd ends what others hold. ``held``: the caller, the time of the last use, and the item itself."""
    by_caller: dict[Hashable, list[tuple[float, Item]]] = {}
    for caller, used, item in sorted(held, key=lambda each: each[1], reverse=True):
        by_caller.setdefault(caller, []).append((used, item))
    count = sum(map(len, by_caller.values())) - max(most, 0)
    return [max(by_caller.values(), key=lambda own: (len(own), -own[-1][0])).pop()[1] for _ in range(count)]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
