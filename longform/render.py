"""Renders a timeline: its takes as one stream of samples with random access, and as one file.

WAV, MP3, FLAC and Opus can be streamed; audiobooks (M4B) are written as a whole.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Generator, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import BinaryIO, cast

import av
import numpy as np
from av.audio.stream import AudioStream

from audio.encode import WAV_HEADER, floats, pcm16, wav_header
from audio.formats import MEDIA_TYPES, open_encoder
from audio.mastering import Mastering, Standard, find_mastering
from audio.resampler import Resampler
from audio.tempo import Tempo
from longform.tags import MOST_COUNTED, Tags, id3, tag
from longform.timeline import Placed, Timeline, damaged
from studio.errors import DamagedAudio, InvalidRequest
from studio.library.audio_files import AudioFiles
from studio.library.disk_reserve import check_spare

CHUNK_BYTES = 256 * 1024  # bytes read at a time; even, because each sample has two bytes
MAX_WAV = 2**32 - 1 - WAV_HEADER
"""Maximum bytes: a WAV header has 32-bit sizes, enough for 13 hours at 44.1 kHz."""
M4B = "m4b"
M4B_TYPE = "audio/mp4"
MEDIA_KIND = "2"  # an audiobook, by which players sort their libraries
M4B_BITS = 64_000
STREAMED = {name: kind for name, kind in MEDIA_TYPES.items() if name in ("wav", "mp3", "flac", "opus")}
"""Formats that can be streamed while they are encoded."""
FORMATS = STREAMED | {M4B: M4B_TYPE}
MAX_CACHED = 256  # masterings; each takes a few hundred bytes


class Concatenation:
    """The 16-bit samples of a timeline as one sequence of bytes."""

    def __init__(self, timeline: Timeline, files: AudioFiles) -> None:
        self._timeline, self._files = timeline, files
        self.size = 2 * timeline.samples  # bytes

    def read(self, start: int = 0, stop: int | None = None) -> Generator[bytes, None, None]:
        """Yield the bytes from ``start`` to ``stop`` in chunks. Raises DamagedAudio at a take whose file is damaged."""
        stop = self.size if stop is None else min(stop, self.size)
        surplus = start % 2  # takes that overlap are added sample by sample
        for samples in self._samples(start - surplus, stop + stop % 2):
            data = samples[surplus : surplus + stop - start]
            surplus = 0
            yield data
            start += len(data)

    def _samples(self, at: int, stop: int) -> Generator[bytes, None, None]:
        """The bytes of whole samples."""
        waiting = [clip for clip in self._timeline.placed if 2 * clip.end > at][::-1]
        sounding: list[tuple[Placed, BinaryIO]] = []
        try:
            while at < stop:
                while waiting and 2 * waiting[-1].start <= at:
                    clip = waiting.pop()
                    sounding.append((clip, self._open(clip)))
                    sounding[-1][1].seek(2 * clip.skipped + at - 2 * clip.start, os.SEEK_CUR)
                changes = [2 * clip.end for clip, _ in sounding] + [2 * clip.start for clip in waiting[-1:]]
                size = min([stop, at + CHUNK_BYTES, *changes]) - at
                yield _mixed([_exactly(file, size, clip) for clip, file in sounding]) if sounding else bytes(size)
                at += size
                for clip, file in sounding:
                    if 2 * clip.end <= at:
                        file.close()
                sounding = [(clip, file) for clip, file in sounding if 2 * clip.end > at]
        finally:
            for _, file in sounding:
                file.close()

    def _open(self, clip: Placed) -> BinaryIO:
        """The samples of a take at the timeline's rate and its own speed there."""
        path, rate = take_file(clip, self._files), self._timeline.sample_rate
        if clip.speed != 1:
            return io.BytesIO(_faster(path, clip.take.sample_rate, rate, clip.speed, clip.length))
        if clip.take.sample_rate != rate:
            return io.BytesIO(_resampled(path, clip.take.sample_rate, rate))
        file = path.open("rb")
        file.seek(WAV_HEADER)
        return file

    def floats(self) -> Generator[np.ndarray, None, None]:
        """All samples, in [-1, 1]."""
        for data in self.read():
            yield floats(data)


def take_file(placed: Placed, files: AudioFiles) -> Path:
    """The file of a take. Blocking: reads it. Raises DamagedAudio, which names the part, if its content has changed."""
    try:
        return files.checked(placed.take.audio)
    except DamagedAudio as error:
        raise damaged([placed.part]) from error


def checks(takes: Sequence[Placed], files: AudioFiles) -> Generator[bytes, None, None]:
    """Read the files of takes, one after the other; yields nothing in between, as b"". Blocking. Raises DamagedAudio at
    the end, which names all parts whose audio is missing or has changed."""
    lost = set[str]()
    for digest in {placed.take.audio: None for placed in takes}:
        try:
            files.checked(digest)
        except DamagedAudio:
            lost.add(digest)
        yield b""
    if lost:
        raise damaged([placed.part for placed in takes if placed.take.audio in lost])


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


def samples_at(path: Path, sample_rate: int, rate: int) -> np.ndarray:
    """The int16 samples of a take's file, which has ``sample_rate``, at another rate. Raises OSError."""
    if sample_rate != rate:
        return np.frombuffer(_resampled(path, sample_rate, rate), "<i2")
    return np.memmap(path, "<i2", "r", WAV_HEADER)


@lru_cache(maxsize=4)  # a range of a file is read in pieces; a take of five minutes has 26 MB
def _resampled(path: Path, sample_rate: int, rate: int) -> bytes:
    resampler = Resampler(sample_rate, rate)
    sound = resampler.write(floats(path.read_bytes()[WAV_HEADER:]))
    return pcm16(np.concatenate([sound, resampler.finish()]))


@lru_cache(maxsize=4)  # as above
def _faster(path: Path, sample_rate: int, rate: int, speed: float, length: int) -> bytes:
    """``length`` samples: the change of speed is not exact to a sample, and a take ends with silence."""
    tempo = Tempo(speed, rate)
    sound = np.concatenate([tempo.write(floats(samples_at(path, sample_rate, rate).tobytes())), tempo.finish()])
    return pcm16(np.pad(sound[:length], (0, max(0, length - len(sound)))))


def _exactly(file: BinaryIO, size: int, clip: Placed) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise OSError(f"the audio file {clip.take.audio[:12]}… has become shorter")
    return data


def _mixed(sounds: list[bytes]) -> bytes:
    """The sum of 16-bit samples, cut off at full scale: two voices at their usual levels stay below it."""
    if len(sounds) == 1:
        return sounds[0]
    total = np.sum([np.frombuffer(sound, "<i2") for sound in sounds], axis=0, dtype=np.int32)
    return total.clip(-32768, 32767).astype("<i2").tobytes()


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

    It cannot be streamed, as the index of an MP4 and its chapters are written at the end. Blocking. Raises OSError, for
    example if the disk is full.
    """
    with unnamed_file(folder) as output:
        options = {"brand": "M4B "} | ({"movflags": "disable_chpl"} if len(tags.chapters) > MOST_COUNTED else {})
        file = av.open(output, "w", format="mp4", options=options)
        stream = file.add_stream("aac", rate=timeline.sample_rate, layout="mono")
        assert isinstance(stream, AudioStream)
        stream.bit_rate = M4B_BITS
        tag(file, stream, tags)
        file.metadata["media_type"] = MEDIA_KIND
        at = 0
        for pcm in _sound(timeline, files, mastering):
            if len(pcm):
                frame = av.AudioFrame.from_ndarray(np.clip(pcm, -1.0, 1.0)[None], format="fltp", layout="mono")
                frame.sample_rate, frame.pts = timeline.sample_rate, at
                at += frame.samples
                check_spare(folder)
                file.mux(stream.encode(frame))
            yield output
        file.mux(stream.encode(None))
        file.close()
    yield output


@contextlib.contextmanager
def unnamed_file(folder: Path) -> Iterator[BinaryIO]:
    """A file for its reader to close, from its beginning; it vanishes then, or if the work in it ends early."""
    output = cast(BinaryIO, tempfile.TemporaryFile(dir=folder))  # noqa: SIM115
    try:
        yield output
        output.seek(0)
    except BaseException:  # closed before a writer that is left behind, so that PyAV does not write an index into it
        with contextlib.suppress(OSError):
            output.close()
        raise


def _sound(timeline: Timeline, files: AudioFiles, mastering: Mastering | None) -> Generator[np.ndarray, None, None]:
    pieces = Concatenation(timeline, files).floats()
    return mastering.applied(pieces, timeline.sample_rate) if mastering else pieces


class Masterings:
    """Finds the mastering of a timeline, and caches it."""

    def __init__(self) -> None:
        self._cache: dict[tuple[str, str], Mastering] = {}
        self._lock = Lock()

    def find(
        self, timeline: Timeline, files: AudioFiles, standard: Standard | None
    ) -> Generator[bytes, None, Mastering | None]:
        """As `find_mastering`; None without a standard. Blocking."""
        key = timeline.fingerprint, standard.name if standard else ""
        if standard is None or key in self._cache:
            return self._cache.get(key)
        sound = Concatenation(timeline, files)
        mastering = yield from find_mastering(sound.floats, timeline.sample_rate, standard)
        with self._lock:
            self._cache[key] = mastering
            while len(self._cache) > MAX_CACHED:
                del self._cache[next(iter(self._cache))]
        return mastering
