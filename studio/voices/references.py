"""Encoded reference clips, kept by their content: a clip is encoded once, however many ask."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict

from anyio import to_thread

from engine import InvalidReference, Reference, SpeechEngine
from studio.audio.read import read_clip
from studio.errors import InvalidClip
from studio.voices.levelling import levelled


class References:
    """A bounded cache from clip bytes and words to codes. Used from one event loop.

    Callers that ask for a clip being encoded wait for that one encoding; it goes on when one of them leaves.
    """

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._tasks: OrderedDict[str, asyncio.Task[Reference]] = OrderedDict()

    async def encode(self, engine: SpeechEngine, clip: bytes, text: str, param: str | None = None) -> Reference:
        """The reference of a clip (any readable container, 1 to 30 s) and the words in it.

        Raises InvalidClip, EngineStopped.
        """
        key = _key(clip, text, engine.info.codec_fingerprint)
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.create_task(_encode(engine, clip, text, param))
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._settle(key, done))
        self._tasks.move_to_end(key)
        return await asyncio.shield(task)

    def _settle(self, key: str, task: asyncio.Task[Reference]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._tasks.pop(key, None)
        while len(self._tasks) > self._limit:
            self._tasks.popitem(last=False)


async def _encode(engine: SpeechEngine, clip: bytes, text: str, param: str | None) -> Reference:
    sound = await to_thread.run_sync(lambda: levelled(read_clip(clip, param)))
    try:
        return await engine.encode_reference(sound.pcm, sound.sample_rate, text)
    except InvalidReference as error:
        raise InvalidClip(str(error), param) from error


def _key(clip: bytes, text: str, fingerprint: str) -> str:
    digest = hashlib.sha256()
    for part in (fingerprint.encode(), text.encode(), clip):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
