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
    """Triangular filters (bands, size / 2 + 1), each with sum one, evenly spaced in mel up to `top` Hz."""
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


@lru_cache(maxsize=4)
def _half_band(device: torch.device) -> Tensor:
    """A low-pass filter of 95 taps at a quarter of the sample rate (a windowed sinc), (1, 1, 95)."""
    steps = torch.arange(-47, 48, dtype=torch.float64)
    taps = 0.48 * torch.sinc(0.48 * steps) * torch.kaiser_window(95, periodic=False, beta=8.0, dtype=torch.float64)
    return (taps / taps.sum()).float()[None, None].to(device)


def halved(audio: Tensor) -> Tensor:
    """Audio (rows, 1, samples) at 44.1 kHz → (rows, 1, samples / 2) at 22.05: the full band of the teacher's voices."""
    return F.conv1d(audio, _half_band(audio.device), stride=2, padding=47)


_SCALES = ((1024, 128), (512, 96), (256, 64), (128, 32), (64, 16))


def reconstruction_loss(audio: Tensor, target: Tensor) -> Tensor:
    """Mean over five window sizes of the log-mel distance, plus the relative STFT distance of the longer ones.

    For signals at 22.05 kHz.
    """
    total = audio.new_zeros(())
    for size, bands in _SCALES:
        ours, theirs = (magnitudes(x, size, size // 4).clamp(min=1e-7) for x in (audio, target))
        filters = mel_filters(size, bands, 10500.0, audio.device, SAMPLE_RATE // 2)
        floor = 2e-4 * size / 256
        first, second = ((filters @ x).clamp(min=floor).log10() for x in (ours, theirs))
        total = total + (first - second).abs().mean()
        if size >= 256:
            total = total + 0.3 * (ours - theirs).abs().mean() / (theirs.abs().mean() + 1e-3)
    return total / len(_SCALES)


def overtones(audio: Tensor, target: Tensor) -> Tensor:
    """Distance of the spectra above 10.5 kHz, for signals at 44.1 kHz: the band that `halved` removes."""
    first = round(10500 / SAMPLE_RATE * 1024)
    ours, theirs = (magnitudes(x, 1024, 512)[:, first:] for x in (audio, target))
    return (ours - theirs).abs().mean()
