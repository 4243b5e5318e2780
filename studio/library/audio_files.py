"""Audio files named by the SHA-256 of their content: written completely or not at all, never changed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from mmap import mmap
from pathlib import Path
from typing import TypeAlias, TypeVar

from studio.errors import DamagedAudio
from studio.library.private_files import make_private_folder, open_privately, remove_file, unfinished

Item = TypeVar("Item")
Result = TypeVar("Result")
Piece: TypeAlias = bytes | mmap
"""Bytes of a file that is to be stored, in memory or in a temporary file."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
DIGEST_LENGTH = 64
_UNNAMED, _PART = ".unnamed", ".part"
_OWN = re.compile(rf"[0-9a-f]{{64}}({_UNNAMED}|\.[0-9a-f]{{8}}{_PART})?")
"""The name of a file of this folder: the folder may be one that somebody has for other files, too."""
EARLIEST = 1_704_067_200.0
"""Unix time of the start of 2024, before the studio existed: an earlier clock is wrong."""
UNNAMED_DAYS = 30
"""Days for which a file that the database does not name is kept: the database may be new, or an older copy, and its
owner may notice that only after a holiday."""
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""Errors of syncing a folder on a disk that cannot do that, such as some network disks."""
WRITERS = 4
"""Number of threads that write files: a single one would wait for the disk most of the time."""
_FOUND_DAMAGED = set[Path]()
"""Files whose size says nothing until they have been read again, and were whole."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A file that is not yet in the folder."""

    digest: str
    pieces: Sequence[Piece] = field(repr=False)
    path: Path
    """Temporary path, until the file is kept."""
    replaces: bool
    """Whether it replaces a file that is damaged."""


class AudioFiles:
    """A folder of files named by content. `put`, `keep` and `remove` need the database's write lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.added: list[str] = []
        """Digests of the files that `keep` added or began to add; a failed transaction removes them."""
        make_private_folder(folder)

    def path(self, digest: str) -> Path:
        """Path of the file with this digest, whether or not it exists. Raises ValueError if it is not a digest."""
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{digest[:80]!r} is not a hexadecimal SHA-256")
        return self._folder / digest[:2] / digest

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest; they are on the disk, under their final name, when this returns."""
        with self.drafted([[data]]) as drafts:
            return self.keep(drafts)[0]

    @contextlib.contextmanager
    def drafted(self, contents: Sequence[Sequence[Piece]]) -> Iterator[list[Draft]]:
        """Write contents, each given in pieces, to disk under temporary names; `keep` them in the block.

        The slow work is done here, in several threads and without the lock. Drafts that are not kept are removed.
        Raises OSError.
        """
        drafts: list[Draft] = []
        try:
            yield _in_parallel(lambda pieces: self._draft(pieces, drafts), contents)
        finally:
            for draft in drafts:
                draft.path.unlink(missing_ok=True)

    def keep(self, drafts: Sequence[Draft]) -> list[str]:
        """Give drafts their final names, durably, and return their digests. Raises OSError."""
        folders = set[Path]()
        for draft in drafts:
            path = self.path(draft.digest)
            if path.exists() and not draft.replaces:
                continue
            self.added.append(draft.digest)
            try:
                draft.path.replace(path)
            except FileNotFoundError:  # the file existed when it was drafted, or a start removed the draft
                make_private_folder(path.parent)
                _write_synced(draft.path, draft.pieces)
                draft.path.replace(path)
            folders.add(path.parent)
        _in_parallel(_sync_folder, sorted(folders))
        return [draft.digest for draft in drafts]

    def _draft(self, pieces: Sequence[Piece], drafts: list[Draft]) -> Draft:
        sha256 = hashlib.sha256()
        for piece in pieces:
            sha256.update(piece)
        path = self.path(sha256.hexdigest())
        draft = Draft(path.name, pieces, unfinished(path), replaces=is_damaged(path))
        drafts.append(draft)
        if draft.replaces or not path.exists():
            make_private_folder(path.parent)
            _write_synced(draft.path, pieces)
        return draft

    def read(self, digest: str) -> bytes:
        """The bytes of a digest. Raises DamagedAudio when they are missing or have been changed."""
        data = (path := self._existing(digest)).read_bytes()  # once, so that what was checked is what is returned
        if hashlib.sha256(data).hexdigest() != digest:
            _FOUND_DAMAGED.add(path)
            raise _changed(digest)
        return data

    def checked(self, digest: str, size: int | None = None) -> Path:
        """The path of an existing file with this content. Blocking. Raises DamagedAudio.

        ``size``: its bytes; then it is read only if it was damaged when it was last read.
        """
        path = self._existing(digest)
        if path.stat().st_size != size if size is not None and path not in _FOUND_DAMAGED else is_damaged(path):
            raise _changed(digest)
        return path

    def _existing(self, digest: str) -> Path:
        path = self.path(digest)
        if not path.is_file():  # a backup's folder may hold anything, and reading a pipe would never end
            raise DamagedAudio(f"the audio file {digest[:12]}… is missing from the library")
        return path

    def remove(self, digest: str) -> None:
        remove_file(self.path(digest))

    def is_waiting(self, path: Path) -> bool:
        """Whether a file has been set aside, and its days are not over."""
        try:
            return path.name.endswith(_UNNAMED) and path.stat().st_mtime >= time.time() - UNNAMED_DAYS * 86_400
        except FileNotFoundError:
            return False

    def tidy(self, path: Path, is_named: bool) -> str:
        """Handle a file of `everything` at a start; returns what was done, or nothing.

        ``is_named``: whether the database names its digest.
        """
        digest, ending = path.name[:DIGEST_LENGTH], path.name[DIGEST_LENGTH:]
        # Another start was faster, or another studio has the file open, which Windows neither removes nor renames then.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if ending.endswith(_PART):
                path.unlink()
            elif not is_named and (not ending or path.stat().st_mtime < EARLIEST):
                os.utime(path)  # its days begin now, again if they began by a wrong clock
                path.replace(path.with_name(digest + _UNNAMED))
                return "set aside"
            elif ending == _UNNAMED and is_named and not self.path(digest).exists():
                path.replace(self.path(digest))
                return "put back"
            elif ending == _UNNAMED and (is_named or not self.is_waiting(path)):
                path.unlink()
        return ""

    def everything(self) -> Iterator[tuple[str, Path]]:
        """The name and path of each of the studio's files here, unfinished ones and those set aside too."""
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            if _OWN.fullmatch(path.name) and path.is_file():
                yield path.name, path


def _changed(digest: str) -> DamagedAudio:
    return DamagedAudio(f"the audio file {digest[:12]}… in the library is damaged: its content has changed")


def is_damaged(path: Path) -> bool:
    """Whether the content of an existing file is not the one that it is named by. Blocking: reads it."""
    if not path.is_file():
        return path.exists()
    with path.open("rb") as file:
        damaged = hashlib.file_digest(file, "sha256").hexdigest() != path.name
    (_FOUND_DAMAGED.add if damaged else _FOUND_DAMAGED.discard)(path)
    return damaged


def _in_parallel(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Results of ``work`` for each item, in several threads. Raises the first error."""
    if len(items) == 1:
        return [work(items[0])]
    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(work, items))


def _write_synced(path: Path, pieces: Sequence[Piece]) -> None:
    with open(path, "xb", opener=open_privately) as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":  # where a folder cannot be opened; renames are durable with the file
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(handle)
