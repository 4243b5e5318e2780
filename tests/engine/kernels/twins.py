"""Twins of the kernels in plain torch: the same parameters, except those for speed alone."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.conv import Activation, ConvWeights, SnakeGains
from engine.kernels.conv_state import ConvState
from engine.kernels.residual_unit import UnitWeights
from engine.kernels.rope import HeadInputs
from engine.kernels.sample import EmbedOut
from engine.model.dual_ar import attention
from engine.model.layers import apply_rope
from engine.model.sampling import exponential_noise, host_frame
from engine.model.slots import Slots
from engine.model.stored_weight import StoredWeight


def extend(x: Tensor, state: ConvState | None) -> Tensor:
    """x after its state, (rows, context + steps, channels), and stores the new state."""
    if state is None:
        return x
    half = state.turns[state.slots] % 2
    joined = torch.cat([state.columns[state.slots, half], x], 1)
    state.columns[state.slots, 1 - half] = joined[:, joined.shape[1] - state.context :]
    return joined


def look_up_twin(codes: Tensor, table: Tensor, starts: Tensor, sizes: Tensor) -> Tensor:
    """`look_up` in plain torch."""
    entries = starts[:, None] + codes.minimum(sizes[:, None] - 1)
    return table[entries].float().sum(1)


def advance_twin(slots: Tensor, positions: Tensor, turns: Tensor, frames: int) -> None:
    """`advance` in plain torch."""
    positions[slots], turns[slots] = positions[slots] + frames, turns[slots] + 1


def conv_twin(
    x: Tensor,
    weights: ConvWeights,
    bias: Tensor,
    state: ConvState | None = None,
    dilation: int = 1,
    norm_eps: float | None = None,
    activation: Activation = "none",
    residual: Tensor | None = None,
    out: torch.dtype | None = None,
    snake: tuple[SnakeGains, torch.dtype] | None = None,
) -> tuple[Tensor | None, Tensor | None]:
    """`conv` in plain torch."""
    weight = (weights.high.float() + (0 if weights.low is None else weights.low.float())) * weights.scale
    joined = extend(x, state).float()
    y = F.conv1d(joined.transpose(1, 2), weight.transpose(1, 2), dilation=dilation).transpose(1, 2)
    if norm_eps is not None:
        y = y * (x.float().square().mean(-1, keepdim=True) + norm_eps).rsqrt()
    y = y + bias
    if activation == "silu_gate":
        y = F.silu(y[..., 0::2]) * y[..., 1::2]
    elif activation == "gelu":
        y = F.gelu(y)
    y = y if residual is None else y + residual
    active = None if snake is None else y + snake[0].inverse * (snake[0].alpha * y).sin().square()
    return None if out is None else y.to(out), None if snake is None or active is None else active.to(snake[1])


def decode_attention_twin(inputs: HeadInputs) -> Tensor:
    """`decode_attention` in plain torch; reads the lengths back to the host."""
    q = rope_twin(inputs)
    outputs = []
    for row, (slot, position) in enumerate(zip(inputs.slots.tolist(), inputs.positions.tolist(), strict=True)):
        k, v = inputs.keys[slot, None, : position + 1], inputs.values[slot, None, : position + 1]
        outputs.append(attention(q[row][None, None], k, v)[0, 0])
    return torch.stack(outputs).view_as(q)


def depthwise_norm_twin(
    x: Tensor, weight: Tensor, bias: Tensor, gain: Tensor, shift: Tensor, eps: float, state: ConvState, out: torch.dtype
) -> Tensor:
    """`depthwise_norm` in plain torch."""
    joined = extend(x, state).float().transpose(1, 2)
    y = F.conv1d(joined, weight.t()[:, None], bias, groups=weight.shape[1]).transpose(1, 2)
    return F.layer_norm(y, y.shape[-1:], gain, shift, eps).to(out)


def begin_frame_twin(slots: Tensor, state: Slots) -> tuple[Tensor, Tensor]:
    """`begin_frame` in plain torch."""
    return state.input[slots], state.position[slots]


def end_frame_twin(
    slots: Tensor, codes: Tensor, drawn: Tensor, stop: int, text: Tensor, audio: Tensor, divisor: float, state: Slots
) -> Tensor:
    """`end_frame` in plain torch."""
    books = codes.shape[1]
    offsets = torch.arange(books, device=codes.device) * (audio.shape[0] // books)
    state.store(slots, codes[:, 0], (text[codes[:, 0]] + audio[codes + offsets].sum(1)) / divisor)
    return host_frame(codes, drawn == stop)


def linear_twin(
    x: Tensor,
    weight: StoredWeight,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
) -> Tensor:
    """`linear` in plain torch, rounding where the plain model rounds."""
    if norm is not None:
        x = rms_norm_twin(x, norm, eps)
    y = F.linear(x, weight.dequantised(x.dtype))
    if gated:
        gates, ups = y.chunk(2, -1)
        y = F.silu(gates) * ups
    return y if residual is None else residual + y


def linear_norm_twin(
    x: Tensor, weight: StoredWeight, residual: Tensor, norm: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """`linear_norm` in plain torch."""
    y = linear_twin(x, weight, residual=residual)
    return y, rms_norm_twin(y, norm, eps)


def residual_unit_twin(
    x: Tensor, unit: UnitWeights, residual: Tensor, state: ConvState, out: bool
) -> tuple[Tensor | None, Tensor]:
    """`residual_unit` in plain torch."""
    _, y = conv_twin(x, unit.wide, unit.wide_bias, state, unit.dilation, snake=(unit.between, x.dtype))
    assert y is not None
    result, active = conv_twin(
        y, unit.narrow, unit.narrow_bias, residual=residual, out=residual.dtype if out else None,
        snake=(unit.after, x.dtype),
    )  # fmt: skip
    assert active is not None
    return result, active


def rms_norm_twin(x: Tensor, gains: Tensor, eps: float) -> Tensor:
    """`rms_norm` in plain torch."""
    return F.rms_norm(x.float(), x.shape[-1:], None, eps).to(x.dtype) * gains


def rope_twin(inputs: HeadInputs) -> Tensor:
    """`rope` in plain torch."""
    kv_heads, head_dim = inputs.keys.shape[2:]
    heads = inputs.qkv.unflatten(-1, (-1, head_dim))
    q, k, v = heads.split([inputs.heads, kv_heads, kv_heads], 1)
    if inputs.norms:
        q, k = (rms_norm_twin(t, gains, inputs.eps) for t, gains in zip((q, k), inputs.norms, strict=True))
    q, k = (apply_rope(t[None], inputs.table[None, inputs.positions])[0] for t in (q, k))
    inputs.keys[inputs.slots, inputs.positions], inputs.values[inputs.slots, inputs.positions] = k, v
    return q


def sample_twin(
    logits: Tensor, slots: Tensor, state: Slots, first_draw: int, semantic: bool = False, into: EmbedOut | None = None
) -> Tensor:
    """`sample` in plain torch."""
    how = state.parameters(slots)
    ranks = min(int(how[2].max()), logits.shape[1])
    noise = exponential_noise(state.seed[slots], state.frame[slots], first_draw + 2, ranks)[:, first_draw:]
    stop = logits.shape[1] - 1
    if semantic:
        token = state.rule.main(logits, how, noise, state.memory[slots], state.frame[slots])
    else:
        token = state.rule.residual(logits, how, noise[:, 0])
    if into:
        code = token.masked_fill(token == stop, 0) if semantic else token
        into.codes.copy_(code)
        into.x.copy_(into.embeddings[code])
    return token


def sound_conv_twin(x: Tensor, weight: Tensor, bias: Tensor, state: ConvState, clamps: bool = False) -> Tensor:
    """`sound_conv` in plain torch."""
    joined = extend(x, state).float().transpose(1, 2)
    y = torch.nn.functional.conv1d(joined, weight.t()[None], bias)[:, 0]
    return y.clamp(-1, 1) if clamps else y.tanh()


def window_attention_twin(
    qkv: Tensor, frequencies: Tensor, keys: Tensor, values: Tensor, slots: Tensor, positions: Tensor, window: int,
    exact: bool = False,
) -> Tensor:  # fmt: skip
    """`window_attention` in plain torch."""
    ring = keys.shape[1]
    q_positions = positions[slots][:, None] + torch.arange(qkv.shape[1], device=qkv.device)
    angles = (q_positions.float()[..., None] * frequencies)[:, :, None]
    cos, sin = (part if exact else part.bfloat16().float() for part in (angles.cos(), angles.sin()))
    q, k = (_turned(qkv[:, :, i].float(), cos, sin) for i in (0, 1))
    keys[slots[:, None], q_positions % ring], values[slots[:, None], q_positions % ring] = k, qkv[:, :, 2].float()
    k_positions = positions[slots][:, None] + torch.arange(1 - window, qkv.shape[1], device=qkv.device)
    old_k, old_v = (cache[slots[:, None], k_positions % ring].transpose(1, 2) for cache in (keys, values))
    is_visible = (
        (k_positions[:, None] >= 0)
        & (k_positions[:, None] <= q_positions[:, :, None])
        & (k_positions[:, None] > q_positions[:, :, None] - window)
    )
    y = F.scaled_dot_product_attention(q.transpose(1, 2), old_k, old_v, attn_mask=is_visible[:, None])
    return y.transpose(1, 2).flatten(2).to(qkv.dtype)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
