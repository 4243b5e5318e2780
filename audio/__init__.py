"""Sound in and out: reads clips safely, resamples, measures and masters streams, encodes them while they are made.

Modules are imported where they are needed, since FFmpeg takes long to load; most processes need only the names here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


class AudioError(Exception):
    """A format, rate or standard is not offered. ``param`` names the field of a request that it came in."""

    code = "invalid_value"

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class InvalidClip(AudioError):
    """The clip cannot be used."""

    code = "invalid_audio"


class SilentClip(InvalidClip):
    """The clip has no voice."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The part of a clip that is used: a span, a gain, one of its channels. The clip itself is not changed."""

    start: float = 0.0  # seconds
    end: float | None = None  # seconds; None is the clip's end
    gain_db: float = 0.0
    channel: int | None = None  # None mixes all channels to one

    def key(self, clip: str) -> str:
        """The key of codes: they depend on the clip's bytes and on this cut, not on the transcript."""
        parts = (clip, f"{self.start:.4f}", "" if self.end is None else f"{self.end:.4f}", f"{self.gain_db:.3f}")
        return hashlib.sha256("\n".join((*parts, str(self.channel))).encode()).hexdigest()
