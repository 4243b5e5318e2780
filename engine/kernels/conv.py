"""Causal convolutions of streams as matrix products: time by channels, left context from each stream's own past.

A linear layer is a convolution of one tap; a transposed one whose kernel is twice its stride has two taps and
stride times the outputs, of which (steps, stride · channels) is (steps · stride, channels) as it lies in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

Activation = Literal["none", "gelu", "silu_gate", "tanh"]


@dataclass(frozen=True, slots=True)
class Past:
    """What a layer saw last, by slot: columns (slots, 2, context, channels), of which one half is read, one written.

    slots (rows,) int64 names the slot of every row; turns (slots,) int64 counts the chunks of each slot, and even
    turns read half 0. Nothing is read and written in one pass, so the order of programs does not matter.
    """

    columns: Tensor
    slots: Tensor
    turns: Tensor

    @property
    def context(self) -> int:
        return self.columns.shape[2]


@dataclass(frozen=True, slots=True)
class Weights:
    """(outputs, taps, inputs); low: what TF32 or bfloat16 lost of them, where a product is to be as good as float32."""

    high: Tensor
    low: Tensor | None = None
    precision: Literal["ieee", "tf32", "tf32x3"] = "tf32"


@dataclass(frozen=True, slots=True)
class Tiles:
    """How a product is cut up: steps, channels and depth of a program's tile, its warps and loads ahead."""

    steps: int
    channels: int
    depth: int
    warps: int
    stages: int


@dataclass(frozen=True, slots=True)
class Snake:
    """x + sin²(αx)/α: α and 1/α (outputs,) float32."""

    alpha: Tensor
    inverse: Tensor


@triton.jit
def _snake(x, alpha, inverse):
    """sin² has the period π, so αx is brought into ±π/2, where eleven powers give sin to 6e-8."""
    y = alpha * x
    turns = tl.floor(y * 0.3183098861837907 + 0.5)
    r = (y - turns * 3.140625) - turns * 0.0009676535897932
    q = r * r
    s = -2.505210838544172e-8 * q + 2.755731922398589e-6
    s = s * q - 1.984126984126984e-4
    s = s * q + 8.333333333333333e-3
    s = s * q - 1.6666666666666666e-1
    s = s * q * r + r
    return x + inverse * s * s


@triton.jit
def _to_tf32(x):
    """Rounded to the eleven bits of TF32, which tensor cores would cut off."""
    return ((x.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def _keep(x, past, slots, turns, program, programs, rows, steps, channels, context, slot_stride, BLOCK: tl.constexpr):
    """Write the last `context` columns of past and x into the other half of the past, as one of some programs."""
    total = rows * context * channels
    for start in range(program * BLOCK, total, programs * BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < total
        column = at // channels
        channel = at - column * channels
        row = column // context
        place = column - row * context
        slot = tl.load(slots + row, mask=inside, other=0)
        half = tl.load(turns + slot, mask=inside, other=0) % 2
        size = context * channels
        old = past + slot * slot_stride + half * size
        new = past + slot * slot_stride + (1 - half) * size
        step = steps - context + place
        source = tl.where(
            step >= 0, x + (row.to(tl.int64) * steps + step) * channels, old + (step + context) * channels
        )
        tl.store(new + place * channels + channel, tl.load(source + channel, mask=inside), mask=inside)


@triton.jit(do_not_specialize=["rows", "steps", "taps", "dilation", "context", "tiles", "keepers", "eps"])
def _conv(
    x, weight, low, bias, alpha, inverse, residual, out, active, past, slots, turns,
    rows, steps, inputs, outputs, taps, dilation, context, slot_stride, tiles, keepers, eps,
    HAS_PAST: tl.constexpr, HAS_LOW: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_NORM: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr, HAS_OUT: tl.constexpr, HAS_SNAKE: tl.constexpr, ACTIVATION: tl.constexpr,
    PRECISION: tl.constexpr, ROUNDS: tl.constexpr, EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    if program < tiles:
        total = rows * steps
        across = tl.cdiv(outputs, BLOCK_N)
        down = tl.cdiv(total, BLOCK_M)
        first = program // (GROUP * across) * GROUP
        group = tl.minimum(down - first, GROUP)
        inner = program % (GROUP * across)
        m = (first + inner % group) * BLOCK_M + tl.arange(0, BLOCK_M)
        n = (inner // group) * BLOCK_N + tl.arange(0, BLOCK_N)
        k = tl.arange(0, BLOCK_K)
        m_inside, n_inside = m < total, n < outputs
        row = m // steps
        step = m - row * steps
        new = x + m.to(tl.int64) * inputs
        if HAS_PAST:
            slot = tl.load(slots + row, mask=m_inside, other=0)
            half = tl.load(turns + slot, mask=m_inside, other=0) % 2
            old = past + slot * slot_stride + (half * context + context + step) * inputs
        w = weight + n.to(tl.int64)[:, None] * (taps * inputs) + k[None, :]
        lo = low + n.to(tl.int64)[:, None] * (taps * inputs) + k[None, :]
        blocks = tl.cdiv(inputs, BLOCK_K)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        squares = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
        start = 0
        back = context
        for _ in range(taps * blocks):
            if HAS_PAST:
                source = tl.where(step >= back, new - back * inputs, old - back * inputs)
            else:
                source = new
            if EVEN:
                a = tl.load(source[:, None] + (start + k)[None, :], mask=m_inside[:, None], other=0.0)
                b = tl.load(w, mask=n_inside[:, None], other=0.0)
            else:
                k_inside = (k < inputs - start)[None, :]
                a = tl.load(source[:, None] + (start + k)[None, :], mask=m_inside[:, None] & k_inside, other=0.0)
                b = tl.load(w, mask=n_inside[:, None] & k_inside, other=0.0)
            if HAS_NORM:
                squares += a.to(tl.float32) * a.to(tl.float32)
            if HAS_LOW:
                if EVEN:
                    c = tl.load(lo, mask=n_inside[:, None], other=0.0)
                else:
                    k_inside = (k < inputs - start)[None, :]
                    c = tl.load(lo, mask=n_inside[:, None] & k_inside, other=0.0)
                if b.dtype == tl.bfloat16:
                    high = a.to(tl.bfloat16)
                    rest = (a - high.to(tl.float32)).to(tl.bfloat16)
                else:
                    high = _to_tf32(a)
                    rest = _to_tf32(a - high)
                acc = tl.dot(rest, tl.trans(b), acc, input_precision=PRECISION)
                acc = tl.dot(high, tl.trans(c), acc, input_precision=PRECISION)
                acc = tl.dot(high, tl.trans(b), acc, input_precision=PRECISION)
            else:
                acc = tl.dot(a.to(b.dtype), tl.trans(b), acc, input_precision=PRECISION)
            forward = BLOCK_K if EVEN else tl.minimum(BLOCK_K, inputs - start)  # a tap's last block may be short
            w += forward
            lo += forward
            start += forward
            back = tl.where(start < inputs, back, back - dilation)
            start = tl.where(start < inputs, start, 0)
        if HAS_NORM:
            acc *= tl.rsqrt(tl.sum(squares, 1) / inputs + eps)[:, None]
        if HAS_BIAS:
            acc += tl.load(bias + n, mask=n_inside, other=0.0)[None, :]
        if ACTIVATION == "silu_gate":
            gate, up = tl.split(tl.reshape(acc, (BLOCK_M, BLOCK_N // 2, 2)))
            gated = gate * tl.sigmoid(gate) * up
            half_n = (inner // group) * (BLOCK_N // 2) + tl.arange(0, BLOCK_N // 2)
            at = m.to(tl.int64)[:, None] * (outputs // 2) + half_n[None, :]
            inside = m_inside[:, None] & (half_n < outputs // 2)[None, :]
            tl.store(out + at, gated.to(out.dtype.element_ty), mask=inside)
        else:
            at = m.to(tl.int64)[:, None] * outputs + n[None, :]
            inside = m_inside[:, None] & n_inside[None, :]
            if ACTIVATION == "gelu":
                acc = 0.5 * acc * (1 + tl.erf(acc * 0.7071067811865476))
            if ACTIVATION == "tanh":
                acc = 1 - 2 / (tl.exp(2 * acc) + 1)
            if HAS_RESIDUAL:
                acc += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
            if HAS_OUT:
                tl.store(out + at, acc.to(out.dtype.element_ty), mask=inside)
            if HAS_SNAKE:
                alphas = tl.load(alpha + n, mask=n_inside, other=1.0)[None, :]
                inverses = tl.load(inverse + n, mask=n_inside, other=1.0)[None, :]
                waved = _snake(acc, alphas, inverses)
                if ROUNDS:
                    waved = _to_tf32(waved)
                tl.store(active + at, waved.to(active.dtype.element_ty), mask=inside)
    else:
        if HAS_PAST:
            _keep(
                x, past, slots, turns, program - tiles, keepers, rows, steps, inputs, context, slot_stride, BLOCK=1024
            )


def conv(
    x: Tensor,
    weights: Weights,
    past: Past | None = None,
    dilation: int = 1,
    bias: Tensor | None = None,
    norm_eps: float | None = None,
    activation: Activation = "none",
    residual: Tensor | None = None,
    out: torch.dtype | None = None,
    snake: tuple[Snake, torch.dtype] | None = None,
    tiles: Tiles | None = None,
) -> tuple[Tensor | None, Tensor | None]:
    """x (rows, steps, inputs), after each row's past, by weights (outputs, taps, inputs) → (rows, steps, outputs).

    out: the type of the result, None when only its snake is asked for; snake: the second result. The order is
    norm (x over its root mean square), product, bias (outputs,), activation, residual (rows, steps, outputs).
    silu_gate takes outputs in pairs gate, up and halves them. The past moves on by x, in the other of its halves.
    """
    rows, steps, inputs = x.shape
    outputs, taps, depth = weights.high.shape
    context = (taps - 1) * dilation
    if depth != inputs or not (x.is_contiguous() and weights.high.is_contiguous()):
        raise ValueError(f"x {tuple(x.shape)} does not fit weights {tuple(weights.high.shape)}, or lies apart")
    if (past.context if past else 0) != context or (past and past.columns.shape[3] != inputs):
        raise ValueError(f"{taps} taps at dilation {dilation} need a past of {context} columns of {inputs}")
    if past and (past.columns.dtype != x.dtype or len(past.slots) != rows):
        raise ValueError(f"the past is {past.columns.dtype} for {len(past.slots)} rows, x {x.dtype} of {rows}")
    wide = outputs // 2 if activation == "silu_gate" else outputs
    if residual is not None and (residual.shape != (rows, steps, outputs) or not residual.is_contiguous()):
        raise ValueError(f"residual {tuple(residual.shape)} is not {(rows, steps, outputs)}")
    result = None if out is None else torch.empty(rows, steps, wide, device=x.device, dtype=out)
    active = None if snake is None else torch.empty(rows, steps, wide, device=x.device, dtype=snake[1])
    tiles = tiles or pick(rows * steps, outputs, inputs, x.device)
    programs = triton.cdiv(rows * steps, tiles.steps) * triton.cdiv(outputs, tiles.channels)
    keepers = min(64, triton.cdiv(rows * context * inputs, 1024))
    _conv[(programs + keepers,)](
        x, weights.high, _or(weights.low, x), _or(bias, x), snake[0].alpha if snake else x,
        snake[0].inverse if snake else x, _or(residual, x), _or(result, x), _or(active, x),
        past.columns if past else x, past.slots if past else x, past.turns if past else x,
        rows, steps, inputs, outputs, taps, dilation, context, past.columns.stride(0) if past else 0,
        programs, keepers, norm_eps or 0.0,
        HAS_PAST=past is not None, HAS_LOW=weights.low is not None, HAS_BIAS=bias is not None,
        HAS_NORM=norm_eps is not None, HAS_RESIDUAL=residual is not None, HAS_OUT=out is not None,
        HAS_SNAKE=snake is not None, ACTIVATION=activation, PRECISION=weights.precision,
        ROUNDS=weights.low is None and weights.precision == "tf32" and x.dtype == torch.float32,
        EVEN=inputs % tiles.depth == 0, BLOCK_M=tiles.steps, BLOCK_N=tiles.channels, BLOCK_K=tiles.depth, GROUP=8,
        num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    return result, active


def _or(tensor: Tensor | None, other: Tensor) -> Tensor:
    return other if tensor is None else tensor


def pick(total: int, outputs: int, inputs: int, device: torch.device) -> Tiles:
    """The tile for `total` steps: large where there is work for every multiprocessor, else small."""
    if device.type != "cuda":  # interpreted: the fewer programs the faster
        return Tiles(_within(total, 4096), _within(outputs, 128), _within(inputs, 128), 4, 1)
    if total <= 16:
        return Tiles(16, 16, 128, 4, 4)
    if total <= 64:
        return Tiles(32, 16, 128, 4, 4)
    wide = 128 if outputs % 128 == 0 else 64 if outputs % 64 == 0 or outputs > 64 else 32
    for tiles in (Tiles(128, wide, 32, 8, 3), Tiles(64, 64, 32, 4, 4)):
        if triton.cdiv(total, tiles.steps) * triton.cdiv(outputs, tiles.channels) >= 132:
            return tiles
    return Tiles(32, 32, 64, 4, 4)


def _within(size: int, limit: int) -> int:
    return int(max(16, min(limit, triton.next_power_of_2(size))))


def conv_twin(
    x: Tensor,
    weights: Weights,
    past: Past | None = None,
    dilation: int = 1,
    bias: Tensor | None = None,
    norm_eps: float | None = None,
    activation: Activation = "none",
    residual: Tensor | None = None,
    out: torch.dtype | None = None,
    snake: tuple[Snake, torch.dtype] | None = None,
) -> tuple[Tensor | None, Tensor | None]:
    """The same in plain torch."""
    weight = weights.high.float() + (0 if weights.low is None else weights.low.float())
    joined = extend(x, past).float()
    y = F.conv1d(joined.transpose(1, 2), weight.transpose(1, 2), dilation=dilation).transpose(1, 2)
    if norm_eps is not None:
        y = y * (x.float().square().mean(-1, keepdim=True) + norm_eps).rsqrt()
    y = y if bias is None else y + bias
    if activation == "silu_gate":
        y = F.silu(y[..., 0::2]) * y[..., 1::2]
    elif activation != "none":
        y = F.gelu(y) if activation == "gelu" else y.tanh()
    y = y if residual is None else y + residual
    active = None if snake is None else y + snake[0].inverse * (snake[0].alpha * y).sin().square()
    return None if out is None else y.to(out), None if snake is None or active is None else active.to(snake[1])


def extend(x: Tensor, past: Past | None) -> Tensor:
    """The past in front of x (rows, context + steps, channels); its last columns become the past."""
    if past is None:
        return x
    half = past.turns[past.slots] % 2
    joined = torch.cat([past.columns[past.slots, half], x], 1)
    past.columns[past.slots, 1 - half] = joined[:, joined.shape[1] - past.context :]
    return joined
