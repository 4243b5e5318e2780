"""The quality check: a take that is too short for its words, silent, stuck in a loop, or not numbers at all."""

from __future__ import annotations

import re

import numpy as np

from engine import AudioChunk
from studio.errors import DegenerateSpeech

LETTERS_A_SECOND = 60
"""Four times as fast as a hurried speaker."""
SILENCE = 1e-4
"""A peak under -80 dB is no voice."""
LOOP_FRAMES = 64
"""So many frames (3 s of S2 Pro) …"""
LOOP_PERIODS = range(1, 9)
"""… that repeat, in all their codebooks, every so many frames are no speech."""

_TAGS = re.compile(r"\[[^\[\]]*\]|<\|[^|>]*\|>")


class QualityCheck:
    """Watches one take, chunk by chunk. Silence and brevity are told at its end, the rest at once."""

    def __init__(self, text: str, frame_rate: float, heard: np.ndarray | None = None) -> None:
        """``heard``: codes (codebooks, frames) of the take's beginning, which passed when they were spoken."""
        letters = sum(character.isalnum() for character in _TAGS.sub("", text))
        self._fewest = int(letters / LETTERS_A_SECOND * frame_rate)
        self._frames = 0 if heard is None else heard.shape[1]
        self._peak = 1.0 if self._frames else 0.0
        self._recent = np.zeros((0, 0), np.int16) if heard is None else heard[:, -LOOP_FRAMES:]

    def watch(self, chunk: AudioChunk) -> None:
        """Raises DegenerateSpeech, which names what is wrong."""
        if not np.isfinite(chunk.pcm).all():
            raise DegenerateSpeech("the speech contains invalid samples")
        self._frames += chunk.frames
        if len(chunk.pcm):
            self._peak = max(self._peak, float(np.abs(chunk.pcm).max()))
        if chunk.frames:
            self._look_for_loop(chunk.codes)
        if chunk.finish_reason == "stop" and self._frames < self._fewest:
            raise DegenerateSpeech(f"the speech ended after {self._frames} frames, too soon for its text")
        if chunk.finish_reason and self._frames and self._peak < SILENCE:
            raise DegenerateSpeech("the speech came out silent")

    def _look_for_loop(self, codes: np.ndarray) -> None:
        held = self._recent if self._recent.size else codes[:, :0]
        self._recent = np.concatenate([held, codes], axis=1)[:, -LOOP_FRAMES:]
        if self._recent.shape[1] < LOOP_FRAMES:
            return
        for period in LOOP_PERIODS:
            if np.array_equal(self._recent[:, period:], self._recent[:, :-period]):
                raise DegenerateSpeech("the speech got stuck in a loop")
