"""Packed 12-bit weights equivalent to bfloat16's sixteen bits: a quarter fewer bytes to read.

The format is our own. Like DFloat11 (Zhang et al. 2025) and ZipNN (Hershcovitch et al. 2024) it saves on the exponent,
of whose eight bits weights use few; unlike their entropy codes its words have a fixed size, so that decoding is a few
shifts and masks a weight, at the price of rounding the very smallest. Products are
out[m, n] = scale[n] · Σₖ x[m, k] · W[n, k], by `gemv` and by `gemm`.

Of bfloat16's eight bits of exponent a trained or random row of weights uses four: hardly any weight is smaller than
2⁻¹⁴ of its row's largest. A row's exponents are therefore counted from its largest, as 15, downwards in four bits; sign
and seven bits of mantissa stay. Weights smaller than 2⁻¹⁴ of the largest are rounded to multiples of 2⁻²¹ of it, like
denormal numbers. This concerns one weight in ten thousand (the bundled checkpoint's as well as random ones'), and
changes a product by 6e-9 of its size, where summing in float32 changes it by 2.5e-7.

Eight weights of a column take three words of 32 bits. A word holds two, one per half, as bfloat16 would (sign in bit
15, exponent in 10 to 7, mantissa in 6 to 0); the four bits between sign and exponent, 14 to 11, hold a third each of
the last two. First words of four columns, a quad, are adjacent, then those of the next eight weights of these columns:
so a thread loads four words at once that need the same eight inputs, and shared memory is read without conflicts.

`gemv` covers few columns per program and much of the depth, `gemm` 32 columns and little of the depth at a time. Either
is slower by an eighth if its next words are not contiguous: hence a second order, the `tiles`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

DEPTH_MULTIPLE = 128
"""The depth of weights in twelve bits is a multiple of this, so that rows are read in whole, aligned pieces."""
TILE_COLUMNS, TILE_DEPTH = 32, 32
"""Size of a tile: eight quads of columns, four groups of eight weights; its three kinds of words are 1,536 bytes."""
_AT_ONCE = 2**23
"""Weights rearranged together, which takes some fifty bytes per weight, and thirty launches each time."""
_LIMIT = 2**15
"""Larger values cannot be scaled down to an exponent of 15 by a normal float32."""
_PAIR = 0x87FF87FF
"""The bit positions of two weights in their word."""
_THIRDS = (0x07800780, 4), (0x00780078, 8), (0x80078007, 12)
"""Bits of the last two weights in each of the three words, and their left shift there."""
_EXPONENT_BITS, _BIAS = 23, 127
"""Layout of a float32."""


@dataclass(frozen=True, eq=False, slots=True)
class Packed12:
    """Weights (columns, depth) in twelve bits."""

    words: Tensor
    """int32 (columns / 4, 3, depth / 8, 4): a quad of columns has its first, second and third words together"""
    scales: Tensor
    """float32 (columns,), powers of two: the factors of the sums"""
    tiles: Tensor | None = None
    """The words again, int32 (columns / 32, depth / 32, 3, 8, 4, 4): a tile's first, second and third words; each for
    eight quads, per quad four groups of eight weights, per group four columns."""

    @staticmethod
    def fits(weight: Tensor, gated: bool = False) -> bool:
        """Whether these weights (columns, depth) can be packed, and read in whole, aligned pieces: all of S2 Pro's can.

        They must be finite and below 32,768. gated: they are gates over ups.
        """
        columns, depth = weight.shape
        return depth % DEPTH_MULTIPLE == 0 and (not gated or columns % 8 == 0) and bool(weight.abs().amax() < _LIMIT)

    @classmethod
    def of(cls, weight: Tensor, tiled: bool = False) -> Packed12:
        """Pack weights that fit, rounded to bfloat16. tiled: with `tiles`, if gates and ups are whole tiles."""
        if not cls.fits(weight):
            raise ValueError(
                f"weights {tuple(weight.shape)} cannot be packed in twelve bits: the depth must be a multiple of "
                f"{DEPTH_MULTIPLE}, every weight finite and below {_LIMIT}"
            )
        quads = max(1, _AT_ONCE // weight.shape[1] // 4)
        words, scales = zip(*map(_pack, weight.split(4 * quads)), strict=True)
        packed = torch.cat(words)
        tiles = _tiles(packed) if tiled and weight.shape[0] % (2 * TILE_COLUMNS) == 0 else None
        return cls(packed, torch.cat(scales), tiles)

    @property
    def shape(self) -> tuple[int, int]:
        """Columns and depth."""
        return len(self.scales), 8 * self.words.shape[2]

    def unpacked(self) -> Tensor:
        """The packed weights as float32 (columns, depth); the reference for the kernel."""
        three = (self.words.long() & 0xFFFFFFFF).unbind(1)
        first, second, third = (
            _rotated(word, 32 - left) & bits for word, (bits, left) in zip(three, _THIRDS, strict=True)
        )
        pairs = torch.stack([*(word & _PAIR for word in three), first | second | third], -1)
        halves = _signed(torch.stack([pairs << 16 & 0xFFFFFFFF, pairs & 0xFFFF0000], -1)).view(torch.float32)
        return halves.transpose(1, 2).flatten(2).flatten(0, 1)[: self.shape[0]] * self.scales[:, None]


def _pack(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Words and scales of weights (columns, depth), as stored in `Packed12`."""
    columns, depth = weight.shape
    weight = weight.bfloat16()
    top = (weight.view(torch.int16).int() >> 7 & 0xFF).amax(1).clamp(min=15)
    scaled = F.pad((weight.float() * _two_to_the(15 - top)[:, None]).bfloat16(), (0, 0, 0, -columns % 4))
    halves = (scaled.view(torch.int16).long() & 0xFFFF).view(-1, 4, depth // 8, 4, 2)
    *words, last = (halves[..., 0] | halves[..., 1] << 16).unbind(-1)
    three = [word | _rotated(last & bits, left) for word, (bits, left) in zip(words, _THIRDS, strict=True)]
    return _signed(torch.stack(three, 1).transpose(2, 3).contiguous()), _two_to_the(top - 15)


def _tiles(words: Tensor) -> Tensor:
    """Words as `Packed12.words`, in whole tiles, in the order of `Packed12.tiles`."""
    quads, groups = TILE_COLUMNS // 4, TILE_DEPTH // 8
    return words.view(-1, quads, 3, words.shape[2] // groups, groups, 4).permute(0, 3, 2, 1, 4, 5).contiguous()


def _two_to_the(power: Tensor) -> Tensor:
    return (power + _BIAS << _EXPONENT_BITS).view(torch.float32)


def _rotated(words: Tensor, left: int) -> Tensor:
    """Rotate words of 32 bits, held in int64."""
    return (words << left | words >> 32 - left) & 0xFFFFFFFF


def _signed(words: Tensor) -> Tensor:
    return torch.where(words >= 2**31, words - 2**32, words).int()


@triton.jit
def pairs(first, second, third):
    """From the three words of a column's eight weights: four pairs of two bfloat16 each, the lower half's first."""
    last = (first >> 4) & 0x07800780 | (second >> 8) & 0x00780078 | (third >> 12 | third << 20) & 0x80078007
    return first & 0x87FF87FF, second & 0x87FF87FF, third & 0x87FF87FF, last


@triton.jit
def to_float32(pair):
    """The lower half of each word as float32, and the upper."""
    return (pair << 16).to(tl.float32, bitcast=True), (pair & 0xFFFF0000).to(tl.float32, bitcast=True)
