"""A sentence is replaced in a recording: the rest is unchanged, and the cuts are inaudible."""

from __future__ import annotations

import numpy as np
import pytest

from audio.splice import Piece, splice

RATE = 44_100
HALF = round(0.005 * RATE)


def voiced(*seconds: float, level: float, seed: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Words of these lengths in seconds, with 0.2 s of room noise around each, and their positions."""
    rng = np.random.default_rng(seed)
    pieces, words, at = [], [], 0
    for number, long in enumerate((*seconds, 0.0)):
        pieces.append(0.0005 * rng.standard_normal(round(0.2 * RATE)))
        at += len(pieces[-1])
        length = round(long * RATE)
        time = np.arange(length) / RATE
        sound = np.sin(2 * np.pi * (120 + 40 * number + seed) * time) * np.hanning(max(1, length))[:length]
        pieces.append(level * sound)
        words.append((at, at + length))
        at += length
    return np.concatenate(pieces).astype(np.float32), words[:-1]


def piece(words: list[tuple[int, int]], number: int) -> Piece:
    after = words[number + 1][0] if number + 1 < len(words) else None
    return Piece(*words[number], words[number - 1][1] if number else None, after)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_splice_changes_only_the_sentence_and_matches_its_loudness(number: int) -> None:
    old, words = voiced(0.8, 1.1, 0.7, level=0.3, seed=1)
    new, others = voiced(0.5, 1.6, level=0.05, seed=2)
    spoken = others[1] if number else others[0]
    here = Piece(*spoken, others[0][1], None) if number else Piece(*spoken, None, others[1][0])
    there = piece(words, number)
    spliced = splice(old, there, new, here, RATE)
    assert len(spliced.pcm) == len(old) + spliced.moved_by and spliced.pcm.dtype == np.float32
    first = 0 if there.before is None else there.before - HALF
    assert np.array_equal(spliced.pcm[:first], old[:first])
    if there.after is not None:
        rest = there.after + HALF
        assert np.array_equal(spliced.pcm[rest + spliced.moved_by :], old[rest:])
    start, end = (at + spliced.inserted_by for at in spoken)
    loud, was = (np.sqrt(np.square(pcm).mean()) for pcm in (spliced.pcm[start:end], old[slice(*words[number])]))
    assert abs(20 * np.log10(loud / was)) < 1.0
    steps = np.abs(np.diff(spliced.pcm))
    joints = [at for at in (spliced.inserted_by + here.start, spliced.inserted_by + here.end) if HALF < at < len(steps)]
    for at in joints:  # in the surrounding pauses no step is larger than those of the room noise
        quiet = steps[max(0, at - round(0.15 * RATE)) : at] if at <= start else steps[at : at + round(0.15 * RATE)]
        assert quiet.max(initial=0.0) < 0.03


def test_words_without_pauses_and_short_audio_are_joined() -> None:
    old, new = np.full(4000, 0.5, np.float32), np.full(3000, 0.4, np.float32)
    spliced = splice(old, Piece(1000, 2000, 1000, 2000), new, Piece(1000, 2500, 1000, None), RATE)
    assert len(spliced.pcm) == len(old) + spliced.moved_by
    assert np.abs(np.diff(spliced.pcm)).max() < 0.01 and np.allclose(spliced.pcm, 0.5, atol=0.12)
    silent = splice(np.zeros(4000, np.float32), Piece(0, 4000, None, None), new, Piece(0, 3000, None, None), RATE)
    assert np.array_equal(silent.pcm, new)
    short = splice(old, Piece(100, 120, 90, 130), np.ones(30, np.float32), Piece(10, 20, 5, 25), RATE)
    assert len(short.pcm) == len(old) + short.moved_by
