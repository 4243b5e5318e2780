"""A small phone recogniser, trained with the codebooks and then frozen: the codec must preserve the phones it hears.

Matching a frozen speech encoder's features of input and output preserves words at low rates (JHCodec, 2026).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.codec.listener import SpectrumListener, apart
from training.data.phones import PHONES, UNKNOWN

WIDTH, LAYERS = 256, 6


class Ear(SpectrumListener):
    """Audio (rows, 1, samples) → phone logits (rows, phones, samples / 512) and the features of every layer."""

    def __init__(self) -> None:
        super().__init__(WIDTH, LAYERS)
        self.phones = nn.Conv1d(WIDTH, len(PHONES), 1)

    def forward(self, audio: Tensor) -> tuple[Tensor, list[Tensor]]:
        features = self.features(audio)
        return self.phones(features[-1]), features

    def loss(self, audio: Tensor, phones: Tensor) -> Tensor:
        """Cross-entropy against phones (rows, frames, 4)."""
        logits, _ = self(audio)
        return F.cross_entropy(logits.float(), phones.flatten(1), ignore_index=UNKNOWN)

    def distance(self, ours: Tensor, theirs: Tensor) -> Tensor:
        """The difference of two signals' phones: relative distance of the features, averaged over the upper layers."""
        with torch.no_grad():
            real = self.features(theirs)
        return apart(self.features(ours), real)
