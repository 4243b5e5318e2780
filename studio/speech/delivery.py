"""Delivers a take: pulls and encodes its audio piece by piece; closing it frees the engine's row."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

import anyio
import numpy as np

from studio.speech.encoding import Encoding, OutputFile
from studio.speech.live_take import LiveTake
from studio.speech.script_stream import Sound, next_sound

SILENCE_SECONDS = 0.1
"""The audio for a text without any sound, such as a single full stop: players, and programs that expect a file, cannot
handle an empty one."""


class Delivery:
    """Created by `open`; iterate ``body`` once, and call `aclose` in any case."""

    def __init__(self, live: LiveTake, sounds: AsyncGenerator[Sound, None], encoding: Encoding, first: bytes) -> None:
        self.live = live
        self.encoding = encoding
        self.body = self._body(first)
        """The file's bytes as they are generated; leaving the iteration cancels the take."""
        self._sounds = sounds
        self._is_closed = False

    @classmethod
    async def open(cls, live: LiveTake, sounds: AsyncGenerator[Sound, None], file: OutputFile) -> Delivery:
        """Wait for the first encoded bytes, so that every refusal of the engine comes before them.

        Raises Cancelled and the errors of ``sounds``, which it then closes; the caller must end the take.
        """
        try:
            first, sound = b"", await _next(live, sounds)
            samples = len(sound.pcm) if sound and sound.finish_reason else None
            encoding = Encoding(file, live.sample_rate, samples, live.record)
            while sound is not None and not (first := await encoding.write(sound.pcm)):
                sound = await _next(live, sounds)
        except BaseException:
            await _close(sounds)
            raise
        live.begin()
        return cls(live, sounds, encoding, first)

    async def aclose(self, error: BaseException | None = None) -> None:
        """Free the take's row if it still has one, and settle its record. Calling it again does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await _close(self._sounds)
        finally:
            self.live.end(error)

    async def _body(self, first: bytes) -> AsyncGenerator[bytes, None]:
        try:
            if first:
                yield first
            while (sound := await _next(self.live, self._sounds)) is not None:
                if piece := await self.encoding.write(sound.pcm):
                    yield piece
            if piece := await self.encoding.finish():
                yield piece
            self.live.finish()
        except BaseException as error:
            await self.aclose(error)
            raise
        await self.aclose()


async def _next(live: LiveTake, sounds: AsyncGenerator[Sound, None]) -> Sound | None:
    """Return the next piece and count it; None at the end."""
    sound = await live.run(next_sound(sounds))
    if sound is None:
        return None
    if sound.finish_reason and not live.samples + len(sound.pcm):
        silence = np.zeros(round(SILENCE_SECONDS * live.speed * live.sample_rate), np.float32)
        sound = replace(sound, pcm=silence)
    live.add(sound)
    return sound


async def _close(sounds: AsyncGenerator[Sound, None]) -> None:
    with anyio.CancelScope(shield=True):
        await sounds.aclose()
