"""A small network that tells speakers apart, trained beside the codebooks and then frozen: a voice must stay itself.

A codec that has only spectra to match gives a stranger the nearest voice that it knows. Taught by supervised
contrastive learning (Khosla et al., 2020): the halves of a segment are one speaker's, and so are all of equal number.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.codec.spectra import log_mel

BANDS, WIDTH, LAYERS, DIMENSIONS = 80, 192, 5, 128
TEMPERATURE = 0.1


class Voiceprint(nn.Module):
    """Audio (rows, 1, samples) → a direction (rows, 128) of length one, and the features of every layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(BANDS, WIDTH, 5, padding=2)
        self.layers = nn.ModuleList(
            nn.Conv1d(WIDTH, WIDTH, 5, stride=2 if layer == 0 else 1, padding=2) for layer in range(LAYERS)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(1, WIDTH) for _ in range(LAYERS))
        self.pooled = nn.Linear(2 * WIDTH, DIMENSIONS)

    def forward(self, audio: Tensor) -> tuple[Tensor, list[Tensor]]:
        with torch.autocast(audio.device.type, enabled=False):
            spectrum = log_mel(audio.float(), bands=BANDS)
        x, features = F.gelu(self.first(spectrum)), []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            y = F.gelu(norm(layer(x)))
            x = y if y.shape != x.shape else x + y
            features.append(x)
        return F.normalize(self.pooled(over_time(x)).float(), dim=-1), features

    def loss(self, audio: Tensor, speakers: Tensor) -> tuple[Tensor, Tensor]:
        """How badly the halves of segments are told from those of others, and the share whose nearest is its own.

        Segments of speakers (rows,) below nought, which are two persons', do not count.
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
        """How unlike two signals' speakers are: one minus the cosine, and the relative distance of the features."""
        with torch.no_grad():
            real, real_features = self(theirs)
        fake, fake_features = self(ours)
        pairs = list(zip(fake_features, real_features, strict=True))[1::2]
        apart = torch.stack([(f - r).abs().mean() / (r.abs().mean() + 1e-4) for f, r in pairs]).mean()
        return 2 * (1 - (fake * real).sum(-1)).mean() + 0.5 * apart


def over_time(x: Tensor) -> Tensor:
    """Means and deviations (rows, 2 · width) over the steps of x (rows, width, steps)."""
    x = x.float()
    return torch.cat([x.mean(-1), (x.var(-1) + 1e-5).sqrt()], -1)
