"""Measures the sound of a take: silence at its ends and within, an end in mid-word, level, and seconds of speech."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from audio.encode import WAV_HEADER, floats
from audio.loudness import amplitude
from longform.library.project_records import ProjectSettings
from longform.timeline import Edges
from speechtext.errors import check_job
from studio.library.audio_files import AudioFiles
from studio.library.take import Take

WINDOW = 0.01  # seconds
QUIET_DB = -50.0  # a window with a lower RMS (full scale is 0 dB) is silence
BELOW_SPEECH_DB = 30.0
"""A window this far below the loud ones is silence too: a cloned voice may include room noise."""
SHORTEST_SOUND = 0.02  # seconds; shorter ones within a silence are clicks
LOUD = 90  # the percentile of the windows that counts as the level of speech
END_WINDOWS = 2  # at the end
END_BELOW_DB = 15.0  # if these are less than this below the level of speech, the audio ends in mid-word
PIECE = 65_536  # windows processed at a time
EDGE_PIECE = 100  # windows read at a time where only the silence at the ends is looked for
KEPT = 0.03  # seconds of silence that stay at an end, because words fade in and out
MAX_CACHED = 65_536


@dataclass(frozen=True, slots=True)
class SoundFigures:
    """Figures of a part's audio, in seconds and dB of full scale."""

    speech_s: float  # without silence
    level: float  # RMS of the windows that are not silent; -inf if all are
    silences: tuple[tuple[float, float], ...]
    """Start and end of each in seconds, also before the first sound and after the last; empty without sound."""
    is_cut: bool  # whether it ends at the level of speech


def sound_figures(samples: np.ndarray, sample_rate: int) -> SoundFigures:
    """The figures of int16 mono samples (samples,). Blocking. Raises TooCostly, Cancelled."""
    window = max(1, round(WINDOW * sample_rate))
    levels = _levels(samples, window)
    loud_level = float(np.percentile(levels, LOUD)) if len(levels) else -np.inf
    is_sound = levels > max(QUIET_DB, loud_level - BELOW_SPEECH_DB)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_sound, [False]])))
    for start, end in edges.reshape(-1, 2):
        if (end - start) * WINDOW < SHORTEST_SOUND:
            is_sound[start:end] = False
    indices = np.flatnonzero(is_sound)
    if not len(indices):
        return SoundFigures(0.0, -np.inf, (), False)
    power = float(np.mean(10 ** (levels[indices] / 10)))
    edges = np.concatenate([[-1], indices, [len(levels)]])
    gaps = np.flatnonzero(np.diff(edges) > 1)
    silences = tuple((float(edges[at] + 1) * WINDOW, float(edges[at + 1]) * WINDOW) for at in gaps)
    is_cut = bool((levels[-END_WINDOWS:] > loud_level - END_BELOW_DB).all())
    return SoundFigures(len(indices) * WINDOW, 10 * float(np.log10(power)), silences, is_cut)


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


def edges_of(files: AudioFiles, settings: ProjectSettings) -> Edges | None:
    """How to trim the takes of a project with these settings; None: not at all."""

    def edges(take: Take) -> tuple[int, int]:
        check_job()
        return quiet_edges(files.path(take.audio), take.sample_rate)

    return edges if settings.trim or settings.cue_speed > 1 else None


@lru_cache(maxsize=MAX_CACHED)
def quiet_edges(path: Path, sample_rate: int) -> tuple[int, int]:
    """Samples of silence at the beginning and at the end of a WAV in the library, whose files never change.

    Both are 0 for a file of silence only. Blocking. Raises OSError if the file is missing.
    """
    window = max(1, round(WINDOW * sample_rate))
    margin = round(KEPT * sample_rate)
    if path.stat().st_size <= WAV_HEADER:
        return 0, 0
    samples = np.memmap(path, "<i2", "r", WAV_HEADER)
    begin, end = _leading_silence(samples, window), _leading_silence(samples[::-1], window)
    if begin is None or end is None:
        return 0, 0
    return max(0, begin - margin), max(0, end - margin)


def _leading_silence(samples: np.ndarray, window: int) -> int | None:
    """Samples before the first audible window; None if all are silent."""
    for at in range(0, len(samples), EDGE_PIECE * window):
        part = samples[at : at + EDGE_PIECE * window]
        windows = part[: len(part) - len(part) % window].reshape(-1, window)
        levels = np.sqrt(np.square(windows / 32768.0).mean(axis=1))
        audible = np.flatnonzero(levels > amplitude(QUIET_DB))
        if len(audible):
            return at + int(audible[0]) * window
    return None
