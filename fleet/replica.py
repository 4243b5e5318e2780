"""A replica: one engine in its own process, run by Ray Serve."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeAlias

import numpy as np

from engine import (
    AudioChunk,
    EngineFull,
    EngineInfo,
    EngineStats,
    EngineStopped,
    Reference,
    SpeechEngine,
    Timing,
    Utterance,
)

HEARTBEAT_SECONDS = 0.25
"""After this long without a chunk a replica sends a heartbeat, so that silence means failure."""
STUCK_SECONDS = 30.0  # an engine with rows but without progress for this long counts as failed

PackedChunk: TypeAlias = tuple[np.ndarray, np.ndarray, int, tuple[float, float, float], str | None, int | None]
"""An AudioChunk's fields: a plain tuple crosses processes faster."""
Item: TypeAlias = str | PackedChunk | None
"""An item of a streamed take: the replica's name first, then chunks, and None for a heartbeat."""


def pack(chunk: AudioChunk) -> PackedChunk:
    timing = chunk.timing
    return (
        chunk.pcm,
        chunk.codes,
        chunk.first_frame,
        (timing.admitted, timing.first_frame, timing.now),
        chunk.finish_reason,
        chunk.resumed_at,
    )


def unpack(item: PackedChunk) -> AudioChunk:
    pcm, codes, first_frame, timing, reason, resumed_at = item
    return AudioChunk(pcm, codes, first_frame, Timing(*timing), reason, resumed_at)  # type: ignore[arg-type]


class Replica:
    """An engine's public methods for other processes, called from one event loop.

    ``replica`` is the name of the replica that the caller addresses: another one refuses the call by EngineStopped.
    """

    def __init__(self, name: str, engine: SpeechEngine) -> None:
        self._name, self._engine = name, engine
        self._last_progress = -1.0, time.monotonic()
        self._open = 0

    def _addressed(self, replica: str) -> SpeechEngine:
        if replica != self._name:
            raise EngineStopped(f"replica {replica} no longer exists")
        return self._engine

    async def name(self) -> str:
        return self._name

    async def info(self, replica: str) -> EngineInfo:
        return self._addressed(replica).info

    async def process(self, replica: str) -> int:
        self._addressed(replica)
        return os.getpid()

    async def stats(self, replica: str) -> EngineStats:
        return self._addressed(replica).stats()

    async def speak(self, utterance: Utterance, replica: str, may_wait: bool) -> AsyncGenerator[Item, None]:
        """Like Engine.speak, with the name first and heartbeats in between.

        Without ``may_wait`` it raises EngineFull if no row is free: only the replica knows what all processes have
        sent, and another replica may have a free row.
        """
        engine = self._addressed(replica)
        rows = engine.info.max_rows
        if self._open >= rows and not may_wait:
            raise EngineFull(f"all {rows} rows are in use")
        self._open += 1
        try:
            yield self._name
            async with aclosing(engine.speak(utterance)) as chunks:
                while True:
                    next_chunk = asyncio.ensure_future(_next(chunks))
                    try:
                        while not (await asyncio.wait({next_chunk}, timeout=HEARTBEAT_SECONDS))[0]:
                            yield None
                    finally:
                        if not next_chunk.done():
                            next_chunk.cancel()
                            await asyncio.wait({next_chunk})
                    chunk = next_chunk.result()
                    if chunk is None:
                        return
                    yield pack(chunk)
        finally:
            self._open -= 1

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str, replica: str) -> Reference:
        return await self._addressed(replica).encode_reference(pcm, sample_rate, text)

    async def align(self, text: str, codes: np.ndarray, replica: str) -> np.ndarray:
        return await self._addressed(replica).align(text, codes)

    async def check_health(self) -> None:
        """Raises RuntimeError if the engine has died or hangs: Ray Serve then replaces the process."""
        if self._engine.failure is not None:
            raise RuntimeError(self._engine.failure)
        stats, now = self._engine.stats(), time.monotonic()
        if not stats.running or stats.busy_seconds != self._last_progress[0]:  # it makes progress
            self._last_progress = stats.busy_seconds, now
        elif now - self._last_progress[1] > STUCK_SECONDS:
            raise RuntimeError(f"{stats.running} rows are running without progress for {STUCK_SECONDS:g} s")


async def _next(chunks: AsyncGenerator[AudioChunk, None]) -> AudioChunk | None:
    return await anext(chunks, None)
