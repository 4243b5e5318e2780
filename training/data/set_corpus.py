"""Sets on the training device: audio, codes, and random rows "these words, in that voice, as in these clips"."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.codec.model import Codec
from training.data.corpus import SLOTS
from training.data.encode import encode_utterances
from training.data.phones import UNKNOWN
from training.sizes import CODEC
from training.teacher.sets import SENTENCES, TIMBRE_VALUES, TIMBRES
from training.teacher.synthesise import FRAME_SAMPLES, SAMPLE_RATE

MARGIN = 2048
"""Samples before and after a target, for windowed changes."""
MOST_SETS = 100_000


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """A batch: codes of one voice, the same words in another, and two clips of that other voice with other words."""

    codes: Tensor
    """(rows, codebooks, warm + frames) int64"""
    target: Tensor
    """(rows, margin + samples + margin), the audio of the last frames in the target voice."""
    clips: Tensor
    """(2, rows, clip samples)"""
    phones: Tensor
    """(rows, frames, 4) int64"""
    styles: Tensor
    """(rows, 128): the teacher's description of the target voice; NaN for people."""


class SetCorpus:
    """All complete shards of a folder, synthesised sets and people's separate, as far as they fit."""

    def __init__(self, folder: Path, codec: Codec, device: torch.device, hours: float) -> None:
        """``codec``: encodes all audio; the codes exist only in this corpus."""
        frames = int(hours * 3600 * SAMPLE_RATE) // FRAME_SAMPLES
        self.folder, self.device, self._codec = folder, device, codec
        self.audio = torch.zeros(frames * FRAME_SAMPLES, dtype=torch.int16, device=device)
        self.phones = torch.full((frames * SLOTS,), UNKNOWN, dtype=torch.int8, device=device)
        self.codes = torch.zeros(frames, CODEC.num_codebooks, dtype=torch.int16, device=device)
        self.starts = torch.zeros(2, MOST_SETS, dtype=torch.int64, device=device)
        """Frames at which synthesised (0) and people's (1) sets begin; three consecutive ones are a group."""
        self.lengths = torch.ones(2, MOST_SETS, dtype=torch.int64, device=device)
        self.styles = torch.full((2, MOST_SETS, TIMBRES, TIMBRE_VALUES), float("nan"), device=device)
        self.counts = torch.zeros(2, dtype=torch.int64, device=device)
        self.sets = [0, 0]
        self.frames = 0
        self._seen: set[str] = set()
        self.is_full = False

    @property
    def hours(self) -> float:
        return self.frames * FRAME_SAMPLES / SAMPLE_RATE / 3600

    def grow(self) -> None:
        """Load and encode shards completed since the last call, while there is room."""
        for path in sorted(self.folder.glob("sets_*.npz"), key=lambda path: path.stat().st_mtime):
            name = path.stem.removeprefix("sets_")
            if name not in self._seen and not self.is_full:
                self._take(name)

    def _take(self, name: str) -> None:
        with np.load(self.folder / f"sets_{name}.npz") as file:
            lengths, phones, styles = file["frames"], file["phones"], file["styles"]
            kind = int(file["is_person"][0])
        audio = torch.from_numpy(np.load(self.folder / f"audio_{name}.npy"))
        first, last = self.frames, self.frames + len(audio) // FRAME_SAMPLES
        start, ended = self.sets[kind], self.sets[kind] + len(lengths)
        if last > len(self.codes) or ended > MOST_SETS:
            self.is_full = True
            return
        self._seen.add(name)
        self.audio[first * FRAME_SAMPLES : last * FRAME_SAMPLES] = audio.to(self.device)
        self.phones[first * SLOTS : last * SLOTS] = torch.from_numpy(phones).to(self.device)
        every = np.repeat(lengths, TIMBRES)
        starts = first + np.concatenate([[0], np.cumsum(every)[:-1]])
        encode_utterances(self._codec, self.audio, starts, every, self.codes)
        self.starts[kind, start:ended] = torch.from_numpy(starts[::TIMBRES]).to(self.device)
        self.lengths[kind, start:ended] = torch.from_numpy(lengths).to(self.device)
        self.styles[kind, start:ended] = torch.from_numpy(styles).to(self.device)
        self.frames, self.sets[kind] = last, ended
        self.counts.copy_(torch.tensor(self.sets))

    def draw(self, rows: int, people: int, frames: int, warm: int, clip_frames: int, same: float) -> Rows:
        """Random rows, the last ``people`` of them people's; this share of the others keeps its own voice.

        No warm frames means the beginnings of utterances.
        """
        device = self.device
        kind = (torch.arange(rows, device=device) >= rows - people).long()
        index = (torch.rand(rows, device=device, dtype=torch.float64) * self.counts[kind]).long()
        length = self.lengths[kind, index]
        voice = torch.randint(0, TIMBRES, (rows,), device=device) * (1 - kind)  # a person's own sound is the first
        other = (voice + torch.randint(1, TIMBRES, (rows,), device=device)) % TIMBRES
        source = torch.where(torch.rand(rows, device=device) < same, voice, other)
        at = (torch.rand(rows, device=device) * (length - frames).clamp(min=0)).long() * bool(warm)
        start = self.starts[kind, index]
        steps = (at[:, None] + torch.arange(-warm, frames, device=device)).clamp(min=0)
        codes = self.codes[(start + source * length)[:, None] + steps].long().transpose(1, 2)
        place = start + voice * length + at
        samples = place[:, None] * FRAME_SAMPLES + torch.arange(-MARGIN, frames * FRAME_SAMPLES + MARGIN, device=device)
        target = self.audio[samples.clamp(0, len(self.audio) - 1)].float() / 32768
        phones = self.phones[place[:, None] * SLOTS + torch.arange(frames * SLOTS, device=device)]
        step = torch.randint(1, SENTENCES, (rows,), device=device)
        clips = [
            self._clip(kind, index, (index + offset) % SENTENCES, voice, clip_frames) for offset in (step, 3 - step)
        ]
        styles = self.styles[kind, index, voice]
        return Rows(codes, target, torch.stack(clips), phones.long().view(rows, frames, SLOTS), styles)

    def _clip(self, kind: Tensor, index: Tensor, member: Tensor, voice: Tensor, frames: int) -> Tensor:
        """Part of another sentence of the group in this voice (rows, samples); a short one is repeated."""
        index = index // SENTENCES * SENTENCES + member
        length = self.lengths[kind, index]
        start = self.starts[kind, index] + voice * length
        first = (torch.rand(len(index), device=self.device) * length * FRAME_SAMPLES).long()
        steps = (first[:, None] + torch.arange(frames * FRAME_SAMPLES, device=self.device)) % (length * FRAME_SAMPLES)[
            :, None
        ]
        return self.audio[start[:, None] * FRAME_SAMPLES + steps].float() / 32768
