"""The complete fleet with Ray and HTTP: takes through several speech processes, over the same two replicas."""

from __future__ import annotations

import os
import signal

import httpx
import pytest

from engine import Engine
from studio.settings import Settings
from tests.fleet.frontends.several import Several
from tests.studio.server import serve
from tests.waiting import wait_until_true

pytestmark = pytest.mark.ray

SPEECH = "/v1/audio/speech"


def speech_body(seed: int, frames: int) -> dict[str, object]:
    return {"input": "Hello there.", "seed": seed, "max_new_tokens": frames, "response_format": "pcm"}


@pytest.fixture(scope="module")
def alone(fleet_settings: Settings) -> dict[int, bytes]:
    """The audio of one engine in the studio's own process, by seed."""
    with serve(fleet_settings, Engine.start) as served, served.client() as client:
        return {seed: client.post(SPEECH, json=speech_body(seed, 20)).content for seed in (1, 2)}


def test_takes_are_the_same_in_every_process(studio: Several, alone: dict[int, bytes]) -> None:
    for number in (0, 1):
        with studio.client_at(number) as client:
            for seed, sound in alone.items():
                assert client.post(SPEECH, json=speech_body(seed, 20)).content == sound
            load = client.get("/health").json()
    assert load["engine"]["max_rows"] == 4 and load["speech_processes"] == {"ready": 2, "wanted": 2}


def test_take_cancelled_through_another_process_frees_its_row(studio: Several) -> None:
    with studio.client_at(0) as one, studio.client_at(1) as other:
        with one.stream("POST", SPEECH, json=speech_body(3, 2000)) as answer:
            assert other.delete(f"/v1/requests/{answer.headers['x-request-id']}").status_code == 200
            with pytest.raises(httpx.RemoteProtocolError):
                answer.read()
        wait_until_true(lambda: other.get("/health").json()["load"]["running"] == 0)


def test_dead_process_frees_its_rows_and_other_takes_continue(studio: Several) -> None:
    with studio.client_at(0) as one, studio.client_at(1) as other:
        with (
            one.stream("POST", SPEECH, json=speech_body(4, 2000)) as lost,
            other.stream("POST", SPEECH, json=speech_body(5, 150)) as kept,
        ):
            os.kill(studio.pids[0], signal.SIGKILL)
            with pytest.raises(httpx.TransportError):
                lost.read()
            assert len(kept.read()) > 150 * 2000
        wait_until_true(lambda: other.get("/health").json()["load"]["running"] == 0)
