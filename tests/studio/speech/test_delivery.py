"""Work in progress for a take whose listener disconnects."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from engine import SpeechEngine
from studio.errors import Cancelled
from studio.library import Library
from studio.library.take import Take
from studio.speech.active_take import ActiveTake
from studio.speech.delivery import Speech
from studio.speech.recorder import Recorder, Retention
from studio.speech.request import SpeechRequest
from studio.speech.script_stream import Sound
from tests.engine.speaking import until
from tests.studio.library.worker import active_take, quiet_register

ENGINE = cast(SpeechEngine, SimpleNamespace(info=SimpleNamespace(sample_rate=44_100)))


async def noise() -> AsyncGenerator[Sound, None]:
    while True:
        yield Sound(np.full(4410, 0.1, np.float32), 1, 0.0, 0.0)


async def test_recording_is_closed_only_after_its_last_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, may, wrote = threading.Event(), threading.Event(), threading.Event()
    write = ActiveTake.write

    def late(active: ActiveTake, pcm: np.ndarray) -> None:
        began.set()
        assert may.wait(30)
        write(active, pcm)
        wrote.set()

    monkeypatch.setattr(ActiveTake, "write", late)
    recorder = Recorder(Library(tmp_path), Retention(10, 2**30), lambda take_id, outcome: None)
    take = Take("req_1", time.time(), "random", 0, caller="page")
    other = active_take(replace(take, id="req_2"), recorder)  # counts are not corrected while a take is active
    active = active_take(take, recorder)

    async def listen() -> None:
        try:
            await Speech.open(active, noise(), SpeechRequest("Hi.", format="mp3"), ENGINE)
        finally:
            active.end()

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
    other.forget()
    assert recorder.check() == (0, 0)
    recorder.stop()


@pytest.mark.parametrize(("pause", "is_ended"), [(0.02, True), (0.0, False)])
async def test_listener_far_slower_than_the_playback_loses_the_take(
    monkeypatch: pytest.MonkeyPatch, pause: float, is_ended: bool
) -> None:
    """Each piece plays for 0.002 s."""
    monkeypatch.setattr("studio.speech.delivery.BEHIND_SECONDS", 0.1)
    register = quiet_register()

    async def short_pieces() -> AsyncGenerator[Sound, None]:
        for _ in range(50):
            yield Sound(np.full(88, 0.1, np.float32), 1, 0.0, 0.0)

    take = Take("req_1", time.time(), "random", 0, caller="page")
    active = ActiveTake(take, "model", 44_100, register)
    speech = await Speech.open(active, short_pieces(), SpeechRequest("Hi.", format="pcm"), ENGINE)
    with pytest.raises(Cancelled, match="more slowly than it plays") if is_ended else nullcontext():
        async for _ in speech.body:
            await asyncio.sleep(pause)
    assert [take.state for take in register.recent()] == ["cancelled" if is_ended else "finished"]


async def test_cancelled_take_frees_its_row_while_its_listener_holds_a_piece() -> None:
    register = quiet_register()
    take = Take("req_1", time.time(), "random", 0, caller="page")
    active = ActiveTake(take, "model", 44_100, register)
    speech = await Speech.open(active, noise(), SpeechRequest("Hi.", format="pcm"), ENGINE)
    assert await anext(speech.body)
    active.cancel()
    await until(lambda: [take.state for take in register.recent()] == ["cancelled"])
    with pytest.raises(Cancelled):
        await anext(speech.body)
    assert len(register.recent()) == 1


async def test_failing_close_still_frees_the_callers_share() -> None:
    register = quiet_register()

    async def broken() -> AsyncGenerator[Sound, None]:
        try:
            async for sound in noise():
                yield sound
        finally:
            raise RuntimeError("the engine is gone")

    take = Take("req_1", time.time(), "random", 0, caller="page")
    active = ActiveTake(take, "model", 44_100, register)
    speech = await Speech.open(active, broken(), SpeechRequest("Hi.", format="pcm"), ENGINE)
    with pytest.raises(RuntimeError, match="the engine is gone"):
        await speech.aclose()
    assert [take.state for take in register.recent()] == ["cancelled"] and not register.active_count
