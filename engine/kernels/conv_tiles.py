"""Chooses tiles for `conv` and `residual_unit`: measured on an H200, for S2 Pro's codec at 1, 8 and 256 frames.

Large ones if there is work for every multiprocessor several times, since they read the least; small ones before
multiprocessors become idle. `benchmarks/codec_gpu.py` repeats the measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import triton

from engine.kernels.launch import SCRATCH

_SMS = 132
"""Multiprocessors of the GPU used for measuring."""


@dataclass(frozen=True, slots=True)
class ConvTiles:
    """Steps, outputs and depth of a program's tile, its warps, and its number of loads in flight."""

    steps: int
    outputs: int
    depth: int
    warps: int
    stages: int

    def programs(self, total: int, outputs: int) -> int:
        return int(triton.cdiv(total, self.steps) * triton.cdiv(outputs, self.outputs))

    def shared(self, input_bytes: int, weight_bytes: int) -> int:
        """Bytes of shared memory, given the bytes of an input and of a weight."""
        return self.stages * self.depth * (self.steps * input_bytes + self.outputs * weight_bytes)


_SPARING = ConvTiles(128, 64, 32, 4, 3)
"""Tiles for GPUs with less shared memory than the one used for measuring."""


def pick_tiles(
    total: int, outputs: int, taps: int, inputs: int, nbytes: tuple[int, int], halves: bool, limit: int
) -> ConvTiles:
    """Tiles for `total` steps by `outputs`.

    nbytes: of an input and of a weight; halves: three products of float16 instead of one; limit: bytes of shared
    memory that a program may take.
    """
    *large, small = ((_fitted(tiles, inputs, nbytes), least) for tiles, least in _choices(total, outputs, taps, halves))
    possible = [(tiles, least) for tiles, least in large if tiles.shared(*nbytes) + SCRATCH <= limit]
    if not possible:
        possible = [(_fitted(_SPARING, inputs, nbytes), _SMS)]
    return next((tiles for tiles, least in possible if tiles.programs(total, outputs) >= least), small[0])


def _choices(total: int, outputs: int, taps: int, halves: bool) -> list[tuple[ConvTiles, int]]:
    """Possible tiles from large to small, each with the number of programs from which it is fastest."""
    if total < 64:  # limited by reading the weights: many programs, deep loads
        return [(ConvTiles(16, 32, 128, 4, 4), 48), (ConvTiles(16, 16, 128, 4, 4), 0)]
    small = (ConvTiles(64, 32, 32, 4, 6), 0)
    wide = 64 if outputs <= 64 or 128 < outputs < 256 else 128  # 192 outputs are three times 64, 96 are nearly 128
    if taps == 1:  # limited by its reads and writes
        return [(ConvTiles(64, wide, 32, 4, 3) if halves else ConvTiles(128, 64, 32, 4, 3), _SMS), small]
    if wide == 64 or halves:
        return [(ConvTiles(128, wide, 32, 4, 3), _SMS), small]
    return [(ConvTiles(128, 128, 32, 4, 3), 6 * _SMS), (ConvTiles(128, 128, 32, 8, 4), _SMS), small]


def _fitted(tiles: ConvTiles, inputs: int, nbytes: tuple[int, int]) -> ConvTiles:
    """The same bytes for any type, and a depth that divides the inputs if possible."""
    depth = 2 * tiles.depth if nbytes == (2, 2) and tiles.steps >= 64 else tiles.depth
    while inputs % depth and depth > 16:
        depth //= 2
    return replace(tiles, depth=depth)


def pick_interpreter_tiles(total: int, outputs: int, inputs: int) -> ConvTiles:
    """The interpreter is faster with fewer programs."""
    return ConvTiles(_within(total, 4096), _within(outputs, 128), _within(inputs, 128), 4, 1)


def _within(size: int, limit: int) -> int:
    return int(max(16, min(limit, triton.next_power_of_2(size))))


@dataclass(frozen=True, slots=True)
class UnitTiles:
    """Steps and depth of a program's tile, outputs of its second product at a time; warps, stages, registers per
    thread.

    The registers are limited so that a multiprocessor runs several programs: one computes while another writes.
    """

    steps: int
    depth: int
    chunk: int
    warps: int
    stages: int
    registers: int

    def shared(self, channels: int) -> int:
        """Bytes of shared memory for inputs and weights of two bytes."""
        return self.stages * self.depth * (self.steps + channels) * 2


_UNITS = {128: UnitTiles(64, 32, 32, 4, 4, 128), 192: UnitTiles(64, 32, 64, 4, 4, 168)}
"""Tiles by maximum channels. On an H100, 64 streams of eight frames: 736 µs where two launches take 1,090, and
1,042 for 1,260; tiles of 128 steps take 804 and 1,121."""


def unit_parts(channels: int) -> tuple[int, int] | None:
    """The two powers of two whose sum is a unit's channels, the second may be 0; None if no tile fits."""
    first = 1 << channels.bit_length() - 1
    rest = channels - first
    fits = 16 <= channels <= 192 and (rest == 0 or (rest >= 16 and rest.bit_count() == 1))
    return (first, rest) if fits else None


def pick_unit_tiles(total: int, channels: int, limit: int) -> UnitTiles | None:
    """Tiles for `total` steps, limit: bytes of shared memory; None if two launches keep the GPU busier."""
    tiles = next(tiles for most, tiles in _UNITS.items() if channels <= most)
    fits = triton.cdiv(total, tiles.steps) >= _SMS and tiles.shared(channels) + SCRATCH <= limit
    return _unit_fitted(tiles, channels) if fits else None


def pick_interpreter_unit_tiles(total: int, channels: int) -> UnitTiles:
    """The interpreter is faster with fewer programs."""
    return _unit_fitted(UnitTiles(_within(total, 4096), 128, 128, 4, 1, 255), channels)


def _unit_fitted(tiles: UnitTiles, channels: int) -> UnitTiles:
    """A depth and a chunk that divide the channels."""
    return replace(tiles, depth=math.gcd(tiles.depth, channels), chunk=math.gcd(tiles.chunk, channels))
