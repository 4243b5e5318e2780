"""The codes and the clip of which `record_qwen` recorded what qwen-tts makes, and where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

EXPECTED = Path(__file__).parent / "qwen_expected.json"
SAMPLES = slice(None, None, 191)
"""The recorded ones of the decoded samples."""


def codes(frames: int = 40, codebooks: int = 16, size: int = 64) -> Tensor:
    """Codes (codebooks, frames) int64."""
    return torch.from_numpy(np.random.default_rng(5).integers(0, size, (codebooks, frames)))


def sound(samples: int = 1920 * 13 - 700) -> Tensor:
    """A clip (samples,) float32 at 24 kHz: some tones in noise, quieter in its second half."""
    draw, time = np.random.default_rng(6), np.arange(samples) / 24000
    tones = sum(np.sin(2 * np.pi * (pitch * time + 30 * time**2)) for pitch in (140.0, 420.0, 1900.0))
    value = (0.1 * tones + 0.05 * draw.standard_normal(samples)) * np.where(time < time[-1] / 2, 1, 0.2)
    return torch.from_numpy(value).float()
