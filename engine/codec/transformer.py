"""The codec's causal transformer with a sliding window, whole or streamed; absolute positions without a limit."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.codec_config import TransformerConfig
from engine.codec.codec_layers import Stateful, StreamState
from engine.model.layers import FeedForward, RMSNorm, apply_rope, rope_angles


class LayerScale(nn.Module):
    """A learned gain for each channel of a residual branch."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((dim,), 1e-2))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class WindowAttention(Stateful):
    """Multi-head attention over the last `window` positions; a stream keeps window − 1 rotated keys and values."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.n_head, self.head_dim, self.window = config.n_head, config.head_dim, config.window
        width = config.n_head * config.head_dim
        self.wqkv = nn.Linear(config.dim, 3 * width, bias=False)
        self.wo = nn.Linear(width, config.dim, bias=False)

    def forward(self, x: Tensor, rope: Tensor, mask: Tensor, state: StreamState | None = None) -> Tensor:
        rows, steps, _ = x.shape
        q, k, v = self.wqkv(x).view(rows, steps, 3, self.n_head, self.head_dim).unbind(2)
        q, k = apply_rope(q, rope), apply_rope(k, rope)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))  # (rows, heads, steps, head_dim)
        if state is not None:
            k = state.extend(self, "keys", k, self.window - 1, dim=2)
            v = state.extend(self, "values", v, self.window - 1, dim=2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.wo(y.transpose(1, 2).reshape(rows, steps, -1))


class WindowBlock(Stateful):
    """Pre-norm attention and feed-forward, each scaled and added."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attention = WindowAttention(config)
        dim, wide = config.dim, config.intermediate_size
        norm: Any = RMSNorm if config.is_gated else nn.LayerNorm
        self.feed_forward: Any = FeedForward(dim, wide)
        if not config.is_gated:
            self.feed_forward = nn.Sequential(nn.Linear(dim, wide, False), nn.GELU(), nn.Linear(wide, dim, False))
        self.attention_norm, self.ffn_norm = norm(dim, config.norm_eps), norm(dim, config.norm_eps)
        self.attention_layer_scale = LayerScale(config.dim)
        self.ffn_layer_scale = LayerScale(config.dim)

    def forward(self, x: Tensor, rope: Tensor, mask: Tensor, state: StreamState | None = None) -> Tensor:
        x = x + self.attention_layer_scale(self.attention(self.attention_norm(x), rope, mask, state))
        return x + self.ffn_layer_scale(self.feed_forward(self.ffn_norm(x)))


class WindowTransformer(Stateful):
    """A stack of window blocks, (rows, channels, steps) in and out."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(WindowBlock(config) for _ in range(config.n_layer))
        self.norm: Any = RMSNorm(config.dim, config.norm_eps) if config.is_gated else nn.Identity()
        is_same_size = config.input_dim == config.dim
        self.input_proj: nn.Module = nn.Identity() if is_same_size else nn.Linear(config.input_dim, config.dim)
        self.output_proj: nn.Module = nn.Identity() if is_same_size else nn.Linear(config.dim, config.input_dim)

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        x = self.input_proj(x.transpose(1, 2))
        steps = torch.arange(x.shape[1], device=x.device)
        if state is None:
            start, past = torch.zeros(1, dtype=torch.int64, device=x.device), 0
        else:
            start, past = state.past(self, "position", (), torch.int64, x), self.config.window - 1
        queries = start[:, None] + steps  # (rows, steps) absolute positions
        keys = start[:, None] + torch.arange(-past, x.shape[1], device=x.device)
        mask = self._visible(queries[:, :, None], keys[:, None, :])[:, None]
        rope = rope_angles(queries, self.config.head_dim, self.config.rope_base, self.config.exact_rope)
        for layer in self.layers:
            x = layer(x, rope, mask, state)
        if state is not None:
            state.keep(self, "position", start + x.shape[1])
        return self.output_proj(self.norm(x)).transpose(1, 2)

    def _visible(self, query: Tensor, key: Tensor) -> Tensor:
        """A mask of the keys that a query sees: its own and the window − 1 before it, within the stream."""
        return (key >= 0) & (key <= query) & (key > query - self.config.window)
