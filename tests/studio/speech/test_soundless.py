"""Words without audio from the model give a short silence in every format; a text without any word is refused."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Callable

import av
import numpy as np

from audio.formats import FORMATS
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.speech.test_socket import open_socket, send, sentence

SPEECH = "/v1/audio/speech"
Steer = Callable[..., Steered]


def seconds_of(file: bytes, format_name: str) -> float:
    if format_name == "pcm":
        return len(file) / 2 / 24_000
    if format_name in ("ulaw", "alaw"):
        return len(file) / 8_000
    with av.open(io.BytesIO(file), "r") as source:
        frames = [frame.to_ndarray().reshape(-1).astype(np.float64) for frame in source.decode(audio=0)]
        assert not np.abs(np.concatenate(frames)).max() > 1e-3
        return sum(map(len, frames)) / source.streams.audio[0].codec_context.sample_rate


def test_words_without_audio_give_a_short_silence(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        for format_name, speed in itertools.product(FORMATS, (1, 4)):
            engine.spoilt = ["mute"]
            answer = client.post(SPEECH, json={"input": "Hm", "response_format": format_name, "speed": speed})
            assert answer.status_code == 200
            assert 0.05 <= seconds_of(answer.content, format_name) < 0.25, (format_name, speed)
        take = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()
    assert (take["frames"], take["finish_reason"], take["state"]) == (0, "stop", "finished")
    assert take["stored"] and take["audio"]


def test_text_without_audio_is_handled_in_events_batches_and_dialogues(steered: Steer) -> None:
    served, engine = steered()
    engine.spoilt = ["mute"] * 4
    with served.client() as client:
        events = client.post(SPEECH, json={"input": "Hm…", "response_format": "pcm", "stream_format": "sse"}).text
        deltas = [json.loads(line[6:]) for line in events.splitlines() if line.startswith("data: {")]
        assert len(b"".join(base64.b64decode(delta.get("audio", "")) for delta in deltas)) == 4800
        batch = {"items": [{"input": "Hm"}], "response_format": "pcm"}
        result = client.post(f"{SPEECH}/batch", json=batch).json()["results"][0]
        assert result["status"] == "success" and len(base64.b64decode(result["audio_data"])) == 4800
        dialogue = {"input": "Anna: …\nBert: Hm!", "cast": {}, "turn_gap": 0, "response_format": "pcm"}
        assert len(client.post(SPEECH, json=dialogue).content) == 4800


def test_socket_sends_silence_for_a_soundless_sentence_and_nothing_for_an_invisible_one(steered: Steer) -> None:
    served, engine = steered()
    engine.spoilt = ["mute"]
    with open_socket(served) as socket:
        send(socket, "input.text", text="Hm... \u200b\n\u200b")
        send(socket, "input.flush")
        start, audio, _ = sentence(socket)
        assert start["sentence_text"] == "Hm..." and len(audio) == 4800
        send(socket, "input.done")
        assert json.loads(socket.recv(60)) == {"type": "session.done", "total_sentences": 1}


def test_part_without_audio_adds_nothing_to_a_part_with_audio(steered: Steer) -> None:
    served, engine = steered()
    engine.spoilt = ["", "mute"]
    with served.client() as client:
        text = "One two. [pause:1s] …"
        answer = client.post(SPEECH, json={"input": text, "response_format": "pcm", "sample_rate": 44_100})
    assert len(answer.content) == 2 * (12 * 2048 + 44_100)


INVISIBLE = ["\u200b", " \n\t\u200b", "\u00ad", "\u2060", "\u00a0\u3000\ufeff", "\ufe0f", "\u3164"]


def test_invisible_text_is_refused_as_blank(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        for text in INVISIBLE:
            assert_envelope(client.post(SPEECH, json={"input": text}), 400, "input")
            assert_envelope(client.post(SPEECH, json={"input": f"Anna: Hi.\nBert: {text}", "cast": {}}), 400, "input")
    assert engine.utterances == []


WORDLESS = [
    "👍",
    "🎉🎉\n\n***",
    "---",
    "[pause:1s] …",
    "<|speaker:0|>…",
    "\U0010ffff\ue000",
    "[pause:1s]",
]


def test_text_without_words_is_refused_on_every_route(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        for text in WORDLESS:
            refused = client.post(SPEECH, json={"input": text})
            assert_envelope(refused, 400, "input")
            assert "no words" in refused.text and refused.json()["error"]["code"] == "nothing_to_say", text
        result = client.post(f"{SPEECH}/batch", json={"items": [{"input": "👍"}]}).json()["results"][0]
        assert result["status"] == "error" and result["error"]["code"] == "nothing_to_say"
        assert_envelope(client.post(SPEECH, json={"input": "Anna: …\nBert: !", "cast": {}}), 400, "input")
    assert engine.utterances == []


def test_lone_symbols_in_a_stream_are_skipped(steered: Steer) -> None:
    served, engine = steered()
    with open_socket(served) as socket:
        for alone in ("👍", "\ue000"):
            send(socket, "input.text", text=alone)
            send(socket, "input.flush")
        send(socket, "input.text", text="One two.\n\n🎉\n\n***\n\nThree.")
        assert sentence(socket)[0]["sentence_index"] == 0
        send(socket, "input.done")
        assert sentence(socket)[0]["sentence_index"] == 1
        assert json.loads(socket.recv(60)) == {"type": "session.done", "total_sentences": 2}
    assert len(engine.utterances) == 2 and engine.utterances[0].text == "One two."
