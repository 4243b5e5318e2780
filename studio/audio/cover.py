"""Checks covers of audiobooks, untrusted JPEG or PNG pictures, before they are decoded."""

from __future__ import annotations

import hashlib
import io
import struct
from dataclasses import dataclass, field

from studio.errors import InvalidRequest

MAX_COVER = 4 * 1024 * 1024
"""Bytes."""
MAX_SIDE = 4096
"""Maximum pixels per side: 64 MiB unpacked."""
_MEDIA_TYPES = {"JPEG": "image/jpeg", "MPO": "image/jpeg", "PNG": "image/png"}
"""Pillow's names; MPO is a JPEG with further pictures after it, as phones produce."""


@dataclass(frozen=True, slots=True)
class Cover:
    """A checked picture."""

    image: bytes = field(repr=False)
    media_type: str

    @property
    def digest(self) -> str:
        """Identifies this picture."""
        return hashlib.sha256(self.image).hexdigest()[:16]

    @property
    def demuxer(self) -> str:
        """FFmpeg's name for its demuxer."""
        return {"image/png": "png_pipe", "image/jpeg": "jpeg_pipe"}[self.media_type]


def read_cover(image: bytes) -> Cover:
    """Check the size, and the checksums of a PNG, without decoding: a JPEG of 4 MiB can take minutes.

    Raises InvalidRequest.
    """
    if len(image) > MAX_COVER:
        raise InvalidRequest(f"the cover has {len(image)} bytes; at most {MAX_COVER} are allowed", "cover")
    from PIL import Image  # imported here, because most documents have no cover

    try:
        with Image.open(io.BytesIO(image), formats=("JPEG", "PNG")) as picture:
            width, height = picture.size
            picture.verify()
            media_type = _MEDIA_TYPES[picture.format or ""]
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, KeyError, Image.DecompressionBombError) as error:
        raise InvalidRequest("the cover is not a readable JPEG or PNG picture", "cover") from error
    if max(width, height) > MAX_SIDE:
        raise InvalidRequest(
            f"the cover has {width} by {height} pixels; at most {MAX_SIDE} by {MAX_SIDE} are allowed", "cover"
        )
    return Cover(image, media_type)
