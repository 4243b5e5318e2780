"""POST /v1/audio/speech over a real connection: audio, headers, refusals, disconnections."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import numpy as np
import pytest

from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.server import Served
from tests.studio.sounds import data_url, frames_of, tone, wav

SPEECH = "/v1/audio/speech"
Steer = Callable[..., Steered]


def test_wav_has_the_models_rate_and_all_generated_frames(studio: Served) -> None:
    with studio.client() as client:
        answer = client.post(
            SPEECH, json={"input": "Hello.", "max_new_tokens": 12, "seed": 7, "response_format": "wav"}
        )
        take = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "audio/wav"
    assert answer.headers["x-seed"] == "7"
    assert answer.headers["x-voice"] == "anna"
    assert answer.headers["cache-control"] == "no-store"
    assert frames_of(answer.content) == (44_100, 2048 * take["frames"])
    assert take["state"] == "finished" and take["finish_reason"] in ("stop", "length")
    assert (
        take["rtf"] > 0
        and take["first_audio_ms"] > 0
        and take["audio_s"] == pytest.approx(take["frames"] * 2048 / 44_100, abs=1e-3)
    )


def test_pcm_is_the_same_audio_at_24_khz_and_16_bits(studio: Served) -> None:
    request = {"input": "Hello.", "max_new_tokens": 12, "seed": 7}
    with studio.client() as client:
        file = client.post(SPEECH, json=request | {"response_format": "wav"}).content
        pcm = client.post(SPEECH, json=request | {"response_format": "pcm"})
    assert pcm.headers["content-type"] == "audio/pcm"
    assert pcm.headers["x-sample-rate"] == "24000"
    samples = frames_of(file)[1]
    assert len(pcm.content) == 2 * -(-samples * 24_000 // 44_100)
    native, lower = (np.frombuffer(data, "<i2").astype(float) for data in (file[44:], pcm.content))
    assert np.sqrt(np.mean(lower**2)) == pytest.approx(np.sqrt(np.mean(native**2)), rel=0.25)


def test_same_seed_gives_the_same_bytes_and_no_seed_draws_another(studio: Served) -> None:
    request = {"input": "Say it again.", "max_new_tokens": 10, "response_format": "wav"}
    with studio.client() as client:
        drawn = client.post(SPEECH, json=request)
        again = client.post(SPEECH, json=request | {"seed": int(drawn.headers["x-seed"])})
        other = client.post(SPEECH, json=request)
    assert drawn.content == again.content
    assert drawn.headers["x-seed"] != other.headers["x-seed"]


def test_reference_clip_is_used_as_the_voice_and_encoded_once(steered: Steer) -> None:
    served, engine = steered()
    clip = data_url(wav(tone(2, 24_000), 24_000))
    with served.client() as client:
        for _ in range(2):
            answer = client.post(SPEECH, json={"input": "Hi.", "ref_audio": clip, "ref_text": "My own words."})
            assert answer.status_code == 200, answer.text
            assert answer.headers["x-voice"] == "clip"
    assert [entry for entry in engine.encoded if entry[2] == "My own words."] == [(48_000, 24_000, "My own words.")]
    assert engine.utterances[-1].references[0].text == "My own words."


def test_reference_clip_changes_the_speech(studio: Served) -> None:
    request = {"input": "Hello.", "max_new_tokens": 8, "seed": 3, "response_format": "wav"}
    with studio.client() as client:
        own = client.post(SPEECH, json=request | {"ref_audio": data_url(wav(tone(2))), "ref_text": "Words."})
        bundled = client.post(SPEECH, json=request)
    assert own.status_code == bundled.status_code == 200
    assert own.content != bundled.content


@pytest.mark.parametrize(
    ("voice", "spoken"),
    [("anna", "anna"), ("BERT ", "bert"), ("default", "anna"), (None, "anna"), ("", "anna"), ("random", "random"),
     ("alloy", "anna"), ("ash", "anna"), ("marin", "bert"), ({"id": "bert"}, "bert")],
)  # fmt: skip
def test_voice_is_found_by_id_or_alias_in_any_case(untouched: Steered, voice: object, spoken: str) -> None:
    served, engine = untouched
    with served.client() as client:
        answer = client.post(SPEECH, json={"input": "Hi.", "voice": voice})
    assert answer.headers["x-voice"] == spoken
    texts = [reference.text for reference in engine.utterances[-1].references]
    assert texts == ([] if spoken == "random" else [f"My name is {spoken}."])


def test_every_sampling_field_reaches_the_engine(steered: Steer) -> None:
    served, engine = steered()
    fields = {"temperature": 0.5, "top_p": 0.7, "top_k": 11, "seed": 2**63 - 1, "max_new_tokens": 3}
    with served.client() as client:
        assert client.post(SPEECH, json={"input": "One two.", **fields}).status_code == 200
    utterance = engine.utterances[-1]
    assert (utterance.sampling.temperature, utterance.sampling.top_p, utterance.sampling.top_k) == (0.5, 0.7, 11)
    assert (utterance.sampling.seed, utterance.max_frames, utterance.text) == (2**63 - 1, 3, "One two.")


def test_unknown_fields_and_nulls_are_ignored(steered: Steer) -> None:
    served, _ = steered()
    nulls = dict.fromkeys(
        ("voice", "response_format", "speed", "seed", "ref_audio", "ref_text", "stream_format", "top_p")
    )
    with served.client() as client:
        assert client.post(SPEECH, json={"input": "Hi.", "backend": "x", "lang_code": "a", **nulls}).status_code == 200


def test_audio_is_streamed_before_the_rest_is_generated(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    with (
        served.client() as client,
        client.stream("POST", SPEECH, json={"input": "one two", "response_format": "wav"}) as answer,
    ):
        pieces = answer.iter_raw()
        data = b""
        while len(data) < 44 + 2 * 2048:
            data += next(pieces)
        assert len(data) == 44 + 2 * 2048
        engine.later_frames_gate.set()
        data += b"".join(pieces)
    assert frames_of(data) == (44_100, 12 * 2048)


def test_full_queue_returns_429_with_retry_after(steered: Steer) -> None:
    served, engine = steered(max_rows=1, max_waiting=1)
    engine.first_frame_gate.clear()
    with ThreadPoolExecutor(2) as pool, served.client() as client:
        first = pool.submit(client.post, SPEECH, json={"input": "a"})
        served.until(running=1)
        second = pool.submit(client.post, SPEECH, json={"input": "b"})
        served.until(running=1, waiting=1)
        third = client.post(SPEECH, json={"input": "c"})
        assert_envelope(third, 429)
        assert 1 <= int(third.headers["retry-after"]) <= 30
        engine.first_frame_gate.set()
        assert first.result().status_code == second.result().status_code == 200


@pytest.mark.parametrize("read", [0, 4000])
def test_disconnect_before_or_during_the_audio_frees_the_row(steered: Steer, read: int) -> None:
    served, engine = steered(max_rows=1)
    (engine.later_frames_gate if read else engine.first_frame_gate).clear()
    served.hang_up(SPEECH, {"input": "a b c", "response_format": "wav"}, read, running=1)
    served.until(running=0, cancelled=1)


def test_disconnect_while_queued_leaves_the_queue(steered: Steer) -> None:
    served, engine = steered(max_rows=1, max_waiting=4)
    engine.first_frame_gate.clear()
    with ThreadPoolExecutor(1) as pool, served.client() as client:
        speaking = pool.submit(client.post, SPEECH, json={"input": "a"})
        served.until(running=1)
        served.hang_up(SPEECH, {"input": "b"}, running=1, waiting=1)
        served.until(running=1, waiting=0)
        engine.first_frame_gate.set()
        assert speaking.result().status_code == 200


def test_real_engine_frees_the_row_of_a_disconnected_caller(studio: Served) -> None:
    before = studio.load()
    studio.hang_up(SPEECH, {"input": "A long story.", "max_new_tokens": 1500, "response_format": "wav"}, 9000)
    studio.until(running=0, waiting=0)
    after = studio.load()
    assert after["cancelled"] + after["finished"] == before["cancelled"] + before["finished"] + 1


def test_abandoned_take_is_recorded_as_cancelled(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    with served.client() as client:
        with client.stream("POST", SPEECH, json={"input": "a b", "response_format": "wav"}) as answer:
            pieces = answer.iter_raw()
            next(pieces)
            take_id = answer.headers["x-request-id"]
            assert client.get(f"/v1/takes/{take_id}").json()["state"] == "speaking"
        served.until(cancelled=1)
        assert client.get(f"/v1/takes/{take_id}").json()["state"] == "cancelled"


def test_dead_engine_breaks_the_stream_and_then_answers_503(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    with served.client() as client:
        with (
            pytest.raises(httpx.RemoteProtocolError),
            client.stream("POST", SPEECH, json={"input": "a b", "response_format": "pcm"}) as answer,
        ):
            for _ in answer.iter_raw():
                engine.dead = "the device fell off the bus"
        take = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()
        assert take["state"] == "failed" and "fell off" in take["error"]
        later = client.post(SPEECH, json={"input": "a"})
        assert_envelope(later, 503)
        assert "retry-after" in later.headers
        health = client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "failed")
        assert "fell off" in health.json()["error"]


def test_server_answers_others_during_many_takes(steered: Steer) -> None:
    served, engine = steered(max_rows=20)
    engine.later_frames_gate.clear()

    def listen() -> int:
        with served.client() as client:
            return len(client.post(SPEECH, json={"input": "a", "response_format": "wav"}).content)

    with ThreadPoolExecutor(20) as pool:
        takes = [pool.submit(listen) for _ in range(20)]
        served.until(running=20)
        assert httpx.get(f"{served.url}/v1/models").status_code == 200
        engine.later_frames_gate.set()
        assert {take.result() for take in takes} == {44 + 2 * 6 * 2048}


def test_retry_time_grows_with_the_queue(steered: Steer) -> None:
    served, engine = steered(max_rows=1, max_waiting=0)
    with served.client() as client:
        for _ in range(2):
            client.post(SPEECH, json={"input": "a"})
        register = served.app.state.studio.speech.register
        for take in register.recent():
            register.remember(replace(take, generation_s=7.2))
        engine.first_frame_gate.clear()
        with ThreadPoolExecutor(1) as pool:
            speaking = pool.submit(client.post, SPEECH, json={"input": "a"})
            served.until(running=1)
            refused = client.post(SPEECH, json={"input": "a"})
            engine.first_frame_gate.set()
            assert speaking.result().status_code == 200
    assert refused.headers["retry-after"] == "8"
