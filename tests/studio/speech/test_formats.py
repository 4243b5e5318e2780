"""Every format gives a file that other programs read, streams while it is encoded, and is the same as events."""

from __future__ import annotations

import base64
import io
import json
import subprocess
from collections.abc import Callable
from dataclasses import replace

import httpx
import imageio_ffmpeg
import numpy as np
import pytest
import soundfile

from audio.formats import FORMATS, MEDIA_TYPES, SAMPLE_RATES, open_encoder
from engine import ModelCard
from tests.studio.conftest import Steered
from tests.studio.server import Served
from tests.studio.sounds import decoded, tone

SPEECH = "/v1/audio/speech"
DEMUXERS = {"mp3": "mp3", "opus": "ogg", "aac": "aac", "flac": "flac", "wav": "wav"}
MAGIC = {"mp3": b"\xff\xfb", "opus": b"OggS", "aac": b"\xff\xf1", "flac": b"fLaC", "wav": b"RIFF"}
PADDING = {"mp3": 2400, "opus": 1000, "aac": 3100}
"""Samples that a codec may add before and after the sound."""

Steer = Callable[..., Steered]


def encoded(name: str, pcm: np.ndarray, **options: int) -> list[bytes]:
    encoder = open_encoder(name, 44_100, options.get("sample_rate"), options.get("samples"))
    return [*(encoder.write(pcm[at : at + 2048]) for at in range(0, len(pcm), 2048)), encoder.finish()]


@pytest.mark.parametrize("name", DEMUXERS)
def test_encoded_file_has_the_named_format_and_the_audio(name: str) -> None:
    pieces = encoded(name, tone(2))
    data = b"".join(pieces)
    assert data.startswith(MAGIC[name])
    rate, pcm = decoded(data, DEMUXERS[name])
    assert rate == (48_000 if name == "opus" else 44_100)
    assert 0 <= len(pcm) - 2 * rate <= PADDING.get(name, 0)
    middle = pcm[rate // 2 : rate * 3 // 2]
    assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.06)  # LAME lowers by 0.45 dB
    strongest = np.argmax(np.abs(np.fft.rfft(middle)))
    assert strongest * rate / len(middle) == pytest.approx(440, abs=2)


@pytest.mark.parametrize("sample_rate", [44_100, 24_000])
def test_flac_header_states_a_known_length(sample_rate: int) -> None:
    pcm = tone(1.3)[:-7]
    data = b"".join(encoded("flac", pcm, sample_rate=sample_rate, samples=len(pcm)))
    samples = soundfile.info(io.BytesIO(data)).frames
    assert samples == -(-len(pcm) * sample_rate // 44_100) == len(decoded(data, "flac")[1])


@pytest.mark.parametrize("name", FORMATS)
def test_encoder_outputs_bytes_before_the_audio_ends(name: str) -> None:
    pieces = encoded(name, tone(3))
    whole = sum(map(len, pieces))
    assert len(pieces[0]) + len(pieces[1]) > 0
    assert sum(map(len, pieces[: len(pieces) // 2])) > 0.4 * whole


@pytest.mark.parametrize("name", FORMATS)
def test_empty_audio_can_be_encoded(name: str) -> None:
    data = b"".join(encoded(name, np.zeros(0, np.float32)))
    assert isinstance(data, bytes)


@pytest.mark.parametrize("rate", SAMPLE_RATES)
def test_file_has_the_requested_sample_rate(rate: int) -> None:
    for name in ("wav", "flac", "mp3"):
        got, pcm = decoded(b"".join(encoded(name, tone(1), sample_rate=rate)), DEMUXERS[name])
        assert got == rate
        assert 0 <= len(pcm) - rate <= PADDING.get(name, 0)


def test_mp3_has_no_id3_or_xing_header_and_two_can_be_joined() -> None:
    one, two = (b"".join(encoded("mp3", tone(2, hertz=hertz))) for hertz in (300, 600))
    assert not one.startswith(b"ID3") and b"Xing" not in one and b"Info" not in one[:200]
    rate, pcm = decoded(one + two, "mp3")
    assert len(pcm) / rate == pytest.approx(4, abs=0.15)


@pytest.mark.parametrize("name", FORMATS)
def test_ffmpeg_decodes_every_format_without_errors(name: str) -> None:
    raw = ["-f", "s16le", "-ar", "24000", "-ac", "1"]
    telephone = ["-ar", "8000", "-ac", "1"]
    known = {"pcm": raw, "ulaw": ["-f", "mulaw", *telephone], "alaw": ["-f", "alaw", *telephone]}.get(name, [])
    done = subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *known, "-i", "-", *raw, "-"],
        input=b"".join(encoded(name, tone(2))),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == b""
    assert len(done.stdout) / 2 / 24_000 == pytest.approx(2, abs=0.1)


def test_soundfile_reads_supported_formats() -> None:
    for name in ("wav", "mp3", "opus"):
        pcm, rate = soundfile.read(io.BytesIO(b"".join(encoded(name, tone(1)))))
        assert len(pcm) >= rate


def test_unsupported_model_rate_is_resampled_for_mp3() -> None:
    encoder = open_encoder("mp3", 20_000)
    data = encoder.write(tone(1, 20_000)) + encoder.finish()
    assert decoded(data, "mp3")[0] == 44_100


@pytest.mark.parametrize("name", FORMATS)
def test_response_has_the_media_type_of_its_format(studio: Served, name: str) -> None:
    with studio.client() as client:
        answer = client.post(SPEECH, json={"input": "Hi.", "max_new_tokens": 8, "seed": 1, "response_format": name})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == MEDIA_TYPES[name]
    assert answer.content


def test_mp3_is_the_default_format(studio: Served) -> None:
    with studio.client() as client:
        answer = client.post(SPEECH, json={"input": "Hi.", "max_new_tokens": 8})
    assert answer.headers["content-type"] == "audio/mpeg"


def test_pcm_has_the_requested_rate_and_states_it(studio: Served) -> None:
    request = {"input": "Hi.", "max_new_tokens": 8, "seed": 1, "response_format": "pcm"}
    with studio.client() as client:
        native = client.post(SPEECH, json=request | {"sample_rate": 44_100})
        phone = client.post(SPEECH, json=request | {"sample_rate": 8_000})
    assert native.headers["content-type"] == "audio/pcm;rate=44100;channels=1"
    assert native.headers["x-sample-rate"] == "44100"
    assert len(phone.content) // 2 == -(-(len(native.content) // 2) * 8_000 // 44_100)


def events_of(answer: httpx.Response) -> list[dict[str, object]]:
    """The events of a stream, which must be nothing but event and data lines."""
    blocks = answer.content.decode().split("\n\n")
    assert blocks.pop() == ""
    events = []
    for block in blocks:
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


@pytest.mark.parametrize("name", FORMATS)
def test_events_contain_the_same_file_as_a_plain_response(studio: Served, name: str) -> None:
    request = {"input": "Hi there.", "max_new_tokens": 8, "seed": 1, "response_format": name}
    with studio.client() as client:
        whole = client.post(SPEECH, json=request).content
        answer = client.post(SPEECH, json=request | {"stream_format": "sse"})
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    *deltas, done = events_of(answer)
    assert len(deltas) > 1
    assert b"".join(base64.b64decode(str(delta["audio"])) for delta in deltas) == whole
    assert done["type"] == "speech.audio.done"
    assert done["usage"]["input_tokens"] == len("Hi there.")  # type: ignore[index]
    assert done["usage"]["total_tokens"] == done["usage"]["input_tokens"] + done["usage"]["output_tokens"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("fields", "accept", "events"),
    [
        ({"stream": True}, "*/*", False),  # Kokoro-FastAPI's clients
        ({"stream_format": "audio"}, "text/event-stream", False),
        ({"stream": False, "stream_format": "sse"}, "application/octet-stream", True),  # OpenAI's SDKs
        ({"stream": True}, "application/json, Text/Event-Stream", True),
    ],
)
def test_events_are_sent_only_if_asked_for(
    steered: Steer, fields: dict[str, object], accept: str, events: bool
) -> None:
    served, _ = steered()
    with served.client(headers={"Accept": accept}) as client:
        answer = client.post(SPEECH, json={"input": "a", **fields})
    assert answer.headers["content-type"].startswith("text/event-stream") == events


def test_failure_during_events_is_the_last_event(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    body = {"input": "a b", "response_format": "wav", "stream_format": "sse"}
    with served.client() as client, client.stream("POST", SPEECH, json=body) as answer:
        seen = b""
        for piece in answer.iter_raw():
            seen += piece
            engine.dead = "the device fell off the bus"
    last = seen.decode().strip().split("\n\n")[-1]
    assert last.startswith("event: error\n")
    error = json.loads(last.split("data: ")[1])["error"]
    assert "fell off" in error["message"] and error["type"] == "server_error"
    assert b"speech.audio.done" not in seen


def test_instructions_are_never_spoken_by_a_model_with_its_own_tags(steered: Steer) -> None:
    served, engine = steered()
    engine.info = replace(engine.info, card=ModelCard(tags=("whisper",)))
    with served.client() as client:
        for instructions in ("Speak like a pirate.", "None", None):
            assert client.post(SPEECH, json={"input": "a", "instructions": instructions}).status_code == 200
    assert {utterance.text for utterance in engine.utterances} == {"a"}


@pytest.mark.parametrize(
    ("instructions", "spoken"),
    [
        ("Cheerful,\n[and] quick", "[Cheerful, and quick] a"),
        ("None", "a"),  # Home Assistant
        ("You will receive partial sentences. Do not complete the sentence, just read out the text.", "a"),
        ("Voice: warm. " * 20, "a"),
        ("…", "a"),
    ],
)
def test_instructions_become_a_tag_of_a_model_with_free_tags(steered: Steer, instructions: str, spoken: str) -> None:
    for is_off, expected in ((True, "a"), (False, spoken)):
        served, engine = steered()
        engine.info = replace(engine.info, card=ModelCard(ignore_instructions=is_off))
        with served.client() as client:
            answer = client.post(SPEECH, json={"input": "a", "instructions": instructions})
            take = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()
        assert [utterance.text for utterance in engine.utterances] == [expected]
        assert take["text"] == expected  # so that repeating it gives the same speech
    dialogue = {"input": "Anna: Hi.", "cast": {"Anna": "anna"}, "instructions": "quick"}
    with served.client() as client:
        assert client.post(SPEECH, json=dialogue).status_code == 200
    assert engine.utterances[-1].text == "Hi."
