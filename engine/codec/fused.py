"""The codec's decoder for many streams at once, as some eighty launches of a handful of fused kernels.

Activations are (rows, steps, channels), so that every layer is a matrix product. Nothing is read back to the host
and every state has a fixed address: a call can be captured as a CUDA graph for its numbers of rows and frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from engine import kernels
from engine.codec.config import Precision
from engine.codec.layers import ConvNeXtBlock
from engine.codec.layers import Snake as PlainSnake
from engine.codec.model import Codec
from engine.codec.past import Pasts
from engine.codec.products import Product, laid_out, product_of, snake_of
from engine.codec.transformer import Block
from engine.kernels.conv import Activation, conv
from engine.kernels.launch import compiling
from engine.kernels.past import Past
from engine.layers import RMSNorm


KINDS = {"float32": torch.float32, "tf32": torch.float16, "bfloat16": torch.bfloat16}
"""What activations are kept in that only go into a product. TF32 has the eleven bits of float16, which is twice as fast
and half as large; the range that float16 lacks is not needed here."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Which slots a call is about, and what they remember."""

    pasts: Pasts
    slots: Tensor
    positions: Tensor
    turns: Tensor

    def past(self, number: int) -> Past:
        """That of the layer of this number."""
        return Past(self.pasts.columns(number), self.slots, self.turns)


@dataclass(frozen=True, slots=True)
class Kinds:
    """Types and memory that all layers of a decoder share."""

    pasts: Pasts
    precision: Precision
    between: torch.dtype  # of activations that only go into a product; sums stay in float32


class Layer:
    """A product and what is fused with it: norm before; activation, residual and the next layer's Snake after."""

    def __init__(
        self,
        product: Product,
        kinds: Kinds,
        *,
        reads: torch.dtype | None = None,
        norm_eps: float | None = None,
        activation: Activation = "none",
        adds: bool = False,
        result: torch.dtype | None = torch.float32,
        snake: PlainSnake | None = None,
    ) -> None:
        self.weights = laid_out(product.weight, kinds.precision)
        self.bias = product.weight.new_zeros(len(product.weight)) if product.bias is None else product.bias
        self.stride, self.dilation = product.stride, product.dilation
        self.number = None
        if product.context:
            self.number = kinds.pasts.reserve(product.context, product.weight.shape[2], reads or kinds.between)
        self.norm_eps, self.activation, self.adds, self.result = norm_eps, activation, adds, result
        self.snake = None if snake is None else (snake_of(snake, self.stride), kinds.between)

    def __call__(self, x: Tensor, streams: Streams, base: Tensor | None = None) -> tuple[Tensor | None, Tensor | None]:
        """x (rows, steps, inputs) → the result and its Snake, each (rows, steps · stride, channels) or None."""
        past = None if self.number is None else streams.past(self.number)
        result, active = conv(
            x, self.weights, self.bias, past, self.dilation, self.norm_eps, self.activation,
            base if self.adds else None, self.result, self.snake,
        )  # fmt: skip
        return self._unfolded(result), self._unfolded(active)

    def only(self, x: Tensor, streams: Streams, base: Tensor | None = None) -> Tensor:
        """The result alone."""
        result, _ = self(x, streams, base)
        assert result is not None
        return result

    def _unfolded(self, x: Tensor | None) -> Tensor | None:
        """Outputs that hold several steps, as steps: memory stays as it is."""
        return x if x is None or self.stride == 1 else x.view(x.shape[0], x.shape[1] * self.stride, -1)


class TransformerLayer:
    """Attention and feed-forward in five kernels."""

    def __init__(self, block: Block, kinds: Kinds) -> None:
        attention, wide, between = block.attention, block.feed_forward, kinds.between
        self.window, self.heads = attention.window, attention.n_head
        q, k, v = attention.wqkv.weight.detach().unflatten(0, (3, self.heads, -1))
        q, k = (torch.cat([t[:, 0::2], t[:, 1::2]], 1) for t in (q, k))  # as the attention kernel turns them
        qkv = Product(torch.stack([q, k, v]).flatten(0, 2)[:, None]).of_normed(block.attention_norm.weight)
        gates = torch.stack([wide.w1.weight.detach(), wide.w3.weight.detach()], 1).flatten(0, 1)
        gated = Product(gates[:, None]).of_normed(block.ffn_norm.weight)
        out = product_of(attention.wo).scaled(block.attention_layer_scale.gamma)
        down = product_of(wide.w2).scaled(block.ffn_layer_scale.gamma)
        self.qkv = Layer(qkv, kinds, norm_eps=block.attention_norm.eps, result=between)
        self.out = Layer(out, kinds, adds=True)
        self.gated = Layer(gated, kinds, norm_eps=block.ffn_norm.eps, activation="silu_gate", result=between)
        self.down = Layer(down, kinds, adds=True)

    def __call__(self, x: Tensor, frequencies: Tensor, ring: tuple[Tensor, Tensor], streams: Streams) -> Tensor:
        qkv = self.qkv.only(x, streams).unflatten(2, (3, self.heads, -1))
        y = kernels.window_attention(qkv, frequencies, *ring, streams.slots, streams.positions, self.window)
        x = self.out.only(y, streams, x)
        return self.down.only(self.gated.only(x, streams), streams, x)


class Upsampling:
    """A transposed convolution and a ConvNeXt block, in four kernels."""

    def __init__(self, up: Product, norm_eps: float | None, block: ConvNeXtBlock, kinds: Kinds) -> None:
        own, norm, self.kind = block.dwconv.conv, block.norm, kinds.between
        self.up = Layer(up, kinds, reads=torch.float32, norm_eps=norm_eps)
        assert own.bias is not None
        self.weight, self.bias = own.weight.detach()[:, 0].t().contiguous(), own.bias.detach()
        self.gain, self.shift, self.eps = norm.weight.detach(), norm.bias.detach(), norm.eps
        self.number = kinds.pasts.reserve(block.dwconv.context, len(self.bias), torch.float32)
        self.wide = Layer(product_of(block.pwconv1), kinds, activation="gelu", result=kinds.between)
        self.narrow = Layer(product_of(block.pwconv2).scaled(block.gamma), kinds, adds=True)

    def __call__(self, x: Tensor, streams: Streams) -> Tensor:
        x, past = self.up.only(x, streams), streams.past(self.number)
        y = kernels.depthwise_norm(x, self.weight, self.bias, self.gain, self.shift, self.eps, past, self.kind)
        return self.narrow.only(self.wide.only(y, streams), streams, x)


class FusedDecoder:
    """`count` streams and a spare slot, `count` itself, that fills batches up."""

    def __init__(self, codec: Codec, count: int, precision: Precision = "float32", frames: int = 8) -> None:
        self.device, self.num_codebooks = next(codec.parameters()).device, codec.config.num_codebooks
        self.frames = frames
        kind = KINDS[precision]
        self._pasts = Pasts()
        kinds = Kinds(self._pasts, precision, kind)
        quantizer, post = codec.quantizer, codec.quantizer.post_module
        self._table, self._starts, self._sizes = _table(
            codec, torch.bfloat16 if precision == "bfloat16" else torch.float32
        )
        blocks: Any = post.layers
        self._blocks = [TransformerLayer(block, kinds) for block in blocks]
        self._projection = None
        norm: RMSNorm | None = post.norm  # goes into the first product after it
        if isinstance(post.output_proj, nn.Linear):
            product = product_of(post.output_proj).of_normed(post.norm.weight)
            self._projection, norm = Layer(product, kinds, norm_eps=post.norm.eps), None
        self._stages = []
        stages: Any = quantizer.upsample
        for up, block in stages:
            product = product_of(up) if norm is None else product_of(up).of_normed(norm.weight)
            self._stages.append(Upsampling(product, None if norm is None else norm.eps, block, kinds))
            norm = None
        *self._layers, self._last = _decoder(codec, kinds)
        config = codec.config.post_module
        exponents = torch.arange(0, config.head_dim, 2, device=self.device).float() / config.head_dim
        self._frequencies = 1.0 / config.rope_base**exponents
        shape = (config.n_layer, count + 1, config.window - 1 + frames, config.n_head, config.head_dim)
        self._keys, self._values = (torch.zeros(shape, device=self.device) for _ in range(2))
        self._pasts.allocate(count + 1, self.device)
        self._clock = torch.zeros(2, count + 1, dtype=torch.int64, device=self.device)

    def reset(self, slot: int) -> None:
        """Start a new stream in this slot."""
        self._pasts.clear(slot)
        self._clock[:, slot].zero_()

    @torch.inference_mode()
    def prepare(self, sizes: Sequence[tuple[int, int]]) -> None:
        """Compile the kernels of these (rows, frames), side by side."""
        with compiling():
            for rows, frames in sizes:
                codes = torch.zeros(rows, self.num_codebooks, frames, dtype=torch.int64, device=self.device)
                self(codes, codes.new_zeros(rows))

    def __call__(self, codes: Tensor, slots: Tensor) -> Tensor:
        """The next codes (rows, codebooks, frames) int64 of slots (rows,) → float32 (rows, samples) in [-1, 1]."""
        rows, _, frames = codes.shape
        if frames > self.frames:
            raise ValueError(f"{frames} frames are more than the {self.frames} that this decoder was made for")
        streams = Streams(self._pasts, slots, self._clock[0], self._clock[1])
        x = kernels.look_up(codes, self._table, self._starts, self._sizes)
        for block, keys, values in zip(self._blocks, self._keys, self._values, strict=True):
            x = block(x, self._frequencies, (keys, values), streams)
        if self._projection:
            x = self._projection.only(x, streams)
        for stage in self._stages:
            x = stage(x, streams)
        base = x
        for layer in self._layers:
            result, active = layer(x, streams, base)
            base, x = base if result is None else result, x if active is None else active
        pcm = self._last.only(x, streams)
        kernels.advance(slots, self._clock[0], self._clock[1], frames)
        return pcm.view(rows, -1)


def _decoder(codec: Codec, kinds: Kinds) -> list[Layer]:
    """Every convolution with what follows it; each activation is computed where its input is still at hand."""
    model: Any = codec.decoder.model
    first, *blocks, last_snake, last, _ = model
    starts = [block.block[0] for block in blocks] + [last_snake]
    layers = [Layer(product_of(first), kinds, reads=torch.float32, result=None, snake=starts[0])]
    for block, end in zip(blocks, starts[1:], strict=True):
        _, up, *units = block.block
        units = [unit.block for unit in units]
        after = [unit[0] for unit in units[1:]] + [end]
        layers.append(Layer(product_of(up), kinds, snake=units[0][0]))
        for (_, wide, snake, narrow), following in zip(units, after, strict=True):
            layers.append(Layer(product_of(wide), kinds, result=None, snake=snake))
            result = None if following is end else torch.float32  # nothing adds to a block's last sum
            layers.append(Layer(product_of(narrow), kinds, adds=True, result=result, snake=following))
    return [*layers, Layer(product_of(last), kinds, activation="tanh")]


def _table(codec: Codec, kind: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """All codebooks' entries as they go into the transformer, where each book starts, and its size."""
    quantizer, post = codec.quantizer, codec.quantizer.post_module
    books: list[Any] = [*quantizer.semantic_quantizer.quantizers, *quantizer.quantizer.quantizers]
    entries = [book.out_proj(book.codebook.weight.t()[None])[0].t() for book in books]
    if isinstance(post.input_proj, nn.Linear):
        entries = [entry @ post.input_proj.weight.t() for entry in entries]
        entries[0] = entries[0] + post.input_proj.bias
    sizes = torch.tensor([len(entry) for entry in entries], device=entries[0].device)
    return torch.cat(entries).to(kind).contiguous(), sizes.cumsum(0) - sizes, sizes
