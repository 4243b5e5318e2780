"""What timelines need to meet a standard of loudness, remembered."""

from __future__ import annotations

from collections.abc import Generator
from threading import Lock

from studio.audio.mastering import Mastering, Standard, find_mastering
from studio.library.audio_files import AudioFiles
from studio.projects.concatenation import Concatenation
from studio.projects.timeline import Timeline

MOST_KNOWN = 256
"""Masterings, of a few hundred bytes each."""


class Masterings:
    """Finds what a timeline needs, and remembers it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Mastering] = {}
        self._lock = Lock()

    def find(self, timeline: Timeline, files: AudioFiles, standard: Standard) -> Generator[Mastering | int, None, None]:
        """A number for every piece that is measured, so that it can be left; at last the Mastering. Blocking."""
        key = timeline.fingerprint, standard.name
        known = self._known.get(key)
        if known is not None:
            yield known
            return
        sound = Concatenation(timeline, files)
        for step in find_mastering(sound.floats, timeline.sample_rate, standard):
            if isinstance(step, Mastering):
                with self._lock:
                    self._known[key] = step
                    while len(self._known) > MOST_KNOWN:
                        del self._known[next(iter(self._known))]
            yield step
