"""Spectral measures on audio (rows, 1, samples): mel spectra for targets, multi-scale distances for losses."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

SAMPLE_RATE = 44100
HOP = 256


@lru_cache(maxsize=32)
def _window(size: int, device: torch.device) -> Tensor:
    return torch.hann_window(size, device=device)


@lru_cache(maxsize=32)
def mel_filters(size: int, bands: int, top: float, device: torch.device) -> Tensor:
    """Triangular filters (bands, size / 2 + 1), each summing to one, evenly spaced in mel up to `top` Hz."""
    bins = torch.linspace(0, SAMPLE_RATE / 2, size // 2 + 1)
    edges = torch.linspace(0, 2595 * math.log10(1 + top / 700), bands + 2)
    hertz = 700 * (10 ** (edges / 2595) - 1)
    rising = (bins - hertz[:-2, None]) / (hertz[1:-1] - hertz[:-2])[:, None]
    falling = (hertz[2:, None] - bins) / (hertz[2:] - hertz[1:-1])[:, None]
    filters = torch.minimum(rising, falling).clamp(min=0)
    return (filters / (filters.sum(1, keepdim=True) + 1e-8)).to(device)


def magnitudes(audio: Tensor, size: int, hop: int) -> Tensor:
    """STFT magnitudes (rows, bins, samples / hop), windows centred on their hop."""
    side = (size - hop) // 2
    padded = F.pad(audio.squeeze(1), (side, size - hop - side))
    return torch.stft(padded, size, hop, size, _window(size, audio.device), center=False, return_complex=True).abs()


def log_mel(audio: Tensor, size: int = 1024, bands: int = 80, top: float = 8000.0) -> Tensor:
    """log10 of mel magnitudes (rows, bands, samples / 256), of twice the signal, with a floor of 0.01."""
    filters = mel_filters(size, bands, top, audio.device)
    return (filters @ magnitudes(2 * audio, size, HOP) + 1e-2).log10()


def narrow_mel(audio: Tensor) -> Tensor:
    """160 narrow bands (rows, 160, samples / 256): fine enough in frequency to show the pitch."""
    return log_mel(audio, size=2048, bands=160)


_SCALES = ((2048, 128), (1024, 96), (512, 64), (256, 32), (128, 16))


def reconstruction_loss(audio: Tensor, target: Tensor) -> Tensor:
    """Mean over five window sizes of the log-mel distance, plus the relative STFT distance of the longer ones."""
    total = audio.new_zeros(())
    for size, bands in _SCALES:
        ours, theirs = (magnitudes(x, size, size // 4).clamp(min=1e-7) for x in (audio, target))
        filters = mel_filters(size, bands, 16000.0, audio.device)
        floor = 2e-4 * size / 512
        logs = ((filters @ x).clamp(min=floor).log10() for x in (ours, theirs))
        first, second = logs
        total = total + (first - second).abs().mean()
        if size >= 512:
            total = total + 0.3 * (ours - theirs).abs().mean() / (theirs.abs().mean() + 1e-3)
    return total / len(_SCALES)
