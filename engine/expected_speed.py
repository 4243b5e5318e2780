"""Estimates a model's speed on a device from the bytes that a frame reads and the operations it computes."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import cache

import torch

from engine.config import default_threads
from engine.runtime.memory_plan import FrameCost

_LAUNCHES = 2e-3 / 72, 1.6e-3 / 72
"""Seconds per layer for launches, on consumer GPUs and on Hopper: from the frames of docs/benchmarks.md."""
_AMPERE, _LATER, _HOPPER = 0.80, 0.86, 1.03
"""Shares of the nominal bandwidth that are reached; Hopper's reads overlap with its launches."""
_CPU_LAYER = 1e-4
"""Seconds per layer for calling its operators."""
_RUNS = 24
"""Runs of each measurement on a CPU."""
_MEASURING = threading.Lock()
_CODEC_ON_GPU = 20e12
"""Operations per second of the codec on a GPU, where it takes little of the time."""


def expected_frame_seconds(cost: FrameCost, device: torch.device, threads: int | None = None) -> float | None:
    """Seconds for a frame of one row and its audio; None for an unknown device.

    ``threads``: as in EngineConfig, on a CPU.
    """
    if device.type == "cpu":
        # The engine and the codec work side by side, each with its threads.
        with _MEASURING:  # side by side, they would slow each other down
            read_rate, compute_rate = _cpu_rates(threads or default_threads())
        return max(cost.passes * _CPU_LAYER + cost.weight_bytes / read_rate, cost.codec_operations / compute_rate)
    if device.type != "cuda" or (bandwidth := _gpu_bandwidth(device)) is None:
        return None
    capability = torch.cuda.get_device_capability(device)
    is_hopper = capability == (9, 0)
    share = _HOPPER if is_hopper else _LATER if capability >= (8, 9) else _AMPERE
    launches = cost.passes * _LAUNCHES[is_hopper]
    return launches + cost.weight_bytes / (share * bandwidth) + cost.codec_operations / _CODEC_ON_GPU


def _gpu_bandwidth(device: torch.device) -> float | None:
    """Nominal bytes per second; None if the driver does not report it, or for a GPU without the fused kernels."""
    properties = torch.cuda.get_device_properties(device)
    if torch.version.hip is not None or properties.major < 8:
        return None
    clock, width = (getattr(properties, name, 0) for name in ("memory_clock_rate", "memory_bus_width"))  # kHz, bits
    return 2 * clock * 1e3 * width / 8 or None


@cache
def _cpu_rates(threads: int) -> tuple[float, float]:
    """Bytes read and operations done per second by this many threads, measured once in two tenths of a second.

    Other programs slow single runs down, so the fastest of many short ones counts. The two kinds of runs alternate: a
    busy moment then affects only a few of each.
    """
    weight, vector = torch.zeros(4096, 4096), torch.zeros(4096)
    sound, kernel = torch.zeros(1, 128, 1024), torch.zeros(128, 128, 7)
    read_seconds = compute_seconds = math.inf
    old_threads = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for _ in range(_RUNS):
            read_seconds = min(read_seconds, _seconds_of(lambda: torch.mv(weight, vector)))
            compute_seconds = min(compute_seconds, _seconds_of(lambda: torch.conv1d(sound, kernel)))
    finally:
        torch.set_num_threads(old_threads)
    return weight.nbytes / read_seconds, 2 * kernel.numel() * sound.shape[2] / compute_seconds


def _seconds_of(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
