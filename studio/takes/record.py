"""What became of a request: its state, its figures by the server's own clock, and how a dialogue's turns lie in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from studio.library import StoredTake

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
    """One request's life. Times are counted from the moment the request was understood."""

    id: str
    state: TakeState
    voice: str
    seed: int
    created: float
    """Unix time."""
    caller: str = field(default="", repr=False)
    """Whose request it is; never shown."""
    finish_reason: str | None = None
    """stop: the model ended it; length: a limit cut it."""
    queue_ms: float | None = None
    first_audio_ms: float | None = None
    """Until the first encoded bytes were ready."""
    generation_s: float | None = None
    """Time the engine worked on it, waiting excluded."""
    audio_s: float = 0.0
    frames: int = 0
    error: str | None = None
    turns: tuple[TurnTime, ...] = ()
    """Of a dialogue."""
    resumed_at: int | None = None
    """The frame after which the engine took it up again; from there on another GPU may draw otherwise."""
    continues: str | None = None
    """The take that it goes on with."""
    mends: str | None = None
    """The take of which sentences were spoken anew in this one."""
    can_continue: bool = False
    """Whether a limit cut it and what it takes to go on is kept."""

    @property
    def ended(self) -> bool:
        return self.state not in ("waiting", "speaking")

    @property
    def rtf(self) -> float | None:
        """Seconds of work for a second of sound."""
        if self.generation_s is None or not self.audio_s:
            return None
        return self.generation_s / self.audio_s

    def as_json(self) -> dict[str, object]:
        """The public form, rounded to what is meaningful."""
        return {
            "id": self.id,
            "object": "audio.take",
            "state": self.state,
            "created": int(self.created),
            "voice": self.voice,
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
        } | ({"turns": [_turn(turn) for turn in self.turns]} if self.turns else {})


def ended(draft: StoredTake, take: Take) -> StoredTake:
    """What the library keeps of a take that has ended; ``draft`` is what was known of it when it began."""
    figures = ("queue_ms", "first_audio_ms", "generation_s", "audio_s", "resumed_at", "continues")
    timings = {name: value for name in figures if (value := getattr(take, name)) is not None}
    return replace(
        draft,
        state=take.state,
        finish_reason=take.finish_reason,
        error=take.error,
        timings=timings | ({"turns": [asdict(turn) for turn in take.turns]} if take.turns else {}),
        frames=take.frames,
        seconds=take.audio_s,
    )


def _turn(turn: TurnTime) -> dict[str, object]:
    return asdict(turn) | {"start_s": round(turn.start_s, 3), "end_s": round(turn.end_s, 3)}


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
