"""The library's records: Sample, Consent, Pronunciation; frozen, with units."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from audio import Cut
from speechtext.dictionary import Entry

Scalar = str | int | float | bool | None

RANDOM = "random"
"""The voice of a take whose voice depends only on the seed."""
OWN_CLIP = "clip"
"""The voice of a take with an uploaded clip."""
MAX_PHRASE = 100
MAX_SAID = 200
"""Characters."""
MAX_ENTRIES = 2000
"""Entries in one dictionary."""
Scope = Literal["global", "voice", "project"]


@dataclass(frozen=True, slots=True)
class NewSample:
    """A sample to be added to the library: an accepted clip's bytes and its facts."""

    data: bytes = field(repr=False)
    media_type: str
    clip_seconds: float
    """Seconds of the whole clip, as far as it was decoded."""
    text: str
    """The transcript of the cut."""
    cut: Cut
    seconds: float
    """Length of the cut in seconds."""
    score: int
    """The advisor's score, 0 to 100."""
    quality: dict[str, float]
    """The advisor's measurements."""
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
    """A consent to be added to the library."""

    name: str
    language: str = ""
    statement: str = ""
    recording: bytes | None = field(default=None, repr=False)
    media_type: str = ""
    """Media type of the recording."""
    created: float | None = None
    """Unix time; None is now."""


@dataclass(frozen=True, slots=True)
class Consent:
    """A person's agreement to the use of a voice, with its time and an optional recording."""

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
    """One entry of the audit trail."""

    n: int
    at: float
    event: str
    subject: str
    details: dict[str, Scalar]


@dataclass(frozen=True, slots=True)
class Pronunciation(Entry):
    """An entry, as the library stores it."""

    id: str = ""
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class DictionaryScope:
    """The scope of a dictionary."""

    scope: Scope = "global"
    subject: str = ""
    """The id of the voice or the project."""


GLOBAL = DictionaryScope()


def entry_of(phrase: str, said: str, match_case: int, entry_id: str, created: float) -> Pronunciation:
    return Pronunciation(phrase, said, bool(match_case), entry_id, created)
