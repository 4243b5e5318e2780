"""Caches for code that analyses and measures clips: many tests use the same few clips.

The results stay the same: each test process analyses each clip once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable

import numpy as np

from audio import advisor
from audio.measure import Figures
from audio.voiceprint import Voiceprints
from studio.voices.denoiser import DeepFilterNet

SHORT = 500_000
"""In samples; longer clips are rare and not cached."""


def hasten() -> None:
    """Cache the results of noise reduction, voiceprints and measurements of each clip in this process."""
    plain_call, plain_spans, plain_measure = DeepFilterNet.__call__, Voiceprints.spans, advisor.measure
    measured: dict[Hashable, Figures] = {}
    heard: dict[Hashable, np.ndarray] = {}

    def call(model: DeepFilterNet, pcm: np.ndarray) -> np.ndarray:
        if len(pcm) > SHORT:
            return plain_call(model, pcm)
        key = "denoised", _digest(pcm)
        if key not in heard:
            heard[key] = plain_call(model, pcm)
        return heard[key].copy()

    def spans(prints: Voiceprints, pcm: np.ndarray, rate: int, most: int = 4) -> np.ndarray:
        key = "spans", _digest(pcm), rate, most, prints.is_there
        if key not in heard:
            heard[key] = plain_spans(prints, pcm, rate, most)
        return heard[key].copy()

    def measure(pcm: np.ndarray, rate: int) -> Figures:
        key = _digest(pcm), pcm.shape, rate
        if key not in measured:
            measured[key] = plain_measure(pcm, rate)
        return measured[key]

    advisor.measure = measure
    DeepFilterNet.__call__ = call  # type: ignore[method-assign, assignment]
    Voiceprints.spans = spans  # type: ignore[method-assign, assignment]


def _digest(pcm: np.ndarray) -> bytes:
    return hashlib.sha256(pcm.tobytes()).digest()
