"""Measures the sound of a part: silence, an end in mid-word, level, and seconds of speech."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from studio.audio.encode import floats
from studio.audio.loudness import amplitude
from studio.work.job import check_job

WINDOW = 0.01
"""Seconds."""
QUIET_DB = -50.0
"""A window with a lower RMS (full scale is 0 dB) is silence."""
BELOW_SPEECH_DB = 30.0
"""A window this far below the loud ones is silence too: a cloned voice may include room noise."""
SHORTEST_SOUND = 0.02
"""Minimum seconds of a sound; shorter ones within a silence are clicks."""
LOUD = 90
"""Percentile of the windows that counts as the level of speech."""
END_WINDOWS = 2
"""Number of windows at the end."""
END_BELOW_DB = 15.0
"""If these are less than this below the level of speech, the audio ends in mid-word."""
PIECE = 65_536
"""Windows processed at a time."""


@dataclass(frozen=True, slots=True)
class SoundFigures:
    """Figures of a part's audio, in seconds and dB of full scale."""

    seconds: float
    speech_s: float
    """Without silence."""
    level: float
    """RMS of the windows that are not silent; -inf if all are."""
    silences: tuple[tuple[float, float], ...]
    """Start and end of each in seconds, also before the first sound and after the last; empty without sound."""
    is_cut: bool
    """Whether it ends at the level of speech."""


def sound_figures(samples: np.ndarray, sample_rate: int) -> SoundFigures:
    """The figures of int16 mono samples (samples,). Blocking. Raises TooCostly, Cancelled."""
    window = max(1, round(WINDOW * sample_rate))
    levels = _levels(samples, window)
    loud_level = float(np.percentile(levels, LOUD)) if len(levels) else -np.inf
    is_sound = _without_clicks(levels > max(QUIET_DB, loud_level - BELOW_SPEECH_DB))
    indices = np.flatnonzero(is_sound)
    if not len(indices):
        return SoundFigures(len(samples) / sample_rate, 0.0, -np.inf, (), False)
    power = float(np.mean(10 ** (levels[indices] / 10)))
    edges = np.concatenate([[-1], indices, [len(levels)]])
    gaps = np.flatnonzero(np.diff(edges) > 1)
    silences = tuple((float(edges[at] + 1) * WINDOW, float(edges[at + 1]) * WINDOW) for at in gaps)
    is_cut = bool((levels[-END_WINDOWS:] > loud_level - END_BELOW_DB).all())
    speech = len(indices) * WINDOW
    return SoundFigures(len(samples) / sample_rate, speech, 10 * float(np.log10(power)), silences, is_cut)


def _levels(samples: np.ndarray, window: int) -> np.ndarray:
    """RMS of each window in dB (windows,); the last may be shorter."""
    levels, piece = [], window * PIECE
    floor = amplitude(-120.0)
    for at in range(0, len(samples), piece):
        check_job()
        sound = floats(samples[at : at + piece].tobytes())
        left = len(sound) % window
        windows = [np.square(sound[: len(sound) - left].reshape(-1, window)).mean(axis=1)]
        if left * 2 > window:
            windows.append(np.square(sound[-left:]).mean(keepdims=True))
        levels.append(20 * np.log10(np.maximum(np.sqrt(np.concatenate(windows)), floor)))
    return np.concatenate(levels) if levels else np.zeros(0)


def _without_clicks(is_sound: np.ndarray) -> np.ndarray:
    """Mark sounds shorter than SHORTEST_SOUND as silence."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_sound, [False]])))
    result = is_sound.copy()
    for start, end in edges.reshape(-1, 2):
        if (end - start) * WINDOW < SHORTEST_SOUND:
            result[start:end] = False
    return result
