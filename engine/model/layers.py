"""Layers shared by the autoregressive models and the codec: RMSNorm, gated feed-forward, rotary positions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.stored_weight import product


class RMSNorm(nn.Module):
    """Root-mean-square norm: computed in float32, cast back, then weighted (upstream's order)."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), x.shape[-1:], None, self.eps).to(x.dtype) * self.weight


class FeedForward(nn.Module):
    """w2(silu(w1 x) · w3 x)."""

    def __init__(self, dim: int, intermediate_size: int, bits: int = 16) -> None:
        super().__init__()
        self.w1 = product(dim, intermediate_size, bits)
        self.w3 = product(dim, intermediate_size, bits)
        self.w2 = product(intermediate_size, dim, bits)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


def rope_angles(positions: Tensor, head_dim: int, base: float, exact: bool = False) -> Tensor:
    """Unit rotations for absolute positions of any size: (..., head_dim / 2, 2) float32, cosine and sine.

    Cosine and sine are rounded to bfloat16 unless ``exact``: Fish's weights were trained with tables rounded that way,
    and exact ones garble their speech or end it early.
    """
    exponents = torch.arange(0, head_dim, 2, device=positions.device).float() / head_dim
    angles = positions.float()[..., None] * (1.0 / base**exponents)
    rotations = torch.stack([angles.cos(), angles.sin()], -1)
    return rotations if exact else rotations.bfloat16().float()


def apply_rope(x: Tensor, rotations: Tensor) -> Tensor:
    """Rotate the pairs (0,1), (2,3) … of x (rows, steps, heads, head_dim); rotations (rows or 1, steps, ·, 2)."""
    pairs, rotations = x.float().unflatten(-1, (-1, 2)), rotations[:, :, None]
    if has_complex(x.device):  # the same numbers, up to ten times as fast on a CPU
        turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * torch.view_as_complex(rotations))
    else:
        (a, b), (cos, sin) = pairs.unbind(-1), rotations.unbind(-1)
        turned = torch.stack([a * cos - b * sin, a * sin + b * cos], -1)
    return turned.flatten(-2).to(x.dtype)


def has_complex(device: torch.device) -> bool:
    """Whether torch can multiply complex numbers on this device."""
    return device.type in ("cpu", "cuda")
