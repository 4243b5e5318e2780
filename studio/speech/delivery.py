"""Delivers a take: pulls and encodes its audio piece by piece (tempo, volume, format); closing it frees its row."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import anyio
import numpy as np
from anyio import CapacityLimiter

from audio.formats import open_encoder
from audio.limiter import Limiter
from audio.tempo import Tempo
from engine import SpeechEngine, available_cores
from speechtext.word_times import Timed
from studio.library.take import Take, TakeCodes
from studio.speech.active_take import ActiveTake
from studio.speech.request import SpeechRequest
from studio.speech.script_stream import Sound
from studio.speech.word_times import Spoken, Unit, WordTimes, in_units, word_times
from studio.work import read, run_uninterrupted

CEILING = -1.0
"""Maximum true peak of a louder volume in dBTP."""
TOO_SLOW = "the audio was received far more slowly than it plays"
BEHIND_SECONDS = 60.0
"""How far a listener may fall behind the playback of the audio in total, as by pausing it. One that reads more slowly
would hold a row for as long as it likes. A judgement: as long as a listener who receives nothing is waited for."""
_CORES = available_cores()
"""Looked up once and here, because that reads a file and speech is opened on the event loop."""


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
        """``samples``: total number if known. ``on_sound`` gets the audio in the file's
        tempo, at the original volume; it may be called in a thread."""
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


class Speech:
    """A take being generated, with its first bytes ready: created by `open`. Iterate ``body`` once; always `aclose`."""

    def __init__(
        self,
        active: ActiveTake,
        sounds: AsyncGenerator[Sound, None],
        encoding: Encoding,
        first: bytes,
        request: SpeechRequest,
        engine: SpeechEngine,
    ) -> None:
        self._active = active
        self._sounds = sounds
        self._encoding = encoding
        self._engine = engine
        self._is_closed = False
        self.request = request
        self.request_id, self.seed, self.voice = active.take.id, active.take.seed, active.take.label
        self.revision = active.record.revision
        """The voice's revision; None for an uploaded clip, for the random voice and for a dialogue."""
        self.media_type = encoding.media_type
        self.sample_rate = encoding.sample_rate
        """Sample rate of the file in Hz."""
        self.body = self._body(first)
        """The file's bytes as they are generated; leaving the iteration cancels the take."""
        self._times = WordTimes(engine, request.text, request.cast is not None, request.speed)
        self._is_with_listener = True
        self._listened = 0.0
        """Seconds for which the listener has held the pieces."""
        self._closing: asyncio.Future[None] | None = None
        active.on_cancel = self._cancel

    @classmethod
    async def open(
        cls, active: ActiveTake, sounds: AsyncGenerator[Sound, None], request: SpeechRequest, engine: SpeechEngine
    ) -> Speech:
        """Wait for the first encoded bytes, so that every refusal of the engine comes before them.

        Raises Cancelled and the errors of ``sounds``, which it then closes; the caller must end the take.
        """
        try:
            first, sound = b"", await active.next(sounds)
            samples = len(sound.pcm) if sound and sound.finish_reason else None
            file = OutputFile(request.format, request.sample_rate, request.speed, request.bit_rate, request.volume)
            encoding = Encoding(file, engine.info.sample_rate, samples, active.write)
            while sound is not None and not (first := await encoding.write(sound.pcm)):
                sound = await active.next(sounds)
        except BaseException:
            await _close(sounds)
            raise
        active.begin()
        return cls(active, sounds, encoding, first, request, engine)

    @property
    def take(self) -> Take:
        """The take so far; complete once the body has ended."""
        return self._active.take

    @property
    def record(self) -> Take:
        """The take with its text, as stored in a library; complete once the body has ended."""
        return self._active.record

    @property
    def codes(self) -> TakeCodes:
        """The codes of the generated parts; complete once the body has ended."""
        return self._active.codes

    async def timestamps(self, unit: Unit) -> list[Timed]:
        """The times of words or sentences in the file; complete once the body has ended.

        Raises CannotAlign, EngineStopped.
        """
        text, is_dialogue = self.request.text, self.request.cast is not None
        words = await word_times(self._engine, text, is_dialogue, self.codes.parts, self.request.speed)
        return await read(in_units, unit, text, is_dialogue, words, patient=True)

    async def spoken(self) -> Spoken | None:
        """What was spoken since the last call, while the body is iterated; None if no part was completed.

        Raises CannotAlign, EngineStopped.
        """
        return await self._times.after(self.codes.parts)

    async def aclose(self) -> None:
        """Cancel the take and free its row, unless it has ended. Calling it again does nothing."""
        await self.body.aclose()
        await self._end()

    async def _end(self, error: BaseException | None = None) -> None:
        """Free the take's row if it still has one, and settle its record. Calling it again does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await _close(self._sounds)
        finally:
            self._active.end(error)

    async def _body(self, first: bytes) -> AsyncGenerator[bytes, None]:
        try:
            if first:
                with self._with_listener():
                    yield first
            while (sound := await self._active.next(self._sounds)) is not None:
                piece = await self._encoding.write(sound.pcm)
                await self._active.spill()
                if piece:
                    with self._with_listener():
                        yield piece
            if piece := await self._encoding.finish():
                with self._with_listener():
                    yield piece
            self._active.finish()
        except BaseException as error:
            await self._end(error)
            raise
        await self._end()

    @contextmanager
    def _with_listener(self) -> Iterator[None]:
        """While the listener has a piece, the take is not awaited anywhere; raises Cancelled if it was cancelled."""
        loop, active = asyncio.get_running_loop(), self._active
        began = loop.time()
        patience = max(0.0, BEHIND_SECONDS + active.seconds_of_file - self._listened)
        timer = loop.call_later(patience, active.cancel, TOO_SLOW)
        self._is_with_listener = True
        try:
            yield
        finally:
            timer.cancel()
            self._is_with_listener = False
            self._listened += loop.time() - began
        active.check()

    def _cancel(self) -> None:
        """Free the row at once, even if the listener never takes the next piece."""
        if self._is_with_listener and self._closing is None:
            self._closing = asyncio.ensure_future(self._end())


async def _close(sounds: AsyncGenerator[Sound, None]) -> None:
    with anyio.CancelScope(shield=True):
        await sounds.aclose()


@lru_cache(maxsize=1)
def _threads() -> CapacityLimiter:
    """Threads for encoding, one per core of this process; more would only take turns."""
    return CapacityLimiter(_CORES)
