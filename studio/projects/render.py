"""A timeline as one file, take by take: WAV with any byte at once, others while encoded, audio books (M4B) whole."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Generator
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import av
import numpy as np
from av.audio.stream import AudioStream

from studio.audio.encode import WAV_HEADER, wav_header
from studio.audio.formats import MEDIA_TYPES, open_encoder
from studio.errors import InvalidRequest
from studio.library.files import AudioFiles
from studio.projects.timeline import Timeline

PIECE = 256 * 1024
"""Bytes read at a time; even, as a sample has two."""
MAX_WAV = 2**32 - 1 - WAV_HEADER
"""A WAV counts its bytes in 32 bits: 13 hours at 44.1 kHz."""
M4B = "m4b"
M4B_TYPE = "audio/mp4"
M4B_BITS = 64_000
FORMATS = {name: kind for name, kind in MEDIA_TYPES.items() if name in ("wav", "mp3", "flac", "opus")} | {M4B: M4B_TYPE}


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
                file.seek(WAV_HEADER + at - begins)
                while at < min(ends, stop):
                    data = file.read(min(PIECE, min(ends, stop) - at))
                    if not data:
                        raise OSError(f"the audio file {placed.take.audio[:12]}… is shorter than it was")
                    at += len(data)
                    yield data


class ConcatenatedWav:
    """The same as a WAV file, any part of which can be read."""

    def __init__(self, timeline: Timeline, files: AudioFiles) -> None:
        """Raises InvalidRequest for more than a WAV can count."""
        self._sound = Concatenation(timeline, files)
        if self._sound.size > MAX_WAV:
            raise InvalidRequest("this is longer than a WAV file can be (13 hours): use flac, mp3 or m4b", "format")
        self._header = wav_header(timeline.sample_rate, timeline.samples)
        self.size = WAV_HEADER + self._sound.size

    def read(self, start: int, stop: int) -> Generator[bytes, None, None]:
        if start < WAV_HEADER:
            yield self._header[start : min(stop, WAV_HEADER)]
        if stop > WAV_HEADER:
            yield from self._sound.read(max(start - WAV_HEADER, 0), stop - WAV_HEADER)


def encoded(timeline: Timeline, files: AudioFiles, name: str) -> Generator[bytes, None, None]:
    """The whole in a compressed format, while it is encoded. Raises InvalidRequest for a format there is not."""
    encoder = open_encoder(name, timeline.sample_rate, None, timeline.samples)
    for data in Concatenation(timeline, files).read():
        if piece := encoder.write(_floats(data)):
            yield piece
    yield encoder.finish()


def write_m4b(timeline: Timeline, files: AudioFiles, title: str, folder: Path) -> Generator[BinaryIO, None, None]:
    """The whole as an audio book with its chapters: the same file again for each piece, complete the last time.

    It has no name, and is gone once it is closed, or when this is left before the end. Blocking. Raises OSError, for a
    full disk too. An MP4 has its index, and the chapters in it, only when all of it is known.
    """
    whole = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - whoever reads it closes it
    try:
        file = av.open(whole, "w", format="ipod")
        file.metadata["title"] = title
        stream = file.add_stream("aac", rate=timeline.sample_rate, layout="mono")
        assert isinstance(stream, AudioStream)
        stream.bit_rate = M4B_BITS
        if timeline.chapters:
            file.set_chapters([_chapter(number, each, timeline) for number, each in enumerate(timeline.chapters)])
        at = 0
        for data in Concatenation(timeline, files).read():
            frame = av.AudioFrame.from_ndarray(_floats(data)[None], format="fltp", layout="mono")
            frame.sample_rate, frame.pts = timeline.sample_rate, at
            at += frame.samples
            file.mux(stream.encode(frame))
            yield whole
        file.mux(stream.encode(None))
        file.close()
        whole.seek(0)
    except BaseException:  # closed first of all: into a closed file no index is written
        with contextlib.suppress(OSError):
            whole.close()
        raise
    yield whole


def _chapter(number: int, chapter: tuple[str, int, int], timeline: Timeline) -> av.container.core.Chapter:
    title, start, end = chapter
    base = Fraction(1, 1000)
    times = (round(1000 * timeline.seconds(sample)) for sample in (start, end))
    return {"id": number, "start": next(times), "end": next(times), "time_base": base, "metadata": {"title": title}}


def _floats(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<i2").astype(np.float32) / 32767.0


def _silence(size: int) -> Generator[bytes, None, None]:
    while size > 0:
        yield bytes(min(size, PIECE))
        size -= PIECE
