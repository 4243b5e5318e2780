"""Downloads and encodes clips of requests, cached by content, so that many callers share one encoding."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from anyio import to_thread

from engine import InvalidReference, Reference, SpeechEngine
from studio.audio.read import read_clip
from studio.errors import InvalidClip
from studio.voices.clip_fetcher import ClipFetcher, is_inline
from studio.voices.levelling import levelled
from studio.work.work_queue import ThreadTurn, WorkQueue

PARAM = "ref_audio"


@dataclass(eq=False, slots=True)
class _Encoding:
    task: asyncio.Task[Reference]
    waiters: int = 0


class References:
    """A bounded cache from clip bytes and words to codes. Used from one event loop.

    Requests for a clip that is being encoded wait for that encoding. It continues if one of them leaves; if the last
    leaves, it is cancelled, and the engine drops a clip that it has not started.
    """

    def __init__(self, downloads: WorkQueue, queue: WorkQueue, fetcher: ClipFetcher, limit: int = 256) -> None:
        """``downloads``: the queue for downloading clips; ``queue``: for decoding and encoding them."""
        self._downloads = downloads
        self._queue = queue
        self._fetcher = fetcher
        self._limit = limit
        self._cache: OrderedDict[str, Reference] = OrderedDict()
        self._encodings: dict[str, _Encoding] = {}

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
            return self._lookup(key) or await self._encoded(key, engine, clip, text, turn)

    def _lookup(self, key: str) -> Reference | None:
        if key in self._cache:
            self._cache.move_to_end(key)
        return self._cache.get(key)

    async def _encoded(self, key: str, engine: SpeechEngine, clip: bytes, text: str, turn: ThreadTurn) -> Reference:
        encoding = self._encodings.get(key)
        if encoding is None:
            encoding = _Encoding(asyncio.create_task(self._encode(key, engine, clip, text, turn)))
            self._encodings[key] = encoding
        encoding.waiters += 1
        try:
            return await asyncio.shield(encoding.task)
        finally:
            encoding.waiters -= 1
            if not encoding.waiters:
                encoding.task.cancel()
                if self._encodings.get(key) is encoding:
                    del self._encodings[key]

    async def _encode(self, key: str, engine: SpeechEngine, clip: bytes, text: str, turn: ThreadTurn) -> Reference:
        sound = await turn.run(lambda: levelled(read_clip(clip, PARAM)))
        try:
            reference = await engine.encode_reference(sound.pcm, sound.sample_rate, text)
        except InvalidReference as error:
            raise InvalidClip(str(error), PARAM) from error
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
