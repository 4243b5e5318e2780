"""Speech for tests, the bundled clips with their words, and samples as they go into a library."""

from __future__ import annotations

import functools
import io

import numpy as np
import soundfile

from audio import Cut
from studio import ROOT
from studio.library import NewSample

CLIPS = sorted((ROOT / "assets" / "fry" / "voices").glob("*.wav"))
"""The tests work with any clips of a few seconds of clean speech."""


@functools.cache
def spoken(number: int = 0) -> bytes:
    """A WAV file of speech; other numbers give other speakers."""
    return CLIPS[number].read_bytes()


def words(number: int = 0) -> str:
    """The words spoken in that file."""
    return CLIPS[number].with_suffix(".txt").read_text("utf-8").strip()


WORDS = words()


def samples_of(wav: bytes) -> tuple[np.ndarray, int]:
    """Samples as float32 (samples,) or (samples, channels), and their rate in Hz."""
    return soundfile.read(io.BytesIO(wav), dtype="float32")


def file_of(pcm: np.ndarray, rate: int, kind: str = "WAV", subtype: str = "PCM_16") -> bytes:
    """An audio file of samples."""
    buffer = io.BytesIO()
    soundfile.write(buffer, pcm, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def new_sample(data: bytes | None = None, text: str = WORDS, cut: Cut | None = None, speaker: int = 0) -> NewSample:
    """A sample as created by the intake, but without analysing it, for tests of the library alone."""
    data = spoken() if data is None else data
    return NewSample(data, "audio/wav", 4.0, text, cut or Cut(), 4.0, 90, {"snr_db": 40.0}, speaker)
