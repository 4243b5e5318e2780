"""Programmatic dependent launch: a kernel's programs take their places while those of the one before still finish."""

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def follow(CHAINED: tl.constexpr):
    """First of all in a kernel: what the kernel before wrote may be read from here on, and the next one may come."""
    if CHAINED:
        gdc_wait()
        gdc_launch_dependents()


@cache
def can_chain(device: torch.device) -> bool:
    """Whether this device knows such launches."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)
