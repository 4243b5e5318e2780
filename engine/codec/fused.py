"""The codec's decoder for many streams at once, as some eighty launches of a handful of fused kernels.

Activations are (rows, steps, channels), so that every layer is a matrix product. Nothing is read back to the host
and every state has a fixed address: a call can be captured as a CUDA graph for its numbers of rows and frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from engine import kernels
from engine.codec.layers import CausalConv1d, CausalConvTranspose1d, ConvNeXtBlock, ResidualUnit
from engine.codec.layers import Snake as PlainSnake
from engine.codec.model import Codec, DecoderBlock
from engine.codec.past import Pasts
from engine.codec.transformer import Block, WindowTransformer
from engine.kernels.conv import Activation, Past, Snake, Weights, conv


def laid_out(weight: Tensor, precision: str) -> Weights:
    """(outputs, taps, inputs) as a precision wants it."""
    weight = weight.detach().float().contiguous()
    if precision == "bfloat16":
        return Weights(weight.bfloat16())
    if precision == "split_bf16":
        high = weight.bfloat16()
        return Weights(high, (weight - high.float()).bfloat16())
    if precision == "split_tf32":
        high = (weight.view(torch.int32) & -8192).view(torch.float32)
        return Weights(high, weight - high)
    return Weights(weight, None, precision)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Streams:
    """Which slots a call is about, and what they remember."""

    pasts: Pasts
    slots: Tensor
    positions: Tensor
    turns: Tensor

    def past(self, number: int | None) -> Past | None:
        return None if number is None else Past(self.pasts.columns(number), self.slots, self.turns)


class Layer:
    """A convolution, or a transposed one, and what follows it: activation, residual, the next layer's Snake."""

    def __init__(
        self,
        conv: nn.Module,
        pasts: Pasts,
        precision: str,
        kind: torch.dtype,
        source: torch.dtype,
        *,
        snake: PlainSnake | None = None,
        adds: bool = False,
        raw: torch.dtype | None = torch.float32,
        activation: Activation = "none",
        norm: nn.Module | None = None,
    ) -> None:
        weight, bias, self.stride, self.dilation = _unrolled(conv)
        self.norm_eps = None if norm is None else norm.eps
        if norm is not None:
            weight = weight * norm.weight
        self.weights, self.bias = laid_out(weight, precision), bias
        context = (weight.shape[1] - 1) * self.dilation
        self.number = pasts.reserve(context, weight.shape[2], source) if context else None
        self.snake = None if snake is None else (_repeated(snake, self.stride), kind)
        self.adds, self.raw, self.activation = adds, raw, activation

    def __call__(self, x: Tensor, base: Tensor | None, streams: Streams) -> tuple[Tensor | None, Tensor | None]:
        """x (rows, steps, inputs) → the result and its Snake (rows, steps · stride, channels)."""
        both = conv(
            x, self.weights, streams.past(self.number), self.dilation, self.bias, self.norm_eps, self.activation,
            base if self.adds else None, self.raw, self.snake,
        )  # fmt: skip
        wide = x.shape[1] * self.stride
        return both[0] if both[0] is None else both[0].view(len(x), wide, -1), (
            both[1] if both[1] is None else both[1].view(len(x), wide, -1)
        )


def _unrolled(layer: nn.Module) -> tuple[Tensor, Tensor | None, int, int]:
    """Weight (outputs, taps, inputs), bias, stride and dilation of a linear, causal or transposed layer."""
    if isinstance(layer, nn.Linear):
        return layer.weight[:, None], layer.bias, 1, 1
    if isinstance(layer, CausalConv1d):
        return layer.conv.weight.transpose(1, 2), layer.conv.bias, 1, layer.conv.dilation[0]
    if not isinstance(layer, CausalConvTranspose1d):
        raise TypeError(f"{type(layer).__name__} has no product")
    weight, stride, taps = layer.conv.weight, layer.stride, layer.context + 1
    inputs, outputs, kernel = weight.shape
    padded = torch.nn.functional.pad(weight, (0, taps * stride - kernel))
    phases = padded.view(inputs, outputs, taps, stride).flip(2)  # the earlier input meets the later weights
    bias = None if layer.conv.bias is None else layer.conv.bias.repeat(stride)
    return phases.permute(3, 1, 2, 0).reshape(stride * outputs, taps, inputs), bias, stride, 1


def _repeated(snake: PlainSnake, times: int) -> Snake:
    alpha = snake.alpha.detach().flatten().float()
    return Snake(alpha.repeat(times), (alpha + 1e-9).reciprocal().repeat(times))


def _linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    with torch.device("meta"):
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.weight = nn.Parameter(weight.detach(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach(), requires_grad=False)
    return layer


class TransformerLayer:
    """Attention and feed-forward in five kernels: gains of norms and scales are part of the weights."""

    def __init__(self, block: Block, precision: str, kind: torch.dtype, pasts: Pasts) -> None:
        attention, wide = block.attention, block.feed_forward
        self.window, self.heads = attention.window, attention.n_head
        q, k, v = attention.wqkv.weight.unflatten(0, (3, self.heads, -1))
        halves = [torch.cat([t[:, 0::2], t[:, 1::2]], 1) for t in (q, k)]
        qkv = torch.stack([*halves, v]).flatten(0, 2)
        gated = torch.stack([wide.w1.weight, wide.w3.weight], 1).flatten(0, 1)
        out = attention.wo.weight * block.attention_layer_scale.gamma[:, None]
        down = wide.w2.weight * block.ffn_layer_scale.gamma[:, None]
        how: tuple[Any, ...] = (pasts, precision, kind, kind)
        self.qkv = Layer(_linear(qkv), *how, raw=kind, norm=block.attention_norm)
        self.out = Layer(_linear(out), *how, adds=True)
        self.gated = Layer(_linear(gated), *how, raw=kind, activation="silu_gate", norm=block.ffn_norm)
        self.down = Layer(_linear(down), *how, adds=True)

    def __call__(self, x: Tensor, frequencies: Tensor, ring: tuple[Tensor, Tensor], streams: Streams) -> Tensor:
        qkv, _ = self.qkv(x, None, streams)
        qkv = qkv.unflatten(2, (3, self.heads, -1))
        y = kernels.window_attention(qkv, frequencies, *ring, streams.slots, streams.positions, self.window)
        x, _ = self.out(y, x, streams)
        y, _ = self.gated(x, None, streams)
        return self.down(y, x, streams)[0]


class Upsampling:
    """A transposed convolution and a ConvNeXt block, in four kernels."""

    def __init__(
        self, up: CausalConvTranspose1d, block: ConvNeXtBlock, precision: str, kind: torch.dtype, pasts: Pasts, norm: Any
    ) -> None:
        how: tuple[Any, ...] = (pasts, precision, kind)
        self.up = Layer(up, *how, torch.float32, norm=norm)
        own = block.dwconv.conv
        self.taps, self.bias, self.norm = own.weight[:, 0].t().contiguous(), own.bias, block.norm
        self.number = pasts.reserve(block.dwconv.context, len(own.weight), torch.float32)
        self.wide = Layer(block.pwconv1, *how, kind, raw=kind, activation="gelu")
        gamma, narrow = block.gamma, block.pwconv2
        scaled = _linear(narrow.weight * gamma[:, None], narrow.bias * gamma)
        self.narrow = Layer(scaled, *how, kind, adds=True)
        self.kind = kind

    def __call__(self, x: Tensor, streams: Streams) -> Tensor:
        x, _ = self.up(x, None, streams)
        norm, past = self.norm, streams.past(self.number)
        y = kernels.depthwise_norm(x, self.taps, self.bias, norm.weight, norm.bias, norm.eps, past, self.kind)
        y, _ = self.wide(y, None, streams)
        return self.narrow(y, x, streams)[0]


class FusedDecoder:
    """`count` streams and a spare slot, `count` itself, that fills batches up."""

    def __init__(self, codec: Codec, count: int, precision: str = "float32", frames: int = 8) -> None:
        self.device = next(codec.parameters()).device
        self.frames = frames
        kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
        ahead = {"float32": "split_tf32"}.get(precision, precision)
        inside = {"float32": "tf32x3", "split_tf32": "tf32x3", "split_bf16": "tf32x3"}.get(precision, precision)
        self._pasts = Pasts()
        quantizer, post = codec.quantizer, codec.quantizer.post_module
        self._table, self._starts, self._sizes = _table(codec, kind)
        self._blocks = [TransformerLayer(block, inside, kind, self._pasts) for block in post.layers]
        self._stages, self._projection = [], None
        norm: Any = post.norm
        if isinstance(post.output_proj, nn.Linear):
            self._projection, norm = Layer(post.output_proj, self._pasts, inside, kind, kind, norm=norm), None
        for stage in quantizer.upsample:
            self._stages.append(Upsampling(stage[0], stage[1], inside, kind, self._pasts, norm))
            norm = None
        self._layers = _decoder(codec, ahead, kind, self._pasts)
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

    def __call__(self, codes: Tensor, slots: Tensor) -> Tensor:
        """The next codes (rows, codebooks, frames) int64 of these slots (rows,) → float32 (rows, samples) in [-1, 1]."""
        rows, _, frames = codes.shape
        if frames > self.frames:
            raise ValueError(f"{frames} frames are more than the {self.frames} that this decoder was made for")
        streams = Streams(self._pasts, slots, self._clock[0], self._clock[1])
        x = kernels.look_up(codes, self._table, self._starts, self._sizes)
        for block, *ring in zip(self._blocks, self._keys, self._values, strict=True):
            x = block(x, self._frequencies, ring, streams)
        if self._projection:
            x, _ = self._projection(x, None, streams)
        for stage in self._stages:
            x = stage(x, streams)
        base, active = None, x
        for layer in self._layers:
            raw, active = layer(active, base, streams)
            base = base if raw is None else raw
        kernels.advance(slots, self._clock[0], self._clock[1], frames)
        return base.view(rows, -1)


def _decoder(codec: Codec, precision: str, kind: torch.dtype, pasts: Pasts) -> list[Layer]:
    """Every convolution with what follows it; each activation is computed where its input is still at hand."""
    first, *blocks, last_snake, last, _ = codec.decoder.model
    snakes = [block.block[0] for block in blocks] + [last_snake]
    how: tuple[Any, ...] = (pasts, precision, kind)
    layers = [Layer(first, *how, torch.float32, snake=snakes[0], raw=None)]
    for block, following in zip(blocks, snakes[1:], strict=True):
        _, up, *units = block.block
        inner = [unit.block for unit in units]
        after = [unit[0] for unit in inner[1:]] + [following]
        layers.append(Layer(up, *how, kind, snake=inner[0][0]))
        for (_, wide, snake, narrow), next_snake in zip(inner, after, strict=True):
            layers.append(Layer(wide, *how, kind, snake=snake, raw=None))
            raw = None if next_snake is following else torch.float32
            layers.append(Layer(narrow, *how, kind, snake=next_snake, adds=True, raw=raw))
    return [*layers, Layer(last, *how, kind, activation="tanh")]


def _table(codec: Codec, kind: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """All codebooks' entries as they go into the transformer, where each book starts, and its size."""
    quantizer, post = codec.quantizer, codec.quantizer.post_module
    books = [*quantizer.semantic_quantizer.quantizers, *quantizer.quantizer.quantizers]
    entries = [book.out_proj(book.codebook.weight.t()[None])[0].t() for book in books]
    if isinstance(post.input_proj, nn.Linear):
        entries = [entry @ post.input_proj.weight.t() for entry in entries]
        entries[0] = entries[0] + post.input_proj.bias
    sizes = torch.tensor([len(entry) for entry in entries], device=entries[0].device)
    return torch.cat(entries).to(kind).contiguous(), sizes.cumsum(0) - sizes, sizes
