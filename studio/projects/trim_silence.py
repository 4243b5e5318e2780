"""The silence at the beginning and at the end of a take, found by reading no more of its file than that."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from studio.audio.encode import WAV_HEADER
from studio.audio.loudness import amplitude

QUIET = amplitude(-50.0)
"""What has a lower RMS in a window, full scale being 1, is silence."""
WINDOW = 0.01
KEPT = 0.03
"""Seconds of the silence that stay: words begin and end softer than they are."""
PIECE = 1.0
"""Seconds that are read at a time."""
MOST_KNOWN = 65_536


@lru_cache(maxsize=MOST_KNOWN)
def quiet_edges(path: Path, sample_rate: int) -> tuple[int, int]:
    """Samples of silence at the beginning and at the end of a WAV of the library, whose files never change. Blocking.

    All of a file that is nothing but silence is left as it is. Raises OSError for a file that is gone.
    """
    window = max(1, round(WINDOW * sample_rate))
    piece, kept = window * round(PIECE / WINDOW), round(KEPT * sample_rate)
    if path.stat().st_size <= WAV_HEADER:
        return 0, 0
    samples = np.memmap(path, "<i2", "r", WAV_HEADER)
    begin, end = _quiet(samples, window, piece), _quiet(samples[::-1], window, piece)
    if begin is None or end is None:
        return 0, 0
    return max(0, begin - kept), max(0, end - kept)


def _quiet(samples: np.ndarray, window: int, piece: int) -> int | None:
    """Samples before the first window that can be heard; None: there is none."""
    for at in range(0, len(samples), piece):
        part = samples[at : at + piece]
        whole = part[: len(part) - len(part) % window].reshape(-1, window)
        levels = np.sqrt(np.square(whole / 32768.0).mean(axis=1))
        heard = np.flatnonzero(levels > QUIET)
        if len(heard):
            return at + int(heard[0]) * window
    return None
