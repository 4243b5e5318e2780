"""Small random checkpoints in fish-speech's own layouts: a flat config, model.pth, tiktoken ranks."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import torch

from tests import upstream
from tests.tiny import TinyCodec, build_tokenizer, write_codec
from tests.upstream import ALL_SPECIAL_TOKENS, DualARModelArgs, DualARTransformer, FishTokenizer

S1 = {
    "n_layer": 2, "n_head": 4, "n_local_heads": 2, "head_dim": 16, "dim": 64, "intermediate_size": 96,
    "rope_base": 10_000, "norm_eps": 1e-6, "max_seq_len": 512, "tie_word_embeddings": False,
    "attention_qk_norm": True, "n_fast_layer": 2, "fast_dim": 48, "fast_n_head": 3, "fast_n_local_heads": 1,
    "fast_head_dim": 8, "fast_intermediate_size": 80, "fast_attention_qk_norm": False,
    "scale_codebook_embeddings": True,
}  # fmt: skip
"""S1-mini's switches at tiny sizes."""
AUDIO8 = {
    "model_type": "arktts", "attention_qk_norm": False, "attention_qkv_bias": True, "scale_codebook_embeddings": False,
    "fast_dim": 64, "fast_n_head": 4,
}  # fmt: skip
"""Audio8's switches, for `write_flat`."""
MORE_TOKENS = [b"th", b"the", b"in", b"er", b" the", b"on", b"  ", b"\n\n", "é".encode(), b"ing", b"wh", b"what"]


def write_ranks(folder: Path, codes: int) -> FishTokenizer:
    """Write tokenizer.tiktoken and special_tokens.json as fish-speech saves them."""
    tokens = [bytes([byte]) for byte in range(256)] + MORE_TOKENS
    lines = [f"{base64.b64encode(token).decode()} {rank}" for rank, token in enumerate(tokens)]
    path = folder / "tokenizer.tiktoken"
    path.write_text("\n".join(lines) + "\n")
    special = [token for token in ALL_SPECIAL_TOKENS if not token.startswith("<|semantic:")]
    tokenizer = FishTokenizer(str(path), [*special, *(f"<|semantic:{code}|>" for code in range(codes))])
    tokenizer.save_pretrained(str(folder))
    return tokenizer


def write_dual_ar(folder: Path, codec: TinyCodec, sizes: dict[str, Any] | None = None) -> DualARTransformer:
    """Write a checkpoint with fish-speech's own class, and return its model."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = write_ranks(folder, codec.semantic_codebook_size)
    arguments = DualARModelArgs(
        vocab_size=tokenizer.vocab_size + tokenizer.num_special_tokens + 3,
        codebook_size=codec.semantic_codebook_size,
        num_codebooks=codec.num_codebooks,
        **(sizes or S1),
    )
    model = DualARTransformer(arguments, tokenizer=tokenizer).eval()
    randomise(model, tokenizer.get_token_id("<|im_end|>"))
    model.save_pretrained(str(folder))
    write_codec(folder, codec)
    return model


def write_flat(folder: Path, codec: TinyCodec, **changes: Any) -> upstream.ReferenceAR:
    """Write a flat checkpoint with S2's tokenizer and switches, like a merged LoRA, and return its model."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = build_tokenizer(codec.semantic_codebook_size)
    tokenizer.save(str(folder / "tokenizer.json"))
    ids = tokenizer.get_vocab()
    first, last = (ids[f"<|semantic:{at}|>"] for at in (0, codec.semantic_codebook_size - 1))
    stop = ids["<|im_end|>"]
    sizes = {**S1, "tie_word_embeddings": True, **{key: changes.pop(key) for key in list(changes) if key in S1}}
    arguments = DualARModelArgs(
        vocab_size=tokenizer.get_vocab_size() + 3,
        codebook_size=codec.semantic_codebook_size,
        num_codebooks=codec.num_codebooks,
        **{key: value for key, value in sizes.items() if key != "fast_attention_qkv_bias"},
        attention_qkv_bias=changes.get("attention_qkv_bias", False),
        fast_attention_qkv_bias=False,
    )
    model = upstream.ReferenceAR(arguments, tokenizer=upstream.token_ids(first, last, stop)).eval()
    randomise(model, stop)
    torch.save(
        {"state_dict": {f"model.{key}": value for key, value in model.state_dict().items()}}, folder / "model.pth"
    )
    tree = {**arguments.__dict__, "norm_fastlayer_input": True, "semantic_begin_id": 0, "semantic_end_id": 0, **changes}
    (folder / "config.json").write_text(json.dumps(tree))
    write_codec(folder, codec)
    return model


@torch.no_grad()
def randomise(model: torch.nn.Module, stop: int) -> None:
    """Set values that give widely differing logits and takes that do not end at once."""
    generator = torch.Generator().manual_seed(5)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.ndim == 1:
            parameter.copy_(0.1 * noise + (0 if name.endswith("bias") else 1))
        else:
            scale = 4.0 if "embeddings" in name or "output" in name else 1.5
            parameter.copy_(noise * scale / parameter.shape[1] ** 0.5)
    head = model.embeddings if model.config.tie_word_embeddings else model.output  # type: ignore[union-attr]
    head.weight[stop] *= 0.1  # type: ignore[union-attr,index,operator]
