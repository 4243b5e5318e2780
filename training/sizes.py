"""The sizes of the small model: chosen to fit 48 MiB and to run well under real time on two CPU cores."""

from __future__ import annotations

from engine.codec.codec_config import CodecConfig, TransformerConfig
from engine.config import ModelConfig, TransformerSizes

CODEBOOK_SIZE = 1024
WINDOW = 32
"""Frames that the codec's transformers see; training segments are longer, so every position is trained."""

_TRANSFORMER = {"input_dim": 256, "dim": 256, "n_head": 4, "head_dim": 64, "intermediate_size": 512, "window": WINDOW}

CODEC = CodecConfig(
    encoder_dim=16,
    encoder_rates=(2, 4, 8, 8),
    encoder_transformer_layers=(0, 0, 0, 0),
    decoder_dim=256,
    decoder_rates=(8, 8, 4, 2),
    latent_dim=256,
    semantic_codebook_size=CODEBOOK_SIZE,
    residual_codebooks=7,
    residual_codebook_size=CODEBOOK_SIZE,
    downsample_dims=(256, 256),
    pre_module=TransformerConfig(**_TRANSFORMER, n_layer=2),
    post_module=TransformerConfig(**_TRANSFORMER, n_layer=3),
)


def _transformer(vocab_size: int, n_layer: int, intermediate_size: int, qk_norm: bool) -> TransformerSizes:
    return TransformerSizes(
        vocab_size, n_layer, dim=384, n_head=6, n_kv_head=2, head_dim=64, intermediate_size=intermediate_size,
        qk_norm=qk_norm, rope_base=10000.0, norm_eps=1e-6,
    )  # fmt: skip


# Byte-level vocabulary: 256 bytes, then the control tokens, then the semantic tokens (see training.speech.vocabulary).
SEMANTIC_START = 278

MODEL = ModelConfig(
    slow=_transformer(SEMANTIC_START + CODEBOOK_SIZE, n_layer=7, intermediate_size=768, qk_norm=True),
    fast=_transformer(CODEBOOK_SIZE, n_layer=2, intermediate_size=512, qk_norm=False),
    num_codebooks=CODEC.num_codebooks,
    codebook_size=CODEBOOK_SIZE,
    max_context=4096,
    tie_word_embeddings=True,
    eos_token=259,
    semantic_start=SEMANTIC_START,
    semantic_end=SEMANTIC_START + CODEBOOK_SIZE - 1,
)
