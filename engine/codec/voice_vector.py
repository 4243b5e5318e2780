"""The voice encoder of Qwen3-TTS: a clip to the vector that its prompt has for a voice (ECAPA-TDNN over a log-mel)."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.codec_config import whole, wholes

SAMPLE_RATE = 24000
WINDOW, HOP = 1024, 256
CLIP_TAIL = 0.5
"""Seconds of silence after a clip before it is encoded to codes: without it, takes begin with the clip's last words."""
_SHORTEST = 8192
"""Samples to which a shorter clip is padded with silence: reflected edges need a few frames."""


@dataclass(frozen=True, slots=True)
class VoiceEncoderConfig:
    """Sizes; the defaults are those of Qwen3-TTS 0.6B."""

    dim: int = 1024
    """Values of a voice's vector."""
    mel_bands: int = 128
    channels: tuple[int, ...] = (512, 512, 512, 512, 1536)
    kernels: tuple[int, ...] = (5, 3, 3, 3, 1)
    dilations: tuple[int, ...] = (1, 2, 3, 4, 1)
    attention_channels: int = 128
    groups: int = 8
    squeezed: int = 128

    @classmethod
    def of_tree(cls, tree: Mapping[str, Any]) -> VoiceEncoderConfig:
        """The sizes in a speaker_encoder_config; what it lacks, as published. Raises TypeError, ValueError."""
        if tree.get("sample_rate", SAMPLE_RATE) != SAMPLE_RATE:
            raise ValueError(f"sample_rate is {tree['sample_rate']!r}, expected {SAMPLE_RATE}")
        singles = {
            "dim": "enc_dim", "mel_bands": "mel_dim", "attention_channels": "enc_attention_channels",
            "groups": "enc_res2net_scale", "squeezed": "enc_se_channels",
        }  # fmt: skip
        lists = {"channels": "enc_channels", "kernels": "enc_kernel_sizes", "dilations": "enc_dilations"}
        sizes: dict[str, Any] = {ours: whole(tree, key) for ours, key in singles.items() if key in tree}
        sizes |= {ours: wholes(tree, key) for ours, key in lists.items() if key in tree}
        config = cls(**sizes)
        if not 3 <= len(config.channels) == len(config.kernels) == len(config.dilations):
            raise ValueError("enc_channels, enc_kernel_sizes and enc_dilations must be equally long, three at least")
        if any(channels % config.groups for channels in config.channels[:-1]):
            raise ValueError(f"enc_channels are not multiples of enc_res2net_scale, {config.groups}")
        return config


class TimeDelay(nn.Module):
    """A convolution over reflected edges, and ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, dilation=dilation, padding="same", padding_mode="reflect")

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.conv(x))


class Res2Net(nn.Module):
    """Groups of channels, each convolved after the result of the previous one is added."""

    def __init__(self, channels: int, groups: int, kernel: int, dilation: int) -> None:
        super().__init__()
        width = channels // groups
        self.blocks = nn.ModuleList(TimeDelay(width, width, kernel, dilation) for _ in range(groups - 1))

    def forward(self, x: Tensor) -> Tensor:
        first, *rest = x.chunk(len(self.blocks) + 1, 1)
        results = [first]
        for number, (block, part) in enumerate(zip(self.blocks, rest, strict=True)):
            results.append(block(part + results[-1] if number else part))
        return torch.cat(results, 1)


class SqueezeExcitation(nn.Module):
    """Each channel times a gain that depends on the means of all."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(channels, squeezed, 1), nn.Conv1d(squeezed, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.conv2(F.relu(self.conv1(x.mean(2, keepdim=True)))).sigmoid()


class VoiceBlock(nn.Module):
    """A residual block of these."""

    def __init__(self, config: VoiceEncoderConfig, inputs: int, channels: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.tdnn1 = TimeDelay(inputs, channels)
        self.res2net_block = Res2Net(channels, config.groups, kernel, dilation)
        self.tdnn2 = TimeDelay(channels, channels)
        self.se_block = SqueezeExcitation(channels, config.squeezed)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.se_block(self.tdnn2(self.res2net_block(self.tdnn1(x))))


class AttentivePooling(nn.Module):
    """Means and deviations over time, weighted by an attention that knows the unweighted ones."""

    def __init__(self, channels: int, attention_channels: int) -> None:
        super().__init__()
        self.tdnn = TimeDelay(3 * channels, attention_channels)
        self.conv = nn.Conv1d(attention_channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(rows, channels, frames) → (rows, 2 · channels, 1)."""
        mean, deviation = self._moments(x, torch.full_like(x[:1, :1], 1 / x.shape[2]))
        known = torch.cat([x, mean.expand_as(x), deviation.expand_as(x)], 1)
        return torch.cat(self._moments(x, self.conv(self.tdnn(known).tanh()).softmax(2)), 1)

    @staticmethod
    def _moments(x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        mean = (weights * x).sum(2, keepdim=True)
        variance = (weights * (x - mean).square()).sum(2, keepdim=True)
        return mean, variance.clamp(1e-12).sqrt()


class VoiceEncoder(nn.Module):
    """The whole, with upstream's names; in float32, where upstream has bfloat16."""

    def __init__(self, config: VoiceEncoderConfig) -> None:
        super().__init__()
        self.config = config
        widths, kernels, dilations = config.channels, config.kernels, config.dilations
        layers: list[nn.Module] = [TimeDelay(config.mel_bands, widths[0], kernels[0], dilations[0])]
        for i in range(1, len(widths) - 1):
            layers.append(VoiceBlock(config, widths[i - 1], widths[i], kernels[i], dilations[i]))
        self.blocks = nn.ModuleList(layers)
        self.mfa = TimeDelay(sum(widths[1:-1]), widths[-1], kernels[-1], dilations[-1])
        self.asp = AttentivePooling(widths[-1], config.attention_channels)
        self.fc = nn.Conv1d(2 * widths[-1], config.dim, 1)

    @torch.inference_mode()
    def forward(self, audio: Tensor) -> Tensor:
        """A clip (samples,) float32 at SAMPLE_RATE → its vector (dim,) float32. Silence behind a clip changes it."""
        x, results = log_mel(audio, self.config.mel_bands)[None], []
        for block in self.blocks:
            x = block(x)
            results.append(x)
        return self.fc(self.asp(self.mfa(torch.cat(results[1:], 1))))[0, :, 0]


def log_mel(audio: Tensor, bands: int) -> Tensor:
    """Audio (samples,) float32 at SAMPLE_RATE → logarithms of magnitudes (bands, frames), as upstream computes them."""
    audio = F.pad(audio, (0, max(0, _SHORTEST - len(audio))))
    edge = (WINDOW - HOP) // 2
    audio = F.pad(audio[None], (edge, edge), "reflect")[0]
    window = torch.hann_window(WINDOW, device=audio.device)
    spectrum = torch.stft(audio, WINDOW, HOP, window=window, center=False, return_complex=True)
    magnitudes = (torch.view_as_real(spectrum).square().sum(-1) + 1e-9).sqrt()
    return (mel_filters(bands).to(audio.device) @ magnitudes).clamp(min=1e-5).log()


@functools.lru_cache(maxsize=4)
def mel_filters(bands: int) -> Tensor:
    """Triangles of equal area (bands, WINDOW / 2 + 1) from 0 Hz to half the rate, on Slaney's scale as in librosa."""
    steps = torch.linspace(0, _mel(SAMPLE_RATE / 2), bands + 2, dtype=torch.float64)
    edges = torch.where(steps < _KNEE, steps * _LINEAR, 1000 * torch.exp(_LOG_STEP * (steps - _KNEE)))
    frequencies = torch.linspace(0, SAMPLE_RATE / 2, WINDOW // 2 + 1, dtype=torch.float64)
    distances, widths = edges[:, None] - frequencies, edges.diff()[:, None]
    triangles = torch.minimum(-distances[:-2] / widths[:-1], distances[2:] / widths[1:]).clamp(min=0)
    return (triangles * 2 / (edges[2:] - edges[:-2])[:, None]).float()


_LINEAR = 200 / 3
"""Hertz of a mel below 1 kHz."""
_KNEE = 1000 / _LINEAR
_LOG_STEP = math.log(6.4) / 27


def _mel(frequency: float) -> float:
    """Mels of a frequency of at least 1 kHz."""
    return _KNEE + math.log(frequency / 1000) / _LOG_STEP
