"""Augments voices on the training device: another vocal tract, another room, another microphone.

Every function takes audio (rows, samples) at 44.1 kHz and keeps its length; it can be part of a CUDA graph.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from training.codec.spectra import SAMPLE_RATE

SIZE, HOP = 2048, 512
SMOOTHNESS = 60
"""Quefrencies of the envelope, in samples: below the period of any voice's pitch."""
LARGEST_GAIN = 2.5
"""Nepers by which an envelope may be raised or lowered."""
OCTAVES = 8
ECHO_SECONDS = 0.3


@lru_cache(maxsize=4)
def _window(device: torch.device) -> Tensor:
    return torch.hann_window(SIZE, device=device)


def warped(audio: Tensor, factors: Tensor) -> Tensor:
    """Stretch the spectral envelope, and so the formants, by factors (rows,); pitch and timing stay."""
    samples = audio.shape[1]
    window = _window(audio.device)
    padded = F.pad(audio, (SIZE, SIZE + -samples % HOP))
    frames = padded.unfold(1, SIZE, HOP) * window
    spectrum = torch.fft.rfft(frames)
    logs = (spectrum.abs() + 1e-6).log()
    cepstrum = torch.fft.irfft(logs)
    lifter = torch.zeros(SIZE, device=audio.device)
    lifter[:SMOOTHNESS] = 1
    lifter[-SMOOTHNESS + 1 :] = 1
    envelope = torch.fft.rfft(cepstrum * lifter).real
    bins = envelope.shape[-1]
    at = (torch.arange(bins, device=audio.device) / factors[:, None]).clamp(max=bins - 1.001)
    low = at.long()
    share = (at - low)[:, None]
    low = low[:, None].expand(-1, envelope.shape[1], -1)
    moved = envelope.gather(2, low) * (1 - share) + envelope.gather(2, low + 1) * share
    gain = (moved - envelope).clamp(-LARGEST_GAIN, LARGEST_GAIN).exp()
    back = torch.fft.irfft(spectrum * gain) * window
    length = padded.shape[1]
    total = F.fold(back.transpose(1, 2), (1, length), (1, SIZE), stride=(1, HOP))[:, 0, 0]
    total = total[:, SIZE : SIZE + samples] / 1.5  # the sum of squared Hann windows a quarter apart
    level = audio.square().mean(1, keepdim=True).sqrt() / (total.square().mean(1, keepdim=True).sqrt() + 1e-6)
    return total * level.clamp(max=4.0)


def drawn_factors(rows: int, share: float, device: torch.device) -> Tensor:
    """Factors (rows,) for `warped`: between 0.83 and 1.2 for this share of the rows, one for the others."""
    drawn = (0.18 * (2 * torch.rand(rows, device=device) - 1)).exp()
    return torch.where(torch.rand(rows, device=device) < share, drawn, torch.ones_like(drawn))


def roughened(audio: Tensor, share: float) -> Tensor:
    """Pass this share of the rows through a poor microphone and a room, with noise 10 to 30 dB below them."""
    rows, samples = audio.shape
    device = audio.device
    size = 1 << (samples + round(ECHO_SECONDS * SAMPLE_RATE)).bit_length()
    frequencies = torch.fft.rfftfreq(size, 1 / SAMPLE_RATE, device=device)
    gains = _microphone(frequencies, rows) * torch.fft.rfft(_echoes(rows, device), size)
    out = torch.fft.irfft(torch.fft.rfft(audio, size) * gains, size)[:, :samples]
    level = audio.square().mean(1, keepdim=True).sqrt()
    out = out * level / (out.square().mean(1, keepdim=True).sqrt() + 1e-6)
    below = 10 ** (-(10 + 20 * torch.rand(rows, 1, device=device)) / 20)
    noisy = out + torch.randn_like(out) * below * level * (torch.rand(rows, 1, device=device) < 0.6)
    return torch.where(torch.rand(rows, 1, device=device) < share, noisy, audio)


def _microphone(frequencies: Tensor, rows: int) -> Tensor:
    """Gains (rows, bins): a curve within 8 dB either way over octaves, and for half of the rows a narrower band."""
    device = frequencies.device
    knots = 16 * torch.rand(rows, OCTAVES, device=device) - 8
    place = ((frequencies.clamp(min=40.0) / 40).log2() / 1.5).clamp(max=OCTAVES - 1.001)
    low = place.long()
    share = place - low
    decibels = knots[:, low] * (1 - share) + knots[:, low + 1] * share
    top = 3400 + 6600 * torch.rand(rows, 1, device=device)
    top = torch.where(torch.rand(rows, 1, device=device) < 0.5, top, torch.full_like(top, 1e6))
    return 10 ** (decibels / 20) / (1 + (frequencies / top) ** 12).sqrt()


def _echoes(rows: int, device: torch.device) -> Tensor:
    """Impulse responses (rows, samples): the direct sound, then for most rows decaying noise."""
    seconds = torch.arange(round(ECHO_SECONDS * SAMPLE_RATE), device=device) / SAMPLE_RATE
    decay = 0.1 + 0.25 * torch.rand(rows, 1, device=device)
    tail = torch.randn(rows, len(seconds), device=device) * (-3 * math.log(10) * seconds / decay).exp()
    loudness = (0.1 + 0.4 * torch.rand(rows, 1, device=device)) * (torch.rand(rows, 1, device=device) < 0.6)
    tail = tail * loudness / (tail.square().sum(1, keepdim=True).sqrt() + 1e-6)
    own = torch.zeros_like(tail)
    own[:, 0] = 1
    return own + tail * (seconds > 0.003)
