"""A whole script spoken: part after part in one growing conversation, real silence where it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

import numpy as np

from engine import AudioChunk, EngineFull, Reference, SpeechEngine, Utterance
from studio.errors import DegenerateSpeech
from studio.speech.quality import QualityCheck
from studio.speech.request import MAX_SEED
from studio.speech.text import Pause, Script, Words
from studio.takes.record import TurnTime

MOST_TURNS = 64
"""Turns of a conversation that are kept; fewer fit into a context."""
PLACE_SECONDS = 0.05
"""How often a later part looks for a place in a full line."""
RETRY_STEP = 1_000_003
"""Added to the seed of a take that went wrong, for its one further try."""


@dataclass(frozen=True, eq=False, slots=True)
class Sound:
    """A piece of a performance: float32 mono samples, and the clock of the engine in seconds."""

    pcm: np.ndarray
    frames: int
    waited: float
    """In the engine's line, all parts together."""
    worked: float
    """Made by the engine since the line, all parts together."""
    finish_reason: str | None = None
    """On the last piece: stop, or length when a limit cut something off."""
    turns: tuple[TurnTime, ...] = ()
    """Of a conversation: those that have begun."""


async def next_sound(sounds: AsyncGenerator[Sound, None]) -> Sound | None:
    """None when there is no more."""
    return await anext(sounds, None)


class Performance:
    """One script on its way through the engine. Iterate `sounds` once; leaving the iteration frees the row."""

    def __init__(
        self,
        engine: SpeechEngine,
        script: Script,
        utterance: Utterance,
        budget: int | None,
        history: list[Reference],
        patient: bool = False,
    ) -> None:
        """``utterance`` gives voice, sampling and each part's frames; ``budget``: frames of all parts, None: no end.

        ``history`` is what was said before, and what is said now is added to it. A ``patient`` one waits when
        the line is full.
        """
        self._engine = engine
        self._script = script
        self._utterance = utterance
        self._budget = budget
        self._history = history
        self._patient = patient
        self._waited = self._worked = 0.0
        self._cut = False

    async def sounds(self) -> AsyncGenerator[Sound, None]:
        """Piece by piece, while it is made; the last piece has the finish_reason.

        Raises what Engine.speak raises, and DegenerateSpeech for a part that went wrong where it was heard
        already, or twice. The first piece comes after the engine's first, so that all refusals come before it.
        """
        turns, tail = self._turns()
        rate = self._engine.info.sample_rate
        for number, (silence, words) in enumerate(turns):
            if self._budget is not None and self._budget <= 0:
                yield Sound(np.zeros(0, np.float32), 0, self._waited, self._worked, "length")
                return
            last = number == len(turns) - 1
            waited, worked = self._waited, self._worked
            async with aclosing(self._part(words, number)) as chunks:
                async for chunk in chunks:
                    self._waited = waited + chunk.timing.admitted
                    self._worked = worked + chunk.timing.now - chunk.timing.admitted
                    ends = last and chunk.finish_reason is not None
                    after = tail if ends else 0.0
                    pieces = [*_silences(silence, rate), chunk.pcm, *_silences(after, rate)]
                    silence = 0.0
                    for pcm in pieces[:-1]:
                        yield Sound(pcm, 0, self._waited, self._worked)
                    reason = ("length" if self._cut else "stop") if ends else None
                    yield Sound(pieces[-1], chunk.frames, self._waited, self._worked, reason)

    def _turns(self) -> tuple[list[tuple[float, Words]], float]:
        """Each part with the seconds of silence before it, and those at the end."""
        turns: list[tuple[float, Words]] = []
        silence = 0.0
        for step in self._script:
            if isinstance(step, Pause):
                silence += step.seconds
            else:
                turns.append((silence, step))
                silence = 0.0
        return turns, silence

    async def _part(self, words: Words, number: int) -> AsyncGenerator[AudioChunk, None]:
        """One part; begun again with another seed when it goes wrong before any of it was given out.

        A later part that finds the line full waits for a place: what was begun is not broken off for that.
        """
        attempt = 0
        while True:
            heard: list[np.ndarray] = []
            quality = QualityCheck(words.text, self._engine.info.frame_rate)
            try:
                async with aclosing(self._speak(words, number + attempt * RETRY_STEP)) as chunks:
                    async for chunk in chunks:
                        quality.watch(chunk)
                        heard.append(chunk.codes)
                        self._cut |= chunk.finish_reason == "length"
                        yield chunk
            except DegenerateSpeech as error:
                if heard or attempt:
                    seeds = " and ".join(str(self._seed(number + i * RETRY_STEP)) for i in range(attempt + 1))
                    told = f"{error}, with seed {seeds}; try another seed or other words"
                    raise DegenerateSpeech(told) from error
                attempt += 1
            except EngineFull:
                if not number and not self._patient:
                    raise
                await asyncio.sleep(PLACE_SECONDS)
            else:
                self._remember(words, heard)
                return

    def _speak(self, words: Words, seed_step: int) -> AsyncGenerator[AudioChunk, None]:
        utterance = replace(
            self._utterance,
            text=words.text,
            history=self._heard_again(words),
            sampling=replace(self._utterance.sampling, seed=self._seed(seed_step)),
            max_frames=min(self._utterance.max_frames, self._budget or self._utterance.max_frames),
        )
        return self._engine.speak(utterance)

    def _seed(self, step: int) -> int:
        return (self._utterance.sampling.seed + step) % (MAX_SEED + 1)

    def _remember(self, words: Words, codes: list[np.ndarray]) -> None:
        spoken = np.concatenate(codes, axis=1)
        if self._budget is not None:
            self._budget -= spoken.shape[1]
        if spoken.shape[1]:
            self._history.append(Reference(spoken, words.text))
            del self._history[:-MOST_TURNS]

    def _heard_again(self, words: Words) -> tuple[Reference, ...]:
        """The latest turns that leave the part half of the context; a token is at least a byte of text."""
        room = self._engine.info.max_context // 2 - len(words.text.encode()) - 64
        room -= sum(_positions(reference) for reference in self._utterance.references)
        turns: list[Reference] = []
        for turn in reversed(self._history):
            room -= _positions(turn)
            if room < 0:
                break
            turns.insert(0, turn)
        return tuple(turns)


def _silences(seconds: float, rate: int) -> list[np.ndarray]:
    """Silence in pieces of at most a second: what is encoded and sent at a time stays small."""
    samples = round(seconds * rate)
    second = np.zeros(min(samples, rate), np.float32)  # shared by all of them
    return [second[: samples - start] for start in range(0, samples, rate)]


def _positions(reference: Reference) -> int:
    return reference.frames + len(reference.text.encode()) + 32
