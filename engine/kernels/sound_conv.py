"""The decoder's last convolution: from all channels of a few steps to one sample each, on the CUDA cores.

y[r, t] = tanh(Σ_j Σ_c weight[j, c] · x[r, t − (taps − 1 − j), c] + bias), or clamped to ±1. With one output, tensor
cores would have nothing to do but gather the input seven times; here the inputs shared by a tile's taps are read again
from the L1 cache.
A plain direct convolution.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.conv_state import ConvState, advance_state, read_half
from engine.kernels.launch import launch


@triton.jit(do_not_specialize=["rows", "steps", "tiles", "state_programs"])
def _sound_conv(
    x, weight, bias, out, state, slots, turns,
    rows, steps, channels, taps, slot_stride, tiles, state_programs,
    BLOCK_M: tl.constexpr, BLOCK: tl.constexpr, CLAMPS: tl.constexpr,
):  # fmt: skip
    """Grid (tiles + state_programs,): the first compute BLOCK_M samples each, the others advance the state."""
    program = tl.program_id(0)
    if program < tiles:
        m = program * BLOCK_M + tl.arange(0, BLOCK_M)
        c = tl.arange(0, BLOCK)
        inside = m < rows * steps
        both = inside[:, None] & (c < channels)[None, :]
        row = m // steps
        step = m - row * steps
        context = taps - 1
        new = x + m.to(tl.int64) * channels
        old = read_half(state, slots, turns, row, inside, slot_stride, context * channels) + (context + step) * channels
        total = tl.zeros((BLOCK_M, BLOCK), tl.float32)
        for tap in range(taps):
            back = context - tap
            source = tl.where(step >= back, new, old) - back * channels
            column = tl.load(source[:, None] + c[None, :], mask=both, other=0.0).to(tl.float32)
            total += column * tl.load(weight + tap * channels + c, mask=c < channels, other=0.0)[None, :]
        y = tl.sum(total, 1) + tl.load(bias)
        if CLAMPS:
            y = tl.minimum(tl.maximum(y, -1.0), 1.0)
        else:
            y = 1 - 2 / (tl.exp(2 * y) + 1)  # tanh
        tl.store(out + m, y, mask=inside)
    else:
        advance_state(
            x, state, slots, turns, program - tiles, state_programs, rows, steps, channels, taps - 1, slot_stride
        )


def sound_conv(x: Tensor, weight: Tensor, bias: Tensor, state: ConvState, clamps: bool = False) -> Tensor:
    """x (rows, steps, channels), after each row's state, by weight (taps, channels) → (rows, steps) in [-1, 1].

    clamps: whether it ends with a clamp instead of tanh.
    weight and bias (1,) are float32, and so is the result. The state advances by x.
    """
    rows, steps, channels = x.shape
    taps = len(weight)
    if weight.shape[1] != channels or not (x.is_contiguous() and weight.is_contiguous()):
        raise ValueError(f"x {tuple(x.shape)} does not fit weights {tuple(weight.shape)}")
    state.check(taps - 1, x)
    out = torch.empty(rows, steps, device=x.device)
    block_m = _samples(x)
    tiles = triton.cdiv(rows * steps, block_m)
    launch(
        _sound_conv, (tiles + state.state_programs,),
        x, weight, bias, out, state.columns, state.slots, state.turns,
        rows, steps, channels, taps, state.columns.stride(0), tiles, state.state_programs,
        BLOCK_M=block_m, BLOCK=triton.next_power_of_2(channels), CLAMPS=clamps, num_warps=4,
    )  # fmt: skip
    return out


def _samples(x: Tensor) -> int:
    """Samples per program; Triton's interpreter is faster with fewer programs."""
    return 32 if x.device.type == "cuda" else min(4096, triton.next_power_of_2(x.shape[0] * x.shape[1]))
