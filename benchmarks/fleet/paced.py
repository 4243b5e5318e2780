"""Replicas that only simulate an engine's timing: each take is noise and arrives at the speed of its playback.

They serve to measure everything before the engines: Ray's streams, processes and HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

import numpy as np

from engine import AudioChunk, EngineInfo, EngineStats, Reference, Timing, Utterance
from fleet import ray_serve

CHUNKS = (1, 2, 4)
"""Frames of the first chunks; all others have eight, like the engine's."""
INFO = EngineInfo(
    model="timekeeper",
    device="cpu",
    dtype="float32",
    sample_rate=44_100,
    frame_samples=2048,
    num_codebooks=10,
    max_context=4096,
    max_rows=10_000,
    max_waiting=0,
    codec_fingerprint="none",
    parameters=0,
    fingerprint="none",
)
NOISE = np.random.default_rng(0).uniform(-0.1, 0.1, 8 * INFO.frame_samples).astype(np.float32)
FRAME_SECONDS = INFO.frame_samples / INFO.sample_rate


class PacedEngine:
    """Any number of takes at once."""

    info = INFO
    failure = None

    def __init__(self) -> None:
        self._running = self._finished = self._cancelled = self._frames = 0

    async def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        began, done, chunks = time.perf_counter(), 0, iter(CHUNKS)
        self._running += 1
        try:
            while done < utterance.max_frames:
                frames = min(next(chunks, 8), utterance.max_frames - done)
                due = began + (done + frames - 1) * FRAME_SECONDS
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                codes = np.broadcast_to(np.arange(done, done + frames, dtype=np.int16), (INFO.num_codebooks, frames))
                ends = done + frames == utterance.max_frames
                timing = Timing(0.0, 0.0, time.perf_counter() - began)
                yield AudioChunk(NOISE[: frames * INFO.frame_samples], codes, done, timing, "length" if ends else None)
                done, self._frames = done + frames, self._frames + frames
        finally:
            self._running -= 1
            self._finished += done == utterance.max_frames
            self._cancelled += done < utterance.max_frames

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        return Reference(np.zeros((INFO.num_codebooks, 215), np.int16), text)

    async def align(self, text: str, codes: np.ndarray) -> np.ndarray:
        return np.linspace(0.0, codes.shape[1] * FRAME_SECONDS, len(text) + 1)

    def stats(self) -> EngineStats:
        busy = self._frames * FRAME_SECONDS
        return EngineStats(self._running, 0, self._finished, self._cancelled, self._frames, busy)

    def stop(self) -> None:
        """Nothing to release."""


class PacedDeployment(ray_serve.EngineDeployment):
    """Run by Ray Serve in place of a replica with an engine."""

    start_engine = staticmethod(lambda config: PacedEngine())  # type: ignore[assignment]
