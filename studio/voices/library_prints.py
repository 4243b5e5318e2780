"""Voiceprints of the library's clips, and the bundled voice that speech sounds most like."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from audio.voiceprint import NO_SPANS, Voiceprints, mean_print, percent_alike
from studio.errors import DamagedAudio
from studio.library import Library, Sample, Voice
from studio.voices.intake import sound_of

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
