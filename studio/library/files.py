"""Audio files by the SHA-256 of their content: written whole or not at all, never changed."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from studio.errors import StudioError
from studio.library.private_files import make_private_folder, open_privately

_DIGEST = re.compile(r"[0-9a-f]{64}")


class AudioFiles:
    """A folder of files named by content. Whoever writes or removes holds the database's write lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.added: list[str] = []
        """Digests that `put` has written or begun to write; for whoever has to take them back."""
        make_private_folder(folder)

    def path(self, digest: str) -> Path:
        """Where the file of a digest is, whether it exists or not. Raises ValueError for what is no digest."""
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{digest[:80]!r} is not a hexadecimal SHA-256")
        return self._folder / digest[:2] / digest

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest; they are on the disk, under their final name, when this returns."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        if path.exists():
            return digest
        self.added.append(digest)
        make_private_folder(path.parent)
        write_whole(path, io.BytesIO(data))
        _sync_folder(path.parent)
        return digest

    def read(self, digest: str) -> bytes:
        """The bytes of a digest. Raises StudioError when they are missing or have been changed."""
        try:
            data = self.path(digest).read_bytes()
        except FileNotFoundError:
            raise StudioError(f"the audio file {digest[:12]}… is missing from the library") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise StudioError(f"the audio file {digest[:12]}… in the library is damaged: its checksum is wrong")
        return data

    def remove(self, digest: str) -> None:
        self.path(digest).unlink(missing_ok=True)

    def everything(self) -> Iterator[tuple[str, Path]]:
        """Every file's name and path, unfinished ones too."""
        for path in self._folder.glob("*/*"):
            yield path.name, path


def write_whole(path: Path, content: BinaryIO, is_private: bool = True) -> None:
    """A file under its name when all of it is on the disk, or nothing. Raises OSError.

    ``is_private``: only its owner may read it; otherwise the umask of the process decides.
    """
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.unlink(missing_ok=True)  # else it would keep the permissions with which a crash left it
    try:
        with open(unfinished, "wb", opener=open_privately if is_private else None) as file:
            shutil.copyfileobj(content, file, 1 << 20)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened; renames are durable with the file
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
