"""Machines and loads that native code does not suit: they speak, the same take, and say why it is slower."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from engine.native import library
from tests.engine.speaking import hear, running_engine, seeded

BUNDLED = Path(__file__).parents[3] / "assets" / "fry"


async def test_a_processor_without_fast_products_speaks_and_is_named() -> None:
    assert library.use_isa("base")
    with running_engine(BUNDLED) as engine:
        take = await hear(engine, seeded("Hello.", 1))
        path = engine.info.frame_path
    assert len(take.pcm) and np.isfinite(take.pcm).all()
    assert path.startswith("native code without ") and "which this processor lacks" in path


async def test_four_takes_and_a_clip_encoded_meanwhile_are_as_alone_on_half_a_core(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    monkeypatch.setattr("engine.config.CPU_LIMIT", tmp_path / "cpu.max")
    utterances = [seeded(f"Take number {number}.", number) for number in range(4)]
    clip = np.random.default_rng(1).standard_normal(2 * 44_100).astype(np.float32) / 9
    with running_engine(BUNDLED, max_rows=4) as engine:
        assert engine.info.frame_path.endswith(", on 0.5 of a core: allow its container more")
        alone = [await hear(engine, utterance) for utterance in utterances]
        codes = (await engine.encode_reference(clip, 44_100, "Some words.")).codes
        takes = asyncio.gather(*(hear(engine, utterance) for utterance in utterances))
        beside = await engine.encode_reference(clip, 44_100, "Some words.")
        together = await takes
    assert (beside.codes == codes).all()
    for one, other in zip(alone, together, strict=True):
        assert (one.codes == other.codes).all() and (one.pcm == other.pcm).all()
