"""Exports the audio of stored takes: in any format, with good file names, and several as one zip."""

from __future__ import annotations

import json
import re
import time
import zipfile
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path

import av
import numpy as np
from av.error import FFmpegError

from studio.audio.encode import wav_samples
from studio.audio.formats import open_encoder
from studio.audio.mastering import Mastering, Standard, find_mastering
from studio.audio.sink import Sink
from studio.errors import StudioError
from studio.library.takes.take import Take
from studio.unicode_text import safe_file_name

CONTAINERS = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/ogg": "ogg", "audio/aac": "aac", "audio/flac": "flac"}
LONGEST_NAME = 60
STORED = "wav"
"""The format of stored takes, which is lossless."""


def file_name(take: Take, format_name: str) -> str:
    """A file name from time, voice and text, in ASCII: 2026-11-20_1405_anna_hello-there_seed-7.wav."""
    timestamp = time.strftime("%Y-%m-%d_%H%M", time.gmtime(take.created))
    untagged = re.sub(r"\[[^\[\]]*\]", "", take.text[:1000].lower())  # only the beginning fits into a name
    words = re.sub(r"[^a-z0-9]+", "-", untagged)[:LONGEST_NAME].strip("-")
    parts = [timestamp, take.label[:LONGEST_NAME], words, f"seed-{take.seed}"]
    return safe_file_name("_".join(part for part in parts if part), format_name, "take")


def encoded(
    path: Path,
    media_type: str,
    format_name: str,
    sample_rate: int | None = None,
    standard: Standard | None = None,
) -> Generator[bytes, None, None]:
    """A stored file in another format, or at the loudness of a standard, piece by piece while it is read. Blocking.

    Raises StudioError when the file is damaged, if possible before the first piece.
    """
    try:
        with av.open(str(path), "r", format=CONTAINERS[media_type]) as source:
            rate = source.streams.audio[0].codec_context.sample_rate
        sound = partial(_sound, path, media_type, rate)
        pieces = sound()
        if standard is not None:
            mastering = None
            for step in find_mastering(sound, rate, standard):
                mastering = step if isinstance(step, Mastering) else None
                yield b""  # lets the caller stop here
            assert mastering is not None
            pieces = mastering.applied(pieces, rate)
        encoder = open_encoder(format_name, rate, sample_rate, _samples(path, media_type))
        for pcm in pieces:
            if piece := encoder.write(pcm):
                yield piece
        yield encoder.finish()
    except (FFmpegError, OSError, IndexError) as error:
        raise StudioError(f"the audio file {path.name[:12]}… in the library cannot be read: {error}") from error


def decoded(path: Path, media_type: str, rate: int) -> Generator[np.ndarray, None, None]:
    """A stored file's samples, float32 mono, at this rate in Hz, piece by piece. Blocking. Raises StudioError."""
    try:
        yield from _sound(path, media_type, rate)
    except (FFmpegError, OSError, IndexError) as error:
        raise StudioError(f"the audio file {path.name[:12]}… in the library cannot be read: {error}") from error


def _sound(path: Path, media_type: str, rate: int) -> Generator[np.ndarray, None, None]:
    """The samples of a file, float32 mono. Raises FFmpegError, OSError, IndexError."""
    with av.open(str(path), "r", format=CONTAINERS[media_type]) as source:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
        for frame in source.decode(source.streams.audio[0]):
            for part in resampler.resample(frame):
                yield _floats(part)


def zipped(
    takes: Sequence[tuple[Take, Path]], format_name: str, take_details: Sequence[object]
) -> Generator[bytes, None, None]:
    """A zip of takes with a manifest.json; only one file at a time is in memory. Blocking. Raises StudioError."""
    sink = Sink()
    names: dict[str, int] = {}
    manifest = []
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for (take, path), details in zip(takes, take_details, strict=True):
            name = _unique(file_name(take, format_name), names)
            is_stored_format = format_name == STORED and take.media_type == "audio/wav"
            data = path.read_bytes() if is_stored_format else b"".join(encoded(path, take.media_type, format_name))
            archive.writestr(zipfile.ZipInfo(name, time.gmtime(max(take.created, 315532800))[:6]), data)
            manifest.append({"file": name, "take": details})
            yield sink.take()
        archive.writestr("manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False))
    yield sink.take()


def _floats(frame: av.AudioFrame) -> np.ndarray:
    return frame.to_ndarray().reshape(-1).astype(np.float32, copy=False)


def _unique(name: str, names: dict[str, int]) -> str:
    names[name] = names.get(name, 0) + 1
    stem, dot, extension = name.rpartition(".")
    return name if names[name] == 1 else f"{stem}_{names[name]}{dot}{extension}"


def _samples(path: Path, media_type: str) -> int | None:
    """Number of samples of a stored WAV; None for other formats."""
    return wav_samples(path.stat().st_size) if media_type == "audio/wav" else None
