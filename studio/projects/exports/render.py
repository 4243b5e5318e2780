"""Renders a timeline as one file: WAV, MP3, FLAC and Opus as a stream, audiobooks (M4B) as a whole."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Generator
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import av
import numpy as np
from av.audio.stream import AudioStream

from studio.audio.formats import MEDIA_TYPES, open_encoder
from studio.audio.mastering import Mastering, Standard, find_mastering
from studio.audio.tags import Tags, id3, tag
from studio.library.audio_files import AudioFiles
from studio.projects.exports.concatenation import Concatenation, check_wav
from studio.projects.timeline import Timeline

M4B = "m4b"
M4B_TYPE = "audio/mp4"
M4B_BITS = 64_000
STREAMED = {name: kind for name, kind in MEDIA_TYPES.items() if name in ("wav", "mp3", "flac", "opus")}
"""Formats that can be streamed while they are encoded."""
FORMATS = STREAMED | {M4B: M4B_TYPE}
MAX_CACHED = 256
"""Maximum cached masterings; each takes a few hundred bytes."""


def encoded(
    timeline: Timeline,
    files: AudioFiles,
    name: str,
    tags: Tags,
    mastering: Mastering | None = None,
    bitrate: int | None = None,
) -> Generator[bytes, None, None]:
    """Yield the timeline in one of the STREAMED formats while it is encoded; a WAV has no tags.

    ``bitrate``: kbit/s of an MP3; None: as in the mastering's standard. Raises InvalidRequest if it is too long for a
    WAV file.
    """
    if name == "wav":
        check_wav(timeline)
    bit_rate = None
    if name == "mp3":
        bit_rate = 1000 * bitrate if bitrate else mastering.standard.bit_rate if mastering else None
    metadata = {} if name == "mp3" else tags.metadata
    encoder = open_encoder(name, timeline.sample_rate, None, timeline.samples, metadata, bit_rate)
    if name == "mp3":
        yield id3(tags)
    for pcm in _sound(timeline, files, mastering):
        if piece := encoder.write(pcm):
            yield piece
    yield encoder.finish()


def write_m4b(
    timeline: Timeline, files: AudioFiles, tags: Tags, folder: Path, mastering: Mastering | None = None
) -> Generator[BinaryIO, None, None]:
    """Write the timeline as an audiobook with chapters. Yields the same file after each chunk; the last is complete.

    The file is unnamed: it vanishes when it is closed, or when the generator is closed early. It cannot be streamed, as
    the index of an MP4 and its chapters are written at the end. Blocking. Raises OSError, for example if the disk is
    full.
    """
    output = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the reader closes it
    try:
        file = av.open(output, "w", format="mp4", options={"brand": "M4B "})
        stream = file.add_stream("aac", rate=timeline.sample_rate, layout="mono")
        assert isinstance(stream, AudioStream)
        stream.bit_rate = M4B_BITS
        tag(file, stream, tags)
        at = 0
        for pcm in _sound(timeline, files, mastering):
            if len(pcm):
                frame = av.AudioFrame.from_ndarray(np.clip(pcm, -1.0, 1.0)[None], format="fltp", layout="mono")
                frame.sample_rate, frame.pts = timeline.sample_rate, at
                at += frame.samples
                file.mux(stream.encode(frame))
            yield output
        file.mux(stream.encode(None))
        file.close()
        output.seek(0)
    except BaseException:  # closed first, so that PyAV does not write an index into it
        with contextlib.suppress(OSError):
            output.close()
        raise
    yield output


def _sound(timeline: Timeline, files: AudioFiles, mastering: Mastering | None) -> Generator[np.ndarray, None, None]:
    pieces = Concatenation(timeline, files).floats()
    return mastering.applied(pieces, timeline.sample_rate) if mastering else pieces


class Masterings:
    """Finds the mastering of a timeline, and caches it."""

    def __init__(self) -> None:
        self._cache: dict[tuple[str, str], Mastering] = {}
        self._lock = Lock()

    def find(self, timeline: Timeline, files: AudioFiles, standard: Standard) -> Generator[Mastering | int, None, None]:
        """Yield a number per measured chunk, so that the caller can stop, and the Mastering at the end. Blocking."""
        key = timeline.fingerprint, standard.name
        if (cached := self._cache.get(key)) is not None:
            yield cached
            return
        sound = Concatenation(timeline, files)
        for step in find_mastering(sound.floats, timeline.sample_rate, standard):
            if isinstance(step, Mastering):
                with self._lock:
                    self._cache[key] = step
                    while len(self._cache) > MAX_CACHED:
                        del self._cache[next(iter(self._cache))]
            yield step
