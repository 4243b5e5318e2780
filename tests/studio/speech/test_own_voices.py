"""Models with voices of their own: their voices in lists, languages and instructions, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine import Engine, ModelCard, Sampling
from studio.settings import Settings
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.tiny_qwen import write_qwen
from tests.waiting import wait_until

SPEECH, VOICES = "/v1/audio/speech", "/v1/audio/voices"
Steer = Callable[..., tuple[Served, FakeEngine]]
QWEN: dict[str, Any] = {
    "card": ModelCard(tags=(), normalize=True),
    "languages": ("en", "de", "zh"),
    "remembers": False,
    "sampling": Sampling(0.9, 1.0, 50),
}
CUSTOM = QWEN | {"clones": False, "speakers": ("Ryan", "uncle_fu"), "instructs": True}
CLIP: dict[str, Any] = {"ref_audio": "data:audio/wav;base64,UklGRg==", "ref_text": "words"}


def qwen(steered: Steer, **more: Any) -> tuple[Served, FakeEngine]:
    served, engine = steered()
    engine.info = replace(engine.info, **(QWEN | more))
    return served, engine


def say(client: httpx.Client, text: str = "Hello there.", **fields: Any) -> httpx.Response:
    return client.post(SPEECH, json={"input": text, "response_format": "wav"} | fields)


def refusal(client: httpx.Client, text: str = "Hello there.", **fields: Any) -> str:
    answer = say(client, text, **fields)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"]["message"])


def test_own_voices_are_listed_and_spoken_and_taken_again(steered: Steer) -> None:
    served, engine = qwen(steered, **CUSTOM)
    with served.client() as client:
        listed = client.get(VOICES).json()
        names = [voice["id"] for voice in listed["voices"]]
        assert names == ["ryan", "uncle_fu", "random", "anna", "bert"] and listed["first_choice"] == "ryan"
        assert [(voice["name"], voice["language"]) for voice in listed["voices"]][:2] == [
            ("Ryan", "en"),
            ("Uncle Fu", "zh"),
        ]
        assert say(client).headers["x-voice"] == "ryan", "the default"
        eleven, found = (client.get(f"/elevenlabs/{path}").json() for path in ("v1/voices", "v2/voices?search=fu"))
        assert [voice["voice_id"] for voice in eleven["voices"]][:2] == ["ryan", "uncle_fu"] and len(
            eleven["voices"]
        ) == 4
        assert [voice["name"] for voice in found["voices"]] == ["Uncle Fu"]
        assert [voice["title"] for voice in client.get("/model").json()["items"]][:2] == ["Ryan", "Uncle Fu"]
        for address in ("/elevenlabs/v1/voices/uncle_fu", "/model/uncle_fu"):
            voice = client.get(address).json()
            assert "Uncle Fu" in (voice.get("name"), voice.get("title"))
        answer = say(client, voice="Uncle Fu", instructions=" Quietly. ", language="de", seed=4)
        utterance = engine.utterances[-1]
        assert (utterance.speaker, utterance.instructions, utterance.language) == ("uncle_fu", "Quietly.", "de")
        assert utterance.text == "Hello there." and utterance.references == ()
        assert replace(utterance.sampling, seed=0) == replace(engine.info.sampling, seed=0) != Sampling()
        take = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()
        assert take["voice_id"] is None and take["request"]["voice"] == "uncle_fu"
        assert client.post(SPEECH, json=take["request"]).content == answer.content
        again = engine.utterances[-1]
        assert (again.speaker, again.instructions, again.language) == ("uncle_fu", "Quietly.", "de")
        dialogue: dict[str, Any] = {"cast": {"A": "ryan", "B": "uncle_fu"}, "input": "A: Yes.\nB: No."}
        assert say(client, **dialogue).status_code == 200
        assert [utterance.speaker for utterance in engine.utterances[-2:]] == ["ryan", "uncle_fu"]
        assert client.delete(f"{VOICES}/ryan").status_code == 404, "nobody can edit them"


def test_a_small_model_speaks_in_its_own_voices(voices_folder: Path, tmp_path: Path) -> None:
    model = write_qwen(tmp_path / "qwen", "custom_voice")
    settings = Settings(model=str(model), voices=str(voices_folder), home=str(tmp_path / "home"), threads=1)
    with serve(settings, Engine.start) as served, served.client() as client:
        common: dict[str, Any] = {"seed": 5, "max_new_tokens": 8, "text": "He said [softly] hello."}
        sounds = [
            say(client, **common, **fields).content
            for fields in ({}, {"voice": "Ryan"}, {"voice": "eric"}, {"instructions": "Sadly."}, {"language": "zh"})
        ]
        assert sounds[0] == sounds[1] and len(set(sounds)) == 4
        assert "does not speak 'sv'; it speaks chinese, english" in refusal(client, language="sv")
        assert "only in its own: ryan, eric" in refusal(client, voice="anna")
        listed = client.get("/v1/models").json()["data"][0]
        assert listed["tags"] == [] and listed["normalize"] and listed["languages"] == ["zh", "en"]
        assert client.get("/health").json()["background"]["warming"]["ok"], "no voice is encoded in vain"


def test_a_described_voice_is_kept_and_spoken_by_another_model(voices_folder: Path, tmp_path: Path) -> None:
    model, other = (write_qwen(tmp_path / kind, kind) for kind in ("voice_design", "base"))
    settings = Settings(model=str(model), voices=str(voices_folder), home=str(tmp_path / "home"), threads=1)
    design = {"task_type": "VoiceDesign", "instructions": "An old sailor, hoarse, warm."}
    with serve(settings, Engine.start) as served, served.client() as client:
        assert "instructions is blank" in refusal(client, task_type="VoiceDesign", instructions=" ")
        assert "send instructions without ref_audio" in refusal(client, **design, **CLIP)
        assert "send instructions without voice" in refusal(client, **design, voice="anna")
        assert client.post(SPEECH, json=design | {"input": " "}).json()["error"]["param"] == "input"
        kinds: tuple[dict[str, Any], ...] = ({"seed": 1}, {"seed": 2}, {"seed": 1, "instructions": "A child."})
        items = [{"input": "Hello there."} | kind for kind in kinds]
        candidates = client.post(f"{SPEECH}/batch", json=design | {"items": items}).json()["results"]
        assert len({candidate["audio_data"] for candidate in candidates}) == 3
        assert {candidate["voice"] for candidate in candidates} == {"random"}
        take = candidates[0]["id"]
        assert client.get(f"/v1/takes/{take}").json()["request"]["instructions"] == design["instructions"]
        kept = client.post(VOICES, files={"name": (None, "Sailor"), "take_id": (None, take)})
        assert kept.status_code == 200, kept.text
        assert client.get("/v1/voices/sailor").json()["samples"][0]["text"] == "Hello there."
        assert client.put("/v1/engine/model", json={"model": str(other)}).status_code == 202
        state = wait_until(lambda state: state["switching_to"] is None, lambda: client.get("/v1/engine/model").json())
        assert state["status"] == "ready" and state["error"] is None
        assert say(client, voice="sailor", max_new_tokens=4).status_code == 200
        told = refusal(client, **design)
        assert "load Qwen3-TTS 1.7B VoiceDesign (qwen3-tts-1.7b-voicedesign)" in told


def test_refusals_say_what_to_do(steered: Steer) -> None:
    served, engine = qwen(steered, **CUSTOM)
    with served.client() as client:
        for fields in ({"voice": "anna"}, CLIP):
            assert "only in its own: ryan, uncle_fu; choose one of these, or load a model that clones" in refusal(
                client, **fields
            )
        engine.info = replace(engine.info, speakers=())
        assert "only in its own: random, with a description" in refusal(client, voice="anna")
        assert say(client, instructions="An old man.").status_code == 200, "a described voice"
        assert engine.utterances[-1].instructions == "An old man." and engine.utterances[-1].speaker is None
        long = "This is a sentence of a long text. " * 20
        assert "another voice for each part" in refusal(client, long, instructions="An old man.")
    assert all(text.startswith("My name") for _, _, text in engine.encoded), "at the start, as another model's voices"


@pytest.mark.parametrize(
    ("text", "fields", "language"),
    [
        ("This is the text and it is in English.", {}, "en"),
        ("Das ist der Text, und er ist auf Deutsch.", {"voice": "bert"}, "de"),
        ("Ok.", {}, None),
        ("Ok.", {"language": "zh-CN"}, "zh-CN"),
        ("Questo è il testo e non è in inglese, ma in italiano.", {}, None),
    ],
)
def test_the_model_is_told_the_language_of_the_whole_text(
    steered: Steer, text: str, fields: dict[str, str], language: str | None
) -> None:
    served, engine = qwen(steered)
    with served.client() as client:
        answer = say(client, text, instructions="Quickly.", **fields)
        assert answer.headers["x-instructions"].startswith("ignored")
        assert engine.utterances[-1].language == language and not engine.utterances[-1].instructions
        engine.info = replace(engine.info, languages=())
        say(client, "This is the text and it is in English.")
        assert engine.utterances[-1].language is None
