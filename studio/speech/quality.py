"""The quality check: detects takes that are too short for their text, silent, stuck in a loop, or invalid numbers."""

from __future__ import annotations

import math

import numpy as np

from engine import AudioChunk
from speechtext.tags import TAG
from studio.errors import DegenerateSpeech

LETTERS_A_SECOND = 60
"""Four times as fast as a fast speaker."""
SILENCE = 1e-4
"""A peak under -80 dB is not a voice."""
LOOP_SECONDS = 3.0
"""Seconds examined for a loop: 64 frames of S2 Pro, 37 of Qwen3-TTS."""
LOOP_PERIODS = range(1, 9)
"""If these frames repeat in all codebooks with at most this period, they are not speech."""


class QualityCheck:
    """Checks one take, chunk by chunk. Reports silence and brevity at the end, the rest at once."""

    def __init__(self, text: str, frame_rate: float, codes: np.ndarray | None = None) -> None:
        """``codes``: codes (codebooks, frames) of the take's beginning, which has been checked before."""
        letters = sum(character.isalnum() for character in TAG.sub("", text))
        self._min_frames = int(letters / LETTERS_A_SECOND * frame_rate)
        self._frames = 0 if codes is None else codes.shape[1]
        self._peak = 1.0 if self._frames else 0.0
        self._loop_frames = int(LOOP_SECONDS * frame_rate)
        self._recent = b"" if codes is None else _bytes_of(codes[:, -self._loop_frames :])
        """The latest frames, one after the other."""

    def watch(self, chunk: AudioChunk) -> None:
        """Check a chunk. Raises DegenerateSpeech, which names the fault."""
        peak = float(np.abs(chunk.pcm).max(initial=0))  # 0.0 also for invalid samples
        if not math.isfinite(peak):
            raise DegenerateSpeech("the speech contains invalid samples")
        self._frames += chunk.frames
        self._peak = max(self._peak, peak)
        if chunk.frames:
            self._check_loop(chunk.codes)
        if chunk.finish_reason == "stop" and self._frames < self._min_frames:
            raise DegenerateSpeech(f"the speech ended after {self._frames} frames, too soon for its text")
        if chunk.finish_reason and self._frames and self._peak < SILENCE:
            raise DegenerateSpeech("the speech is silent")

    def _check_loop(self, codes: np.ndarray) -> None:
        size = codes.itemsize * len(codes)  # bytes per frame
        self._recent = (self._recent + _bytes_of(codes))[-self._loop_frames * size :]
        if len(self._recent) < self._loop_frames * size:
            return
        for period in LOOP_PERIODS:
            if self._recent[period * size :] == self._recent[: -period * size]:
                raise DegenerateSpeech("the speech got stuck in a loop")


def _bytes_of(codes: np.ndarray) -> bytes:
    """Frames as bytes, which compare ten times as fast as such small arrays."""
    return codes.T.tobytes()
