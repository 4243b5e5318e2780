"""Turns of several voices as one audio stream: each begins when the previous one ends, without a gap."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

import numpy as np

from engine import MAX_SEED, Reference, SpeechEngine, Utterance
from studio.library.take import SpokenPart, TurnTime
from studio.speech.plan import Plan
from studio.speech.request import Origin
from studio.speech.script_stream import ScriptStream, Sound, next_sound

TURN_STEP = 1009
"""Difference between the seeds of two turns: more than a turn has parts, each of which has its own seed."""
HEAD_START = 1.2
"""Seconds of audio that must exist, or be predicted, for the next turn to wait for the end of this one."""
LETTERS_A_SECOND = 15  # of usual speech, to predict how long the rest of a turn takes


class ConversationHistory:
    """The previous turns of a conversation, forgotten when a model with another codec is loaded: their codes would mean
    other sounds."""

    def __init__(self) -> None:
        self._codec, self._turns = "", list[Reference]()

    def for_codec(self, codec: str) -> list[Reference]:
        """The turns, to which new ones are added."""
        if codec != self._codec:
            self._codec, self._turns = codec, []
        return self._turns


class Conversation:
    """Sends the parts of a plan through the engine. Iterate `sounds` once; leaving the iteration frees the rows."""

    def __init__(
        self,
        engine: SpeechEngine,
        plan: Plan,
        references: Mapping[str, tuple[Reference, ...]],
        origin: Origin,
        history: list[Reference] | None = None,
        delivered: Sequence[SpokenPart] = (),
    ) -> None:
        """``references`` of each voice, by `PlannedPart.voice_key`.

        ``history`` has the previous turns of the first part's voice; its new turns are added. ``delivered``, for a
        single voice: see ScriptStream.
        """
        self._engine = engine
        self._parts, self._instructions = plan.parts, plan.instructions
        self._references = references
        self._gap = np.zeros(round(plan.gap * engine.info.sample_rate), np.float32)
        self._budget = plan.budget
        self._origin = origin
        self._delivered = delivered
        self._turn_history: dict[str, list[Reference]] = {part.voice_key: [] for part in plan.parts}
        if history is not None:
            self._turn_history[plan.parts[0].voice_key] = history
        self._is_dialogue = plan.is_dialogue
        self._samples = 0
        self._waited = self._worked = 0.0
        self._frames = 0
        self._turn_start = 0.0, 0.0, 0
        self._is_cut = False
        self._turns: tuple[TurnTime, ...] = ()
        self._first_sound: float | None = None

    async def sounds(self) -> AsyncGenerator[Sound, None]:
        """The audio piece by piece as it is generated; for a dialogue with the times of its turns. See
        ScriptStream.sounds."""
        next_turn: _Begun | None = None
        try:
            for number in range(len(self._parts)):
                if self._budget is not None and self._budget <= 0:
                    yield Sound(np.zeros(0, np.float32), 0, self._waited, self._worked, "length", self._turns_so_far())
                    return
                turn, next_turn = next_turn or self._perform(number), None
                async with aclosing(turn):
                    async for sound in turn:
                        yield self._placed(sound, number)
                        if next_turn is None and self._is_due(number):
                            next_turn = _Begun(self._perform(number + 1))
        finally:
            if next_turn is not None:
                await next_turn.aclose()

    def _perform(self, number: int) -> AsyncGenerator[Sound, None]:
        part = self._parts[number]
        sampling = replace(part.sampling, seed=self._seed(number))
        utterance = Utterance(
            part.text,
            self._references[part.voice_key],
            sampling,
            language=part.language,
            speaker=part.voice.speaker if part.voice else None,
            instructions=self._instructions,
            owner=self._origin.caller,
        )
        return ScriptStream(
            self._engine,
            part.script,
            utterance,
            self._budget,
            self._turn_history[part.voice_key],
            self._origin.patient or number > 0,  # a full queue does not interrupt audio that has begun
            self._delivered,
        ).sounds()

    def _placed(self, sound: Sound, number: int) -> Sound:
        """A turn's audio at its position in the whole."""
        pcm, rate = sound.pcm, self._engine.info.sample_rate
        if len(self._turns) == number:
            self._turn_start = self._waited, self._worked, self._frames
            pcm = np.concatenate([self._gap, pcm]) if number else pcm
            part, start = self._parts[number], (self._samples + len(pcm) - len(sound.pcm)) / rate
            self._turns = (*self._turns, TurnTime(part.speaker or "", part.label, self._seed(number), start, start))
        if self._first_sound is None:
            self._first_sound = time.perf_counter()
        self._samples += len(pcm)
        self._frames += sound.frames
        self._turns = (*self._turns[:-1], replace(self._turns[-1], end_s=self._samples / rate))
        self._waited = self._turn_start[0] + sound.waited
        self._worked = self._turn_start[1] + sound.worked
        if self._budget is not None:
            self._budget -= sound.frames
        self._is_cut |= sound.finish_reason == "length"
        is_last = sound.finish_reason is not None and number == len(self._parts) - 1
        reason = ("length" if self._is_cut else "stop") if is_last else None
        return replace(
            sound,
            pcm=pcm,
            waited=self._waited,
            worked=self._worked,
            finish_reason=reason,
            turns=self._turns_so_far(),
            resumed_at=None if sound.resumed_at is None else self._turn_start[2] + sound.resumed_at,
            is_unfinished=sound.is_unfinished and not self._is_dialogue,
        )

    def _turns_so_far(self) -> tuple[TurnTime, ...]:
        return self._turns if self._is_dialogue else ()

    def _seed(self, number: int) -> int:
        return (self._parts[number].sampling.seed + number * TURN_STEP) % (MAX_SEED + 1)

    def _is_due(self, number: int) -> bool:
        """Whether the next turn must start alongside this one, because the audio so far and to come will not last.

        A turn that may be cut off, or that uses this one as context, starts after it, so that its seed is reproducible.
        """
        if number + 1 == len(self._parts) or self._budget is not None or self._first_sound is None:
            return False
        current, following = self._parts[number], self._parts[number + 1]
        if current.voice_key == following.voice_key:
            return False
        seconds = self._samples / self._engine.info.sample_rate
        lead = seconds - (time.perf_counter() - self._first_sound)
        remaining = len(current.text) / LETTERS_A_SECOND - (seconds - self._turns[-1].start_s)
        return lead + max(remaining, 0.0) + len(self._gap) / self._engine.info.sample_rate < HEAD_START


class _Begun:
    """Audio whose first piece is generated at once, even if nobody waits for it yet."""

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
        try:
            if self._first is not None:
                self._first.cancel()
                await asyncio.gather(self._first, return_exceptions=True)
        finally:
            await self._sounds.aclose()
