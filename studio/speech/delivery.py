"""One take on its way to a listener: pulls sounds, encodes them, keeps its record; closing it cancels."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Protocol, TypeVar

import anyio
import numpy as np
from anyio import CapacityLimiter

from engine import EngineError
from studio.audio.encode import Encoder
from studio.audio.formats import open_encoder
from studio.audio.limiter import Limiter
from studio.audio.tempo import Tempo
from studio.errors import Cancelled, StudioError
from studio.library.takes.take import SpokenPart, Take, TurnTime
from studio.speech.cancellation import CancelToken
from studio.speech.script_stream import Sound, next_sound
from studio.takes.recorder import Recording
from studio.threads import run_uninterrupted

Result = TypeVar("Result")

CANCELLED = "the request was cancelled while it was under way"
CEILING = -1.0
"""dBTP that a louder volume stays below."""
SILENCE_SECONDS = 0.1
"""What is heard of a text that the model has no sound for, such as a full stop alone: players, and programs that
expect a file, cannot do anything with an empty one."""


@dataclass(frozen=True, slots=True)
class DeliveredAs:
    """The file that is asked for. ``sample_rate=None`` and ``bit_rate=None`` are the format's own; ``speed`` keeps the
    pitch; ``volume`` is in decibels."""

    format: str
    sample_rate: int | None
    speed: float
    bit_rate: int | None = None
    volume: float = 0.0


class TakeRecords(Protocol):
    """Where the records of takes are kept."""

    def put(self, take: Take) -> None: ...


class Delivery:
    """Made for one take; `open` first, then iterate `body` once, and `aclose` in any case."""

    def __init__(
        self, take: Take, takes: TakeRecords, on_end: Callable[[Take], None], recording: Recording | None = None
    ) -> None:
        """``on_end`` is called once, with the take as it ended.

        ``recording`` gets the take's sound, and is closed then.
        """
        self._started = time.perf_counter()
        self._takes = takes
        self._on_end = on_end
        self._source: AsyncGenerator[Sound, None] | None = None
        self._source_rate = 1
        self._samples = 0
        self.parts: list[SpokenPart] = []
        """Those that have been spoken to their end."""
        self._first = b""
        self._encoder: Encoder | None = None
        self._tempo: Tempo | None = None
        self._limiter: Limiter | None = None
        self._speed = 1.0
        self._cancellation = CancelToken(partial(Cancelled, CANCELLED))
        self._closed = False
        self._take = take
        self._recording = recording
        takes.put(take)

    @property
    def take(self) -> Take:
        return self._take

    def cancel(self) -> None:
        """End the take from outside: whoever waits for it gets Cancelled."""
        self._cancellation.set()

    def forget(self) -> None:
        """Keep nothing of this take in the library."""
        if self._recording is not None:
            self._recording.drop()
        self._recording = None

    async def unless_cancelled(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of ``work``; raises Cancelled, the work ended, when `cancel` comes first."""
        return await self._cancellation.unless(work)

    async def open(self, source: AsyncGenerator[Sound, None], source_rate: int, delivered: DeliveredAs) -> Encoder:
        """Wait for the first encoded bytes, so that every refusal of the engine comes before them.

        Raises Cancelled, and what the source raises.
        """
        self._source, self._source_rate, self._speed = source, source_rate, delivered.speed
        while not self._first:
            sound = await self._pull()
            if self._encoder is None:
                known = len(sound.pcm) if sound and sound.finish_reason and delivered.speed == 1 else None
                self._encoder = open_encoder(
                    delivered.format, source_rate, delivered.sample_rate, known, bit_rate=delivered.bit_rate
                )
                if delivered.volume:
                    self._limiter = Limiter(source_rate, delivered.volume, CEILING)
                self._tempo = None if delivered.speed == 1 else Tempo(delivered.speed, source_rate)
            if sound is None:
                break
            self._first = await self._encode(sound.pcm)
            self._account(sound)
        assert self._encoder is not None
        elapsed = (time.perf_counter() - self._started) * 1000
        self._record(replace(self._take, state="speaking", first_audio_ms=elapsed))
        return self._encoder

    async def body(self) -> AsyncGenerator[bytes, None]:
        """The file's bytes while they are made; leaving the iteration cancels the take."""
        try:
            if self._first:
                yield self._first
            while (sound := await self._pull()) is not None:
                self._account(sound)
                if piece := await self._encode(sound.pcm):
                    yield piece
            if piece := await self._encode(None):
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
        try:
            if self._source is not None:
                with anyio.CancelScope(shield=True):
                    await self._source.aclose()
        finally:
            self._settle(error)

    def _settle(self, error: BaseException | None) -> None:
        if isinstance(error, (EngineError, StudioError)) and not isinstance(error, Cancelled):
            self._record(replace(self._take, state="failed", error=str(error)))
        elif not self._take.ended:
            self._record(replace(self._take, state="cancelled"))
        self._on_end(self._take)
        if self._recording is not None:
            self._recording.close(self._take, self._source_rate)

    async def _pull(self) -> Sound | None:
        assert self._source is not None
        sound = await self.unless_cancelled(next_sound(self._source))
        if sound is not None and sound.finish_reason and not self._samples + len(sound.pcm):
            silence = np.zeros(round(SILENCE_SECONDS * self._speed * self._source_rate), np.float32)
            return replace(sound, pcm=silence)
        return sound

    async def _encode(self, pcm: np.ndarray | None) -> bytes:
        """Write samples, or finish the file where they are None."""
        if self._encoder is None or not self._encoder.costly:
            return self._convert(pcm)
        return await run_uninterrupted(self._convert, pcm, limiter=_threads())

    def _convert(self, pcm: np.ndarray | None) -> bytes:
        encoder, tempo = self._encoder, self._tempo
        assert encoder is not None, "open() comes first"
        if pcm is not None:
            return encoder.write(self._amplified(self._record_sound(tempo.write(pcm) if tempo else pcm)))
        last = encoder.write(self._amplified(self._record_sound(tempo.finish()))) if tempo else b""
        return last + (encoder.write(self._limiter.finish()) if self._limiter else b"") + encoder.finish()

    def _amplified(self, pcm: np.ndarray) -> np.ndarray:
        """The kept take stays as it was spoken."""
        return self._limiter.write(pcm) if self._limiter else pcm

    def _record_sound(self, pcm: np.ndarray) -> np.ndarray:
        if self._recording is not None:
            self._recording.write(pcm)
        return pcm

    def _account(self, sound: Sound) -> None:
        self._samples += len(sound.pcm)
        heard = self._samples / self._source_rate
        self._record(
            replace(
                self._take,
                queue_ms=sound.waited * 1000,
                generation_s=sound.worked,
                audio_s=heard,
                seconds=heard,
                frames=self._take.frames + sound.frames,
                finish_reason=sound.finish_reason,
                turns=tuple(self._as_heard(turn) for turn in sound.turns),
                resumed_at=sound.resumed_at if self._take.resumed_at is None else self._take.resumed_at,
                continues=self._take.continues or sound.continues,
            )
        )
        ends = heard / self._speed
        parts = [part if part.end is not None else replace(part, end=ends) for part in sound.parts]
        self.parts += parts
        if self._recording is not None:
            self._recording.keep(parts, sound.is_unfinished)

    def _as_heard(self, turn: TurnTime) -> TurnTime:
        return replace(turn, start_s=turn.start_s / self._speed, end_s=turn.end_s / self._speed)

    def _record(self, take: Take) -> None:
        self._take = take
        self._takes.put(take)


@lru_cache(maxsize=1)
def _threads() -> CapacityLimiter:
    """As many encodings at a time as there are cores; more would only take turns."""
    return CapacityLimiter(os.cpu_count() or 1)
