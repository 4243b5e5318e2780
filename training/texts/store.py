"""The file of prompts: texts, kinds, and phonemes in two accents; readable with NumPy alone, without pickle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ACCENTS = ("american", "british")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A row: the model's input, its kind, and Kokoro's tokens by accent."""

    text: str
    kind: str
    tokens: tuple[np.ndarray, np.ndarray]  # uint8, American and British


class Prompts:
    """Rows of a prompt file, in an order in which every prefix is a good mixture."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as file:
            self._arrays = {name: file[name] for name in file.files}
        self.kind_names: list[str] = self._arrays["kind_names"].tolist()

    def __len__(self) -> int:
        return len(self._arrays["kinds"])

    def text(self, row: int) -> str:
        """The model's input."""
        return bytes(self._slice("text", row)).decode()

    def kind(self, row: int) -> str:
        """prose, dialogue, manual, gloss, everyday, number, spelled or short."""
        return self.kind_names[self._arrays["kinds"][row]]

    def tokens(self, row: int, british: bool) -> np.ndarray:
        """Kokoro's token ids (n,) int64, without the 0 that the model needs before and after them."""
        return self._slice(ACCENTS[british], row).astype(np.int64)

    def _slice(self, name: str, row: int) -> np.ndarray:
        ends = self._arrays[f"{name}_ends"]
        return self._arrays[name][ends[row - 1] if row else 0 : ends[row]]


def write_prompts(path: Path, rows: Sequence[Prompt]) -> None:
    """Write the file completely: under another name first, so that a reader never sees an incomplete file."""
    kind_names = sorted({row.kind for row in rows})
    arrays: dict[str, Any] = {
        "kind_names": np.array(kind_names),
        "kinds": np.array([kind_names.index(row.kind) for row in rows], np.uint8),
        **_joined("text", [np.frombuffer(row.text.encode(), np.uint8) for row in rows]),
    }
    for accent, name in enumerate(ACCENTS):
        arrays |= _joined(name, [row.tokens[accent] for row in rows])
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays)
    os.replace(unfinished, path)


def _joined(name: str, parts: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.concatenate(parts), f"{name}_ends": np.cumsum([len(part) for part in parts], dtype=np.int32)}
