"""A project as a zip export, written while it is sent: a WAV for each part, and a table that lists them."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Generator

from studio.audio.sink import Sink
from studio.library.audio_files import AudioFiles
from studio.projects.timeline import Timeline

COLUMNS = ("file", "chapter", "text", "voice", "pause", "seed", "start", "seconds")
DATED = (1980, 1, 1, 0, 0, 0)
"""The same takes give the same bytes."""


def zipped(timeline: Timeline, files: AudioFiles) -> Generator[bytes, None, None]:
    """The zip, piece by piece, one part in memory at a time. Its manifest.csv can be made a project again."""
    sink = Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        archive.writestr(zipfile.ZipInfo("manifest.csv", DATED), _manifest(timeline))
        for placed in timeline.placed:
            archive.writestr(zipfile.ZipInfo(_name(placed.part.position), DATED), files.read(placed.take.audio))
            yield sink.take()
    yield sink.take()


def _manifest(timeline: Timeline) -> bytes:
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(COLUMNS)
    for placed in timeline.placed:
        part, take = placed.part, placed.take
        times = (f"{timeline.seconds(placed.start):.3f}", f"{take.seconds:.3f}")
        pause = "" if part.pause is None else part.pause
        table.writerow((_name(part.position), part.chapter, part.text, part.voice or "", pause, take.seed, *times))
    return text.getvalue().encode()


def _name(position: int) -> str:
    return f"{position + 1:05}.wav"
