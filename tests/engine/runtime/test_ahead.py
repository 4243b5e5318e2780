"""Frames launched before the previous one is read: takes are the same and contain no extra frames."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from tests.engine.speaking import first_chunk, hear, running_engine, seeded, until

TAKES = [seeded(f"Take number {i}.", seed=i, frames=frames) for i, frames in enumerate((1, 5, 12, 2, 30, 7))]


async def test_takes_drawn_ahead_equal_those_drawn_in_step(tiny_checkpoint: Path) -> None:
    runs = []
    for ahead in (False, True):
        with running_engine(tiny_checkpoint, max_rows=2) as engine:
            engine._loop._runner.ahead = ahead
            runs.append(await asyncio.gather(*(hear(engine, take) for take in TAKES)))
    for in_step, drawn_ahead in zip(*runs, strict=True):
        assert np.array_equal(in_step.codes, drawn_ahead.codes)
        assert np.allclose(in_step.pcm, drawn_ahead.pcm, atol=1e-5)
        assert in_step.reason == drawn_ahead.reason


async def test_slot_of_a_cancelled_take_is_clean_for_the_next(tiny_checkpoint: Path) -> None:
    alone = seeded("The next one.", seed=3, frames=9)
    with running_engine(tiny_checkpoint, max_rows=1) as engine:
        expected = await hear(engine, alone)
        engine._loop._runner.ahead = True
        for _ in range(3):
            chunks, _ = await first_chunk(engine, seeded("Left early.", seed=1, frames=200))
            await chunks.aclose()
            assert np.array_equal((await hear(engine, alone)).codes, expected.codes)
        await until(lambda: engine.stats().running == 0)
