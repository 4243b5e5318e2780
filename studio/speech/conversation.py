"""Turns of several voices as one stream of sound: each begins when the one before ends, without a gap in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace

import numpy as np

from engine import Engine, Reference, Utterance
from studio.speech.performance import Performance, Sound, next_sound
from studio.speech.request import MAX_SEED
from studio.speech.text import Script
from studio.takes.record import TurnTime

TURN_STEP = 1009
"""Between the seeds of two turns: more than a turn has parts, each of which has a seed of its own."""
HEAD_START = 1.2
"""Seconds of sound that must be there, or foreseen, for the next turn to wait for the end of this one."""
LETTERS_A_SECOND = 15


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """One turn as the engine takes it."""

    speaker: str
    voice: str
    """What tells voices apart; turns of one voice hear each other."""
    script: Script
    utterance: Utterance
    """The text, the voice's references, and the sampling of the whole take: each turn's seed follows from it."""


class Conversation:
    """Turn after turn through the engine. Iterate `sounds` once; leaving the iteration frees the rows."""

    def __init__(
        self,
        engine: Engine,
        parts: Sequence[Part],
        gap: float,
        budget: int | None = None,
        patient: bool = False,
    ) -> None:
        """``gap``: seconds of silence between turns; ``budget``: frames of all turns together, None: no end."""
        self._engine = engine
        self._parts = parts
        self._gap = np.zeros(round(gap * engine.info.sample_rate), np.float32)
        self._budget = budget
        self._patient = patient
        self._said: dict[str, list[Reference]] = {part.voice: [] for part in parts}
        self._samples = 0
        self._waited = self._worked = 0.0
        self._before = 0.0, 0.0
        self._cut = False
        self._turns: tuple[TurnTime, ...] = ()
        self._first_sound: float | None = None

    async def sounds(self) -> AsyncGenerator[Sound, None]:
        """Piece by piece, while it is made, with the times of the turns so far; as Performance.sounds does."""
        begun: _Begun | None = None
        try:
            for number in range(len(self._parts)):
                if self._budget is not None and self._budget <= 0:
                    yield self._ending("length")
                    return
                turn, begun = begun or _Begun(self._perform(number)), None
                async with aclosing(turn):
                    async for sound in turn:
                        yield self._placed(sound, number)
                        if begun is None and self._is_due(number):
                            begun = _Begun(self._perform(number + 1))
        finally:
            if begun is not None:
                await begun.aclose()

    def _perform(self, number: int) -> AsyncGenerator[Sound, None]:
        part = self._parts[number]
        sampling = part.utterance.sampling
        seed = (sampling.seed + number * TURN_STEP) % (MAX_SEED + 1)
        utterance = replace(part.utterance, sampling=replace(sampling, seed=seed))
        return Performance(
            self._engine,
            part.script,
            utterance,
            self._budget,
            self._said[part.voice],
            self._patient or number > 0,  # what was begun is not broken off because the line is full
        ).sounds()

    def _placed(self, sound: Sound, number: int) -> Sound:
        """A turn's sound at its place in the whole."""
        pcm = sound.pcm
        if len(self._turns) == number:
            self._before = self._waited, self._worked
            pcm = np.concatenate([self._gap, pcm]) if number else pcm
            self._begin_turn(number, self._samples + len(pcm) - len(sound.pcm))
        if self._first_sound is None:
            self._first_sound = time.perf_counter()
        self._samples += len(pcm)
        rate = self._engine.info.sample_rate
        self._turns = (*self._turns[:-1], replace(self._turns[-1], end_s=self._samples / rate))
        self._waited = self._before[0] + sound.waited
        self._worked = self._before[1] + sound.worked
        if self._budget is not None:
            self._budget -= sound.frames
        self._cut |= sound.finish_reason == "length"
        ends = sound.finish_reason is not None and number == len(self._parts) - 1
        reason = ("length" if self._cut else "stop") if ends else None
        return Sound(pcm, sound.frames, self._waited, self._worked, reason, self._turns)

    def _begin_turn(self, number: int, at: int) -> None:
        part, start = self._parts[number], at / self._engine.info.sample_rate
        seed = (part.utterance.sampling.seed + number * TURN_STEP) % (MAX_SEED + 1)
        self._turns = (*self._turns, TurnTime(part.speaker, part.voice, seed, start, start))

    def _ending(self, reason: str) -> Sound:
        return Sound(np.zeros(0, np.float32), 0, self._waited, self._worked, reason, self._turns)

    def _is_due(self, number: int) -> bool:
        """Whether the next turn must begin beside this one, because what is there and to come will not last.

        A turn that a limit may cut, or that hears this one, begins after it: its seed then gives it again.
        """
        if number + 1 == len(self._parts) or self._budget is not None or self._first_sound is None:
            return False
        this, following = self._parts[number], self._parts[number + 1]
        if this.voice == following.voice:
            return False
        made = self._samples / self._engine.info.sample_rate
        lead = made - (time.perf_counter() - self._first_sound)
        to_come = len(this.utterance.text) / LETTERS_A_SECOND - (made - self._turns[-1].start_s)
        return lead + max(to_come, 0.0) + len(self._gap) / self._engine.info.sample_rate < HEAD_START


class _Begun:
    """Sounds whose first one is already on its way, whether somebody waits for it or not."""

    def __init__(self, sounds: AsyncGenerator[Sound, None]) -> None:
        self._sounds = sounds
        self._first: asyncio.Task[Sound | None] | None = asyncio.ensure_future(next_sound(sounds))

    def __aiter__(self) -> _Begun:
        return self

    async def __anext__(self) -> Sound:
        task, self._first = self._first, None
        try:
            sound = await (task or next_sound(self._sounds))
        except asyncio.CancelledError:
            self._first = task
            raise
        if sound is None:
            raise StopAsyncIteration
        return sound

    async def aclose(self) -> None:
        if self._first is not None:
            self._first.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(self._first, return_exceptions=True)
        await self._sounds.aclose()
