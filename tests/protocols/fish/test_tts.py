"""POST /v1/tts: every field of Fish Audio's request is mapped, ignored or refused, in every body type."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import soundfile

from protocols.fish.message_pack import pack
from studio.settings import read_keys
from tests.studio.conftest import Steered
from tests.studio.server import Served
from tests.studio.sounds import frames_of, tone, wav

Steer = Callable[..., Steered]
TTS = "/v1/tts"
PACKED = {"Content-Type": "application/msgpack", "model": "s2-pro"}
SDK = {
    "text": "Hello there.",
    "chunk_length": 200,
    "format": "mp3",
    "sample_rate": None,
    "mp3_bitrate": 128,
    "opus_bitrate": 32,
    "references": [],
    "reference_id": None,
    "normalize": True,
    "latency": "balanced",
    "prosody": None,
    "top_p": 0.7,
    "temperature": 0.7,
    "max_new_tokens": 1024,
    "repetition_penalty": 1.2,
    "min_chunk_length": 50,
    "condition_on_previous_chunks": True,
    "early_stop_threshold": 1.0,
}
"""A request as sent by fish-audio-sdk 1.3."""


def speak(served: Served, **fields: Any) -> Any:
    with served.client() as client:
        return client.post(TTS, content=pack(fields), headers=PACKED)


def message(answer: Any, status: int) -> str:
    """The message of an error, which has exactly the two keys that the old SDK builds its exception from."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"status", "message"} and body["status"] == status
    return str(body["message"])


def test_sdk_requests_are_spoken(steered: Steer) -> None:
    served, engine = steered()
    answer = speak(served, **SDK)
    assert answer.status_code == 200 and answer.headers["content-type"] == "audio/mpeg"
    assert answer.content[:2] == b"\xff\xfb"
    (utterance,) = engine.utterances
    assert utterance.text == "Hello there." and utterance.sampling.temperature == 0.7


@pytest.mark.parametrize("kind", ["json", "msgpack", "form", "urlencoded"])
def test_every_body_type_gives_the_same_speech(steered: Steer, kind: str) -> None:
    served, _ = steered()
    fields: dict[str, Any] = {"text": "Hello.", "format": "wav", "reference_id": "bert", "seed": 5, "temperature": 0.5}
    nested = fields | {"prosody": {"speed": 1, "volume": 0}}
    texts = {name: str(value) for name, value in fields.items()} | {"prosody": json.dumps(nested["prosody"])}
    with served.client() as client:
        bodies: dict[str, dict[str, Any]] = {
            "json": {"json": nested},
            "msgpack": {"content": pack(nested), "headers": PACKED},
            "form": {"files": {name: (None, text) for name, text in texts.items()}},
            "urlencoded": {"data": texts},
        }
        answer = client.post(TTS, **bodies[kind])
        assert answer.headers["content-type"] == "audio/wav", answer.text
        same = client.post(
            "/v1/audio/speech", json={"input": "Hello.", "voice": "bert", "seed": 5, "response_format": "wav"}
        )
    assert answer.content == same.content
    assert answer.headers["x-seed"] == "5" and answer.headers["x-voice"] == "bert"


API_CLIENT = {
    "text": "Hello there.",
    "chunk_length": 300,
    "format": "wav",
    "latency": "normal",
    "references": [],
    "reference_id": None,
    "seed": None,
    "use_memory_cache": "off",
    "normalize": True,
    "streaming": False,
    "max_new_tokens": 1024,
    "top_p": 0.8,
    "repetition_penalty": 1.1,
    "temperature": 0.8,
}
"""A request as sent by fish-speech's tools/api_client.py to ?format=msgpack."""


@pytest.mark.parametrize(
    ("fields", "beginning"),
    [
        ({}, b"RIFF"),
        ({"streaming": True, "use_memory_cache": "on", "seed": 7}, b"RIFF"),
        ({"format": "mp3", "max_new_tokens": 0}, b"\xff\xfb"),
        ({"format": "flac", "reference_id": "bert"}, b"fLaC"),
        ({"references": [{"audio": wav(tone(2)), "text": "Its words."}] * 2}, b"RIFF"),
        ({"reference_id": "nobody"}, None),
    ],
)
def test_fish_speechs_api_client_is_supported(steered: Steer, fields: dict[str, Any], beginning: bytes | None) -> None:
    served, _ = steered()
    head = {"Content-Type": "application/msgpack", "Accept": "*/*", "Authorization": "Bearer YOUR_API_KEY"}
    with served.client() as client:
        answer = client.post(f"{TTS}?format=msgpack", content=pack(API_CLIENT | fields), headers=head)
    if beginning is None:  # the client reads errors as JSON, whatever format it requested
        assert "nobody" in message(answer, 400)
    else:
        assert answer.status_code == 200 and answer.content.startswith(beginning)


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("POST", "/v1/vqgan/encode", "Audio codes"),
        ("POST", "/v1/voice-design", "task_type VoiceDesign"),
        ("POST", "/v1/audio/infill", "speaks sentences again"),
        ("GET", "/v1/agent/sessions", "no agents"),
        ("POST", "/v1/chat", "does not chat"),
        ("GET", "/compat/v1/voices", "not available"),
        ("GET", "/v1/tts/nothing", "Invalid URL"),
    ],
)
def test_unsupported_features_are_refused_with_a_message(steered: Steer, method: str, path: str, words: str) -> None:
    served, _ = steered()
    with served.client() as client:
        assert words in message(client.request(method, path, content=b""), 404)


@pytest.mark.parametrize(
    ("fields", "query", "media_type", "rate"),
    [
        ({}, "", "audio/mpeg", 44_100),
        ({"streaming": False, "use_memory_cache": "off", "seed": None}, "", "audio/wav", 44_100),
        ({}, "?format=msgpack", "audio/wav", 44_100),
        ({"format": "pcm"}, "", "audio/pcm", 44_100),
        ({"format": "wav", "sample_rate": 24_000}, "", "audio/wav", 24_000),
        ({"format": "opus"}, "", "audio/ogg", 48_000),
        ({"format": "mp3", "sample_rate": 32_000, "mp3_bitrate": 64}, "", "audio/mpeg", 32_000),
    ],
)
def test_formats_and_rates_are_those_of_fish_audio(
    steered: Steer, fields: dict[str, Any], query: str, media_type: str, rate: int
) -> None:
    served, _ = steered()
    with served.client() as client:
        answer = client.post(TTS + query, json={"text": "Hello."} | fields)
    assert answer.headers["content-type"] == media_type
    if media_type == "audio/pcm":
        assert len(answer.content) == 2 * 6 * 2048
    elif media_type == "audio/wav":
        assert frames_of(answer.content)[0] == rate
    else:
        assert soundfile.info(io.BytesIO(answer.content)).samplerate == rate


def test_bit_rate_changes_the_file_size(steered: Steer) -> None:
    served, _ = steered()
    text = "one two three four five six seven eight nine ten"

    def size(**fields: Any) -> int:
        return len(speak(served, text=text, seed=1, **fields).content)

    assert 1.8 < size(format="mp3", mp3_bitrate=128) / size(format="mp3", mp3_bitrate=64) < 2.2
    assert size(format="opus", opus_bitrate=24) < size(format="opus", opus_bitrate=48)
    assert size(format="opus", opus_bitrate=48) == size(format="opus", opus_bitrate=48_000)
    assert size(format="opus", opus_bitrate=-1000) == size(format="opus")
    assert "mp3_bitrate" in message(speak(served, text=text, format="mp3", mp3_bitrate=100), 400)
    with served.client() as client:
        assert "mp3_bitrate" in message(client.post(TTS, json={"text": text, "mp3_bitrate": 10**400}), 400)
    assert size(format="wav", mp3_bitrate=100) > 0  # a field of another format is ignored


def test_prosody_changes_speed_and_volume(steered: Steer) -> None:
    served, _ = steered()

    def sound(**prosody: Any) -> np.ndarray:
        answer = speak(served, text="one two three four", format="wav", seed=200, prosody=prosody or None)
        return soundfile.read(io.BytesIO(answer.content))[0]

    plain = sound()
    assert len(sound(speed=2)) == pytest.approx(len(plain) / 2, rel=0.05)
    np.testing.assert_allclose(sound(volume=-6), plain * 10 ** (-6 / 20), atol=1e-4)
    loud = sound(volume=20)
    assert len(loud) == len(plain) and 0.5 < np.abs(loud).max() <= 10 ** (-0.9 / 20)
    assert "speed" in message(speak(served, text="a", prosody={"speed": 3}), 400)


def test_max_new_tokens_per_chunk_never_truncates_the_speech(steered: Steer) -> None:
    served, engine = steered()
    for most in (0, 1, 1024):
        answer = speak(served, text="one two three", format="wav", max_new_tokens=most)
        assert frames_of(answer.content)[1] == 3 * 6 * 2048
    assert len(engine.utterances) == 3


def test_several_clips_form_one_prompt_for_one_voice(steered: Steer) -> None:
    served, engine = steered()
    clips = [wav(tone(2, hertz=hertz)) for hertz in (200, 300)]
    encoded = base64.b64encode(clips[1]).decode()
    references = [{"audio": clips[0], "text": "First words."}, {"audio": encoded, "text": "Other words."}]
    answer = speak(served, text="Hello.", format="wav", references=references)
    assert answer.headers["x-voice"] == "clip"
    texts = [reference.text for reference in engine.utterances[0].references]
    assert texts == ["First words.", "<|speaker:0|>Other words."]
    assert [text for _, text in engine.clips if "words" in text] == ["First words.", "Other words."]


@pytest.mark.parametrize("nothing", [[], None])
def test_empty_references_are_ignored_and_reference_id_overrides_clips(steered: Steer, nothing: object) -> None:
    served, _ = steered()
    assert speak(served, text="Hello.", references=nothing).headers["x-voice"] == "anna"
    clips = [{"audio": wav(tone(2)), "text": "Words."}]
    assert speak(served, text="Hello.", references=clips, reference_id="bert").headers["x-voice"] == "bert"


def test_voices_have_hex_ids_and_client_default_ids_select_the_default_voice(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        voices = client.get("/model").json()["items"]
        ids = {voice["title"].lower(): voice["_id"] for voice in voices}
    assert all(len(voice) == 32 and int(voice, 16) for voice in ids.values())
    assert speak(served, text="Hello.", reference_id=ids["bert"]).headers["x-voice"] == "bert"
    assert speak(served, text="Hello.", reference_id="933563129e564b19a115bedd57b7406a").headers["x-voice"] == "anna"
    assert "nobody" in message(speak(served, text="Hello.", reference_id="nobody"), 400)
    unknown = hashlib.sha256(b"x").hexdigest()[:32]
    assert unknown in message(speak(served, text="Hello.", reference_id=unknown), 400)


def test_list_of_ids_assigns_a_voice_to_each_speaker(steered: Steer) -> None:
    served, engine = steered()
    text = "<|speaker:0|>Hello Bert.\n<|speaker:1|>Hello\n\nAnna. <|speaker:0|> Bye."
    answer = speak(served, text=text, reference_id=["anna", "bert"])
    assert answer.headers["x-voice"] == "anna, bert"
    assert [utterance.text for utterance in engine.utterances] == ["Hello Bert.", "Hello Anna.", "Bye."]
    assert "speaker 2" in message(speak(served, text="<|speaker:2|>Hi.", reference_id=["anna", "bert"]), 400)
    assert speak(served, text="Hello.", reference_id=["bert"]).headers["x-voice"] == "bert"


def test_list_of_clips_for_each_speaker_forms_one_prompt(steered: Steer) -> None:
    served, engine = steered()
    clips = [{"audio": wav(tone(2, hertz=hertz)), "text": f"Words {hertz}."} for hertz in (200, 300, 400)]
    text = "<|speaker:0|>Hello Bert. <|speaker:1|>Hello Anna."
    answer = speak(served, text=text, references=[clips[:2], clips[2:]])
    assert answer.headers["x-voice"] == "clip"
    assert "".join(utterance.text for utterance in engine.utterances).count("<|speaker:1|>") == 1
    assert {tuple(reference.text for reference in utterance.references) for utterance in engine.utterances} == {
        ("Words 200.", "<|speaker:0|>Words 300.", "<|speaker:1|>Words 400.")
    }
    for references in ([clips[:1], clips[1:2]], [[], clips[:1]]):
        assert "speaker 2" in message(speak(served, text="<|speaker:2|>Hi.", references=references), 400)
    refused: list[list[Any]] = [[clips * 2, clips], [[]] * 9, [[clips]], [[1], [2]], [["a"]], [clips, None]]
    for wrong in refused:
        message(speak(served, text="Hello.", references=wrong), 400)


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({}, 400, "text is blank"),
        ({"text": "  "}, 400, "text is blank"),
        ({"text": 5}, 400, "text"),
        ({"text": "a", "format": "exe"}, 400, "format"),
        ({"text": "a", "sample_rate": 1}, 400, "sample_rate"),
        ({"text": "a", "temperature": float("nan")}, 400, "temperature"),
        ({"text": "a", "chunk_length": 5}, 400, "chunk_length"),
        ({"text": "a", "references": [{"audio": b"MZ" * 900, "text": "b"}]}, 400, "not readable audio"),
        ({"text": "a", "references": [{"audio": "no base64!", "text": "b"}]}, 400, "base64"),
        ({"text": "a", "references": [{"audio": b"x", "text": ""}]}, 400, "the text of a reference is blank"),
        ({"text": "a", "references": [{"audio": b"x", "text": "b"}] * 9}, 400, "references"),
        ({"text": "a", "reference_id": {"a": 1}}, 400, "reference_id"),
        ({"text": "a", "reference_id": "a" * 257}, 400, "256"),
        ({"text": "a" * 20_000}, 400, "text has 20000 characters; at most 16384"),
        ({"text": "a", **{f"field {number}": number for number in range(300)}}, 200, ""),
    ],
)
def test_bad_fields_are_refused_in_fish_audios_form(
    untouched: Steered, fields: dict[str, Any], status: int, words: str
) -> None:
    served, _ = untouched
    answer = speak(served, **fields)
    assert answer.status_code == 200 if status == 200 else words in message(answer, status)


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"\x81\xa4text", "application/msgpack", 400),
        (pack(["text"]), "application/msgpack", 400),
        (b"{", "application/json", 400),
        (b"hello", "text/plain", 415),
        (b"", "", 415),
        (b"text=a&" * 1001, "application/x-www-form-urlencoded", 400),
        (bytes(17 * 2**20), "application/msgpack", 413),
    ],
)
def test_bad_bodies_are_refused_in_fish_audios_form(steered: Steer, content: bytes, kind: str, status: int) -> None:
    served, _ = steered()
    with served.client() as client:
        message(client.post(TTS, content=content, headers={"Content-Type": kind}), status)


def test_binary_bytes_do_not_count_as_json_syntax(steered: Steer) -> None:
    served, _ = steered()
    clip = wav(tone(29)) + b",:[{" * 500_000
    assert speak(served, text="a", references=[{"audio": clip, "text": "b"}]).status_code == 200


def test_keys_are_required_and_access_errors_have_the_right_form(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("secret"))
    with served.client() as client:
        for method, path in (
            ("POST", TTS),
            ("GET", "/model"),
            ("GET", "/wallet/self/api-credit"),
            ("GET", "/v1/health"),
        ):
            assert "API key" in message(client.request(method, path), 401)
        key = {"Authorization": "Bearer secret"}
        assert client.post(TTS, json={"text": "a"}, headers=key).status_code == 200
        message(client.request("PUT", "/model", headers=key), 405)
        message(client.get("/wallet/self/nothing", headers=key), 404)
        answer = client.post(TTS, json={"text": "a"}, headers=key | {"Origin": "https://evil.example"})
        assert "CORS_ORIGINS" in message(answer, 403)


def test_request_limit_of_a_caller_applies(steered: Steer) -> None:
    served, _ = steered(max_per_caller=1, requests_per_minute=2)
    speak(served, text="a")
    speak(served, text="a")
    answer = speak(served, text="a")
    assert "a minute" in message(answer, 429) and int(answer.headers["retry-after"]) > 0


def test_timestamp_events_form_one_file_and_end_with_word_times(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        body = {"text": "Hello there, you.", "format": "wav", "seed": 3}
        answer = client.post(f"{TTS}/stream/with-timestamp", json=body)
        assert answer.headers["content-type"].startswith("text/event-stream")
        whole = client.post(TTS, json=body).content
    lines = answer.text.split("\n\n")[:-1]
    assert all(line.startswith("data: ") for line in lines)
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert b"".join(base64.b64decode(event["audio_base64"]) for event in events)[44:] == whole[44:]
    assert {event["chunk_seq"] for event in events} == {0}
    assert [event["alignment"] for event in events[:-1]] == [None] * (len(events) - 1)
    alignment = events[-1]["alignment"]
    assert [segment["text"] for segment in alignment["segments"]] == ["Hello", "there", "you"]
    assert alignment["audio_duration"] == pytest.approx(3 * 6 * 2048 / 44_100, abs=0.001)
