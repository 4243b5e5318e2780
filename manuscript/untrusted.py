"""Checks untrusted files before anything reads them, within limits that do not rely on their headers: zips, covers."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from speechtext.errors import TextError

MAX_COVER = 4 * 1024 * 1024  # bytes
MAX_SIDE = 4096  # pixels per side of a cover: 64 MiB unpacked
_MEDIA_TYPES = {"JPEG": "image/jpeg", "MPO": "image/jpeg", "PNG": "image/png"}
"""Pillow's names; MPO is a JPEG with further pictures after it, as phones produce."""
_ENTRY = b"PK\1\2"
"""Begins each entry of an archive's directory; a few more may be in its files."""
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)
"""Errors that zipfile raises for malformed archives."""


class InvalidArchive(Exception):
    """The archive is not a zip file, is damaged, or unpacks to too much; the message has the reason."""


class TooLarge(InvalidArchive):
    """An entry unpacks to more than is allowed."""


@contextmanager
def opened(data: bytes, most_entries: int) -> Iterator[zipfile.ZipFile]:
    """Open an archive. Raises InvalidArchive if it is not one or has too many entries."""
    if (count := data.count(_ENTRY)) > 2 * most_entries:  # zipfile reads millions before one can count them
        raise InvalidArchive(f"it has about {count} entries; at most {most_entries} are allowed")
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


@dataclass(frozen=True, slots=True)
class Cover:
    """A checked picture for the cover of an audiobook."""

    image: bytes = field(repr=False)
    media_type: str

    @property
    def digest(self) -> str:
        """Identifies this picture."""
        return hashlib.sha256(self.image).hexdigest()[:16]

    @property
    def file_name(self) -> str:
        return "cover.png" if self.media_type == "image/png" else "cover.jpg"

    @property
    def demuxer(self) -> str:
        """FFmpeg's name for its demuxer."""
        return {"image/png": "png_pipe", "image/jpeg": "jpeg_pipe"}[self.media_type]


def read_cover(image: bytes) -> Cover:
    """Check the size, and the checksums of a PNG, without decoding: a JPEG of 4 MiB can take minutes.

    Raises TextError.
    """
    if len(image) > MAX_COVER:
        raise TextError(f"the cover has {len(image)} bytes; at most {MAX_COVER} are allowed", "cover")
    from PIL import Image  # imported here, because most documents have no cover

    try:
        with Image.open(io.BytesIO(image), formats=("JPEG", "PNG")) as picture:
            width, height = picture.size
            picture.verify()
            media_type = _MEDIA_TYPES[picture.format or ""]
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, KeyError, Image.DecompressionBombError) as error:
        raise TextError("the cover is not a readable JPEG or PNG picture", "cover") from error
    if max(width, height) > MAX_SIDE:
        raise TextError(
            f"the cover has {width} by {height} pixels; at most {MAX_SIDE} by {MAX_SIDE} are allowed", "cover"
        )
    return Cover(image, media_type)
