"""Loads six-bit weights (int6) in kernels; see `engine.model.stored_weight` for their layout in memory."""

from __future__ import annotations

import triton
import triton.language as tl

GROUP: tl.constexpr = tl.constexpr(64)
"""Weights that share a scale."""


@triton.jit
def six_bits(pointers, inside, stride, PTX: tl.constexpr):
    """Sixteen weights per word (LINES, 16 · N), before their scales, from pointers to first words (LINES, N).

    Second and third words are `stride` from each other. A weight is 64 · (y - 1.5) with y as returned: plus 32, it is
    the first six bits of the mantissa of a float32 between 1 and 2. So it takes a shift and a mask, and 1.5 can be
    subtracted once from a sum of products, instead of from each weight.
    """
    a = tl.load(pointers, mask=inside, other=0)
    b = tl.load(pointers + stride, mask=inside, other=0)
    c = tl.load(pointers + 2 * stride, mask=inside, other=0)
    last = (a >> 30) | (b >> 28) & 12 | (c >> 26) & 48
    p0, p1 = _pair(a << 17, b >> 1, PTX), _pair(a << 11, b >> 7, PTX)
    p2, p3 = _pair(a << 5, c << 17, PTX), _pair(a >> 1, c << 11, PTX)
    p4, p5 = _pair(a >> 7, c << 5, PTX), _pair(b << 17, c >> 1, PTX)
    p6, p7 = _pair(b << 11, c >> 7, PTX), _pair(b << 5, last << 17, PTX)
    even = tl.join(tl.join(p0, p4), tl.join(p2, p6))
    odd = tl.join(tl.join(p1, p5), tl.join(p3, p7))
    return tl.reshape(tl.join(even, odd), (pointers.shape[0], 16 * pointers.shape[1]))


@triton.jit
def _pair(first, second, PTX: tl.constexpr):
    return tl.join(_number(first, PTX), _number(second, PTX))


@triton.jit
def _number(word, PTX: tl.constexpr):
    """1 + a sixty-fourth of the six bits from bit 17 on of each word, as float32.

    By `PTX` one instruction masks and sets the exponent; the compiler would take two, as both constants are immediate.
    """
    if PTX:
        number = tl.inline_asm_elementwise(
            "{ .reg .b32 one; mov.b32 one, 0x3F800000; lop3.b32 $0, $1, 0x7E0000, one, 0xEA; }",
            "=f,r", [word], dtype=tl.float32, is_pure=True, pack=1,
        )  # fmt: skip
    else:
        number = (word & 0x7E0000 | 0x3F800000).to(tl.float32, bitcast=True)
    return number
