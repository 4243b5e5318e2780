"""Take, the one record of a text that was spoken, from its request to its row in the library; its codes, its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

TakeState = Literal["waiting", "speaking", "finished", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class TurnTime:
    """One turn of a dialogue, and when it is heard in the file, in seconds."""

    speaker: str
    voice: str
    seed: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Take:
    """One time that a text was spoken. Milliseconds and seconds of work count from when the request was understood.

    While it is made, and where it is not kept, nothing has its words: see `without_words`.
    """

    id: str
    created: float
    """Unix time."""
    voice: str
    """slug@revision, or what else was spoken with; of a dialogue the names of its voices."""
    seed: int
    state: TakeState = "waiting"
    caller: str = field(default="", repr=False)
    """Whose it is; never shown."""
    text: str = field(default="", repr=False)
    voice_id: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict, repr=False)
    """Fields of the request that speaks it again."""
    finish_reason: str | None = None
    """stop: the model ended it; length: a limit cut it."""
    error: str | None = None
    frames: int = 0
    seconds: float = 0.0
    """Of the file."""
    queue_ms: float | None = None
    first_audio_ms: float | None = None
    """Until the first encoded bytes were ready."""
    generation_s: float | None = None
    """Time the engine worked on it, waiting excluded."""
    audio_s: float = 0.0
    """Of what the engine made, before a tempo shortened or stretched it."""
    turns: tuple[TurnTime, ...] = ()
    """Of a dialogue."""
    resumed_at: int | None = None
    """The frame after which the engine took it up again; from there on another GPU may draw otherwise."""
    continues: str | None = None
    """The id of the take that it continues."""
    mends: str | None = None
    """The id of the take of which sentences were regenerated in this one."""
    made_by: str | None = None
    """The model and codec, where no codes that say so are kept with it."""
    can_continue: bool = False
    """Whether a limit cut it and everything is kept that it takes to continue."""
    audio: str = ""
    """SHA-256 of the audio file, its name in the library's audio; blank: it has none."""
    media_type: str = ""
    size: int = 0
    """Bytes of the audio file."""
    sample_rate: int = 0
    """Hz, of the audio file."""
    starred: bool = False
    """Stays however many follow."""
    deleted: float | None = None
    """Unix time of its deletion, while it is in the trash."""
    part_id: str | None = None
    """The part of a project that it was made for; such takes go with their part, and no history lists them."""
    recipe: str | None = None
    """Tells the part's words, voice and settings, as they were, from others."""
    work_s: float | None = None
    """Of a part: from the request to the end of the sound, waiting included."""

    @property
    def ended(self) -> bool:
        return self.state not in ("waiting", "speaking")

    @property
    def label(self) -> str:
        """The voice without its revision."""
        return self.voice.rpartition("@")[0] or self.voice

    @property
    def revision(self) -> int | None:
        """Of the voice; None for a clip, for the random voice and for a dialogue."""
        number = self.voice.rpartition("@")[2]
        return int(number) if number != self.voice and number.isdigit() else None

    @property
    def samples(self) -> int:
        """Of the file."""
        return round(self.seconds * self.sample_rate)

    @property
    def rtf(self) -> float | None:
        """Seconds of work for a second of sound."""
        return None if self.generation_s is None or not self.audio_s else self.generation_s / self.audio_s

    def without_words(self) -> Take:
        """What may be held in memory and shown before the library has it, or if it never does."""
        return replace(self, text="", voice=self.label, voice_id=None, parameters={})

    def with_words_of(self, draft: Take) -> Take:
        """The whole record of a take that ended; ``draft`` is what was known when it began."""
        words = {name: getattr(draft, name) for name in ("text", "voice", "voice_id", "parameters")}
        return replace(self, **words)

    def as_json(self) -> dict[str, object]:
        """Its figures in their public form, rounded to what is meaningful."""
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
            "mends": self.mends,
            "can_continue": self.can_continue,
        } | ({"turns": [_turn_json(turn) for turn in self.turns]} if self.turns else {})


@dataclass(frozen=True, eq=False, slots=True)
class SpokenPart:
    """A part of a text as the model drew it: what it takes to continue after or within it, or to find its words."""

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
    """The parts of a take; of one that a limit cut, the last may end in its middle."""

    made_by: str
    """Tells the model and its codec: another one's codes mean something else."""
    parts: tuple[SpokenPart, ...]


class Timed(NamedTuple):
    """A word of a text as it was typed, or a sentence, and when it is heard, in seconds."""

    text: str
    start: float
    end: float


@dataclass(frozen=True, eq=False, slots=True)
class NewTake:
    """A take on its way into the library, with everything that is kept beside it."""

    take: Take
    audio: Sequence[bytes] = field(default=(), repr=False)
    """Its audio file in pieces; none: it has no sound."""
    codes: TakeCodes | None = field(default=None, repr=False)
    words: Sequence[Timed] | None = None


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


def _turn_json(turn: TurnTime) -> dict[str, object]:
    return asdict(turn) | {"start_s": round(turn.start_s, 3), "end_s": round(turn.end_s, 3)}


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
