"""Weights in fewer bits: their error, loading a checkpoint into them, and their effect on takes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import ConfigError, EngineConfig, Sampling, Utterance
from engine.checkpoint import load
from engine.config import Weights
from engine.forced_logits import Spoken, agreement, forced_logits
from engine.model.stored_weight import StoredWeight
from tests.engine.speaking import hear, running_engine

TEXTS = [
    Utterance(text, (), Sampling(seed=0))
    for text in (
        "The morning was quiet, and the harbour lay under a thin mist.",
        "One boat after the other came home.",
    )
]
FRY = Path(__file__).resolve().parents[3] / "assets/fry"
CPU = torch.device("cpu")


@pytest.mark.parametrize(("bits", "error", "step"), [(8, 0.01, 127), (6, 0.03, 31)])
def test_quantised_weight_is_off_by_at_most_half_a_step(bits: int, error: float, step: int) -> None:
    weight = torch.randn(48, 192, generator=torch.Generator().manual_seed(0)).bfloat16()
    weight[3], weight[5, 7] = 0, 20.0
    stored = StoredWeight.of(weight, bits)
    dequantised, wide = stored.dequantised(torch.float32), weight.float()
    groups = wide.unflatten(1, (-1, 64 if bits == 6 else 192))
    largest = groups.abs().amax(2, keepdim=True).expand_as(groups).flatten(1)
    assert stored.shape == (48, 192)
    assert ((dequantised - wide).abs() <= 0.51 * largest / step + 1e-6).all()  # float16 scales are rounded, too
    assert (dequantised[6:] - wide[6:]).norm() <= error * wide[6:].norm()
    parts = [half.dequantised(torch.float32) for half in stored.halves()]
    assert torch.equal(torch.cat(parts), dequantised)
    again = StoredWeight.of(weight[:24], bits).joined(StoredWeight.of(weight[24:], bits))
    assert torch.equal(again.dequantised(torch.float32), dequantised)


def test_six_bit_weights_store_every_value_at_every_position() -> None:
    numbers = torch.arange(-31, 33).clamp(max=31).float()
    weight = torch.stack([numbers.roll(shift) for shift in range(64)])
    assert torch.equal(StoredWeight.of(weight, 6).dequantised(torch.float32), weight)


def test_pairing_keeps_eight_bit_weights_in_the_same_memory() -> None:
    weight = torch.randn(48, 192, generator=torch.Generator().manual_seed(0))
    stored = StoredWeight.of(weight, 8)
    expected = stored.dequantised(torch.float32)
    paired = stored.paired()
    assert paired.shape == (48, 192)
    assert paired.values.data_ptr() == stored.values.data_ptr()
    assert torch.equal(paired.dequantised(torch.float32), expected)
    assert torch.equal(paired.paired().dequantised(torch.float32), expected)
    whole = next(paired.halves()).joined(StoredWeight.of(weight[24:], 8).paired())
    assert torch.equal(whole.dequantised(torch.float32), expected)
    with pytest.raises(ValueError, match="by 16 inputs, not 24: use 16 bits"):
        StoredWeight.of(torch.ones(2, 24), 8).paired()


@pytest.mark.parametrize("has_bfloat16", [True, False])
@pytest.mark.parametrize(("bits", "inputs"), [(8, 192), (8, 204), (6, 192)])
@torch.inference_mode()
def test_cpu_products_match_the_dequantised_weight(
    bits: int, inputs: int, has_bfloat16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 204 inputs, torch's own product of eight bits reads beyond the end."""
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: has_bfloat16)
    generator = torch.Generator().manual_seed(1)
    stored = StoredWeight.of(torch.randn(75, inputs, generator=generator), bits)
    for rows in (1, 5, 16, 17, 128, 131):
        x = torch.randn(2, rows, inputs, generator=generator)
        exact = x @ stored.dequantised(torch.float32).T
        product, into = stored.times(x), torch.empty(2, rows, 75)
        assert (product - exact).norm() <= (0.005 if bits == 8 else 1e-6) * exact.norm()
        assert stored.times(x, into) is into and torch.equal(into, product)
        assert stored.times(x.bfloat16()).dtype == torch.bfloat16


@torch.inference_mode()
def test_eight_bit_product_of_a_row_does_not_depend_on_its_batch() -> None:
    generator = torch.Generator().manual_seed(2)
    stored, x = StoredWeight.of(torch.randn(70, 96, generator=generator), 8), torch.randn(16, 96, generator=generator)
    together = stored.times(x)
    for rows in range(1, 9):
        alone = [stored.times(part) for part in x.split(rows)]
        assert torch.equal(torch.cat(alone), together)


@pytest.fixture(scope="module")
def spoken() -> list[Spoken]:
    async def speak() -> list[Spoken]:
        with running_engine(FRY, max_rows=1) as engine:
            return [(text, (await hear(engine, text)).codes) for text in TEXTS]

    return asyncio.run(speak())


@pytest.mark.parametrize(("weights", "semantic", "residual"), [("int8", 0.0005, 0.003), ("int6", 0.003, 0.006)])
@torch.inference_mode()
def test_quantisation_hardly_changes_the_bundled_models_logits(
    spoken: list[Spoken], weights: Weights, semantic: float, residual: float
) -> None:
    published, held = (load(FRY, CPU, CPU, torch.float32, weights=kind) for kind in ("bf16", weights))
    difference = agreement(*(forced_logits(checkpoint, spoken) for checkpoint in (published, held)))
    assert 0 < difference.semantic_kl <= semantic and 0 < difference.residual_kl <= residual
    assert held.fingerprint == published.fingerprint and held.parameters == published.parameters
    size = sum(p.nbytes for p in held.model.slow.layers.state_dict().values())
    assert size < (0.29 if weights == "int8" else 0.23) * sum(
        p.nbytes for p in published.model.slow.layers.parameters()
    )


async def test_an_engine_with_quantised_weights_speaks_and_aligns_words() -> None:
    with running_engine(FRY, weights="int8", max_rows=1, max_context=512) as engine:
        take = await hear(engine, Utterance("One boat came home.", (), Sampling(seed=1), max_frames=80))
        times = await engine.align("One boat came home.", take.codes)
    assert np.abs(take.pcm).max() > 0.05
    assert (np.diff(times) >= 0).all() and 0 < times[-1] <= take.codes.shape[1] / engine.info.frame_rate
    assert "weights (int8)" in engine.info.memory


def test_weights_must_be_one_of_three_formats(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="weights 'int4' is not one of bf16, int8, int6"):
        EngineConfig("m", weights="int4")  # type: ignore[arg-type]
