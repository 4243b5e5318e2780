"""A checkpoint's logits from fish-speech's own classes, if that package is installed: an independent reference."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from engine.checkpoint import Checkpoint
from engine.checkpoint.checkpoint_names import flat_key
from engine.config import ModelConfig
from engine.forced_logits import ForcedTake, Logits, Spoken, fast_inputs, joined_logits
from engine.model.dual_ar import DualAR

_SIZES = {
    "n_head": "n_head", "n_local_heads": "n_kv_head", "head_dim": "head_dim", "dim": "dim",
    "intermediate_size": "intermediate_size", "attention_qk_norm": "qk_norm", "attention_qkv_bias": "qkv_bias",
}  # fmt: skip
"""Sizes of a transformer, by fish-speech's names; the fast AR's begin with fast_."""


def is_installed() -> bool:
    """Whether fish-speech's model can be imported, with everything it imports."""
    try:
        importlib.import_module("fish_speech.models.text2semantic.llama")
    except ImportError:
        return False
    return True


@torch.inference_mode()
def fish_speech_logits(checkpoint: Checkpoint, spoken: Sequence[Spoken]) -> Logits:
    """Like `forced_logits`, but computed by fish-speech's code on the same tensors, whose memory it shares.

    The input of its fast AR comes from our code: versions differ in whether they norm it.
    """
    takes = [ForcedTake.of(take, checkpoint) for take in spoken]
    reference = _reference_model(checkpoint, 8 + max(take.ids.shape[1] for take in takes))
    config = checkpoint.config
    allowed = torch.tensor([*range(config.semantic_start, config.semantic_end + 1), config.eos_token])

    def logits_of(take: ForcedTake, model: DualAR) -> Logits:
        for block in reference.layers:
            block.attention.kv_cache = None
        reference.max_seq_len = -1
        prompt = torch.cat([take.ids, take.codes[0]])[None]
        base = importlib.import_module("fish_speech.models.text2semantic.llama").BaseTransformer
        semantic = base.forward_generate(reference, prompt, return_all=True).logits[0, take.start - 1 : -1]
        return semantic[:, allowed.to(semantic.device)], _residual(reference, take, fast_inputs(take, model)[1])

    return joined_logits(logits_of, takes, checkpoint.model)


def _residual(reference: Any, take: ForcedTake, first: Tensor) -> Tensor:
    """Its loop, all frames at once: position 0 reads the slow AR's state, position k code k − 1."""
    count, books = len(first), len(take.codes[0])
    for block in reference.fast_layers:  # needs its own cache, with one row per frame
        block.attention.kv_cache = None
    reference.max_batch_size = reference.max_seq_len = -1
    reference.setup_caches(count, books, dtype=first.dtype)
    reference.forward_generate_fast(first, torch.tensor([0], device=first.device))
    steps = []
    for book in range(1, books):
        x = reference.fast_embeddings(take.frames[book - 1])
        steps.append(reference.forward_generate_fast(x, torch.tensor([book], device=first.device))[:, 0])
    return torch.stack(steps, 1).flatten(0, 1)


def _reference_model(checkpoint: Checkpoint, positions: int) -> Any:
    llama = importlib.import_module("fish_speech.models.text2semantic.llama")
    config = checkpoint.config
    semantic_start, semantic_end = config.semantic_start, config.semantic_end
    tokenizer = SimpleNamespace(
        semantic_id_to_token_id={code: semantic_start + code for code in range(semantic_end - semantic_start + 1)},
        semantic_begin_id=semantic_start,
        semantic_end_id=semantic_end,
        get_token_id=lambda token: config.eos_token,
    )
    with torch.device(checkpoint.model.slow.norm.weight.device):
        model = llama.DualARTransformer(llama.DualARModelArgs(**_arguments(config, positions)), tokenizer=tokenizer)
    dtype = checkpoint.model.dtype  # tables that are read by rows may have a shorter one
    state = {flat_key(name): value.to(dtype) for name, value in checkpoint.model.state_dict().items()}
    model.load_state_dict(state, assign=True)
    return model.eval()


def _arguments(config: ModelConfig, positions: int) -> dict[str, Any]:
    slow, fast = config.slow, config.fast
    return {
        **{theirs: getattr(slow, ours) for theirs, ours in _SIZES.items()},
        **{f"fast_{theirs}": getattr(fast, ours) for theirs, ours in _SIZES.items()},
        "vocab_size": slow.vocab_size,
        "n_layer": slow.n_layer,
        "n_fast_layer": fast.n_layer,
        "rope_base": slow.rope_base,
        "norm_eps": slow.norm_eps,
        "max_seq_len": max(positions, config.num_codebooks + 1),
        "tie_word_embeddings": config.tie_word_embeddings,
        "codebook_size": config.codebook_size,
        "num_codebooks": config.num_codebooks,
        "scale_codebook_embeddings": config.scales_codes,
    }
