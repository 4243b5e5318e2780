"""S2 Pro's two GGUF layouts: s2.cpp's with keys for sizes, audio.cpp's with embedded files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.checkpoint.gguf_file import GgufFile
from engine.checkpoint.lazy_tensors import LazyTensor
from engine.engine_errors import CheckpointError
from engine.files import parse_json

_SAME_NAMES = (
    "tie_word_embeddings", "attention_qk_norm", "fast_attention_qk_norm", "codebook_size", "num_codebooks",
    "semantic_begin_id", "semantic_end_id", "scale_codebook_embeddings",
)  # fmt: skip
_SIZES = {
    "vocab_size": "{}.vocab_size",
    "n_layer": "{}.block_count",
    "n_head": "{}.attention.head_count",
    "n_local_heads": "{}.attention.head_count_kv",
    "dim": "{}.embedding_length",
    "intermediate_size": "{}.feed_forward_length",
    "rope_base": "{}.rope.freq_base",
    "norm_eps": "{}.attention.layer_norm_rms_epsilon",
    "max_seq_len": "{}.context_length",
    "n_fast_layer": "fish_speech.fast_block_count",
    "fast_dim": "fish_speech.fast_embedding_length",
    "fast_n_head": "fish_speech.fast_head_count",
    "fast_n_local_heads": "fish_speech.fast_head_count_kv",
    "fast_head_dim": "fish_speech.fast_head_dim",
    "fast_intermediate_size": "fish_speech.fast_feed_forward_length",
    **{name: f"fish_speech.{name}" for name in _SAME_NAMES},
}
"""A flat config's keys, and those of s2.cpp; {} is the architecture."""


@dataclass(frozen=True, eq=False, slots=True)
class GgufParts:
    """The parts of a checkpoint in a GGUF file."""

    tree: Mapping[str, Any]
    """Its config.json or the equivalent."""
    files: Mapping[str, bytes]
    """Embedded files, by name."""
    weights: list[LazyTensor]
    codec: list[LazyTensor]
    licence: str = ""


def unpacked(file: GgufFile) -> GgufParts:
    """Raises CheckpointError."""
    architecture = file.keys.get("general.architecture")
    layout = _LAYOUTS.get(architecture) if isinstance(architecture, str) else None
    if layout is None:
        supported = " or ".join(repr(name) for name in _LAYOUTS)
        raise CheckpointError(f"{file.path} holds a model of architecture {architecture!r}, expected {supported}")
    licence = file.keys.get("general.license")
    return replace(layout(file), licence=licence if isinstance(licence, str) else "")


def _with_keys(file: GgufFile) -> GgufParts:
    architecture = file.keys["general.architecture"]
    tree: dict[str, Any] = {"model_type": "dual_ar", "norm_fastlayer_input": True}
    for name, key in _SIZES.items():
        value = file.keys.get(key.format(architecture))
        if not isinstance(value, int | float):
            raise CheckpointError(f"{file.path} lacks the key {key.format(architecture)}")
        tree[name] = float(f"{value:.7g}") if isinstance(value, float) else value  # 1e-6 was rounded to float32
    shapes = {tensor.name: tensor.shape for tensor in file.tensors}
    norm = shapes.get("layers.0.attention.q_norm.weight", (tree["dim"] // max(1, tree["n_head"]),))
    tree["head_dim"] = norm[0]
    return GgufParts(tree, {}, *_split(file.tensors, "", "c."))


def _with_files(file: GgufFile) -> GgufParts:
    names = file.strings("audiocpp.tensor_names")
    ranks, sizes = file.array("audiocpp.tensor_ranks").tolist(), file.array("audiocpp.tensor_shapes").tolist()
    if (
        len(names) != len(file.tensors)
        or len(ranks) != len(names)
        or sum(ranks) != len(sizes)
        or min(ranks, default=0) < 0
    ):
        raise CheckpointError(f"{file.path} names {len(names)} tensors, but has {len(file.tensors)}; download it again")
    tensors, at = [], 0
    for tensor, name, rank in zip(file.tensors, names, ranks, strict=True):
        tensors.append(shaped(replace(tensor, name=name), tuple(sizes[at : at + rank])))
        at += rank
    files = _embedded(file)
    if "config.json" not in files:
        raise CheckpointError(f"{file.path} has no config.json inside")
    tree = parse_json(files["config.json"], f"config.json in {file.path}")
    return GgufParts(tree, files, *_split(tensors, "model_weights/", "codec_weights/"))


def _embedded(file: GgufFile) -> dict[str, bytes]:
    names, data = file.strings("audiocpp.embedded_files.names"), file.array("audiocpp.embedded_files.data")
    offsets = file.array("audiocpp.embedded_files.offsets").astype(np.int64)
    is_ascending = len(offsets) == len(names) + 1 and not (np.diff(offsets) < 0).any()
    if not is_ascending or not 0 <= offsets[0] <= offsets[-1] <= len(data):
        raise CheckpointError(f"{file.path} has a damaged index of embedded files; download it again")
    return {name: data[offsets[i] : offsets[i + 1]].tobytes() for i, name in enumerate(names)}


def shaped(tensor: LazyTensor, shape: tuple[int, ...]) -> LazyTensor:
    """The tensor with this shape, if they differ only in dimensions of size one, which GGUF drops at an end."""
    if shape == tensor.shape or [n for n in shape if n != 1] != [n for n in tensor.shape if n != 1]:
        return tensor
    return replace(tensor, shape=shape, read=lambda: tensor.read().view(shape))


def _split(tensors: list[LazyTensor], weights: str, codec: str) -> tuple[list[LazyTensor], list[LazyTensor]]:
    """The tensors of the model and of the codec, selected by prefix, without the prefix."""
    of_codec = [replace(t, name=t.name.removeprefix(codec)) for t in tensors if t.name.startswith(codec)]
    rest = [t for t in tensors if t.name.startswith(weights) and not t.name.startswith(codec)]
    return [replace(t, name=t.name.removeprefix(weights)) for t in rest], of_codec


_LAYOUTS: dict[str, Callable[[GgufFile], GgufParts]] = {"fish-speech": _with_keys, "audiocpp": _with_files}
"""Readers of layouts, by general.architecture."""
