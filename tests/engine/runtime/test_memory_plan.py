"""The engine's memory, planned before anything is loaded: what fits, what is refused, what is held besides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.full_size import S2_PRO
from engine import ConfigError, Engine, EngineConfig
from engine.checkpoint import open_source
from engine.codec import CodecConfig
from engine.config import ModelConfig
from engine.model.dual_ar import DualAR
from engine.runtime.memory_plan import GIB, UNPLANNED, MemoryPlan, Size, largest, plan_memory, sizes
from engine.runtime.runner import Runner
from tests.engine.kernels.interpreter import DEVICE
from tests.tiny import TinyModel, write_checkpoint

fused = pytest.importorskip("engine.fused.frame")

BFLOAT16 = torch.bfloat16
PRODUCTS = ("qkv", "output", "gate_up", "down")


@pytest.fixture
def s2_pro(tmp_path: Path) -> ModelConfig:
    (tmp_path / "config.json").write_text(json.dumps(S2_PRO))
    return open_source(tmp_path).config


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
    weights = [
        size(plan, name) for plan, name in zip(plans, ("weights", "weights (fp8)", "weights (fp8-all)"), strict=True)
    ]
    packed12 = [size(plan, "the same in twelve bits") for plan in plans]
    assert weights[0] - weights[1] == 36 * 3 * 2560 * 9728  # the slow AR's feed-forward, a byte each
    assert packed12[0] - packed12[1] == 36 * 3 * 2560 * 9728 * 3 // 2
    assert weights == sorted(weights, reverse=True) and packed12[2] == (4097 + 4096) * 2560 * 3 // 2  # two heads
    tiles = [size(plan, "gates and ups again, as tiles") for plan in plans]
    assert tiles == [layers * 2 * 2560 * 9728 * 3 // 2 for layers in (36 + 4, 4, 0)]


@torch.inference_mode()
def test_what_is_held_in_twelve_bits_takes_what_was_planned(tmp_path: Path) -> None:
    heads: dict[str, Any] = {"n_head": 8, "fast_n_head": 8, "intermediate_size": 256, "fast_intermediate_size": 128}
    folder = write_checkpoint(tmp_path, model=TinyModel(dim=128, fast_dim=128, **heads))
    config, codec = open_source(folder).config, CodecConfig.of(folder)
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


@pytest.mark.parametrize(
    ("free", "float8", "chosen"),
    [  # as docs/hosting.md has it, by what a card of 12, 16 or 24 GB has free at the start
        (11.2, True, Size(2, 2048, "fp8")),
        (11.2, False, Size(1, 1024, "dtype")),
        (15.1, True, Size(6, 4096, "dtype")),
        (22.9, True, Size(8, 4096, "dtype")),
    ],
)
def test_what_is_not_set_is_chosen_by_the_memory_there_is(
    s2_pro: ModelConfig, free: float, float8: bool, chosen: Size
) -> None:
    budget = int(free * GIB)

    def plan(size: Size) -> MemoryPlan:
        return plan_memory(s2_pro, CodecConfig(), BFLOAT16, size.rows, size.context, 2**29, "float32", size.weights)

    picked, memory = largest(sizes(None, None, None, 8, s2_pro.max_context, float8), plan, budget, UNPLANNED)
    assert picked == chosen and memory.fits(budget)
    picked, _ = largest(sizes(3, 1500, "fp8", 8, s2_pro.max_context, float8), plan, budget, 0)
    assert picked == Size(3, 1500, "fp8")
    with pytest.raises(ConfigError, match=r"10\.10 before weights are in 8 bits, but 10\.00 GiB may be used"):
        largest(sizes(1, 1024, "fp8", 8, s2_pro.max_context, float8), plan, 10 * GIB, 0)


def test_an_engine_with_little_memory_has_fewer_rows(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, TinyModel(max_seq_len=4096))
    config, codec = open_source(folder).config, CodecConfig.of(folder)
    two, three = (plan_memory(config, codec, torch.float32, rows, 4096, 0, None).total for rows in (2, 3))
    engine = Engine.start(EngineConfig(str(folder), device="cpu", prefix_bytes=0, memory_bytes=(two + three) // 2))
    engine.stop()
    assert (engine.info.max_rows, engine.info.max_context) == (2, 4096)


def test_what_does_not_fit_is_refused_with_the_arithmetic(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    with pytest.raises(ConfigError, match=r"weights 0\.\d\d \+ codec .* = .* GiB, but 0\.00 GiB may be used; lower"):
        Engine.start(EngineConfig(str(tmp_path), memory_bytes=2**20))
