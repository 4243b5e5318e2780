"""How `conv` is cut into tiles: measured on an H200 for every layer of S2 Pro's codec, at 1, 8 and 256 frames together.

Large ones where there is work for every multiprocessor several times, for they read the least; small ones before
multiprocessors stay idle. `benchmarks/codec_gpu.py` measures them again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import triton


@dataclass(frozen=True, slots=True)
class Tiles:
    """Steps, outputs and depth of a program's tile, its warps, and how many loads are on their way."""

    steps: int
    outputs: int
    depth: int
    warps: int
    stages: int

    def programs(self, total: int, outputs: int) -> int:
        return int(triton.cdiv(total, self.steps) * triton.cdiv(outputs, self.outputs))


_SMS = 132
"""Multiprocessors of the GPU that was measured."""


def pick(total: int, outputs: int, taps: int, inputs: int, weights: torch.dtype, halves: bool) -> Tiles:
    """Tiles for `total` steps by `outputs`; halves: three products of float16 instead of one."""
    tiles = _large(total, outputs, taps, halves) if total >= 64 else _few(total, outputs)
    if weights.itemsize == 2 and not halves and tiles.steps >= 64:
        tiles = replace(tiles, depth=2 * tiles.depth)  # as many bytes
    while inputs % tiles.depth and tiles.depth > 16:
        tiles = replace(tiles, depth=tiles.depth // 2)
    return tiles


def _large(total: int, outputs: int, taps: int, halves: bool) -> Tiles:
    if outputs <= 16:
        return Tiles(128, 16, 32, 4, 4)
    wide = 64 if 128 < outputs < 256 else 128  # 192 outputs are three times 64, 96 are nearly 128
    if taps == 1:  # bound by its reads and writes
        choices = [Tiles(64, wide, 32, 4, 3)]
    elif wide == 64 or halves:
        choices = [Tiles(128, wide, 32, 4, 3)]
    else:
        choices = [Tiles(256, 128, 32, 8, 3), Tiles(128, 128, 32, 8, 4)]
    for tiles in choices:
        if tiles.programs(total, outputs) >= 3 * _SMS:
            return tiles
    last = choices[-1]
    return last if last.programs(total, outputs) >= _SMS else Tiles(64, 32, 32, 4, 6)


def _few(total: int, outputs: int) -> Tiles:
    """Bound by reading the weights: many programs, deep loads."""
    tiles = Tiles(16, 32, 128, 4, 4)
    return tiles if tiles.programs(total, outputs) >= 48 else replace(tiles, outputs=16)


def pick_interpreted(total: int, outputs: int, inputs: int) -> Tiles:
    """The fewer programs the faster."""
    return Tiles(_within(total, 4096), _within(outputs, 128), _within(inputs, 128), 4, 1)


def _within(size: int, limit: int) -> int:
    return int(max(16, min(limit, triton.next_power_of_2(size))))
