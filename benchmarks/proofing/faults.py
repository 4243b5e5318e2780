"""Faults planted into the audio of a text: left out, doubled, wrong word, cut end, silence, runaway, half."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from speechtext.word_times import Timed

FADE = 0.005
"""Seconds, at each joint: a click would be heard as a sound of its own."""
SILENCE = 2.5
"""Seconds that are put between two words."""
CUT = 0.4
"""Of the word in which the audio ends, as much is left."""
RUNAWAY = 3
"""Times the length of a text that a runaway takes after it."""
QUIET = 0.01
"""Of full scale."""
SHORTEST = 3
"""Letters of a word that is left out, doubled or replaced."""


@dataclass(frozen=True, eq=False, slots=True)
class Spoken:
    """A sentence with its audio float32 (samples,) and word times."""

    text: str
    voice: str
    pcm: np.ndarray
    words: tuple[Timed, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Planted:
    """A sentence with one fault, at these seconds of its audio."""

    kind: str
    of: Spoken
    pcm: np.ndarray
    word: str
    at: float


Plant = Callable[[Spoken, Sequence[Spoken], int, random.Random], Planted]


def _cut(spoken: Spoken, rate: int, start: float, end: float) -> np.ndarray:
    return spoken.pcm[round(start * rate) : round(end * rate)]


def _joined(pieces: Sequence[np.ndarray], rate: int) -> np.ndarray:
    ramp = np.linspace(0.0, 1.0, round(FADE * rate), dtype=np.float32)
    faded = []
    for piece in map(np.copy, pieces):
        if len(piece) > 2 * len(ramp):
            piece[: len(ramp)] *= ramp
            piece[-len(ramp) :] *= ramp[::-1]
        faded.append(piece)
    return np.concatenate(faded)


def _whole(spoken: Spoken, rate: int) -> float:
    return len(spoken.pcm) / rate


def _inner(spoken: Spoken, choose: random.Random) -> Timed:
    words = [word for word in spoken.words[1:-1] if len(word.text) >= SHORTEST]
    return choose.choice(words)


def left_out(spoken: Spoken, others: Sequence[Spoken], rate: int, choose: random.Random) -> Planted:
    word = _inner(spoken, choose)
    pieces = [_cut(spoken, rate, 0, word.start), _cut(spoken, rate, word.end, _whole(spoken, rate))]
    return Planted("left out", spoken, _joined(pieces, rate), word.text, word.start)


def doubled(spoken: Spoken, others: Sequence[Spoken], rate: int, choose: random.Random) -> Planted:
    """Two words once more, as a model that loses its place says them."""
    first = choose.randrange(1, len(spoken.words) - 2)
    start, end = spoken.words[first].start, spoken.words[first + 1].end
    pieces = [_cut(spoken, rate, 0, end), _cut(spoken, rate, start, _whole(spoken, rate))]
    words = f"{spoken.words[first].text} {spoken.words[first + 1].text}"
    return Planted("doubled", spoken, _joined(pieces, rate), words, end)


def wrong_word(spoken: Spoken, others: Sequence[Spoken], rate: int, choose: random.Random) -> Planted:
    """A word of another sentence in the same voice in the place of one."""
    word = _inner(spoken, choose)
    same = [other for other in others if other.voice == spoken.voice and other is not spoken]
    while True:
        source = choose.choice(same)
        other = _inner(source, choose)
        if other.text.casefold() != word.text.casefold() and abs(len(other.text) - len(word.text)) <= 3:
            break
    pieces = [
        _cut(spoken, rate, 0, word.start),
        _cut(source, rate, other.start, other.end),
        _cut(spoken, rate, word.end, _whole(spoken, rate)),
    ]
    return Planted("wrong word", spoken, _joined(pieces, rate), f"{word.text} → {other.text}", word.start)


def cut_end(spoken: Spoken, others: Sequence[Spoken], rate: int, choose: random.Random) -> Planted:
    """It ends in the first half of its last word, or of the one before."""
    word = spoken.words[-choose.randint(1, 2)]
    sounding = float(np.flatnonzero(np.abs(spoken.pcm) > QUIET)[-1]) / rate  # its time goes to the end of the audio
    at = word.start + CUT * (min(word.end, sounding) - word.start)
    return Planted("cut end", spoken, _cut(spoken, rate, 0, at), word.text, at)


def silence(spoken: Spoken, others: Sequence[Spoken], rate: int, choose: random.Random) -> Planted:
    at = _inner(spoken, choose).start
    gap = np.zeros(round(SILENCE * rate), np.float32)
    pieces = [_cut(spoken, rate, 0, at), gap, _cut(spoken, rate, at, _whole(spoken, rate))]
    return Planted("silence", spoken, _joined(pieces, rate), "", at)


def noise(spoken: Spoken, others: Sequence[Spoken], rate: int, choose: random.Random) -> Planted:
    """A runaway: after its words it goes on for three times as long, without words."""
    level = float(np.sqrt(np.mean(np.square(spoken.pcm))))
    random_noise = np.random.default_rng(choose.randrange(2**32)).normal(0.0, level, RUNAWAY * len(spoken.pcm))
    pcm = np.concatenate([spoken.pcm, random_noise.clip(-1.0, 1.0).astype(np.float32)])
    return Planted("noise", spoken, pcm, "", _whole(spoken, rate))


def loop(spoken: Spoken, others: Sequence[Spoken], rate: int, choose: random.Random) -> Planted:
    """A runaway: it says its words three times more."""
    return Planted("loop", spoken, np.tile(spoken.pcm, 1 + RUNAWAY), "", _whole(spoken, rate))


def half(spoken: Spoken, others: Sequence[Spoken], rate: int, choose: random.Random) -> Planted:
    """Only its first half is left."""
    middle = _whole(spoken, rate) / 2
    return Planted("half", spoken, _cut(spoken, rate, 0, middle), "", middle)


OF_LENGTH: tuple[Plant, ...] = (noise, loop, half)
"""Those of texts of any kind."""
FAULTS: tuple[Plant, ...] = (left_out, doubled, wrong_word, cut_end, silence, *OF_LENGTH)
