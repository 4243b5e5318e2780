"""Encodes a take's audio as it is generated: tempo, volume and format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from anyio import CapacityLimiter

from engine import available_cores
from studio.audio.formats import open_encoder
from studio.audio.limiter import Limiter
from studio.audio.tempo import Tempo
from studio.threads import run_uninterrupted

CEILING = -1.0
"""Maximum true peak of a louder volume in dBTP."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """The requested file. ``sample_rate=None`` and ``bit_rate=None`` are the format's defaults; ``speed`` keeps the
    pitch; ``volume`` is in decibels."""

    format: str
    sample_rate: int | None
    speed: float = 1.0
    bit_rate: int | None = None
    volume: float = 0.0


class Encoding:
    """One file, from its first samples to its last bytes."""

    def __init__(
        self,
        file: OutputFile,
        source_rate: int,
        samples: int | None = None,
        on_sound: Callable[[np.ndarray], None] = lambda pcm: None,
    ) -> None:
        """``samples``: total number if known. ``on_sound`` gets the audio in the file's tempo, at the original volume;
        it may be called in a thread."""
        output_samples = samples if file.speed == 1 else None
        self._encoder = open_encoder(file.format, source_rate, file.sample_rate, output_samples, bit_rate=file.bit_rate)
        self._tempo = None if file.speed == 1 else Tempo(file.speed, source_rate)
        self._limiter = Limiter(source_rate, file.volume, CEILING) if file.volume else None
        self._on_sound = on_sound
        self.media_type, self.sample_rate = self._encoder.media_type, self._encoder.sample_rate

    async def write(self, pcm: np.ndarray) -> bytes:
        """The bytes completed by these samples, float32."""
        return await self._run(lambda: self._write(self._tempo.write(pcm) if self._tempo else pcm))

    async def finish(self) -> bytes:
        """The last bytes."""
        return await self._run(self._finish)

    async def _run(self, work: Callable[[], bytes]) -> bytes:
        return await run_uninterrupted(work, limiter=_threads()) if self._encoder.costly else work()

    def _write(self, pcm: np.ndarray) -> bytes:
        self._on_sound(pcm)
        return self._encoder.write(self._limiter.write(pcm) if self._limiter else pcm)

    def _finish(self) -> bytes:
        tail = self._write(self._tempo.finish()) if self._tempo else b""
        return tail + (self._encoder.write(self._limiter.finish()) if self._limiter else b"") + self._encoder.finish()


@lru_cache(maxsize=1)
def _threads() -> CapacityLimiter:
    """As many simultaneous encodings as this process has cores; more would only take turns."""
    return CapacityLimiter(available_cores())
