"""The codec's sizes: S2 Pro's by default, or read from a codec.yaml beside the checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml

from engine.config import positive_number, whole_number
from engine.engine_errors import CheckpointError
from engine.files import read_bounded

Precision = Literal["float32", "tf32", "bfloat16"]
"""Precision of the decoder's products; clips are always encoded in float32. tf32: both factors have its eleven bits, as
float16."""


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """A causal transformer whose queries see `window` positions, including their own."""

    input_dim: int
    dim: int
    n_layer: int
    n_head: int
    head_dim: int
    intermediate_size: int
    window: int
    rope_base: float = 10000.0
    norm_eps: float = 1e-5
    exact_rope: ClassVar[bool] = False
    """Whether rotations keep float32, see `rope_angles`."""
    is_gated: ClassVar[bool] = True
    """Llama's blocks; else GPT's: LayerNorm, GELU without a gate, and no last norm."""


_S2_TRANSFORMER = TransformerConfig(1024, 1024, n_layer=8, n_head=16, head_dim=64, intermediate_size=3072, window=128)

PIECE_SAMPLES = 2**17
"""Samples of all clips that the fused encoder processes at once: three seconds, 34 MB per activation."""

_FILE_BYTES = 2**16
_MAX_STAGES = 8
"""Stages of the encoder, the decoder or the downsampling."""
_LIMITS = {
    "n_layer": (1, 256),
    "encoder_transformer_layers": (0, 256),
    "n_codebooks": (0, 63),
    "sample_rate": (1000, 400_000),
    "encoder_dim": (1, 4096),
    # In Qwen's files:
    "output_sample_rate": (1000, 400_000),
    "num_quantizers": (2, 64),
    "num_hidden_layers": (1, 256),
    "num_filters": (2, 4096),
    "enc_res2net_scale": (2, 64),
}
"""Smallest and largest allowed values in a codec's config; of all others: 1 and 65,536."""

ENCODER_WINDOW = 512
"""Positions that the encoder's own transformer sees; upstream has it in code, not in its config."""


@dataclass(frozen=True, slots=True)
class CodecConfig:
    """Sizes of upstream's modded DAC; the defaults are those of S2 Pro's codec.pth."""

    sample_rate: int = 44100
    encoder_dim: int = 64
    encoder_rates: tuple[int, ...] = (2, 4, 8, 8)
    encoder_transformer_layers: tuple[int, ...] = (0, 0, 0, 4)
    decoder_dim: int = 1536
    decoder_rates: tuple[int, ...] = (8, 8, 4, 2)
    latent_dim: int = 1024
    general_head_dim: int = 64
    general_rope_base: float = 10000.0
    general_norm_eps: float = 1e-5
    semantic_codebook_size: int = 4096
    residual_codebooks: int = 9
    residual_codebook_size: int = 1024
    codebook_dim: int = 8
    downsample_factor: tuple[int, ...] = (2, 2)
    downsample_dims: tuple[int, ...] = field(default=(1024, 1024))
    pre_module: TransformerConfig = _S2_TRANSFORMER
    post_module: TransformerConfig = _S2_TRANSFORMER
    clamps: ClassVar[bool] = False
    """Whether the decoder's Snakes have a β of their own, and its sound is clamped to ±1 instead of by tanh."""

    @property
    def num_codebooks(self) -> int:
        return 1 + self.residual_codebooks

    @property
    def frame_samples(self) -> int:
        return math.prod(self.encoder_rates) * math.prod(self.downsample_factor)

    @property
    def upsample_factor(self) -> tuple[int, ...]:
        """Upsampling between codes and decoder, in the order of `downsample_factor`."""
        return self.downsample_factor

    def encoder_transformer(self, dim: int, n_layer: int) -> TransformerConfig:
        """The transformer after an encoder block of `dim` channels."""
        return TransformerConfig(
            dim,
            dim,
            n_layer=n_layer,
            n_head=dim // 64,
            head_dim=self.general_head_dim,
            intermediate_size=3 * dim,
            window=ENCODER_WINDOW,
            rope_base=self.general_rope_base,
            norm_eps=self.general_norm_eps,
        )

    @classmethod
    def of(cls, folder: Path) -> CodecConfig:
        """The sizes of the codec in a checkpoint folder: from its codec.yaml, else S2 Pro's."""
        path = folder / "codec.yaml"
        return cls.read(path) if path.is_file() else cls()

    @classmethod
    def read(cls, path: Path) -> CodecConfig:
        """Read a codec.yaml in upstream's layout (`modded_dac_vq.yaml`). Raises CheckpointError naming the key."""
        try:
            tree = yaml.safe_load(read_bounded(path, _FILE_BYTES).decode())
            config = cls._from_tree(tree)
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            raise CheckpointError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
        except KeyError as error:
            raise CheckpointError(f"{path} lacks the key {error}") from error
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise CheckpointError(f"{path} has a value of the wrong kind: {error}") from error
        if math.prod(config.encoder_rates) != math.prod(config.decoder_rates):
            raise CheckpointError(
                f"{path}: encoder_rates {config.encoder_rates} and decoder_rates {config.decoder_rates} "
                "multiply to different hop lengths"
            )
        if len(config.encoder_transformer_layers) != len(config.encoder_rates):
            raise CheckpointError(f"{path}: encoder_transformer_layers must have as many values as encoder_rates")
        if len(config.downsample_dims) < len(config.downsample_factor):
            raise CheckpointError(f"{path}: downsample_dims must have as many values as downsample_factor")
        return config

    @classmethod
    def _from_tree(cls, tree: dict[str, Any]) -> CodecConfig:
        quantizer, general = tree["quantizer"], tree["transformer_general_config"]
        input_dim = whole(quantizer, "input_dim")
        factors = wholes(quantizer, "downsample_factor")
        sizes: dict[str, Any] = {key: whole(tree, key) for key in ("sample_rate", "encoder_dim", "decoder_dim")}
        for key in ("encoder_rates", "encoder_transformer_layers", "decoder_rates"):
            sizes[key] = wholes(tree, key)
        sizes["latent_dim"] = sizes["encoder_dim"] * 2 ** len(sizes["encoder_rates"])
        if tree.get("latent_dim"):
            sizes["latent_dim"] = whole(tree, "latent_dim")
        return cls(
            **sizes,
            general_head_dim=whole(general, "head_dim"),
            general_rope_base=positive_number(general, "rope_base"),
            general_norm_eps=positive_number(general, "norm_eps"),
            semantic_codebook_size=whole(quantizer, "semantic_codebook_size"),
            residual_codebooks=whole(quantizer, "n_codebooks"),
            residual_codebook_size=whole(quantizer, "codebook_size"),
            codebook_dim=whole(quantizer, "codebook_dim"),
            downsample_factor=factors,
            downsample_dims=(
                wholes(quantizer, "downsample_dims")
                if quantizer.get("downsample_dims")
                else (input_dim,) * len(factors)
            ),
            pre_module=_transformer(quantizer["pre_module"]),
            post_module=_transformer(quantizer["post_module"]),
        )


def _transformer(tree: dict[str, Any]) -> TransformerConfig:
    sizes = tree["config"]
    return TransformerConfig(
        input_dim=whole(tree, "input_dim"),
        **{key: whole(sizes, key) for key in ("dim", "n_layer", "n_head", "head_dim", "intermediate_size")},
        window=whole(tree, "window_size"),
        rope_base=positive_number(sizes, "rope_base"),
        norm_eps=positive_number(sizes, "norm_eps"),
    )


def whole(tree: Mapping[str, Any], key: str) -> int:
    return whole_number(tree, key, *_LIMITS.get(key, (1, 2**16)))


def wholes(tree: Mapping[str, Any], key: str) -> tuple[int, ...]:
    values = tuple(tree[key])
    if len(values) > _MAX_STAGES:
        raise ValueError(f"{key} has {len(values)} values, expected at most {_MAX_STAGES}")
    return tuple(whole({key: value}, key) for value in values)
