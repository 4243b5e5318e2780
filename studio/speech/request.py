"""A SpeechRequest, validated, and its origin."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from audio import InvalidClip
from audio.formats import DEFAULT_FORMAT, check_format
from audio.tempo import MAX_SPEED, MIN_SPEED
from engine import InvalidUtterance, Sampling, refuse_control_tokens
from speechtext.script import PART_BYTES, is_blank
from speechtext.turns import TURN_GAP, check_cast
from studio.errors import InvalidRequest
from studio.library.records import Pronunciation, Scalar
from studio.unicode_text import check_strings

MAX_INPUT = 16_384
"""Characters of text in one request; OpenAI allows 4096."""
MIN_PART, MAX_PART = 100, 1000
MAX_FRAMES = 4096
"""Maximum frames per request."""
MAX_CLIP_TEXT = 2000
MAX_CLIPS = 8
"""Maximum clips per request; their text and audio are in the prompt of every part."""
MAX_VOLUME = 20.0
DEFAULT_SAMPLING = Sampling()
PAGE = "page"
"""The caller of requests that this process makes itself."""


@dataclass(frozen=True, slots=True)
class OwnClip:
    """An uploaded clip and its transcript. Raises InvalidRequest, InvalidClip."""

    sound: bytes | str = field(repr=False)
    """A recording in any readable container, 1 to 30 s; or its data:, https:, http: or file: address."""
    text: str | None
    speaker: int = 0
    """The number N of the speaker whose words <|speaker:N|> marks in the text."""

    def __post_init__(self) -> None:
        if self.text is None:
            raise InvalidClip("a clip needs the words spoken in it: ref_text is missing", "ref_text")
        _check_text("ref_text", self.text, MAX_CLIP_TEXT)


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """A request to generate speech; None chooses a default. Raises InvalidRequest.

    The text is split and checked later, once, when the request is planned.
    """

    text: str
    voice: str | None = None
    """An id, slug, name or alias of a voice, with an optional @REVISION; must be None if there are clips."""
    clips: tuple[OwnClip, ...] = ()
    """Recordings of the voice to use instead of ``voice``; at most MAX_CLIPS."""
    format: str = DEFAULT_FORMAT
    sample_rate: int | None = None
    """Sample rate in Hz; None is the format's default: 24 kHz for pcm, 48 for opus, the model's for all others."""
    bit_rate: int | None = None
    """Bits per second of a compressed file; None is the format's default."""
    volume: float = 0.0
    """Decibels by which the file is louder than the take, -20 to 20; a limiter keeps loud peaks below full scale."""
    seed: int | None = None
    """None uses the voice's default, or a random seed if it has none."""
    temperature: float | None = None
    """None uses the voice's default, or else Sampling's; the same for top_p and top_k."""
    top_p: float | None = None
    top_k: int | None = None
    max_frames: int | None = None
    """Maximum frames of the take (21.5 per second for S2 Pro); None: limited only by the text."""
    speed: float = 1.0
    """0.25 to 4; the pitch is unchanged."""
    chunk_length: int = PART_BYTES
    """Longer text is split at sentence ends into parts of this size, in UTF-8 bytes, within one conversation."""
    cast: Mapping[str, str] | None = None
    """Makes it a dialogue: lines that begin with a name and a colon are spoken in the voice that the cast gives it.
    A name that is not in it must be the name of a voice; text before the first name is spoken in ``voice``."""
    turn_gap: float = TURN_GAP
    """Seconds of silence between the turns of a dialogue, 0 to 10."""
    normalize: bool | None = None
    """Whether numbers, prices, dates etc. are converted to words for the model; None leaves it to the model's
    card."""
    dictionary: bool = True
    """Whether the pronunciation dictionaries apply."""
    pronunciations: tuple[Pronunciation, ...] = ()
    """Entries for this request, which take precedence over those of the voice and the global ones."""
    language: str | None = None
    """The text's language, for models that are told it: BCP 47 or an English name; None: recognised in the text."""
    instructions: str = ""
    """How to speak, or the voice's description, only for models that take it beside the text."""
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
            raise InvalidRequest("send either a voice or a clip, not both", "voice")
        if len(self.clips) > MAX_CLIPS:
            raise InvalidRequest(f"there are {len(self.clips)} clips; at most {MAX_CLIPS} are allowed", "references")

    def sampling(self, defaults: Mapping[str, Scalar]) -> Sampling:
        """Values of the request, then those given here; a random seed if there is none."""
        requested = {name: value for name, value in self.requested_sampling.items() if value is not None}
        chosen: dict[str, Any] = {"seed": secrets.randbelow(2**31), **defaults, **requested}
        return Sampling(**chosen)

    @property
    def requested_sampling(self) -> dict[str, Scalar]:
        """Sampling of the request; None uses the voice's defaults."""
        return {name: getattr(self, name) for name in ("seed", "temperature", "top_p", "top_k")}


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a request."""

    request_id: str = field(default_factory=lambda: new_request_id())
    caller: str = PAGE
    """The caller against whose limit it counts."""
    patient: bool = False
    """Whether it waits when the queue is full instead of being refused, as a piece of a longer request."""
    background: bool = False
    """Whether it is made for something that stores it itself: exempt from limits, and not stored among the takes."""
    live: bool = False
    """Whether it came through a socket or another service's protocol, or says so, as agents' requests do: see
    `Take.live`. The items of a batch did not: somebody asked for their files."""

    @property
    def is_bounded(self) -> bool:
        """Whether another limit bounds the number of concurrent requests."""
        return self.patient or self.background


def new_request_id() -> str:
    """A name for one request, as clients know it from the x-request-id header."""
    return f"req_{uuid.uuid4().hex}"


def _check_text(name: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise InvalidRequest(f"{name} has {len(text)} characters; at most {limit} are allowed", name, "string_too_long")
    if is_blank(text):
        raise InvalidRequest(f"{name} is blank; send a text to speak", name)
    check_strings(text, name)
    try:
        refuse_control_tokens(text, name)
    except InvalidUtterance as error:
        raise InvalidRequest(str(error), name) from None
