"""Speech recognition, if installed: transcribes one clip at a time, with a short queue. At the owner's request it
downloads a model from the Hugging Face Hub, completely or not at all, which every later start finds."""

from __future__ import annotations

import importlib
import importlib.util
import math
import re
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from anyio import to_thread

from audio.read import Clip
from audio.resampler import resampled
from speechtext.errors import check_job
from studio.errors import NotOffered, SettingsError, Unavailable
from studio.library.private_files import ABANDONED_SECONDS
from studio.models.catalogue import HubFiles
from studio.models.hub_download import DownloadStatus, HubDownload
from studio.unicode_text import pip_install, shell_command
from studio.work import WorkQueue

RATE = 16_000
"""Hz: the recognisers' sample rate."""
LONGEST = 29.0
"""Maximum seconds of audio for comparing texts: Whisper processes 30 at a time."""
FASTER_WHISPER = "faster_whisper"
MODEL = "Systran/faster-whisper-base"
LICENCE = "MIT"
ABOUT = 148_000_000  # bytes to download
COMMAND = pip_install("faster-whisper")
_FILES = HubFiles(
    repo=MODEL,
    names=re.compile(r"model\.bin|config\.json|preprocessor_config\.json|tokenizer\.json|vocabulary\.(txt|json)"),
    needed=frozenset({"model.bin", "config.json", "tokenizer.json"}),
    last="config.json",
    max_bytes=2**30,
    without="Without the internet, put a model into a folder and set STUDIO_TRANSCRIBER=faster-whisper:/that/folder",
    resumes=False,
)
_LEAST = 1e-10
"""Lower probabilities carry no more information."""

Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Word:
    """A recognised word: start and end in seconds of the clip, probability from 0 to 1."""

    word: str
    start: float
    end: float
    probability: float


@dataclass(frozen=True, slots=True)
class Transcription:
    """The transcript of a clip."""

    text: str
    language: str
    """BCP 47, as requested or recognised; blank if unknown."""
    words: tuple[Word, ...] = ()


class Recogniser:
    """One of faster-whisper's models: https://github.com/SYSTRAN/faster-whisper. Loaded on first use."""

    def __init__(self, model: str) -> None:
        """``model``: a folder, or the name of a model that faster-whisper has downloaded into the hub's cache."""
        self._path = model
        self.name = Path(model).name if Path(model).is_absolute() or Path(model).is_dir() else model
        """What callers read; of a folder only its own name, as the path is the owner's to know."""
        self._model: Any = None

    def load(self) -> None:
        """Load the model unless it is loaded. Blocking: a second. It downloads nothing, as everybody's work would wait
        for that. Raises OSError, RuntimeError, ValueError; Unavailable for a model that is not here.
        """
        if self._model is not None:
            return
        package, folder = importlib.import_module(FASTER_WHISPER), self._path
        if not Path(folder).is_dir():
            try:
                folder = package.download_model(folder, local_files_only=True)
            except FileNotFoundError as error:
                script = f"import faster_whisper; faster_whisper.download_model({folder!r})"
                how = f"its owner can download it with {shell_command('python', '-c', script)}"
                raise Unavailable(f"the recogniser's model {folder} is not on this machine: {how}") from error
        self._model = package.WhisperModel(folder, compute_type="auto")

    def reason(self, error: Exception) -> str:
        """What an error says, without the model's path."""
        return (str(error) or type(error).__name__).replace(self._path, self.name)

    def recognise_exactly(self, pcm: np.ndarray, language: str) -> Transcription:
        """Like `recognise`, but always with the same result for the same samples."""
        return self.recognise(pcm, language, temperature=0.0, condition_on_previous_text=False)

    def likelihoods(self, pcm: np.ndarray, language: str, texts: Sequence[str]) -> list[float]:
        """The log-likelihood of each text for samples of at most LONGEST seconds. Raises `recognise`'s errors."""
        self.load()
        check_job()
        package, model = importlib.import_module(FASTER_WHISPER), self._model
        features = model.feature_extractor(pcm)
        frames = min(features.shape[-1] - 1, model.feature_extractor.nb_max_frames)
        sound = model.encode(package.audio.pad_or_trim(features))
        model_language = language if language in model.supported_languages else "en"
        tokenizer = package.tokenizer.Tokenizer(
            model.hf_tokenizer, model.model.is_multilingual, task="transcribe", language=model_language
        )
        return [self._likelihood(sound, frames, tokenizer, text) for text in texts]

    def _likelihood(self, sound: Any, frames: int, tokenizer: Any, text: str) -> float:
        check_job()
        tokens = [token for word in text.split() for token in self._tokens(tokenizer, f" {word}")]
        [aligned] = self._model.model.align(sound, tokenizer.sot_sequence, [tokens], frames)
        return sum(math.log(max(chance, _LEAST)) for chance in aligned.text_token_probs[: len(tokens)])

    def _tokens(self, tokenizer: Any, word: str) -> list[int]:
        """The model's tokens of a word: a single one if it exists, even if a converter has left out its merges."""
        letters = re.match(r" [A-Za-z]+", word)
        token = letters and self._model.hf_tokenizer.token_to_id(letters[0].replace(" ", "Ġ"))
        if not letters or token is None:
            return list(tokenizer.encode(word))
        rest = word[letters.end() :]
        return [token, *(tokenizer.encode(rest) if rest else ())]

    def recognise(self, pcm: np.ndarray, language: str, **options: Any) -> Transcription:
        """The words of float32 mono samples (samples,) at RATE. Blocking. Raises OSError, RuntimeError, ValueError.

        ``language``: two or three letters; blank, or unknown to the model, to have it recognised too. ``options`` are
        faster-whisper's.
        """
        self.load()
        model_language = language if language in self._model.supported_languages else None  # else it is recognised too
        stream, info = self._model.transcribe(pcm, language=model_language, word_timestamps=True, **options)
        segments = []
        for segment in stream:  # a generator, which recognises during the iteration
            check_job()
            segments.append(segment)
        words = tuple(
            Word(word.word.strip(), *(round(float(value), 3) for value in (word.start, word.end, word.probability)))
            for segment in segments
            for word in segment.words or ()
        )
        return Transcription(" ".join(segment.text.strip() for segment in segments), info.language, words)


def check_name(name: str) -> None:
    """Raises SettingsError for a name that is unknown, not installed or missing on disk."""
    kind, _, model = name.partition(":")
    problem = ""
    if kind != "faster-whisper" or not model:
        problem = "the name must be faster-whisper:MODEL"
    elif not is_installed():
        problem = f"the package {kind} is not installed"
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

    def __init__(self, queue: WorkQueue, name: str | None = None) -> None:
        """``queue``: one job at a time; ``name``: such as faster-whisper:base.

        Raises SettingsError for a name that is unknown, not installed or missing on disk.
        """
        self._recogniser: Recogniser | None = None
        self.queue = queue
        if name:
            check_name(name)
            self.use(name)

    def use(self, name: str) -> None:
        """Transcribe with this recogniser from now on, such as faster-whisper:base."""
        self._recogniser = Recogniser(name.partition(":")[2])

    @property
    def name(self) -> str | None:
        """The recogniser's name, None without one."""
        return f"faster-whisper:{self._recogniser.name}" if self._recogniser else None

    @property
    def is_there(self) -> bool:
        return self._recogniser is not None

    def require(self) -> Recogniser:
        """The recogniser. Raises NotOffered if there is none."""
        if self._recogniser is None:
            how = "let its owner get one (New voice, Transcript), or set STUDIO_TRANSCRIBER=faster-whisper:base"
            raise NotOffered(f"no speech recogniser is installed here: type the transcript, or {how}")
        return self._recogniser

    async def transcribe(self, clip: Clip, caller: str, language: str = "") -> Transcription:
        """Transcribe a clip: takes seconds on a CPU.

        Raises NotOffered, QueueFull, TooManyRequests, TooCostly, Unavailable.
        """
        pcm, code = partial(resampled, clip.pcm, clip.sample_rate, RATE), language.partition("-")[0].lower()
        return await self.run(caller, False, lambda recogniser: recogniser.recognise(pcm(), code))

    async def run(
        self,
        caller: str,
        patient: bool,
        function: Callable[Concatenate[Recogniser, Given], Result],
        *args: Given.args,
        **kwargs: Given.kwargs,
    ) -> Result:
        """Run a blocking function that uses the recogniser, when its turn comes; ``patient`` as in WorkQueue.turn.

        Raises the errors of `transcribe`, and the StudioErrors of the function.
        """
        recogniser = self.require()
        try:
            async with self.queue.turn(caller, patient) as turn:
                return await turn.run(partial(function, recogniser, *args, **kwargs))
        except (ImportError, MemoryError, OSError, RuntimeError, ValueError) as error:
            raise Unavailable(f"the recogniser {self.name} failed: {recogniser.reason(error)}") from error


class RecogniserDownload:
    """Downloads Whisper base for this transcriber, into the library's folder. Used from one event loop."""

    def __init__(self, home: Path, transcriber: Transcriber) -> None:
        """Use an earlier download, and remove the rest of one after a crash. Blocking: milliseconds."""
        self._models = home / "models"
        self._folder = self._models / MODEL.partition("/")[2]
        self._transcriber = transcriber
        self._part = self._models / f".{self._folder.name}-{uuid.uuid4().hex}"
        remove = partial(shutil.rmtree, self._part, ignore_errors=True)
        self._download = HubDownload(_FILES, lambda commit: self._part, self._use, remove)
        for leftover in self._models.glob(f".{self._folder.name}-*"):
            with suppress(OSError):  # another studio on this library ends its download
                modified = max(path.stat().st_mtime for path in (leftover, *leftover.iterdir()))
                if modified < time.time() - ABANDONED_SECONDS:
                    shutil.rmtree(leftover, ignore_errors=True)
        if any(self._models.glob(self._folder.name)) and not transcriber.is_there and is_installed():
            transcriber.use(self._name)

    @property
    def status(self) -> DownloadStatus:
        return self._download.status

    @property
    def _name(self) -> str:
        return f"faster-whisper:{self._folder}"

    async def begin(self) -> None:
        """Download in the background, unless a download is running or a recogniser exists. Raises NotOffered."""
        if not await to_thread.run_sync(is_installed):
            raise NotOffered(f"the package faster-whisper is not installed here: {COMMAND}")
        if not self._transcriber.is_there:
            self._download.begin()

    async def cancel(self) -> None:
        """Cancel the download and remove its files."""
        await self._download.cancel()

    async def _use(self, commit: str, part: Path) -> None:
        await to_thread.run_sync(Recogniser(str(part)).load)  # before it is used
        await to_thread.run_sync(self._keep, part)
        self._transcriber.use(self._name)

    def _keep(self, part: Path) -> None:
        try:
            part.rename(self._folder)
        except OSError:
            if not self._folder.is_dir():  # otherwise another studio on this library was faster
                raise
            shutil.rmtree(part, ignore_errors=True)
