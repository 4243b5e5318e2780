"""A limiter with lookahead: applies a gain and keeps true peaks below a ceiling; same number of samples."""

from __future__ import annotations

import math

import numpy as np

from audio.loudness import amplitude

REACH = 0.02
"""Seconds over which the gain falls before a peak and recovers after it; less would sound rough."""
PHASES, TAPS = 4, 12
"""True peaks are searched at four times the rate, with twelve taps per phase, as in BS.1770's Annex 2."""


class Limiter:
    """Takes mono float32 audio piece by piece; the output lags by about REACH and is complete after `finish`.

    The gain at a sample is the mean, over REACH on both sides, of the lowest gain that any peak within REACH of there
    needs: so it is never too high, and it has no corners. Audio below the ceiling is only multiplied by the gain. The
    output is the same wherever the pieces are cut.
    """

    def __init__(self, sample_rate: int, gain: float, ceiling: float) -> None:
        """``gain`` in dB, ``ceiling`` in dBTP."""
        self._gain, self._ceiling = amplitude(gain), amplitude(ceiling)
        self._reach = math.ceil(REACH * sample_rate)
        self._context = 2 * self._reach + TAPS
        self._pending = np.zeros(self._context, np.float32)
        self._samples_in = self._samples_out = 0

    def write(self, pcm: np.ndarray) -> np.ndarray:
        """The samples that are final."""
        self._samples_in += len(pcm)
        self._pending = np.concatenate([self._pending, pcm.astype(np.float32, copy=False) * np.float32(self._gain)])
        if len(self._pending) <= 2 * self._context:
            return np.zeros(0, np.float32)
        output = self._limited(self._pending)
        self._pending = self._pending[-2 * self._context :]
        self._samples_out += len(output)
        return output

    def finish(self) -> np.ndarray:
        """The remaining samples; the limiter cannot be used afterwards."""
        left = self._samples_in - self._samples_out
        if not left:
            return np.zeros(0, np.float32)
        return self._limited(np.concatenate([self._pending, np.zeros(2 * self._context, np.float32)]))[:left]

    def _limited(self, sound: np.ndarray) -> np.ndarray:
        """The output for all but the context on both sides."""
        inner = sound[self._context : -self._context]
        peaks = _between(sound)
        if peaks.max() <= self._ceiling:
            return inner
        gain = np.minimum(1.0, self._ceiling / np.maximum(peaks, 1e-9))
        width = 2 * self._reach + 1
        lowest = _running_min(gain, width)
        sums = np.concatenate([[0.0], np.cumsum(lowest, dtype=np.float64)])
        gains = (sums[width:] - sums[:-width]) / width
        return inner * gains[TAPS : TAPS + len(inner)].astype(np.float32)


def _running_min(values: np.ndarray, width: int) -> np.ndarray:
    """The lowest of every ``width`` neighbours, by windows that double."""
    span = 1
    while span < width:
        step = min(span, width - span)
        values = np.minimum(values[:-step], values[step:])
        span += step
    return values


def _between(pcm: np.ndarray) -> np.ndarray:
    """The highest magnitude (samples,) at each sample or right before it, at PHASES times the rate."""
    highest = np.abs(pcm)
    for taps in _INTERPOLATION:
        np.maximum(highest, np.abs(np.convolve(pcm, taps, "same")), out=highest)
    return highest


def _interpolation() -> list[np.ndarray]:
    """Windowed sinc filters for the points at a quarter, a half and three quarters of the way to the previous
    sample."""
    filters = []
    for phase in range(1, PHASES):
        x = np.arange(TAPS) - (TAPS - 1) // 2 - phase / PHASES
        taps = np.sinc(x) * np.cos(np.pi * x / (TAPS + 1)) ** 2
        filters.append((taps / taps.sum()).astype(np.float32))
    return filters


_INTERPOLATION = _interpolation()
