"""The codec's threads: awaited chunks do not wait for other takes, and each take's chunks stay in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.engine_errors import EngineError
from engine.model.prompt import Prompt
from engine.runtime.codec_streams import StreamCodes
from engine.runtime.codec_threads import CodecJob, CodecThreads
from engine.runtime.row import Row
from engine.types import AudioChunk, Sampling
from tests.engine.speaking import hear, running_engine, seeded


class Streams:
    """Streams for any number of takes; a batch with the held row lasts until it is released."""

    is_concurrent = True

    def __init__(self) -> None:
        self.held: Hashable = None
        self.started, self.release = threading.Event(), threading.Event()
        self._open: set[Hashable] = set()

    def decode(self, pieces: Sequence[StreamCodes]) -> list[np.ndarray]:
        if self.held in [name for name, _ in pieces] and not self.started.is_set():
            self.started.set()
            assert self.release.wait(60)
        return [np.zeros(codes.shape[1], np.float32) for _, codes in pieces]

    def open(self, name: Hashable) -> bool:
        self._open.add(name)
        return True

    def close(self, name: Hashable) -> None:
        self._open.discard(name)

    def names(self) -> list[Hashable]:
        return list(self._open)


def test_awaited_chunk_waits_only_for_its_own_take() -> None:
    chunks: list[tuple[str, int]] = []
    first_of_b = threading.Event()

    def row(name: str) -> Row:
        def sink(item: AudioChunk | EngineError) -> None:
            assert isinstance(item, AudioChunk)
            chunks.append((name, item.first_frame))
            if name == "b":
                first_of_b.set()

        return Row(Prompt(np.zeros(1), np.zeros((1, 1))), Sampling(), 9, sink)

    streams, a, b = Streams(), row("a"), row("b")
    streams.held = a
    threads = CodecThreads(streams, torch.device("cpu"), lambda why: pytest.fail(why))
    threads.start()
    codes = np.zeros((1, 1), np.int16)
    threads.put(CodecJob(a, codes, 0, None, is_awaited=False))
    assert streams.started.wait(60)
    threads.put(CodecJob(a, codes, 1, "stop"), CodecJob(b, codes, 0, None))
    assert first_of_b.wait(60), "b waits for nobody's sound but its own"
    assert chunks == [("b", 0)]
    streams.release.set()
    threads.stop()
    assert chunks[1:] == [("a", 0), ("a", 1)]
    assert streams.names() == [b]


async def test_takes_are_the_same_if_their_chunks_are_batched(tiny_checkpoint: Path) -> None:
    takes = [seeded("Say this.", seed, 60) for seed in range(3)]

    async def codes_of(frame_seconds: float | None) -> list[np.ndarray]:
        with running_engine(tiny_checkpoint, max_rows=3) as engine:
            engine._loop._frame_seconds = frame_seconds  # as on a GPU, where a listener plays in real time

            async def codes(number: int) -> np.ndarray:
                chunks = [chunk async for chunk in engine.speak(takes[number])]
                frames = np.cumsum([0, *(chunk.frames for chunk in chunks)])
                assert [chunk.first_frame for chunk in chunks] == frames[:-1].tolist()
                return np.concatenate([chunk.codes for chunk in chunks], 1)

            return await asyncio.gather(*(codes(number) for number in range(len(takes))))

    for gathered, usual in zip(await codes_of(3600.0), await codes_of(None), strict=True):
        assert np.array_equal(gathered, usual)


@pytest.mark.parametrize("frame_seconds", [None, 60.0], ids=["nothing buffered", "minutes buffered"])
async def test_last_chunk_is_awaited_only_without_buffered_audio(
    tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch, frame_seconds: float | None
) -> None:
    jobs: list[CodecJob] = []

    def put(threads: CodecThreads, *new: CodecJob, put: Callable[..., None] = CodecThreads.put) -> None:
        jobs.extend(new)
        put(threads, *new)

    monkeypatch.setattr(CodecThreads, "put", put)
    with running_engine(tiny_checkpoint) as engine:
        engine._loop._frame_seconds = frame_seconds
        jobs.clear()  # those from the warm-up
        await hear(engine, seeded("Say this.", 3, 20))
    first, *_, last = [job for job in jobs if job.codes.shape[0]]
    assert first.is_awaited and last.finish_reason and last.is_awaited == (frame_seconds is None)
