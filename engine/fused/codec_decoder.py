"""The codec's decoder for many streams at once, as some eighty launches of a few fused kernels.

Activations are (rows, steps, channels), so that every layer is a matrix product. Nothing is read back to the host
and every state has a fixed address: a call can be captured as a CUDA graph for its numbers of rows and frames.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn

from engine import kernels
from engine.codec.codec_config import Precision
from engine.codec.codec_layers import CausalConv1d, ConvNeXtBlock
from engine.codec.model import Codec
from engine.fused.codec_layer import FusedConv, Layer, LayerSetup, StreamSlots, residual_units, run_layers
from engine.fused.codec_products import Product, as_product
from engine.fused.codec_transformer import FusedBlock
from engine.model.layers import RMSNorm


class Upsampling:
    """A transposed convolution and a ConvNeXt block, in four kernels."""

    def __init__(self, up: Product, norm_eps: float | None, block: ConvNeXtBlock, setup: LayerSetup) -> None:
        own, norm, self.kind = block.dwconv.conv, block.norm, setup.activation_dtype
        self.up = FusedConv(up, setup, reads=torch.float32, norm_eps=norm_eps)
        assert own.bias is not None
        self.weight, self.bias = own.weight.detach()[:, 0].t().contiguous(), own.bias.detach()
        self.gain, self.shift, self.eps = norm.weight.detach(), norm.bias.detach(), norm.eps
        self.number = setup.reserve(block.dwconv.context, len(self.bias), torch.float32)
        self.wide = FusedConv(as_product(block.pwconv1), setup, activation="gelu", result=setup.activation_dtype)
        self.narrow = FusedConv(as_product(block.pwconv2).scaled(block.gamma), setup, adds=True)

    def __call__(self, x: Tensor, streams: StreamSlots) -> Tensor:
        x, state = self.up.only(x, streams), streams.state(self.number)
        y = kernels.depthwise_norm(x, self.weight, self.bias, self.gain, self.shift, self.eps, state, self.kind)
        return self.narrow.only(self.wide.only(y, streams), streams, x)


class SoundConv:
    """The last convolution: every step's channels to a sample."""

    def __init__(self, product: Product, setup: LayerSetup, clamps: bool) -> None:
        self.weight, self.bias, self.clamps = product.weight[0].float().contiguous(), product.bias, clamps
        self.number = setup.reserve(product.context, self.weight.shape[1], setup.activation_dtype)

    def __call__(self, x: Tensor, streams: StreamSlots) -> Tensor:
        """x (rows, steps, channels) → (rows, steps) in [-1, 1]."""
        assert self.bias is not None
        return kernels.sound_conv(x, self.weight, self.bias, streams.state(self.number), self.clamps)


class FusedDecoder:
    """`count` streams and a spare slot, number `count`, for padding batches; all state has fixed addresses."""

    def __init__(self, codec: Codec, count: int, precision: Precision = "float32", frames: int = 8) -> None:
        self.device, self.num_codebooks = next(codec.decoder.parameters()).device, codec.config.num_codebooks
        self.frames = frames
        self._setup = setup = LayerSetup(precision)
        quantizer, post = codec.quantizer, codec.quantizer.post_module
        self._table, self._starts, self._sizes = _table(codec, precision)
        self._before = _before(codec, setup)
        blocks: Any = post.layers
        self._blocks = [FusedBlock(block, setup) for block in blocks]
        self._projection = None
        norm: RMSNorm | None = post.norm  # folded into the next product
        if isinstance(post.output_proj, nn.Linear):
            product = as_product(post.output_proj).of_normed(post.norm.weight)
            self._projection, norm = FusedConv(product, setup, norm_eps=post.norm.eps), None
        self._stages = []
        stages: Any = quantizer.upsample
        for up, block in stages:
            product = as_product(up) if norm is None else as_product(up).of_normed(norm.weight)
            self._stages.append(Upsampling(product, None if norm is None else norm.eps, block, setup))
            norm = None
        self._layers, self._last = _decoder(codec, setup)
        config = codec.config.post_module
        self._exact = config.exact_rope
        exponents = torch.arange(0, config.head_dim, 2, device=self.device).float() / config.head_dim
        self._frequencies = 1.0 / config.rope_base**exponents
        shape = (config.n_layer, count + 1, config.window - 1 + frames, config.n_head, config.head_dim)
        self._keys, self._values = (torch.zeros(shape, device=self.device) for _ in range(2))
        setup.allocate(count + 1, self.device)

    def reset(self, slot: int) -> None:
        """Start a new stream in this slot."""
        self._setup.clear(slot)

    def __call__(self, codes: Tensor, slots: Tensor) -> Tensor:
        """The next codes (rows, codebooks, frames) int64 of slots (rows,) → float32 (rows, samples) in [-1, 1]."""
        frames = codes.shape[2]
        if frames > self.frames:
            raise ValueError(f"{frames} frames are too many for this decoder, which has room for {self.frames}")
        streams = StreamSlots(self._setup, slots)
        x = kernels.look_up(codes, self._table, self._starts, self._sizes)
        if self._before:
            x = self._before.only(x, streams)
        for block, keys, values in zip(self._blocks, self._keys, self._values, strict=True):
            ring = keys, values, slots, self._setup.positions, block.window
            x = block(x, functools.partial(self._attend, ring), streams)
        if self._projection:
            x = self._projection.only(x, streams)
        for stage in self._stages:
            x = stage(x, streams)
        _, x = run_layers(self._layers, x, streams)
        pcm = self._last(x, streams)
        streams.advance(frames)
        return pcm

    def _attend(self, ring: tuple[Tensor, Tensor, Tensor, Tensor, int], qkv: Tensor) -> Tensor:
        return kernels.window_attention(qkv, self._frequencies, *ring, self._exact)


def _decoder(codec: Codec, setup: LayerSetup) -> tuple[list[Layer], SoundConv]:
    """Every convolution with its fused operations, and the last; activations are computed where their input is
    loaded."""
    model: Any = codec.decoder.model
    first, *blocks, last_snake, last, _ = model
    starts = [block.block[0] for block in blocks] + [last_snake]
    layers: list[Layer] = [FusedConv(as_product(first), setup, reads=torch.float32, result=None, snake=starts[0])]
    for block, end in zip(blocks, starts[1:], strict=True):
        _, up, *units = block.block
        up = FusedConv(as_product(up), setup, result=setup.activation_dtype, snake=units[0].block[0])
        layers += [up, *residual_units(units, end, setup)]
    return layers, SoundConv(as_product(last), setup, codec.config.clamps)


def _before(codec: Codec, setup: LayerSetup) -> FusedConv | None:
    """A convolution between codes and transformer, with the transformer's first product."""
    layer, project = codec.quantizer.pre_conv, codec.quantizer.post_module.input_proj
    if not isinstance(layer, CausalConv1d):
        return None
    product = as_product(layer).then(project) if isinstance(project, nn.Linear) else as_product(layer)
    return FusedConv(product, setup, reads=torch.float32)


def _table(codec: Codec, precision: Precision) -> tuple[Tensor, Tensor, Tensor]:
    """All codebooks' entries as the first layer's inputs, where each book starts, and its size."""
    quantizer, post = codec.quantizer, codec.quantizer.post_module
    books: list[Any] = [*quantizer.semantic_quantizer.quantizers, *quantizer.quantizer.quantizers]
    entries = [book.out_proj(book.codebook.weight.t()[None])[0].t() for book in books]
    if isinstance(post.input_proj, nn.Linear) and not isinstance(quantizer.pre_conv, CausalConv1d):
        entries = [entry @ post.input_proj.weight.t() for entry in entries]
        entries[0] = entries[0] + post.input_proj.bias
    sizes = torch.tensor([len(entry) for entry in entries], device=entries[0].device)
    table = torch.cat(entries).contiguous()
    return table.bfloat16() if precision == "bfloat16" else table, sizes.cumsum(0) - sizes, sizes
