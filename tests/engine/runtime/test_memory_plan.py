"""The engine's memory, planned before anything is loaded: what fits, what is refused, what is held besides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.full_size import S2_PRO
from engine import ConfigError, Engine, EngineConfig
from engine.codec import CodecConfig
from engine.config import ModelConfig
from engine.model.dual_ar import DualAR
from engine.runtime.memory_plan import GIB, MemoryPlan, plan_memory
from engine.runtime.runner import Runner
from tests.engine.kernels.interpreter import DEVICE
from tests.tiny import TinyModel, write_checkpoint

fused = pytest.importorskip("engine.fused.frame")

BFLOAT16 = torch.bfloat16
PRODUCTS = ("qkv", "output", "gate_up", "down")


@pytest.fixture
def s2_pro(tmp_path: Path) -> ModelConfig:
    (tmp_path / "config.json").write_text(json.dumps(S2_PRO))
    return ModelConfig.read(tmp_path)


def size(plan: MemoryPlan, name: str) -> int:
    return dict(plan.items)[name]


def test_four_rows_of_4096_positions_of_s2_pro_fit_into_14_gib(s2_pro: ModelConfig) -> None:
    plan = plan_memory(s2_pro, CodecConfig(), BFLOAT16, 4, 4096, 2**29, "float32")
    plan.check(14 * GIB)
    assert plan.fits(14 * GIB, spare=14 * GIB - plan.total) and not plan.fits(14 * GIB, spare=GIB)
    more = plan_memory(s2_pro, CodecConfig(), BFLOAT16, 4, 4096, 2**29, "float32", twelve_bits="words")
    assert not more.fits(14 * GIB)


def test_float8_holds_less_and_what_it_does_not_hold_is_held_in_twelve_bits(s2_pro: ModelConfig) -> None:
    plans = [
        plan_memory(s2_pro, CodecConfig(), BFLOAT16, 1, 1024, 0, "float32", weights, twelve_bits="tiles")
        for weights in ("dtype", "fp8", "fp8-all")
    ]
    weights, packed12 = ([size(plan, name) for plan in plans] for name in ("weights", "the same in twelve bits"))
    assert weights[0] - weights[1] == 36 * 3 * 2560 * 9728  # the slow AR's feed-forward, a byte each
    assert packed12[0] - packed12[1] == 36 * 3 * 2560 * 9728 * 3 // 2
    assert weights == sorted(weights, reverse=True) and packed12[2] == (4097 + 4096) * 2560 * 3 // 2  # two heads
    tiles = [size(plan, "gates and ups again, as tiles") for plan in plans]
    assert tiles == [layers * 2 * 2560 * 9728 * 3 // 2 for layers in (36 + 4, 4, 0)]


@torch.inference_mode()
def test_what_is_held_in_twelve_bits_takes_what_was_planned(tmp_path: Path) -> None:
    heads: dict[str, Any] = {"n_head": 8, "fast_n_head": 8, "intermediate_size": 256, "fast_intermediate_size": 128}
    folder = write_checkpoint(tmp_path, model=TinyModel(dim=128, fast_dim=128, **heads))
    config, codec = ModelConfig.read(folder), CodecConfig.of(folder)
    model = DualAR(config).to(DEVICE, BFLOAT16)
    runner = Runner(model, 1, 64)
    frame = fused.FusedFrame(model, runner._cache, runner._slots, 1, 64, True, twelve_bits="tiles")
    layers = [getattr(layer, name) for part in (frame.slow, frame._fast) for layer in part._layers for name in PRODUCTS]
    weights = [*layers, frame._head, frame._fast_head]
    packed = [weight.packed12 for weight in weights if weight.packed12]
    held = sum(weight.words.nbytes for weight in packed)
    plan = plan_memory(config, codec, BFLOAT16, 1, 64, 0, None, twelve_bits="tiles")
    filled_up = 3 * config.slow.dim * 3 // 2  # the head's columns come by fours
    assert 0 <= held - size(plan, "the same in twelve bits") <= filled_up
    tiles = sum(weight.tiles.nbytes for weight in packed if weight.tiles is not None)
    assert tiles == size(plan, "gates and ups again, as tiles") > 0


def test_what_does_not_fit_is_refused_with_the_arithmetic(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    with pytest.raises(ConfigError, match=r"weights 0\.\d\d \+ codec .* = .* GiB, but 0\.00 GiB may be used; lower"):
        Engine.start(EngineConfig(str(tmp_path), memory_bytes=2**20))
