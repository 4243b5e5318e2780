"""The codec's decoder in native code: codes to sound, a few frames of one stream at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.codec import Codec
from engine.codec.codec_layers import CausalConv1d
from engine.native.layers import PANEL, PLAIN, TANH, LayerBuilder, NativeLayers, Plan, padded, runs_transformer
from engine.native.library import SOUND, library

MOST_FRAMES = 4
"""Frames of one call; a CPU's chunks have no more."""


def runs(codec: Codec) -> bool:
    """Whether this codec's decoder can run natively here; else it runs in torch."""
    config = codec.config
    return (
        library() is not None
        and next(codec.parameters()).device.type == "cpu"
        and all(size % PANEL == 0 for size in (config.latent_dim, *config.downsample_dims))
        and runs_transformer(config.post_module)
    )


class NativeDecoder:
    """Decodes the next frames of one stream at a time. For one thread only.

    It copies the weights, so the codec may forget its own.
    """

    def __init__(self, codec: Codec, streams: int) -> None:
        self._tables, self._offsets, self._limits = _codebooks(codec)
        self._clamps, self._adds = codec.config.clamps, isinstance(codec.quantizer.pre_conv, CausalConv1d)
        plan = Plan(MOST_FRAMES, streams, decodes=True)
        first, last, width = _build(codec, LayerBuilder(plan))
        self._layers = NativeLayers(plan, first, last, width, SOUND)
        self.reset = self._layers.reset

    def __call__(self, slot: int, codes: np.ndarray) -> np.ndarray:
        """The next codes (codebooks, frames) → float32 (samples,)."""
        parts = [codes[:, at : at + MOST_FRAMES] for at in range(0, codes.shape[1], MOST_FRAMES)]
        sound = np.concatenate([self._layers(slot, self._vectors(part)).ravel() for part in parts])
        return np.clip(sound, -1, 1, out=sound) if self._clamps else sound

    def _vectors(self, codes: np.ndarray) -> np.ndarray:
        """The entries of a frame's codes, after each other or as decoded, (frames, channels)."""
        indices = np.minimum(codes.astype(np.int64).T, self._limits) + self._offsets
        entries = self._tables[indices]
        parts = entries.sum(1) if self._adds else entries.reshape(codes.shape[1], -1)
        vectors = np.zeros((len(parts), padded(parts.shape[1])), np.float32)
        vectors[:, : parts.shape[1]] = parts
        return vectors


def _build(codec: Codec, builder: LayerBuilder) -> tuple[int, int, int]:
    """Add the decoder's layers; returns the buffers of vectors and sound, and the samples of the sound's rows."""
    plan, quantizer = builder.plan, codec.quantizer
    post: Any = quantizer.post_module
    context, before = 0, quantizer.pre_conv
    if isinstance(before, CausalConv1d):
        assert before.conv.bias is not None
        weight, bias, context = before.conv.weight, before.conv.bias, before.context
    else:
        weight, bias = _projection(codec)
    first = plan.buffer("codes", 1, weight.shape[1], context)
    x = builder.raw(1, post.config.input_dim)
    # Exact, because the rounding of these weights, the smallest, would be heard most: 70 dB below the sound.
    builder.convolve(first, weight, bias, output=x, is_exact=True)
    x = builder.project(x, post.input_proj, 1)
    y = builder.raw(1, post.config.dim)
    builder.transformer(x, post, y)
    x, rows = builder.project(y, post.output_proj, 1), 1
    model: Any = codec.decoder.model
    stages: Any = quantizer.upsample
    followers = [*(up for up, _ in stages[1:]), model[0]]
    for (up, block), follower in zip(stages, followers, strict=True):
        rows *= up.stride
        raw, result = builder.around_block(rows, block, follower.context)
        builder.convolve_up(x, up, output=raw)
        builder.add_block(raw, result, block)
        x = result
    return first, *_build_convolutions(model, builder, x, rows, PLAIN if codec.config.clamps else TANH)


def _build_convolutions(model: Any, builder: LayerBuilder, x: int, rows: int, end: int) -> tuple[int, int]:
    """``end``: the last activation."""
    first, *blocks, snake, last, _ = model
    width = math.gcd(rows * math.prod(block.block[1].stride for block in blocks), PANEL)
    followers = [(block.block[0], block.block[1].context) for block in blocks]
    followers.append((snake, last.context + -last.context % width))
    pending = builder.ahead(rows, first.conv.out_channels, followers[0][1])
    builder.convolve(x, first.conv.weight, first.conv.bias, activated=pending, snake=followers[0][0])
    for block, following in zip(blocks, followers[1:], strict=True):
        _, up, *units = block.block
        rows *= up.stride
        raw, ahead = builder.raw(rows, up.conv.out_channels), builder.before(units[0], rows)
        builder.convolve_up(pending, up, output=raw, activated=ahead, snake=units[0].block[0])
        pending = builder.units(raw, ahead, units, rows, following)
    sound = builder.plan.buffer("sound", rows // width, PANEL)
    builder.convolve_joined(pending, last, width, activated=sound, activation=end)
    return sound, width


def _codebooks(codec: Codec) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All codebooks' vectors in one table, and of each codebook its first row and its last code."""
    parts: Any = codec.quantizer
    quantizers = [*parts.semantic_quantizer.quantizers, *parts.quantizer.quantizers]
    tables = [quantizer.codebook.weight.detach().float().numpy() for quantizer in quantizers]
    sizes = np.array([len(table) for table in tables])
    return np.concatenate(tables), np.cumsum(sizes) - sizes, sizes - 1


def _projection(codec: Codec) -> tuple[Tensor, Tensor]:
    """The sum of all codebooks' projections as one: weight (dim, codebooks · codebook_dim, 1) and bias."""
    parts: Any = codec.quantizer
    quantizers = [*parts.semantic_quantizer.quantizers, *parts.quantizer.quantizers]
    weights = [quantizer.out_proj.weight for quantizer in quantizers]
    biases = [quantizer.out_proj.bias.double() for quantizer in quantizers]
    return torch.cat(weights, 1), torch.stack(biases).sum(0)
