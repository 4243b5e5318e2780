"""Clones are compared with the person's other recording, among the recordings of all people."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import soundfile

from engine import Reference
from training.codec.spectra import SAMPLE_RATE
from training.judging.people import Cloning, judge_people, read_people

PITCHES = {"a": 100, "b": 200, "c": 400}


def buzz(hertz: float, seconds: float, rate: int) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


class PitchJudge:
    """Identifies a voice by the loudest of the three pitches."""

    def print(self, audio: np.ndarray) -> np.ndarray:
        spectrum = np.abs(np.fft.rfft(audio))
        levels = np.array([spectrum[round(p * len(audio) / SAMPLE_RATE)] for p in PITCHES.values()])
        return levels / np.linalg.norm(levels)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two recordings of a and of b, and one of c, at 16 kHz."""
    for name in ("a-0", "a-1", "b-0", "b-1", "c-0"):
        soundfile.write(tmp_path / f"corpus-{name}.wav", buzz(PITCHES[name[0]], 2.0, 16000), 16000)
    return tmp_path


def test_single_recording_of_a_person_is_split_in_halves(folder: Path) -> None:
    people = read_people(folder)
    assert [person.name for person in people] == ["corpus-a", "corpus-b", "corpus-c"]
    seconds = [(len(p.reference) / SAMPLE_RATE, len(p.other) / SAMPLE_RATE) for p in people]
    assert np.allclose(seconds, [(2, 2), (2, 2), (1, 1)], atol=0.01)
    levels = [np.sqrt(np.mean(p.reference**2)) for p in people]
    assert np.ptp(levels) < 0.01


def test_clone_of_another_person_does_not_count_as_the_person(folder: Path) -> None:
    people = read_people(folder)
    sounds = {person.name: person.reference for person in people}

    async def encode(audio: np.ndarray) -> Reference:
        index = next(i for i, person in enumerate(people) if person.reference is audio)
        return Reference(np.full((1, 1), index, np.int16), "Words.")

    async def say(reference: Reference, number: int) -> np.ndarray:
        is_wrong = reference.codes[0, 0] == 1 and number == 1  # b's second sentence sounds like a
        return sounds["corpus-a" if is_wrong else people[int(reference.codes[0, 0])].name]

    cloning = Cloning(encode, say, lambda reference: people[int(reference.codes[0, 0])].reference)
    judges = {"first": PitchJudge(), "second": PitchJudge()}
    figures = asyncio.run(judge_people(people, cloning, judges, lambda audio: 4.0, tested=2, sentences=2))
    assert figures["real_people"] == 3 and figures["real_people_tested"] == 2
    assert figures["real_clone_top1"] == figures["real_clone_top1_second"] == 0.75
    assert figures["real_clone_cos"] == pytest.approx(0.75, abs=0.02)
    assert figures["real_clone_mos"] == 4.0
    assert figures["real_clone_pitch"] == pytest.approx(0.125, abs=0.01), "half the pitch in one of four takes"
    assert figures["real_roundtrip_cos"] == pytest.approx(1.0, abs=1e-3)
