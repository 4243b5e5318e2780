"""Weights in eight bits as kernels read them: whole numbers from -127 to 127 that become floats before their scales.

A GPU converts whole numbers at an eighth of the speed at which it multiplies. By `PTX` a byte, made positive, becomes
instead the last bits of a float between two powers of two, from which a subtraction takes it: "Who Says Elephants Can't
Run: Bringing Large Scale MoE Models into Cloud Scale Production" (Kim et al. 2022), section 3. Both ways are exact.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


def converts_by_ptx(device: torch.device) -> bool:
    """Whether kernels on this device may hold PTX; Triton's interpreter runs on a CPU, and ROCm has none."""
    return device.type == "cuda" and torch.version.hip is None


@triton.jit
def as_float16(whole, PTX: tl.constexpr):
    """Weights as float16; of int8, 0x64 before a byte is 1024 plus that byte, and 0x6480 is 1152."""
    if PTX and whole.dtype == tl.int8:
        return tl.inline_asm_elementwise(
            "{ .reg .b32 t, m; xor.b32 t, $2, 0x80808080; mov.b32 m, 0x64806480;"
            " prmt.b32 $0, t, 0x64646464, 0x4140; prmt.b32 $1, t, 0x64646464, 0x4342;"
            " sub.f16x2 $0, $0, m; sub.f16x2 $1, $1, m; }",
            "=r,=r,r", [whole], dtype=tl.float16, is_pure=True, pack=4,
        )  # fmt: skip
    return whole.to(tl.float16)


@triton.jit
def as_bfloat16(whole, PTX: tl.constexpr):
    """Weights as bfloat16, whose seven bits are one too few for a byte: of int8, 0x4300 with the last seven bits is 128
    plus these, and 0xC300 with the first bit is -128, or -256 where the weight is negative."""
    if PTX and whole.dtype == tl.int8:
        return tl.inline_asm_elementwise(
            "{ .reg .b32 a, b, c, d, one; mov.b32 one, 0x3F803F80;"
            " prmt.b32 a, $2, 0, 0x4140; prmt.b32 b, $2, 0, 0x4342;"
            " and.b32 c, a, 0x00800080; and.b32 d, b, 0x00800080; and.b32 a, a, 0x007F007F; and.b32 b, b, 0x007F007F;"
            " or.b32 c, c, 0xC300C300; or.b32 d, d, 0xC300C300; or.b32 a, a, 0x43004300; or.b32 b, b, 0x43004300;"
            " fma.rn.bf16x2 $0, a, one, c; fma.rn.bf16x2 $1, b, one, d; }",
            "=r,=r,r", [whole], dtype=tl.bfloat16, is_pure=True, pack=4,
        )  # fmt: skip
    return whole.to(tl.bfloat16)


@triton.jit
def as_float32(whole, PTX: tl.constexpr):
    """Weights as float32; of int8, 0x4B0000 before a byte is 2^23 plus that byte, and 0xCB000080 is -(2^23 + 128)."""
    if PTX and whole.dtype == tl.int8:
        return tl.inline_asm_elementwise(
            "{ .reg .b32 t; .reg .f32 m; xor.b32 t, $4, 0x80808080; mov.b32 m, 0xCB000080;"
            " prmt.b32 $0, t, 0x4B000000, 0x7440; prmt.b32 $1, t, 0x4B000000, 0x7441;"
            " prmt.b32 $2, t, 0x4B000000, 0x7442; prmt.b32 $3, t, 0x4B000000, 0x7443;"
            " add.f32 $0, $0, m; add.f32 $1, $1, m; add.f32 $2, $2, m; add.f32 $3, $3, m; }",
            "=f,=f,=f,=f,r", [whole], dtype=tl.float32, is_pure=True, pack=4,
        )  # fmt: skip
    return whole.to(tl.float32)
