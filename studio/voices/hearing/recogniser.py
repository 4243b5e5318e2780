"""Speech recognition, if installed: transcribes one clip at a time, behind a short queue."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from studio.audio.read import Clip
from studio.audio.resampler import Resampler
from studio.errors import NotOffered, SettingsError, Unavailable
from studio.work.job import check_job
from studio.work.work_queue import WorkQueue

RATE = 16_000
"""Hz, the recognisers' sample rate."""
FASTER_WHISPER = "faster_whisper"


@dataclass(frozen=True, slots=True)
class Word:
    """A recognised word: start and end in seconds of the clip, probability from 0 to 1."""

    word: str
    start: float
    end: float
    probability: float


@dataclass(frozen=True, slots=True)
class Heard:
    """The transcript of a clip."""

    text: str
    language: str
    """BCP 47, as requested or recognised; blank if unknown."""
    words: tuple[Word, ...] = ()


class Recogniser(Protocol):
    """Anything that recognises speech."""

    def recognise(self, pcm: np.ndarray, language: str) -> Heard:
        """The words of float32 mono samples (samples,) at RATE. Blocking; raises OSError, RuntimeError, ValueError.

        ``language``: two or three letters; blank, or unknown to the model, to have it recognised too.
        """


class FasterWhisper:
    """faster-whisper's models: https://github.com/SYSTRAN/faster-whisper. Loaded on first use."""

    def __init__(self, model: str) -> None:
        """``model``: a folder or a name, as faster-whisper takes it; a name is downloaded from the hub."""
        self._name = model
        self._model: Any = None

    def load(self) -> None:
        """Load the model unless it is loaded. Blocking: a second. Raises OSError, RuntimeError, ValueError."""
        if self._model is None:
            self._model = importlib.import_module(FASTER_WHISPER).WhisperModel(self._name)

    def recognise(self, pcm: np.ndarray, language: str) -> Heard:
        self.load()
        supported = language if language in self._model.supported_languages else None  # else recognised too
        stream, info = self._model.transcribe(pcm, language=supported, word_timestamps=True)
        segments = []
        for segment in stream:  # a generator, which does the work here
            check_job()
            segments.append(segment)
        words = tuple(
            Word(word.word.strip(), *(round(float(value), 3) for value in (word.start, word.end, word.probability)))
            for segment in segments
            for word in segment.words or ()
        )
        return Heard(" ".join(segment.text.strip() for segment in segments), info.language, words)


PACKAGES = {"faster-whisper": FASTER_WHISPER}
"""The kinds of recognisers, and the package that each one needs."""


def check_name(name: str) -> None:
    """Raises SettingsError for a name that is unknown, not installed or missing on disk."""
    kind, _, model = name.partition(":")
    problem = ""
    if kind not in PACKAGES or not model:
        problem = f"it must be {' or '.join(f'{kind}:MODEL' for kind in PACKAGES)}"
    elif importlib.util.find_spec(PACKAGES[kind]) is None:
        problem = f"it needs the package {kind}, which is not installed"
    elif Path(model).is_absolute() and not Path(model).is_dir():
        problem = f"there is no folder {model}"
    if problem:
        raise SettingsError(f"STUDIO_TRANSCRIBER={name!r} cannot be used: {problem}")


def is_installed() -> bool:
    """Whether faster-whisper can be imported now; it may be installed while the studio runs."""
    importlib.invalidate_caches()
    return importlib.util.find_spec(FASTER_WHISPER) is not None


class Transcriber:
    """Access to the recogniser, if there is one. Used from one event loop."""

    def __init__(self, queue: WorkQueue, name: str | None = None, recogniser: Recogniser | None = None) -> None:
        """``queue``: one job at a time; ``name``: such as faster-whisper:base; ``recogniser`` replaces the one of that
        name. Raises SettingsError for a name that is unknown, not installed or missing on disk."""
        self.name = name
        """The recogniser's name, None without one."""
        self._recogniser = recogniser
        self._queue = queue
        if name and recogniser is None:
            check_name(name)
            self.use(name)

    def use(self, name: str) -> None:
        """Transcribe with this recogniser from now on, such as faster-whisper:base."""
        self._recogniser = FasterWhisper(name.partition(":")[2])
        self.name = name

    @property
    def is_there(self) -> bool:
        return self._recogniser is not None

    async def transcribe(self, clip: Clip, caller: str, language: str = "") -> Heard:
        """Transcribe a clip: takes seconds on a CPU.

        Raises NotOffered, QueueFull, TooManyRequests, TooCostly, Unavailable.
        """
        recogniser = self._recogniser
        if recogniser is None:
            raise NotOffered(
                "no speech recogniser is installed here: type the transcript, ask its owner to download one "
                "(New voice, Transcript), or start the studio with STUDIO_TRANSCRIBER=faster-whisper:base"
            )
        try:
            return await self._queue.run(caller, _recognise, recogniser, clip, language)
        except (ImportError, MemoryError, OSError, RuntimeError, ValueError) as error:
            why = str(error) or type(error).__name__
            raise Unavailable(f"the recogniser {self.name} failed: {why}") from error


def _recognise(recogniser: Recogniser, clip: Clip, language: str) -> Heard:
    resampler = Resampler(clip.sample_rate, RATE)
    pcm = np.concatenate([resampler.write(clip.pcm), resampler.finish()])
    return recogniser.recognise(pcm, language.partition("-")[0].lower())
