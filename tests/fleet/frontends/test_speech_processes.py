"""State shared by all processes of a studio: limits, queue, cancelling, takes, voices, sign-ins; a process's death."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.sync.client import connect

from fleet.frontends import speech_process
from fleet.frontends.messages import Message
from fleet.frontends.speech_process import SpeechProcess
from protocols.fish.message_pack import pack, unpack
from studio.settings import Settings
from tests.fleet.frontends.conftest import KEYS
from tests.fleet.frontends.engines import reluctant
from tests.fleet.frontends.several import Several, several
from tests.studio.sounds import tone, wav
from tests.waiting import wait_until_true

SPEECH = "/v1/audio/speech"
BOTH = (0, 1)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def speech_body(frames: int = 1) -> dict[str, object]:
    return {"input": "hello", "max_new_tokens": frames, "response_format": "pcm", "voice": "anna"}


@contextlib.contextmanager
def active_take(studio: Several, key: str, number: int) -> Iterator[tuple[str, httpx.Response]]:
    """A take that stays active in this process until it is cancelled: its id and the response."""
    with (
        studio.client_at(number, headers=bearer(key)) as client,
        client.stream("POST", SPEECH, json=speech_body(6)) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        yield answer.headers["x-request-id"], answer


def metric(client: httpx.Client, name: str, **labels: str) -> float:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_concurrent_requests_of_a_caller_are_limited_across_processes(studio: Several, key: str) -> None:
    with active_take(studio, key, 0), active_take(studio, key, 1):
        for number in BOTH:
            with studio.client_at(number, headers=bearer(key)) as client:
                refused = client.post(SPEECH, json=speech_body())
            assert refused.status_code == 429, "wherever the next one comes to"
            assert "2 of your requests are active; at most 2" in refused.json()["error"]["message"]
            assert refused.headers["retry-after"] == "1"
        with studio.client_at(0, headers=bearer("key-0")) as client:
            assert client.post(SPEECH, json=speech_body()).status_code == 200, "another caller has a share of their own"
    wait_until_true(lambda: not studio.active_takes(0) | studio.active_takes(1))
    with studio.client_at(1, headers=bearer(key)) as client:
        assert client.post(SPEECH, json=speech_body()).status_code == 200, "who left has given the places back"


def test_requests_per_minute_are_limited_across_processes(studio: Several, key: str) -> None:
    with studio.client_at(0, headers=bearer(key)) as first, studio.client_at(1, headers=bearer(key)) as second:
        statuses = [client.post(SPEECH, json=speech_body()).status_code for _ in range(6) for client in (first, second)]
    assert statuses[:8] == [200] * 8 and 429 in statuses[8:]


def test_batch_larger_than_the_callers_concurrency_limit_succeeds(studio: Several, key: str) -> None:
    items = [{"input": "hello"}] * 4
    with studio.client_at(0, headers=bearer(key)) as client:
        batch = client.post(SPEECH + "/batch", json=speech_body() | {"items": items, "input": None}).json()
    assert batch["succeeded"] == 4, "no more than its share at a time"


@pytest.mark.parametrize("number", BOTH)
def test_request_is_cancelled_by_its_id_from_any_process(studio: Several, key: str, number: int) -> None:
    with active_take(studio, key, 0) as (request_id, answer), studio.client_at(number, headers=bearer(key)) as client:
        ended = client.delete(f"/v1/requests/{request_id}")
        assert ended.status_code == 200 and ended.json()["cancelled"]
        with pytest.raises(httpx.RemoteProtocolError):
            answer.read()
        wait_until_true(lambda: client.delete(f"/v1/requests/{request_id}").status_code == 404)
        assert client.get(f"/v1/takes/{request_id}").json()["state"] == "cancelled"


def states_in_queue(client: httpx.Client) -> dict[str, str]:
    return {request["id"]: request["state"] for request in client.get("/v1/queue").json()["requests"]}


def test_queue_shows_only_the_callers_requests_of_all_processes(studio: Several, key: str) -> None:
    with active_take(studio, key, 0) as (one, _), active_take(studio, key, 1) as (other, _):
        for number in BOTH:
            with studio.client_at(number, headers=bearer(key)) as client:
                wait_until_true(lambda: states_in_queue(client) == {one: "speaking", other: "speaking"})
                assert client.get("/v1/queue", headers=bearer("key-0")).json()["requests"] == []
                assert client.delete(f"/v1/takes/{one}").status_code == 409, "it is still being spoken"


def test_stored_takes_are_visible_to_every_process(studio: Several, key: str) -> None:
    with studio.client_at(0, headers=bearer(key)) as one, studio.client_at(1, headers=bearer(key)) as other:
        before = {name: metric(one, name) for name in ("studio_takes_total", "studio_first_audio_seconds_count")}
        ids = []
        for client in (one, other, one):
            spoken = client.post(SPEECH, json=speech_body())
            ids.append(spoken.headers["x-request-id"])
            take = other.get(f"/v1/takes/{ids[-1]}").json()  # immediately, and sometimes through the other process
            assert take["state"] == "finished" and take["audio"]
            sound = one.get(f"/v1/takes/{ids[-1]}/audio").content
            assert sound[:4] == b"RIFF" and len(sound) > 4000
        assert [take["id"] for take in other.get("/v1/takes").json()["data"]] == ids[::-1]
        for name, value in before.items():
            assert metric(other, name) == value + 3, name
        assert metric(one, "studio_takes_kept_total", outcome="kept") >= 3


def test_voice_appears_and_disappears_immediately(studio: Several, key: str) -> None:
    form = {"name": "new voice", "ref_text": "One two three.", "consent": "A tone: nobody's voice."}
    with studio.client_at(0, headers=bearer(key)) as one, studio.client_at(1, headers=bearer(key)) as other:
        creation = one.post("/v1/audio/voices", data=form, files={"audio_sample": ("clip.wav", wav(tone(2)))})
        assert creation.status_code < 300, creation.text
        for client in (one, other):
            spoken = client.post(SPEECH, json=speech_body() | {"voice": "new voice"})
            assert spoken.status_code == 200 and spoken.headers["x-voice"] == "new-voice"
        for number in BOTH:
            with studio.client_at(number, headers=bearer(KEYS[0])) as stranger:
                refused = stranger.post(SPEECH, json=speech_body() | {"voice": "new voice"})
                assert refused.status_code == 400 and refused.json()["error"]["code"] == "voice_not_found"
        assert other.delete("/v1/voices/new-voice").status_code == 200
        for client in (one, other):
            assert client.post(SPEECH, json=speech_body() | {"voice": "new voice"}).status_code == 400


def test_fish_audios_routes_answer_in_every_process(studio: Several, key: str) -> None:
    """Routes that speak are answered in the speech processes, the others in the studio's own."""
    head = bearer(key)
    with studio.client_at(0, headers=head) as one, studio.client_at(1, headers=head) as other:
        form = {"title": "fish voice", "texts": "One two three."}
        voice = one.post("/model", data=form, files={"voices": ("upload", wav(tone(2)))}).json()["_id"]
        assert voice in [model["_id"] for model in other.get("/model").json()["items"]]
        users = {client.get("/wallet/self/api-credit").json()["user_id"] for client in (one, other)}
        assert len(users) == 1
        for client in (one, other):
            body = {"text": "hello", "format": "wav", "reference_id": voice}
            with client.stream("POST", "/v1/tts", json=body) as answer:
                assert answer.headers["x-voice"] == "fish-voice"
                assert next(answer.iter_raw())[:4] == b"RIFF"
            refused = client.post("/v1/tts", json={"text": "hello", "reference_id": "nobody"})
            assert (refused.status_code, set(refused.json())) == (400, {"status", "message"})
        wait_until_true(lambda: not studio.active_takes(0) | studio.active_takes(1))
        url = studio.url.replace("http", "ws") + "/v1/tts/live"
        with connect(url, proxy=None, additional_headers=head) as socket:
            socket.send(pack({"event": "start", "request": {"text": "hello", "format": "wav", "reference_id": voice}}))
            socket.send(pack({"event": "flush"}))
            assert unpack(socket.recv(60, decode=False))["audio"][:4] == b"RIFF"
            (request_id,) = states_in_queue(other)
            assert one.delete(f"/v1/requests/{request_id}").json()["cancelled"]
            while (message := unpack(socket.recv(60, decode=False)))["event"] == "audio":
                pass
            assert message["reason"] == "error" and "cancelled" in message["message"]


def test_elevenlabs_routes_answer_in_every_process_and_at_the_root(studio: Several, key: str) -> None:
    head = {"xi-api-key": key}
    with studio.client_at(0, headers=head) as one, studio.client_at(1, headers=head) as other:
        for client in (one, other):
            assert set(client.get("/v1/voices").json()) == {"voices"}
            for root in ("", "/elevenlabs"):
                path = f"{root}/v1/text-to-speech/random"
                with client.stream("POST", f"{path}?output_format=wav_8000", json={"text": "hello"}) as answer:
                    assert "x-queue-ms" in answer.headers and next(answer.iter_raw())[:4] == b"RIFF"
                assert set(client.post(path, json={"text": " "}).json()) == {"detail"}
        wait_until_true(lambda: not studio.active_takes(0) | studio.active_takes(1))
    url = studio.url.replace("http", "ws") + "/v1/text-to-speech/random/stream-input?output_format=wav_8000"
    with connect(url, proxy=None) as socket:
        socket.send(json.dumps({"text": "hello", "flush": True, "xi_api_key": key}))
        assert base64.b64decode(json.loads(socket.recv(60))["audio"])[:4] == b"RIFF"


def test_sign_in_is_valid_in_every_process_until_sign_out(studio: Several, key: str) -> None:
    with studio.client_at(0) as one, studio.client_at(1) as other:
        signed = one.post("/sign-in", data={"key": key})
        assert signed.status_code == 303
        cookie = signed.headers["set-cookie"].partition(";")[0]
        for client in (one, other):
            assert client.post(SPEECH, json=speech_body(), headers={"cookie": cookie}).status_code == 200
        other.post("/sign-out", headers={"cookie": cookie})
        for client in (one, other):
            assert client.post(SPEECH, json=speech_body(), headers={"cookie": cookie}).status_code == 401


def test_dead_process_ends_only_its_own_streams(studio: Several, key: str) -> None:
    victim = studio.pids[0]
    with active_take(studio, key, 0) as (broken, lost), active_take(studio, key, 1) as (_, kept):
        heard = kept.iter_raw()
        next(heard)
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            lost.read()
        wait_until_true(lambda: not studio.active_takes(0))
        with studio.client_at(1, headers=bearer(key)) as client:
            wait_until_true(lambda: list(states_in_queue(client).values()) == ["speaking"])  # the other one continues
            take = client.get(f"/v1/takes/{broken}").json()
            assert (take["state"], take["error"]) == ("failed", "the process that generated it has ended")
            assert client.post(SPEECH, json=speech_body()).status_code == 200, "the place is free again"
        with httpx.Client(base_url=studio.url, headers=bearer(key)) as client:
            for _ in range(20):  # regardless of whose turn it is
                assert client.get("/ready", headers={"connection": "close"}).status_code == 200
    studio.ready(2)
    assert victim not in studio.pids
    with studio.client_at(0, headers=bearer(key)) as client:
        assert client.post(SPEECH, json=speech_body()).status_code == 200
        assert client.get("/health").json()["background"]["speech process 1"] == {"ok": True, "failures": 1}
        with studio.client_at(0, headers=bearer("key-0")) as owner:  # the only one to see warnings
            warnings = owner.get("/v1/diagnostics").json()["warnings"]
        assert any("speech process 1" in line and "SIGKILL" in line for line in warnings)


def test_hanging_process_is_replaced(studio: Several, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech_process, "SILENT_SECONDS", 3.0)
    victim = studio.pids[1]
    os.kill(victim, signal.SIGSTOP)
    wait_until_true(lambda: victim not in studio.pids)
    studio.ready(2)


def test_stopping_process_is_replaced_after_its_streams_end(studio: Several, key: str) -> None:
    victim = studio.pids[0]
    with active_take(studio, key, 0) as (request_id, answer):
        os.kill(victim, signal.SIGTERM)
        studio.ready(1)  # it no longer listens
        with httpx.Client(base_url=studio.url, headers=bearer(key)) as client:
            assert client.delete(f"/v1/requests/{request_id}").status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            answer.read()
    wait_until_true(lambda: victim not in studio.pids)
    studio.ready(2)


def test_slowly_ending_process_keeps_reporting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids_seen: list[int] = []
    handle = SpeechProcess._handle

    def record_message(process: SpeechProcess, message: Message) -> None:
        if (tmp_path / "stops").exists():
            pids_seen.append(process._process.pid)
        handle(process, message)

    monkeypatch.setattr(SpeechProcess, "_handle", record_message)
    settings = Settings(home=str(tmp_path / "home"), model="test/model", max_rows=8)
    with several(settings, lambda: partial(reluctant, str(tmp_path)), count=1) as studio:
        leaving = studio.pids[0]
        os.kill(leaving, signal.SIGTERM)
        wait_until_true(lambda: pids_seen.count(leaving) > 1 or leaving not in studio.pids)
        (tmp_path / "may-stop").touch()
        assert pids_seen.count(leaving) > 1
