"""The interface of every engine: in this process, inline for ZeroGPU, or several on several GPUs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

import numpy as np

from engine.types import AudioChunk, EngineInfo, EngineStats, Reference, Utterance


class SpeechEngine(Protocol):
    """Text and reference codes in, audio out. `Engine` documents each method and its errors."""

    @property
    def info(self) -> EngineInfo:
        """The loaded checkpoint and device; constant while the engine lives."""

    def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        """The take, chunk by chunk; leaving the iteration cancels it."""

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        """Encode a clip, float32 (samples,) or (channels, samples) at sample_rate Hz."""

    async def align(self, text: str, codes: np.ndarray) -> np.ndarray:
        """Seconds at which each character of a text begins in the frames that speak it, and the end."""

    def stats(self) -> EngineStats:
        """A snapshot, returned at once."""

    @property
    def failure(self) -> str | None:
        """Why it accepts no more work; None while it runs."""

    def stop(self) -> None:
        """End every take with EngineStopped and free all resources. Calling it again does nothing."""
