"""A newcomer's first frame, drawn from what its prompt has left in the slow AR: the take is the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine import Engine
from engine.model.prompt import PrefillChunk
from engine.runtime.plain_frame import PlainFrame
from tests.engine.speaking import first_chunk, hear, running_engine, seeded, until

NEWCOMERS = [seeded(f"Take number {i}.", seed=i, frames=frames) for i, frames in enumerate((1, 2, 12, 30))]
SPEAKING = seeded("Speaks all the time.", seed=9, frames=400)


def draw_first_frames_apart(engine: Engine) -> list[int]:
    """As on a GPU, but in plain torch; the slots for which that is done."""
    runner, slots = engine._loop._runner, list[int]()
    model = runner._model
    frame = PlainFrame(model, runner._cache, runner._slots)

    def read(pieces: Sequence[PrefillChunk]) -> Tensor:
        hidden = []
        for piece in pieces:
            positions = torch.arange(piece.start, piece.start + len(piece.ids))[None]
            span = runner._cache.span(slice(piece.slot, piece.slot + 1), piece.start)
            hidden.append(model.slow(runner._embed(piece.ids, piece.codes), positions, span)[0])
        return torch.cat(hidden)

    def draw(hidden: Tensor, slot: int) -> Tensor:
        slots.append(slot)
        return frame.draw(hidden, torch.tensor([slot]), max(take.sampling.top_k for take in NEWCOMERS))

    runner._frame, runner._read, runner._draw_first, runner.ahead = frame, read, draw, True
    return slots


async def test_who_comes_alone_says_the_same_beside_others_and_they_do_not_hear_it(tiny_checkpoint: Path) -> None:
    with running_engine(tiny_checkpoint, max_rows=3) as engine:
        expected = [await hear(engine, take) for take in NEWCOMERS]
        unbroken = await hear(engine, SPEAKING)
        drawn = draw_first_frames_apart(engine)
        chunks, first = await first_chunk(engine, SPEAKING)
        heard = [await hear(engine, take) for take in NEWCOMERS]
        left, _ = await first_chunk(engine, NEWCOMERS[-1])
        await left.aclose()
        codes = np.concatenate([first.codes, *[chunk.codes async for chunk in chunks]], axis=1)
        await until(lambda: engine.stats().running == 0)
        assert len(drawn) == 1 + len(NEWCOMERS) + 1
        assert engine.stats().book_errors == 0
    for one, other in zip(expected, heard, strict=True):
        assert np.array_equal(one.codes, other.codes)
        assert one.reason == other.reason
        assert [chunk.first_frame for chunk in other.chunks] == sorted(chunk.first_frame for chunk in other.chunks)
    assert np.array_equal(codes, unbroken.codes)
