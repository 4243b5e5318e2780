"""Clips compared with their transcripts: audible differences, and the recogniser if one is installed."""

from __future__ import annotations

import asyncio
import sys
import threading
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import openai
import pytest

from audio.read import read_clip
from studio.errors import QueueFull, SettingsError
from studio.voices.clip_service import ClipService
from studio.voices.recogniser import Transcriber
from studio.voices.recordings import transcribed
from studio.work import CLIPS, TRANSCRIBING, WorkQueue
from tests.studio.clips import file_of, samples_of, spoken
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served
from tests.studio.voices.whisper import write_model

ADVISE, TRANSCRIBE = "/v1/voices/advise", "/v1/voices/transcribe"
Steer = Callable[..., tuple[Served, FakeEngine]]


@dataclass
class Word:
    word: str
    start: float = 0.1
    end: float = 0.4
    probability: float = 0.9


@dataclass
class Segment:
    text: str
    words: list[Word] = field(default_factory=list)


@dataclass
class Info:
    language: str


class WhisperModel:
    """Replaces the recogniser, whose weights are not available: recognises the first words, and records its input."""

    supported_languages = ("en", "de")
    heard: list[tuple[np.ndarray, str | None]]
    gate: threading.Event
    broken: bool
    silent: bool

    def __init__(self, name: str, compute_type: str) -> None:
        assert compute_type == "auto", "on a CPU, 8 bits are heard twice as fast"
        self.name = name
        if self.broken:
            raise RuntimeError(f"no model {name}")

    def transcribe(
        self, audio: np.ndarray, language: str | None = None, word_timestamps: bool = False
    ) -> tuple[list[Segment], Info]:
        assert word_timestamps
        self.gate.wait(30)
        self.heard.append((audio, language))
        if self.silent:
            return [], Info(language or "en")
        first = [Word(f" {word}") for word in ["The", "birch", "canoe", "slid"]]
        return [Segment(" The birch canoe slid", first), Segment(" on the smooth planks.")], Info(language or "en")


@pytest.fixture
def recogniser(monkeypatch: pytest.MonkeyPatch) -> type[WhisperModel]:
    module = types.ModuleType("faster_whisper")
    module.__spec__ = types.SimpleNamespace(name="faster_whisper")  # type: ignore[assignment]
    module.WhisperModel = WhisperModel  # type: ignore[attr-defined]
    module.download_model = lambda name, local_files_only: name  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "faster_whisper", module)
    WhisperModel.heard, WhisperModel.gate = [], threading.Event()
    WhisperModel.broken = WhisperModel.silent = False
    WhisperModel.gate.set()
    return WhisperModel


def test_folder_of_the_recogniser_is_shown_to_nobody(
    recogniser: type[WhisperModel], steered: Steer, tmp_path: Path
) -> None:
    folder = tmp_path / "of the owner" / "my-whisper"
    folder.mkdir(parents=True)
    recogniser.broken = True
    served, _ = steered(transcriber=f"faster-whisper:{folder}", api_keys="sk-1,sk-2")
    with served.client() as client:
        client.headers["Authorization"] = "Bearer sk-2"
        answers = [client.get(path) for path in ("/health", "/v1/recogniser", "/v1/diagnostics", "/v1/settings")]
        answers.append(client.post(TRANSCRIBE, files={"audio_sample": ("me.wav", spoken())}))
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 503]
    assert not [answer.text for answer in answers if str(tmp_path / "of the owner") in answer.text]
    assert answers[0].json()["transcriber"] == answers[1].json()["name"] == "faster-whisper:my-whisper"
    assert "my-whisper failed: no model my-whisper" in answers[-1].json()["error"]["message"]
    assert answers[1].json()["install"] is None


def test_clip_is_transcribed_and_compared_if_a_recogniser_is_installed(
    recogniser: type[WhisperModel], steered: Steer
) -> None:
    served, _ = steered(transcriber="faster-whisper:small")
    files = {"audio_sample": ("me.wav", spoken())}
    with served.client() as client:
        assert client.get("/health").json()["transcriber"] == "faster-whisper:small"
        data = {
            "ref_text": "The birch canoe slid on the smooth planks, and the fish swam home.",
            "language": "en-GB",
            "start": "0",
            "end": "2",
        }
        transcript = client.post(TRANSCRIBE, data=data, files=files).json()
        advice = client.post(ADVISE, data={"ref_text": "The Birch!", "heard": "the beech"}, files=files).json()
    assert transcript["text"] == "The birch canoe slid on the smooth planks." and transcript["language"] == "en"
    assert transcript["words"][1] == {"word": "birch", "start": 0.1, "end": 0.4, "probability": 0.9}
    assert transcript["marks"][1] == {"text": "and the fish swam home", "heard": ""}
    assert transcript["seconds"] == 2
    audio, language = recogniser.heard[0]
    assert len(audio) == 2 * 16_000 and language == "en"
    assert advice["marks"] == [
        {"text": "The ", "heard": None}, {"text": "Birch", "heard": "beech"}, {"text": "!", "heard": None}
    ]  # fmt: skip
    assert advice["cut"] == {"start": 0, "end": None, "gain_db": 0, "channel": None}


def test_voice_created_by_openais_client_without_a_transcript_is_transcribed(
    recogniser: type[WhisperModel], steered: Steer
) -> None:
    served, _ = steered(transcriber="faster-whisper:small")
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as sdk:
        voice = sdk.audio.voices.create(name="Eve", audio_sample=("me.wav", spoken()), consent="I agree.")
        with served.client() as client:
            voice_record = client.get(f"/v1/voices/{voice.id}").json()
            data = {"end": "2", "language": "de-AT"}
            files = {"audio_sample": ("me.wav", spoken(2))}
            assert client.post("/v1/voices/eve/samples", data=data, files=files).status_code == 200
        assert [sample["text"] for sample in voice_record["samples"]] == ["The birch canoe slid on the smooth planks."]
        assert [language for _, language in recogniser.heard] == [None, "de"]
        assert len(recogniser.heard[1][0]) == 2 * 16_000, "the cut alone is heard"
        recogniser.silent = True
        with pytest.raises(openai.BadRequestError, match="no words were recognised in the clip"):
            sdk.audio.voices.create(name="Ida", audio_sample=("me.wav", spoken()), consent="I agree.")
    unable, _ = steered()
    with openai.OpenAI(base_url=f"{unable.url}/v1", api_key="none", max_retries=0) as sdk:
        with pytest.raises(openai.BadRequestError, match=r"extra_body.*STUDIO_TRANSCRIBER=faster-wh") as refusal:
            sdk.audio.voices.create(name="Ida", audio_sample=("me.wav", spoken()), consent="I agree.")
        assert refusal.value.param == "ref_text"


def test_real_faster_whisper_transcribes_a_clip(steered: Steer, tmp_path: Path) -> None:
    write_model(tmp_path / "model", ["The", "birch", "canoe", "slid."], seconds=1.9)
    served, _ = steered(transcriber=f"faster-whisper:{tmp_path / 'model'}")
    files = {"audio_sample": ("me.wav", spoken())}
    with served.client() as client:
        transcript = client.post(TRANSCRIBE, data={"ref_text": "The canoe slid.", "end": "2"}, files=files).json()
        unknown = client.post(TRANSCRIBE, data={"language": "nds", "end": "2"}, files=files).json()
    assert transcript["text"] == unknown["text"] == "The birch canoe slid." and transcript["language"] == "en"
    assert [word["word"] for word in transcript["words"]] == ["The", "birch", "canoe", "slid."]
    times = [time for word in transcript["words"] for time in (word["start"], word["end"])]
    assert times == sorted(times) and 0 <= times[0] < times[-1] <= transcript["seconds"] == 2
    assert all(word["probability"] > 0.9 for word in transcript["words"])
    assert {"text": "", "heard": "birch"} in transcript["marks"]


def test_missing_model_is_named(steered: Steer, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no folder /no/such"):
        steered(transcriber="faster-whisper:/no/such")
    reasons = {
        str(tmp_path): "model.bin",
        "gigantic": "'gigantic', expected one of: tiny",
        "nobody/nothing": "owner can download it with",
    }
    for name, why in reasons.items():
        served, _ = steered(transcriber=f"faster-whisper:{name}")
        with served.client() as client:
            answer = client.post(TRANSCRIBE, files={"audio_sample": ("me.wav", spoken())})
        assert answer.status_code == 503 and why in answer.json()["error"]["message"]


def test_transcriptions_wait_in_a_short_queue(recogniser: type[WhisperModel], steered: Steer) -> None:
    served, _ = steered(transcriber="faster-whisper:small")
    recogniser.gate.clear()
    clip = spoken()

    def transcribe(_: int) -> int:
        with served.client() as client:
            status = client.post(TRANSCRIBE, files={"audio_sample": ("me.wav", clip)}).status_code
        recogniser.gate.set()  # the refused caller lets the others continue
        return status

    callers = TRANSCRIBING.per_caller + 1
    with ThreadPoolExecutor(callers) as pool:
        statuses = sorted(pool.map(transcribe, range(callers)))
    assert statuses == [200] * (callers - 1) + [429]


async def test_recording_keeps_its_place_until_all_its_pieces_are_transcribed(recogniser: type[WhisperModel]) -> None:
    queue = WorkQueue(replace(TRANSCRIBING, waiting=0))
    transcriber, nothing = Transcriber(queue, "faster-whisper:small"), cast("Any", None)
    clips, (pcm, rate) = ClipService(WorkQueue(CLIPS), transcriber, nothing, nothing), samples_of(spoken())
    whole = asyncio.create_task(transcribed(clips, "anne", file_of(np.tile(pcm, 12), rate), "en", "file"))
    clip, refused = read_clip(spoken()), 0
    while not whole.done():
        if recogniser.heard:
            try:
                await transcriber.transcribe(clip, "bob")
            except QueueFull:
                refused += 1
        await asyncio.sleep(0)
    assert (await whole).transcription.text.count("birch") > 1 and refused


def test_failing_recogniser_reports_the_reason(recogniser: type[WhisperModel], steered: Steer) -> None:
    served, _ = steered(transcriber="faster-whisper:small")
    recogniser.broken = True
    with served.client() as client:
        answer = client.post(TRANSCRIBE, files={"audio_sample": ("me.wav", spoken())})
    assert answer.status_code == 503 and "no model small" in answer.json()["error"]["message"]


def test_missing_recogniser_is_reported_and_an_unusable_setting_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, steered: Steer
) -> None:
    served, _ = steered()
    with served.client() as client:
        answer = client.post(TRANSCRIBE, files={"audio_sample": ("me.wav", spoken())})
        assert client.get("/health").json()["transcriber"] is None
    assert answer.status_code == 501
    error = answer.json()["error"]
    assert error["code"] == "not_offered" and "type the transcript" in error["message"]
    with pytest.raises(SettingsError, match="the name must be faster-whisper:MODEL"):
        steered(transcriber="parrot")
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(SettingsError, match="not installed"):
        steered(transcriber="faster-whisper:small")
