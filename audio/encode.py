"""Streaming encoders of speech: float32 samples in, bytes of a file out, by `write` and `finish`."""

from __future__ import annotations

import struct

import numpy as np

from audio.resampler import Resampler

PCM_RATE = 24_000  # raw PCM has no header, and clients of the speech API assume 24 kHz
WAV_HEADER = 44  # bytes before the samples of a WAV written here


def pcm16(pcm: np.ndarray) -> bytes:
    """Float32 in [-1, 1] to little-endian 16 bit; louder samples are clipped, never wrapped."""
    return np.rint(np.clip(pcm, -1.0, 1.0) * 32767.0).astype("<i2").tobytes()


def floats(pcm16: bytes) -> np.ndarray:
    """16-bit samples as float32 (samples,): the inverse of `pcm16`, apart from rounding."""
    return np.frombuffer(pcm16, "<i2").astype(np.float32) / 32767.0


class PcmEncoder:
    """Raw 16-bit little-endian mono."""

    costly = False  # whether encoding takes long enough to be done in a thread

    def __init__(self, source_rate: int, sample_rate: int) -> None:
        self.sample_rate = sample_rate  # Hz, of the file
        self.media_type = "audio/pcm"
        if sample_rate != PCM_RATE:
            self.media_type += f";rate={sample_rate};channels=1"
        self._resampler = Resampler(source_rate, sample_rate)

    def write(self, pcm: np.ndarray) -> bytes:
        """Take (samples,) float32 in [-1, 1] at the source rate; return the bytes that are ready, possibly none.

        Returned bytes are final.
        """
        return pcm16(self._resampler.write(pcm))

    def finish(self) -> bytes:
        """End the file and return its last bytes."""
        return pcm16(self._resampler.finish())


class WavEncoder(PcmEncoder):
    """16-bit mono RIFF/WAVE; exact sizes when the length is known, else 0xFFFFFFFF as in a live stream."""

    def __init__(self, source_rate: int, sample_rate: int, samples: int | None) -> None:
        super().__init__(source_rate, sample_rate)
        self.media_type = "audio/wav"
        if samples is not None:
            samples = -(-samples * sample_rate // source_rate)
        self._header = wav_header(sample_rate, samples)

    def write(self, pcm: np.ndarray) -> bytes:
        header, self._header = self._header, b""
        return header + super().write(pcm)

    def finish(self) -> bytes:
        return self.write(np.zeros(0, np.float32)) + super().finish()


def whole_wav(wav: bytes, sample_rate: int) -> bytes:
    """A WAV written before its length was known, with the correct sizes."""
    return wav_header(sample_rate, wav_samples(len(wav))) + wav[WAV_HEADER:]


def wav_samples(size: int) -> int:
    """Number of 16-bit mono samples in a WAV of this size in bytes."""
    return (size - WAV_HEADER) // 2


def wav_header(sample_rate: int, samples: int | None) -> bytes:
    """The WAV_HEADER bytes before 16-bit mono samples; ``samples=None`` when their number is unknown."""
    data = 0xFFFFFFFF if samples is None else 2 * samples
    riff = 0xFFFFFFFF if samples is None else 36 + data
    layout = (1, 1, sample_rate, 2 * sample_rate, 2, 16)  # PCM, channels, rate, bytes a second, bytes a sample, bits
    return struct.pack("<4sI8sIHHIIHH4sI", b"RIFF", riff, b"WAVEfmt ", 16, *layout, b"data", data)
