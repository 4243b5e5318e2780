"""The base of ear and voiceprint: convolutions over a log-mel spectrum, and the distance of their features."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.codec.spectra import log_mel

BANDS = 80


class SpectrumListener(nn.Module):
    """Audio (rows, 1, samples) → features (rows, width, samples / 512) of every layer, the last one's last."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(BANDS, width, 5, padding=2)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, 5, stride=2 if layer == 0 else 1, padding=2) for layer in range(layers)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(1, width) for _ in range(layers))

    def features(self, audio: Tensor) -> list[Tensor]:
        with torch.autocast(audio.device.type, enabled=False):
            spectrum = log_mel(audio.float(), bands=BANDS)
        x, features = F.gelu(self.first(spectrum)), []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            y = F.gelu(norm(layer(x)))
            x = y if y.shape != x.shape else x + y
            features.append(x)
        return features


def apart(ours: list[Tensor], theirs: list[Tensor]) -> Tensor:
    """Relative distance of the features, averaged over the upper layers."""
    pairs = list(zip(ours, theirs, strict=True))[1::2]
    return torch.stack([(f - r).abs().mean() / (r.abs().mean() + 1e-4) for f, r in pairs]).mean()
