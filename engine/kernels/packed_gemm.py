"""GEMM of gates and ups over packed 12-bit weights, for three to eight rows: silu(x · Gᵀ) · (x · Uᵀ).

Eight rows fill one side of the tensor cores' smallest tile (PTX ISA, mma.sync m16n8k16), whose other side is sixteen
columns of weights. Of that tile a thread holds eight weights, as four pairs of bfloat16; and a pair is an unpacked
word. A thread loads eight weights of each of four columns and multiplies these, so nothing passes between threads:
weights and x count the depth of a tile in the order that makes this possible.

A program is one warp, with a tile of gates and the matching tile of ups, and covers the whole depth:
nothing waits for other warps. Measured in a frame of eight rows on an H200 (2026-11-25): 5.23 → 4.99 ms. With more
rows, or for products of fewer weights, `engine.kernels.gemm` is as fast or faster: docs/log/frames.md.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.gemv import store
from engine.kernels.launch import early_start, grid_wait, launch, launch_dependents, prefetch_l2
from engine.kernels.packed12 import TILE_COLUMNS, TILE_DEPTH, Packed12, pairs, to_float32

PACKED12_ROWS = 8
"""Maximum rows."""
STEPS, STAGES = 2, 4
"""Tiles loaded together, and number of stages."""
EARLY_LINES: tl.constexpr = tl.constexpr(8)
"""Lines of 128 bytes, of gates and of ups, fetched into the L2 cache before the grid wait."""
_WORDS: tl.constexpr = tl.constexpr(128)
"""First words of a tile, and its second and third: a quad's sixteen next to the next quad's."""


@triton.jit
def _halves(pair, DTYPE: tl.constexpr):
    """Words of two bfloat16 as (…, 2) of this type, or of float32."""
    if tl.bfloat16 == DTYPE:  # the word as it is
        low = (pair & 0xFFFF).to(tl.uint16).to(DTYPE, bitcast=True)
        high = (pair >> 16).to(tl.uint16).to(DTYPE, bitcast=True)
    else:
        low, high = to_float32(pair)
    return tl.join(low, high)


@triton.jit
def _weights(at, DTYPE: tl.constexpr):
    """A tile's weights (32 lines, 32 deep) before their scales, from pointers to its first words (8, 4, 4).

    Line 8 c + q is column c of quad q. In depth a thread's first four weights count as neighbours, then its last four.
    """
    p0, p1, p2, p3 = pairs(tl.load(at), tl.load(at + _WORDS), tl.load(at + 2 * _WORDS))
    front = tl.join(_halves(p0, DTYPE), _halves(p1, DTYPE))
    back = tl.join(_halves(p2, DTYPE), _halves(p3, DTYPE))
    every = tl.join(front, back)  # quad, group, column, half, pair, front or back
    return tl.reshape(tl.permute(every, (2, 0, 5, 1, 4, 3)), (32, 32))


@triton.jit
def _inputs(at, inside, ROWS: tl.constexpr):
    """(32 deep, ROWS) from pointers to four groups of eight inputs (ROWS, 4, 8), in the order of `_weights`."""
    every = tl.reshape(tl.load(at, mask=inside, other=0.0), (ROWS, 4, 2, 4))  # row, group, front or back, neighbour
    return tl.reshape(tl.permute(every, (2, 1, 3, 0)), (32, ROWS))


@triton.jit(do_not_specialize=["rows"])
def _gated_packed12(
    x, tiles, scales, out, rows, columns, depth,
    ROWS: tl.constexpr, STEPS: tl.constexpr, STAGES: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Grid (columns / 32,): x (rows, depth), tiles and scales of gates over ups (2 · columns, depth), as `Packed12`."""
    tile = tl.program_id(0)
    size = 3 * _WORDS * (depth // 32)  # words of a row of tiles along the depth
    gates = tiles.to(tl.pointer_type(tl.uint32)) + tile.to(tl.int64) * size
    ups = gates + (columns // 32).to(tl.int64) * size
    quad, group, four = tl.arange(0, 8)[:, None, None], tl.arange(0, 4)[None, :, None], tl.arange(0, 4)[None, None, :]
    lane = 16 * quad + 4 * group + four
    row = tl.arange(0, ROWS)
    x_at = x + row[:, None, None] * depth + 8 * group + tl.arange(0, 8)[None, None, :]
    inside = (row < rows)[:, None, None]
    if PDL:
        lines = tl.arange(0, EARLY_LINES) * 32
        prefetch_l2(gates + lines)
        prefetch_l2(ups + lines)
        grid_wait()
    y = tl.zeros((32, ROWS), tl.float32)
    u = tl.zeros((32, ROWS), tl.float32)
    for start in tl.range(0, depth // 32, STEPS, num_stages=STAGES):
        for more in tl.static_range(STEPS):
            step = start + more
            xs = _inputs(x_at + 32 * step, inside, ROWS)
            ws = _weights(gates + lane + 3 * _WORDS * step, xs.dtype)
            y = tl.dot(ws, xs, y, input_precision="ieee")
            us = _weights(ups + lane + 3 * _WORDS * step, xs.dtype)
            u = tl.dot(us, xs, u, input_precision="ieee")
    if PDL:  # a kernel that starts earlier would slow it down
        launch_dependents()
    line = tl.arange(0, 32)
    column = 32 * tile + 4 * (line % 8) + line // 8
    y *= tl.load(scales + column)[:, None]
    u *= tl.load(scales + columns + column)[:, None]
    cell = row[None, :] * columns + column[:, None]
    mask = tl.broadcast_to((row < rows)[None, :], (32, ROWS))
    store(y, u, out, out, cell, mask, True, False)


def gated_packed12(x: Tensor, weight: Packed12) -> Tensor:
    """`linear` with gates for x (at most PACKED12_ROWS, depth) that is normed already; weight has tiles."""
    rows, depth = x.shape
    columns = weight.shape[0] // 2
    assert weight.tiles is not None and rows <= PACKED12_ROWS and depth % (TILE_DEPTH * STEPS) == 0
    out = torch.empty(rows, columns, device=x.device, dtype=x.dtype)
    launch(
        _gated_packed12, (columns // TILE_COLUMNS,),
        x, weight.tiles, weight.scales, out, rows, columns, depth,
        ROWS=PACKED12_ROWS, STEPS=STEPS, STAGES=STAGES, num_warps=1, **early_start(x.device),
    )  # fmt: skip
    return out
