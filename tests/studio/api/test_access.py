"""Keys protect both page and API; each caller gets its share; requests can be listed, and cancelled by id."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine import EngineStats
from studio.errors import SettingsError, TooManyRequests
from studio.settings import ApiKey, Settings, read_keys
from studio.speech.register import Limits
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.waiting import wait_until

SPEECH = "/v1/audio/speech"
Steer = Callable[..., Steered]


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anyone:{password}".encode()).decode()


def test_keys_are_stored_as_digests_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    digest, other = (hashlib.sha256(key).digest() for key in (b"secret", b"other"))
    monkeypatch.setenv("STUDIO_API_KEYS", "secret, sha256:" + other.hex())
    settings = Settings.load()
    assert settings.api_keys == (ApiKey(digest), ApiKey(other))
    assert "secret" not in repr(settings)
    monkeypatch.setenv("STUDIO_API_KEYS", "sha256:secret")
    with pytest.raises(SettingsError) as refused:
        Settings.load()
    assert "secret" not in str(refused.value).replace("sha256: and", "")


@pytest.mark.parametrize("sent", ["Bearer first", "bearer  second", "Bearer schlüssel", basic("first")])
def test_known_key_is_accepted(steered: Steer, sent: str) -> None:
    served, _ = steered(api_keys=read_keys("first,second,schlüssel"))
    with served.client() as client:
        answer = client.post(SPEECH, json={"input": "a"}, headers={b"Authorization": sent.encode()})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "sent",
    [None, "", "Bearer", "Bearer firs", "Bearer first2", "first", "Basic first", basic(""), "Bearer ÿ\x80"],
)
def test_unknown_keys_are_refused_without_calling_the_engine(steered: Steer, sent: str | None) -> None:
    served, engine = steered(api_keys=read_keys("first"))
    headers = {} if sent is None else {b"Authorization": sent.encode("latin-1")}
    with served.client() as client:
        refused = client.post(SPEECH, json={"input": "a"}, headers=headers)
        assert_envelope(refused, 401)
        assert refused.json()["error"]["code"] == "invalid_api_key"
        assert refused.headers["www-authenticate"] == "Bearer"
        for path in ("/v1/models", "/v1/audio/voices", "/v1/nothing", "/v1/takes", "/v1/queue"):
            assert_envelope(client.get(path, headers=headers), 401)
        for path in ("/", "/metrics", "/docs", "/openapi.json"):
            page = client.get(path, headers=headers)
            assert page.status_code == 401 and page.headers["www-authenticate"].startswith("Basic")
        assert client.get("/health", headers=headers).status_code == 200
        assert client.get("/ready", headers=headers).json() == {"ready": True}
    assert not engine.utterances


def test_listings_can_be_public_while_speech_needs_a_key(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("first"), public_listing=True)
    with served.client() as client:
        for path in ("/v1/models", "/v1/models/tts-1", "/v1/audio/models", "/v1/audio/voices", "/v1/test"):
            assert client.get(path).status_code == 200
        assert_envelope(client.post(SPEECH, json={"input": "a"}), 401)
        assert_envelope(client.get("/v1/takes"), 401)


def test_any_authorization_is_accepted_without_keys(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        for sent in ("Bearer", "Bearer x", "nonsense"):
            assert client.post(SPEECH, json={"input": "a"}, headers={"Authorization": sent}).status_code == 200


def test_refusal_is_readable_by_an_allowed_origin(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("first"), cors_origins=("https://good.example",))
    with served.client() as client:
        refused = client.post(SPEECH, json={"input": "a"}, headers={"Origin": "https://good.example"})
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == "https://good.example"


def test_concurrent_requests_are_limited_per_caller(steered: Steer) -> None:
    served, engine = steered(api_keys=read_keys("one,two"), max_per_caller=1, max_rows=4)
    engine.first_frame_gate.clear()
    one, two = ({"Authorization": f"Bearer {name}"} for name in ("one", "two"))
    with ThreadPoolExecutor(2) as pool, served.client() as client:
        first = pool.submit(client.post, SPEECH, json={"input": "a"}, headers=one)
        served.until(running=1)
        more = client.post(SPEECH, json={"input": "a"}, headers=one)
        assert_envelope(more, 429)
        assert more.json()["error"]["code"] == "rate_limit_exceeded" and more.headers["retry-after"] == "1"
        other = pool.submit(client.post, SPEECH, json={"input": "a"}, headers=two)
        served.until(running=2)
        engine.first_frame_gate.set()
        assert first.result().status_code == other.result().status_code == 200
        assert client.post(SPEECH, json={"input": "a"}, headers=one).status_code == 200


def test_refused_and_abandoned_requests_release_their_slot(steered: Steer) -> None:
    served, engine = steered(max_per_caller=1, max_rows=1)
    with served.client() as client:
        assert client.post(SPEECH, json={"input": "a", "voice": "nobody"}).status_code == 400
        engine.first_frame_gate.clear()
        served.hang_up(SPEECH, {"input": "a"}, running=1)
        served.until_left()
        engine.first_frame_gate.set()
        assert client.post(SPEECH, json={"input": "a"}).status_code == 200


def test_rate_limit_refills_over_the_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    limits = Limits(None, 2, clock=lambda: now[0])
    limits.enter("a")
    limits.enter("a")
    with pytest.raises(TooManyRequests) as refused:
        limits.enter("a")
    assert refused.value.retry_after == 30
    limits.enter("b")
    now[0] = 30.0
    limits.enter("a")
    with pytest.raises(TooManyRequests):
        limits.enter("a")
    monkeypatch.setattr("studio.speech.register.REMEMBERED", 2)
    limits.enter("c")  # also while nobody can be forgotten, because all have open requests


def test_queue_lists_own_requests_and_delete_cancels_a_waiting_one(steered: Steer) -> None:
    served, engine = steered(max_rows=1, max_waiting=3)
    engine.first_frame_gate.clear()
    with ThreadPoolExecutor(2) as pool, served.client() as client:
        first = pool.submit(client.post, SPEECH, json={"input": "a"})
        served.until(running=1)
        second = pool.submit(client.post, SPEECH, json={"input": "b"})
        served.until(waiting=1)
        queue = client.get("/v1/queue").json()
        assert (queue["running"], queue["waiting"], queue["max_rows"], queue["max_waiting"]) == (1, 1, 1, 3)
        ids = [request["id"] for request in queue["requests"]]
        assert len(ids) == 2 and {request["state"] for request in queue["requests"]} == {"waiting"}
        assert client.delete(f"/v1/requests/{ids[1]}").json()["cancelled"] is True
        cancelled = second.result()
        assert_envelope(cancelled, 410)
        assert cancelled.json()["error"]["code"] == "request_cancelled"
        served.until(waiting=0, running=1)
        engine.first_frame_gate.set()
        assert first.result().status_code == 200
        assert [take["id"] for take in client.get("/v1/takes").json()["data"]] == ids[:1]
        states = [client.get(f"/v1/takes/{take_id}").json()["state"] for take_id in ids]
        assert states == ["finished", "cancelled"]
        assert_envelope(client.delete(f"/v1/requests/{ids[0]}"), 404)
        assert client.get("/v1/queue").json()["requests"] == []


def test_delete_cancels_a_running_request(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    with served.client() as client:
        body = {"input": "a b", "response_format": "wav"}
        with pytest.raises(httpx.RemoteProtocolError), client.stream("POST", SPEECH, json=body) as answer:
            for _ in answer.iter_raw():
                client.delete(f"/v1/requests/{answer.headers['x-request-id']}")
        served.until(running=0, cancelled=1)
        served.until_left()
        assert client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()["state"] == "cancelled"


def test_metrics_are_in_the_prometheus_format(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        client.post(SPEECH, json={"input": "a"})
        answer = client.get("/metrics")
    samples = samples_of(answer.text)
    assert samples["studio_ready[]"] == 1
    assert samples["studio_takes_total[('state', 'finished')]"] == 1
    assert samples["studio_audio_seconds_total[]"] == pytest.approx(6 * 2048 / 44_100)
    assert samples["studio_first_audio_seconds_count[]"] == 1
    assert samples["engine_running[]"] == 0


def test_metrics_and_health_are_reported_per_replica(steered: Steer) -> None:
    served, engine = steered()
    one, other = EngineStats(2, 0, 5, 0, 70, 1.0), EngineStats(1, 3, 4, 0, 30, 2.0)
    together = EngineStats(3, 3, 9, 0, 100, 3.0, replicas={"a": one, "b": other})
    engine.stats = lambda: together  # type: ignore[method-assign]
    with served.client() as client:
        samples = samples_of(client.get("/metrics").text)
        assert client.get("/v1/queue").json()["running"] == 3
        health = client.get("/health").json()
        assert health["load"]["replicas"]["b"]["waiting"] == 3 and health["degraded"] is False
        together = replace(together, trouble="the head has gone")
        health = client.get("/health").json()
        assert (health["load"]["trouble"], health["degraded"]) == ("the head has gone", True)
    assert samples["engine_running[('replica', 'a')]"] == 2
    assert samples["engine_frames_total[('replica', 'b')]"] == 30
    assert "engine_running[]" not in samples, "a sum over the label would count them twice"


def samples_of(text: str) -> dict[str, float]:
    return {
        sample.name + str(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize("kind", ["audio", "sse", "batch"])
def test_stalled_listener_is_disconnected(kind: str, steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.server.SEND_SECONDS", 0.5)
    served, _ = steered()
    text, path = "word " * 800, f"{SPEECH}/batch" if kind == "batch" else SPEECH
    options = {"items": [{"input": text}] * 2, "stream": True} if kind == "batch" else {"input": text}
    options |= {"response_format": "wav"} | ({"stream_format": kind} if kind != "batch" else {})
    long = json.dumps(options)
    host, port = served.url.removeprefix("http://").split(":")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(60)
        slow.connect((host, int(port)))
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(long)}\r\n\r\n"
        slow.sendall((head + long).encode())
        assert slow.recv(15) == b"HTTP/1.1 200 OK"
        served.until(running=0)
        served.until_left()
        wait_until(
            lambda takes: (
                {take["state"] for take in takes} <= {"finished" if kind == "batch" else "cancelled", "failed"}
            ),
            lambda: httpx.get(f"{served.url}/v1/takes").json()["data"],
        )
