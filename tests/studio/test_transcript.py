"""Clips against their words: differences that matter, and the recogniser where one is installed."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from studio.settings import Settings, SettingsError
from studio.transcript import Difference, differences
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served
from tests.studio.voices import WORDS, spoken

CASES = {
    "the same": ("Hello, world!", "hello world", ()),
    "spelt in another way": ("The colour is grey.", "the color is gray", ()),
    "a word missing in the clip": ("one two three", "one three", (Difference("two", ""),)),
    "a word more in the clip": ("one three", "one two three", (Difference("", "two"),)),
    "another word": ("the green fish", "the bright fish", (Difference("green", "bright"),)),
    "an end cut off": ("it swam home again", "it swam", (Difference("home again", ""),)),
    "no blanks between words": ("今天天气好。", "今天天氣好", (Difference("气", "氣"),)),
    "apostrophes": ("It’s don't", "its dont", ()),
    "nothing heard": ("words", "", (Difference("words", ""),)),
}


@pytest.mark.parametrize("case", CASES)
def test_only_differences_that_can_be_heard_are_told(case: str) -> None:
    written, heard, expected = CASES[case]
    assert differences(written, heard) == expected


@dataclass
class Segment:
    text: str


class WhisperModel:
    """Stands in for the recogniser, whose weights are not at hand: hears the first words, and notes what it got."""

    heard: list[np.ndarray]

    def __init__(self, name: str) -> None:
        self.name = name
        WhisperModel.heard = []

    def transcribe(self, audio: np.ndarray, language: str | None = None) -> tuple[list[Segment], object]:
        WhisperModel.heard.append(audio)
        return [Segment(" The birch canoe slid"), Segment(" on the smooth planks.")], language


@pytest.fixture
def recogniser(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("faster_whisper")
    module.__spec__ = types.SimpleNamespace(name="faster_whisper")  # type: ignore[assignment]
    module.WhisperModel = WhisperModel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "faster_whisper", module)


def test_a_clip_is_compared_with_its_words_where_a_recogniser_is_installed(
    recogniser: None, steered: Callable[..., tuple[Served, FakeEngine]]
) -> None:
    served, _ = steered(asr_model="small")
    files = {"audio_sample": ("me.wav", spoken())}
    with served.client() as client:
        told = client.post("/v1/voices/advise", data={"ref_text": WORDS, "language": "en-GB"}, files=files).json()
    assert told["heard"] == "The birch canoe slid on the smooth planks."
    assert told["differences"] == [{"written": "and the fish swam home", "heard": ""}]
    assert abs(len(WhisperModel.heard[0]) / 16_000 - told["seconds"]) < 0.01


def test_without_a_recogniser_advice_goes_without_and_asking_for_one_stops_the_start(
    steered: Callable[..., tuple[Served, FakeEngine]],
) -> None:
    served, _ = steered()
    with served.client() as client:
        told = client.post("/v1/voices/advise", files={"audio_sample": ("me.wav", spoken())}).json()
    assert "heard" not in told and told["score"] > 0
    with pytest.raises(SettingsError, match="ASR_MODEL"):
        Settings.from_environment({"ASR_MODEL": "small"})
