"""Exports the audio of stored takes: in any format, with good file names, and several as one zip."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections import Counter
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path

import av
import numpy as np
from av.container import InputContainer
from av.error import FFmpegError

from audio.compress import Sink
from audio.encode import wav_samples
from audio.formats import open_encoder
from audio.mastering import Standard, find_mastering
from studio.errors import DamagedAudio
from studio.library.audio_files import is_damaged
from studio.library.take import Take
from studio.unicode_text import safe_file_name

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
    sound: Path | bytes, format_name: str, sample_rate: int | None = None, standard: Standard | None = None
) -> Generator[bytes, None, None]:
    """A take's file in another format, or at the loudness of a standard, piece by piece while it is read. Blocking.

    Raises DamagedAudio, before the first piece if the content of a stored file has changed.
    """
    if isinstance(sound, Path):
        _check(sound)
    try:
        with _opened(sound) as source:
            rate = source.streams.audio[0].codec_context.sample_rate
        samples = partial(_sound, sound, rate)
        pieces = samples()
        if standard is not None:
            mastering = yield from find_mastering(samples, rate, standard)
            pieces = mastering.applied(pieces, rate)
        size = len(sound) if isinstance(sound, bytes) else sound.stat().st_size
        encoder = open_encoder(format_name, rate, sample_rate, wav_samples(size))
        for pcm in pieces:
            if piece := encoder.write(pcm):
                yield piece
        yield encoder.finish()
    except (FFmpegError, OSError, IndexError) as error:
        raise DamagedAudio(f"the audio of this take cannot be read: {_reason(error)}") from error


def decoded(path: Path, rate: int) -> Generator[np.ndarray, None, None]:
    """A stored file's samples, float32 mono, at this rate in Hz, piece by piece. Blocking. Raises DamagedAudio."""
    try:
        yield from _sound(path, rate)
    except (FFmpegError, OSError, IndexError) as error:
        raise DamagedAudio(f"the audio of this take cannot be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Without the path of the file on this machine."""
    return getattr(error, "strerror", None) or type(error).__name__


def _check(path: Path) -> Path:
    """Raises DamagedAudio for a stored file that has been deleted for good since, or whose content has changed."""
    if not path.exists() or is_damaged(path):
        raise DamagedAudio("its audio is missing from the library or damaged: generate it again, or restore a backup")
    return path


def _opened(sound: Path | bytes) -> InputContainer:
    return av.open(io.BytesIO(sound) if isinstance(sound, bytes) else str(sound), "r", format=STORED)


def _sound(sound: Path | bytes, rate: int) -> Generator[np.ndarray, None, None]:
    """The samples of a file, float32 mono. Raises FFmpegError, OSError, IndexError."""
    with _opened(sound) as source:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
        for frame in source.decode(source.streams.audio[0]):
            for part in resampler.resample(frame):
                yield part.to_ndarray().reshape(-1).astype(np.float32, copy=False)


def zipped(
    takes: Sequence[tuple[Take, Path]], format_name: str, take_details: Sequence[object]
) -> Generator[bytes, None, None]:
    """A zip of takes with a manifest.json; only one file at a time is in memory. Blocking.

    No date is the clock's, as zip files know none before 1980. Raises DamagedAudio, which names the take.
    """
    sink = Sink()
    stems = Counter[str]()
    manifest = []
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for (take, path), details in zip(takes, take_details, strict=True):
            stem = file_name(take, format_name).removesuffix(f".{format_name}")
            stems[stem] += 1
            name = f"{stem}.{format_name}" if stems[stem] == 1 else f"{stem}_{stems[stem]}.{format_name}"
            try:
                data = _check(path).read_bytes() if format_name == STORED else b"".join(encoded(path, format_name))
            except DamagedAudio as error:
                raise DamagedAudio(f"the take {take.id} cannot be exported: {error}", "ids") from error
            archive.writestr(zipfile.ZipInfo(name, time.gmtime(max(take.created, 315532800))[:6]), data)
            manifest.append({"file": name, "take": details})
            yield sink.take()
        archive.writestr(zipfile.ZipInfo("manifest.json"), json.dumps(manifest, indent=2, ensure_ascii=False))
    yield sink.take()
