"""The beginning of a frame in one kernel: the inputs and positions of its rows, from their slots.

x[r] = inputs[slots[r]], position[r] = positions[slots[r]]. A program has 1,024 channels of a row. Our own.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import launch
from engine.kernels.pdl import launch_dependents, supports_pdl


@triton.jit
def _begin_frame(slots, inputs, positions, x, at_position, width, BLOCK: tl.constexpr, PDL: tl.constexpr):
    """Grid (rows, width / BLOCK): see `begin_frame` for shapes."""
    row, block = tl.program_id(0), tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    if PDL:  # what stands before it in a graph, if anything, has ended
        launch_dependents()
    slot = tl.load(slots + row)
    tl.store(x + row * width + at, tl.load(inputs + slot * width + at, mask=inside), mask=inside)
    if block == 0:
        tl.store(at_position + row, tl.load(positions + slot))


def begin_frame(slots: Tensor, inputs: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """slots (rows,), inputs (slots in all, width), positions (slots in all,) → x (rows, width), positions (rows,)."""
    rows, width = len(slots), inputs.shape[1]
    if not inputs.is_contiguous() or positions.shape != inputs.shape[:1]:
        raise ValueError(f"positions {tuple(positions.shape)} are not those of inputs {tuple(inputs.shape)}")
    x, at = inputs.new_empty(rows, width), positions.new_empty(rows)
    launch(
        _begin_frame, (rows, triton.cdiv(width, 1024)),
        slots, inputs, positions, x, at, width,
        BLOCK=1024, PDL=supports_pdl(inputs.device), num_warps=4,
    )  # fmt: skip
    return x, at


def begin_frame_twin(slots: Tensor, inputs: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """The same in plain torch."""
    return inputs[slots], positions[slots]
