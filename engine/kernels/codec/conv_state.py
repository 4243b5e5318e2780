"""What a streamed layer saw last: read by its kernel, and moved on in the same launch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = tl.constexpr(1024)
"""Values that a program of keep_past moves at a time."""


@dataclass(frozen=True, slots=True)
class Past:
    """Columns (slots, 2, context, channels) by slot, of which one half is read and one written.

    slots (rows,) int64 names the slot of every row; turns (slots,) int64 counts the chunks of each slot, and even
    turns read half 0. Nothing is read and written in one pass, so the order of programs does not matter.
    """

    columns: Tensor
    slots: Tensor
    turns: Tensor

    @property
    def context(self) -> int:
        return self.columns.shape[2]

    @property
    def keepers(self) -> int:
        """Programs that a launch needs beside its own to move this past on."""
        return min(64, triton.cdiv(len(self.slots) * self.columns[0, 0].numel(), _BLOCK.value))


@triton.jit
def old_half(past, slots, turns, row, inside, slot_stride, size):
    """Pointers to the halves that these rows read; each half holds `size` values."""
    slot = tl.load(slots + row, mask=inside, other=0)
    half = tl.load(turns + slot, mask=inside, other=0) % 2
    return past + slot * slot_stride + half * size


@triton.jit
def keep_past(x, past, slots, turns, program, programs, rows, steps, channels, context, slot_stride):
    """Write the last `context` columns of past and x into the other half of the past, as one of some programs."""
    total = rows * context * channels
    size = context * channels
    for start in range(program * _BLOCK, total, programs * _BLOCK):
        at = start + tl.arange(0, _BLOCK)
        inside = at < total
        column = at // channels
        channel = at - column * channels
        row = column // context
        place = column - row * context
        slot = tl.load(slots + row, mask=inside, other=0)
        half = tl.load(turns + slot, mask=inside, other=0) % 2
        old = past + slot * slot_stride + half * size
        new = past + slot * slot_stride + (1 - half) * size
        step = steps - context + place
        fresh = x + (row.to(tl.int64) * steps + step) * channels
        source = tl.where(step >= 0, fresh, old + (step + context) * channels)
        tl.store(new + place * channels + channel, tl.load(source + channel, mask=inside), mask=inside)


def extend(x: Tensor, past: Past | None) -> Tensor:
    """For the plain twins: the past in front of x (rows, context + steps, channels), which becomes the past."""
    if past is None:
        return x
    half = past.turns[past.slots] % 2
    joined = torch.cat([past.columns[past.slots, half], x], 1)
    past.columns[past.slots, 1 - half] = joined[:, joined.shape[1] - past.context :]
    return joined
