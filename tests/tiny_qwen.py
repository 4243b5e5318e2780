"""Small Qwen3-TTS checkpoints in the published layout; every weight is a formula of its name and place."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import pre_tokenizers
from torch import Tensor

from tests.tiny_qwen_codec import speaker_encoder_tensors, write_tiny_speech_tokenizer

CODES, BOOKS, WORDS = 64, 4, 320
MERGES = (
    "t h",
    "th e",
    "Ġ the",
    "i n",
    "e r",
    "a s",
    "o n",
    "Ġ w",
    "h e",
    "l l",
    "he ll",
    "l o",
    "Ċ Ċ",
    "as s",
    "ass i",
    "assi s",
    "assis t",
    "assist a",
    "assista n",
    "assistan t",
)  # as upstream counts the tokens of its layout
_SHAPE: dict[str, Any] = {
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
    "num_code_groups": BOOKS, "hidden_act": "silu", "attention_bias": False,
}  # fmt: skip


def config(kind: str = "base", layers: int = 3) -> dict[str, Any]:
    """A config.json; the text's control tokens are its last words."""
    talker = _SHAPE | {
        "vocab_size": CODES + 1024, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": layers,
        "text_hidden_size": 48, "text_vocab_size": WORDS, "max_position_embeddings": 1024,
        "rope_scaling": {"rope_type": "default", "interleaved": True, "mrope_section": [3, 3, 2]},
        "codec_pad_id": 164, "codec_bos_id": 165, "codec_eos_token_id": 166, "codec_think_id": 170,
        "codec_nothink_id": 171, "codec_think_bos_id": 172, "codec_think_eos_id": 173,
        "codec_language_id": {"english": 120, "chinese": 121, "sichuan_dialect": 122}, "spk_id": {},
        "spk_is_dialect": {},
        "code_predictor_config": _SHAPE
        | {"vocab_size": CODES, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2},
    }  # fmt: skip
    if kind == "custom_voice":
        speakers = {
            "spk_id": {"ryan": 700, "eric": [701]},
            "spk_is_dialect": {"ryan": False, "eric": "sichuan_dialect"},
        }
        talker |= speakers
    return {
        "model_type": "qwen3_tts", "tokenizer_type": "qwen3_tts_tokenizer_12hz", "tts_model_size": "1b7",
        "tts_model_type": kind, "im_start_token_id": WORDS - 5, "im_end_token_id": WORDS - 4,
        "tts_pad_token_id": WORDS - 3, "tts_bos_token_id": WORDS - 2, "tts_eos_token_id": WORDS - 1,
        "talker_config": talker,
        "speaker_encoder_config": {
            "enc_dim": 64, "enc_channels": [16, 16, 16, 16, 48], "enc_attention_channels": 8, "enc_res2net_scale": 4,
            "enc_se_channels": 8, "mel_dim": 128, "sample_rate": 24000, "enc_kernel_sizes": [5, 3, 3, 3, 1],
            "enc_dilations": [1, 2, 3, 4, 1],
        },
    }  # fmt: skip


def shapes(tree: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Every tensor of talker and predictor by its published name."""
    talker = tree["talker_config"]
    predictor, dim, text = talker["code_predictor_config"], talker["hidden_size"], talker["text_hidden_size"]
    small = predictor["hidden_size"]
    found: dict[str, tuple[int, ...]] = {
        "talker.model.text_embedding.weight": (talker["text_vocab_size"], text),
        "talker.model.codec_embedding.weight": (talker["vocab_size"], dim),
        "talker.text_projection.linear_fc1.weight": (text, text),
        "talker.text_projection.linear_fc1.bias": (text,),
        "talker.text_projection.linear_fc2.weight": (dim, text),
        "talker.text_projection.linear_fc2.bias": (dim,),
        "talker.codec_head.weight": (talker["vocab_size"], dim),
    }
    for book in range(talker["num_code_groups"] - 1):
        found[f"talker.code_predictor.model.codec_embedding.{book}.weight"] = (predictor["vocab_size"], dim)
        found[f"talker.code_predictor.lm_head.{book}.weight"] = (predictor["vocab_size"], small)
    if small != dim:
        found["talker.code_predictor.small_to_mtp_projection.weight"] = (small, dim)
        found["talker.code_predictor.small_to_mtp_projection.bias"] = (small,)
    for prefix, part in (("talker.model", talker), ("talker.code_predictor.model", predictor)):
        width, inner = part["hidden_size"], part["intermediate_size"]
        heads, keys = (part[key] * part["head_dim"] for key in ("num_attention_heads", "num_key_value_heads"))
        found[f"{prefix}.norm.weight"] = (width,)
        for layer in range(part["num_hidden_layers"]):
            name = f"{prefix}.layers.{layer}"
            attention = {
                "q_proj": (heads, width),
                "k_proj": (keys, width),
                "v_proj": (keys, width),
                "o_proj": (width, heads),
            }
            found |= {f"{name}.self_attn.{key}.weight": shape for key, shape in attention.items()}
            found |= {f"{name}.self_attn.{key}_norm.weight": (part["head_dim"],) for key in "qk"}
            found |= {f"{name}.mlp.{key}_proj.weight": (inner, width) for key in ("gate", "up")}
            found[f"{name}.mlp.down_proj.weight"] = (width, inner)
            found |= {f"{name}.{key}_layernorm.weight": (width,) for key in ("input", "post_attention")}
    return found


def values(name: str, *shape: int) -> np.ndarray:
    """Float32 numbers between −1 and 1 that look random, the same on every machine."""
    with np.errstate(over="ignore"):
        mixed = np.arange(math.prod(shape), dtype=np.uint64) + np.uint64(zlib.crc32(name.encode()) << 20)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed >> np.uint64(40)).astype(np.float32) / 2**23 - 1).reshape(shape)


def weights(tree: dict[str, Any]) -> dict[str, Tensor]:
    """Every tensor, in float32, so that signals keep their size and take part in every result."""
    tensors = {}
    for name, shape in shapes(tree).items():
        spread = 1.0 if len(shape) == 1 or "embedding" in name else 3.0 / shape[-1] ** 0.5
        number = torch.from_numpy(values(name, *shape)) * spread
        tensors[name] = 1 + 0.3 * number if "norm" in name else number
    return tensors


def vocabulary() -> dict[str, int]:
    """Tokens and their ids, fewer than WORDS − 5."""
    symbols = {symbol: index for index, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    for pair in MERGES:
        symbols[pair.replace(" ", "")] = len(symbols)
    return symbols


def write_qwen(
    folder: Path, kind: str = "base", weights_of_talker: dict[str, Tensor] | None = None, layers: int = 3
) -> Path:
    """Write a whole checkpoint, the codec in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    tree = config(kind, layers)
    (folder / "config.json").write_text(json.dumps(tree))
    encoder = speaker_encoder_tensors(tree["speaker_encoder_config"]) if kind == "base" else {}
    save_file((weights_of_talker or weights(tree)) | encoder, folder / "model.safetensors")
    (folder / "vocab.json").write_text(json.dumps(vocabulary()))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *MERGES, ""]), "utf-8")
    added = {str(tree[f"{key}_token_id"]): {"content": f"<|{key}|>", "special": True} for key in ("im_start", "im_end")}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    (folder / "generation_config.json").write_text(json.dumps({"max_new_tokens": 8192}))
    (folder / "preprocessor_config.json").write_text("{}")
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    codec = write_tiny_speech_tokenizer(folder / "speech_tokenizer", CODES, BOOKS)
    for name in ("configuration.json", "preprocessor_config.json"):
        (codec / name).write_text("{}")
    return folder
