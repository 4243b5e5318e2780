"""The front of a ConvNeXt block (Liu et al. 2022): causal depthwise convolution over a stream, then LayerNorm.

y[r, t, c] = bias[c] + Σ_j weight[j, c] · x[r, t − (taps − 1 − j), c], then (y − mean) / √(var + eps) · gain + shift
over the channels. A program handles all channels of one step, so that the norm needs nothing of another; the fusion is
own.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.conv_state import ConvState, advance_state, read_half
from engine.kernels.launch import launch


@triton.jit(do_not_specialize=["rows", "steps", "tiles", "state_programs"])
def _depthwise_norm(
    x, weight, bias, gain, shift, out, state, slots, turns,
    rows, steps, channels, taps, slot_stride, tiles, state_programs, eps,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Grid (rows · steps + state programs,): the first compute a step of the result each, the others advance the
    state."""
    program = tl.program_id(0)
    if program < tiles:
        c = tl.arange(0, BLOCK)
        inside = c < channels
        row = program // steps
        step = program - row * steps
        new = x + program.to(tl.int64) * channels
        old = (
            read_half(state, slots, turns, row, True, slot_stride, (taps - 1) * channels) + (taps - 1 + step) * channels
        )
        y = tl.load(bias + c, mask=inside, other=0.0)
        for tap in range(taps):
            back = taps - 1 - tap
            source = old if step < back else new
            column = tl.load(source - back * channels + c, mask=inside, other=0.0).to(tl.float32)
            y += column * tl.load(weight + tap * channels + c, mask=inside, other=0.0)
        centred = tl.where(inside, y - tl.sum(y, 0) / channels, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred, 0) / channels + eps)
        normed = centred * scale * tl.load(gain + c, mask=inside, other=0.0)
        normed += tl.load(shift + c, mask=inside, other=0.0)
        tl.store(out + program.to(tl.int64) * channels + c, normed.to(out.dtype.element_ty), mask=inside)
    else:
        advance_state(
            x, state, slots, turns, program - tiles, state_programs, rows, steps, channels, taps - 1, slot_stride
        )


def depthwise_norm(
    x: Tensor, weight: Tensor, bias: Tensor, gain: Tensor, shift: Tensor, eps: float, state: ConvState, out: torch.dtype
) -> Tensor:
    """x (rows, steps, channels), after each row's state, by weight (taps, channels), plus bias, normed → like x.

    LayerNorm over the channels with gain and shift (channels,). The state advances by x.
    """
    rows, steps, channels = x.shape
    taps = len(weight)
    state.check(taps - 1, x)
    result = torch.empty(rows, steps, channels, device=x.device, dtype=out)
    launch(
        _depthwise_norm, (rows * steps + state.state_programs,),
        x, weight, bias, gain, shift, result, state.columns, state.slots, state.turns,
        rows, steps, channels, taps, state.columns.stride(0), rows * steps, state.state_programs, eps,
        BLOCK=triton.next_power_of_2(channels), num_warps=4,
    )  # fmt: skip
    return result
