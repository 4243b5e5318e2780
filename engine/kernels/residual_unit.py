"""A residual unit of the codec as one launch: dilated convolution, Snake, product of one tap, residual, next Snake.

y[r, t] = x[r, t] + W₂ · snake(Σ_j W₁[:, j] · a[r, t − (taps − 1 − j) · dilation] + b₁) + b₂, where a is the Snake of x
from the previous kernel: the residual unit of DAC (Kumar et al. 2023). A program handles all channels of its steps, so
that the values between the products stay in registers, as in FlashAttention-2 (Dao 2023). This fusion is our own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.conv import ConvWeights, SnakeGains
from engine.kernels.conv_state import ConvState, advance_state, read_half
from engine.kernels.conv_tiles import UnitTiles, pick_interpreter_unit_tiles, pick_unit_tiles, unit_parts
from engine.kernels.implicit_gemm import epilogue, saturated, snake
from engine.kernels.launch import launch, shared_memory


@dataclass(frozen=True, slots=True)
class UnitWeights:
    """The wide convolution (channels, taps, channels), the narrow one (channels, 1, channels), and a Snake after each.

    Biases (channels,) float32. Both convolutions use one product of their weights' type, without low halves.
    """

    wide: ConvWeights
    wide_bias: Tensor
    between: SnakeGains
    narrow: ConvWeights
    narrow_bias: Tensor
    after: SnakeGains
    dilation: int


@triton.jit
def _dilated(
    x, weight, state, slots, turns, m, total, steps, taps, dilation, slot_stride,
    CHANNELS: tl.constexpr,
    BLOCK_M: tl.constexpr, FIRST: tl.constexpr, REST: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """The sums of steps m over all taps and inputs: of the first outputs, and of the rest."""
    context = (taps - 1) * dilation
    row = m // steps
    step = m - row * steps
    new = x + m.to(tl.int64) * CHANNELS
    old = read_half(state, slots, turns, row, m < total, slot_stride, context * CHANNELS) + (context + step) * CHANNELS
    k = tl.arange(0, BLOCK_K)[None, :]
    w = weight + tl.arange(0, FIRST)[:, None] * (taps * CHANNELS) + k
    first = tl.zeros((BLOCK_M, FIRST), tl.float32)
    rest = first
    if REST:
        v = weight + (FIRST + tl.arange(0, REST))[:, None] * (taps * CHANNELS) + k
        rest = tl.zeros((BLOCK_M, REST), tl.float32)
    for i in range(taps * (CHANNELS // BLOCK_K)):  # one loop that the compiler can pipeline
        back = context - i // (CHANNELS // BLOCK_K) * dilation
        source = tl.where(step >= back, new, old) - back * CHANNELS
        column = i % (CHANNELS // BLOCK_K) * BLOCK_K + k
        a = tl.load(source[:, None] + column, mask=(m < total)[:, None], other=0.0)
        first = tl.dot(a, tl.trans(tl.load(w + i * BLOCK_K)), first, input_precision="ieee")
        if REST:
            rest = tl.dot(a, tl.trans(tl.load(v + i * BLOCK_K)), rest, input_precision="ieee")
    return first, rest


@triton.jit
def _active(acc, scale, bias, alpha, inverse, n, kind: tl.constexpr):
    """The Snake of sums for outputs n, in the next product's type."""
    y = acc * scale + tl.load(bias + n)[None, :]
    return saturated(snake(y, tl.load(alpha + n)[None, :], tl.load(inverse + n)[None, :]), kind)


@triton.jit(do_not_specialize=["rows", "steps", "taps", "dilation", "tiles", "state_programs", "scale1", "scale2"])
def residual_unit_kernel(
    x, weight1, bias1, alpha1, inverse1, weight2, bias2, alpha2, inverse2, residual, out, active, state, slots, turns,
    rows, steps, taps, dilation, slot_stride, tiles, state_programs, scale1, scale2,
    HAS_OUT: tl.constexpr, CHANNELS: tl.constexpr,
    BLOCK_M: tl.constexpr, FIRST: tl.constexpr, CHUNK: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Grid (tiles + state_programs,): the first compute BLOCK_M steps each, the others advance the state.

    x, out, active, residual (rows, steps, channels); weight1 (channels, taps, channels), weight2 (channels, channels);
    state, slots and turns as in `ConvState`. CHANNELS are FIRST, a power of two, and a smaller one or none.
    """
    program = tl.program_id(0)
    total = rows * steps
    if program < tiles:
        REST: tl.constexpr = CHANNELS - FIRST
        m = program * BLOCK_M + tl.arange(0, BLOCK_M)
        first, rest = _dilated(
            x, weight1, state, slots, turns, m, total, steps, taps, dilation, slot_stride,
            CHANNELS, BLOCK_M, FIRST, REST, BLOCK_K,
        )  # fmt: skip
        kind: tl.constexpr = x.dtype.element_ty
        n = tl.arange(0, FIRST)
        first = _active(first, scale1, bias1, alpha1, inverse1, n, kind)
        if REST:
            r = FIRST + tl.arange(0, REST)
            rest = _active(rest, scale1, bias1, alpha1, inverse1, r, kind)
        for start in tl.range(0, CHANNELS, CHUNK, num_stages=1):  # the sums of all outputs do not fit into registers
            o = start + tl.arange(0, CHUNK)
            w = weight2 + o[None, :] * CHANNELS
            acc = tl.dot(first, tl.load(w + n[:, None]), input_precision="ieee")
            if REST:
                acc = tl.dot(rest, tl.load(w + r[:, None]), acc, input_precision="ieee")
            acc = acc * scale2 + tl.load(bias2 + o)[None, :]
            epilogue(acc, alpha2, inverse2, residual, out, active, m, o, total, CHANNELS, True, HAS_OUT, True, "none")
    else:
        advance_state(
            x, state, slots, turns, program - tiles, state_programs, rows, steps, CHANNELS, (taps - 1) * dilation,
            slot_stride,
        )  # fmt: skip


def residual_unit(
    x: Tensor, unit: UnitWeights, residual: Tensor, state: ConvState, out: bool, tiles: UnitTiles
) -> tuple[Tensor | None, Tensor]:
    """x (rows, steps, channels), already activated, after each row's state → the sum and its Snake, both of this shape.

    The sum has the type of residual, which has this shape, too; without `out` it is not stored. The values between the
    two convolutions and the second result have the type of x, which is the weights'. The state advances by x.
    """
    rows, steps, channels = x.shape
    taps, parts = unit.wide.high.shape[1], unit_parts(channels)
    if parts is None or unit.wide.high.shape[::2] != (channels, channels) or not x.is_contiguous():
        raise ValueError(f"x {tuple(x.shape)} does not fit weights {tuple(unit.wide.high.shape)}, or these no tile")
    if unit.wide.low is not None or unit.narrow.low is not None or unit.wide.high.dtype != x.dtype:
        raise ValueError(f"weights {unit.wide.high.dtype}, or their halves, do not multiply {x.dtype}")
    context = (taps - 1) * unit.dilation
    state.check(context, x)
    if residual.shape != x.shape or not residual.is_contiguous():
        raise ValueError(f"residual {tuple(residual.shape)} is not {tuple(x.shape)}")
    result, active = torch.empty_like(residual) if out else None, torch.empty_like(x)
    programs = triton.cdiv(rows * steps, tiles.steps)
    launch(
        residual_unit_kernel, (programs + state.state_programs,),
        x, unit.wide.high, unit.wide_bias, unit.between.alpha, unit.between.inverse,
        unit.narrow.high, unit.narrow_bias, unit.after.alpha, unit.after.inverse,
        residual, active if result is None else result, active, state.columns, state.slots, state.turns,
        rows, steps, taps, unit.dilation, state.columns.stride(0), programs, state.state_programs,
        unit.wide.scale, unit.narrow.scale,
        HAS_OUT=out, CHANNELS=channels, BLOCK_M=tiles.steps, FIRST=parts[0], CHUNK=tiles.chunk, BLOCK_K=tiles.depth,
        num_warps=tiles.warps, num_stages=tiles.stages, maxnreg=tiles.registers,
    )  # fmt: skip
    return result, active


def unit_tiles(x: Tensor) -> UnitTiles | None:
    """Tiles for x (rows, steps, channels); None if two launches of `conv` are faster."""
    total, channels = x.shape[0] * x.shape[1], x.shape[2]
    if x.device.type == "cpu":
        return pick_interpreter_unit_tiles(total, channels)
    return pick_unit_tiles(total, channels, shared_memory(x.device))
