"""The codec as a whole: `encode` audio to codes, `decode` codes to audio at once or as a stream."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.codec_config import PIECE_SAMPLES, CodecConfig
from engine.codec.codec_layers import (
    CausalConv1d,
    CausalConvTranspose1d,
    ResidualUnit,
    Snake,
    Stack,
    Stateful,
    StreamState,
)
from engine.codec.quantizer import DacQuantizer, Quantizer
from engine.codec.transformer import WindowTransformer

PIECE_VALUES = 2**21
"""Activations of the first layer that a CPU encodes at once, in whole frames: 16 frames of S2 Pro's codec, 8 MB. A
whole clip's fit no cache; small pieces repeat the layers' overhead."""


class EncoderBlock(Stateful):
    """Three residual units, then a strided convolution and, in some blocks, a transformer."""

    def __init__(self, config: CodecConfig, dim: int, stride: int, transformer_layers: int) -> None:
        super().__init__()
        half = dim // 2
        layers: list[nn.Module] = [ResidualUnit.dilated(half, dilation) for dilation in (1, 3, 9)]
        layers += [Snake(half), CausalConv1d(half, dim, 2 * stride, stride=stride)]
        if transformer_layers:
            layers.append(WindowTransformer(config.encoder_transformer(dim, transformer_layers)))
        self.block = Stack(*layers)

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        return self.block(x, state)


class Encoder(Stateful):
    """(rows, 1, samples) → (rows, latent_dim, samples / hop)."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        dim = config.encoder_dim
        layers: list[nn.Module] = [CausalConv1d(1, dim, 7)]
        for stride, n_layer in zip(config.encoder_rates, config.encoder_transformer_layers, strict=True):
            dim *= 2
            layers.append(EncoderBlock(config, dim, stride, n_layer))
        layers += [Snake(dim), CausalConv1d(dim, config.latent_dim, 3)]
        self.block = Stack(*layers)

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        return self.block(x, state)


class DecoderBlock(Stateful):
    """An upsampling convolution, then three residual units."""

    def __init__(self, inputs: int, outputs: int, stride: int, has_beta: bool) -> None:
        super().__init__()
        self.block = Stack(
            Snake(inputs, has_beta),
            CausalConvTranspose1d(inputs, outputs, 2 * stride, stride),
            *(ResidualUnit.dilated(outputs, dilation, has_beta) for dilation in (1, 3, 9)),
        )

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        return self.block(x, state)


class Decoder(Stateful):
    """(rows, latent_dim, steps) → (rows, 1, steps · hop), within [-1, 1]."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        dim = config.decoder_dim
        layers: list[nn.Module] = [CausalConv1d(config.latent_dim, dim, 7)]
        for rate in config.decoder_rates:
            layers.append(DecoderBlock(dim, dim // 2, rate, config.clamps))
            dim //= 2
        end = nn.Hardtanh() if config.clamps else nn.Tanh()
        layers += [Snake(dim, config.clamps), CausalConv1d(dim, 1, 7), end]
        self.model = Stack(*layers)

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        return self.model(x, state)


class Codec(nn.Module):
    """A codec whose every part is causal, so streams are exact: the chunks joined equal the whole. Upstream's modded
    DAC, as it is."""

    parts: ClassVar[tuple[Callable[[Any], Stateful], Callable[[Any], Quantizer]]] = Encoder, DacQuantizer
    """Encoder and quantizer; the decoder is the same for all."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.config = config
        encoder, quantizer = self.parts
        self.encoder, self.quantizer = encoder(config), quantizer(config)
        self.decoder = Decoder(config)

    def encode(self, audio: Tensor, around_piece: Callable[[], AbstractContextManager[object]] = nullcontext) -> Tensor:
        """Audio (rows, 1, samples) float32 at config.sample_rate → codes (rows, codebooks, frames) int64.

        The last frame is padded with zeros. Float32 throughout, whatever the decoder's precision: in bfloat16 29 % of
        the semantic tokens come out differently (vLLM-Omni's review of its PR 2145). Upstream's post_module and
        upsampling add nothing to codes and are left out.

        The convolutions are computed in pieces, a CPU's of PIECE_VALUES within ``around_piece()``, a GPU's as planned.
        """
        frame = self.config.frame_samples
        audio = F.pad(audio.float(), (0, -audio.shape[-1] % frame))
        with torch.autocast(audio.device.type, enabled=False):
            state, latents = StreamState(len(audio)), []
            samples = PIECE_VALUES // self.config.encoder_dim if audio.device.type == "cpu" else PIECE_SAMPLES
            frames = max(1, samples // (len(audio) * frame))
            for piece in audio.split(frames * frame, 2):
                with around_piece():
                    latents.append(self.encoder(piece, state))
            with around_piece():
                return self.quantizer.encode(torch.cat(latents, 2))

    def decode(self, codes: Tensor, state: StreamState | None = None) -> Tensor:
        """Codes (rows, codebooks, frames) → audio (rows, 1, frames · frame_samples) in [-1, 1].

        With a state, the frames continue the streams it holds; without, they are the whole take.
        """
        return self.decoder(self.quantizer.decode(codes, state), state)

    def use_products(self) -> None:
        """Decode streams by plain products where possible: on a CPU, in float32, they are faster."""
        for part in (self.quantizer.pre_conv, self.quantizer.upsample, self.decoder):
            for layer in part.modules():
                if isinstance(layer, CausalConv1d | CausalConvTranspose1d):
                    layer.use_products()

    def forget_decoder(self) -> None:
        """Free the weights that only `decode` uses; after this only `encode` works."""
        quantizer = self.quantizer
        for part in (quantizer.pre_conv, quantizer.post_module, quantizer.upsample, self.decoder):
            part.to("meta")
