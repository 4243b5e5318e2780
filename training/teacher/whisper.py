"""Turns voiced speech into a whisper: keeps the spectral envelope, replaces the voice by noise."""

from __future__ import annotations

import numpy as np

_FRAME_SECONDS = 0.024
_QUEFRENCY_SECONDS = 0.0018
"""The envelope is the cepstrum below this: shorter than any pitch period of the corpus's voices."""


def whispered(audio: np.ndarray, rate: int, seed: int = 0) -> np.ndarray:
    """Audio (samples,) float32 with its voicing replaced by noise; low frequencies weakened as breath has them."""
    size = int(_FRAME_SECONDS * rate) // 2 * 2
    hop = size // 2
    window = np.hanning(size + 1)[:-1].astype(np.float32)
    frames = 1 + -(-len(audio) // hop)
    padded = np.zeros((frames + 1) * hop, np.float32)
    padded[hop : hop + len(audio)] = audio
    index = np.arange(frames)[:, None] * hop + np.arange(size)
    envelope = _envelope(np.abs(np.fft.rfft(padded[index] * window)), rate)
    noise = np.random.default_rng(seed).standard_normal(len(padded)).astype(np.float32)
    excitation = np.fft.rfft(noise[index] * window)
    frequency = np.fft.rfftfreq(size, 1 / rate)
    tilt = 1 / np.sqrt(1 + (400.0 / np.maximum(frequency, 1.0)) ** 2)
    pieces = np.fft.irfft(excitation * envelope * tilt, size)
    out = np.zeros_like(padded)
    np.add.at(out, index, pieces)
    return out[hop : hop + len(audio)]


def _envelope(magnitude: np.ndarray, rate: int) -> np.ndarray:
    """Smoothed magnitudes (frames, bins) by cutting the cepstrum."""
    cepstrum = np.fft.irfft(np.log(magnitude + 1e-6))
    keep = int(_QUEFRENCY_SECONDS * rate)
    cepstrum[:, keep : cepstrum.shape[1] - keep + 1] = 0
    return np.exp(np.fft.rfft(cepstrum).real)
