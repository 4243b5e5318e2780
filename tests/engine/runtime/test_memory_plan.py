"""The engine's memory, planned before anything is loaded: sizes that fit, refusals, and further memory in use."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.full_size import AUDIO8, S2_PRO, SHAPES
from engine import ConfigError, Engine, EngineConfig
from engine.checkpoint import open_source
from engine.checkpoint.qwen3_tts import read_config
from engine.codec import CodecConfig, QwenCodecConfig
from engine.config import ModelConfig, Weights
from engine.model.dual_ar import DualAR
from engine.runtime import memory_plan, setup
from engine.runtime.memory_plan import (
    GIB,
    UNPLANNED,
    UNPLANNED_COMPACT,
    EngineSize,
    MemoryPlan,
    frame_cost,
    largest,
    plan_memory,
    sizes,
    weights_on_cpu,
)
from engine.runtime.runner import Runner
from engine.runtime.setup import Place, Sizing
from tests.engine.kernels.interpreter import DEVICE
from tests.tiny import TinyModel, write_checkpoint

fused = pytest.importorskip("engine.fused.frame")

FRY = Path(__file__).resolve().parents[3] / "assets/fry"
BFLOAT16 = torch.bfloat16
PRODUCTS = ("qkv", "output", "gate_up", "down")


@pytest.fixture
def s2_pro(tmp_path: Path) -> ModelConfig:
    (tmp_path / "config.json").write_text(json.dumps(S2_PRO))
    return open_source(tmp_path).config


def bytes_of(plan: MemoryPlan, name: str) -> int:
    return dict(plan.items)[name]


def choose_size(
    config: ModelConfig, free: float, weights: Weights | None = None, rows: int | None = None
) -> tuple[EngineSize, MemoryPlan]:
    """Return the size that an engine with no other settings gets with this many free GiB on a GPU."""

    def plan(size: EngineSize) -> MemoryPlan:
        return plan_memory(config, CodecConfig(), BFLOAT16, size, None, "tf32")

    tries = sizes(rows, None, weights, rows or 8, config.max_context, quantise=True, compact=True)
    return largest(tries, plan, int(free * GIB))


@pytest.mark.parametrize(("tree", "weights"), [(None, "bf16"), (AUDIO8, "int8"), (S2_PRO, "int8")])
def test_large_models_use_int8_on_a_cpu_that_can_multiply_it(
    tree: dict[str, Any] | None, weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(tree))
    source = open_source(tmp_path if tree else FRY)
    monkeypatch.setattr(memory_plan, "multiplies_eight_bits", lambda: True)
    assert weights_on_cpu(source.config) == weights
    monkeypatch.setattr(memory_plan, "multiplies_eight_bits", lambda: False)
    assert weights_on_cpu(source.config) == "bf16"


def test_four_rows_of_4096_positions_of_s2_pro_fit_into_14_gib(s2_pro: ModelConfig) -> None:
    plan = plan_memory(s2_pro, CodecConfig(), BFLOAT16, EngineSize(4, 4096, "bf16"), 2**29, "float32")
    plan.check(14 * GIB)
    assert plan.fits(14 * GIB, spare=14 * GIB - plan.total) and not plan.fits(14 * GIB, spare=GIB)
    more = plan_memory(s2_pro, CodecConfig(), BFLOAT16, EngineSize(4, 4096, "bf16"), 2**29, "float32", "words")
    assert not more.fits(14 * GIB)


def test_quantised_weights_save_the_expected_memory(s2_pro: ModelConfig) -> None:
    held = [
        plan_memory(s2_pro, CodecConfig(), BFLOAT16, EngineSize(1, 1024, weights), 0, "float32").items[0][1]
        for weights in ("bf16", "int8", "int6")
    ]
    layer = 2560 * (6144 + 4096 + 3 * 9728)  # weights
    rows = 6144 + 2560 + 2 * 9728 + 2560
    table = 155_776 * 2560 * 2  # of text tokens; stays in the host's memory with fewer bits
    assert held[0] - held[1] == 40 * (layer - 4 * rows) + table  # a byte per weight, and a four-byte scale per row
    assert held[1] - held[2] == 36 * (layer * 28 // 128 + 4 * rows)  # six bits, and 16 per 64 weights


@torch.inference_mode()
def test_twelve_bit_weights_take_the_planned_memory(tmp_path: Path) -> None:
    heads: dict[str, Any] = {"n_head": 8, "fast_n_head": 8, "intermediate_size": 256, "fast_intermediate_size": 128}
    folder = write_checkpoint(tmp_path, model=TinyModel(dim=128, fast_dim=128, **heads))
    config, codec = open_source(folder).config, CodecConfig.of(folder)
    model = DualAR(config).to(DEVICE, BFLOAT16)
    runner = Runner(model, 1, 64)
    frame = fused.FusedFrame(model, runner._cache, runner._slots, True, twelve_bits="tiles")
    layers = [getattr(layer, name) for part in (frame.slow, frame._fast) for layer in part._layers for name in PRODUCTS]
    weights = [*layers, frame._head, *frame._fast_heads]
    packed = [weight.packed12 for weight in weights if weight.packed12]
    held = sum(weight.words.nbytes for weight in packed)
    plan = plan_memory(config, codec, BFLOAT16, EngineSize(1, 64, "bf16"), 0, None, "tiles")
    padding = 3 * config.slow.dim * 3 // 2  # the head's columns are padded to multiples of four
    assert 0 <= held - bytes_of(plan, "the same in twelve bits") <= padding
    tiles = sum(weight.tiles.nbytes for weight in packed if weight.tiles is not None)
    assert tiles == bytes_of(plan, "gates and ups again, as tiles") > 0


@pytest.mark.parametrize(
    ("free", "expected"),
    [  # as in docs/hosting.md, by the free memory of a card of 6, 8, 10, 12, 16 or 24 GB at the start
        (4.7, EngineSize(1, 2048, "int6", compact=True)),
        (5.5, EngineSize(1, 2048, "int6", compact=True)),
        (6.6, EngineSize(2, 2048, "int8", compact=True)),
        (7.4, EngineSize(4, 2048, "int8", compact=True)),
        (9.3, EngineSize(4, 4096, "int8")),
        (11.2, EngineSize(6, 4096, "int8")),
        (15.1, EngineSize(6, 4096, "bf16")),
        (22.9, EngineSize(8, 4096, "bf16")),
    ],
)
def test_unset_sizes_are_chosen_by_available_memory(s2_pro: ModelConfig, free: float, expected: EngineSize) -> None:
    size, memory = choose_size(s2_pro, free)
    spare = UNPLANNED_COMPACT if size.compact else UNPLANNED
    assert size == expected and memory.fits(int(free * GIB), spare=spare)
    assert free < 5 or memory.fits(int(free * GIB), spare=memory.on_demand)


def test_size_after_one_that_ran_out_of_memory_is_the_next_one(s2_pro: ModelConfig) -> None:
    cuda = torch.device("cuda")
    sizing = Sizing(EngineConfig(""), Place(cuda, cuda, BFLOAT16, None), s2_pro, CodecConfig())
    size, memory = sizing.largest(int(7.4 * GIB))
    for expected in [(2, 4096, "int8"), (3, 2048, "int8"), (2, 2048, "int8"), (1, 2048, "int6"), (1, 1024, "int6")]:
        size, memory = sizing.largest(int(7.4 * GIB), memory)
        assert size == (*expected, True)
    with pytest.raises(ConfigError, match="no smaller size"):
        sizing.largest(int(7.4 * GIB), memory)
    assert sizing.largest(int(5.2 * GIB), sizing.largest(int(7.4 * GIB))[1])[0].weights == "int6", "with less free now"


def test_a_budget_beyond_the_free_memory_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (6 * GIB, 24 * GIB))
    budgets = [
        setup._budget(EngineConfig("", memory_bytes=size), torch.device("cuda")) for size in (None, GIB, 8 * GIB)
    ]
    assert budgets == [6 * GIB, GIB, 6 * GIB]


def test_explicit_sizes_are_kept(s2_pro: ModelConfig) -> None:
    assert choose_size(s2_pro, 11.2, "bf16")[0] == EngineSize(2, 4096, "bf16", compact=True)
    assert choose_size(s2_pro, 10.0, "bf16")[0] == EngineSize(1, 2048, "bf16", compact=True)
    assert choose_size(s2_pro, 39.0, rows=64)[0] == EngineSize(64, 2048, "bf16")
    assert choose_size(s2_pro, 22.9, "int8")[0] == EngineSize(8, 4096, "int8")
    assert sizes(3, 1500, "int8", 8, 4096, True, compact=False) == [EngineSize(3, 1500, "int8")]
    assert {size.weights for size in sizes(None, None, None, 8, 4096, quantise=False, compact=False)} == {"bf16"}
    with pytest.raises(ConfigError, match=r"weights \(int6\) 3\.27 .* = 3\.97 GiB, but 3\.60 GiB may be used"):
        choose_size(s2_pro, 3.6)


def test_an_engine_with_little_memory_has_fewer_rows(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, TinyModel(max_seq_len=4096))
    config, codec = open_source(folder).config, CodecConfig.of(folder)
    two, three = (
        plan_memory(config, codec, torch.float32, EngineSize(rows, 4096, "bf16"), 0, None, on_gpu=False).total
        for rows in (2, 3)
    )
    engine = Engine.start(EngineConfig(str(folder), device="cpu", prefix_bytes=0, memory_bytes=(two + three) // 2))
    engine.stop()
    assert (engine.info.max_rows, engine.info.max_context) == (2, 4096)


def test_qwens_codec_has_its_own_size_and_cost(s2_pro: ModelConfig) -> None:
    """As published: 2.48 G products a frame, and streams that keep 1.3 M values, of convolutions twice."""
    codec, size = QwenCodecConfig(), EngineSize(1, 64, "bf16")
    plain, fused_plan = (plan_memory(s2_pro, codec, BFLOAT16, size, 0, precision) for precision in (None, "tf32"))
    assert bytes_of(plain, "codec") == 4 * 169_672_673 > bytes_of(fused_plan, "codec")
    assert 4 * 1.3e6 < bytes_of(plain, "1 codec stream") < 1.25 * 4 * 1.3e6
    assert frame_cost(s2_pro, codec, BFLOAT16, "bf16").codec_operations == pytest.approx(2 * 2.48e9, rel=0.01)


@pytest.mark.parametrize(
    ("name", "budget", "expected"),
    [
        ("qwen3-tts-0.6b-base", 4, EngineSize(4, 2048, "int8")),
        ("qwen3-tts-0.6b-base", 3, EngineSize(2, 4096, "int8", compact=True)),
        ("qwen3-tts-1.7b-base", 6, EngineSize(4, 4096, "int8")),
        ("qwen3-tts-1.7b-base", 3.5, EngineSize(3, 2048, "int8", compact=True)),
    ],
)
def test_qwens_eight_bits_fit_small_cards_with_their_encoders(name: str, budget: float, expected: EngineSize) -> None:
    model, codec, cuda = read_config(SHAPES[name]), QwenCodecConfig(), torch.device("cuda")
    config = EngineConfig("", weights="int8", codec_dtype="tf32")
    size, memory = Sizing(config, Place(cuda, cuda, BFLOAT16, None), model, codec).largest(int(budget * GIB))
    assert size == expected
    assert memory.fits(int(budget * GIB), UNPLANNED_COMPACT if size.compact else UNPLANNED)
    on_demand = plan_memory(model, codec, BFLOAT16, size._replace(compact=True), None, "tf32").on_demand
    assert on_demand - 3 * GIB // 8 == pytest.approx(4 * 64.3e6, rel=0.01), "Mimi and both forms of the books"
    on_cpu = plan_memory(model, codec, torch.float32, size, None, None, on_gpu=False)
    assert bytes_of(on_cpu, "voice encoder") == pytest.approx(4 * (8.85e6 if "0.6b" in name else 12e6), rel=0.01)


def test_plan_beyond_the_memory_is_refused_with_the_arithmetic(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    with pytest.raises(ConfigError, match=r"weights 0\.\d\d \+ codec .* = .* GiB, but 0\.00 GiB may be used; lower"):
        Engine.start(EngineConfig(str(tmp_path), memory_bytes=2**20))


def test_engine_loads_in_the_next_smaller_size_if_memory_runs_out(
    tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_codec, steps, tried = setup._streams, list[str](), list[EngineSize]()

    def streams(codec: Any, plan: Any, precision: Any) -> Any:
        tried.append(plan.size)
        if len(tried) % 2:
            raise torch.OutOfMemoryError("there is none")
        return load_codec(codec, plan, precision)

    monkeypatch.setattr(setup, "_streams", streams)
    config = EngineConfig(str(tiny_checkpoint), device="cpu", threads=1, memory_bytes=2 * GIB)
    engine = Engine.start(config, lambda step, done: steps.append(step))
    engine.stop()
    assert [size.rows for size in tried] == [4, 3] and engine.info.max_rows == 3
    assert any(step.startswith("memory ran out, loading again with 0.") for step in steps) and steps[-1] == "ready"
    with pytest.raises(ConfigError, match=r"memory ran out, although this plan fitted: weights .* lower max_rows"):
        Engine.start(replace(config, max_rows=2, max_context=256))  # explicit sizes are not reduced
