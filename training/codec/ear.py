"""A small phone recogniser, trained beside the codebooks and then frozen: what it hears must survive the codec.

Matching a frozen speech encoder's features of input and output is what keeps words at low rates (JHCodec, 2026).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.codec.spectra import log_mel
from training.data.phones import PHONES, UNKNOWN

BANDS, WIDTH, LAYERS = 80, 256, 6


class Ear(nn.Module):
    """Audio (rows, 1, samples) → phone logits (rows, phones, samples / 512) and the features of every layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(BANDS, WIDTH, 5, padding=2)
        self.layers = nn.ModuleList(
            nn.Conv1d(WIDTH, WIDTH, 5, stride=2 if layer == 0 else 1, padding=2) for layer in range(LAYERS)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(1, WIDTH) for _ in range(LAYERS))
        self.phones = nn.Conv1d(WIDTH, len(PHONES), 1)

    def forward(self, audio: Tensor) -> tuple[Tensor, list[Tensor]]:
        with torch.autocast(audio.device.type, enabled=False):
            spectrum = log_mel(audio.float(), bands=BANDS)
        x, features = F.gelu(self.first(spectrum)), []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            y = F.gelu(norm(layer(x)))
            x = y if y.shape != x.shape else x + y
            features.append(x)
        return self.phones(x), features

    def loss(self, audio: Tensor, phones: Tensor) -> Tensor:
        """Cross-entropy against phones (rows, frames, 4)."""
        logits, _ = self(audio)
        return F.cross_entropy(logits.float(), phones.flatten(1), ignore_index=UNKNOWN)

    def distance(self, ours: Tensor, theirs: Tensor) -> Tensor:
        """How differently two signals are heard: relative distance of the features, averaged over the upper layers."""
        with torch.no_grad():
            _, real = self(theirs)
        _, fake = self(ours)
        pairs = list(zip(fake, real, strict=True))[1::2]
        return torch.stack([(f - r).abs().mean() / (r.abs().mean() + 1e-4) for f, r in pairs]).mean()
