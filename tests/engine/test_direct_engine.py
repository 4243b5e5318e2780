"""The engine without threads: the same takes as with threads, here and in a forked process, one at a time."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import AudioChunk, DirectEngine, EngineConfig, EngineFull, PromptTooLong, Utterance
from tests.engine.speaking import first_chunk, greedy, hear, running_engine, seeded, until


def run_in_fork(task: Callable[..., Any], seconds: Callable[..., float]) -> Callable[..., Any]:
    """Imitate ZeroGPU: each call runs in a fork of this process, with arguments and results pickled."""

    def work(out: Any, arguments: bytes) -> None:
        result = task(*pickle.loads(arguments))
        for item in result if isinstance(result, Iterator) else [result]:
            out.send(item)
        out.send(None)

    def results(*arguments: Any) -> Iterator[Any]:
        assert seconds(*arguments) > 0
        here, there = multiprocessing.get_context("fork").Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=work, args=(there, pickle.dumps(arguments)))
        process.start()
        there.close()
        try:
            while (item := here.recv()) is not None:
                yield item
        finally:
            process.kill()
            process.join()

    return results if task.__name__ == "speak_now" else lambda *arguments: next(results(*arguments))


async def collect(chunks: AsyncGenerator[AudioChunk, None]) -> list[AudioChunk]:
    return [chunk async for chunk in chunks]


ALONE = pytest.param(run_in_fork, id="in a fork", marks=pytest.mark.alone)
"""Alone: a lock held by a thread of another test's studio would never be released in the fork."""


@pytest.fixture(params=[pytest.param(None, id="here"), ALONE])
def direct(request: pytest.FixtureRequest, tiny_checkpoint: Path) -> Iterator[DirectEngine]:
    config = EngineConfig(str(tiny_checkpoint), device="cpu", threads=1, max_waiting=1)
    engine = DirectEngine.start(config, on_gpu=request.param)
    yield engine
    engine.stop()


async def test_direct_engine_gives_the_same_takes_and_codes_as_the_engine(
    direct: DirectEngine, tiny_checkpoint: Path
) -> None:
    clip = np.sin(np.arange(44_100, dtype=np.float32) / 20)
    with running_engine(tiny_checkpoint, threads=1) as engine:
        reference = await engine.encode_reference(clip, 44_100, "A tone.")
        wanted = [await hear(engine, greedy()), await hear(engine, seeded("More words.", 7, references=(reference,)))]
        times = await engine.align("More words.", wanted[1].codes)
    again = await direct.encode_reference(clip, 44_100, "A tone.")
    assert np.array_equal(again.codes, reference.codes)
    for take, utterance in zip(wanted, (greedy(), seeded("More words.", 7, references=(again,))), strict=True):
        spoken = await hear(direct, utterance)
        assert np.array_equal(spoken.codes, take.codes) and spoken.reason == take.reason
        np.testing.assert_allclose(spoken.pcm, take.pcm, atol=1e-5)
    np.testing.assert_allclose(await direct.align("More words.", wanted[1].codes), times, atol=1e-6)
    stats = direct.stats()
    assert (stats.finished, stats.running, stats.frames) == (2, 0, 24)


async def test_one_take_runs_at_a_time_and_closing_it_starts_the_next(direct: DirectEngine) -> None:
    chunks, _ = await first_chunk(direct, greedy(frames=2000))
    second = asyncio.create_task(hear(direct, greedy()))
    await until(lambda: direct.stats().waiting == 1)
    with pytest.raises(EngineFull):
        await hear(direct, greedy())
    await chunks.aclose()
    assert len((await second).codes[0]) == 12
    assert direct.stats().cancelled == 1


async def test_cancelled_waiters_take_no_thread_from_the_active_take(tiny_checkpoint: Path) -> None:
    started: list[Utterance] = []

    def record_start(task: Callable[..., Any], seconds: Callable[..., float]) -> Callable[..., Any]:
        def work(utterance: Utterance) -> Iterator[AudioChunk]:
            started.append(utterance)  # its thread has started
            yield from task(utterance)

        return work

    config = EngineConfig(str(tiny_checkpoint), device="cpu", threads=1, max_waiting=1)
    direct = DirectEngine.start(config, on_gpu=record_start)

    async def wait_and_leave() -> None:
        waiting, before = asyncio.create_task(hear(direct, greedy())), len(started)
        await until(lambda: len(started) > before or waiting.done())
        waiting.cancel()
        with suppress(asyncio.CancelledError, EngineFull):
            await waiting

    try:
        chunks, first = await first_chunk(direct, greedy(frames=100))
        for _ in range(3):
            await wait_and_leave()
        rest = asyncio.create_task(collect(chunks))
        await until(rest.done)
        assert first.frames + sum(chunk.frames for chunk in await rest) == 100
        assert len((await hear(direct, greedy())).codes[0]) == 12
    finally:
        direct.stop()


async def test_too_long_texts_are_refused_before_requesting_a_gpu(direct: DirectEngine) -> None:
    with pytest.raises(PromptTooLong):
        await hear(direct, greedy("word " * 5000))
    with suppress(asyncio.CancelledError):
        waiting = asyncio.create_task(hear(direct, greedy(frames=2000)))
        await until(lambda: direct.stats().running == 1)
        waiting.cancel()
        await waiting
    assert direct.stats().running == 0
