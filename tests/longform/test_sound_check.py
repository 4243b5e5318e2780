"""Measures of the sound: level, silence, an end in mid-word, something said twice in a row."""

from __future__ import annotations

import numpy as np
import pytest

from audio.encode import pcm16
from longform.proof.sound_check import SoundFigures, sound_figures
from longform.proof.verification import repeated_spans

RATE = 16_000


def speech(seconds: float, seed: int = 0, level: float = 0.1) -> np.ndarray:
    """Noise whose spectrum changes fifteen times a second, as that of speech."""
    random = np.random.default_rng(seed)
    pieces = []
    for _ in range(round(seconds * 15)):
        hertz = random.uniform(200, 3000, 4)[:, None]
        time = np.arange(RATE // 15) / RATE
        pieces.append(np.sin(2 * np.pi * hertz * time + random.uniform(0, 6, (4, 1))).sum(axis=0))
    return (level * np.concatenate(pieces) / 2).astype(np.float32)


def figures(pcm: np.ndarray) -> SoundFigures:
    return sound_figures(np.frombuffer(pcm16(pcm), "<i2"), RATE)


def test_silence_within_speech_and_around_it_is_found() -> None:
    gap = np.zeros(RATE * 3, np.float32)
    gap[RATE] = 0.5  # a click
    measured = figures(np.concatenate([np.zeros(RATE, np.float32), speech(1), gap, speech(1, 1), np.zeros(RATE)]))
    silences = [silence for silence in measured.silences if silence[1] - silence[0] > 0.5]
    assert silences == [pytest.approx(span, abs=0.05) for span in ((0.0, 1.0), (2.0, 5.0), (6.0, 7.0))]
    assert measured.speech_s == pytest.approx(2.0, abs=0.1) and not measured.is_cut


def test_level_and_end_of_speech_are_measured() -> None:
    loud, quiet = (figures(speech(1, level=level)) for level in (0.2, 0.1))
    assert loud.level - quiet.level == pytest.approx(6.0, abs=0.1) and loud.is_cut
    faded = speech(1) * np.linspace(1, 0, len(speech(1)), dtype=np.float32) ** 2
    assert not figures(faded).is_cut
    for nothing in (np.zeros(0, np.float32), np.zeros(RATE, np.float32)):
        assert figures(nothing).speech_s == 0 and figures(nothing).level == -np.inf


def test_repeated_words_are_found() -> None:
    first, word, last = speech(1, 1), speech(0.4, 2), speech(1, 3)
    (start, end), *_ = repeated_spans(np.concatenate([first, word, word, last]))
    assert start == pytest.approx(1.4, abs=0.1) and end == pytest.approx(1.8, abs=0.1)
    once = repeated_spans(np.concatenate([first, word, last]))
    assert all(abs(start - 1.4) > 0.1 for start, _ in once)
    assert repeated_spans(np.zeros(10, np.float32)) == []
