"""Qwen3-TTS's codec, from the folder speech_tokenizer, and its voice encoder, by their published names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.checkpoint.lazy_tensors import LazyTensor
from engine.checkpoint.weight_files import stored_weights, weight_file
from engine.codec.load import check_shapes
from engine.codec.qwen_codec import QwenCodec, QwenCodecConfig
from engine.codec.transformer import WindowTransformer
from engine.codec.voice_vector import VoiceEncoder, VoiceEncoderConfig
from engine.engine_errors import CheckpointError
from engine.files import read_json
from engine.model.dual_ar import only_shapes

VOICE_ENCODER = "speaker_encoder."
"""The start of the voice encoder's names among the model's tensors."""

_STEMS = {
    "encoder.block.": "encoder.encoder.layers.",
    "quantizer.pre_module.": "encoder.encoder_transformer.",
    "quantizer.downsample.": "encoder.downsample.conv.",
    "quantizer.post_module.": "decoder.pre_transformer.",
    "quantizer.pre_conv.": "decoder.pre_conv.",
    "quantizer.upsample.": "decoder.upsample.",
    "decoder.model.": "decoder.decoder.",
    "quantizer.semantic_quantizer.": "encoder.quantizer.semantic_residual_vector_quantizer.",
    "quantizer.quantizer.": "encoder.quantizer.acoustic_residual_vector_quantizer.",
}
_PARTS = {
    ".attention.wo.": ".self_attn.o_proj.", ".attention.": ".self_attn.", ".attention_norm.": ".input_layernorm.",
    ".ffn_norm.": ".post_attention_layernorm.", ".attention_layer_scale.gamma": ".self_attn_layer_scale.scale",
    ".ffn_layer_scale.gamma": ".mlp_layer_scale.scale", ".feed_forward.": ".mlp.",
    ".mlp.0.": ".mlp.fc1.", ".mlp.2.": ".mlp.fc2.", ".mlp.w1.": ".mlp.gate_proj.", ".mlp.w2.": ".mlp.down_proj.",
    ".mlp.w3.": ".mlp.up_proj.", ".in_proj.": ".input_proj.", ".quantizers.": ".layers.",
}  # fmt: skip
_UNIT = "act1", "conv1", "act2", "conv2"
_UNUSED = frozenset(
    [f"encoder.quantizer.{kind}_residual_vector_quantizer.output_proj.weight" for kind in ("semantic", "acoustic")]
    + [f"decoder.quantizer.rvq_{kind}.input_proj.weight" for kind in ("first", "rest")]
)
_USAGE = 1e-5
"""The least number of vectors by which an entry's sum is divided."""


@dataclass(frozen=True, slots=True)
class _Recipe:
    """The published tensors of one of ours: their shapes by name, and what it is, given them in this order."""

    shapes: dict[str, tuple[int, ...]]
    make: Callable[..., Tensor]


def read_codec_config(folder: Path) -> QwenCodecConfig:
    """The sizes in a folder speech_tokenizer. Raises CheckpointError."""
    path = folder / "config.json"
    tree = read_json(path)
    try:
        return QwenCodecConfig.of_tree(tree)
    except KeyError as error:
        raise CheckpointError(f"{path} lacks the key {error}") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def load_qwen_codec(folder: Path, device: torch.device | str) -> QwenCodec:
    """The codec of a folder speech_tokenizer in float32, ready for inference. Raises CheckpointError."""
    with ExitStack() as stack:
        codec, recipes, tensors = _checked(folder, stack)
        read = {name: _float(tensors[name], folder) for recipe in recipes.values() for name in recipe.shapes}
        state = {name: recipe.make(*map(read.get, recipe.shapes)) for name, recipe in recipes.items()}
    codec.load_state_dict(state, assign=True)
    return codec.to(device).eval().requires_grad_(False)


def check_qwen_codec(folder: Path) -> None:
    """Like `load_qwen_codec`, without reading values."""
    with ExitStack() as stack:
        _checked(folder, stack)


def load_voice_encoder(path: Path, tree: Mapping[str, Any], device: torch.device | str) -> VoiceEncoder | None:
    """The voice encoder among a checkpoint's weights, in float32; None if it has none. Raises CheckpointError.

    ``tree``: the checkpoint's config.json.
    """
    with ExitStack() as stack:
        stored = [tensor for tensor in stored_weights(path, stack) if tensor.name.startswith(VOICE_ENCODER)]
        if not stored:
            return None
        try:
            config = VoiceEncoderConfig.of_tree(tree["speaker_encoder_config"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CheckpointError(f"{path}: config.json has no valid speaker_encoder_config: {error}") from error
        with only_shapes():
            encoder = VoiceEncoder(config)
        shapes = {VOICE_ENCODER + name: value.shape for name, value in encoder.state_dict().items()}
        check_shapes(weight_file(path), shapes, {tensor.name: tensor.shape for tensor in stored})
        state = {tensor.name.removeprefix(VOICE_ENCODER): _float(tensor, path) for tensor in stored}
    encoder.load_state_dict(state, assign=True)
    return encoder.to(device).eval().requires_grad_(False)


def _checked(folder: Path, stack: ExitStack) -> tuple[QwenCodec, dict[str, _Recipe], dict[str, LazyTensor]]:
    config = read_codec_config(folder)
    with only_shapes():
        codec = QwenCodec(config)
    recipes = _recipes(codec)
    tensors = {tensor.name: tensor for tensor in stored_weights(folder, stack)}
    shapes = {name: shape for recipe in recipes.values() for name, shape in recipe.shapes.items()}
    used = {name: tensor.shape for name, tensor in tensors.items() if name in shapes or not _is_unused(name)}
    check_shapes(weight_file(folder), shapes, used)
    return codec, recipes, tensors


def _is_unused(name: str) -> bool:
    """Mimi's books beyond the codec's, its books' projections back, which the decoder has of its own, and the like."""
    is_book = name.startswith("encoder.quantizer.") and ".layers." in name
    return is_book or name in _UNUSED


def _float(tensor: LazyTensor, path: Path) -> Tensor:
    try:
        value = tensor.read()
    except ValueError as error:
        raise CheckpointError(f"{weight_file(path)}: {error}") from error
    if not value.is_floating_point():
        raise CheckpointError(f"{weight_file(path)}: {tensor.name} is {value.dtype}, expected numbers with a fraction")
    return value.float()


def _recipes(codec: QwenCodec) -> dict[str, _Recipe]:
    """Of every tensor in the codec's state, by name."""
    transformers = {n: part for n, part in codec.named_modules() if isinstance(part, WindowTransformer)}
    recipes: dict[str, _Recipe] = {}
    for name, value in codec.state_dict().items():
        published, shape = _published_name(name), tuple(value.shape)
        if name.endswith(".wqkv.weight"):
            stem, config = published.removesuffix("wqkv.weight"), transformers[name.partition(".layers.")[0]].config
            parts = {f"{stem}{kind}_proj.weight": (shape[0] // 3, shape[1]) for kind in "qkv"}
            recipes[name] = _Recipe({**parts}, partial(_joined, config.head_dim))
        elif name.endswith((".alpha", ".beta")):
            recipes[name] = _Recipe({published: shape[1:2]}, lambda value: value.exp()[None, :, None])
        elif name.endswith(".entries"):
            stem = published.removesuffix("entries") + "codebook."
            recipes[name] = _Recipe({f"{stem}embed_sum": shape, f"{stem}cluster_usage": shape[:1]}, _entries)
        elif name.endswith(".codebook.weight"):
            kind, number = "first" if ".semantic_quantizer." in name else "rest", name.split(".")[3]
            stem, inner = f"decoder.quantizer.rvq_{kind}.", shape[1] // 2
            book = f"{stem}vq.layers.{number}._codebook."
            shapes = {f"{book}embedding_sum": (shape[0], inner), f"{book}cluster_usage": shape[:1]}
            recipes[name] = _Recipe({**shapes, f"{stem}output_proj.weight": (shape[1], inner, 1)}, _decoded)
        else:
            recipes[name] = _Recipe({published: shape}, lambda value: value)
    return recipes


def _published_name(name: str) -> str:
    """Our name of a tensor → upstream's; of one that upstream stores in parts, the name without its last word."""
    stem = next(stem for stem in _STEMS if name.startswith(stem))
    published = _STEMS[stem] + name.removeprefix(stem)
    for ours, theirs in _PARTS.items():
        published = published.replace(ours, theirs)
    if stem == "decoder.model." and published.count(".block.") == 2:
        unit, _, layer = published.rpartition(".block.")
        published = f"{unit}.{_UNIT[int(layer[0])]}{layer[1:]}"
    return published


def _joined(head_dim: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries, keys and values as one product; of the first two, the channels that rotate together are neighbours."""
    q, k = (part.unflatten(0, (-1, 2, head_dim // 2)).transpose(1, 2).flatten(0, 2) for part in (q, k))
    return torch.cat([q, k, v])


def _entries(sums: Tensor, usage: Tensor) -> Tensor:
    return sums / usage.clamp(min=_USAGE)[:, None]


def _decoded(sums: Tensor, usage: Tensor, projection: Tensor) -> Tensor:
    return _entries(sums, usage) @ projection[:, :, 0].t()
