"""The sentences to speak, with the teacher's phonemes for both accents, as training.texts.prompts packed them."""

from __future__ import annotations

from pathlib import Path

import numpy as np


class Prompts:
    """Texts and readings by index."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as arrays:
            self._arrays = {name: arrays[name] for name in arrays.files}

    def __len__(self) -> int:
        return len(self._arrays["text_ends"])

    def _slice(self, name: str, index: int) -> np.ndarray:
        ends = self._arrays[f"{name}_ends"]
        return self._arrays[name][ends[index - 1] if index else 0 : ends[index]]

    def text(self, index: int) -> str:
        return self._slice("text", index).tobytes().decode()

    def tokens(self, index: int, british: bool) -> np.ndarray:
        """Ids of the teacher's vocabulary (n,) int64, without the padding at both ends."""
        return self._slice("british" if british else "american", index).astype(np.int64)
