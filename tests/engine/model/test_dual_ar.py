"""The dual AR against fish-speech's own classes: hidden states, slow logits and fast logits of whole sequences."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.checkpoint import Checkpoint, load
from engine.model.dual_ar import Causal
from tests import upstream
from tests.tiny import TinyCodec, TinyModel, write_checkpoint

TOLERANCE = 2e-5

MODELS = {
    "default": (TinyModel(), TinyCodec()),
    "one key head": (TinyModel(n_local_heads=1, fast_n_local_heads=1), TinyCodec(num_codebooks=4)),
    "all key heads": (TinyModel(n_local_heads=4, fast_n_local_heads=4, rope_base=1e6), TinyCodec(num_codebooks=8)),
    "wider than its heads": (TinyModel(n_head=2, n_local_heads=1, head_dim=48), TinyCodec(num_codebooks=2)),
    "fast AR of another width": (
        TinyModel(fast_dim=48, fast_n_head=3, fast_n_local_heads=1, fast_head_dim=8),
        TinyCodec(num_codebooks=5),
    ),
    "untied head": (TinyModel(tie_word_embeddings=False), TinyCodec(semantic_codebook_size=80)),
}


@pytest.fixture(params=MODELS, scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, codec = MODELS[request.param]
    return write_checkpoint(tmp_path_factory.mktemp("model"), model, codec, seed=21)


@pytest.fixture(scope="module")
def checkpoint(folder: Path) -> Checkpoint:
    cpu = torch.device("cpu")
    return load(folder, cpu, cpu, torch.float32)


def random_prompt(checkpoint: Checkpoint, steps: int, seed: int) -> torch.Tensor:
    """Text and frames mixed: (1 + codebooks, steps), token ids first."""
    config = checkpoint.config
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(config.codebook_size, (config.num_codebooks, steps), generator=generator)
    spoken = torch.rand(steps, generator=generator) < 0.5
    text = torch.randint(config.semantic_start, (steps,), generator=generator)
    tokens = torch.where(spoken, config.semantic_start + codes[0], text)
    return torch.cat([tokens[None], codes])


@torch.inference_mode()
def test_hidden_states_and_slow_logits_match_upstream(folder: Path, checkpoint: Checkpoint) -> None:
    model, reference = checkpoint.model, upstream.load_ar(folder)
    config = checkpoint.config
    for seed, steps in enumerate((1, 2, 60, 300)):
        prompt = random_prompt(checkpoint, steps, seed)
        expected_logits, expected_hidden = upstream.forward(reference, prompt)
        x = model.embed(prompt[None, 0], prompt[None, 1:])
        hidden = model.slow(x, torch.arange(steps)[None], Causal())
        actual = (hidden @ model.head().T)[0]
        assert (model.fast_project_in(hidden)[0] - expected_hidden).abs().max() <= TOLERANCE
        semantic = expected_logits[:, config.semantic_start : config.semantic_end + 1]
        legal = torch.cat([semantic, expected_logits[:, config.eos_token, None]], dim=1)
        assert (actual - legal).abs().max() <= TOLERANCE * legal.abs().max()


@torch.inference_mode()
def test_fast_logits_match_upstream(folder: Path, checkpoint: Checkpoint) -> None:
    model, reference = checkpoint.model, upstream.load_ar(folder)
    config = checkpoint.config
    generator = torch.Generator().manual_seed(4)
    for _ in range(5):
        hidden = torch.randn(config.fast.dim, generator=generator)
        codes = torch.randint(config.codebook_size, (config.num_codebooks,), generator=generator)
        expected = upstream.fast_logits(reference, hidden, codes)
        x = torch.cat([hidden[None], model.fast.embeddings(codes[:-1])])[None]
        positions = torch.arange(config.num_codebooks)[None]
        actual = model.fast_logits(x, positions, Causal())[0, 1:]
        assert actual.shape == expected.shape
        assert (actual - expected).abs().max() <= TOLERANCE * expected.abs().max()
