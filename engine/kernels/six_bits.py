"""Loads six-bit weights (int6) in kernels; see `engine.model.stored_weight` for their layout in memory."""

from __future__ import annotations

import triton
import triton.language as tl

GROUP: tl.constexpr = tl.constexpr(64)
"""Weights that share a scale."""


@triton.jit
def six_bits(at, inside, apart):
    """Sixteen weights per word (LINES, 16 · N) float32, before their scales, from pointers to first words (LINES, N).

    Second and third words are `apart` from each other. A weight plus 32 becomes the last bits of a float32 between 2^23
    and 2^24, from which a subtraction recovers it: that is faster than converting integers.
    """
    a = tl.load(at, mask=inside, other=0)
    b = tl.load(at + apart, mask=inside, other=0)
    c = tl.load(at + 2 * apart, mask=inside, other=0)
    last = (a >> 30) | (b >> 28) & 12 | (c >> 26) & 48
    p0, p1 = tl.join(_number(a), _number(b >> 18)), tl.join(_number(a >> 6), _number(b >> 24))
    p2, p3 = tl.join(_number(a >> 12), _number(c)), tl.join(_number(a >> 18), _number(c >> 6))
    p4, p5 = tl.join(_number(a >> 24), _number(c >> 12)), tl.join(_number(b), _number(c >> 18))
    p6, p7 = tl.join(_number(b >> 6), _number(c >> 24)), tl.join(_number(b >> 12), _number(last))
    even = tl.join(tl.join(p0, p4), tl.join(p2, p6))
    odd = tl.join(tl.join(p1, p5), tl.join(p3, p7))
    return tl.reshape(tl.join(even, odd), (at.shape[0], 16 * at.shape[1]))


@triton.jit
def _number(word):
    """The lowest six bits of each word less 32, as float32."""
    return (word & 63 | 0x4B000000).to(tl.float32, bitcast=True) - 8388640.0
