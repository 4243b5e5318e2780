"""Multi-period (HiFi-GAN) and multi-resolution complex (DAC, UnivNet) discriminators, and their least-squares losses.

They use 22.05 kHz: the full band of the teacher's voices, at half the cost.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import weight_norm

PERIODS = (2, 3, 5, 7, 11)
RESOLUTIONS = (1024, 512, 256)

Verdict = tuple[Tensor, list[Tensor]]
"""Scores, and the features of every layer."""


class PeriodDiscriminator(nn.Module):
    """Sees the waveform folded into columns of one period."""

    def __init__(self, period: int) -> None:
        super().__init__()
        self.period = period
        widths = (1, 32, 96, 192, 256, 256)
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv2d(a, b, (5, 1), (3 if i < 4 else 1, 1), (2, 0)))
            for i, (a, b) in enumerate(pairwise(widths))
        )
        self.score = weight_norm(nn.Conv2d(widths[-1], 1, (3, 1), padding=(1, 0)))

    def forward(self, audio: Tensor) -> Verdict:
        folded = F.pad(audio, (0, -audio.shape[-1] % self.period)).unflatten(-1, (-1, self.period))
        return _judged(folded, self.layers, self.score)


class ResolutionDiscriminator(nn.Module):
    """Sees the complex spectrogram at one window size."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        width = 32
        self.layers = nn.ModuleList(
            [weight_norm(nn.Conv2d(2, width, (3, 9), padding=(1, 4)))]
            + [weight_norm(nn.Conv2d(width, width, (3, 9), (1, 2), (1, 4))) for _ in range(3)]
            + [weight_norm(nn.Conv2d(width, width, 3, padding=1))]
        )
        self.score = weight_norm(nn.Conv2d(width, 1, 3, padding=1))
        self.window: Tensor
        self.register_buffer("window", torch.hann_window(size), persistent=False)

    def forward(self, audio: Tensor) -> Verdict:
        with torch.autocast(audio.device.type, enabled=False):
            spectrum = torch.stft(
                audio.float().squeeze(1), self.size, self.size // 4, window=self.window, return_complex=True
            )
            seen = torch.view_as_real(spectrum).permute(0, 3, 2, 1)
        return _judged(seen, self.layers, self.score)


def _judged(x: Tensor, layers: nn.ModuleList, score: nn.Module) -> Verdict:
    x = x.contiguous(memory_format=torch.channels_last)
    features = []
    for layer in layers:
        x = F.leaky_relu(layer(x), 0.1)
        features.append(x)
    return score(x), features


class Discriminators(nn.ModuleList):
    """All discriminators; call with audio (rows, 1, samples) at 22.05 kHz."""

    def __init__(self) -> None:
        super().__init__(
            [*(PeriodDiscriminator(p) for p in PERIODS), *(ResolutionDiscriminator(r) for r in RESOLUTIONS)]
        )

    def forward(self, audio: Tensor) -> list[Verdict]:
        return [judge(audio) for judge in self]


def split(verdicts: list[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """Splits the scores of a batch whose first half is real: those of the real half, those of the other."""
    halves = [
        (score.chunk(2), [feature.chunk(2) for feature in features]) for score, features in verdicts
    ]  # fmt: skip
    return (
        [(score[0], [feature[0] for feature in features]) for score, features in halves],
        [(score[1], [feature[1] for feature in features]) for score, features in halves],
    )


def judge_loss(real: list[Verdict], fake: list[Verdict]) -> Tensor:
    """The discriminators' loss: real should score one, fake zero."""
    scores = [(r.float(), f.float()) for (r, _), (f, _) in zip(real, fake, strict=True)]
    losses = [(r - 1).pow(2).mean() + f.pow(2).mean() for r, f in scores]
    return torch.stack(losses).mean()


def fooling_loss(fake: list[Verdict]) -> Tensor:
    """The decoder's loss: its audio should score one."""
    return torch.stack([(f.float() - 1).pow(2).mean() for f, _ in fake]).mean()


def feature_loss(real: list[Verdict], fake: list[Verdict]) -> Tensor:
    """Relative distance of the discriminators' features."""
    pairs = [pair for (_, r), (_, f) in zip(real, fake, strict=True) for pair in zip(r, f, strict=True)]
    scaled = [(r.float().detach(), f.float()) for r, f in pairs]
    losses = [(f - r).abs().mean() / (r.abs().mean() + 1e-4) for r, f in scaled]
    return torch.stack(losses).mean()
