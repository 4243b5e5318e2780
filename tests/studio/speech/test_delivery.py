"""Work in progress for a take whose listener disconnects."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studio.library import Library
from studio.library.takes.take import Take
from studio.speech.delivery import Delivery
from studio.speech.encoding import OutputFile
from studio.speech.live_take import LiveTake
from studio.speech.script_stream import Sound
from studio.takes.recent_takes import RecentTakes
from studio.takes.recorder import Recorder, Recording, Retention
from tests.engine.speaking import until


async def noise() -> AsyncGenerator[Sound, None]:
    while True:
        yield Sound(np.full(4410, 0.1, np.float32), 1, 0.0, 0.0)


async def test_recording_is_closed_only_after_its_last_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, may, wrote = threading.Event(), threading.Event(), threading.Event()
    write = Recording.write

    def late(recording: Recording, pcm: np.ndarray) -> None:
        began.set()
        assert may.wait(30)
        write(recording, pcm)
        wrote.set()

    monkeypatch.setattr(Recording, "write", late)
    recorder = Recorder(Library(tmp_path), Retention(10, 2**30), lambda take_id, outcome: None)
    take = Take("req_1", time.time(), "random", 0, caller="page")
    other = recorder.open(replace(take, id="req_2"), "model")  # counts are not corrected while a recording is open
    recording = recorder.open(take, "model")
    live = LiveTake(take, RecentTakes(), lambda take: None, 44_100, recording=recording)

    async def listen() -> None:
        try:
            await Delivery.open(live, noise(), OutputFile("mp3", None, 1.0))
        finally:
            live.end()

    listening = asyncio.create_task(listen())
    await until(began.is_set)
    listening.cancel()
    for _ in range(10):  # long enough to close the recording too early
        await asyncio.sleep(0)
    may.set()
    with suppress(asyncio.CancelledError):
        await listening
    await until(wrote.is_set)
    await recorder.wait_until_written()
    recorder.forget(other)
    assert recorder.check() == (0, 0)
    recorder.stop()


async def test_failing_close_still_frees_the_callers_share() -> None:
    ended: list[Take] = []

    async def broken() -> AsyncGenerator[Sound, None]:
        try:
            async for sound in noise():
                yield sound
        finally:
            raise RuntimeError("the engine is gone")

    take = Take("req_1", time.time(), "random", 0, caller="page")
    delivery = await Delivery.open(
        LiveTake(take, RecentTakes(), ended.append, 44_100), broken(), OutputFile("pcm", None, 1.0)
    )
    with pytest.raises(RuntimeError, match="the engine is gone"):
        await delivery.aclose()
    assert [take.state for take in ended] == ["cancelled"]
