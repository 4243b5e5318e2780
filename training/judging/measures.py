"""Measurements without a judge: pitch, voiced share, confidence intervals; and reading WAV files."""

from __future__ import annotations

import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from training.codec.spectra import SAMPLE_RATE


def pitches(audio: np.ndarray) -> np.ndarray:
    """Pitch in Hz of each loud frame (frames,), by normalised autocorrelation; 0 if unvoiced."""
    size, hop = 2048, 1024
    low, high = SAMPLE_RATE // 420, SAMPLE_RATE // 60
    pieces = np.lib.stride_tricks.sliding_window_view(audio, size)[::hop]
    pieces = pieces[np.sqrt((pieces**2).mean(1)) > 0.02]
    spectrum = np.fft.rfft(pieces - pieces.mean(1, keepdims=True), 2 * size)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[:, :size]
    correlation = correlation / (correlation[:, :1] + 1e-9) * (size / (size - np.arange(size)))
    pitch = np.zeros(len(pieces))
    for index, lags in enumerate(correlation[:, low:high]):
        if lags.max() > 0.5:
            # The first lag that is nearly as good, since multiples of the period fit as well.
            early = int(np.flatnonzero(lags > 0.85 * lags.max())[0])
            pitch[index] = SAMPLE_RATE / (early + int(lags[early : early + 40].argmax()) + low)
    return pitch


def median_pitch(audio: np.ndarray) -> float:
    """Median pitch in Hz of the voiced frames; 0 when nothing is voiced."""
    voiced = [p for p in pitches(audio).tolist() if p]
    return float(np.median(voiced)) if voiced else 0.0


def voiced_share(audio: np.ndarray) -> float:
    """The share of loud frames that have a pitch."""
    pitch = pitches(audio)
    return float((pitch > 0).mean()) if len(pitch) else 0.0


def interval(over: Sequence[float], under: Sequence[float] | None = None, draws: int = 2000) -> tuple[float, float]:
    """95 % bootstrap interval of sum(over) / sum(under), sentence by sentence; without ``under``, of the mean."""
    top = np.asarray(over, float)
    bottom = np.ones_like(top) if under is None else np.asarray(under, float)
    picked = np.random.default_rng(0).integers(0, len(top), (draws, len(top)))
    ratios = top[picked].sum(1) / bottom[picked].sum(1)
    low, high = np.percentile(ratios, (2.5, 97.5))
    return float(low), float(high)


def read_wave(path: Path) -> np.ndarray:
    """A 16-bit mono file as float32 (samples,)."""
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
