"""Prompts of the tiny Qwen3-TTS talker, for which its upstream's results are recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.tiny_qwen import BOOKS, CODES, values

EXPECTED = Path(__file__).with_name("qwen_talker_expected.json")
FRAMES = 6
CASES: dict[str, dict[str, Any]] = {
    "plain": {"kind": "base", "text": "Hello there, on the window!"},
    "preset": {
        "kind": "custom_voice", "text": "The inner thing.", "speaker": "Ryan", "language": "english",
        "instructions": "Whisper slowly",
    },
    "dialect": {"kind": "custom_voice", "text": "他 the", "speaker": "eric"},
    "described": {"kind": "voice_design", "text": "As it was.", "instructions": "An old man", "language": "english"},
    "vector": {"kind": "base", "text": "All 12 things", "words": "", "language": "chinese"},
    "clip": {"kind": "base", "text": "Hello again.", "words": "What he said", "language": "english"},
}  # fmt: skip
CLIP_CODES = (values("clip", BOOKS, 11) * CODES / 2 + CODES / 2).astype(np.int16)


def vector() -> np.ndarray:
    """The voice of the clip."""
    return values("voice", 64)


def projected(rows: Tensor) -> list[list[float]]:
    """Four numbers of each row, each a sum over all of its values."""
    return (rows.float() @ torch.from_numpy(values("projection", rows.shape[1], 4))).double().numpy().round(5).tolist()
