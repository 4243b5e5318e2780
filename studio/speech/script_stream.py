"""A whole script spoken: part after part in one growing conversation, real silence where it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

import numpy as np

from engine import MAX_SEED, AudioChunk, EngineFull, Reference, SpeechEngine, Utterance
from studio.errors import DegenerateSpeech
from studio.library.takes.take import SpokenPart, TurnTime
from studio.speech.quality import QualityCheck
from studio.speech.script.brackets import manner_of
from studio.speech.text import Pause, Script, Words

MOST_TURNS = 64
"""Turns of a conversation that are kept; fewer fit into a context."""
PLACE_SECONDS = 0.05
"""How often a later part looks for a place in a full queue."""
RETRY_STEP = 1_000_003
"""Added to the seed of a take that went wrong, for its one further try."""


@dataclass(frozen=True, eq=False, slots=True)
class Sound:
    """A piece of a performance: float32 mono samples, and the clock of the engine in seconds."""

    pcm: np.ndarray
    frames: int
    waited: float
    """In the engine's queue, all parts together."""
    worked: float
    """Of the engine's work after the queue, all parts together."""
    finish_reason: str | None = None
    """On the last piece: stop, or length when a limit cut something off."""
    turns: tuple[TurnTime, ...] = ()
    """Of a conversation: those that have begun."""
    parts: tuple[SpokenPart, ...] = ()
    """Those that end with this piece, as they were drawn."""
    resumed_at: int | None = None
    """Frames after which the engine took it up again; None while it did not."""
    continues: str | None = None
    """The take that this one goes on with."""
    is_unfinished: bool = False
    """On the last piece: whether a limit left something unsaid that can be gone on with."""


async def next_sound(sounds: AsyncGenerator[Sound, None]) -> Sound | None:
    """None when there is no more."""
    return await anext(sounds, None)


class ScriptStream:
    """One script on its way through the engine. Iterate `sounds` once; leaving the iteration frees the row."""

    def __init__(
        self,
        engine: SpeechEngine,
        script: Script,
        utterance: Utterance,
        budget: int | None,
        history: list[Reference],
        patient: bool = False,
        spoken: Sequence[SpokenPart] = (),
    ) -> None:
        """``utterance`` gives voice, sampling and each part's frames; ``budget``: frames of all parts, None: no end.

        ``history`` is what was said before, and what is said now is added to it. A ``patient`` one waits when
        the queue is full. ``spoken`` are parts that were heard, the last maybe in its middle: it goes on after them,
        and they count towards the budget.
        """
        self._engine = engine
        self._script = script
        self._utterance = utterance
        self._budget = budget
        self._history = history
        self._patient = patient
        self._heard = spoken
        self._first = len(spoken) - (1 if spoken and not spoken[-1].is_whole else 0)
        self._spoken: list[SpokenPart] = []
        self._waited = self._worked = 0.0
        self._cut = False

    async def sounds(self) -> AsyncGenerator[Sound, None]:
        """Piece by piece, while it is made; the last piece has the finish_reason.

        Raises what Engine.speak raises, and DegenerateSpeech for a part that went wrong where it was heard
        already, or twice. The first piece comes after the engine's first, so that all refusals come before it.
        """
        turns, tail = self._turns()
        rate = self._engine.info.sample_rate
        for number, (pause, words) in enumerate(turns):
            if number < self._first:
                self._remember(words, self._heard[number])
                self._cut |= not self._heard[number].is_whole
                continue
            if self._budget is not None and self._budget <= 0:
                nothing = np.zeros(0, np.float32)
                yield Sound(nothing, 0, self._waited, self._worked, "length", is_unfinished=True)
                return
            last = number == len(turns) - 1
            silence = 0.0 if number < len(self._heard) else pause
            before = sum(part.codes.shape[1] for part in self._spoken)
            waited, worked = self._waited, self._worked
            async with aclosing(self._part(words, number)) as chunks:
                async for chunk in chunks:
                    self._waited = waited + chunk.timing.admitted
                    self._worked = worked + chunk.timing.now - chunk.timing.admitted
                    ends = last and chunk.finish_reason is not None
                    after = _silences(tail, rate) if ends and chunk.finish_reason == "stop" else []
                    for pcm in _silences(silence, rate):
                        yield Sound(pcm, 0, self._waited, self._worked)
                    silence = 0.0
                    reason = ("length" if self._cut else "stop") if ends else None
                    yield Sound(
                        chunk.pcm,
                        chunk.frames,
                        self._waited,
                        self._worked,
                        None if after else reason,
                        parts=(self._spoken[-1],) if chunk.finish_reason else (),
                        resumed_at=None if chunk.resumed_at is None else before + chunk.resumed_at,
                        is_unfinished=ends and chunk.finish_reason == "length",
                    )
                    for number_after, pcm in enumerate(after, 1):
                        yield Sound(pcm, 0, self._waited, self._worked, reason if number_after == len(after) else None)

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

        Another than the first that finds the queue full waits for a place: what was begun is not broken off for that.
        """
        attempt = 0
        earlier = self._heard[number] if number < len(self._heard) else None
        while True:
            heard: list[np.ndarray] = [earlier.codes] if earlier else []
            seed = earlier.seed if earlier else self._seed(number + attempt * RETRY_STEP)
            quality = QualityCheck(words.text, self._engine.info.frame_rate, earlier.codes if earlier else None)
            try:
                async with aclosing(self._speak(words, seed, earlier)) as chunks:
                    async for chunk in chunks:
                        quality.watch(chunk)
                        heard.append(chunk.codes)
                        self._cut |= chunk.finish_reason == "length"
                        if chunk.finish_reason:
                            codes, is_whole = np.concatenate(heard, axis=1), chunk.finish_reason == "stop"
                            self._remember(words, SpokenPart(seed, codes, is_whole, words.text))
                        yield chunk
            except DegenerateSpeech as error:
                if heard or attempt:
                    tried = [self._seed(number + i * RETRY_STEP) for i in range(attempt + 1)]
                    seeds = " and ".join(map(str, [earlier.seed] if earlier else tried))
                    message = f"{error}, with seed {seeds}; try another seed or other words"
                    raise DegenerateSpeech(message) from error
                attempt += 1
            except EngineFull:
                if number == self._first and not self._patient:
                    raise
                await asyncio.sleep(PLACE_SECONDS)
            else:
                return

    def _speak(self, words: Words, seed: int, earlier: SpokenPart | None) -> AsyncGenerator[AudioChunk, None]:
        """``begun``: what was heard of the part. One that had all the frames that a part may have gets as many more."""
        most, heard = self._utterance.max_frames, earlier.codes.shape[1] if earlier else 0
        most += heard // most * most
        utterance = replace(
            self._utterance,
            text=words.text,
            history=self._heard_again(words),
            sampling=replace(self._utterance.sampling, seed=seed),
            max_frames=min(most, self._budget or most),
            so_far=earlier.codes if earlier else None,
        )
        return self._engine.speak(utterance)

    def _seed(self, step: int) -> int:
        return (self._utterance.sampling.seed + step) % (MAX_SEED + 1)

    def _remember(self, words: Words, part: SpokenPart) -> None:
        self._spoken.append(part)
        frames = part.codes.shape[1]
        if self._budget is not None:
            self._budget -= frames
        if frames:
            self._history.append(Reference(part.codes, words.text))
            del self._history[:-MOST_TURNS]

    def _heard_again(self, words: Words) -> tuple[Reference, ...]:
        """The latest turns that leave the part half of the context; a token is at least a byte of text.

        A model that obeys tags only where a part begins goes on as it spoke last: of what was said with tags it hears
        only what was said with the same ones.
        """
        room = self._engine.info.max_context // 2 - len(words.text.encode()) - 64
        room -= sum(_positions(reference) for reference in self._utterance.references)
        manners = None if self._engine.info.card.tags is None else ("", manner_of(words.text))
        turns: list[Reference] = []
        for turn in reversed(self._history):
            if manners and manner_of(turn.text) not in manners:
                continue
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
