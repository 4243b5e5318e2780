"""Convolution state: the left context of a streamed layer, read by its kernel and advanced in the same launch.

The convolution state of Moshi's streaming modules, in two halves: a launch reads one and writes the other, so that no
program waits for another. The halves are our own.
"""

from __future__ import annotations

from dataclasses import dataclass

import triton
import triton.language as tl
from torch import Tensor


@dataclass(frozen=True, slots=True)
class ConvState:
    """Columns (slots, 2, context, channels) by slot, of which one half is read and the other written.

    slots (rows,) int64 names the slot of every row; turns (slots,) int64 counts the chunks of each slot, and even
    turns read half 0. Nothing is both read and written in one pass, so the order of programs does not matter.
    """

    columns: Tensor
    slots: Tensor
    turns: Tensor

    @property
    def context(self) -> int:
        return self.columns.shape[2]

    def check(self, context: int, x: Tensor) -> None:
        """Raise ValueError unless this is the state of a layer with this context, for the rows of x (rows, steps,
        channels)."""
        rows, _, channels = x.shape
        if self.columns.shape[2:] != (context, channels):
            raise ValueError(f"the taps need a state of {context} columns of {channels}")
        if self.columns.dtype != x.dtype or len(self.slots) != rows:
            raise ValueError(f"the state is {self.columns.dtype} for {len(self.slots)} rows, x {x.dtype} of {rows}")

    @property
    def state_programs(self) -> int:
        """Additional programs that a launch needs to advance this state."""
        return min(64, triton.cdiv(len(self.slots) * self.columns[0, 0].numel(), 1024))


@triton.jit
def read_half(state, slots, turns, row, inside, slot_stride, size):
    """Pointers to the halves that these rows read; each half has `size` values."""
    slot = tl.load(slots + row, mask=inside, other=0)
    half = tl.load(turns + slot, mask=inside, other=0) % 2
    return state + slot * slot_stride + half * size


@triton.jit
def advance_state(x, state, slots, turns, program, programs, rows, steps, channels, context, slot_stride):
    """Write the last `context` columns of state and x into the other half of the state, as one of some programs."""
    BLOCK: tl.constexpr = 1024  # values at a time, by which `state_programs` counts too
    total = rows * context * channels
    size = context * channels
    for start in range(program * BLOCK, total, programs * BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < total
        column = at // channels
        channel = at - column * channels
        row = column // context
        place = column - row * context
        slot = tl.load(slots + row, mask=inside, other=0)
        half = tl.load(turns + slot, mask=inside, other=0) % 2
        old = state + slot * slot_stride + half * size
        new = state + slot * slot_stride + (1 - half) * size
        step = steps - context + place
        fresh = x + (row.to(tl.int64) * steps + step) * channels
        source = tl.where(step >= 0, fresh, old + (step + context) * channels)
        tl.store(new + place * channels + channel, tl.load(source + channel, mask=inside), mask=inside)
