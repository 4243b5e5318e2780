"""The two ends of a pass over the codec's streams: sums the vectors of codes, and advances each stream's clock.

out[r, t] = Σ_b table[starts[b] + min(codes[r, b, t], sizes[b] − 1)]: the decoding of residual vector quantisation
(SoundStream, Zeghidour et al. 2021) as an embedding bag. A program handles a block of channels of one frame.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import launch


@triton.jit(do_not_specialize=["books", "frames"])
def _look_up(codes, table, starts, sizes, out, books, frames, channels, BLOCK: tl.constexpr):
    """Grid (rows, frames, channels / BLOCK): see `look_up` for shapes."""
    row, frame = tl.program_id(0), tl.program_id(1)
    c = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = c < channels
    total = tl.zeros((BLOCK,), tl.float32)
    for book in range(books):
        code = tl.load(codes + (row * books + book) * frames + frame)
        entry = tl.load(starts + book) + tl.minimum(code, tl.load(sizes + book) - 1)
        total += tl.load(table + entry * channels + c, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + (row * frames + frame) * channels + c, total, mask=inside)


def look_up(codes: Tensor, table: Tensor, starts: Tensor, sizes: Tensor) -> Tensor:
    """codes (rows, books, frames) int64 → the sum of their entries, (rows, frames, channels) float32.

    table (entries, channels) contains all books, book b from starts[b] on; a code beyond its size means its last entry.
    """
    rows, books, frames = codes.shape
    channels = table.shape[1]
    if len(starts) != books or len(sizes) != books or not codes.is_contiguous():
        raise ValueError(f"codes {tuple(codes.shape)} must be contiguous codes of {len(starts)} books")
    out = torch.empty(rows, frames, channels, device=table.device)
    block = min(256, triton.next_power_of_2(channels))
    launch(
        _look_up, (rows, frames, triton.cdiv(channels, block)),
        codes, table, starts, sizes, out, books, frames, channels, BLOCK=block, num_warps=2,
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["frames"])
def _advance(slots, positions, turns, frames):
    """Grid (rows,): see `advance`."""
    slot = tl.load(slots + tl.program_id(0))
    position, turn = tl.load(positions + slot), tl.load(turns + slot)
    tl.store(positions + slot, position + frames)
    tl.store(turns + slot, turn + 1)


def advance(slots: Tensor, positions: Tensor, turns: Tensor, frames: int) -> None:
    """Advance these slots (rows,) by some frames and one turn; for a slot named twice the result is undefined."""
    launch(_advance, (len(slots),), slots, positions, turns, frames, num_warps=1)
