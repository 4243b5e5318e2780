"""The takes of a timeline as one stream of samples with random access, and as a WAV file."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from studio.audio.encode import WAV_HEADER, floats, wav_header
from studio.errors import InvalidRequest
from studio.library.audio_files import AudioFiles
from studio.projects.timeline import Timeline

CHUNK_BYTES = 256 * 1024
"""Bytes read at a time; even, because each sample has two bytes."""
MAX_WAV = 2**32 - 1 - WAV_HEADER
"""Maximum bytes: a WAV header has 32-bit sizes, enough for 13 hours at 44.1 kHz."""


class Concatenation:
    """The 16-bit samples of a timeline as one sequence of bytes."""

    def __init__(self, timeline: Timeline, files: AudioFiles) -> None:
        self._timeline, self._files = timeline, files
        self.size = 2 * timeline.samples  # bytes

    def read(self, start: int = 0, stop: int | None = None) -> Generator[bytes, None, None]:
        """Yield the bytes from ``start`` to ``stop`` in chunks. Raises OSError for a take whose file is missing."""
        at, stop = start, self.size if stop is None else min(stop, self.size)
        for clip in self._timeline.placed:
            clip_start, clip_end = 2 * clip.start, 2 * clip.end
            if clip_end <= at:
                continue
            if clip_start >= stop:
                break
            yield from _silence(min(clip_start, stop) - at)
            at = max(at, clip_start)
            with self._files.path(clip.take.audio).open("rb") as file:
                file.seek(WAV_HEADER + 2 * clip.skipped + at - clip_start)
                while at < min(clip_end, stop):
                    data = file.read(min(CHUNK_BYTES, min(clip_end, stop) - at))
                    if not data:
                        raise OSError(f"the audio file {clip.take.audio[:12]}… has become shorter")
                    at += len(data)
                    yield data
        yield from _silence(min(stop, self.size) - at)

    def floats(self) -> Generator[np.ndarray, None, None]:
        """All samples, in [-1, 1]."""
        for data in self.read():
            yield floats(data)


class ConcatenatedWav:
    """A timeline as a WAV file with random access."""

    def __init__(self, timeline: Timeline, files: AudioFiles) -> None:
        """Raises InvalidRequest if the timeline is too long for a WAV file."""
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
    """Raises InvalidRequest if the timeline is too long for a WAV file."""
    if 2 * timeline.samples > MAX_WAV:
        raise InvalidRequest("this is too long for a WAV file (13 hours at most): use flac, mp3 or m4b", "format")


def _silence(size: int) -> Generator[bytes, None, None]:
    while size > 0:
        yield bytes(min(size, CHUNK_BYTES))
        size -= CHUNK_BYTES
