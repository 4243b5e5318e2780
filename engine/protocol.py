"""What every engine does, as a type: in this process, by hand for ZeroGPU, or many on several GPUs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

import numpy as np

from engine.types import AudioChunk, EngineInfo, EngineStats, Reference, Utterance


class SpeechEngine(Protocol):
    """Text and reference codes in, sound out. `Engine` says in full what each of these does and raises."""

    @property
    def info(self) -> EngineInfo:
        """What it is made of; constant while it lives."""

    def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        """The take, chunk by chunk; leaving the iteration cancels it."""

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        """A clip, float32 (samples,) or (channels, samples) at sample_rate Hz, as codes."""

    async def align(self, text: str, codes: np.ndarray) -> np.ndarray:
        """Seconds at which each character of a text begins in the frames that say it, and the end."""

    def stats(self) -> EngineStats:
        """A snapshot, at once."""

    @property
    def failure(self) -> str | None:
        """Why it accepts nothing any more; None while it is well."""

    def stop(self) -> None:
        """End every take with EngineStopped and free all that it holds. Calling it again does nothing."""
