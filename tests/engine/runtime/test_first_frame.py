"""New takes' first frames, drawn from the slow AR's states after their prompts: the takes are the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from engine import Engine
from engine.model.prompt import PrefillChunk
from engine.runtime.plain_frame import PlainFrame
from tests.engine.speaking import Take, first_chunk, hear, paused_loop, running_engine, seeded, until

TAKES = [seeded(f"Take number {i}.", seed=i, frames=frames) for i, frames in enumerate((1, 2, 12, 17, 5, 1))]
SPEAKING = seeded("Speaks all the time.", seed=9, frames=60)


def draw_first_frames_separately(engine: Engine) -> list[int]:
    """As on a GPU, but in plain torch; the list collects the number of rows of each draw."""
    runner, drawn = engine._loop._runner, list[int]()
    model = runner._model
    frame = PlainFrame(model, runner._cache, runner._slots)

    def read(pieces: Sequence[PrefillChunk]) -> Tensor:
        hidden = []
        for piece in pieces:
            positions = torch.arange(piece.start, piece.start + len(piece.steps))[None]
            span = runner._cache.span(slice(piece.slot, piece.slot + 1), piece.start)
            hidden.append(model.slow.states(model.embed_prompt(piece.steps), positions, span)[0])
        return torch.cat(hidden)

    def draw(hidden: Sequence[Tensor], slots: Sequence[int]) -> Tensor:
        drawn.append(len(slots))
        return frame.draw(torch.stack(list(hidden)), torch.tensor(slots), max(take.sampling.top_k for take in TAKES))

    runner._frame, runner._read, runner._draw_first, runner.ahead = frame, read, draw, True
    return drawn


@pytest.fixture(scope="module")
def alone(quick_checkpoint: Path) -> list[Take]:
    """The takes of TAKES and SPEAKING, one after another."""

    async def hear_all() -> list[Take]:
        return [await hear(engine, take) for take in (*TAKES, SPEAKING)]

    with running_engine(quick_checkpoint, max_rows=4) as engine:
        return asyncio.run(hear_all())


@pytest.mark.parametrize("at_once", [1, 2, 3])
async def test_separate_first_frames_change_neither_new_takes_nor_running_ones(
    quick_checkpoint: Path, alone: list[Take], at_once: int
) -> None:
    *expected, unbroken = alone
    with running_engine(quick_checkpoint, max_rows=4) as engine:
        drawn = draw_first_frames_separately(engine)
        chunks, first = await first_chunk(engine, SPEAKING)
        takes = []
        for at in range(0, len(TAKES), at_once):
            with paused_loop(engine):
                submitted = [asyncio.create_task(hear(engine, take)) for take in TAKES[at : at + at_once]]
                await until(lambda: engine._loop._commands.qsize() == len(submitted))  # noqa: B023
            takes += await asyncio.gather(*submitted)
        cancelled, _ = await first_chunk(engine, TAKES[-1])
        await cancelled.aclose()
        codes = np.concatenate([first.codes, *[chunk.codes async for chunk in chunks]], axis=1)
        await until(lambda: engine.stats().running == 0)
        assert drawn == [1, *{1: [1] * 6, 2: [2] * 3, 3: []}[at_once], 1]
        assert engine.stats().book_errors == 0
    for one, other in zip(expected, takes, strict=True):
        assert np.array_equal(one.codes, other.codes)
        assert one.reason == other.reason
        assert [chunk.first_frame for chunk in other.chunks] == sorted(chunk.first_frame for chunk in other.chunks)
    assert np.array_equal(codes, unbroken.codes)
