"""Reads plain 16-bit WAV files without copying; anything unusual is left to FFmpeg."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

_LAYOUT = struct.Struct("<4sI4s4sIHHIIHH4sI")
"""The header up to the samples: RIFF, a format chunk of 16 bytes, then the data chunk."""
_PCM = 1
_DISGUISED = (b"\x72\xf8\x1f\x4e", b"\x7f\xfe\x80\x01", b"\xfe\x7f\x01\x80", b"\x1f\xff\xe8\x00", b"\xff\x1f\x00\xe8")
"""The first bytes of S/PDIF and DTS data stored as samples."""
_LOOKED_AT = 2**16 + 2**10
"""FFmpeg searches the first 64 KiB for such data, and decodes it."""
MOST_CHANNELS = 2


def samples_of(data: bytes) -> tuple[np.ndarray, int] | None:
    """The samples int16 (samples, channels) without a copy, and the file's rate; None: ask FFmpeg."""
    if len(data) < _LAYOUT.size:
        return None
    riff, _, wave, fmt, size, kind, channels, rate, speed, block, bits, name, length = _LAYOUT.unpack_from(data)
    if (riff, wave, fmt, size, kind, bits, name) != (b"RIFF", b"WAVE", b"fmt ", 16, _PCM, 16, b"data"):
        return None
    if not 1 <= channels <= MOST_CHANNELS or block != 2 * channels or speed != rate * block:
        return None
    if not 0 < length <= len(data) - _LAYOUT.size or length % block:  # from a live stream, or truncated
        return None
    if any(sign in data[:_LOOKED_AT] for sign in _DISGUISED):
        return None
    samples = np.frombuffer(data, "<i2", length // 2, _LAYOUT.size)
    return samples.reshape(-1, channels), rate


def in_parts(samples: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Blocks of ``size`` samples as float32 (channels, samples), full scale 1, as FFmpeg converts 16 bits."""
    for at in range(0, len(samples), size):
        yield (samples[at : at + size] * np.float32(1 / 32768)).T
