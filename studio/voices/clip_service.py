"""Processes untrusted clips, each step in its queue: cuts, judges, compares with voices, denoises, transcribes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from audio import Cut
from audio.advisor import advise
from audio.read import Clip, read_levels
from audio.voiceprint import NO_SPANS, Voiceprints, mean_print, percent_alike
from studio.errors import DamagedAudio, InvalidRequest
from studio.library import Library, Sample, Voice
from studio.voices.denoiser import Denoiser, wav_of
from studio.voices.intake import Intake, sound_of, take_in, take_in_best
from studio.voices.recogniser import Transcriber
from studio.work import WorkQueue

REMEMBERED = 200
"""Clips whose prints are kept in memory, 8 kB each."""


@dataclass(frozen=True, slots=True)
class ClosestVoice:
    """The bundled voice that speech sounds most like."""

    id: str
    slug: str
    name: str
    percent: int
    """The result of `percent_alike`."""
    among: int
    """Bundled voices that were compared."""


class LibraryPrints:
    """Blocking: about 40 ms for each clip that was not read before. Methods may be called from several threads."""

    def __init__(self, library: Library, prints: Voiceprints) -> None:
        self.prints = prints
        self._library = library
        self._cache: dict[str, np.ndarray] = {}
        self._lock = threading.Lock()

    def closest(self, spans: np.ndarray, caller: str) -> ClosestVoice | None:
        """The bundled voice closest to speech, by its prints (spans, 256), among those the caller may use.

        None without spans, and without such a voice.
        """
        if not len(spans):
            return None
        mean = mean_print(spans)
        candidates = [(percent_alike(mean, mean_print(prints)), voice) for voice, prints in self._bundled(caller)]
        if not candidates:
            return None
        percent, voice = max(candidates, key=lambda pair: pair[0])
        return ClosestVoice(voice.id, voice.slug, voice.name, percent, len(candidates))

    def _bundled(self, caller: str) -> Iterator[tuple[Voice, np.ndarray]]:
        """The bundled voices with prints, each with its spans; without voices whose recording is damaged."""
        for voice in self._library.seen_by(caller).voices.page(bundled=True):
            try:
                spans = self.spans(voice.samples[0]) if voice.samples else NO_SPANS
            except DamagedAudio:
                continue
            if len(spans):
                yield voice, spans

    def spans(self, sample: Sample) -> np.ndarray:
        """The prints (spans, 256) of a voice's clip as cut; empty if it has too little speech."""
        spans = self._cache.get(sample.cut_key)
        if spans is None:
            clip = sound_of(self._library.voices.clip(sample), sample.cut)
            spans = self.prints.of_clip(clip)
            with self._lock:
                self._cache[sample.cut_key] = spans
                while len(self._cache) > REMEMBERED:
                    del self._cache[next(iter(self._cache))]
        return spans


class ClipService:
    """Used from one event loop. Cancelling a call ends its work. ``caller`` is for fair shares.

    Every call raises InvalidClip, QueueFull, TooManyRequests, TooCostly, and the errors of denoiser and transcriber.
    """

    def __init__(
        self, queue: WorkQueue, transcriber: Transcriber, denoiser: Denoiser, library_prints: LibraryPrints
    ) -> None:
        """``queue``: for decoding and judging clips."""
        self._queue, self._library_prints = queue, library_prints
        self.transcriber = transcriber
        self.denoiser = denoiser

    async def judge(self, caller: str, data: bytes, text: str, cut: Cut, param: str) -> Intake:
        """Judge a clip as cut."""
        return await self._queue.run(caller, take_in, data, text, cut, param, self._library_prints.prints)

    async def suggest(
        self, caller: str, data: bytes, text: str, cut: Cut, param: str, without_noise: bool = False
    ) -> Intake:
        """Like `judge`, but finds the best span of a file that is too long and not cut; may denoise it."""
        intake = await self._queue.run(caller, take_in_best, data, text, cut, param, self._library_prints.prints)
        if not without_noise:
            return intake
        denoised = await self.denoiser.denoise(intake.clip, caller)
        advice = await self._queue.run(caller, advise, denoised, text, intake.cut, intake.spans)
        return replace(intake, clip=denoised, advice=advice)

    async def closest(self, caller: str, intake: Intake) -> ClosestVoice | None:
        """The bundled voice that a clip sounds most like; see `LibraryPrints.closest`."""
        return await self._queue.run(caller, self._library_prints.closest, intake.spans, caller)

    async def decode(self, caller: str, data: bytes, cut: Cut, param: str) -> Clip:
        """Decode only the cut, as the engine encodes it."""
        return await self._queue.run(caller, sound_of, data, cut, param)

    async def levels(self, caller: str, data: bytes, param: str) -> tuple[np.ndarray, float]:
        """The levels of a recording, step by step, and its duration in seconds; see `read_levels`."""
        return await self._queue.run(caller, read_levels, data, param)

    async def clean(self, caller: str, clip: Clip) -> bytes:
        """A clip without its noise, as a WAV file."""
        return await self._queue.run(caller, wav_of, await self.denoiser.denoise(clip, caller))

    async def words(self, caller: str, clip: Clip, field: str, missing: Exception, language: str = "") -> str:
        """Transcribe a clip. Raises ``missing`` without a recogniser, InvalidRequest if it recognises no words."""
        if not self.transcriber.is_there:
            raise missing
        transcription = await self.transcriber.transcribe(clip, caller, language)
        if not transcription.text.strip():
            raise InvalidRequest(f"no words were recognised in the clip; send its transcript as {field}", field)
        return transcription.text

    async def preview(self, caller: str, data: bytes, cut: Cut) -> bytes:
        """The cut as the model gets it, as a WAV file."""
        return await self._queue.run(caller, lambda: wav_of(sound_of(data, cut)))
