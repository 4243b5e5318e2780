"""Finds words spoken twice in a row, which recognisers, like listeners, tend to write once."""

from __future__ import annotations

import numpy as np

from studio.work.job import check_job

RATE = 16_000
"""Hz, of the audio."""
HOP, WINDOW = 160, 400
"""Samples between frames and per frame: 10 ms, 25 ms."""
BANDS = 24
LOWEST, HIGHEST = 100.0, 7_000.0
"""Hz."""
SHORTEST, LONGEST = 0.2, 2.0
"""Seconds spoken twice: from a long syllable to half a sentence."""
LIKENESS = 0.5
"""Minimum mean cosine of both spectra. Words spoken twice exceed it in nine of ten cases, other words in two of five
sentences: a finding is only a reason to ask the recogniser."""
QUIET = 5.0
"""Natural logarithm below the loudest frame: quieter frames resemble each other, and are ignored."""
MOST = 2
"""Maximum number of spans returned, likeliest first."""


def repeated_spans(pcm: np.ndarray) -> list[tuple[float, float]]:
    """The spans of audio that repeat the preceding seconds; ``pcm``: float32 (samples,) at RATE.

    Blocking: a hundredth of the audio's length. Raises TooCostly, Cancelled.
    """
    spectra, is_loud = _spectra(pcm)
    candidates = list[tuple[float, int, int]]()
    for lag in range(round(SHORTEST * RATE / HOP), min(round(LONGEST * RATE / HOP), len(spectra) // 2) + 1):
        check_job()
        likeness = (spectra[:-lag] * spectra[lag:]).sum(axis=1) * (is_loud[:-lag] & is_loud[lag:])
        sums = np.concatenate([[0.0], np.cumsum(likeness)])
        means = (sums[lag:] - sums[:-lag]) / lag
        if len(means):
            at = int(means.argmax())
            candidates.append((float(means[at]), at, lag))
    best = list[tuple[float, float]]()
    for likeness, at, lag in sorted(candidates, reverse=True):
        start, end = ((at + shift) * HOP / RATE for shift in (lag, 2 * lag))
        if likeness < LIKENESS or len(best) == MOST:
            break
        if all(end <= other_start or start >= other_end for other_start, other_end in best):
            best.append((start, end))
    return best


def _spectra(pcm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shape of the spectrum in each frame (frames, BANDS), of length one, and whether the frame is loud."""
    if len(pcm) < WINDOW:
        return np.zeros((0, BANDS), np.float32), np.zeros(0, bool)
    frames = np.lib.stride_tricks.sliding_window_view(pcm, WINDOW)[::HOP]
    edges = np.geomspace(LOWEST, HIGHEST, BANDS + 1) / RATE * WINDOW
    starts = np.maximum.accumulate(np.arange(BANDS) + np.floor(edges[:-1])).astype(int)
    power = np.zeros((len(frames), BANDS), np.float32)
    for at in range(0, len(frames), 4096):
        check_job()
        spectrum = np.abs(np.fft.rfft(frames[at : at + 4096] * np.hanning(WINDOW), axis=1)) ** 2
        power[at : at + 4096] = np.add.reduceat(spectrum, np.minimum(starts, spectrum.shape[1] - 1), axis=1)
    levels = np.log(power + 1e-8)
    loudness = np.log(power.sum(axis=1) + 1e-8)
    shape = levels - levels.mean(axis=0)
    shape -= shape.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(shape, axis=1, keepdims=True)
    return shape / np.maximum(norms, 1e-6), loudness > loudness.max() - QUIET
