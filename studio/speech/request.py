"""What can be asked of the studio: a SpeechRequest, checked, and where it comes from."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine import InvalidUtterance, Sampling, refuse_control_tokens
from studio.audio.formats import DEFAULT_FORMAT, check_format
from studio.audio.tempo import MAX_SPEED, MIN_SPEED
from studio.errors import InvalidClip, InvalidRequest
from studio.library.pronunciations.entries import Pronunciation
from studio.library.records import Scalar
from studio.speech.dialogue import TURN_GAP, check_cast
from studio.speech.text import PART_BYTES, is_blank
from studio.unicode_text import check_strings

MAX_INPUT = 16_384
"""Characters of text in one request; OpenAI allows 4096."""
MIN_PART, MAX_PART = 100, 1000
MAX_FRAMES = 4096
"""The largest budget of frames that a request may ask for."""
MAX_CLIP_TEXT = 2000
MAX_CLIPS = 8
"""Of one request; their words and sound are in every part's prompt."""
MAX_VOLUME = 20.0
DEFAULT_SAMPLING = Sampling()
PAGE = "page"
"""The caller of requests that come from this process itself."""


@dataclass(frozen=True, slots=True)
class OwnClip:
    """A clip of a request's own and the words spoken in it. Raises InvalidRequest, InvalidClip."""

    sound: bytes | str = field(repr=False)
    """A recording in any readable container, 1 to 30 s; or its data:, https:, http: or file: address."""
    text: str | None

    def __post_init__(self) -> None:
        if self.text is None:
            raise InvalidClip("a clip needs the words spoken in it: ref_text is missing", "ref_text")
        _check_text("ref_text", self.text, MAX_CLIP_TEXT)


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """What somebody wants to hear; None means: choose for me. Raises InvalidRequest.

    Its text is cut up, and refused if that makes no sense, where it is planned to be spoken, once.
    """

    text: str
    voice: str | None = None
    """An id, slug, name or alias of a voice, with @REVISION if wanted; must be None when there is a clip."""
    clips: tuple[OwnClip, ...] = ()
    """Recordings of the voice to speak in, in the place of ``voice``; at most MAX_CLIPS."""
    format: str = DEFAULT_FORMAT
    sample_rate: int | None = None
    """Hz, of the file; None is the format's own: 24 kHz for pcm, 48 for opus, the model's for all others."""
    bit_rate: int | None = None
    """Bits a second of a compressed file; None is the format's own."""
    volume: float = 0.0
    """Decibels by which the file is louder than the take, -20 to 20; a limiter keeps loud peaks below full scale."""
    seed: int | None = None
    """None takes the voice's default, and draws one where it has none."""
    temperature: float | None = None
    """None takes the voice's default, and Sampling's where it has none; top_p and top_k too."""
    top_p: float | None = None
    top_k: int | None = None
    max_frames: int | None = None
    """The take ends here at the latest (21.5 frames a second for S2 Pro); None: when all is said."""
    speed: float = 1.0
    """0.25 to 4, the pitch kept."""
    chunk_length: int = PART_BYTES
    """Longer text is cut at sentence ends into parts of so many bytes of UTF-8, spoken in one conversation."""
    cast: Mapping[str, str] | None = None
    """Makes it a dialogue: lines that begin with a name and a colon are spoken in the voice that the cast gives it.
    A name that is not in it must be that of a voice; what stands before the first name is spoken in ``voice``."""
    turn_gap: float = TURN_GAP
    """Seconds of silence between the turns of a dialogue, 0 to 10."""
    normalize: bool | None = None
    """Whether numbers, prices, dates and the like are read as words before the model; None leaves it to the model's
    card."""
    dictionary: bool = True
    """Whether words are said as the dictionaries have them."""
    pronunciations: tuple[Pronunciation, ...] = ()
    """Entries that count for this request before those of its voice and of everybody."""
    store: bool = True
    """Whether the take may be kept in the library."""

    def __post_init__(self) -> None:
        _check_text("input", self.text, MAX_INPUT)
        check_format(self.format, self.sample_rate)
        if self.max_frames is not None and not 1 <= self.max_frames <= MAX_FRAMES:
            raise InvalidRequest(f"max_new_tokens must be from 1 to {MAX_FRAMES}", "max_new_tokens")
        if not MIN_SPEED <= self.speed <= MAX_SPEED:
            raise InvalidRequest(f"speed must be from {MIN_SPEED} to {MAX_SPEED}", "speed")
        if not -MAX_VOLUME <= self.volume <= MAX_VOLUME:
            raise InvalidRequest(f"volume must be from -{MAX_VOLUME:g} to {MAX_VOLUME:g} dB", "volume")
        if not MIN_PART <= self.chunk_length <= MAX_PART:
            raise InvalidRequest(f"chunk_length must be from {MIN_PART} to {MAX_PART}", "chunk_length")
        if self.cast is not None:
            check_cast(self.cast, self.turn_gap)
        if self.clips and self.voice is not None:
            raise InvalidRequest("give either a voice or a clip of your own, not both", "voice")
        if len(self.clips) > MAX_CLIPS:
            raise InvalidRequest(f"there are {len(self.clips)} clips; at most {MAX_CLIPS} are allowed", "references")

    def sampling(self, defaults: Mapping[str, Scalar]) -> Sampling:
        """Its wishes, then a voice's defaults, then Sampling's own; a seed is drawn where there is none."""
        wished = {name: value for name, value in self.wishes.items() if value is not None}
        chosen: dict[str, Any] = {"seed": secrets.randbelow(2**31), **defaults, **wished}
        return Sampling(**chosen)

    @property
    def wishes(self) -> dict[str, Scalar]:
        """How it wants to be drawn; None leaves it to the voice."""
        return {name: getattr(self, name) for name in ("seed", "temperature", "top_p", "top_k")}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request comes from."""

    request_id: str = field(default_factory=lambda: new_request_id())
    caller: str = PAGE
    """Whose share it counts to."""
    patient: bool = False
    """Whether it waits for a place in a full queue instead of being refused: one piece of something under way."""
    background: bool = False
    """A part of a project: it counts to nobody's share, and the project keeps it instead of the takes."""

    @property
    def is_bounded(self) -> bool:
        """Whether something else bounds how many there are of these at a time."""
        return self.patient or self.background


def new_request_id() -> str:
    """A name for one request, as clients know it from the x-request-id header."""
    return f"req_{uuid.uuid4().hex}"


def _check_text(name: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise InvalidRequest(f"{name} has {len(text)} characters; at most {limit} are allowed", name, "string_too_long")
    if is_blank(text):
        raise InvalidRequest(f"{name} is blank: there is nothing to say", name)
    check_strings(text, name)
    try:
        refuse_control_tokens(text, name)
    except InvalidUtterance as error:
        raise InvalidRequest(str(error), name) from None
