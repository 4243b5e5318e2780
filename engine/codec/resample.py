"""Sample-rate conversion with torchaudio's windowed-sinc kernels, created once per rate pair and device."""

from __future__ import annotations

import functools
import math
import sys
import types

import torch
from torch import Tensor, nn

LARGEST_FILTER = 4_000_000
"""Maximum taps of a filter bank (16 MB); 44,101 Hz to 44,100 would need two billion."""


def convertible(source: int, target: int) -> bool:
    """Whether the rates have a large enough common divisor for exact conversion, as all usual ones do."""
    divisor = math.gcd(source, target)
    return source // divisor * (target // divisor) <= LARGEST_FILTER


def resample(audio: Tensor, source: int, target: int) -> Tensor:
    """Audio (…, samples) float32 from source Hz to target Hz, on its own device."""
    return audio if source == target else _resampler(source, target, audio.device)(audio)


@functools.lru_cache(maxsize=32)
def _resampler(source: int, target: int, device: torch.device) -> nn.Module:
    return _torchaudio_transforms().Resample(source, target).to(device)


@functools.cache
def _torchaudio_transforms() -> types.ModuleType:
    """torchaudio.transforms, even if its compiled part does not match this torch (such as a CPU-only build).

    Resampling is pure Python; only the extension's loader fails, so its module is replaced by a stub.
    """
    try:
        from torchaudio import transforms
    except (ImportError, OSError, RuntimeError):
        for name in [name for name in sys.modules if name.split(".")[0] == "torchaudio"]:
            del sys.modules[name]
        stub = types.ModuleType("torchaudio._extension")
        stub.__dict__.update(
            _IS_TORCHAUDIO_EXT_AVAILABLE=False,
            _IS_ALIGN_AVAILABLE=False,
            fail_if_no_align=lambda function: function,
            _check_cuda_version=lambda: None,
        )
        sys.modules["torchaudio._extension"] = stub
        from torchaudio import transforms
    return transforms
