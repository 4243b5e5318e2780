"""The device side of `conv`: a tile of a causal convolution as an implicit GEMM, with its fused operations.

acc[m, n] = Σ_j Σ_k x[row(m), step(m) − back(j), k] · W[n, j, k] for m over rows · steps, where inputs before a chunk's
first step come from the stream's state. Tiles are ordered in groups that share weights in L2, as in Triton's tutorial
"Matrix Multiplication"; the Snake's sine and advancing the state in the same launch are our own.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.conv_state import advance_state, read_half


@triton.jit
def saturated(x, kind: tl.constexpr):
    """x in this type; values too large for float16 are clipped to its largest number."""
    if x.dtype == tl.float32 and kind == tl.float16:
        x = tl.clamp(x, -65504.0, 65504.0)
    return x.to(kind)


@triton.jit
def snake(x, alpha, inverse):
    """x + sin²(αx) / α. sin² has the period π, so αx is brought into ±π/2, where sin² is r² · P(r²) to 2e-8."""
    y = alpha * x
    turns = (y * 0.3183098861837907 + 12582912.0) - 12582912.0  # 1.5 · 2²³, near which float32 has only integers
    r = (y - turns * 3.140625) - turns * 0.0009676535897932
    q = r * r
    p = -3.6092474147153553e-6 * q + 1.3921206118538976e-4
    p = p * q - 3.1720944680273533e-3
    p = p * q + 0.04444289952516556
    p = p * q - 0.33333298563957214
    p = p * q + 1.0
    return x + inverse * q * p


@triton.jit
def _tile_origin(program, total, outputs, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """First step and first output of a program's tile; eight tiles of steps share weights while these are in L2."""
    across = tl.cdiv(outputs, BLOCK_N)
    first = program // (8 * across) * 8
    group = tl.minimum(tl.cdiv(total, BLOCK_M) - first, 8)
    inner = program % (8 * across)
    return (first + inner % group) * BLOCK_M, (inner // group) * BLOCK_N


@triton.jit
def to_bfloat16(x):
    """x rounded to bfloat16, still in float32."""
    bits = x.to(tl.int32, bitcast=True)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & -65536).to(tl.float32, bitcast=True)


@triton.jit
def _multiply_add(acc, a, b, low, HAS_LOW: tl.constexpr):
    """acc + a · bᵀ; with a low half of b, a is split too, and of the four products low · low is left out."""
    if HAS_LOW:
        a = tl.clamp(a, -65504.0, 65504.0)  # else the remainder would be too large
        high = a.to(b.dtype)
        rest = (a - high.to(tl.float32)).to(b.dtype)
        acc = tl.dot(rest, tl.trans(b), acc)
        acc = tl.dot(high, tl.trans(low), acc)
        return tl.dot(high, tl.trans(b), acc)
    else:
        return tl.dot(saturated(a, b.dtype), tl.trans(b), acc, input_precision="ieee")


@triton.jit
def _accumulate(
    x, weight, low, state, slots, turns, m, n, total, steps, inputs, outputs, taps, dilation, context, slot_stride, eps,
    HAS_STATE: tl.constexpr, HAS_LOW: tl.constexpr, HAS_NORM: tl.constexpr, EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """The product of steps m and outputs n, over all taps and inputs in one loop that the compiler can pipeline."""
    k = tl.arange(0, BLOCK_K)
    row = m // steps
    step = m - row * steps
    source = x + m.to(tl.int64) * inputs
    new = source
    if HAS_STATE:
        old = read_half(state, slots, turns, row, m < total, slot_stride, context * inputs) + (context + step) * inputs
    at = n.to(tl.int64)[:, None] * (taps * inputs) + k[None, :]
    w, lo = weight + at, low + at
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    squares = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
    start = 0
    back = context
    for _ in range(taps * tl.cdiv(inputs, BLOCK_K)):
        if HAS_STATE:
            source = tl.where(step >= back, new - back * inputs, old - back * inputs)
        a_inside, b_inside = (m < total)[:, None], (n < outputs)[:, None]
        if not EVEN:
            a_inside &= (k < inputs - start)[None, :]
            b_inside &= (k < inputs - start)[None, :]
        a = tl.load(source[:, None] + (start + k)[None, :], mask=a_inside, other=0.0)
        b = tl.load(w, mask=b_inside, other=0.0)
        c = tl.load(lo, mask=b_inside, other=0.0) if HAS_LOW else b
        acc = _multiply_add(acc, a, b, c, HAS_LOW)
        if HAS_NORM:
            squares += a.to(tl.float32) * a.to(tl.float32)
        forward = BLOCK_K if EVEN else tl.minimum(BLOCK_K, inputs - start)  # a tap's last block may be short
        w += forward
        lo += forward
        start += forward
        back = tl.where(start < inputs, back, back - dilation)
        start = tl.where(start < inputs, start, 0)
    if HAS_NORM:
        acc *= tl.rsqrt(tl.sum(squares, 1) / inputs + eps)[:, None]
    return acc


@triton.jit
def epilogue(
    acc, alpha, inverse, residual, out, active, m, n, total, outputs,
    HAS_RESIDUAL: tl.constexpr, HAS_OUT: tl.constexpr, HAS_SNAKE: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """Activation, residual and Snake of the sums acc (BLOCK_M, BLOCK_N), and their stores."""
    offsets = m.to(tl.int64)[:, None] * outputs + n[None, :]
    inside = (m < total)[:, None] & (n < outputs)[None, :]
    if ACTIVATION == "gelu":
        acc = 0.5 * acc * (1 + tl.erf(acc * 0.7071067811865476))
    if HAS_RESIDUAL:
        acc += tl.load(residual + offsets, mask=inside, other=0.0).to(tl.float32)
    if HAS_OUT:
        tl.store(out + offsets, saturated(acc, out.dtype.element_ty), mask=inside)
    if HAS_SNAKE:
        alphas = tl.load(alpha + n, mask=n < outputs, other=1.0)[None, :]
        inverses = tl.load(inverse + n, mask=n < outputs, other=1.0)[None, :]
        activated = snake(acc, alphas, inverses)
        tl.store(active + offsets, saturated(activated, active.dtype.element_ty), mask=inside)


@triton.jit
def _gated_epilogue(acc, out, m, first_n, total, outputs, BLOCK_M: tl.constexpr, HALF_N: tl.constexpr):
    """silu(gate) · up of outputs in adjacent pairs."""
    gate, up = tl.split(tl.reshape(acc, (BLOCK_M, HALF_N, 2)))
    n = first_n // 2 + tl.arange(0, HALF_N)
    at = m.to(tl.int64)[:, None] * (outputs // 2) + n[None, :]
    inside = (m < total)[:, None] & (n < outputs // 2)[None, :]
    tl.store(out + at, saturated(gate * tl.sigmoid(gate) * up, out.dtype.element_ty), mask=inside)


@triton.jit(
    do_not_specialize=["rows", "steps", "taps", "dilation", "context", "tiles", "state_programs", "eps", "scale"]
)
def conv_kernel(
    x, weight, low, bias, alpha, inverse, residual, out, active, state, slots, turns,
    rows, steps, inputs, outputs, taps, dilation, context, slot_stride, tiles, state_programs, eps, scale,
    HAS_STATE: tl.constexpr, HAS_LOW: tl.constexpr, HAS_NORM: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr, HAS_OUT: tl.constexpr, HAS_SNAKE: tl.constexpr, ACTIVATION: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Grid (tiles + state_programs,): the first compute a tile of the result each, the others advance the state.

    x (rows, steps, inputs); weight and low (outputs, taps, inputs); bias, alpha, inverse (outputs,); residual, out and
    active (rows, steps, outputs), with silu_gate half as many outputs; state, slots and turns as in `ConvState`.
    """
    program = tl.program_id(0)
    total = rows * steps
    if program < tiles:
        first_m, first_n = _tile_origin(program, total, outputs, BLOCK_M, BLOCK_N)
        m, n = first_m + tl.arange(0, BLOCK_M), first_n + tl.arange(0, BLOCK_N)
        acc = _accumulate(
            x, weight, low, state, slots, turns, m, n, total, steps, inputs, outputs, taps, dilation, context,
            slot_stride, eps, HAS_STATE, HAS_LOW, HAS_NORM, EVEN, BLOCK_M, BLOCK_N, BLOCK_K,
        )  # fmt: skip
        acc = acc * scale + tl.load(bias + n, mask=n < outputs, other=0.0)[None, :]
        if ACTIVATION == "silu_gate":
            _gated_epilogue(acc, out, m, first_n, total, outputs, BLOCK_M, BLOCK_N // 2)
        else:
            epilogue(
                acc, alpha, inverse, residual, out, active, m, n, total, outputs,
                HAS_RESIDUAL, HAS_OUT, HAS_SNAKE, ACTIVATION,
            )  # fmt: skip
    elif HAS_STATE:
        advance_state(
            x, state, slots, turns, program - tiles, state_programs, rows, steps, inputs, context, slot_stride
        )
