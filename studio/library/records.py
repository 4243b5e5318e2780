"""The library's nouns: Sample, Cut, Consent; frozen, with units."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

Scalar = str | int | float | bool | None


RANDOM = "random"
"""The voice of a take that the seed alone decides."""
OWN_CLIP = "clip"
"""The voice of a take whose request brought a clip of its own."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How a clip is used: a span of it, a gain, one of its channels. The clip itself is kept untouched."""

    start: float = 0.0
    """Seconds."""
    end: float | None = None
    """Seconds; None is the clip's end."""
    gain_db: float = 0.0
    channel: int | None = None
    """None mixes all channels to one."""

    def key(self, clip: str) -> str:
        """What codes are filed under: they depend on the clip's bytes and on this, and on no words."""
        parts = (clip, f"{self.start:.4f}", "" if self.end is None else f"{self.end:.4f}", f"{self.gain_db:.3f}")
        return hashlib.sha256("\n".join((*parts, str(self.channel))).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class NewSample:
    """A sample on its way into the library: an accepted clip's bytes and everything known of it."""

    data: bytes = field(repr=False)
    media_type: str
    clip_seconds: float
    """Of the whole clip, as far as it was decoded."""
    text: str
    """The words spoken in the cut."""
    cut: Cut
    seconds: float
    """Of the cut."""
    score: int
    """The advisor's, 0 to 100."""
    quality: dict[str, float]
    """The advisor's figures."""
    speaker: int = 0

    @property
    def clip(self) -> str:
        """The SHA-256 of the clip's bytes, in hex."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Sample:
    """A recording of a voice in one of its revisions. Its id stays from revision to revision."""

    id: str
    clip: str
    """The SHA-256 of the original file, in hex: its name in the library's audio."""
    media_type: str
    size: int
    """Bytes."""
    clip_seconds: float
    text: str
    speaker: int
    """Speaks the turns written <|speaker:N|>."""
    cut: Cut
    seconds: float
    score: int
    quality: dict[str, float]

    @property
    def cut_key(self) -> str:
        return self.cut.key(self.clip)


@dataclass(frozen=True, slots=True)
class NewConsent:
    """A consent on its way into the library."""

    name: str
    language: str = ""
    statement: str = ""
    recording: bytes | None = field(default=None, repr=False)
    media_type: str = ""
    """Of the recording."""
    created: float | None = None
    """Unix time; None is now."""


@dataclass(frozen=True, slots=True)
class Consent:
    """Who agreed that a voice is used, and when; with a recording of it, if there is one."""

    id: str
    name: str
    language: str
    statement: str
    recording: str | None
    """SHA-256 of the recording, its name in the library's audio."""
    media_type: str
    size: int
    created: float


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that happened, sealed."""

    n: int
    at: float
    event: str
    subject: str
    details: dict[str, Scalar]
    hash: str
