"""The codec's encoder over fused kernels: convolutions piece by piece, so that clips may have any length.

Pieces do not change the result: every convolution is causal and continues from its state, and its tiles do not depend
on the number of steps, so that a clip's result is the same alone and in a batch.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.codec.codec_config import PIECE_SAMPLES
from engine.codec.load import ONLY_DECODES, part_on
from engine.codec.model import Codec
from engine.codec.quantizer import DacQuantizer
from engine.fused.codec_layer import FusedConv, Layer, LayerSetup, StreamSlots, residual_units, run_layers
from engine.fused.codec_products import as_product
from engine.fused.codec_transformer import WholeTransformer

log = logging.getLogger(__name__)


class FusedEncoder:
    """Like `Codec.encode`, for up to `rows` clips at a time; for one thread only."""

    def __init__(self, codec: Codec, rows: int) -> None:
        """Takes over most of the codec's weights, so that memory has one copy: `Codec.encode` no longer works."""
        self._rows, self._frame = rows, codec.config.frame_samples
        device = next(codec.parameters()).device
        parts: Any = codec.encoder.block
        first, *blocks, self._snake, self._last = parts
        self._setup, quantizer = LayerSetup("float32"), codec.quantizer
        setup = self._setup
        self._layers, self._transformers, piece_steps = _convolutions(first, blocks, setup)
        self.steps = piece_steps * self._frame // PIECE_SAMPLES
        """Steps per frame in the result of `convolve`."""
        last = self._layers[-1]
        assert isinstance(last, FusedConv)
        self.channels = len(last.bias)
        self._pre = WholeTransformer(quantizer.pre_module, setup, PIECE_SAMPLES // self._frame)
        self._downsample, self._quantised = quantizer.downsample, quantizer.codes
        setup.allocate(rows, device)
        self._slots = torch.arange(rows, device=device)

    @staticmethod
    def reads(codec: Codec) -> bool:
        """Whether this is a DAC without transformers except after its last convolution, like S2 Pro's."""
        return isinstance(codec.quantizer, DacQuantizer) and not any(codec.config.encoder_transformer_layers[:-1])

    @torch.inference_mode()
    def __call__(self, audio: Tensor) -> Tensor:
        """Audio (rows, 1, samples) float32 → codes (rows, codebooks, frames) int64; the last frame is padded."""
        return self.codes(self.convolve(audio))

    @torch.inference_mode()
    def convolve(self, audio: Tensor) -> Tensor:
        """The first part: audio (rows, 1, samples) → (rows, frames · steps, channels)."""
        rows, _, samples = audio.shape
        if rows > self._rows:
            raise ValueError(f"{rows} clips are too many for this encoder, which has room for {self._rows}")
        self._setup.clear(slice(rows))
        audio = F.pad(audio, (0, -samples % self._frame))
        piece = max(1, PIECE_SAMPLES // (rows * self._frame)) * self._frame
        return torch.cat([self._next(part) for part in audio.split(piece, 2)], 1)

    @torch.inference_mode()
    def codes(self, x: Tensor) -> Tensor:
        """The rest: the result of `convolve` → codes (rows, codebooks, frames). Later steps do not change a frame."""
        for transformer in self._transformers:
            x = transformer(x)
        x = self._downsample(self._last(self._snake(x.transpose(1, 2))))
        return self._quantised(self._pre(x.transpose(1, 2)).transpose(1, 2))

    def _next(self, audio: Tensor) -> Tensor:
        """The next samples (rows, 1, samples) of every clip → (rows, steps, channels)."""
        streams = StreamSlots(self._setup, self._slots[: len(audio)])
        result, _ = run_layers(self._layers, audio.transpose(1, 2).contiguous(), streams)
        streams.advance(0)
        return result


def _convolutions(first: Any, blocks: list[Any], setup: LayerSetup) -> tuple[list[Layer], list[WholeTransformer], int]:
    """Every convolution with its fused operations, the final transformer, if any, and its steps per piece."""
    starts = [block.block[0].block[0] for block in blocks] + [None]
    layers: list[Layer] = [FusedConv(as_product(first), setup, snake=starts[0], total=PIECE_SAMPLES)]
    steps = PIECE_SAMPLES
    for block, start in zip(blocks, starts[1:], strict=True):
        *units, end, down = block.block[:5]
        layers += residual_units(units, end, setup, steps)
        product = as_product(down)
        steps //= product.folds
        layers.append(FusedConv(product, setup, snake=start, total=steps))
    transformers = [WholeTransformer(plain, setup, steps) for plain in blocks[-1].block[5:]]
    for part in (first, *(layer for block in blocks for layer in block.block[:5])):
        part.to("meta")
    return layers, transformers, steps


class OnDemandEncoder:
    """Like `Codec.encode`, for audio on a GPU; if that lacks memory, on the CPU, which takes far longer."""

    def __init__(self, codec: Codec, needed: int) -> None:
        """codec: in host memory, where it stays. needed: bytes that must be free."""
        self._codec, self._needed = codec, needed

    @torch.inference_mode()
    def __call__(self, audio: Tensor) -> Tensor:
        """Audio (rows, 1, samples) float32 → codes (rows, codebooks, frames) int64."""
        if torch.cuda.mem_get_info(audio.device)[0] >= self._needed:
            try:
                part = part_on(self._codec, audio.device, without=ONLY_DECODES)
                is_dac = isinstance(part.quantizer, DacQuantizer)
                return FusedEncoder(part, len(audio))(audio) if is_dac else part.encode(audio)
            except torch.OutOfMemoryError:  # another program took the memory, or this process has its own limit
                log.info("encoding a clip on the CPU: the GPU has no memory left for the encoder")
            finally:
                torch.cuda.empty_cache()
        return self._codec.encode(audio.cpu()).to(audio.device)
