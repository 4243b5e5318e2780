"""Continuing a take that a limit cut off: one seamless take, its record, and refusals."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path

import httpx
import numpy as np
import pytest

from studio.library import Library
from studio.settings import read_keys
from studio.speech import resume
from studio.speech.resume import Beginning
from studio.speech.script_stream import Sound
from tests.studio.answers import assert_envelope
from tests.studio.fake_engine import FakeEngine
from tests.studio.library.worker import stored_take
from tests.studio.server import Served

SPEECH, TAKES = "/v1/audio/speech", "/v1/takes"
WORDS = "Six words are in this sentence."
PARTS = "The first part of the text has ten words, so sixty frames of sound in all. [pause:0.5s] " * 3
Steer = Callable[..., tuple[Served, FakeEngine]]


def speak(client: httpx.Client, text: str = WORDS, /, **fields: object) -> httpx.Response:
    answer = client.post(SPEECH, json={"input": text, "response_format": "wav", "seed": 7} | fields)
    assert answer.status_code == 200, answer.text
    return answer


def continue_take(client: httpx.Client, take: httpx.Response, **fields: object) -> httpx.Response:
    return client.post(f"{TAKES}/{take.headers['x-request-id']}/continue", json=fields)


def record(client: httpx.Client, answer: httpx.Response) -> dict[str, object]:
    record: dict[str, object] = client.get(f"{TAKES}/{answer.headers['x-request-id']}").json()
    return record


def samples(answer: httpx.Response) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content[44:], "<i2")


def test_continued_take_equals_an_unlimited_one(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        text, how = "It costs $5 in all.", {"normalize": True}  # six words, as it is read
        whole, cut = speak(client, text, **how), speak(client, text, **how, max_new_tokens=5)
        assert record(client, whole)["can_continue"] is False
        before = record(client, cut)
        assert (before["finish_reason"], before["can_continue"], before["resumed_at"]) == ("length", True, None)
        after = continue_take(client, cut)
        assert np.array_equal(samples(after), samples(whole))
        row = record(client, after)
        assert engine.utterances[-1].so_far is not None and engine.utterances[-1].so_far.shape == (10, 5)
        assert (row["frames"], row["finish_reason"], row["can_continue"]) == (36, "stop", False)
        assert (row["resumed_at"], row["continues"]) == (5, before["id"])
        assert row["audio"]["sha256"] == record(client, whole)["audio"]["sha256"]  # type: ignore[index]
        assert all(row[name] == record(client, whole)[name] for name in ("text", "parameters", "request"))
        assert record(client, cut) == before


@pytest.mark.parametrize("limits", [(30, None), (90, None), (91, 185, 200), (10, 20, 95, None)])
def test_takes_continue_in_any_part_at_part_borders_and_repeatedly(
    steered: Steer, limits: tuple[int | None, ...]
) -> None:
    served, engine = steered()
    with served.client() as client:
        how = {"chunk_length": 100}
        whole = speak(client, PARTS, **how, **({"max_new_tokens": limits[-1]} if limits[-1] else {}))
        unbroken = engine.utterances[-3:]
        assert unbroken[0].history == () and len(unbroken[2].history) == 2
        take = speak(client, PARTS, **how, max_new_tokens=limits[0])
        for limit in limits[1:]:
            take = continue_take(client, take, **({"max_new_tokens": limit} if limit else {}))
        assert np.array_equal(samples(take), samples(whole))
        resumed, wanted = record(client, take), record(client, whole)
        assert resumed["resumed_at"] == limits[0], "the first time that it was taken up"
        for field in ("frames", "finish_reason", "seconds", "can_continue"):
            assert resumed[field] == wanted[field], field
        last = engine.utterances[-1]
        assert last.text == unbroken[2].text and last.sampling == unbroken[2].sampling
        for heard, expected in zip(last.history, unbroken[2].history, strict=True):
            assert heard.text == expected.text and np.array_equal(heard.codes, expected.codes)


def test_real_engine_continues_a_take_to_its_full_length(studio: Served) -> None:
    """A chunk cut in its middle may be rounded differently, by one 16-bit step at most."""
    with studio.client() as client:
        whole, cut = (speak(client, voice="anna", max_new_tokens=limit) for limit in (40, 17))
        record(client, cut)
        joined = samples(continue_take(client, cut, max_new_tokens=40)).astype(int)
        assert joined.shape == (40 * 2048,)
        assert np.abs(joined - samples(whole)).max() <= 1


def test_continuation_may_use_another_format_or_events(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        cut = speak(client, max_new_tokens=5, sample_rate=16_000)
        assert continue_take(client, cut).headers["x-sample-rate"] == "16000"
        assert continue_take(client, cut, response_format="flac").headers["content-type"] == "audio/flac"
        events = continue_take(client, cut, stream_format="sse")
        assert events.text.rstrip().startswith("event: speech.audio.delta") and "speech.audio.done" in events.text
        unkept = continue_take(client, cut, store=False)
        assert record(client, unkept)["stored"] is False


def test_takes_that_cannot_be_continued_are_refused_with_the_reason(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        ended, cut = speak(client), speak(client, max_new_tokens=5)
        assert "it is already complete" in assert_refused(continue_take(client, ended), 409)
        for fields in ({"speed": 2}, {"input": "Anna: Hello there.\nBert: And hello.", "cast": {}}):
            other = speak(client, **{"max_new_tokens": 5} | fields)
            assert record(client, other)["can_continue"] is False
            assert "dialogues cannot" in assert_refused(continue_take(client, other), 409)
        assert "includes the 5 frames" in assert_refused(
            continue_take(client, cut, max_new_tokens=5), 400, "max_new_tokens"
        )
        assert_refused(continue_take(client, cut, seed=3), 400, "seed")
        assert_refused(client.post(f"{TAKES}/req_nobody/continue", json={}), 404)
        unkept = speak(client, max_new_tokens=5, store=False)
        assert_refused(continue_take(client, unkept), 404)
        client.delete(f"{TAKES}/{cut.headers['x-request-id']}")
        assert_refused(continue_take(client, cut), 404)
        client.post(f"{TAKES}/{cut.headers['x-request-id']}/restore")
        assert len(samples(continue_take(client, cut))) == 36 * 2048


def assert_refused(answer: httpx.Response, status: int, param: str = "take_id") -> str:
    assert_envelope(answer, status, param)
    message: str = answer.json()["error"]["message"]
    return message


def test_full_queue_is_refused_before_the_first_byte(steered: Steer) -> None:
    served, engine = steered(max_rows=1, max_waiting=0)
    with served.client() as client:
        cut = speak(client, max_new_tokens=5)
        engine.later_frames_gate.clear()
        with client.stream("POST", SPEECH, json={"input": WORDS, "response_format": "wav"}) as answer:
            pieces = answer.iter_raw()  # to let go of it would hang up
            next(pieces)
            assert_envelope(continue_take(client, cut), 429)
            assert_envelope(client.post(f"{TAKES}/{answer.headers['x-request-id']}/continue", json={}), 409, "take_id")
        engine.later_frames_gate.set()
        served.until(running=0)
        assert continue_take(client, cut).status_code == 200


def test_continuing_with_another_model_is_refused_and_both_are_named(steered: Steer, tmp_path: Path) -> None:
    home = {"home": str(tmp_path / "home")}
    served, _ = steered(**home)
    with served.client() as client:
        cut = speak(client, max_new_tokens=5)
        record(client, cut)
    other, _ = steered(**home, model="test/another")
    with other.client() as client:
        message = assert_refused(continue_take(client, cut), 409)
    assert "another model or codec than the one loaded (model fake, not another fake)" in message


def test_takes_of_another_key_cannot_be_continued(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("first,second"))
    mine, theirs = ({"Authorization": f"Bearer {key}"} for key in ("first", "second"))
    with served.client() as client:
        body = {"input": WORDS, "response_format": "wav", "max_new_tokens": 5}
        take = client.post(SPEECH, json=body, headers=mine).headers["x-request-id"]
        assert_envelope(client.post(f"{TAKES}/{take}/continue", json={}, headers=theirs), 404, "take_id")
        assert client.post(f"{TAKES}/{take}/continue", json={}, headers=mine).status_code == 200


def test_deleted_voice_is_not_replaced_by_another_of_its_name(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        cut = speak(client, voice="anna", max_new_tokens=5)
        script = {"voice": "bert", "cast": {"He": "anna"}}
        dialogue = speak(client, "One.\nHe: Two.", **script)
        client.delete("/v1/voices/anna")
        client.patch("/v1/voices/bert", json={"name": "Anna", "slug": "anna"})
        answer = continue_take(client, cut)
        assert_envelope(answer, 409, "take_id")
        assert "no longer in the library" in answer.json()["error"]["message"]
        assert_envelope(client.post(SPEECH, json=record(client, cut)["request"]), 400, "voice")
        again = record(client, dialogue)["request"]
        assert isinstance(again, dict) and again["voice"] == "anna@1", "who was bert"
        assert_envelope(client.post(SPEECH, json=again), 400)
        client.patch("/v1/voices/anna", json={"name": "Bert", "slug": "bert"})
        client.post("/v1/voices/anna/restore")
        assert continue_take(client, cut).status_code == 200


def test_codes_are_deleted_with_the_take_and_takes_without_audio_cannot_continue(
    steered: Steer, tmp_path: Path
) -> None:
    served, _ = steered(home=str(tmp_path / "home"))
    library: Library = served.app.state.studio.speech.voices.library
    with served.client() as client:
        first, second = (speak(client, max_new_tokens=5, seed=seed) for seed in (1, 2))
        row = record(client, second)
        library.files.path(row["audio"]["sha256"]).unlink()  # type: ignore[index]
        assert record(client, second)["can_continue"] is False
        assert_envelope(continue_take(client, second), 404, "take_id")
        client.delete(f"{TAKES}/{first.headers['x-request-id']}")
        library.trash.empty(None)
    with sqlite3.connect(tmp_path / "home" / "library.db") as db:
        assert db.execute("select count(*) from take_codes").fetchone() == (1,)


async def test_cancelling_while_stored_audio_is_read_leaves_no_open_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step in a thread continues after its caller is cancelled, and nothing can be closed before it ends."""
    is_reading, may_end, closed = threading.Event(), threading.Event(), threading.Event()

    def slow(sound: Path) -> Generator[np.ndarray, None, None]:
        try:
            is_reading.set()
            may_end.wait(60)
            yield np.zeros(1, np.float32)
        finally:
            closed.set()

    async def new() -> AsyncGenerator[Sound, None]:
        yield Sound(np.zeros(1, np.float32), 1, 0.0, 0.0, "stop")

    monkeypatch.setattr(resume, "_seconds", slow)
    beginning = Beginning(stored_take("req_1", "words", "anna"), tmp_path / "sound.wav", ())
    leaving = asyncio.ensure_future(anext(beginning.continued_by(new())))
    await asyncio.to_thread(is_reading.wait, 60)
    leaving.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert closed.is_set()
