"""Speech for tests, made by synthesisers, and samples as they go into a library."""

from __future__ import annotations

import functools
import io
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import soundfile

from studio.library import Cut, NewSample

WORDS = "The birch canoe slid on the smooth planks, and the fish swam home."


@functools.cache
def spoken(text: str = WORDS, voice: str = "en", speed: int = 160, pitch: int = 50) -> bytes:
    """A WAV file in which espeak-ng says the text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "-w", str(path), text]
        subprocess.run(command, check=True, capture_output=True)
        return path.read_bytes()


def samples_of(wav: bytes) -> tuple[np.ndarray, int]:
    """float32 (samples,) or (samples, channels), and Hz."""
    return soundfile.read(io.BytesIO(wav), dtype="float32")


def file_of(pcm: np.ndarray, rate: int, kind: str = "WAV", subtype: str = "PCM_16") -> bytes:
    """An audio file of samples."""
    buffer = io.BytesIO()
    soundfile.write(buffer, pcm, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def new_sample(data: bytes | None = None, text: str = WORDS, cut: Cut | None = None, speaker: int = 0) -> NewSample:
    """A sample as the intake makes it, without listening to it: for tests of the library alone."""
    data = spoken() if data is None else data
    return NewSample(data, "audio/wav", 4.0, text, cut or Cut(), 4.0, 90, {"snr_db": 40.0}, speaker)
