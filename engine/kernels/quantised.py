"""Weights in eight and six bits as kernels read them: pairs of whole numbers that become floats before their scales.

A GPU converts whole numbers at an eighth of the speed at which it multiplies. By `PTX` a byte, made positive, becomes
instead the last bits of a float between two powers of two, from which a subtraction takes it: "Who Says Elephants Can't
Run: Bringing Large Scale MoE Models into Cloud Scale Production" (Kim et al. 2022), section 3. Both ways are exact.

A word holds a weight and the one PAIR after it (`StoredWeight.paired`), because tensor cores take 16-bit operands: a
thread of a matrix product then loads the words that it needs with `ldmatrix`, and each word becomes two of its own
operands. Single bytes are loaded and shifted into place one by one, which takes three quarters of all instructions.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from engine.model.stored_weight import PAIR as _PAIR

PAIR: tl.constexpr = tl.constexpr(_PAIR)

GROUP: tl.constexpr = tl.constexpr(64)
"""Weights that share a scale."""


def converts_by_ptx(device: torch.device) -> bool:
    """Whether kernels on this device may hold PTX; Triton's interpreter runs on a CPU, and ROCm has none."""
    return device.type == "cuda" and torch.version.hip is None


@triton.jit
def paired_weights(words, kind: tl.constexpr, PTX: tl.constexpr):
    """Words (lines, depth / 2) as weights (lines, depth) of this type; float16 takes the fewest steps."""
    if PTX and kind == tl.float16:
        first, second = _float16(words)
    else:
        first, second = pair_as_float32(words, PTX)
        first, second = first.to(kind), second.to(kind)
    LINES: tl.constexpr = words.shape[0]
    GROUPS: tl.constexpr = words.shape[1] // PAIR
    weights = tl.join(first.reshape(LINES, GROUPS, PAIR), second.reshape(LINES, GROUPS, PAIR))
    return weights.permute(0, 1, 3, 2).reshape(LINES, 2 * words.shape[1])


@triton.jit
def pair_as_float32(words, PTX: tl.constexpr):
    """The first weights of words and the second, as float32: 0x4B000000 plus a byte is 2^23 plus that byte, and
    0xCB000080 is -(2^23 + 128)."""
    if PTX:
        return tl.inline_asm_elementwise(
            "{ .reg .b32 t; .reg .f32 m; xor.b32 t, $4, 0x80808080; mov.b32 m, 0xCB000080;"
            " prmt.b32 $0, t, 0x4B000000, 0x7440; prmt.b32 $1, t, 0x4B000000, 0x7442;"
            " prmt.b32 $2, t, 0x4B000000, 0x7441; prmt.b32 $3, t, 0x4B000000, 0x7443;"
            " add.f32 $0, $0, m; add.f32 $1, $1, m; add.f32 $2, $2, m; add.f32 $3, $3, m; }",
            "=f,=f,=f,=f,r", [words], dtype=(tl.float32, tl.float32), is_pure=True, pack=2,
        )  # fmt: skip
    return words.to(tl.int8).to(tl.float32), (words >> 8).to(tl.float32)


@triton.jit
def _float16(words):
    """The first weights of words and the second, as float16: 0x6400 plus a byte is 1024 plus that byte, and 0x6480 is
    1152."""
    return tl.inline_asm_elementwise(
        "{ .reg .b32 t, m; xor.b32 t, $2, 0x80808080; mov.b32 m, 0x64806480;"
        " prmt.b32 $0, t, 0x64646464, 0x4240; prmt.b32 $1, t, 0x64646464, 0x4341;"
        " sub.f16x2 $0, $0, m; sub.f16x2 $1, $1, m; }",
        "=r,=r,r", [words], dtype=(tl.float16, tl.float16), is_pure=True, pack=2,
    )  # fmt: skip


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
