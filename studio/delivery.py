"""One take on its way to a listener: pulls chunks, encodes them, keeps its record; closing it cancels."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import lru_cache

import anyio
import numpy as np
from anyio import CapacityLimiter, to_thread

from engine import AudioChunk, EngineError
from studio.audio.encode import Encoder
from studio.audio.formats import open_encoder
from studio.takes import Take, Takes


class Delivery:
    """Made for one take; `open` first, then iterate `body` once, and `aclose` in any case."""

    def __init__(self, source: AsyncGenerator[AudioChunk, None], take: Take, takes: Takes, started: float) -> None:
        self._source = source
        self._takes = takes
        self._started = started
        self._samples = 0
        self._first = b""
        self._encoder: Encoder | None = None
        self._take = take
        takes.put(take)

    @property
    def take(self) -> Take:
        return self._take

    async def open(self, format_name: str, source_rate: int, sample_rate: int | None) -> Encoder:
        """Wait for the first encoded bytes, so that every refusal of the engine comes before them.

        ``sample_rate=None`` is the format's own.

        Raises what Engine.speak raises at its first iteration.
        """
        try:
            while not self._first:
                chunk = await self._pull()
                if self._encoder is None:
                    known = len(chunk.pcm) if chunk and chunk.finish_reason else None
                    self._encoder = open_encoder(format_name, source_rate, sample_rate, known)
                if chunk is None:
                    break
                self._first = await _encode(self._encoder, chunk.pcm)
                self._account(chunk, source_rate)
        except BaseException:
            await self.aclose()
            raise
        assert self._encoder is not None
        self._source_rate = source_rate
        elapsed = (time.perf_counter() - self._started) * 1000
        self._record(replace(self._take, state="speaking", first_audio_ms=elapsed))
        return self._encoder

    async def body(self) -> AsyncGenerator[bytes, None]:
        """The file's bytes while they are made; leaving the iteration cancels the take."""
        encoder = self._encoder
        assert encoder is not None, "open() comes first"
        try:
            if self._first:
                yield self._first
            while (chunk := await self._pull()) is not None:
                self._account(chunk, self._source_rate)
                if piece := await _encode(encoder, chunk.pcm):
                    yield piece
            if piece := await _encode(encoder, None):
                yield piece
            self._record(replace(self._take, state="finished"))
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Free the take's row if it still has one, and settle the record. Calling it again does nothing."""
        with anyio.CancelScope(shield=True):
            await self._source.aclose()
        if self._take.state in ("waiting", "speaking"):
            self._record(replace(self._take, state="cancelled"))

    async def _pull(self) -> AudioChunk | None:
        try:
            return await anext(self._source, None)
        except EngineError as error:
            self._record(replace(self._take, state="failed", error=str(error)))
            raise

    def _account(self, chunk: AudioChunk, source_rate: int) -> None:
        self._samples += len(chunk.pcm)
        self._take = replace(
            self._take,
            queue_ms=chunk.timing.admitted * 1000,
            generation_s=chunk.timing.now - chunk.timing.admitted,
            audio_s=self._samples / source_rate,
            frames=self._take.frames + chunk.frames,
            finish_reason=chunk.finish_reason,
        )
        self._record(self._take)

    def _record(self, take: Take) -> None:
        self._take = take
        self._takes.put(take)


async def _encode(encoder: Encoder, pcm: np.ndarray | None) -> bytes:
    """Write samples, or finish the file where they are None."""
    if not encoder.costly:
        return encoder.finish() if pcm is None else encoder.write(pcm)
    if pcm is None:
        return await to_thread.run_sync(encoder.finish, limiter=_threads())
    return await to_thread.run_sync(encoder.write, pcm, limiter=_threads())


@lru_cache(maxsize=1)
def _threads() -> CapacityLimiter:
    """As many encodings at a time as there are cores; more would only take turns."""
    return CapacityLimiter(os.cpu_count() or 1)
