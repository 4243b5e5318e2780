"""An active take: its record from the first state to the last, and its cancellation from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from engine import EngineError
from studio.errors import Cancelled, StudioError
from studio.library.takes.take import SpokenPart, Take, TurnTime
from studio.speech.cancellation import CancelToken
from studio.speech.script_stream import Sound
from studio.takes.recorder import Recording

Result = TypeVar("Result")

CANCELLED = "the request was cancelled"


class TakeRecords(Protocol):
    """The store of takes' records."""

    def put(self, take: Take) -> None: ...


class LiveTake:
    """One take: `begin` it with its first bytes, `add` its audio, `finish` it when complete, `end` it in any case."""

    def __init__(
        self,
        take: Take,
        takes: TakeRecords,
        on_end: Callable[[Take], None],
        sample_rate: int,
        speed: float = 1.0,
        recording: Recording | None = None,
    ) -> None:
        """``on_end`` is called once, with the ended take. ``sample_rate``: of its audio in Hz, which is delivered at
        ``speed``. ``recording`` receives the audio for the library, and is closed at the end."""
        self._start_time = time.perf_counter()
        self._takes = takes
        self._on_end = on_end
        self.sample_rate = sample_rate
        self.speed = speed
        self._recording = recording
        self._cancellation = CancelToken(partial(Cancelled, CANCELLED))
        self.samples = 0
        self.parts: list[SpokenPart] = []
        """The parts that are complete."""
        self._put(take)

    def cancel(self) -> None:
        """Cancel the take from outside: its listener gets Cancelled."""
        self._cancellation.cancel()

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of ``work``; if `cancel` is called first, the work is cancelled and Cancelled raised."""
        return await self._cancellation.run(work)

    def forget(self) -> None:
        """Store nothing of this take in the library."""
        if self._recording is not None:
            self._recording.drop()
        self._recording = None

    def record(self, pcm: np.ndarray) -> None:
        """Add samples, float32, to the library's recording. Any thread may call it."""
        if self._recording is not None:
            self._recording.write(pcm)

    def begin(self) -> None:
        """Mark the first bytes as ready."""
        self._change(state="speaking", first_audio_ms=(time.perf_counter() - self._start_time) * 1000)

    def add(self, sound: Sound) -> None:
        """Count a piece of its audio."""
        self.samples += len(sound.pcm)
        seconds = self.samples / self.sample_rate
        self._change(
            queue_ms=sound.waited * 1000,
            generation_s=sound.worked,
            audio_s=seconds,
            seconds=seconds,
            frames=self.take.frames + sound.frames,
            finish_reason=sound.finish_reason,
            turns=tuple(self._at_speed(turn) for turn in sound.turns),
            resumed_at=sound.resumed_at if self.take.resumed_at is None else self.take.resumed_at,
            continues=self.take.continues or sound.continues,
        )
        parts = [part if part.end is not None else replace(part, end=seconds / self.speed) for part in sound.parts]
        self.parts += parts
        if self._recording is not None:
            self._recording.keep(parts, sound.is_unfinished)

    def finish(self) -> None:
        """Mark the take as completely generated and encoded."""
        self._change(state="finished")

    def end(self, error: BaseException | None = None) -> None:
        """Complete the record, with ``error`` if that ended the take."""
        if isinstance(error, (EngineError, StudioError)) and not isinstance(error, Cancelled):
            self._change(state="failed", error=str(error))
        elif not self.take.ended:
            self._change(state="cancelled")
        self._on_end(self.take)
        if self._recording is not None:
            self._recording.close(self.take, self.sample_rate)

    def _at_speed(self, turn: TurnTime) -> TurnTime:
        return replace(turn, start_s=turn.start_s / self.speed, end_s=turn.end_s / self.speed)

    def _change(self, **figures: Any) -> None:
        self._put(replace(self.take, **figures))

    def _put(self, take: Take) -> None:
        self.take = take
        self._takes.put(take)
