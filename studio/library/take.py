"""Take, the record of generated speech from its request to its row in the library; its codes and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from speechtext.word_times import Timed
from studio.library.audio_files import Piece

if TYPE_CHECKING:
    import numpy as np

TakeState = Literal["waiting", "speaking", "finished", "cancelled", "failed"]
TakeKind = Literal["finished", "live", "cut_off"]
"""The retention counts each kind separately, so that programs cannot push out the takes that somebody made: finished
ones, finished ones that were requested live, and those cancelled, failed or without audio."""
TAKE_KINDS: tuple[TakeKind, ...] = ("finished", "live", "cut_off")


@dataclass(frozen=True, slots=True)
class TurnTime:
    """One turn of a dialogue, with its times in the file, in seconds."""

    speaker: str
    voice: str
    seed: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Take:
    """One generation of a text. Milliseconds and seconds of work count from the time the request was parsed.

    Active and unstored takes have no words: see `without_words`.
    """

    id: str
    created: float
    """Unix time."""
    voice: str
    """slug@revision, or the kind of voice; for a dialogue the names of its voices."""
    seed: int
    state: TakeState = "waiting"
    caller: str = field(default="", repr=False)
    """Owner; never shown."""
    text: str = field(default="", repr=False)
    voice_id: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict, repr=False)
    """Fields of a request that generates it again."""
    finish_reason: str | None = None
    """stop: the model ended it; length: a limit cut it off."""
    error: str | None = None
    frames: int = 0
    seconds: float = 0.0
    """Length of the file in seconds."""
    queue_ms: float | None = None
    first_audio_ms: float | None = None
    """Milliseconds until the first encoded bytes were ready."""
    generation_s: float | None = None
    """Seconds of the engine's work on it, without waiting."""
    audio_s: float = 0.0
    """Duration before the tempo was changed."""
    turns: tuple[TurnTime, ...] = ()
    """The turns of a dialogue."""
    resumed_at: int | None = None
    """The frame at which the engine resumed it; from there on another GPU may give other codes."""
    continues: str | None = None
    """The id of the take that it continues."""
    regenerated_from: str | None = None
    """The id of the take of which sentences were regenerated in this one."""
    made_by: str | None = None
    """The model and codec, if no codes with that information are stored with it."""
    can_continue: bool = False
    """Whether a limit cut it off and everything needed to continue it is stored."""
    audio: str = ""
    """SHA-256 of the audio file, its name in the library's audio; blank without audio."""
    media_type: str = ""
    size: int = 0
    """Bytes of the audio file."""
    sample_rate: int = 0
    """Hz, of the audio file."""
    starred: bool = False
    """Exempt from the retention."""
    live: bool = False
    """Whether it was requested through a socket or Fish Audio's protocol, which agents use: see TakeKind."""
    deleted: float | None = None
    """Unix time of its deletion, while it is in the trash."""
    part_id: str | None = None
    """The part of a project it was generated for; such takes are removed with their part, and no history lists them."""
    recipe: str | None = None
    """Identifies the text, voice and settings of the part at that time."""
    work_s: float | None = None
    """For a part: seconds from the request to the end of the audio, with waiting."""

    @property
    def ended(self) -> bool:
        return self.state not in ("waiting", "speaking")

    @property
    def label(self) -> str:
        """The voice without its revision."""
        return self.voice.rpartition("@")[0] or self.voice

    @property
    def revision(self) -> int | None:
        """The number of the voice's revision; None for a clip, for the random voice and for a dialogue."""
        number = self.voice.rpartition("@")[2]
        return int(number) if number != self.voice and number.isdigit() else None

    @property
    def samples(self) -> int:
        """Number of audio samples in the file."""
        return round(self.seconds * self.sample_rate)

    @property
    def rtf(self) -> float | None:
        """Seconds of work per second of audio."""
        return None if self.generation_s is None or not self.audio_s else self.generation_s / self.audio_s

    def without_words(self) -> Take:
        """The record without text, which may be held in memory and shown before the library stores it."""
        return replace(self, text="", voice=self.label, voice_id=None, parameters={})

    def as_json(self) -> dict[str, object]:
        """Its figures in their public form, rounded to meaningful precision."""
        return {
            "id": self.id,
            "object": "audio.take",
            "state": self.state,
            "created": int(self.created),
            "voice": self.label,
            "seed": self.seed,
            "finish_reason": self.finish_reason,
            "queue_ms": _round(self.queue_ms, 1),
            "first_audio_ms": _round(self.first_audio_ms, 1),
            "generation_s": _round(self.generation_s, 3),
            "audio_s": round(self.audio_s, 3),
            "rtf": _round(self.rtf, 4),
            "frames": self.frames,
            "error": self.error,
            "resumed_at": self.resumed_at,
            "continues": self.continues,
            "regenerated_from": self.regenerated_from,
            "can_continue": self.can_continue,
        } | ({"turns": [_turn_json(turn) for turn in self.turns]} if self.turns else {})


@dataclass(frozen=True, eq=False, slots=True)
class SpokenPart:
    """A generated part of a text, with everything needed to continue it, replace sentences or find its words."""

    seed: int
    codes: np.ndarray = field(repr=False)
    """int16 (codebooks, frames)"""
    is_whole: bool
    """Whether the model ended it."""
    text: str = ""
    """The text as it was read; blank if no longer known."""
    end: float | None = None
    """Its end in the delivered audio, in seconds; None before it is delivered."""


@dataclass(frozen=True, eq=False, slots=True)
class TakeCodes:
    """The parts of a take; if a limit cut it off, the last may be incomplete."""

    made_by: str
    """Identifies the model and its codec, which the codes belong to."""
    parts: tuple[SpokenPart, ...]


@dataclass(frozen=True, eq=False, slots=True)
class NewTake:
    """A take to be stored in the library, with everything stored beside it."""

    take: Take
    audio: Sequence[Piece] = field(default=(), repr=False)
    """Its audio file in pieces, the first of which is the header; none without audio."""
    codes: TakeCodes | None = field(default=None, repr=False)
    words: Sequence[Timed] | None = None


@dataclass(frozen=True, slots=True)
class TakeFilter:
    """Conditions for takes; None and blank match every take."""

    query: str = ""
    """A part of the text, in any case."""
    voice: str | None = None
    """The id or slug of a voice with an optional @REVISION, or another kind of voice; for a dialogue, any one of its
    voices."""
    starred: bool | None = None
    since: float | None = None
    """Unix time: takes begun at or after it."""
    until: float | None = None
    """Unix time: takes begun before it."""
    ids: tuple[str, ...] | None = None
    caller: str | None = None
    """Owner; None for all owners."""


def _turn_json(turn: TurnTime) -> dict[str, object]:
    return asdict(turn) | {"start_s": round(turn.start_s, 3), "end_s": round(turn.end_s, 3)}


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
