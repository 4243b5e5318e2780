"""The families of checkpoints that the engine supports, as data: how to read their config.json, and their switches.

A new family is a row of `FAMILIES`. One with other names for sizes needs its own reader; one with another backbone also
needs a module with `DualAR.slow`'s methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from engine.checkpoint import qwen3_tts
from engine.checkpoint.lazy_tensors import LazyTensor
from engine.codec import CodecConfig, QwenCodecConfig
from engine.config import ModelConfig, TransformerSizes, positive_number, whole_number
from engine.model.tokenizer import IM_END

Tree = Mapping[str, Any]
"""A config.json."""
TokenIds = Callable[[], Mapping[str, int]]
"""The ids of a checkpoint's special tokens by name, read if a config lacks them."""

_LIMITS = {"n_layer": 1024, "n_fast_layer": 1024, "num_codebooks": 64, "vocab_size": 2**22, "codebook_size": 2**16}
_LIMIT = 2**20


@dataclass(frozen=True, slots=True)
class Family:
    """The differences of one family of checkpoints; everything else in the engine is the same for all."""

    name: str
    model_type: str
    read: Callable[[Tree, TokenIds], ModelConfig]
    codec: Callable[[Tree], CodecConfig] = field(default=lambda tree: CodecConfig())
    """Sizes of the codec for a checkpoint without codec.yaml."""
    tensors: Callable[[Sequence[LazyTensor], ModelConfig], list[LazyTensor]] | None = None
    """Makes the model's tensors of a file's, for families that store them in other parts; raises ValueError."""
    file_key: Callable[[str], str] | None = None
    """With ``tensors``: the model's tensor name → its name in files, for messages."""
    codec_folder: str = ""
    """The folder of a codec with a config.json and weights of its own, Qwen's."""
    matches: Callable[[Tree], bool] = field(default=lambda tree: True)
    """Distinguishes families with the same model_type."""


def family_of(tree: Tree) -> Family:
    """The family of a config.json. Raises ValueError."""
    for family in FAMILIES:
        if tree.get("model_type") == family.model_type and family.matches(tree):
            return family
    expected = ", ".join(repr(name) for name in dict.fromkeys(family.model_type for family in FAMILIES))
    raise ValueError(f"model_type is {tree.get('model_type')!r}, expected one of {expected}")


def _published(tree: Tree, token_ids: TokenIds) -> ModelConfig:
    """S2's own layout: the two models in separate objects, the fast AR's base and eps in the slow one's."""
    text, audio = tree["text_config"], tree["audio_decoder_config"]
    if not isinstance(text, Mapping) or not isinstance(audio, Mapping):
        raise ValueError("text_config and audio_decoder_config must be objects")
    return ModelConfig(
        slow=_sizes(text, text),
        fast=_sizes(audio, text),
        num_codebooks=_whole(audio, "num_codebooks"),
        codebook_size=_whole(audio, "vocab_size"),
        max_context=_whole(text, "max_seq_len"),
        tie_word_embeddings=bool(text.get("tie_word_embeddings", True)),
        eos_token=_token(tree, "eos_token_id"),
        semantic_start=_token(tree, "semantic_start_token_id"),
        semantic_end=_token(tree, "semantic_end_token_id"),
    )


def _flat(tree: Tree, token_ids: TokenIds, norm_fastlayer_input: bool = False, **switches: Any) -> ModelConfig:
    """fish-speech's layout, one object: the fast AR's sizes begin with fast_ and default to the slow one's.

    norm_fastlayer_input: the value for a file without this key. switches: of ModelConfig, for the whole family.
    """
    if tree.get("slow_backbone", "arktts") != "arktts":
        raise ValueError(f"slow_backbone is {tree['slow_backbone']!r}; only pure attention is supported")
    own = {name: tree[f"fast_{name}"] for name in _FAST if tree.get(f"fast_{name}") is not None}
    fast = {**tree, **own, "n_layer": tree["n_fast_layer"], "vocab_size": tree["codebook_size"]}
    size = _whole(tree, "codebook_size")
    start, end, eos = _flat_tokens(tree, token_ids)
    if residual := switches.get("residual_codes"):
        switches["residual_codes"] = min(residual, size)
    config = ModelConfig(
        slow=_sizes(tree, tree),
        fast=_sizes(fast, tree),
        num_codebooks=_whole(tree, "num_codebooks"),
        codebook_size=size,
        max_context=_whole(tree, "max_seq_len"),
        tie_word_embeddings=bool(tree.get("tie_word_embeddings", True)),
        eos_token=eos,
        semantic_start=start,
        semantic_end=end,
        scales_codes=bool(tree.get("scale_codebook_embeddings", False)),
        fast_reads_norm=bool(tree.get("norm_fastlayer_input", norm_fastlayer_input)),
    )
    return replace(config, **switches)


_FAST = (
    "n_head", "n_local_heads", "head_dim", "dim", "intermediate_size",
    "attention_qk_norm", "attention_qkv_bias", "attention_o_bias",
)  # fmt: skip
_TOKENS = "semantic_begin_id", "semantic_end_id", "eos_token_id"


def _flat_tokens(tree: Tree, token_ids: TokenIds) -> tuple[int, int, int]:
    """The first and last semantic token and the stop token: the tokenizer's where the config has 0 or none."""
    config = {key: _token(tree, key) for key in _TOKENS if tree.get(key)}
    ids = token_ids() if len(config) < len(_TOKENS) else {}
    start = config.get("semantic_begin_id") or ids["<|semantic:0|>"]
    size = sum(name.startswith("<|semantic:") for name in ids)
    return start, config.get("semantic_end_id") or start + size - 1, config.get("eos_token_id") or ids[IM_END]


def _token(tree: Tree, key: str) -> int:
    return whole_number(tree, key, 0, _LIMITS["vocab_size"])


def _sizes(tree: Tree, shared: Tree) -> TransformerSizes:
    if tree.get("attention_o_bias"):
        raise ValueError("attention_o_bias is true; this architecture has none")
    heads = _whole(tree, "n_head")
    groups = heads if tree["n_local_heads"] == -1 else _whole(tree, "n_local_heads")
    sizes = TransformerSizes(
        vocab_size=_whole(tree, "vocab_size"),
        n_layer=_whole(tree, "n_layer"),
        dim=_whole(tree, "dim"),
        n_head=heads,
        n_kv_head=groups,
        head_dim=_whole(tree, "head_dim"),
        intermediate_size=_whole(tree, "intermediate_size"),
        qk_norm=bool(tree["attention_qk_norm"]),
        rope_base=positive_number(shared, "rope_base"),
        norm_eps=positive_number(shared, "norm_eps"),
        qkv_bias=bool(tree.get("attention_qkv_bias", False)),
    )
    if heads % groups or sizes.head_dim % 2:
        raise ValueError(f"{heads} heads of {sizes.head_dim} do not share {groups} key heads evenly")
    return sizes


def _whole(tree: Tree, key: str) -> int:
    return whole_number(tree, key, 1, _LIMITS.get(key, _LIMIT))


def _audio8_codec(tree: Tree) -> CodecConfig:
    codec = CodecConfig()
    post = {key: _whole(tree, f"codec_post_{key}") for key in ("n_layer", "n_head", "intermediate_size")}
    return replace(codec, post_module=replace(codec.post_module, **post))


def _is_s2(tree: Tree) -> bool:
    return bool(tree.get("norm_fastlayer_input", False))


FAMILIES = (
    Family("S2", "fish_qwen3_omni", _published),
    Family("S2", "dual_ar", _flat, matches=_is_s2),  # as written by merging a LoRA
    Family("S1", "dual_ar", partial(_flat, prompt_layout="interleave", residual_codes=1024)),
    Family(
        "Audio8",
        "arktts",
        partial(_flat, norm_fastlayer_input=True, scales_codes=False, joins_spaces=True),
        codec=_audio8_codec,
    ),
    Family(
        "Qwen3-TTS",
        "qwen3_tts",
        qwen3_tts.read_config,
        codec=lambda tree: QwenCodecConfig(),
        codec_folder="speech_tokenizer",
        tensors=qwen3_tts.model_tensors,
        file_key=qwen3_tts.file_key,
    ),
)
