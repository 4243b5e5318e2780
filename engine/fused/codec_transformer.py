"""The codec's transformers over fused layers: a block, and a transformer that sees a whole clip at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.codec.transformer import WindowBlock, WindowTransformer
from engine.fused.codec_layer import FusedConv, LayerSetup, StreamSlots
from engine.fused.codec_products import Product, as_product
from engine.model.layers import rope_angles

Attend = Callable[[Tensor], Tensor]
"""qkv (rows, steps, 3, heads, head_dim), in queries and keys even channels first → (rows, steps, width)."""


class FusedBlock:
    """Attention and feed-forward: four products and an attention function."""

    def __init__(self, block: WindowBlock, setup: LayerSetup, total: int | None = None) -> None:
        attention, wide, between = block.attention, block.feed_forward, setup.activation_dtype
        self.window, self.heads = attention.window, attention.n_head
        q, k, v = attention.wqkv.weight.detach().unflatten(0, (3, self.heads, -1))
        q, k = (torch.cat([t[:, 0::2], t[:, 1::2]], 1) for t in (q, k))  # so that halves rotate, not pairs
        qkv = Product(torch.stack([q, k, v]).flatten(0, 2)[:, None]).of_normed(block.attention_norm.weight)
        gates = torch.stack([wide.w1.weight.detach(), wide.w3.weight.detach()], 1).flatten(0, 1)
        gated = Product(gates[:, None]).of_normed(block.ffn_norm.weight)
        out = as_product(attention.wo).scaled(block.attention_layer_scale.gamma)
        down = as_product(wide.w2).scaled(block.ffn_layer_scale.gamma)
        self.qkv = FusedConv(qkv, setup, norm_eps=block.attention_norm.eps, result=between, total=total)
        self.out = FusedConv(out, setup, adds=True, total=total)
        eps = block.ffn_norm.eps
        self.gated = FusedConv(gated, setup, norm_eps=eps, activation="silu_gate", result=between, total=total)
        self.down = FusedConv(down, setup, adds=True, total=total)

    def __call__(self, x: Tensor, attend: Attend, streams: StreamSlots | None = None) -> Tensor:
        """x (rows, steps, dim) → the same shape."""
        qkv = self.qkv.only(x, streams).unflatten(2, (3, self.heads, -1))
        x = self.out.only(attend(qkv), streams, x)
        return self.down.only(self.gated.only(x, streams), streams, x)


class WholeTransformer:
    """`WindowTransformer` without state, (rows, steps, channels) in and out. Takes over the blocks' weights."""

    def __init__(self, plain: WindowTransformer, setup: LayerSetup, total: int) -> None:
        self._plain = plain
        blocks: list[WindowBlock] = list(plain.layers)  # type: ignore[arg-type]
        self._blocks = [FusedBlock(block, setup, total) for block in blocks]
        plain.layers.to("meta")

    def __call__(self, x: Tensor) -> Tensor:
        config, plain = self._plain.config, self._plain
        x, steps = plain.input_proj(x).contiguous(), torch.arange(x.shape[1], device=x.device)
        angles = rope_angles(steps, config.head_dim, config.rope_base, config.exact_rope)
        cos, sin = angles[:, None, None].unbind(-1)
        distance = steps[:, None] - steps
        mask = (distance >= 0) & (distance < config.window)

        def attend(qkv: Tensor) -> Tensor:
            a, b = qkv[:, :, :2].chunk(2, -1)
            q, k = torch.cat([a * cos - b * sin, a * sin + b * cos], -1).transpose(1, 3).unbind(2)
            y = F.scaled_dot_product_attention(q, k, qkv[:, :, 2].transpose(1, 2), attn_mask=mask)
            return y.transpose(1, 2).flatten(2)

        for block in self._blocks:
            x = block(x, attend)
        result: Tensor = plain.output_proj(plain.norm(x))
        return result
