"""Measures the silence at both ends of a take, reading only that much of its file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from studio.audio.encode import WAV_HEADER
from studio.audio.loudness import amplitude

QUIET = amplitude(-50.0)
"""A window with a lower RMS (full scale is 1) is silence."""
WINDOW = 0.01
"""Seconds."""
KEPT = 0.03
"""Seconds of silence to keep, because words fade in and out."""
PIECE = 1.0
"""Seconds read at a time."""
MAX_CACHED = 65_536


@lru_cache(maxsize=MAX_CACHED)
def quiet_edges(path: Path, sample_rate: int) -> tuple[int, int]:
    """Samples of silence at the beginning and at the end of a WAV in the library, whose files never change.

    Both are 0 for a file of silence only. Blocking. Raises OSError if the file is missing.
    """
    window = max(1, round(WINDOW * sample_rate))
    piece, margin = window * round(PIECE / WINDOW), round(KEPT * sample_rate)
    if path.stat().st_size <= WAV_HEADER:
        return 0, 0
    samples = np.memmap(path, "<i2", "r", WAV_HEADER)
    begin, end = _leading_silence(samples, window, piece), _leading_silence(samples[::-1], window, piece)
    if begin is None or end is None:
        return 0, 0
    return max(0, begin - margin), max(0, end - margin)


def _leading_silence(samples: np.ndarray, window: int, piece: int) -> int | None:
    """Samples before the first audible window; None if all are silent."""
    for at in range(0, len(samples), piece):
        part = samples[at : at + piece]
        windows = part[: len(part) - len(part) % window].reshape(-1, window)
        levels = np.sqrt(np.square(windows / 32768.0).mean(axis=1))
        audible = np.flatnonzero(levels > QUIET)
        if len(audible):
            return at + int(audible[0]) * window
    return None
