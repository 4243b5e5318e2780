"""Real requests of other clients, field by field and header by header."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import httpx
import pytest

from tests.studio.server import Served
from tests.studio.sounds import data_url, decoded, tone, wav

SPEECH = "/v1/audio/speech"
SHORT = {"max_new_tokens": 10}


@pytest.fixture
def client(studio: Served) -> Iterator[httpx.Client]:
    with studio.client() as client:
        yield client


def is_mp3(answer: httpx.Response) -> bool:
    assert answer.status_code == 200, answer.text
    return answer.headers["content-type"] == "audio/mpeg" and decoded(answer.content, "mp3")[1].size > 0


def test_open_webui_lists_without_a_key_and_sends_no_format(client: httpx.Client) -> None:
    voices = {voice["id"]: voice["name"] for voice in client.get("/v1/audio/voices").json()["voices"]}
    models = [model["id"] for model in client.get("/v1/audio/models").json()["models"]]
    body = {"input": "Hello.", "voice": next(iter(voices)), "model": models[0]}
    assert is_mp3(client.post(SPEECH, json=body | SHORT, headers={"Authorization": "Bearer sk-1"}))


def test_openreader_takes_only_names_as_voices(client: httpx.Client) -> None:
    voices = client.get("/v1/names/audio/voices").json()["voices"]
    assert voices and all(isinstance(voice, str) for voice in voices)
    body = {"model": "tts-1", "voice": voices[-2], "input": "Hello.", "speed": 1, "response_format": "mp3"}
    answer = client.post("/v1/names/audio/speech", json=body | SHORT)
    assert is_mp3(answer) and answer.headers["x-voice"] == voices[-2]


def test_sillytavern_sends_an_empty_bearer_token_and_a_speed(client: httpx.Client) -> None:
    body = {"input": "Hello.", "response_format": "mp3", "voice": "alloy", "speed": 1, "model": "tts-1"}
    assert is_mp3(client.post(SPEECH, json=body | SHORT, headers={"Authorization": "Bearer"}))


def test_librechat_may_send_the_voice_as_the_model_and_joins_its_mp3s(client: httpx.Client) -> None:
    answers = [
        client.post(SPEECH, json={"input": text, "model": "bert", "backend": "x"} | SHORT) for text in ("One.", "Two.")
    ]
    assert [answer.headers["x-voice"] for answer in answers] == ["bert", "bert"]
    lengths = [decoded(answer.content, "mp3")[1].size for answer in answers]
    joined = decoded(answers[0].content + answers[1].content, "mp3")[1].size
    assert joined == pytest.approx(sum(lengths), abs=2304)


def test_home_assistant_probes_with_a_full_stop(client: httpx.Client) -> None:
    probe = {"model": "tts-1", "input": ".", "voice": "alloy", "response_format": "mp3"}
    assert is_mp3(client.post(SPEECH, json=probe | SHORT))
    spoken = probe | {"input": "Hello.", "voice": "marin", "speed": 1.2, "instructions": "None"}
    assert is_mp3(client.post(SPEECH, json=spoken | SHORT))


def test_livekit_warms_up_on_a_404_and_reads_mp3_events(client: httpx.Client) -> None:
    assert client.get("/v1/").status_code == 404
    body = {"model": "gpt-4o-mini-tts", "input": "Hello.", "voice": "ash", "response_format": "mp3", "speed": 1.0}
    with client.stream("POST", SPEECH, json=body | {"stream_format": "sse"} | SHORT) as answer:
        assert answer.headers["content-type"].partition(";")[0] == "text/event-stream"
        events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    audio = b"".join(base64.b64decode(event["audio"]) for event in events if event["type"] == "speech.audio.delta")
    assert decoded(audio, "mp3")[1].size > 0
    assert events[-1]["type"] == "speech.audio.done"


@pytest.mark.parametrize(
    "extra",
    [
        {"instructions": None},  # OpenAI Agents SDK
        {"instructions": "You will receive partial sentences. Do not complete the sentence, just read out the text."},
        {"stream": True, "stream_format": "audio"},  # vLLM-Omni's benchmark
        {"stream": False, "lang_code": "a", "normalization_options": {}, "return_download_link": False},  # Kokoro
        {"task_type": "Base", "language": "English", "x_vector_only_mode": False, "speaker_embedding": None},
        {"speaker": "bert", "volume_multiplier": 1.0},
        {"reference_id": "anna", "normalize": True, "latency": "normal", "repetition_penalty": 1.2},
    ],
)
def test_voice_agents_read_pcm_and_send_extra_fields(client: httpx.Client, extra: dict[str, object]) -> None:
    answer = client.post(SPEECH, json={"model": "tts-1", "input": "Hello.", "response_format": "pcm"} | SHORT | extra)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "audio/pcm"
    assert len(answer.content) % 2 == 0
    assert answer.headers["x-voice"] == extra.get("speaker", "anna")


def test_sglang_omni_sends_input_alone_or_with_references(client: httpx.Client) -> None:
    assert client.post(SPEECH, json={"input": "Hello."} | SHORT).status_code == 200
    reference = {"audio_path": data_url(wav(tone(2))), "text": "My words."}
    answer = client.post(SPEECH, json={"input": "Hello.", "references": [reference]} | SHORT)
    assert answer.headers["x-voice"] == "clip"
    for wrong in ([reference, reference], [], [5], {"a": 1}):
        refused = client.post(SPEECH, json={"input": "Hello.", "references": wrong} | SHORT)
        assert refused.status_code == (200 if wrong == [] else 400)


def test_two_names_of_a_field_must_agree(client: httpx.Client) -> None:
    same = {"input": "Hello.", "voice": "bert", "speaker": "bert"} | SHORT
    assert client.post(SPEECH, json=same).status_code == 200
    assert client.post(SPEECH, json=same | {"speaker": "anna"}).status_code == 400


def test_cross_origin_browser_requests_are_not_allowed_by_default(client: httpx.Client) -> None:
    ask = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in client.options(SPEECH, headers=ask).headers
