"""Events for a waiting request: comments keep the connection open until the speech, or the reason for its absence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.studio.conftest import Steered

Steer = Callable[..., Steered]
BODY = {"input": "Two words", "response_format": "pcm", "stream_format": "sse"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.api.sse.PING_SECONDS", 0.02)


def lines_of(answer: httpx.Response) -> Iterator[str]:
    return (line for line in answer.iter_lines() if line)


def test_waiting_request_gets_pings_and_then_speech(steered: Steer) -> None:
    served, engine = steered()
    engine.first_frame_gate.clear()
    with served.client() as client, client.stream("POST", "/v1/audio/speech", json=BODY) as answer:
        assert answer.status_code == 200 and answer.headers["x-request-id"]
        lines = lines_of(answer)
        assert [next(lines) for _ in range(3)] == [": waiting"] * 3
        engine.first_frame_gate.set()
        names = [line.partition(": ")[2] for line in lines if line.startswith("event")]
    assert set(names[:-1]) == {"speech.audio.delta"} and names[-1] == "speech.audio.done"


def test_cancellation_while_waiting_is_an_error_event(steered: Steer) -> None:
    served, engine = steered()
    engine.first_frame_gate.clear()
    with served.client() as client, client.stream("POST", "/v1/audio/speech", json=BODY) as answer:
        lines = lines_of(answer)
        assert next(lines) == ": waiting"
        served.until(running=1)  # the voice may still be looked up when the first ping comes
        client.delete(f"/v1/requests/{answer.headers['x-request-id']}").raise_for_status()
        (data,) = [line for line in lines if line.startswith("data")]
    assert json.loads(data.partition(": ")[2])["error"]["code"] == "request_cancelled"


def test_disconnected_waiting_caller_is_removed(steered: Steer) -> None:
    served, engine = steered()
    engine.first_frame_gate.clear()
    with served.client() as client, client.stream("POST", "/v1/audio/speech", json=BODY) as answer:
        lines = lines_of(answer)  # kept in a variable, because the answer is closed with its reader
        assert next(lines) == ": waiting"
        served.until(running=1)
    served.until(running=0, cancelled=1)


def test_immediate_refusal_is_an_http_status(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.api.sse.PING_SECONDS", 15.0)
    served, _ = steered()
    with served.client() as client:
        assert client.post("/v1/audio/speech", json=BODY | {"voice": "nobody"}).status_code == 400
