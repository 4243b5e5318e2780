"""Generates a whole script: part after part in one growing conversation, with silence where requested."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

import numpy as np

from engine import MAX_SEED, AudioChunk, EngineFull, Reference, SpeechEngine, Utterance
from speechtext.script import Pause, Script, Words
from speechtext.tags import TAG, manner_of
from studio.errors import DegenerateSpeech
from studio.library.take import SpokenPart, TurnTime

MAX_CONTEXT_TURNS = 64
"""Turns of a conversation used as context; fewer may fit."""
QUEUE_RETRY_SECONDS = 0.05
"""Seconds between a later part's attempts when the queue is full."""
ASKING = 4
"""Parts of an owner that make these attempts at a time; the attempts of thousands would take a core."""
_LINES = WeakValueDictionary[str, asyncio.Semaphore]()  # where the others wait, by owner
RETRY_STEP = 1_000_003
"""Added to the seed of a failed take, for its one retry."""
LETTERS_A_SECOND = 60  # four times as fast as a fast speaker
SILENCE = 1e-4  # a peak under -80 dB is not a voice
LOOP_SECONDS = 3.0
"""Seconds examined for a loop: 64 frames of S2 Pro, 37 of Qwen3-TTS."""
LOOP_PERIODS = range(1, 9)
"""If these frames repeat in all codebooks with at most this period, they are not speech."""


@dataclass(frozen=True, eq=False, slots=True)
class Sound:
    """A piece of audio: float32 mono samples, and the engine's times in seconds."""

    pcm: np.ndarray
    frames: int
    waited: float
    """Seconds in the engine's queue, total of all parts."""
    worked: float
    """Seconds of the engine's work after the queue, total of all parts."""
    finish_reason: str | None = None
    """On the last piece: stop, or length if a limit cut something off."""
    turns: tuple[TurnTime, ...] = ()
    """The turns of a dialogue that have begun."""
    parts: tuple[SpokenPart, ...] = ()
    """The parts that end with this piece, as generated."""
    resumed_at: int | None = None
    """The frame at which the engine resumed the take; None if it did not."""
    continues: str | None = None
    """The take that this one continues."""
    is_unfinished: bool = False
    """On the last piece: whether a limit cut off text that can be continued."""


async def next_sound(sounds: AsyncGenerator[Sound, None]) -> Sound | None:
    """Return the next piece; None after the last."""
    return await anext(sounds, None)


class ScriptStream:
    """One script in the engine. Iterate `sounds` once; leaving the iteration frees the row."""

    def __init__(
        self,
        engine: SpeechEngine,
        script: Script,
        utterance: Utterance,
        budget: int | None,
        history: list[Reference],
        patient: bool = False,
        delivered: Sequence[SpokenPart] = (),
    ) -> None:
        """``utterance`` gives voice, sampling and each part's frames; ``budget``: frames of all parts, None: unlimited.

        ``history`` has the previous turns, to which the new ones are added. ``patient`` waits when the queue is full.
        ``delivered``: parts of an earlier delivery, of which the last may be incomplete; the stream continues after
        them, and they count towards the budget.
        """
        self._engine = engine
        self._script = script
        self._utterance = utterance
        self._budget = budget
        self._history = history
        self._patient = patient
        self._delivered = delivered
        self._first = len(delivered) - (1 if delivered and not delivered[-1].is_whole else 0)
        self._parts: list[SpokenPart] = []
        self._waited = self._worked = 0.0
        self._is_cut = False

    async def sounds(self) -> AsyncGenerator[Sound, None]:
        """The audio piece by piece as it is generated; the last piece has the finish_reason.

        Raises the errors of Engine.speak, and DegenerateSpeech for a part that failed after its delivery began,
        or twice. The first piece comes after the engine's first, so that all refusals come before it.
        """
        turns, tail = self._turns()
        rate = self._engine.info.sample_rate
        for number, (pause, words) in enumerate(turns):
            if number < self._first:
                self._remember(words, self._delivered[number])
                self._is_cut |= not self._delivered[number].is_whole
                continue
            if self._budget is not None and self._budget <= 0:
                empty = np.zeros(0, np.float32)
                yield Sound(empty, 0, self._waited, self._worked, "length", is_unfinished=True)
                return
            is_last = number == len(turns) - 1
            silence = 0.0 if number < len(self._delivered) else pause
            before = sum(part.codes.shape[1] for part in self._parts)
            waited, worked = self._waited, self._worked
            async with aclosing(self._part(words, number)) as chunks:
                async for chunk in chunks:
                    self._waited = waited + chunk.timing.admitted
                    self._worked = worked + chunk.timing.now - chunk.timing.admitted
                    is_end = is_last and chunk.finish_reason is not None
                    after = _silences(tail, rate) if is_end and chunk.finish_reason == "stop" else []
                    for pcm in _silences(silence, rate):
                        yield Sound(pcm, 0, self._waited, self._worked)
                    silence = 0.0
                    reason = ("length" if self._is_cut else "stop") if is_end else None
                    yield Sound(
                        chunk.pcm,
                        chunk.frames,
                        self._waited,
                        self._worked,
                        None if after else reason,
                        parts=(self._parts[-1],) if chunk.finish_reason else (),
                        resumed_at=None if chunk.resumed_at is None else before + chunk.resumed_at,
                        is_unfinished=is_end and chunk.finish_reason == "length",
                    )
                    for number_after, pcm in enumerate(after, 1):
                        yield Sound(pcm, 0, self._waited, self._worked, reason if number_after == len(after) else None)

    def _turns(self) -> tuple[list[tuple[float, Words]], float]:
        """Each part with the seconds of silence before it, and the silence at the end."""
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
        """One part; retried with another seed if it fails before any of it was delivered.

        Later parts wait when the queue is full, so that a full queue does not interrupt the take.
        """
        attempt = 0
        earlier = self._delivered[number] if number < len(self._delivered) else None
        while True:
            pieces: list[np.ndarray] = [earlier.codes] if earlier else []
            seed = earlier.seed if earlier else self._seed(number + attempt * RETRY_STEP)
            quality = QualityCheck(words.text, self._engine.info.frame_rate, earlier.codes if earlier else None)
            try:
                async with aclosing(self._speak(words, seed, earlier)) as chunks:
                    async for chunk in chunks:
                        quality.watch(chunk)
                        pieces.append(chunk.codes)
                        self._is_cut |= chunk.finish_reason == "length"
                        if chunk.finish_reason:
                            codes, is_whole = np.concatenate(pieces, axis=1), chunk.finish_reason == "stop"
                            self._remember(words, SpokenPart(seed, codes, is_whole, words.text))
                        yield chunk
            except DegenerateSpeech as error:
                if pieces or attempt:
                    tried_seeds = [self._seed(number + i * RETRY_STEP) for i in range(attempt + 1)]
                    seeds = " and ".join(map(str, [earlier.seed] if earlier else tried_seeds))
                    languages = ", ".join(self._engine.info.card.languages)
                    hint = f" (the model knows these languages: {languages})" if languages else ""
                    message = f"{error}, with seed {seeds}; try another seed or other words{hint}"
                    raise DegenerateSpeech(message) from error
                attempt += 1
            except EngineFull:
                if number == self._first and not self._patient:
                    raise
                async with _LINES.setdefault(self._utterance.owner, asyncio.Semaphore(ASKING)):
                    await asyncio.sleep(QUEUE_RETRY_SECONDS)
            else:
                return

    def _speak(self, words: Words, seed: int, earlier: SpokenPart | None) -> AsyncGenerator[AudioChunk, None]:
        """``earlier``: the part's delivered beginning. A part that had its maximum of frames gets as many again."""
        max_frames, frames = self._utterance.max_frames, earlier.codes.shape[1] if earlier else 0
        max_frames += frames // max_frames * max_frames
        utterance = replace(
            self._utterance,
            text=words.text,
            history=self._context_turns(words),
            sampling=replace(self._utterance.sampling, seed=seed),
            max_frames=min(max_frames, self._budget or max_frames),
            so_far=earlier.codes if earlier else None,
        )
        return self._engine.speak(utterance)

    def _seed(self, step: int) -> int:
        return (self._utterance.sampling.seed + step) % (MAX_SEED + 1)

    def _remember(self, words: Words, part: SpokenPart) -> None:
        self._parts.append(part)
        frames = part.codes.shape[1]
        if self._budget is not None:
            self._budget -= frames
        if frames:
            self._history.append(Reference(part.codes, words.text))
            del self._history[:-MAX_CONTEXT_TURNS]

    def _context_turns(self, words: Words) -> tuple[Reference, ...]:
        """The latest turns that leave half of the context to the part; a token has at least a byte of text.

        A model that follows tags only at a part's beginning imitates its last turn: of turns with tags, it therefore
        gets only those with the same tags.
        """
        budget = self._engine.info.max_context // 2 - len(words.text.encode()) - 64
        budget -= sum(_positions(reference) for reference in self._utterance.references)
        manners = None if self._engine.info.card.tags is None else ("", manner_of(words.text))
        turns: list[Reference] = []
        for turn in reversed(self._history):
            if manners and manner_of(turn.text) not in manners:
                continue
            budget -= _positions(turn)
            if budget < 0:
                break
            turns.insert(0, turn)
        return tuple(turns)


def _silences(seconds: float, rate: int) -> list[np.ndarray]:
    """Silence in pieces of at most a second, so that each piece to encode and send is small."""
    samples = round(seconds * rate)
    second = np.zeros(min(samples, rate), np.float32)  # shared by all pieces
    return [second[: samples - start] for start in range(0, samples, rate)]


def _positions(reference: Reference) -> int:
    return reference.frames + len(reference.text.encode()) + 32


class QualityCheck:
    """Checks one take, chunk by chunk. Reports silence and brevity at the end, the rest at once."""

    def __init__(self, text: str, frame_rate: float, codes: np.ndarray | None = None) -> None:
        """``codes``: codes (codebooks, frames) of the take's beginning, which has been checked before."""
        letters = sum(character.isalnum() for character in TAG.sub("", text))
        self._min_frames = int(letters / LETTERS_A_SECOND * frame_rate)
        self._frames = 0 if codes is None else codes.shape[1]
        self._peak = 1.0 if self._frames else 0.0
        self._loop_frames = int(LOOP_SECONDS * frame_rate)
        self._recent = b"" if codes is None else _bytes_of(codes[:, -self._loop_frames :])
        """The latest frames, one after the other."""

    def watch(self, chunk: AudioChunk) -> None:
        """Check a chunk. Raises DegenerateSpeech, which names the fault."""
        peak = float(np.abs(chunk.pcm).max(initial=0))  # 0.0 also for invalid samples
        if not math.isfinite(peak):
            raise DegenerateSpeech("the speech contains invalid samples")
        self._frames += chunk.frames
        self._peak = max(self._peak, peak)
        if chunk.frames:
            self._check_loop(chunk.codes)
        if chunk.finish_reason == "stop" and self._frames < self._min_frames:
            raise DegenerateSpeech(f"the speech ended after {self._frames} frames, too soon for its text")
        if chunk.finish_reason and self._frames and self._peak < SILENCE:
            raise DegenerateSpeech("the speech is silent")

    def _check_loop(self, codes: np.ndarray) -> None:
        size = codes.itemsize * len(codes)  # bytes per frame
        self._recent = (self._recent + _bytes_of(codes))[-self._loop_frames * size :]
        if len(self._recent) < self._loop_frames * size:
            return
        for period in LOOP_PERIODS:
            if self._recent[period * size :] == self._recent[: -period * size]:
                raise DegenerateSpeech("the speech got stuck in a loop")


def _bytes_of(codes: np.ndarray) -> bytes:
    """Frames as bytes, which compare ten times as fast as such small arrays."""
    return codes.T.tobytes()
