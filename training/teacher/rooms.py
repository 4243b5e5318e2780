"""Makes a clean recording sound like a microphone in a room: tone, band, echo and a little noise."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

TONE_OCTAVES = tuple(1.5 * step for step in range(8))
"""Octaves above 40 Hz at which a tone's decibels are given."""


def coloured(audio: np.ndarray, rate: int, decibels: Sequence[float]) -> np.ndarray:
    """Apply a smooth curve of gains to the spectrum of audio (samples,) float32."""
    size = 1 << (len(audio) + rate // 20).bit_length()
    spectrum = np.fft.rfft(audio, size) * _smooth(np.fft.rfftfreq(size, 1 / rate), decibels)
    return np.fft.irfft(spectrum, size)[: len(audio)].astype(np.float32)


def roughened(audio: np.ndarray, rate: int, rng: random.Random) -> np.ndarray:
    """Degrade audio (samples,) float32 at random, with the same length and level."""
    generator = np.random.default_rng(rng.getrandbits(32))
    size = 1 << (len(audio) + rate // 2).bit_length()
    spectrum = np.fft.rfft(audio, size) * _tone(np.fft.rfftfreq(size, 1 / rate), rng)
    if rng.random() < 0.6:
        spectrum *= np.fft.rfft(_echo(rate, rng, generator), size)
    out = np.fft.irfft(spectrum, size)[: len(audio)]
    level = np.sqrt(np.mean(audio**2)) / (np.sqrt(np.mean(out**2)) + 1e-9)
    out = out * level
    return np.clip(out, -0.99, 0.99).astype(np.float32)


def _tone(frequencies: np.ndarray, rng: random.Random) -> np.ndarray:
    """Gains of a poor microphone: a smooth curve within ±8 dB over octaves, and often a narrower band."""
    gains = _smooth(frequencies, [rng.uniform(-8, 8) for _ in TONE_OCTAVES])
    if rng.random() < 0.5:
        top = rng.uniform(3400, 10000)
        gains = gains / np.sqrt(1 + (frequencies / top) ** 12)
    if rng.random() < 0.5:
        bottom = rng.uniform(60, 250)
        gains = gains / np.sqrt(1 + (bottom / np.maximum(frequencies, 1.0)) ** 6)
    return gains


def _smooth(frequencies: np.ndarray, decibels: Sequence[float]) -> np.ndarray:
    octaves = np.log2(np.maximum(frequencies, 40.0) / 40.0)
    return 10 ** (np.interp(octaves, TONE_OCTAVES, decibels) / 20)


def _echo(rate: int, rng: random.Random, generator: np.random.Generator) -> np.ndarray:
    """A room's impulse response: the direct sound, then noise that decays within 0.1 to 0.35 s."""
    decay = rng.uniform(0.1, 0.35)
    seconds = np.arange(int(decay * rate)) / rate
    tail = generator.standard_normal(len(seconds)) * 10 ** (-3 * seconds / decay)
    tail *= rng.uniform(0.1, 0.5) / np.sqrt((tail**2).sum())
    start = int(rng.uniform(0.002, 0.008) * rate)
    response = np.zeros(start + len(tail))
    response[start:] = tail
    response[0] = 1.0
    return response
