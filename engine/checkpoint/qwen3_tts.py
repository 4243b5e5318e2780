"""Qwen3-TTS checkpoints as published: its config.json, its tokenizer's files, and its tensors as this engine's.

A frame's row in the table of text is the padding's, and the codes' control tokens have rows of their own behind it, so
that a frame's embedding is a sum like S2's. The projections of texts and of codes are applied to their tables here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.checkpoint.lazy_tensors import LazyTensor, with_joined_qkv
from engine.config import ModelConfig, TalkerConfig, TransformerSizes, positive_number, whole_number
from engine.model.dual_ar import TEXT_TABLE, LateRows

Tree = Mapping[str, Any]

_VOICE_ENCODER = "speaker_encoder."
"""The beginning of the names of tensors that are not the model's."""
_TOKENIZER = "qwen3_tts_tokenizer_12hz"
_UNUSED_IDS = 1024
"""Tokens of the codes' vocabulary after the codes themselves: control tokens, languages and speakers."""
_WORDS = {
    "im_start": "im_start", "im_end": "im_end", "text_pad": "tts_pad", "text_begin": "tts_bos", "text_end": "tts_eos",
}  # fmt: skip
_CONTROL = {
    "pad": "pad", "begin": "bos", "think": "think", "no_think": "nothink", "think_begin": "think_bos",
    "think_end": "think_eos",
}  # fmt: skip
_ROWS_AT_ONCE = 4096
_NAMES = (
    ("talker.code_predictor.small_to_mtp_projection.", "fast_project_in."),
    ("talker.code_predictor.model.", "fast."),
    ("talker.codec_head.", "slow_output."),
    ("talker.model.", "slow."),
    (".self_attn.o_proj.", ".attention.wo."),
    (".self_attn.", ".attention."),
    (".mlp.gate_proj.", ".feed_forward.w1."),
    (".mlp.up_proj.", ".feed_forward.w3."),
    (".mlp.down_proj.", ".feed_forward.w2."),
    (".input_layernorm.", ".attention_norm."),
    (".post_attention_layernorm.", ".ffn_norm."),
)
_ROTATED = tuple(f".attention.{name}.weight" for name in ("q_proj", "k_proj", "q_norm", "k_norm"))
_TEXT, _CODES = "talker.model.text_embedding.weight", "talker.model.codec_embedding.weight"
_PROJECTION = "talker.text_projection.linear_fc"
_BOOK, _HEAD = "talker.code_predictor.model.codec_embedding.{}.weight", "talker.code_predictor.lm_head.{}.weight"
_SMALL = "talker.code_predictor.small_to_mtp_projection."


def read_config(tree: Tree, token_ids: object = None) -> ModelConfig:
    """The sizes and ids in a config.json. Raises KeyError, TypeError, ValueError, OverflowError."""
    if tree["tokenizer_type"] != _TOKENIZER:
        raise ValueError(
            f"tokenizer_type is {tree['tokenizer_type']!r}, whose codec cannot be loaded; choose a model named "
            f"Qwen3-TTS-12Hz, whose tokenizer_type is {_TOKENIZER!r}"
        )
    talker, predictor = tree["talker_config"], tree["talker_config"]["code_predictor_config"]
    books, text = whole_number(talker, "num_code_groups", 2, 64), whole_number(talker, "text_vocab_size", 1, 2**22)
    tokens = whole_number(talker, "vocab_size", _UNUSED_IDS + 1, 2**16)
    codes = tokens - _UNUSED_IDS
    if whole_number(predictor, "vocab_size", 1, 2**16) != codes or predictor["num_code_groups"] != books:
        raise ValueError(
            f"code_predictor_config has {predictor['num_code_groups']} code groups of {predictor['vocab_size']}, "
            f"talker_config {books} of {codes}"
        )
    return ModelConfig(
        slow=_sizes(talker, text + tokens),
        fast=_sizes(predictor, codes * (books - 1)),
        num_codebooks=books,
        codebook_size=codes,
        max_context=whole_number(talker, "max_position_embeddings", 1, 2**20),
        tie_word_embeddings=False,
        eos_token=text + whole_number(talker, "codec_eos_token_id", 0, tokens - 1),
        semantic_start=text,
        semantic_end=text + codes - 1,
        prompt_layout="talker",
        scales_codes=False,
        codes_apart=True,
        head_start=text,
        talker=_talker(tree, text, tokens),
    )


def _talker(tree: Tree, text: int, tokens: int) -> TalkerConfig:
    """What prompts are made of; text, tokens: sizes of the vocabularies of text and of codes."""
    talker, kind = tree["talker_config"], str(tree["tts_model_type"])
    if kind not in ("base", "custom_voice", "voice_design"):
        raise ValueError(f"tts_model_type is {kind!r}, expected 'base', 'custom_voice' or 'voice_design'")
    speakers = {str(name): _only(value) for name, value in (talker.get("spk_id") or {}).items()}
    languages: Tree = talker.get("codec_language_id") or {}
    dialects = {name: value for name, value in (talker.get("spk_is_dialect") or {}).items() if value}
    if unknown := [value for value in dialects.values() if value not in languages]:
        raise ValueError(f"spk_is_dialect names {unknown[0]!r}, which codec_language_id lacks")
    is_small, width = tree.get("tts_model_size") == "0b6", whole_number(talker, "hidden_size", 1, 2**20)
    if kind == "base" and (size := tree["speaker_encoder_config"].get("enc_dim", 1024)) != width:
        raise ValueError(f"speaker_encoder_config makes vectors of {size} values, but the model's have {width}")

    def control(owner: Tree, key: str) -> int:
        return text + whole_number(owner, key, 0, tokens - 1)

    words = {name: whole_number(tree, f"{key}_token_id", 0, text - 1) for name, key in _WORDS.items()}
    return TalkerConfig(
        kind=kind,  # type: ignore[arg-type]
        **words,
        **{name: control(talker, f"codec_{key}_id") for name, key in _CONTROL.items()},
        languages={name: control(languages, name) for name in languages},
        speakers={name: control(speakers, name) for name in speakers},
        dialects=dialects,
        takes_instructions=kind == "voice_design" or (kind == "custom_voice" and not is_small),
        vector_size=width if kind == "base" else 0,
    )


def model_tensors(tensors: Sequence[LazyTensor], config: ModelConfig) -> list[LazyTensor]:
    """A checkpoint's tensors as the model's. Raises ValueError for those that the tables are made of."""
    named = {tensor.name: tensor for tensor in tensors}
    own = {name: tensor for name, tensor in named.items() if not name.startswith(_VOICE_ENCODER)}
    if config.talker is not None and config.talker.kind == "base" and len(own) == len(named):
        raise ValueError(f"{_VOICE_ENCODER}* is missing, without which clips cannot be cloned; download the file again")
    parts = _Parts(own, config)
    tables = parts.tables()
    renamed = [_rotated(replace(tensor, name=_renamed(name)), config) for name, tensor in parts.rest.items()]
    return [*with_joined_qkv(renamed), *tables]


def file_key(name: str) -> str:
    """The model's tensor name → its name in the file, for messages."""
    for theirs, ours in _NAMES:
        name = name.replace(ours, theirs)
    return name.replace(".wqkv.", ".{q,k,v}_proj.")


class _Parts:
    """The tensors of a file; what tables are made of is taken out."""

    def __init__(self, tensors: dict[str, LazyTensor], config: ModelConfig) -> None:
        self.rest, self._config = tensors, config

    def tables(self) -> list[LazyTensor]:
        """The tables and heads that are stored in parts."""
        config, books = self._config, self._config.num_codebooks
        dim, fast, codes, text = config.slow.dim, config.fast.dim, config.codebook_size, config.semantic_start
        control = self._take(_CODES, config.slow.vocab_size - text, dim)
        tables = [replace(control, read=lambda: control.read()[:codes])]
        tables += [self._take(_BOOK.format(number), codes, dim) for number in range(books - 1)]
        heads = [self._take(_HEAD.format(number), codes, fast) for number in range(books - 1)]
        small = [tensor for key in ("weight", "bias") if (tensor := self.rest.get(_SMALL + key))]

        def small_tables() -> Tensor:
            table = torch.cat([table.read() for table in tables[:-1]])
            return _product(table, *(part.read() for part in small)) if len(small) == 2 else table

        return [
            self._text_table(control),
            LazyTensor(
                "codebook_embeddings.weight", (codes * books, dim), lambda: torch.cat([t.read() for t in tables])
            ),
            LazyTensor("fast.embeddings.weight", (codes * (books - 1), fast), small_tables),
            LazyTensor(
                "fast_output.weight", (codes * (books - 1), fast), lambda: torch.cat([head.read() for head in heads])
            ),
        ]

    def _text_table(self, control: LazyTensor) -> LazyTensor:
        config, text = self._config, self._config.semantic_start
        assert config.talker is not None
        table = self._take(_TEXT, text, -1)
        width, pad, codes = table.shape[1], config.talker.text_pad, config.codebook_size
        layers = [
            self._take(f"{_PROJECTION}{number}.{kind}", rows, *([width] if kind == "weight" else []))
            for number, rows in ((1, width), (2, config.slow.dim))
            for kind in ("weight", "bias")
        ]

        def late() -> LateRows:
            rows, *parts = [part.read().clone() for part in (table, *layers)]  # which are used as long as the model
            weight1, bias1, weight2, bias2 = (part.float() for part in parts)
            if not rows.is_floating_point() or rows.element_size() < 2:
                raise ValueError(f"{_TEXT} is {rows.dtype} and has no scales")

            def compute(ids: Tensor) -> Tensor:
                hidden = F.silu(F.linear(rows[ids].float(), weight1, bias1))
                return _product(hidden, weight2, bias2).to(rows.dtype)

            whole = torch.zeros(config.slow.vocab_size, config.slow.dim, dtype=rows.dtype)
            whole[text : text + codes] = compute(torch.tensor([pad]))
            whole[text + codes :] = control.read()[codes:]
            return LateRows(whole, text, compute)

        def read() -> Tensor:
            part = late()
            for ids in torch.arange(text).split(_ROWS_AT_ONCE):
                part.table[ids] = part.compute(ids)
            return part.table

        return LazyTensor(TEXT_TABLE, (config.slow.vocab_size, config.slow.dim), read, late)

    def _take(self, name: str, *shape: int) -> LazyTensor:
        """A tensor of this shape; −1 stands for any size."""
        if (tensor := self.rest.pop(name, None)) is None:
            raise ValueError(f"{name} is missing, so the file is incomplete; download it again")
        if len(tensor.shape) != len(shape) or any(s not in (t, -1) for s, t in zip(shape, tensor.shape, strict=True)):
            raise ValueError(f"{name} is {list(tensor.shape)}, but config.json says {list(shape)}")
        return tensor


def _product(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """In float32, then rounded to x's type."""
    return F.linear(x.float(), weight.float(), bias.float()).to(x.dtype)


def _renamed(name: str) -> str:
    for theirs, ours in _NAMES:
        name = name.replace(theirs, ours)
    return name


def _rotated(tensor: LazyTensor, config: ModelConfig) -> LazyTensor:
    """Queries, keys and their gains with the channels that rotate together as neighbours, not half a head apart."""
    if not tensor.name.endswith(_ROTATED):
        return tensor
    width = (config.slow if tensor.name.startswith("slow.") else config.fast).head_dim
    if not tensor.shape or tensor.shape[0] % width:
        raise ValueError(
            f"{file_key(tensor.name)} is {list(tensor.shape)}, which is not a multiple of head_dim {width}"
        )
    return replace(
        tensor, read=lambda: tensor.read().unflatten(0, (-1, 2, width // 2)).transpose(1, 2).flatten(0, 2).contiguous()
    )


def _sizes(tree: Tree, vocabulary: int) -> TransformerSizes:
    if tree.get("attention_bias") or tree.get("use_sliding_window") or tree.get("hidden_act", "silu") != "silu":
        raise ValueError("attention_bias, use_sliding_window or another hidden_act than silu is not supported")
    heads, groups = (whole_number(tree, key, 1, 1024) for key in ("num_attention_heads", "num_key_value_heads"))
    width = whole_number(tree, "head_dim", 2, 1024)
    if heads % groups or width % 2:
        raise ValueError(f"{heads} heads of {width} do not share {groups} key heads evenly")
    return TransformerSizes(
        vocab_size=vocabulary,
        n_layer=whole_number(tree, "num_hidden_layers", 1, 1024),
        dim=whole_number(tree, "hidden_size", 1, 2**20),
        n_head=heads,
        n_kv_head=groups,
        head_dim=width,
        intermediate_size=whole_number(tree, "intermediate_size", 1, 2**20),
        qk_norm=True,
        rope_base=positive_number(tree, "rope_theta"),
        norm_eps=positive_number(tree, "rms_norm_eps"),
        exact_rope=True,
    )


def _only(value: Any) -> Any:
    """A speaker's id, which some conversions have in a list."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value
