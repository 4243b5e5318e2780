"""Packed 12-bit weights that count as bfloat16's sixteen bits, and the GEMV over them: a quarter fewer bytes to read.

The format is our own. Like DFloat11 (Zhang et al. 2025) and ZipNN (Hershcovitch et al. 2024) it saves on the exponent,
of whose eight bits weights use few; unlike their entropy codes its words have a fixed size, so that decoding is a few
shifts and masks a weight, at the price of rounding the very smallest. The kernel is `gemv`'s but for what it reads:
out[m, n] = scale[n] · Σₖ x[m, k] · W[n, k] for m < 2, then `gemv.epilogue`.

Of bfloat16's eight bits of exponent a trained or random row of weights uses four: hardly any weight is smaller than
2⁻¹⁴ of its row's largest. A row's exponents are therefore counted from its largest, as 15, downwards in four bits; sign
and seven bits of mantissa stay. What is smaller than 2⁻¹⁴ of the largest is rounded to multiples of 2⁻²¹ of it, as
denormal numbers are. This concerns one weight in ten thousand (the bundled checkpoint's as well as random ones'), and
changes a product by 6e-9 of its size, where summing in float32 changes it by 2.5e-7.

Eight weights of a column take three words of 32 bits. A word holds two as bfloat16 would, one a half (sign in bit 15,
exponent in 10 to 7, mantissa in 6 to 0); the four bits between sign and exponent, 14 to 11, hold a third each of the
last two. First words of four columns lie side by side, then those of the next eight weights of these columns: so a
thread takes four words at once that want the same eight inputs, and shared memory is read without conflicts.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.gemv import epilogue, load_inputs
from engine.kernels.launch import launch
from engine.kernels.pdl import grid_wait, launch_dependents, pdl_launch, supports_pdl

DEPTH_MULTIPLE = 128
"""The depth of weights in twelve bits is a multiple of this, so that rows are read in whole, aligned pieces."""
_AT_ONCE = 2**23
"""Weights that are laid out together: that takes some fifty bytes a weight, and each time thirty launches."""
_LIMIT = 2**15
"""What is larger cannot be brought down to an exponent of 15 by a normal float32."""
_PAIR = 0x87FF87FF
"""Where two weights have their bits in a word."""
_THIRDS = (0x07800780, 4), (0x00780078, 8), (0x80078007, 12)
"""Bits of the last two weights that each of the three words holds, and how far it holds them to the left of that."""
_EXPONENT_BITS, _BIAS = 23, 127
"""Of float32."""


@dataclass(frozen=True, eq=False, slots=True)
class Packed12:
    """Weights (columns, depth) in twelve bits."""

    words: Tensor
    """int32 (columns / 4, 3, depth / 8, 4): a quad of columns has its first, second and third words together"""
    scales: Tensor
    """float32 (columns,), powers of two: what sums are multiplied by"""

    @staticmethod
    def fits(weight: Tensor, gated: bool = False) -> bool:
        """Whether these weights (columns, depth) can be so held, and read in whole, aligned pieces: S2 Pro's all can.

        They must be finite and below 32,768. gated: they are gates over ups.
        """
        columns, depth = weight.shape
        return depth % DEPTH_MULTIPLE == 0 and (not gated or columns % 8 == 0) and bool(weight.abs().amax() < _LIMIT)

    @classmethod
    def of(cls, weight: Tensor) -> Packed12:
        """Weights that fit, rounded to bfloat16."""
        if not cls.fits(weight):
            raise ValueError(
                f"weights {tuple(weight.shape)} are not held in twelve bits: the depth must be a multiple of "
                f"{DEPTH_MULTIPLE}, every weight finite and below {_LIMIT}"
            )
        quads = max(1, _AT_ONCE // weight.shape[1] // 4)
        words, scales = zip(*map(_pack, weight.split(4 * quads)), strict=True)
        return cls(torch.cat(words), torch.cat(scales))

    @property
    def shape(self) -> tuple[int, int]:
        """Columns and depth."""
        return len(self.scales), 8 * self.words.shape[2]

    def unpacked(self) -> Tensor:
        """What is packed here as float32 (columns, depth); the reference for the kernel."""
        three = (self.words.long() & 0xFFFFFFFF).unbind(1)
        first, second, third = (
            _rotated(word, 32 - left) & bits for word, (bits, left) in zip(three, _THIRDS, strict=True)
        )
        pairs = torch.stack([*(word & _PAIR for word in three), first | second | third], -1)
        halves = _signed(torch.stack([pairs << 16 & 0xFFFFFFFF, pairs & 0xFFFF0000], -1)).view(torch.float32)
        return halves.transpose(1, 2).flatten(2).flatten(0, 1)[: self.shape[0]] * self.scales[:, None]


def _pack(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Words and scales of weights (columns, depth), as `Packed12` holds them."""
    columns, depth = weight.shape
    weight = weight.bfloat16()
    top = (weight.view(torch.int16).int() >> 7 & 0xFF).amax(1).clamp(min=15)
    lowered = F.pad((weight.float() * _two_to_the(15 - top)[:, None]).bfloat16(), (0, 0, 0, -columns % 4))
    halves = (lowered.view(torch.int16).long() & 0xFFFF).view(-1, 4, depth // 8, 4, 2)
    *words, last = (halves[..., 0] | halves[..., 1] << 16).unbind(-1)
    three = [word | _rotated(last & bits, left) for word, (bits, left) in zip(words, _THIRDS, strict=True)]
    return _signed(torch.stack(three, 1).transpose(2, 3).contiguous()), _two_to_the(top - 15)


def _two_to_the(power: Tensor) -> Tensor:
    return (power + _BIAS << _EXPONENT_BITS).view(torch.float32)


def _rotated(words: Tensor, left: int) -> Tensor:
    """Words of 32 bits, held in int64."""
    return (words << left | words >> 32 - left) & 0xFFFFFFFF


def _signed(words: Tensor) -> Tensor:
    return torch.where(words >= 2**31, words - 2**32, words).int()


@triton.jit
def _bfloat16_pair(words):
    """Two bfloat16 as float32: the lower half's, the upper half's."""
    return (words << 16).to(tl.float32, bitcast=True), (words & 0xFFFF0000).to(tl.float32, bitcast=True)


@triton.jit
def _unpack(words, start, groups, QUADS: tl.constexpr, GROUPS: tl.constexpr):
    """Eight times GROUPS weights of these quads of columns, (QUADS, GROUPS, 4, 8) float32, before their scales."""
    group = start + tl.arange(0, GROUPS)[None, :, None]
    at, inside = words + group * 4, group < groups
    first = tl.load(at, mask=inside, other=0)
    second = tl.load(at + 4 * groups, mask=inside, other=0)
    third = tl.load(at + 8 * groups, mask=inside, other=0)
    last = (first >> 4) & 0x07800780 | (second >> 8) & 0x00780078 | (third >> 12 | third << 20) & 0x80078007
    w0, w1 = _bfloat16_pair(first & 0x87FF87FF)
    w2, w3 = _bfloat16_pair(second & 0x87FF87FF)
    w4, w5 = _bfloat16_pair(third & 0x87FF87FF)
    w6, w7 = _bfloat16_pair(last)
    even = tl.join(tl.join(w0, w4), tl.join(w2, w6))
    odd = tl.join(tl.join(w1, w5), tl.join(w3, w7))
    return tl.reshape(tl.join(even, odd), (QUADS, GROUPS, 4, 8))


@triton.jit
def _gemv_packed12(
    x, words, scales, norm, residual, out, columns, depth, eps, ROWS: tl.constexpr,
    HAS_NORM: tl.constexpr, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
    QUADS: tl.constexpr, GROUPS: tl.constexpr, STAGES: tl.constexpr, PRELOAD: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Grid (columns / (4 · QUADS),); words and scales as `Packed12` has them, PRELOAD groups read before the wait."""
    groups = tl.multiple_of(depth // 8, 16)
    quads = tl.cdiv(columns, 4)
    quad = tl.minimum(tl.program_id(0) * QUADS + tl.arange(0, QUADS), quads - 1).to(tl.int64)[:, None, None]
    words = words.to(tl.pointer_type(tl.uint32)) + tl.arange(0, 4)[None, None, :]
    gates, ups = words + quad * (12 * groups), words + (quads + quad) * (12 * groups)
    if PDL and HAS_RESIDUAL:
        launch_dependents()
    if PRELOAD > 0:
        preloaded = _unpack(gates, 0, groups, QUADS, PRELOAD)
    if PDL:
        grid_wait()
    if PDL and not HAS_RESIDUAL and not GATED:
        launch_dependents()
    y_1 = tl.zeros((QUADS, GROUPS, 4), tl.float32)
    u_1, y_2, u_2 = y_1, y_1, y_1
    squares_1 = tl.zeros((8 * GROUPS,), tl.float32)
    squares_2 = squares_1
    for start in tl.range(PRELOAD, groups, GROUPS, num_stages=STAGES):
        # Inputs stand first, so that they are laid out as the weights want them: behind these they would be moved.
        wide_1, more = load_inputs(x, norm, 8 * start, depth, 8 * GROUPS, HAS_NORM)
        wide_1 = tl.reshape(wide_1, (1, GROUPS, 1, 8))
        squares_1 += more
        if ROWS == 2:
            wide_2, more = load_inputs(x + depth, norm, 8 * start, depth, 8 * GROUPS, HAS_NORM)
            wide_2 = tl.reshape(wide_2, (1, GROUPS, 1, 8))
            squares_2 += more
        ws = _unpack(gates, start, groups, QUADS, GROUPS)
        y_1 += tl.sum(ws * wide_1, 3)
        if ROWS == 2:
            y_2 += tl.sum(ws * wide_2, 3)
        if GATED:
            us = _unpack(ups, start, groups, QUADS, GROUPS)
            u_1 += tl.sum(us * wide_1, 3)
            if ROWS == 2:
                u_2 += tl.sum(us * wide_2, 3)
    if PDL and GATED:  # as in the kernel for other weights: a kernel that starts before that is in its way
        launch_dependents()
    y, u = tl.sum(y_1, 1), tl.sum(u_1, 1)
    if PRELOAD > 0:
        y += _preloaded_sums(preloaded, x, norm, depth, PRELOAD)
    column = tl.program_id(0) * 4 * QUADS + tl.arange(0, 4 * QUADS)
    y, u = tl.reshape(y, (4 * QUADS,)), tl.reshape(u, (4 * QUADS,))
    epilogue(y, u, squares_1, scales, residual, out, column, columns, depth, eps, True, HAS_NORM, GATED, HAS_RESIDUAL)
    if ROWS == 2:
        y, u = tl.sum(y_2, 1), tl.sum(u_2, 1)
        if PRELOAD > 0:
            y += _preloaded_sums(preloaded, x + depth, norm, depth, PRELOAD)
        y, u = tl.reshape(y, (4 * QUADS,)), tl.reshape(u, (4 * QUADS,))
        epilogue(
            y, u, squares_2, scales, residual + columns, out + columns, column, columns, depth, eps,
            True, HAS_NORM, GATED, HAS_RESIDUAL,
        )  # fmt: skip


@triton.jit
def _preloaded_sums(preloaded, x, norm, depth, PRELOAD: tl.constexpr):
    """What the preloaded weights add to the sums (QUADS, 4)."""
    wide, _ = load_inputs(x, norm, 0, depth, 8 * PRELOAD, False)
    return tl.sum(tl.sum(preloaded * tl.reshape(wide, (1, PRELOAD, 1, 8)), 3), 1)


def gemv_packed12(
    x: Tensor, weight: Packed12, norm: Tensor | None, eps: float, gated: bool, residual: Tensor | None, preload: bool
) -> Tensor:
    """`linear` for x (at most GEMV_ROWS, depth) over packed weights; parameters and result as there."""
    columns, depth = weight.shape
    columns = columns // 2 if gated else columns
    out = torch.empty(len(x), columns, device=x.device, dtype=x.dtype)
    tiles = _tiles(len(x), columns, depth, gated, preload)
    launch(
        _gemv_packed12, (triton.cdiv(columns, 4 * tiles.quads),),
        x, weight.words, weight.scales, x if norm is None else norm, x if residual is None else residual,
        out, columns, depth, eps, ROWS=len(x),
        HAS_NORM=norm is not None, GATED=gated, HAS_RESIDUAL=residual is not None,
        QUADS=tiles.quads, GROUPS=tiles.groups, STAGES=tiles.num_stages, PRELOAD=tiles.preload,
        PDL=supports_pdl(x.device), num_warps=tiles.num_warps, **pdl_launch(x.device),
    )  # fmt: skip
    return out


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Quads of columns and groups of eight weights that a program takes at a time, warps, stages, groups preloaded."""

    quads: int
    groups: int
    num_warps: int
    num_stages: int
    preload: int = 0


def _tiles(rows: int, columns: int, depth: int, gated: bool, preload: bool) -> _Tiles:
    """The best measured on an H200 for one row and for two."""
    most = 1 << (depth // 8).bit_length() - 1
    if preload:
        one, two = _Tiles(1, 128, 4, 1, preload=min(512, most)), _Tiles(1, 64, 2, 3, preload=min(256, most))
    elif gated:
        one, two = _Tiles(1, 32, 1, 6), _Tiles(1, 32, 1, 5)
    elif columns > depth:
        one, two = _Tiles(1, 32, 1, 4), _Tiles(2, 32, 2, 4)
    else:
        one, two = _Tiles(1, 64, 2, 4), _Tiles(1, 64, 2, 4)
    return one if rows == 1 else two
