"""How `conv` is cut into tiles: measured on an H200 for every layer of S2 Pro's codec, at 1, 8 and 256 frames together.

Large ones where there is work for every multiprocessor several times, for they read the least; small ones before
multiprocessors stay idle. `benchmarks/codec_gpu.py` measures them again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import triton

from engine.kernels.launch import SCRATCH

_SMS = 132
"""Multiprocessors of the GPU that was measured."""


@dataclass(frozen=True, slots=True)
class ConvTiles:
    """Steps, outputs and depth of a program's tile, its warps, and how many loads are on their way."""

    steps: int
    outputs: int
    depth: int
    warps: int
    stages: int

    def programs(self, total: int, outputs: int) -> int:
        return int(triton.cdiv(total, self.steps) * triton.cdiv(outputs, self.outputs))

    def shared(self, input_bytes: int, weight_bytes: int) -> int:
        """Bytes of shared memory, by those of an input and of a weight."""
        return self.stages * self.depth * (self.steps * input_bytes + self.outputs * weight_bytes)


_SPARING = ConvTiles(128, 64, 32, 4, 3)
"""For GPUs with less shared memory than the one that was measured."""


def pick_tiles(
    total: int, outputs: int, taps: int, inputs: int, nbytes: tuple[int, int], halves: bool, limit: int
) -> ConvTiles:
    """Tiles for `total` steps by `outputs`.

    nbytes: of an input and of a weight; halves: three products of float16 instead of one; limit: bytes of shared
    memory that a program may take.
    """
    *large, small = ((_fitted(tiles, inputs, nbytes), least) for tiles, least in _choices(total, outputs, taps, halves))
    possible = [(tiles, least) for tiles, least in large if tiles.shared(*nbytes) + SCRATCH <= limit]
    if large and not possible:
        possible = [(_fitted(_SPARING, inputs, nbytes), _SMS)]
    return next((tiles for tiles, least in possible if tiles.programs(total, outputs) >= least), small[0])


def _choices(total: int, outputs: int, taps: int, halves: bool) -> list[tuple[ConvTiles, int]]:
    """From large to small, with the number of programs from which on each is worth its size."""
    if total < 64:  # bound by reading the weights: many programs, deep loads
        return [(ConvTiles(16, 32, 128, 4, 4), 48), (ConvTiles(16, 16, 128, 4, 4), 0)]
    if outputs <= 16:
        return [(ConvTiles(128, 16, 32, 4, 4), 0)]
    small = (ConvTiles(64, 32, 32, 4, 6), 0)
    wide = 64 if outputs <= 64 or 128 < outputs < 256 else 128  # 192 outputs are three times 64, 96 are nearly 128
    if taps == 1:  # bound by its reads and writes
        return [(ConvTiles(64, wide, 32, 4, 3), _SMS), small]
    if wide == 64 or halves:
        return [(ConvTiles(128, wide, 32, 4, 3), _SMS), small]
    return [(ConvTiles(256, 128, 32, 8, 3), 3 * _SMS), (ConvTiles(128, 128, 32, 8, 4), _SMS), small]


def _fitted(tiles: ConvTiles, inputs: int, nbytes: tuple[int, int]) -> ConvTiles:
    """As many bytes whatever the type, and a depth that divides the inputs where it can."""
    depth = 2 * tiles.depth if nbytes == (2, 2) and tiles.steps >= 64 else tiles.depth
    while inputs % depth and depth > 16:
        depth //= 2
    return replace(tiles, depth=depth)


def pick_interpreter_tiles(total: int, outputs: int, inputs: int) -> ConvTiles:
    """The fewer programs the faster."""
    return ConvTiles(_within(total, 4096), _within(outputs, 128), _within(inputs, 128), 4, 1)


def _within(size: int, limit: int) -> int:
    return int(max(16, min(limit, triton.next_power_of_2(size))))
