"""Raises quiet clips to the usual level before they are encoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from studio.audio.loudness import amplitude
from studio.audio.read import Clip
from studio.voices.measure import speech_level, to_decibels

SPEECH_DB = -22.0
"""RMS level to which quiet speech is raised, and which the advisor suggests."""
QUIET_DB = -34.0
"""Speech below this level is quiet. Codecs handle such levels badly: at -58 dB a take is half as long again as it
should be, at -70 dB a quarter of its words are wrong."""
PEAK_DB = -1.0
"""The highest peak allowed after raising."""


def gain_to_usual(speech_db: float, peak_db: float) -> float:
    """The gain in decibels that raises speech to SPEECH_DB without a peak over PEAK_DB."""
    return min(SPEECH_DB - speech_db, PEAK_DB - peak_db)


def levelled(clip: Clip) -> Clip:
    """The clip as it is encoded: raised if its speech is quiet, else unchanged. Blocking."""
    speech_db = speech_level(clip.pcm, clip.sample_rate)
    gain = gain_to_usual(speech_db, to_decibels(float(np.abs(clip.pcm).max())))
    if speech_db >= QUIET_DB or gain <= 0:
        return clip
    return replace(clip, pcm=clip.pcm * np.float32(amplitude(gain)))


def is_levelled(figures: Mapping[str, float]) -> bool:
    """Whether `levelled` raises a clip with these measurements. A library can hold codes from before clips were
    raised."""
    return figures.get("speech_db", SPEECH_DB) < QUIET_DB
