"""Zip files of strangers: opened and read entry by entry, within limits, whatever they say of themselves."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

_DAMAGED = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    NotImplementedError,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
)
"""What zipfile raises for bytes that somebody has spoilt."""


class InvalidArchive(Exception):
    """No zip, a damaged one, or one that unpacks to too much; the message says which."""


class TooLarge(InvalidArchive):
    """An entry unpacks to more than is allowed."""


@contextmanager
def opened(data: bytes, most_entries: int) -> Iterator[zipfile.ZipFile]:
    """The archive. Raises InvalidArchive for what is none, or has too many entries."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except _DAMAGED as error:
        raise InvalidArchive(f"it is not a zip file, or it is damaged ({error})") from error
    with archive:
        if len(archive.infolist()) > most_entries:
            raise InvalidArchive(f"it has {len(archive.infolist())} entries; at most {most_entries} are allowed")
        yield archive


def read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    """One entry, unpacked: at most ``limit`` bytes are, and what it says of its size is not believed.

    Raises InvalidArchive, and TooLarge for one that is larger.
    """
    name = repr(info.filename[:200])
    if info.flag_bits & 1:
        raise InvalidArchive(f"its entry {name} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidArchive(f"its entry {name} uses an unsupported compression; use deflate or none")
    try:
        with archive.open(info) as file:
            data = file.read(limit + 1)
    except _DAMAGED as error:
        raise InvalidArchive(f"its entry {name} is damaged ({error})") from error
    if len(data) > limit:
        raise TooLarge(f"its entry {name} unpacks to more than the {limit} bytes that are allowed")
    return data
