"""A small random codec and voice encoder in Qwen3-TTS's published layout, every value by a formula of its name."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

Shapes = Iterator[tuple[str, tuple[int, ...]]]

SPEAKER_ENCODER: dict[str, Any] = {
    "mel_dim": 128, "enc_dim": 24, "enc_channels": [16, 16, 16, 16, 48], "enc_kernel_sizes": [5, 3, 3, 3, 1],
    "enc_dilations": [1, 2, 3, 4, 1], "enc_attention_channels": 12, "enc_res2net_scale": 8, "enc_se_channels": 12,
    "sample_rate": 24000,
}  # fmt: skip


def write_tiny_speech_tokenizer(folder: Path, codebook_size: int = 64, codebooks: int = 16) -> Path:
    """Write config.json and model.safetensors into ``folder``, a checkpoint's speech_tokenizer, and return it."""
    return write_codec(folder, speech_tokenizer_config(codebook_size, codebooks))


def write_codec(folder: Path, config: dict[str, Any]) -> Path:
    """The same in other sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    save_file(speech_tokenizer_tensors(config), folder / "model.safetensors")
    return folder


def speech_tokenizer_tensors(config: dict[str, Any]) -> dict[str, Tensor]:
    """Every tensor of such a file."""
    return {name: value_of(name, shape) for name, shape in _codec(config)}


def speech_tokenizer_config(codebook_size: int = 64, codebooks: int = 16) -> dict[str, Any]:
    """Rates, and what looks like sizes but is not, as published: semantic_codebook_size, and Mimi's 32 codebooks."""
    encoder = {
        "model_type": "mimi", "num_filters": 4, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "head_dim": 8, "intermediate_size": 48, "sliding_window": 9, "upsample_groups": 32,
        "num_quantizers": 32, "codebook_size": codebook_size, "codebook_dim": 16,
        "vector_quantization_hidden_dimension": 16, "upsampling_ratios": [8, 6, 5, 4], "norm_eps": 1e-5,
        "rope_theta": 10000.0,
    }  # fmt: skip
    decoder = {
        "codebook_size": codebook_size, "semantic_codebook_size": 4096, "codebook_dim": 32, "latent_dim": 48,
        "hidden_size": 32, "head_dim": 8, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 2,
        "intermediate_size": 40, "sliding_window": 5, "num_quantizers": codebooks, "decoder_dim": 32,
        "upsample_rates": [8, 5, 4, 3], "upsampling_ratios": [2, 2], "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    }  # fmt: skip
    return {
        "model_type": "qwen3_tts_tokenizer_12hz", "encoder_valid_num_quantizers": codebooks,
        "input_sample_rate": 24000, "output_sample_rate": 24000, "decode_upsample_rate": 1920,
        "encode_downsample_rate": 1920, "encoder_config": encoder, "decoder_config": decoder,
    }  # fmt: skip


def speaker_encoder_tensors(config: dict[str, Any] = SPEAKER_ENCODER) -> dict[str, Tensor]:
    """The tensors that Base checkpoints have in their model.safetensors for the voice encoder."""
    return {name: value_of(name, shape) for name, shape in _speaker_encoder(config)}


def _codec(config: dict[str, Any]) -> Shapes:
    encoder, decoder = config["encoder_config"], config["decoder_config"]
    yield from _mimi(encoder)
    yield from _decoder_start(decoder)
    width = decoder["decoder_dim"]
    yield from _conv("decoder.decoder.0.conv", width, decoder["latent_dim"], 7)
    for number, rate in enumerate(decoder["upsample_rates"], 1):
        block, half = f"decoder.decoder.{number}.block", width // 2
        yield from _snake(f"{block}.0", width)
        yield f"{block}.1.conv.weight", (width, half, 2 * rate)
        yield f"{block}.1.conv.bias", (half,)
        for unit in (2, 3, 4):
            for part, kernel in ((1, 7), (2, 1)):
                yield from _snake(f"{block}.{unit}.act{part}", half)
                yield from _conv(f"{block}.{unit}.conv{part}.conv", half, half, kernel)
        width = half
    yield from _snake("decoder.decoder.5", width)
    yield from _conv("decoder.decoder.6.conv", 1, width, 7)


def _mimi(sizes: dict[str, Any]) -> Shapes:
    width, dim, inner = sizes["num_filters"], sizes["hidden_size"], sizes["codebook_dim"]
    yield from _conv("encoder.encoder.layers.0.conv", width, 1, 7)
    for number, rate in enumerate(reversed(sizes["upsampling_ratios"])):
        layer = 1 + 3 * number
        yield from _conv(f"encoder.encoder.layers.{layer}.block.1.conv", width // 2, width, 3)
        yield from _conv(f"encoder.encoder.layers.{layer}.block.3.conv", width, width // 2, 1)
        yield from _conv(f"encoder.encoder.layers.{layer + 2}.conv", 2 * width, width, 2 * rate)
        width *= 2
    yield from _conv("encoder.encoder.layers.14.conv", dim, width, 3)
    for name, shape in _layers("encoder.encoder_transformer", sizes):
        yield name, shape
        if name.endswith("layernorm.weight"):
            yield name.replace(".weight", ".bias"), shape
    yield "encoder.downsample.conv.weight", (dim, dim, 4)
    for kind, books in (("semantic", 1), ("acoustic", sizes["num_quantizers"] - 1)):
        quantizer = f"encoder.quantizer.{kind}_residual_vector_quantizer"
        yield f"{quantizer}.input_proj.weight", (inner, dim, 1)
        yield f"{quantizer}.output_proj.weight", (dim, inner, 1)
        for number in range(books):
            book = f"{quantizer}.layers.{number}.codebook"
            yield f"{book}.initialized", (1,)
            yield f"{book}.cluster_usage", (sizes["codebook_size"],)
            yield f"{book}.embed_sum", (sizes["codebook_size"], inner)


def _decoder_start(sizes: dict[str, Any]) -> Shapes:
    dim, latent, hidden = sizes["codebook_dim"], sizes["latent_dim"], sizes["hidden_size"]
    for kind, books in (("first", 1), ("rest", sizes["num_quantizers"] - 1)):
        quantizer = f"decoder.quantizer.rvq_{kind}"
        yield f"{quantizer}.input_proj.weight", (dim // 2, dim, 1)
        yield f"{quantizer}.output_proj.weight", (dim, dim // 2, 1)
        for number in range(books):
            book = f"{quantizer}.vq.layers.{number}._codebook"
            yield f"{book}.cluster_usage", (sizes["codebook_size"],)
            yield f"{book}.embedding_sum", (sizes["codebook_size"], dim // 2)
    yield from _conv("decoder.pre_conv.conv", latent, dim, 3)
    yield from _conv("decoder.pre_transformer.input_proj", hidden, latent)
    yield from _layers("decoder.pre_transformer", sizes)
    yield "decoder.pre_transformer.norm.weight", (hidden,)
    yield from _conv("decoder.pre_transformer.output_proj", latent, hidden)
    for number, factor in enumerate(sizes["upsampling_ratios"]):
        stage = f"decoder.upsample.{number}"
        yield from _conv(f"{stage}.0.conv", latent, latent, factor)
        yield from _conv(f"{stage}.1.dwconv.conv", latent, 1, 7)
        yield from _conv(f"{stage}.1.norm", latent)
        yield from _conv(f"{stage}.1.pwconv1", 4 * latent, latent)
        yield from _conv(f"{stage}.1.pwconv2", latent, 4 * latent)
        yield f"{stage}.1.gamma", (latent,)


def _layers(stem: str, sizes: dict[str, Any]) -> Shapes:
    dim, wide, heads = sizes["hidden_size"], sizes["intermediate_size"], sizes["num_attention_heads"]
    for number in range(sizes["num_hidden_layers"]):
        layer = f"{stem}.layers.{number}"
        for part in "qkv":
            yield f"{layer}.self_attn.{part}_proj.weight", (heads * sizes["head_dim"], dim)
        yield f"{layer}.self_attn.o_proj.weight", (dim, heads * sizes["head_dim"])
        for part in ("fc1",) if stem.startswith("encoder") else ("gate_proj", "up_proj"):
            yield f"{layer}.mlp.{part}.weight", (wide, dim)
        yield f"{layer}.mlp.{'fc2' if stem.startswith('encoder') else 'down_proj'}.weight", (dim, wide)
        for part in ("input_layernorm.weight", "post_attention_layernorm.weight"):
            yield f"{layer}.{part}", (dim,)
        for part in ("self_attn_layer_scale.scale", "mlp_layer_scale.scale"):
            yield f"{layer}.{part}", (dim,)


def _speaker_encoder(sizes: dict[str, Any]) -> Shapes:
    channels, kernels = sizes["enc_channels"], sizes["enc_kernel_sizes"]
    groups, squeezed, attention = (
        sizes[f"enc_{key}"] for key in ("res2net_scale", "se_channels", "attention_channels")
    )
    yield from _conv("speaker_encoder.blocks.0.conv", channels[0], sizes["mel_dim"], kernels[0])
    for number in (1, 2, 3):
        block, width, part = f"speaker_encoder.blocks.{number}", channels[number], channels[number] // groups
        yield from _conv(f"{block}.tdnn1.conv", width, channels[number - 1], 1)
        for group in range(groups - 1):
            yield from _conv(f"{block}.res2net_block.blocks.{group}.conv", part, part, kernels[number])
        yield from _conv(f"{block}.tdnn2.conv", width, width, 1)
        yield from _conv(f"{block}.se_block.conv1", squeezed, width, 1)
        yield from _conv(f"{block}.se_block.conv2", width, squeezed, 1)
    wide = channels[-1]
    yield from _conv("speaker_encoder.mfa.conv", wide, sum(channels[1:-1]), kernels[-1])
    yield from _conv("speaker_encoder.asp.tdnn.conv", attention, 3 * wide, 1)
    yield from _conv("speaker_encoder.asp.conv", wide, attention, 1)
    yield from _conv("speaker_encoder.fc", sizes["enc_dim"], 2 * wide, 1)


def _conv(name: str, *shape: int) -> Shapes:
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]


def _snake(name: str, channels: int) -> Shapes:
    yield f"{name}.alpha", (channels,)
    yield f"{name}.beta", (channels,)


def value_of(name: str, shape: tuple[int, ...]) -> Tensor:
    """float32, by role, so that signals neither vanish nor grow; the same on all machines."""
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    noise, role = draw.standard_normal(shape), name.rpartition(".")[2]
    if role == "initialized":
        value = np.ones(shape)
    elif role == "cluster_usage":
        value = 0.5 + draw.random(shape)
    elif role in ("embed_sum", "embedding_sum"):
        value = noise
    elif role in ("alpha", "beta"):
        value = 0.3 * noise
    elif role in ("scale", "gamma"):
        value = 0.3 + 0.05 * noise
    elif role == "bias":
        value = 0.1 * noise
    elif len(shape) == 1:
        value = 1 + 0.1 * noise
    else:
        value = noise * 1.2 / np.prod(shape[1:]) ** 0.5
    if name.startswith("decoder.decoder.") and len(shape) == 3:
        value *= 0.1 if shape[0] == 1 else 0.6  # keeps the sound within ±1
    return torch.from_numpy(value).float()
