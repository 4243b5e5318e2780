"""Computes a clip's timbre vector, and from that a scale and a shift for each channel of the decoder."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.codec_config import TimbreConfig

WINDOW, HOP = 1024, 512
TOP = 8000.0
"""Hertz; frequencies above it distinguish microphones rather than people."""
FLOOR = 1e-3
"""Minimum mel magnitude, for a clip whose root mean square is one: anything softer is silence."""


class Colour(NamedTuple):
    """A scale and a shift for each channel, (rows, channels) each; zeros leave a signal unchanged."""

    scale: Tensor
    shift: Tensor

    def along(self, x: Tensor, dim: int) -> Tensor:
        """Scale and shift x by its channels, which lie along dim."""
        shape = [len(self.scale)] + [1] * (x.dim() - 1)
        shape[dim] = -1
        return torch.addcmul(x + self.shift.view(shape), x, self.scale.view(shape))


Colours = tuple[Colour, ...]
"""One colour for every place in the decoder that a voice colours, in the signal's order."""


@lru_cache(maxsize=32)
def mel_filters(size: int, bands: int, top: float, device: torch.device, rate: int) -> Tensor:
    """Triangular filters (bands, size / 2 + 1), each with sum one, evenly spaced in mel up to `top` Hz."""
    bins = torch.linspace(0, rate / 2, size // 2 + 1)
    edges = torch.linspace(0, 2595 * math.log10(1 + top / 700), bands + 2)
    hertz = 700 * (10 ** (edges / 2595) - 1)
    rising = (bins - hertz[:-2, None]) / (hertz[1:-1] - hertz[:-2])[:, None]
    falling = (hertz[2:, None] - bins) / (hertz[2:] - hertz[1:-1])[:, None]
    filters = torch.minimum(rising, falling).clamp(min=0)
    return (filters / (filters.sum(1, keepdim=True) + 1e-8)).to(device)


@lru_cache(maxsize=4)
def _window(device: torch.device) -> Tensor:
    return torch.hann_window(WINDOW, device=device)


class Listening(nn.Module):
    """One residual convolution over time."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(1, width)
        self.conv = nn.Conv1d(width, width, 5, padding=2 * dilation, dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.gelu(self.conv(self.norm(x)))


class TimbreEncoder(nn.Module):
    """Log-mel spectrum, convolutions, and the attention-weighted mean and deviation over time."""

    def __init__(self, config: TimbreConfig, sample_rate: int) -> None:
        super().__init__()
        self.config, self.sample_rate = config, sample_rate
        self.first = nn.Conv1d(config.bands, config.width, 5, padding=2)
        self.layers = nn.ModuleList(Listening(config.width, (1, 2, 3)[i % 3]) for i in range(config.n_layer))
        self.attention = nn.Sequential(nn.Conv1d(config.width, 64, 1), nn.Tanh(), nn.Conv1d(64, config.width, 1))
        self.pooled = nn.Linear(2 * config.width, config.dim)

    def forward(self, audio: Tensor) -> Tensor:
        """Audio (rows, samples) at the codec's rate, at least 1,024 samples → vectors (rows, dim) of deviation one."""
        x = F.gelu(self.first(self._spectrum(audio)))
        for layer in self.layers:
            x = layer(x)
        x, weight = x.float(), self.attention(x).float().softmax(-1)
        mean = (weight * x).sum(-1)
        spread = ((weight * x.square()).sum(-1) - mean.square()).clamp(min=1e-5).sqrt()
        vector = self.pooled(torch.cat([mean, spread], 1)).float()
        return F.layer_norm(vector, vector.shape[-1:])  # so that no clip pushes the decoder further than others

    def _spectrum(self, audio: Tensor) -> Tensor:
        with torch.autocast(audio.device.type, enabled=False):
            audio = audio.float()
            level = audio.square().mean(-1, keepdim=True).sqrt()
            padded = F.pad(audio / (level + 1e-5), (WINDOW // 2, WINDOW // 2))
            spectrum = torch.stft(
                padded, WINDOW, HOP, WINDOW, _window(audio.device), center=False, return_complex=True
            ).abs()
            filters = mel_filters(WINDOW, self.config.bands, TOP, audio.device, self.sample_rate)
            return (filters @ spectrum).clamp(min=FLOOR).log()


class Timbre(nn.Module):
    """The encoder, the vector of the default voice, and the projections that colour the decoder."""

    def __init__(self, config: TimbreConfig, sample_rate: int, channels: list[int]) -> None:
        """``channels``: their number at every place that is coloured."""
        super().__init__()
        self.encoder = TimbreEncoder(config, sample_rate)
        self.default: Tensor
        self.register_buffer("default", torch.zeros(config.dim))
        self.hidden = nn.Linear(config.dim, config.width)
        self.colouring = nn.Linear(config.width, 2 * sum(channels))
        nn.init.zeros_(self.colouring.weight)
        nn.init.zeros_(self.colouring.bias)
        self._sizes = [size for count in channels for size in (count, count)]

    def colours(self, vectors: Tensor | None = None) -> Colours:
        """Vectors (rows, dim) → their colours; None for the default voice, in one row."""
        vectors = self.default[None] if vectors is None else vectors
        parts = self.colouring(F.gelu(self.hidden(vectors))).split(self._sizes, 1)
        return tuple(Colour(*pair) for pair in zip(parts[::2], parts[1::2], strict=True))


def coloured(x: Tensor, colours: Iterator[Colour] | None, dim: int = 1) -> Tensor:
    """Apply the next of the colours to x; without any, return x itself."""
    return x if colours is None else next(colours).along(x, dim)
