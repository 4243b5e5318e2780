"""A fake recogniser that returns given texts, for checks of the audio of projects."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from speechtext.errors import check_job
from studio.voices.recogniser import Recogniser, Transcription, Word
from tests.waiting import wait_until

RECOGNISER = "faster-whisper:base"


class Script:
    """Returns the given texts, one for each part; every word takes a third of a second."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.heard: list[str] = []
        self.languages: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.ungated = 0
        """Number of texts that are returned even while the gate is closed."""
        self.is_waiting = threading.Event()
        """Set once a recognition waits at the gate."""
        self.dies_at = -1
        self.chances = 0.0
        """The text's log-likelihood; the transcript's is 10 more if this is negative, else -10."""
        self.doubled = ""
        """The words that are spoken twice."""

    def recognise_exactly(self, _: object, pcm: np.ndarray, language: str) -> Transcription:
        if len(self.heard) >= self.ungated and not self.gate.is_set():
            self.is_waiting.set()
            wait_until(lambda _: self.gate.is_set(), check_job)
        if len(self.heard) == self.dies_at:
            raise RuntimeError("out of memory")
        text = self.texts.pop(0)
        self.heard.append(text)
        self.languages.append(language)
        words = tuple(Word(word, at / 3, (at + 1) / 3, 0.9) for at, word in enumerate(text.split()))
        return Transcription(text, language, words)

    def likelihoods(self, _: object, pcm: np.ndarray, language: str, texts: Sequence[str]) -> list[float]:
        if self.doubled:
            return [0.0 if self.doubled in text else -20.0 for text in texts]
        return [self.chances, self.chances + 10 if self.chances < 0 else -10.0, *([self.chances] * (len(texts) - 2))]


def scripted(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Replaces RECOGNISER until the end of the test; the faults it reports count as real."""
    script = Script()
    script.chances = -20.0
    monkeypatch.setattr("studio.voices.recogniser.check_name", lambda name: None)
    monkeypatch.setattr("longform.proof.sound_check.END_BELOW_DB", -99.0)  # this engine's tones do not fade
    monkeypatch.setattr("longform.proof.verification.repeated_spans", lambda pcm: [])  # and repeat themselves
    for name in ("recognise_exactly", "likelihoods"):
        method = getattr(script, name)
        monkeypatch.setattr(Recogniser, name, lambda self, *values, method=method: method(self, *values))
    return script
