"""ElevenLabs' speech over HTTP with the real SDK: formats, fields, the times of characters, errors, keys."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import soundfile
from elevenlabs import VoiceSettings
from elevenlabs.client import AsyncElevenLabs, ElevenLabs
from elevenlabs.core.api_error import ApiError

from protocols.elevenlabs.eleven_names import FORMATS
from studio.settings import read_keys
from tests.studio.conftest import Steered
from tests.studio.server import Served

Steer = Callable[..., Steered]
TEXT = "Hello there. How are you (5%)?"


def client_of(served: Served, key: str = "none", base: str = "/elevenlabs") -> ElevenLabs:
    return ElevenLabs(api_key=key, base_url=served.url + base)


def refused(call: Callable[[], Any]) -> tuple[int, str, str]:
    """Status, code and message of an error."""
    with pytest.raises(ApiError) as error:
        answer = call()
        if hasattr(answer, "__next__"):
            list(answer)
    body: Any = error.value.body
    assert set(body) == {"detail"} and set(body["detail"]) == {"status", "message"}
    return int(error.value.status_code or 0), body["detail"]["status"], body["detail"]["message"]


@pytest.mark.parametrize("base", ["/elevenlabs", ""])
def test_the_sdk_speaks_below_the_prefix_and_at_the_root(steered: Steer, base: str) -> None:
    served, engine = steered()
    client = client_of(served, base=base)
    assert b"".join(client.text_to_speech.convert("anna", text=TEXT))[:2] == b"\xff\xfb"
    assert b"".join(client.text_to_speech.stream("anna", text=TEXT))[:2] == b"\xff\xfb"
    assert [utterance.text for utterance in engine.utterances] == [TEXT] * 2


def test_the_asynchronous_sdk_speaks(steered: Steer) -> None:
    served, _ = steered()

    async def speak() -> tuple[bytes, Any]:
        client = AsyncElevenLabs(api_key="none", base_url=f"{served.url}/elevenlabs")
        pieces = [piece async for piece in client.text_to_speech.convert("anna", text=TEXT)]
        return b"".join(pieces), await client.text_to_speech.convert_with_timestamps("anna", text=TEXT)

    audio, timed = asyncio.run(speak())
    assert audio[:2] == b"\xff\xfb" and "".join(timed.alignment.characters) == TEXT


@pytest.mark.parametrize("name", FORMATS)
def test_every_output_format_of_the_sdk_is_produced(untouched: Steered, name: str) -> None:
    served, _ = untouched
    output_format: Any = name
    audio = b"".join(client_of(served).text_to_speech.convert("anna", text="Hello.", output_format=output_format))
    codec, rate = name.split("_", maxsplit=1)[0], int(name.split("_")[1])
    seconds = 6 * 2048 / 44_100
    if codec in ("pcm", "ulaw", "alaw"):
        assert len(audio) / (2 if codec == "pcm" else 1) == pytest.approx(seconds * rate, abs=2)
        subtype = {"pcm": "PCM_16", "ulaw": "ULAW", "alaw": "ALAW"}[codec]
        pcm, _ = soundfile.read(io.BytesIO(audio), samplerate=rate, channels=1, format="RAW", subtype=subtype)
        assert 0.2 < abs(pcm).max() < 0.7
    else:
        pcm, actual = soundfile.read(io.BytesIO(audio))
        assert actual == rate and len(pcm) / rate == pytest.approx(seconds, abs=0.12)


def test_fields_reach_the_engine(steered: Steer) -> None:
    served, engine = steered()
    client = client_of(served)
    settings = VoiceSettings(stability=0.0, similarity_boost=0.9, style=0.3, use_speaker_boost=True, speed=0.8)
    raw = client.text_to_speech.with_raw_response
    with raw.convert("21m00Tcm4TlvDq8ikWAM", text="One <break time='1.5s' /> two.", voice_settings=settings, seed=7,
                     model_id="eleven_flash_v2_5", previous_text="a", next_text="b", apply_text_normalization="off",
                     output_format="pcm_44100") as answer:  # fmt: skip
        audio = b"".join(answer.data)
    assert answer.headers["request-id"] == answer.headers["history-item-id"]
    assert answer.headers["x-character-count"] == answer.headers["character-cost"] == "30"
    sampling = engine.utterances[0].sampling
    assert (sampling.temperature, sampling.seed) == (1.1, 7)
    assert " ".join(utterance.text for utterance in engine.utterances) == "One two."
    assert len(audio) / 2 / 44_100 == pytest.approx(2 * 6 * 2048 / 44_100 / 0.8 + 1.5, rel=0.03)


def test_takes_are_live_and_those_without_logging_are_not_stored(steered: Steer) -> None:
    served, _ = steered()
    client = client_of(served)
    list(client.text_to_speech.convert("anna", text="Hello."))
    list(client.text_to_speech.convert("anna", text="Hello.", enable_logging=False))
    served.until_left()
    with served.client() as http:
        http.get("/v1/takes")
    assert [take.live for take in served.app.state.studio.library.takes.page()] == [True]


def test_characters_have_times_that_fill_the_audio(steered: Steer) -> None:
    served, _ = steered()
    timed = client_of(served).text_to_speech.convert_with_timestamps("anna", text=TEXT, output_format="pcm_44100")
    seconds = len(base64.b64decode(timed.audio_base_64)) / 2 / 44_100
    for alignment in (timed.alignment, timed.normalized_alignment):
        assert alignment is not None and "".join(alignment.characters) == TEXT
        starts, ends = alignment.character_start_times_seconds, alignment.character_end_times_seconds
        assert len(starts) == len(ends) == len(TEXT)
        assert starts[0] == 0 and ends[-1] == pytest.approx(seconds, abs=0.002)
        assert starts == sorted(starts) and all(start <= end for start, end in zip(starts, ends, strict=True))
        assert starts[1:] == ends[:-1]


def test_times_of_a_long_text_are_streamed_with_its_audio(steered: Steer) -> None:
    served, _ = steered()
    text = "Hello there. How are you? " * 40
    client = client_of(served)
    received = list(client.text_to_speech.stream_with_timestamps("anna", text=text, output_format="pcm_16000"))
    timed = [number for number, line in enumerate(received) if line.alignment]
    assert len(timed) > 2 and timed[0] < len(received) / 2
    for name in ("alignment", "normalized_alignment"):
        alignments: list[Any] = [getattr(line, name) for line in received if getattr(line, name)]
        assert "".join("".join(alignment.characters) for alignment in alignments).strip() == text.strip()
        starts = [start for alignment in alignments for start in alignment.character_start_times_seconds]
        assert starts == sorted(starts)
    audio = b"".join(base64.b64decode(line.audio_base_64) for line in received)
    assert starts[-1] <= len(audio) / 2 / 16_000


def test_a_dialogue_is_spoken_in_its_voices(steered: Steer) -> None:
    served, engine = steered()
    inputs: Any = [
        {"text": "Hello:\nthere.", "voice_id": "anna"},
        {"text": "Hi.", "voice_id": "bert"},
        {"text": "Bye.", "voice_id": "anna"},
    ]
    client = client_of(served)
    audio = b"".join(client.text_to_dialogue.convert(inputs=inputs, output_format="pcm_44100"))
    assert b"".join(client.text_to_dialogue.stream(inputs=inputs)) and audio
    voices = [utterance.references[0].text.split()[-1] for utterance in engine.utterances[:3]]
    assert [utterance.text for utterance in engine.utterances[:3]] == ["Hello: there.", "Hi.", "Bye."]
    assert voices == ["anna.", "bert.", "anna."]


def test_a_dialogue_has_the_times_of_its_characters_and_turns(steered: Steer) -> None:
    served, _ = steered()
    texts = {0: "Hello: there.", 1: " \u200b", 2: "Hi <break time='0.5s'/> you.", 3: "Bye."}
    inputs: Any = [{"text": text, "voice_id": "bert" if index == 2 else "anna"} for index, text in texts.items()]
    dialogue = client_of(served).text_to_dialogue
    whole = dialogue.convert_with_timestamps(inputs=inputs, output_format="pcm_16000")
    lines = list(dialogue.stream_with_timestamps(inputs=inputs, output_format="pcm_16000"))
    audio = b"".join(base64.b64decode(line.audio_base_64) for line in lines)
    seconds = len(audio) / 2 / 16_000
    assert len(base64.b64decode(whole.audio_base_64)) == len(audio)
    streamed = list[Any]()
    for part in (whole, *lines):
        for segment in part.voice_segments:
            assert part.alignment is not None
            signs = part.alignment.characters[segment.character_start_index : segment.character_end_index]
            assert (
                segment.start_time_seconds
                == part.alignment.character_start_times_seconds[segment.character_start_index]
            )
            assert 0 <= segment.start_time_seconds <= segment.end_time_seconds <= seconds + 0.01
            found = (segment.dialogue_input_index, segment.voice_id, "".join(signs))
            streamed += [found] if part is not whole else []
    assert [segment.dialogue_input_index for segment in whole.voice_segments] == [0, 2, 3]
    joined = {index: "".join(text for at, _, text in streamed if at == index) for index in (0, 2, 3)}
    assert joined == {0: "Hello: there.", 2: "Hi [pause:0.5s] you.", 3: "Bye."}
    assert {voice for index, voice, _ in streamed if index == 2} == {"bert"}


@pytest.mark.parametrize(
    ("fields", "status", "code", "words"),
    [
        ({"voice_id": "nobody"}, 400, "voice_not_found", "there is no voice 'nobody'"),
        ({"text": " "}, 400, "invalid_value", "blank"),
        ({"text": "a" * 17_000}, 400, "string_too_long", "16384"),
        ({"output_format": "mp3_1_1"}, 400, "invalid_value", "mp3_44100_128"),
        ({"voice_settings": VoiceSettings(stability=3)}, 400, "less_than_equal", "voice_settings.stability"),
        ({"seed": -1}, 400, "greater_than_equal", "seed"),
        ({"pronunciation_dictionary_locators": [{"pronunciation_dictionary_id": "x"}]}, 400, "value_error", "leave it"),
        ({"apply_text_normalization": "often"}, 400, "literal_error", "apply_text_normalization"),
    ],
)
def test_invalid_fields_are_refused_in_words(
    untouched: Steered, fields: dict[str, Any], status: int, code: str, words: str
) -> None:
    served, _ = untouched
    request = {"voice_id": "anna", "text": "Hello."} | fields
    got = refused(lambda: client_of(served).text_to_speech.convert(**request))
    assert got[:2] == (status, code) and words in got[2]


def test_what_is_lacking_says_so(steered: Steer) -> None:
    served, _ = steered()
    client = ElevenLabs(api_key="none", base_url=served.url)
    options: Any = {"max_retries": 0}
    for call in (
        lambda: client.text_to_sound_effects.convert(text="rain", request_options=options),
        lambda: client.text_to_voice.remix("anna", voice_description="an old sailor", request_options=options),
        lambda: client.music.compose(prompt="a waltz", request_options=options),
        lambda: client.speech_to_speech.convert("anna", audio=b"x", request_options=options),
        lambda: client.dubbing.list(request_options=options),
        lambda: client.voices.pvc.create(name="x", language="en", request_options=options),
    ):
        status, code, message = refused(call)
        assert (status, code) == (501, "not_offered") and message.endswith((".", "speaks."))
    with served.client() as http:
        assert http.get("/elevenlabs/v1/nothing").status_code == 404
        assert "detail" in http.get("/elevenlabs/v1/nothing").json()
        assert http.put("/elevenlabs/v1/text-to-speech/anna").status_code == 405


def test_only_the_header_tells_shared_paths_apart(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as http:
        assert http.get("/v1/models").json()["object"] == "list"
        assert http.get("/v1/voices").json()["object"] == "list"
        both = {"xi-api-key": "none", "authorization": "Bearer none"}
        assert http.get("/v1/voices", headers=both).json()["object"] == "list"
        own = http.post("/v1/audio/speech", json={"input": " "}, headers={"xi-api-key": "none"})
        assert "error" in own.json()
        theirs = http.post("/v1/text-to-speech/anna", json={"text": " "})
        assert "detail" in theirs.json()


def test_keys_are_read_from_the_header_and_wrong_ones_are_refused(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("anna=right-key-1234567890"))
    assert list(client_of(served, "right-key-1234567890").text_to_speech.convert("anna", text="Hello."))
    status, code, message = refused(lambda: client_of(served, "wrong").text_to_speech.convert("anna", text="Hello."))
    assert (status, code) == (401, "invalid_api_key") and "xi-api-key" in message
    with served.client() as http:
        assert http.post("/elevenlabs/v1/text-to-speech/anna", json={"text": "a"}).status_code == 401
        own = http.post("/v1/audio/speech", json={"input": "a"}, headers={"xi-api-key": "right-key-1234567890"})
        assert own.status_code == 401  # the studio's own API has another header


def test_other_origins_are_refused_in_the_form_for_clients(steered: Steer) -> None:
    served, _ = steered()
    headers = {"origin": "https://elsewhere.example"}
    with served.client() as http:
        answer: httpx.Response = http.post("/v1/text-to-speech/anna", json={"text": "a"}, headers=headers)
    assert answer.status_code == 403 and answer.json()["detail"]["status"] == "origin_not_allowed"


def test_leaving_frees_the_row(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    path = "/elevenlabs/v1/text-to-speech/anna/stream/with-timestamps?output_format=pcm_44100"
    served.hang_up(path, {"text": "One two."}, 300, running=1)
    served.until(running=0, waiting=0)
    engine.later_frames_gate.set()
