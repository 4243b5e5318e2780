"""A picture for the front of an audiobook: JPEG or PNG from a stranger, looked at before anything decodes it."""

from __future__ import annotations

import hashlib
import io
import struct
from dataclasses import dataclass, field

import av
from av.error import FFmpegError

from studio.errors import InvalidRequest

MAX_COVER = 4 * 1024 * 1024
"""Bytes."""
MAX_SIDE = 4096
"""Pixels: unpacked, 64 MiB."""
_PNG = b"\x89PNG\r\n\x1a\n"
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers of a JPEG's segment that says how large it is."""


@dataclass(frozen=True, slots=True)
class Cover:
    """A picture that was checked."""

    image: bytes = field(repr=False)
    media_type: str

    @property
    def digest(self) -> str:
        """Tells this picture from others."""
        return hashlib.sha256(self.image).hexdigest()[:16]

    @property
    def demuxer(self) -> str:
        """FFmpeg's name of what reads it."""
        return {"image/png": "png_pipe", "image/jpeg": "jpeg_pipe"}[self.media_type]


def read_cover(image: bytes) -> Cover:
    """Raises InvalidRequest for what is no JPEG or PNG, or is too large."""
    if len(image) > MAX_COVER:
        raise InvalidRequest(f"the cover has {len(image)} bytes; at most {MAX_COVER} are allowed", "cover")
    is_png = image.startswith(_PNG)
    size = _png_size(image) if is_png else _jpeg_size(image)
    if size is None or min(size) < 1:
        raise InvalidRequest("the cover is not a readable JPEG or PNG picture", "cover")
    if max(size) > MAX_SIDE:
        raise InvalidRequest(
            f"the cover has {size[0]} by {size[1]} pixels; at most {MAX_SIDE} by {MAX_SIDE} are allowed", "cover"
        )
    cover = Cover(image, "image/png" if is_png else "image/jpeg")
    try:
        with av.open(io.BytesIO(image), format=cover.demuxer) as opened:
            found = opened.streams.video[0].codec_context
            is_whole = (found.width, found.height) == size
    except (FFmpegError, IndexError):
        is_whole = False
    if not is_whole:
        raise InvalidRequest("the cover is damaged: it cannot be opened", "cover")
    return cover


def _png_size(image: bytes) -> tuple[int, int] | None:
    if image[12:16] != b"IHDR" or len(image) < 33:
        return None
    width, height = struct.unpack(">II", image[16:24])
    return width, height


def _jpeg_size(image: bytes) -> tuple[int, int] | None:
    """Of the first frame, which stands before any pixels; None: there is none."""
    if not image.startswith(b"\xff\xd8"):
        return None
    at = 2
    while at + 9 <= len(image) and image[at] == 0xFF:
        marker, (length,) = image[at + 1], struct.unpack(">H", image[at + 2 : at + 4])
        if marker in _FRAMES:
            height, width = struct.unpack(">HH", image[at + 5 : at + 9])
            return width, height
        if marker == 0xDA or length < 2:
            return None
        at += 2 + length
    return None
