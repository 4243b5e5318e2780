"""The codec's encoder in native code: a clip to codes, in pieces of a few frames."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.codec import Codec
from engine.codec.model import PIECE_VALUES
from engine.codec.quantizer import DacQuantizer
from engine.native.layers import PANEL, LayerBuilder, NativeLayers, Plan, runs_transformer
from engine.native.library import CLIPS, library


def runs(codec: Codec) -> bool:
    """Whether this codec's encoder can run natively here; else it runs in torch."""
    config = codec.config
    if not isinstance(codec.quantizer, DacQuantizer):
        return False
    stages = enumerate(config.encoder_transformer_layers, 1)
    transformers = [config.encoder_transformer(config.encoder_dim << stage, count) for stage, count in stages if count]
    return (
        library() is not None
        and next(codec.parameters()).device.type == "cpu"
        and all(size % PANEL == 0 for size in (config.latent_dim, *config.downsample_dims))
        and all(map(runs_transformer, (*transformers, config.pre_module)))
    )


class NativeEncoder:
    """Encodes clips one after the other. For one thread only.

    Its first clip arranges the weights of the convolutions, for which `release` frees the memory again. Transformers
    read the codec's own.
    """

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._layers: NativeLayers | None = None
        self._frame = codec.config.frame_samples
        self._frames = max(1, PIECE_VALUES // (codec.config.encoder_dim * self._frame))

    @torch.inference_mode()
    def __call__(self, audio: Tensor) -> Tensor:
        """As `Codec.encode`."""
        whole = F.pad(audio.float(), (0, -audio.shape[-1] % self._frame))
        return torch.cat([self._codec.quantizer.codes(self.latents(clip)) for clip in whole])

    def latents(self, clip: Tensor) -> Tensor:
        """Audio (1, samples) of whole frames → what is quantised, (1, channels, frames)."""
        if self._layers is None:
            self._layers = _layers(self._codec, self._frames)
        self._layers.reset(0)
        frames = clip.reshape(-1, self._frame).contiguous().numpy()
        pieces = [self._layers(0, frames[at : at + self._frames]) for at in range(0, len(frames), self._frames)]
        return torch.from_numpy(np.concatenate(pieces)).t()[None]

    def release(self) -> None:
        """Free the arranged weights; the next clip arranges them again."""
        self._layers = None


def _layers(codec: Codec, frames: int) -> NativeLayers:
    builder = LayerBuilder(Plan(frames, streams=1, decodes=False))
    first, x, rows = _build_convolutions(codec, builder)
    pre: Any = codec.quantizer.pre_module
    stages: Any = codec.quantizer.downsample
    strides = [down.conv.stride[0] for down, _ in stages]
    for (down, block), stride, next_stride in zip(stages, strides, [*strides[1:], 1], strict=True):
        rows //= stride
        raw, result = builder.around_block(rows, block, stride=next_stride)
        builder.convolve_down(x, down, output=raw)
        builder.add_block(raw, result, block)
        x = result
    x = builder.project(x, pre.input_proj, rows)
    last = builder.raw(rows, pre.config.dim)
    builder.transformer(x, pre, last)
    last = builder.project(last, pre.output_proj, rows)
    return NativeLayers(builder.plan, first, last, pre.config.input_dim, CLIPS)


def _build_convolutions(codec: Codec, builder: LayerBuilder) -> tuple[int, int, int]:
    """Add the layers of `codec.encoder`; returns the buffers of sound and latents, and a frame's rows of latents."""
    model: Any = codec.encoder.block
    first, *blocks, snake, last = model
    rows = codec.config.frame_samples
    sound = builder.plan.buffer("sound", rows, 1, first.context)
    add: Callable[..., None] = partial(builder.convolve, sound, first.conv.weight, first.conv.bias)
    for block in blocks:
        *units, after, down, transformer = (*block.block, None) if len(block.block) == 5 else block.block
        width, stride = down.conv.out_channels, down.conv.stride[0]
        raw, ahead = builder.raw(rows, down.conv.in_channels), builder.before(units[0], rows)
        add(output=raw, activated=ahead, snake=units[0].block[0])
        pending = builder.units(raw, ahead, units, rows, (after, down.context))
        rows //= stride
        add = partial(builder.convolve_down, pending, down)
        if transformer is not None:
            y = builder.raw(rows, width)
            add(output=y)
            add = partial(builder.transformer, y, transformer)
    raw, ahead = builder.raw(rows, last.conv.in_channels), builder.ahead(rows, last.conv.in_channels, last.context)
    add(output=raw, activated=ahead, snake=snake)
    latents = builder.raw(rows, last.conv.out_channels)
    builder.convolve(ahead, last.conv.weight, last.conv.bias, output=latents)
    return sound, latents, rows
