"""Stopping the server: streams may finish within the grace period, and are cut off after it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from engine import EngineConfig
from studio.settings import Settings
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve
from tests.studio.sounds import frames_of

SPEECH = "/v1/audio/speech"


def test_streams_are_cut_off_after_the_grace_period(voices_folder: Path) -> None:
    engines: list[FakeEngine] = []

    def start(config: EngineConfig, progress: object) -> FakeEngine:
        engines.append(FakeEngine(config))
        return engines[0]

    with ThreadPoolExecutor(1) as pool:
        with serve(Settings(voices=str(voices_folder)), start, grace=1) as served:
            engines[0].later_frames_gate.clear()

            def listen() -> None:
                with served.client() as client:
                    client.post(SPEECH, json={"input": "a", "response_format": "wav"})

            listener = pool.submit(listen)
            served.until(running=1)
        with pytest.raises(httpx.RemoteProtocolError):
            listener.result()
    assert engines[0].running == 0 and engines[0].stopped


def test_streams_may_finish_within_the_grace_period(voices_folder: Path) -> None:
    engines: list[FakeEngine] = []

    def start(config: EngineConfig, progress: object) -> FakeEngine:
        engines.append(FakeEngine(config))
        return engines[0]

    with ThreadPoolExecutor(1) as pool:
        with serve(Settings(voices=str(voices_folder)), start, grace=20) as served:
            engines[0].later_frames_gate.clear()

            def listen() -> bytes:
                with served.client() as client:
                    return client.post(SPEECH, json={"input": "a", "response_format": "wav"}).content

            listener = pool.submit(listen)
            served.until(running=1)
            threading.Timer(0.5, engines[0].later_frames_gate.set).start()
        assert frames_of(listener.result()) == (44_100, 6 * 2048)
