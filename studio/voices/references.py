"""Encodes clips, so that many callers share one encoding; clips of requests are downloaded first, and cached."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from audio import InvalidClip
from audio.measure import levelled
from audio.read import Clip, read_clip
from engine import InvalidReference, Reference, SpeechEngine
from studio.voices.clip_fetcher import ClipFetcher, is_inline
from studio.work import ThreadTurn, WorkQueue

PARAM = "ref_audio"


@dataclass(eq=False, slots=True)
class _Encoding:
    task: asyncio.Task[Reference]
    waiters: int = 0


class Encodings:
    """The clips that are being encoded, each once for all who wait for it. Used from one event loop.

    An encoding continues if one of its callers leaves. If the last one leaves, it is cancelled, and the engine drops a
    clip that it has not started.
    """

    def __init__(self, outlive_callers: bool = False) -> None:
        """``outlive_callers``: continue also without a caller, because the result is stored."""
        self._outlive_callers = outlive_callers
        self._running: dict[Hashable, _Encoding] = {}

    async def share(self, key: Hashable, encode: Callable[[], Coroutine[Any, Any, Reference]]) -> Reference:
        """Return the result of ``encode``, or of the call for the same ``key`` that is running."""
        encoding = self._running.get(key)
        if encoding is None:
            encoding = self._running[key] = _Encoding(asyncio.create_task(encode()))
            encoding.task.add_done_callback(lambda task: self._forget(key, task))
        encoding.waiters += 1
        try:
            return await asyncio.shield(encoding.task)
        finally:
            encoding.waiters -= 1
            if not encoding.waiters and not self._outlive_callers:
                encoding.task.cancel()
                self._forget(key, encoding.task)

    def _forget(self, key: Hashable, task: asyncio.Task[Reference]) -> None:
        if (encoding := self._running.get(key)) and encoding.task is task:
            del self._running[key]
        if task.done() and not task.cancelled():
            task.exception()  # retrieved here, since all callers may have left


async def encoded(turn: ThreadTurn, engine: SpeechEngine, read: Callable[[], Clip], text: str, param: str) -> Reference:
    """Read a clip in a turn of a queue, and encode it. Raises the errors of ``read``, InvalidClip, EngineStopped."""
    clip = await turn.run(lambda: levelled(read()))
    try:
        return await engine.encode_reference(clip.pcm, clip.sample_rate, text)
    except InvalidReference as error:
        raise InvalidClip(str(error), param) from error


class References:
    """A bounded cache from clip bytes and words to codes. Used from one event loop."""

    def __init__(self, downloads: WorkQueue, queue: WorkQueue, fetcher: ClipFetcher, limit: int = 256) -> None:
        """``downloads``: the queue for downloading clips; ``queue``: for decoding and encoding them."""
        self._downloads = downloads
        self._queue = queue
        self._fetcher = fetcher
        self._limit = limit
        self._cache: OrderedDict[str, Reference] = OrderedDict()
        self._encodings = Encodings()

    async def encode(
        self, engine: SpeechEngine, clip: bytes | str, text: str, caller: str, patient: bool = False
    ) -> Reference:
        """The reference of a clip (any readable container, 1 to 30 s) or of a clip's address, and its transcript.

        ``patient`` waits regardless of the queue's length: for work with another limit.
        Raises InvalidClip, QueueFull, TooManyRequests, TooCostly, EngineStopped.
        """
        codec = engine.info.codec_fingerprint
        if isinstance(clip, str) and is_inline(clip):
            clip = await self._fetcher.fetch(clip)  # the request contains it, so this is quick
        elif isinstance(clip, str):  # in a separate queue: a slow server delays no other clip
            async with self._downloads.turn(caller, patient):
                clip = await self._fetcher.fetch(clip)
        key = await to_thread.run_sync(_key, clip, text, codec)
        if cached := self._lookup(key):
            return cached
        async with self._queue.turn(caller, patient) as turn:
            return self._lookup(key) or await self._encodings.share(
                key, lambda: self._encode(key, engine, clip, text, turn)
            )

    def _lookup(self, key: str) -> Reference | None:
        if key in self._cache:
            self._cache.move_to_end(key)
        return self._cache.get(key)

    async def _encode(self, key: str, engine: SpeechEngine, clip: bytes, text: str, turn: ThreadTurn) -> Reference:
        reference = await encoded(turn, engine, lambda: read_clip(clip, PARAM), text, PARAM)
        self._cache[key] = reference
        while len(self._cache) > self._limit:
            self._cache.popitem(last=False)
        return reference


def _key(clip: bytes, text: str, fingerprint: str) -> str:
    """The cache key. Blocking for a large clip."""
    digest = hashlib.sha256()
    for part in (fingerprint.encode(), text.encode(), clip):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
