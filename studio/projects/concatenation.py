"""The takes of a timeline as one row of samples: any byte of it at once, and as a WAV file."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from studio.audio.encode import WAV_HEADER, floats, wav_header
from studio.errors import InvalidRequest
from studio.library.audio_files import AudioFiles
from studio.projects.timeline import Timeline

PIECE = 256 * 1024
"""Bytes read at a time; even, as a sample has two."""
MAX_WAV = 2**32 - 1 - WAV_HEADER
"""A WAV counts its bytes in 32 bits: 13 hours at 44.1 kHz."""


class Concatenation:
    """The 16-bit samples of a timeline as one row of bytes."""

    def __init__(self, timeline: Timeline, files: AudioFiles) -> None:
        self._timeline, self._files = timeline, files
        self.size = 2 * timeline.samples
        """Bytes."""

    def read(self, start: int = 0, stop: int | None = None) -> Generator[bytes, None, None]:
        """The bytes from ``start`` to ``stop``, piece by piece. Raises OSError for a take whose file is gone."""
        at, stop = start, self.size if stop is None else min(stop, self.size)
        for placed in self._timeline.placed:
            begins, ends = 2 * placed.start, 2 * placed.end
            if ends <= at:
                continue
            if begins >= stop:
                break
            yield from _silence(min(begins, stop) - at)
            at = max(at, begins)
            with self._files.path(placed.take.audio).open("rb") as file:
                file.seek(WAV_HEADER + 2 * placed.skipped + at - begins)
                while at < min(ends, stop):
                    data = file.read(min(PIECE, min(ends, stop) - at))
                    if not data:
                        raise OSError(f"the audio file {placed.take.audio[:12]}… is shorter than it was")
                    at += len(data)
                    yield data
        yield from _silence(min(stop, self.size) - at)

    def floats(self) -> Generator[np.ndarray, None, None]:
        """All of it, as samples in [-1, 1]."""
        for data in self.read():
            yield floats(data)


class ConcatenatedWav:
    """The same as a WAV file, any part of which can be read."""

    def __init__(self, timeline: Timeline, files: AudioFiles) -> None:
        """Raises InvalidRequest for more than a WAV can count."""
        check_wav(timeline)
        self._sound = Concatenation(timeline, files)
        self._header = wav_header(timeline.sample_rate, timeline.samples)
        self.size = WAV_HEADER + self._sound.size

    def read(self, start: int, stop: int) -> Generator[bytes, None, None]:
        if start < WAV_HEADER:
            yield self._header[start : min(stop, WAV_HEADER)]
        if stop > WAV_HEADER:
            yield from self._sound.read(max(start - WAV_HEADER, 0), stop - WAV_HEADER)


def check_wav(timeline: Timeline) -> None:
    """Raises InvalidRequest for more than a WAV can count."""
    if 2 * timeline.samples > MAX_WAV:
        raise InvalidRequest("this is longer than a WAV file can be (13 hours): use flac, mp3 or m4b", "format")


def _silence(size: int) -> Generator[bytes, None, None]:
    while size > 0:
        yield bytes(min(size, PIECE))
        size -= PIECE
