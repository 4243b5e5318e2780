"""A row: one utterance in the engine; once submitted, only the engine's thread touches it."""

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
"""Receives chunks, or the error that ends the take; called on the engine's threads."""


class State(enum.Enum):
    WAITING = enum.auto()
    PREFILL = enum.auto()
    SPEAKING = enum.auto()
    ENDED = enum.auto()


@dataclass(eq=False, slots=True)
class Row:
    """The engine's state of one take."""

    prompt: Prompt
    sampling: Sampling
    max_frames: int
    """Limited by the context."""
    sink: Sink
    owner: str = ""
    state: State = State.WAITING
    slot: int = -1
    position: int = 0
    """Positions in the KV cache: prompt, then frames."""
    frames: list[np.ndarray] = field(default_factory=list)
    """Generated but not yet sent to the codec, each int16 (codebooks,)."""
    frames_sent: int = 0
    """Frames sent to the codec, including those delivered before the take was resumed."""
    to_repeat: int = 0
    """Frames that were delivered already and will be generated again, and dropped."""
    chunks: int = 0
    cancelled: bool = False
    """Nobody listens to it now: the codec drops the rest."""
    submitted: float = field(default_factory=time.perf_counter)
    admitted: float = 0.0
    first_frame: float = 0.0
    first_chunk: float = 0.0
    """Clock time at which playback started, plus all time that the listener has waited for more audio since: the time
    at which it would have started without interruptions."""

    @property
    def frame_count(self) -> int:
        return self.frames_sent + len(self.frames)

    def buffered_seconds(self, frame_seconds: float, now: float) -> float:
        """Seconds of audio that its listener has not played yet; 0 before the first chunk."""
        if not self.first_chunk:
            return 0.0
        return (self.frames_sent - self.prompt.delivered) * frame_seconds - (now - self.first_chunk)

    def note_chunk(self, frame_seconds: float | None, now: float) -> None:
        """Record that frames go to the codec now, where a listener that has run out of audio resumes playing."""
        self.first_frame = self.first_frame or now
        self.first_chunk = self.first_chunk or now
        if frame_seconds is not None:
            self.first_chunk -= min(self.buffered_seconds(frame_seconds, now), 0.0)

    def timing(self) -> Timing:
        start = self.submitted
        return Timing(self.admitted - start, self.first_frame - start, time.perf_counter() - start)
