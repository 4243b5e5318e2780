"""OpenAI's own Python SDK, unmodified, against the studio."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest
import soundfile

from studio.settings import Settings
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.studio.sounds import data_url, frames_of, tone, wav
from tests.studio.voices.whisper import write_model

SHORT = {"max_new_tokens": 10, "seed": 5}


@pytest.fixture
def client(studio: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{studio.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def test_speech_is_returned_whole(client: openai.OpenAI) -> None:
    answer = client.audio.speech.create(
        model="tts-1", voice="alloy", input="Hello.", response_format="wav", extra_body=SHORT
    )
    rate, samples = frames_of(answer.content)
    assert rate == 44_100 and samples > 0
    assert soundfile.info(io.BytesIO(answer.content)).samplerate == 44_100


def test_streamed_speech_equals_whole_speech(client: openai.OpenAI) -> None:
    request = {
        "model": "gpt-4o-mini-tts",
        "voice": "nova",
        "input": "Hello.",
        "response_format": "pcm",
        "extra_body": SHORT,
    }
    with client.audio.speech.with_streaming_response.create(**request) as answer:  # type: ignore[arg-type]
        streamed = b"".join(answer.iter_bytes(1000))
        assert answer.request_id and answer.request_id.startswith("req_")
        assert answer.headers["x-seed"] == "5"
    assert streamed == client.audio.speech.create(**request).content  # type: ignore[arg-type]
    assert streamed and len(streamed) % 2 == 0


async def test_async_client_gets_the_same_speech(studio: Served, client: openai.OpenAI) -> None:
    request = {
        "model": "tts-1-hd",
        "voice": {"id": "anna"},
        "input": "Hello.",
        "response_format": "wav",
        "extra_body": SHORT,
    }
    async with openai.AsyncOpenAI(base_url=f"{studio.url}/v1", api_key="any", max_retries=0) as other:
        answer = await other.audio.speech.create(**request)  # type: ignore[arg-type]
    assert answer.content == client.audio.speech.create(**request).content  # type: ignore[arg-type]


def test_reference_clip_is_sent_in_extra_body(client: openai.OpenAI) -> None:
    clone = {"ref_audio": data_url(wav(tone(2))), "ref_text": "My words."}
    answer = client.audio.speech.with_raw_response.create(
        model="tts-1", voice="alloy", input="Hello.", response_format="wav", extra_body=SHORT | clone
    )
    assert answer.headers["x-voice"] == "clip"


def test_models_are_listed_and_retrieved(client: openai.OpenAI) -> None:
    ids = [model.id for model in client.models.list()]
    assert "tts-1" in ids
    assert client.models.retrieve(ids[0]).id == ids[0]


def test_refusals_raise_the_sdks_own_errors(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.speech.create(model="tts-1", voice="nobody", input="Hello.", response_format="wav")
    assert (refused.value.code, refused.value.param) == ("voice_not_found", "voice")
    assert "nobody" in refused.value.message
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("dall-e")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="blank"):
        client.audio.speech.create(model="tts-1", voice="alloy", input="", response_format="wav")


def test_closing_a_stream_frees_the_row(studio: Served, client: openai.OpenAI) -> None:
    with client.audio.speech.with_streaming_response.create(
        model="tts-1", voice="alloy", input="A long story.", response_format="wav", extra_body={"max_new_tokens": 1500}
    ) as answer:
        next(answer.iter_bytes(4000))
    studio.until(running=0, waiting=0)


def test_client_timeout_frees_the_row(studio: Served, client: openai.OpenAI) -> None:
    with pytest.raises((openai.APITimeoutError, httpx.TimeoutException)):
        client.audio.speech.create(
            model="tts-1",
            voice="alloy",
            input="A long story.",
            response_format="wav",
            extra_body={"max_new_tokens": 1500},
            timeout=openai.Timeout(0.001, connect=5),
        )
    studio.until(running=0, waiting=0)


def test_recordings_are_transcribed_in_every_format(voices_folder: Path, tmp_path: Path) -> None:
    write_model(tmp_path / "whisper", ["Hello", "you."], 1.0)
    recogniser = f"faster-whisper:{tmp_path / 'whisper'}"
    settings = Settings(model="test/model", voices=str(voices_folder), home=str(tmp_path), transcriber=recogniser)
    sound = ("a.wav", wav(tone(2.0)))
    with serve(settings, FakeEngine.start) as served:
        client = openai.OpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0)
        create = client.audio.transcriptions.create
        assert create(model="whisper-1", file=sound).text == "Hello you."
        assert create(model="whisper-1", file=sound, response_format="text").strip() == "Hello you."
        srt = create(model="whisper-1", file=sound, response_format="srt")
        assert srt.startswith("1\n00:00:00,000 --> 00:00:0") and "Hello you." in srt
        assert create(model="whisper-1", file=sound, response_format="vtt").startswith("WEBVTT")
        verbose = create(
            model="whisper-1",
            file=sound,
            response_format="verbose_json",
            timestamp_granularities=["word"],
            language="en",
        )
        assert [word.word for word in verbose.words or ()] == ["Hello", "you."]
        assert verbose.segments and verbose.segments[0].text == "Hello you." and verbose.duration == 2.0
        with pytest.raises(openai.BadRequestError, match="json, text, srt"):
            create(model="whisper-1", file=sound, response_format="diarized_json")
        with pytest.raises(openai.BadRequestError, match="from 1 to 300 s"):
            create(model="whisper-1", file=("a.wav", wav(tone(0.2))))


def test_without_a_recogniser_transcription_is_refused_in_words(client: openai.OpenAI) -> None:
    with pytest.raises(openai.APIStatusError, match="no speech recogniser is installed") as refused:
        client.audio.transcriptions.create(model="whisper-1", file=("a.wav", wav(tone(2.0))))
    assert refused.value.status_code == 501
