"""What is said in a clip, by faster-whisper if it is installed, and word by word against the transcript."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import threading
import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np

from studio.audio.read import Clip
from studio.audio.resample import Resampler

PACKAGE = "faster_whisper"
RATE = 16_000
"""Hz, that the recogniser hears."""
ALIKE = 0.75
"""Words with this share of letters in common are taken for one word spelt in two ways."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where transcript and clip disagree; one of the two may be empty."""

    written: str
    heard: str


class Transcriber:
    """Recognises speech. The model is loaded at the first use; one clip at a time."""

    def __init__(self, model: str) -> None:
        """``model``: a folder or a name, as faster-whisper takes it. Raises RuntimeError without the package."""
        if importlib.util.find_spec(PACKAGE) is None:
            raise RuntimeError(f"the package {PACKAGE} is not installed")
        self._name = model
        self._model: Any = None
        self._lock = threading.Lock()

    def transcribe(self, clip: Clip, language: str = "") -> str:
        """The words of a clip. Blocking: seconds on a CPU."""
        resampler = Resampler(clip.sample_rate, RATE)
        audio = np.concatenate([resampler.write(clip.pcm), resampler.finish()])
        with self._lock:
            if self._model is None:
                module = importlib.import_module(PACKAGE)
                self._model = module.WhisperModel(self._name)
            segments, _ = self._model.transcribe(audio, language=language.partition("-")[0] or None)
            return " ".join(segment.text.strip() for segment in segments)


def differences(written: str, heard: str) -> tuple[Difference, ...]:
    """Where the words that are written are not those that were heard; spelling, case and signs do not count."""
    ours, theirs = _words(written), _words(heard)
    found = []
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        left, right = " ".join(ours[first:last]), " ".join(theirs[start:end])
        if kind != "equal" and not _alike(left, right):
            found.append(Difference(left, right))
    return tuple(found)


def _words(text: str) -> list[str]:
    """Words without signs and case; scripts that write no blanks count letter by letter."""
    words: list[str] = []
    joined = False
    for sign in unicodedata.normalize("NFKC", text).casefold():
        if sign in "'’":
            continue
        if unicodedata.category(sign)[0] not in "LNM":
            joined = False
        elif sign >= "\u2e80":
            words.append(sign)
            joined = False
        elif joined:
            words[-1] += sign
        else:
            words.append(sign)
            joined = True
    return words


def _alike(left: str, right: str) -> bool:
    return bool(left and right) and difflib.SequenceMatcher(None, left, right).ratio() >= ALIKE
