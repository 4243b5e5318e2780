"""A codec with random weights, smaller than the tiny checkpoint's: Triton's interpreter is slow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from engine.codec import Codec, CodecConfig, QwenCodecConfig, TransformerConfig, codec_of
from engine.codec.qwen_codec import ExactConfig, MimiConfig


def transformer(**sizes: int) -> TransformerConfig:
    plain = {"input_dim": 24, "dim": 24, "n_layer": 2, "n_head": 3, "head_dim": 8, "intermediate_size": 20, "window": 5}
    return TransformerConfig(**plain | sizes)


def random_codec(post: TransformerConfig, **sizes: Any) -> Codec:
    """No size is a power of two, and neighbouring gains and periods differ; `sizes` override its config."""
    return _drawn(
        replace(
            CodecConfig(
                encoder_dim=4,
                encoder_rates=(2, 3),
                encoder_transformer_layers=(0, 0),
                decoder_dim=20,
                decoder_rates=(3, 2),
                latent_dim=24,
                semantic_codebook_size=16,
                residual_codebooks=2,
                residual_codebook_size=8,
                codebook_dim=4,
                downsample_factor=(2,),
                downsample_dims=(24,),
                pre_module=transformer(),
                post_module=post,
            ),
            **sizes,
        )
    )


def random_qwen_codec(dim: int, **sizes: Any) -> Codec:
    """The same for Qwen's; ``dim``: of the decoder's transformer."""
    kept = {"n_head": 3, "head_dim": 8, "intermediate_size": 20, "window": 5, "n_layer": 2}
    config = QwenCodecConfig(
        encoder_dim=4, encoder_rates=(2, 3), encoder_transformer_layers=(0, 0), decoder_dim=20, decoder_rates=(3, 2),
        latent_dim=24, semantic_codebook_size=16, residual_codebooks=2, residual_codebook_size=8, codebook_dim=4,
        decoded_dim=28, downsample_dims=(24,), upsampling_ratios=(2,), pre_module=MimiConfig(24, 24, **kept),
        post_module=ExactConfig(24, dim, **kept),
    )  # fmt: skip
    return _drawn(replace(config, **sizes))


def _drawn(config: CodecConfig) -> Codec:
    torch.manual_seed(0)
    codec = codec_of(config)
    for name, parameter in codec.named_parameters():
        if name.endswith(("alpha", "beta", "gamma", "norm.weight")):
            parameter.data.uniform_(0.3, 2.0)
    return codec.eval().requires_grad_(False)
