"""A row: one utterance on its way through the engine, touched by the engine's thread alone once submitted."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from engine.engine_errors import EngineError
from engine.model.prompt import Prompt
from engine.types import AudioChunk, Sampling, Timing

Sink = Callable[[AudioChunk | EngineError], None]
"""Takes chunks, or the error that ends the take; called on the engine's threads."""


class State(enum.Enum):
    WAITING = enum.auto()
    PREFILL = enum.auto()
    SPEAKING = enum.auto()
    ENDED = enum.auto()


@dataclass(eq=False, slots=True)
class Row:
    """What the engine knows of one take."""

    prompt: Prompt
    sampling: Sampling
    max_frames: int
    """Already cut to what the context holds."""
    sink: Sink
    timbre: np.ndarray | None = None
    """float32 (dim,): the vector that its sound is coloured by; None is the codec's default voice."""
    state: State = State.WAITING
    slot: int = -1
    position: int = 0
    """Positions in the KV cache: prompt, then frames."""
    frames: list[np.ndarray] = field(default_factory=list)
    """Drawn but not yet handed to the codec, each int16 (codebooks,)."""
    sent: int = 0
    """Frames handed to the codec, also those that were heard before the take was taken up again."""
    to_repeat: int = 0
    """Frames that were heard already and are still to be drawn anew, to be dropped."""
    chunks: int = 0
    cancelled: bool = False
    """Nobody listens any more: the codec leaves out what is still to come."""
    submitted: float = field(default_factory=time.perf_counter)
    admitted: float = 0.0
    first_frame: float = 0.0
    first_chunk: float = 0.0
    """When its first frames went to the codec: its listener has played for less long."""

    @property
    def drawn(self) -> int:
        """Frames that the take has so far."""
        return self.sent + len(self.frames)

    def in_hand(self, frame_seconds: float, now: float) -> float:
        """Seconds of sound that its listener has still to play; none is known of before the first chunk."""
        if not self.first_chunk:
            return 0.0
        return (self.sent - self.prompt.heard) * frame_seconds - (now - self.first_chunk)

    def timing(self) -> Timing:
        start = self.submitted
        return Timing(self.admitted - start, self.first_frame - start, time.perf_counter() - start)
