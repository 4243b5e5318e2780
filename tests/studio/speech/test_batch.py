"""Many texts in one request: every item has its own result or error, and a disconnect cancels them all."""

from __future__ import annotations

import asyncio
import base64
import errno
import json
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

import pytest

from studio.api.speech_bodies import SpeechBody
from studio.speech.request import SpeechRequest
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.server import Served
from tests.studio.sounds import frames_of

BATCH = "/v1/audio/speech/batch"
Steer = Callable[..., Steered]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[BinaryIO]:
    """The temporary files of short takes; encoding one in the event loop fails."""
    opened, open_file, encode = list[BinaryIO](), tempfile.TemporaryFile, base64.b64encode

    def watched(**place: Any) -> BinaryIO:
        opened.append(cast(BinaryIO, open_file(**place)))
        return opened[-1]

    def encoded(piece: bytes) -> bytes:
        assert asyncio._get_running_loop() is None and len(piece) <= 1000
        return encode(piece)

    monkeypatch.setattr("studio.api.routes.batch.PIECE", 1000, raising=False)
    monkeypatch.setattr(tempfile, "TemporaryFile", watched)
    monkeypatch.setattr(base64, "b64encode", encoded)
    return opened


def test_items_inherit_absent_fields_from_the_batch(steered: Steer, kept: list[BinaryIO]) -> None:
    served, engine = steered(max_rows=3)
    items = [{"input": "one"}, {"input": "one two", "voice": "bert"}, {"input": "one two three", "seed": 9}]
    with served.client() as client:
        answer = client.post(BATCH, json={"items": items, "response_format": "wav", "seed": 4, "voice": "anna"})
    assert answer.status_code == 200
    batch = answer.json()
    assert (batch["total"], batch["succeeded"], batch["failed"]) == (3, 3, 0)
    assert [result["index"] for result in batch["results"]] == [0, 1, 2]
    assert [result["voice"] for result in batch["results"]] == ["anna", "bert", "anna"]
    assert [result["seed"] for result in batch["results"]] == [4, 4, 9]
    for words, result in enumerate(batch["results"], start=1):
        assert result["status"] == "success" and result["media_type"] == "audio/wav"
        assert frames_of(base64.b64decode(result["audio_data"])) == (44_100, words * 6 * 2048)
        assert result["usage"]["output_tokens"] == words * 6
    assert len(engine.utterances) == 3
    assert len(kept) == 3 and all(file.closed for file in kept)


def test_audio_that_finds_no_room_on_the_disk_is_the_error_of_its_item(
    steered: Steer, kept: list[BinaryIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> BinaryIO:
        raise OSError(errno.ENOSPC, "No space left on device")

    served, _ = steered()
    with served.client() as client:
        for reason in ("less than 256 MiB are free", "No space left on device"):
            free = 2**28 - 1 if reason.startswith("less") else 2**28
            monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
            monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
            batch = client.post(BATCH, json={"items": [{"input": "a", "response_format": "wav"}]}).json()
            assert batch["failed"] == 1 and batch["results"][0]["error"]["code"] == "library_unavailable"
            assert reason in batch["results"][0]["error"]["message"]


@pytest.mark.parametrize(
    ("shared", "item", "voice", "media_type"),
    [
        ({"voice": "bert"}, {"voice": None}, "bert", "audio/mpeg"),
        ({"voice": "anna"}, {"speaker": "bert"}, "bert", "audio/mpeg"),
        ({"reference_id": "anna"}, {"voice": "bert"}, "bert", "audio/mpeg"),
        ({"speaker": "bert", "format": "wav"}, {"speaker": None, "format": None}, "bert", "audio/wav"),
        ({"response_format": "wav", "voice": "bert"}, {"format": "flac"}, "bert", "audio/flac"),
    ],
)
def test_null_fields_of_an_item_are_ignored_and_aliases_accepted(
    untouched: Steered, shared: dict[str, object], item: dict[str, object], voice: str, media_type: str
) -> None:
    served, _ = untouched
    with served.client() as client:
        (result,) = client.post(BATCH, json=shared | {"items": [{"input": "a"} | item]}).json()["results"]
    assert result["status"] == "success", result
    assert (result["voice"], result["media_type"]) == (voice, media_type)


@pytest.mark.parametrize("fields", [{"stream": "false"}, {"stream": None}, {"stream": 0}])
def test_false_stream_values_give_no_stream(steered: Steer, fields: dict[str, object]) -> None:
    served, _ = steered()
    with served.client() as client:
        answer = client.post(BATCH, json={"items": [{"input": "a"}]} | fields)
    assert answer.headers["content-type"] == "application/json" and answer.json()["succeeded"] == 1


def test_invalid_batch_default_refuses_the_batch(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        for shared, param in (({"word_timestamps": True}, "word_timestamps"), ({"format": "mid"}, "response_format")):
            assert_envelope(client.post(BATCH, json=shared | {"items": [{"input": "a"}]}), 400, param)
    assert not engine.utterances


def test_bad_item_gets_its_own_error_and_the_others_continue(steered: Steer) -> None:
    served, engine = steered()
    items = [{"input": "a", "voice": "nobody"}, {"input": "a"}, {"input": " "}, {}]
    with served.client() as client:
        batch = client.post(BATCH, json={"items": items}).json()
    assert [result["status"] for result in batch["results"]] == ["error", "success", "error", "error"]
    assert batch["results"][0]["error"]["code"] == "voice_not_found"
    assert batch["results"][2]["error"]["param"] == batch["results"][3]["error"]["param"] == "input"
    assert (batch["succeeded"], batch["failed"]) == (1, 3)
    assert len(engine.utterances) == 1


def test_a_defect_that_one_item_meets_leaves_the_others_their_results(
    steered: Steer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served, _ = steered()
    speech_request = SpeechBody.speech_request

    def defective(body: SpeechBody, *extra: Any) -> SpeechRequest:
        if body.input != "a":
            raise IndexError("of a defect")
        return speech_request(body, *extra)

    monkeypatch.setattr(SpeechBody, "speech_request", defective)
    with served.client() as client:
        good, bad = client.post(BATCH, json={"items": [{"input": "a"}, {"input": "b"}]}).json()["results"]
    assert (good["status"], bad["status"], bad["error"]["type"]) == ("success", "error", "server_error")
    assert bad["id"] in bad["error"]["message"] and "defect" not in bad["error"]["message"]
    assert f"request {bad['id']} failed" in caplog.text and "IndexError" in caplog.text


def test_items_beyond_the_free_slots_wait(steered: Steer) -> None:
    served, _ = steered(max_rows=1, max_waiting=0)
    with served.client() as client:
        batch = client.post(BATCH, json={"items": [{"input": "a"}] * 8}).json()
    assert batch["succeeded"] == 8


def test_waiting_items_do_not_use_up_the_request_limit(steered: Steer) -> None:
    served, engine = steered(max_rows=1, max_waiting=0, requests_per_minute=3)
    engine.first_frame_gate.clear()
    with ThreadPoolExecutor(2) as pool, served.client() as client:
        single = pool.submit(client.post, "/v1/audio/speech", json={"input": "a"})
        served.until(running=1)
        batch = pool.submit(client.post, BATCH, json={"items": [{"input": "a"}] * 2})
        for _ in range(20):
            served.until(running=1)
        engine.first_frame_gate.set()
        assert single.result().status_code == 200
        assert batch.result().json()["succeeded"] == 2
        states = [take["state"] for take in client.get("/v1/takes").json()["data"]]
    assert states == ["finished"] * 3


def test_results_are_streamed_as_lines_in_order_of_completion(steered: Steer) -> None:
    served, engine = steered(max_rows=4)
    engine.later_frames_gate.clear()  # only the take of a single frame ends before it is set
    body = {"items": [{"input": "a"}, {"input": "b", "max_new_tokens": 1}], "stream": True}
    with served.client() as client, client.stream("POST", BATCH, json=body) as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        lines = []
        for line in answer.iter_lines():
            lines.append(json.loads(line))
            engine.later_frames_gate.set()
    assert [line.get("index") for line in lines] == [1, 0, None]
    assert (lines[-1]["total"], lines[-1]["succeeded"]) == (2, 2)


def test_results_of_one_object_are_sent_in_order_as_soon_as_possible(steered: Steer) -> None:
    served, engine = steered(max_rows=4)
    engine.later_frames_gate.clear()  # only the take of a single frame ends before it is set
    items = [{"input": "a", "max_new_tokens": 1}, {"input": "b"}, {"input": "c", "max_new_tokens": 1}]
    with served.client() as client, client.stream("POST", BATCH, json={"items": items}) as answer:
        text = ""
        for piece in answer.iter_text():
            text += piece
            if '"audio_data"' in text:  # it is not kept in memory until the others have ended
                engine.later_frames_gate.set()
    batch = json.loads(text)
    assert [result["index"] for result in batch["results"]] == [0, 1, 2]
    assert (batch["total"], batch["succeeded"], batch["failed"]) == (3, 3, 0)


def test_batch_results_equal_those_of_single_requests(studio: Served) -> None:
    body = {"response_format": "wav", "seed": 3, "max_new_tokens": 8}
    with studio.client() as client:
        batch = client.post(BATCH, json=body | {"items": [{"input": "Hi."}, {"input": "Ho."}]}).json()
        singles = [client.post("/v1/audio/speech", json=body | {"input": text}) for text in ("Hi.", "Ho.")]
    sounds = [base64.b64decode(result["audio_data"])[44:] for result in batch["results"]]
    assert sounds == [single.content[44:] for single in singles]


@pytest.mark.parametrize(
    "body", [{}, {"items": []}, {"items": [{"input": "a"}] * 33}, {"items": "a"}, {"items": ["a"]}, {"items": [None]}]
)
def test_an_invalid_batch_is_refused(steered: Steer, body: dict[str, object]) -> None:
    served, engine = steered()
    with served.client() as client:
        assert_envelope(client.post(BATCH, json=body), 400, "items")
    assert not engine.utterances


@pytest.mark.parametrize("stream", [True, False])
def test_disconnect_cancels_the_whole_batch(steered: Steer, stream: bool) -> None:
    served, engine = steered(max_rows=2)
    engine.first_frame_gate.clear()
    served.hang_up(BATCH, {"items": [{"input": "a"}] * 6, "stream": stream}, running=2)
    served.until(running=0, waiting=0)
    engine.first_frame_gate.set()
    with served.client() as client:
        assert client.post("/v1/audio/speech", json={"input": "a"}).status_code == 200
    assert len(engine.utterances) == 3


def test_items_wait_for_the_callers_other_requests(steered: Steer) -> None:
    served, engine = steered(max_rows=4, max_per_caller=2)
    engine.later_frames_gate.clear()
    with ThreadPoolExecutor(2) as pool, served.client() as client:
        single = pool.submit(client.post, "/v1/audio/speech", json={"input": "a long text of words"})
        served.until(running=1)
        batch = pool.submit(client.post, BATCH, json={"items": [{"input": "a"}] * 8})
        served.until(running=2)
        engine.later_frames_gate.set()
        assert single.result().status_code == 200
        assert batch.result().json()["succeeded"] == 8
