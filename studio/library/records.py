"""The library's nouns: Sample, Cut, Take, Consent; frozen, with units."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
class StoredTake:
    """One thing that was said, and all that is needed to say it again."""

    id: str
    created: float
    text: str
    voice_id: str | None
    voice: str
    """slug@revision, or what else was spoken with."""
    seed: int
    parameters: dict[str, Any]
    """Fields of the request that says it again."""
    state: str
    finish_reason: str | None
    error: str | None
    timings: dict[str, Any]
    """Figures, and of a dialogue its turns."""
    frames: int
    seconds: float
    audio: str | None = None
    """SHA-256 of the audio file, its name in the library's audio."""
    media_type: str = ""
    size: int = 0
    """Bytes of the audio file."""
    sample_rate: int = 0
    """Hz, of the audio file."""
    caller: str = field(default="", repr=False)
    """Whose take it is; never shown."""
    starred: bool = False
    """Stays however many follow."""
    deleted: float | None = None
    """Unix time of its deletion, while it can still be undone."""

    @property
    def label(self) -> str:
        """The voice without its revision."""
        return self.voice.rpartition("@")[0] or self.voice

    @property
    def revision(self) -> int | None:
        """Of the voice; None for a clip and for the random voice."""
        number = self.voice.rpartition("@")[2]
        return int(number) if number != self.voice and number.isdigit() else None


@dataclass(frozen=True, eq=False, slots=True)
class SpokenPart:
    """A part of a text as the model drew it: what it takes to go on after it or in its middle, or to find its words."""

    seed: int
    codes: np.ndarray = field(repr=False)
    """int16 (codebooks, frames)"""
    is_whole: bool
    """Whether the model ended it."""
    text: str = ""
    """As it was read; blank where it is not known any more."""
    end: float | None = None
    """When it ends in the sound that was delivered, in seconds; None: it was not delivered yet."""


@dataclass(frozen=True, eq=False, slots=True)
class TakeCodes:
    """The parts of a take; of one that a limit cut, the last of them maybe ends in its middle."""

    made_by: str
    """Tells the model and its codec: another one's codes mean something else."""
    parts: tuple[SpokenPart, ...]


WordTime = tuple[str, float, float]
"""A word as it was typed, and when it is heard, in seconds."""


@dataclass(frozen=True, slots=True)
class TakeFilter:
    """Which takes; None and blank leave a question open."""

    query: str = ""
    """A part of the text, whatever its case."""
    voice: str | None = None
    """The id or slug of a voice, @REVISION after it if wanted, or what else was spoken with; of a dialogue, any one of
    its voices."""
    starred: bool | None = None
    since: float | None = None
    """Unix time: begun then or later."""
    until: float | None = None
    """Unix time: begun before."""
    ids: tuple[str, ...] | None = None
    caller: str | None = None
    """Whose; None is everybody's."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that happened, sealed."""

    n: int
    at: float
    event: str
    subject: str
    details: dict[str, Scalar]
    hash: str
