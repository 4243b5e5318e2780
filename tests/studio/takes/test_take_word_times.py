"""Word times over HTTP: as an event of a stream, and for a kept take."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.studio.answers import assert_envelope
from tests.studio.fake_engine import FRAME, RATE, FakeEngine
from tests.studio.server import Served
from tests.studio.speech.test_socket import open_socket, send, sentence

SPEECH, TAKES = "/v1/audio/speech", "/v1/takes"
WORD = 6 * FRAME / RATE
"""Duration of a word in seconds; the fake engine gives all characters of a part the same duration."""
Steer = Callable[..., tuple[Served, FakeEngine]]


def speak(client: httpx.Client, text: str, **fields: object) -> httpx.Response:
    answer = client.post(SPEECH, json={"input": text, "response_format": "wav", "seed": 7} | fields)
    assert answer.status_code == 200, answer.text
    return answer


def stream_events(client: httpx.Client, text: str, **fields: object) -> list[dict[str, Any]]:
    lines = speak(client, text, stream_format="sse", **fields).text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def times_of(client: httpx.Client, take: httpx.Response, **query: str) -> list[dict[str, Any]]:
    answer = client.get(f"{TAKES}/{take.headers['x-request-id']}/timestamps", params=query)
    assert answer.status_code == 200, answer.text
    times: list[dict[str, Any]] = answer.json()["timestamps"]
    return times


def test_stream_sends_word_or_sentence_times_before_its_last_event(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        *_, times, done = stream_events(client, "Abc defg. [pause:1s] Hi [whisper] jk.", timestamps="word")
        assert (times["type"], times["of"], done["type"]) == ("speech.audio.timestamps", "word", "speech.audio.done")
        assert [word["text"] for word in times["timestamps"]] == ["Abc", "defg", "Hi", "jk"]
        first, second, third, _ = times["timestamps"]
        assert first["start"] == 0 and second["start"] == pytest.approx(2 * WORD * 4 / 9, abs=0.001)
        assert third["start"] == pytest.approx(2 * WORD + 1, abs=0.001), "after the pause"
        *_, times, _ = stream_events(client, "Abc defg. [pause:1s] Hi.", timestamps="sentence", speed=2)
        assert [sentence["text"] for sentence in times["timestamps"]] == ["Abc defg.", "Hi."]
        assert times["timestamps"][1]["start"] == pytest.approx(2 * WORD / 2 + 1, abs=0.001), "a pause keeps its length"
        assert [event["type"] for event in stream_events(client, "Abc.")][-2] == "speech.audio.delta"


def test_batch_results_and_socket_sentences_have_times(steered: Steer) -> None:
    served, engine = steered()
    items: list[dict[str, object]] = [{"input": "Abc defg.", "timestamps": "word"}, {"input": "Hi."}]
    with served.client() as client, open_socket(served) as socket:
        one, two = client.post("/v1/audio/speech/batch", json={"items": items}).json()["results"]
        assert [word["text"] for word in one["timestamps"]] == ["Abc", "defg"] and "timestamps" not in two
        send(socket, "session.config", timestamps="sentence")
        send(socket, "input.text", text="Abc defg. Hi")
        *_, done = sentence(socket)
        assert done["timestamps"] == [
            {"text": "Abc defg.", "start": 0, "end": pytest.approx(2 * WORD * 8 / 9, abs=0.001)}
        ]
        engine.info = replace(engine.info, cannot_align="held in fp8")
        one, two = client.post("/v1/audio/speech/batch", json={"items": items}).json()["results"]
        assert (one["status"], one["error"]["code"], two["status"]) == ("error", "no_timestamps", "success")


def test_impossible_timestamps_are_refused_before_generation(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        body = {"input": "Hello.", "timestamps": "word"}
        refused = client.post(SPEECH, json=body)
        assert_envelope(refused, 400, "timestamps")
        assert "stream_format" in refused.text and "/timestamps" in refused.text
        assert_envelope(
            client.post(SPEECH, json=body | {"timestamps": "letter", "stream_format": "sse"}), 400, "timestamps"
        )
        take = speak(client, "Hello.")
        engine.info = replace(engine.info, cannot_align="held in fp8")
        assert_envelope(client.post(SPEECH, json=body | {"stream_format": "sse"}), 501)
        assert_envelope(client.get(f"{TAKES}/{take.headers['x-request-id']}/timestamps"), 501)
    assert len(engine.utterances) == 1


def test_a_stored_take_is_aligned_once_when_its_times_are_requested(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        take = speak(client, "It was $3.50. Really.", normalize=True, chunk_length=100)
        assert engine.aligned == []
        words = times_of(client, take)
        assert engine.aligned == ["It was three dollars and fifty cents. Really."]
        assert [word["text"] for word in words] == ["It", "was", "$3.50", "Really"]
        record = client.get(f"{TAKES}/{take.headers['x-request-id']}").json()
        assert words[-1]["end"] <= record["seconds"] and all(word["start"] < word["end"] for word in words)
        assert times_of(client, take, of="word") == words
        assert [sentence["text"] for sentence in times_of(client, take, of="sentence")] == ["It was $3.50.", "Really."]
        assert len(engine.aligned) == 1
        assert_envelope(client.get(f"{TAKES}/{take.headers['x-request-id']}/timestamps?of=letter"), 400)
        assert_envelope(client.get(f"{TAKES}/req_nobody/timestamps"), 404)
        unstored = speak(client, "Hello.", store=False)
        assert_envelope(client.get(f"{TAKES}/{unstored.headers['x-request-id']}/timestamps"), 404)


def test_simultaneous_requests_share_one_alignment(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client, ThreadPoolExecutor(4) as threads:
        take = speak(client, "Hello there, all of you.")
        requests = [threads.submit(times_of, client, take, of=unit) for unit in ("word", "word", "sentence", "word")]
        first, second, *_ = [request.result() for request in requests]
    assert first == second and len(engine.aligned) == 1


def test_speaker_names_are_not_words_and_turn_times_include_the_gap(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        take = speak(client, "Anna: Hello there.\nBert: And bye.", cast={"Anna": "anna", "Bert": "anna"}, turn_gap=0.5)
        words = times_of(client, take)
        assert [word["text"] for word in words] == ["Hello", "there", "And", "bye"]
        assert words[2]["start"] == pytest.approx(2 * WORD + 0.5, abs=0.001)


def test_cut_take_has_times_of_its_words_and_once_continued_of_all(steered: Steer) -> None:
    served, _ = steered()
    text = "The first part has seven words here. [pause:0.5s] And the second has six."
    with served.client() as client:
        whole, cut = speak(client, text), speak(client, text, max_new_tokens=7 * 6 + 9)
        every, some = times_of(client, whole), times_of(client, cut)
        assert 7 < len(some) < len(every) == 12
        continued = client.post(f"{TAKES}/{cut.headers['x-request-id']}/continue", json={})
        assert times_of(client, continued) == every


def test_times_are_deleted_with_their_take_and_older_takes_have_none(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        take, other = speak(client, "Hello there."), speak(client, "Good bye.")
        times_of(client, take)
        database = served.app.state.studio.library.home / "library.db"
        with closing(sqlite3.connect(database)) as db, db:
            assert db.execute("select count(*) from take_times").fetchone() == (1,)
            db.execute("delete from takes where id = ?", [take.headers["x-request-id"]])
            assert db.execute("select count(*) from take_times").fetchone() == (0,)
            db.execute("update take_codes set parts = json_array(json_array(7, 12, json('true')))")
        refused = client.get(f"{TAKES}/{other.headers['x-request-id']}/timestamps")
        assert_envelope(refused, 409)
        assert "version" in refused.text
        with closing(sqlite3.connect(database)) as db, db:
            db.execute("update take_codes set made_by = 'another'")
        assert "another model" in client.get(f"{TAKES}/{other.headers['x-request-id']}/timestamps").text
    assert len(engine.aligned) == 1
