"""The synthesised corpus on the training device: one long int16 signal, its phones, and the utterances' positions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from training.data.phones import UNKNOWN
from training.teacher.synthesise import FRAME_SAMPLES, SAMPLE_RATE, SLOT_SAMPLES

SLOTS = FRAME_SAMPLES // SLOT_SAMPLES


class Corpus:
    """All shards of a folder that are complete when it is created (or `grow` is called), as far as they fit.

    audio (samples,) int16, phones (samples / 512,) int8 and speakers (samples / 2048,) int32, a number for each name,
    are on `device`; every utterance starts on a frame boundary.
    """

    def __init__(
        self, folder: Path, device: torch.device, capacity_hours: float, names: list[str] | None = None
    ) -> None:
        """``names``: only these shards, in this order."""
        samples = int(capacity_hours * 3600 * SAMPLE_RATE) // FRAME_SAMPLES * FRAME_SAMPLES
        self.folder = folder
        self.audio = torch.zeros(samples, dtype=torch.int16, device=device)
        self.phones = torch.full((samples // SLOT_SAMPLES,), UNKNOWN, dtype=torch.int8, device=device)
        self.speakers = torch.zeros((samples // FRAME_SAMPLES,), dtype=torch.int32, device=device)
        self._numbers: dict[str, int] = {}
        self.samples = 0
        self._known = torch.zeros((), dtype=torch.float64, device=device)
        self.frames: list[int] = []
        """Of every utterance, in the order of the signal."""
        self._seen: set[str] = set()
        self.is_full = False
        for name in names or ():
            self._take(name)
        if names is None:
            self.grow()

    def grow(self) -> None:
        """Load shards completed since the last call, while there is room."""
        for meta in sorted(self.folder.glob("meta_*.json"), key=lambda path: path.stat().st_mtime):
            name = meta.stem.removeprefix("meta_")
            if name in self._seen or self.is_full:
                continue
            self._take(name)

    def _take(self, name: str) -> None:
        audio = torch.from_numpy(np.load(self.folder / f"audio_{name}.npy"))
        end = self.samples + len(audio)
        if end > len(self.audio):
            self.is_full = True
            return
        self._seen.add(name)
        self.audio[self.samples : end] = audio.to(self.audio.device)
        phones = torch.from_numpy(np.load(self.folder / f"phones_{name}.npy"))
        self.phones[self.samples // SLOT_SAMPLES : end // SLOT_SAMPLES] = phones.to(self.phones.device)
        rows = json.loads((self.folder / f"meta_{name}.json").read_text())
        frames = [int(row[1]) for row in rows]
        numbers = np.array([self._numbers.setdefault(row[0], len(self._numbers)) for row in rows], np.int32)
        first, last = self.samples // FRAME_SAMPLES, end // FRAME_SAMPLES
        self.speakers[first:last] = torch.from_numpy(np.repeat(numbers, frames)).to(self.speakers.device)
        self.frames += frames
        self.samples = end
        self._known.fill_(end)

    @property
    def hours(self) -> float:
        return self.samples / SAMPLE_RATE / 3600

    def segments(self, rows: int, frames: int) -> tuple[Tensor, Tensor, Tensor]:
        """Random pieces: audio (rows, 1, frames · 2048) in [-1, 1], phones (rows, frames, 4) int64, speakers (rows,).

        They start at any multiple of 512 samples, so that codes do not depend on one frame phase. The speaker is that
        of the first frame, or -1 if the piece has more than one.
        """
        device = self.audio.device
        length = frames * FRAME_SAMPLES
        places = (self._known - length) / SLOT_SAMPLES
        slot = (torch.rand(rows, 1, device=device, dtype=torch.float64) * places).long()
        audio = self.audio[slot * SLOT_SAMPLES + torch.arange(length, device=device)].float() / 32768
        phones = self.phones[slot + torch.arange(frames * SLOTS, device=device)].long()
        first, last = (self.speakers[(slot[:, 0] + at) // SLOTS] for at in (0, frames * SLOTS - 1))
        return audio[:, None], phones.view(rows, frames, SLOTS), torch.where(first == last, first, -1)
