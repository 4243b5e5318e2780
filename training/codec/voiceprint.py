"""A small network that distinguishes speakers, trained with the codebooks and then frozen, to preserve voices.

A codec trained only on spectra gives an unknown speaker the nearest voice it knows. Trained by supervised
contrastive learning (Khosla et al., 2020): both halves of a segment belong to one speaker, as do all with equal
numbers.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.codec.listener import SpectrumListener, apart

WIDTH, LAYERS, DIMENSIONS = 192, 5, 128
TEMPERATURE = 0.1


class Voiceprint(SpectrumListener):
    """Audio (rows, 1, samples) → a direction (rows, 128) of length one, and the features of every layer."""

    def __init__(self) -> None:
        super().__init__(WIDTH, LAYERS)
        self.pooled = nn.Linear(2 * WIDTH, DIMENSIONS)

    def forward(self, audio: Tensor) -> tuple[Tensor, list[Tensor]]:
        features = self.features(audio)
        return F.normalize(self.pooled(over_time(features[-1])).float(), dim=-1), features

    def loss(self, audio: Tensor, speakers: Tensor) -> tuple[Tensor, Tensor]:
        """The contrastive loss of segments' halves, and the share whose nearest half is their own.

        Segments with negative speakers (rows,), which belong to two people, do not count.
        """
        halves = torch.cat(audio.chunk(2, dim=-1))
        prints, _ = self(halves)
        numbers = torch.cat([speakers, speakers])
        counted = numbers >= 0
        itself = torch.eye(len(numbers), dtype=torch.bool, device=audio.device)
        likeness = (prints @ prints.t() / TEMPERATURE).masked_fill(itself | ~counted[None], -1e4)
        same = (numbers[:, None] == numbers[None]) & ~itself & counted[None] & counted[:, None]
        chances = likeness.log_softmax(-1)
        of_each = -(chances * same).sum(-1) / same.sum(-1).clamp(min=1)
        nearest = same.gather(1, likeness.argmax(-1, keepdim=True))[:, 0]
        total = counted.sum().clamp(min=1)
        return (of_each * counted).sum() / total, (nearest & counted).sum() / total

    def distance(self, ours: Tensor, theirs: Tensor) -> Tensor:
        """The difference of two signals' speakers: one minus the cosine, and the relative distance of the features."""
        with torch.no_grad():
            real, real_features = self(theirs)
        fake, fake_features = self(ours)
        return 2 * (1 - (fake * real).sum(-1)).mean() + 0.5 * apart(fake_features, real_features)


def over_time(x: Tensor) -> Tensor:
    """Means and deviations (rows, 2 · width) over the steps of x (rows, width, steps)."""
    x = x.float()
    return torch.cat([x.mean(-1), (x.var(-1) + 1e-5).sqrt()], -1)
