"""One take on its way to a listener: pulls chunks, encodes them, keeps its record; closing it cancels."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import anyio
import numpy as np
from anyio import CapacityLimiter, to_thread

from engine import AudioChunk, EngineError
from studio.audio.encode import Encoder
from studio.audio.formats import open_encoder
from studio.errors import Cancelled, StudioError
from studio.takes import Take, Takes

Result = TypeVar("Result")
Keep = Callable[[Take, bytes], None]


class Delivery:
    """Made for one take; `open` first, then iterate `body` once, and `aclose` in any case."""

    def __init__(self, take: Take, takes: Takes, on_end: Callable[[Take], None], keep: Keep | None = None) -> None:
        """Must be made in the event loop; ``on_end`` is called once, with the take as it ended.

        ``keep`` then gets the take and its file, if any of it was heard; it may block.
        """
        self._started = time.perf_counter()
        self._takes = takes
        self._on_end = on_end
        self._source: AsyncGenerator[AudioChunk, None] | None = None
        self._source_rate = 1
        self._samples = 0
        self._first = b""
        self._encoder: Encoder | None = None
        self._cancelled = asyncio.get_running_loop().create_future()
        self._closed = False
        self._take = take
        self._keep = keep
        self._heard: list[bytes] = []
        takes.put(take)

    @property
    def take(self) -> Take:
        return self._take

    def cancel(self) -> None:
        """End the take from outside: whoever waits for it gets Cancelled."""
        if not self._cancelled.done():
            self._cancelled.set_result(None)

    async def unless_cancelled(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of ``work``; raises Cancelled, the work ended, when `cancel` comes first."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self._cancelled}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Cancelled("the request was cancelled while it was under way")
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.gather(task, return_exceptions=True)

    async def open(
        self, source: AsyncGenerator[AudioChunk, None], format_name: str, source_rate: int, sample_rate: int | None
    ) -> Encoder:
        """Wait for the first encoded bytes, so that every refusal of the engine comes before them.

        ``sample_rate=None`` is the format's own. Raises Cancelled, and what Engine.speak raises.
        """
        self._source, self._source_rate = source, source_rate
        while not self._first:
            chunk = await self._pull()
            if self._encoder is None:
                known = len(chunk.pcm) if chunk and chunk.finish_reason else None
                self._encoder = open_encoder(format_name, source_rate, sample_rate, known)
            if chunk is None:
                break
            self._first = await _encode(self._encoder, chunk.pcm)
            self._account(chunk)
        assert self._encoder is not None
        elapsed = (time.perf_counter() - self._started) * 1000
        self._record(replace(self._take, state="speaking", first_audio_ms=elapsed))
        return self._encoder

    async def body(self) -> AsyncGenerator[bytes, None]:
        """The file's bytes while they are made; leaving the iteration cancels the take."""
        encoder = self._encoder
        assert encoder is not None, "open() comes first"
        try:
            if self._first:
                self._hear(self._first)
                yield self._first
            while (chunk := await self._pull()) is not None:
                self._account(chunk)
                if piece := await _encode(encoder, chunk.pcm):
                    self._hear(piece)
                    yield piece
            if piece := await _encode(encoder, None):
                self._hear(piece)
                yield piece
            self._record(replace(self._take, state="finished"))
        except BaseException as error:
            await self.aclose(error)
            raise
        await self.aclose()

    async def aclose(self, error: BaseException | None = None) -> None:
        """Free the take's row if it still has one, and settle the record. Calling it again does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._source is not None:
            with anyio.CancelScope(shield=True):
                await self._source.aclose()
        if isinstance(error, (EngineError, StudioError)) and not isinstance(error, Cancelled):
            self._record(replace(self._take, state="failed", error=str(error)))
        elif not self._take.ended:
            self._record(replace(self._take, state="cancelled"))
        self._on_end(self._take)
        if self._keep is not None and self._heard:
            keep, file, self._heard = self._keep, b"".join(self._heard), []
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(keep, self._take, file)

    def _hear(self, piece: bytes) -> None:
        if self._keep is not None:
            self._heard.append(piece)

    async def _pull(self) -> AudioChunk | None:
        assert self._source is not None
        return await self.unless_cancelled(_next(self._source))

    def _account(self, chunk: AudioChunk) -> None:
        self._samples += len(chunk.pcm)
        self._record(
            replace(
                self._take,
                queue_ms=chunk.timing.admitted * 1000,
                generation_s=chunk.timing.now - chunk.timing.admitted,
                audio_s=self._samples / self._source_rate,
                frames=self._take.frames + chunk.frames,
                finish_reason=chunk.finish_reason,
            )
        )

    def _record(self, take: Take) -> None:
        self._take = take
        self._takes.put(take)


async def _next(source: AsyncGenerator[AudioChunk, None]) -> AudioChunk | None:
    return await anext(source, None)


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
