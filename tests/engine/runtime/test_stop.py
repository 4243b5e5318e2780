"""Stopping: jobs already sent to the codec are decoded, and later callers get an error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import AudioChunk, DirectEngine, EngineConfig, EngineError, EngineStopped, Sampling
from engine.model.prompt import Prompt
from engine.runtime.codec_streams import StreamCodes
from engine.runtime.codec_threads import CodecJob, CodecThreads
from engine.runtime.row import Row
from tests.engine.speaking import first_chunk, greedy, hear, running_engine


class OneStream:
    """A codec with room for a single take at a time."""

    is_concurrent = False

    def __init__(self) -> None:
        self._open: list[Hashable] = []

    def decode(self, pieces: Sequence[StreamCodes]) -> list[np.ndarray]:
        return [np.zeros(codes.shape[1], np.float32) for _, codes in pieces]

    def open(self, name: Hashable) -> bool:
        if not self._open:
            self._open.append(name)
        return name in self._open

    def close(self, name: Hashable) -> None:
        if name in self._open:
            self._open.remove(name)

    def names(self) -> list[Hashable]:
        return self._open


@pytest.mark.parametrize("ends", [True, False], ids=["whole takes", "takes without an end"])
def test_jobs_sent_before_a_stop_are_decoded(ends: bool) -> None:
    chunks: list[tuple[str, int]] = []

    def row(name: str) -> Row:
        def sink(item: AudioChunk | EngineError) -> None:
            assert isinstance(item, AudioChunk)
            chunks.append((name, item.first_frame))

        return Row(Prompt(np.zeros(1), np.zeros((1, 1))), Sampling(), 3, sink)

    threads = CodecThreads(OneStream(), torch.device("cpu"), lambda why: pytest.fail(why))
    rows = {name: row(name) for name in "ab"}
    for first in range(3):
        for waiting_row in rows.values():
            threads.put(
                CodecJob(waiting_row, np.zeros((1, 1), np.int16), first, "stop" if ends and first == 2 else None)
            )
    threads.stop()  # the threads have not started, so all jobs still wait
    threads.start()
    stopping = threading.Thread(target=threads.stop, daemon=True)  # this time it waits for their end
    stopping.start()
    stopping.join(60)
    assert not stopping.is_alive(), "what no stream is free for must not keep a stop waiting"
    assert chunks == [(name, first) for name in ("ab" if ends else "a") for first in range(3)]


async def test_clip_sent_while_the_engine_stops_gets_an_error(tiny_checkpoint: Path) -> None:
    with running_engine(tiny_checkpoint) as engine:
        engine.stop()
        with pytest.raises(EngineStopped, match="the engine was stopped"):
            await engine._clip_encoder.encode(np.ones(1000, np.float32), 44_100)


async def test_stopping_an_engine_without_threads_ends_all_takes_with_an_error(tiny_checkpoint: Path) -> None:
    engine = DirectEngine.start(EngineConfig(str(tiny_checkpoint), device="cpu", threads=1, max_waiting=1))
    chunks, _ = await first_chunk(engine, greedy(frames=2000))
    waiting = asyncio.create_task(hear(engine, greedy()))
    await asyncio.sleep(0)
    await asyncio.to_thread(engine.stop)
    with pytest.raises(EngineStopped):
        async for _ in chunks:
            pass
    with pytest.raises(EngineStopped):
        await waiting
    with pytest.raises(EngineStopped):
        await hear(engine, greedy())
    assert (engine.stats().running, engine.stats().waiting) == (0, 0)
