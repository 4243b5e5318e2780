"""Reads untrusted zip files entry by entry, within limits that do not rely on their headers."""

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
"""Errors that zipfile raises for malformed archives."""


class InvalidArchive(Exception):
    """The archive is not a zip file, is damaged, or unpacks to too much; the message has the reason."""


class TooLarge(InvalidArchive):
    """An entry unpacks to more than is allowed."""


@contextmanager
def opened(data: bytes, most_entries: int) -> Iterator[zipfile.ZipFile]:
    """Open an archive. Raises InvalidArchive if it is not one or has too many entries."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except _DAMAGED as error:
        raise InvalidArchive(f"it is not a zip file, or it is damaged ({error})") from error
    with archive:
        if len(archive.infolist()) > most_entries:
            raise InvalidArchive(f"it has {len(archive.infolist())} entries; at most {most_entries} are allowed")
        yield archive


def read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    """Unpack one entry of at most ``limit`` bytes, regardless of the size in its header.

    Raises InvalidArchive; TooLarge for a larger entry.
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
        raise TooLarge(f"its entry {name} unpacks to more than the allowed {limit} bytes")
    return data
