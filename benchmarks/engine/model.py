"""A full-size model of random weights on the GPU, and rows that speak with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from engine.checkpoint.qwen3_tts import read_config
from engine.config import ModelConfig, TransformerSizes
from engine.model.dual_ar import DualAR, only_shapes
from engine.model.prompt import Prompt
from engine.runtime.row import Row
from engine.runtime.runner import Runner
from engine.types import Sampling
from tests import tiny_qwen

DEVICE = torch.device("cuda")
SLOW = TransformerSizes(155776, 36, 2560, 32, 8, 128, 9728, True, 1e6, 1e-6)
S2_PRO = ModelConfig(
    slow=SLOW,
    fast=replace(SLOW, vocab_size=4096, n_layer=4, qk_norm=False),
    num_codebooks=10,
    codebook_size=4096,
    max_context=32768,
    tie_word_embeddings=True,
    eos_token=151645,
    semantic_start=151678,
    semantic_end=155773,
)
FRAME_SECONDS = 2048 / 44100


def qwen3_tts(dim: int, intermediate_size: int) -> ModelConfig:
    """The config of a Qwen3-TTS with a talker of these sizes."""
    tree = tiny_qwen.config("voice_design")
    heads = {"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "num_code_groups": 16}
    talker = {
        "vocab_size": 3072,
        "text_vocab_size": 151936,
        "text_hidden_size": 2048,
        "num_hidden_layers": 28,
        "codec_eos_token_id": 2150,
    }
    small = {"vocab_size": 2048, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 5}
    predictor = tree["talker_config"]["code_predictor_config"] | heads | small
    own = {"hidden_size": dim, "intermediate_size": intermediate_size, "code_predictor_config": predictor}
    return read_config(tree | {"talker_config": tree["talker_config"] | heads | talker | own})


CONFIGS = {"s2-pro": S2_PRO, "qwen3-tts-0.6b": qwen3_tts(1024, 3072), "qwen3-tts-1.7b": qwen3_tts(2048, 6144)}


def row(slot: int, seed: int, steps: int, config: ModelConfig, sampling: Sampling | None = None) -> Row:
    """A row with a prompt of random text and frames."""
    random = np.random.default_rng(seed)
    ids = random.integers(0, config.eos_token, steps)
    codes = np.zeros((config.num_codebooks, steps), np.int64)
    row_ = Row(Prompt(ids, codes, max(0, steps - 40)), sampling or Sampling(seed=seed), 100_000, lambda item: None)
    row_.slot = slot
    return row_


def join(runner: Runner, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    for row_ in rows:
        while not runner.prefill([row_]):
            pass
    return rows


def error(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm())


def random_model(config: ModelConfig = S2_PRO) -> DualAR:
    with only_shapes():
        model = DualAR(config)
    model = model.to_empty(device=DEVICE).bfloat16()
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if name.endswith("norm.weight"):
            parameter.data.fill_(1.0)
        else:
            parameter.data.normal_(0, 0.02)
    head = model.slow_output or model.slow.embeddings
    head.weight.data[config.eos_token - (config.head_start if model.slow_output else 0)] = 0  # else takes would end
    return model.eval().requires_grad_(False)
