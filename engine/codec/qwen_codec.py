"""The codec of Qwen3-TTS, 12.5 frames a second: Mimi's encoder, and a decoder like S2's with SnakeBeta and a clamp."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.codec_config import CodecConfig, TransformerConfig, whole, wholes
from engine.codec.codec_layers import CausalConv1d, ResidualUnit, Stack, Stateful, StreamState
from engine.codec.model import Codec
from engine.codec.quantizer import Quantizer
from engine.codec.transformer import WindowTransformer
from engine.config import positive_number

TOKENIZER_TYPE = "qwen3_tts_tokenizer_12hz"

_ENCODER = {
    "num_filters": 64, "upsampling_ratios": (8, 6, 5, 4), "hidden_size": 512, "num_hidden_layers": 8,
    "num_attention_heads": 8, "intermediate_size": 2048, "sliding_window": 250, "norm_eps": 1e-5, "rope_theta": 1e4,
    "codebook_size": 2048, "codebook_dim": 256,
}  # fmt: skip
"""Mimi's own values, which a config.json need not repeat."""


class ExactConfig(TransformerConfig):
    """The decoder's transformer."""

    exact_rope = True


class MimiConfig(ExactConfig):
    """Mimi's."""

    is_gated = False


_MIMI = MimiConfig(512, 512, 8, 8, 64, 2048, window=250)
_EXACT = ExactConfig(1024, 512, 8, 16, 64, 1024, window=72)


@dataclass(frozen=True, slots=True)
class QwenCodecConfig(CodecConfig):
    """Sizes; the defaults are those of all published models."""

    sample_rate: int = 24000
    encoder_rates: tuple[int, ...] = (4, 5, 6, 8)
    encoder_transformer_layers: tuple[int, ...] = (0, 0, 0, 0)
    decoder_rates: tuple[int, ...] = (8, 5, 4, 3)
    semantic_codebook_size: int = 2048
    residual_codebooks: int = 15
    residual_codebook_size: int = 2048
    codebook_dim: int = 256
    """Channels in which the encoder compares entries."""
    decoded_dim: int = 512
    """Channels of an entry as decoded."""
    downsample_factor: tuple[int, ...] = (2,)
    downsample_dims: tuple[int, ...] = (512,)
    pre_module: TransformerConfig = _MIMI
    post_module: TransformerConfig = _EXACT
    upsampling_ratios: tuple[int, ...] = (2, 2)
    clamps: ClassVar[bool] = True

    @property
    def upsample_factor(self) -> tuple[int, ...]:
        return self.upsampling_ratios[::-1]

    @classmethod
    def of_tree(cls, tree: Mapping[str, Any]) -> QwenCodecConfig:
        """The sizes in a speech_tokenizer/config.json. Raises KeyError, TypeError, ValueError, OverflowError.

        Two of its values are not sizes of any tensor: semantic_codebook_size, and the encoder's num_quantizers.
        """
        if (kind := tree.get("model_type")) != TOKENIZER_TYPE:
            raise ValueError(f"model_type is {kind!r}; only the 12.5 Hz tokenizer, {TOKENIZER_TYPE}, is supported")
        encoder, decoder = tree["encoder_config"], tree["decoder_config"]
        if not isinstance(encoder, Mapping) or not isinstance(decoder, Mapping):
            raise ValueError("encoder_config and decoder_config must be objects")
        encoder = {**_ENCODER, **encoder}
        hidden, heads = whole(encoder, "hidden_size"), whole(encoder, "num_attention_heads")
        encoder = {"head_dim": hidden // heads, **{key: value for key, value in encoder.items() if value is not None}}
        books, rate = whole(decoder, "num_quantizers"), whole(tree, "output_sample_rate")
        if whole(tree, "input_sample_rate") != rate or whole(tree, "encoder_valid_num_quantizers") != books:
            raise ValueError("encoder and decoder have different sample rates or numbers of codebooks")
        config = cls(
            sample_rate=rate,
            encoder_dim=whole(encoder, "num_filters"),
            encoder_rates=wholes(encoder, "upsampling_ratios")[::-1],
            decoder_dim=whole(decoder, "decoder_dim"),
            decoder_rates=wholes(decoder, "upsample_rates"),
            latent_dim=whole(decoder, "latent_dim"),
            semantic_codebook_size=whole(decoder, "codebook_size"),
            residual_codebooks=books - 1,
            residual_codebook_size=whole(decoder, "codebook_size"),
            codebook_dim=whole(encoder, "codebook_dim"),
            decoded_dim=whole(decoder, "codebook_dim"),
            downsample_dims=(hidden,),
            pre_module=MimiConfig(hidden, **_transformer(encoder, "norm_eps")),
            post_module=ExactConfig(whole(decoder, "latent_dim"), **_transformer(decoder, "rms_norm_eps")),
            upsampling_ratios=wholes(decoder, "upsampling_ratios"),
        )
        samples = math.prod(config.decoder_rates) * math.prod(config.upsampling_ratios)
        if samples != config.frame_samples or encoder["codebook_size"] != decoder["codebook_size"]:
            raise ValueError(
                f"a frame has {config.frame_samples} samples and one of {encoder['codebook_size']} codes where it is "
                f"encoded, but {samples} and one of {decoder['codebook_size']} where it is decoded"
            )
        return config


_SIZES = {
    "dim": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads", "head_dim": "head_dim",
    "intermediate_size": "intermediate_size", "window": "sliding_window",
}  # fmt: skip


def _transformer(tree: Mapping[str, Any], eps: str) -> dict[str, Any]:
    sizes = {ours: whole(tree, key) for ours, key in _SIZES.items()}
    if sizes["head_dim"] % 2:
        raise ValueError(f"head_dim is {sizes['head_dim']}, expected an even number")
    return {**sizes, "rope_base": positive_number(tree, "rope_theta"), "norm_eps": positive_number(tree, eps)}


class MimiEncoder(Stateful):
    """(rows, 1, samples) → (rows, channels, steps) at twice the frame rate."""

    def __init__(self, config: QwenCodecConfig) -> None:
        super().__init__()
        dim = config.encoder_dim
        layers: list[nn.Module] = [CausalConv1d(1, dim, 7)]
        for stride in config.encoder_rates:
            unit = ResidualUnit(nn.ELU(), CausalConv1d(dim, dim // 2, 3), nn.ELU(), CausalConv1d(dim // 2, dim, 1))
            layers += [unit, nn.ELU(), CausalConv1d(dim, 2 * dim, 2 * stride, stride=stride)]
            dim *= 2
        self.block = Stack(*layers, nn.ELU(), CausalConv1d(dim, config.pre_module.input_dim, 3))

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        return self.block(x, state)


class Codebook(nn.Module):
    """A codebook's entries twice: as compared by the encoder, and as decoded, by all later projections."""

    def __init__(self, size: int, compared_dim: int, decoded_dim: int) -> None:
        super().__init__()
        self.entries = nn.Parameter(torch.randn(size, compared_dim))
        self.codebook = nn.Embedding(size, decoded_dim)
        self.out_proj = nn.Identity()


class EuclideanQuantizer(nn.Module):
    """Consecutive codebooks, each taking the entry nearest to the remainder of the previous ones."""

    def __init__(self, config: QwenCodecConfig, codebooks: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.in_proj = nn.Conv1d(config.pre_module.input_dim, config.codebook_dim, 1, bias=False)
        self.quantizers = nn.ModuleList(
            Codebook(size, config.codebook_dim, config.decoded_dim) for _ in range(codebooks)
        )

    def codes(self, z: Tensor) -> Tensor:
        """z (rows, dim, frames) → codes (rows, codebooks, frames)."""
        rest, codes = self.in_proj(z).transpose(1, 2), []
        for book in self._books():
            codes.append(torch.cdist(rest, book.entries.expand(len(rest), -1, -1)).argmin(-1))
            rest = rest - book.entries[codes[-1]]
        return torch.stack(codes, 1)

    def decode(self, codes: Tensor) -> Tensor:
        """Codes (rows, codebooks, frames) → (rows, dim, frames). Codes beyond the table mean its last entry."""
        codes = codes.clamp(max=self.size - 1)
        entries = [book.codebook(code) for book, code in zip(self._books(), codes.unbind(1), strict=True)]
        return torch.stack(entries).sum(0).transpose(1, 2)

    def _books(self) -> list[Any]:
        return list(self.quantizers)


class QwenQuantizer(Quantizer):
    """Mimi's transformer, downsampling and codebooks, and a convolution between codes and the decoder's transformer."""

    def __init__(self, config: QwenCodecConfig) -> None:
        width = config.pre_module.dim
        super().__init__(config, (config.latent_dim,) * (1 + len(config.upsample_factor)))
        self.semantic_quantizer = EuclideanQuantizer(config, 1, config.semantic_codebook_size)
        self.quantizer = EuclideanQuantizer(config, config.residual_codebooks, config.residual_codebook_size)
        self.pre_module = WindowTransformer(config.pre_module)
        self.downsample = nn.Conv1d(width, width, 4, stride=2, bias=False)
        self.pre_conv = CausalConv1d(config.decoded_dim, config.latent_dim, 3)

    def encode(self, z: Tensor) -> Tensor:
        return self.codes(self.downsample(F.pad(self.pre_module(z), (2, 0), "replicate")))

    def codes(self, z: Tensor) -> Tensor:
        """The output of downsample, (rows, dim, frames) → codes (rows, codebooks, frames); both read the same."""
        return torch.cat([self.semantic_quantizer.codes(z), self.quantizer.codes(z)], 1)


class QwenCodec(Codec):
    """Qwen's codec."""

    parts = MimiEncoder, QwenQuantizer

    def forget_decoder(self) -> None:
        super().forget_decoder()
        for part in self.quantizer.modules():
            if isinstance(part, Codebook):
                part.codebook.to("meta")


def codec_of(config: CodecConfig) -> Codec:
    """The codec of these sizes."""
    return QwenCodec(config) if isinstance(config, QwenCodecConfig) else Codec(config)
