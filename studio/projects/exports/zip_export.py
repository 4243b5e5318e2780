"""Streams a project as a zip: a WAV per part with a CSV manifest, or a tagged file per chapter."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Generator, Mapping
from dataclasses import replace

from studio.audio.mastering import Mastering, Standard
from studio.audio.sink import Sink
from studio.audio.tags import Tags
from studio.library.audio_files import AudioFiles
from studio.projects.exports.render import Masterings, encoded
from studio.projects.timeline import Timeline
from studio.unicode_text import safe_file_name

COLUMNS = ("file", "chapter", "text", "voice", "pause", "seed", "start", "seconds")
CAST_COLUMNS = ("character", "scene", "continues")
"""Columns only for a project that uses them."""
DATE = (1980, 1, 1, 0, 0, 0)
"""Fixed, so that the same takes give the same bytes."""
LONGEST_NAME = 80
"""Maximum characters of a chapter's title in a file name."""


def zipped(
    timeline: Timeline, files: AudioFiles, names: Mapping[str, str], texts: Mapping[str, str] | None = None
) -> Generator[bytes, None, None]:
    """Yield the zip in chunks, with one part in memory at a time. Its manifest.csv can be imported as a project.

    ``names``: of the characters, by id; ``texts``: texts to add, by file name.
    """
    sink = Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        archive.writestr(zipfile.ZipInfo("manifest.csv", DATE), _manifest(timeline, names))
        for name, text in (texts or {}).items():
            archive.writestr(zipfile.ZipInfo(name, DATE), text)
        for placed in timeline.placed:
            archive.writestr(zipfile.ZipInfo(_name(placed.part.position), DATE), files.read(placed.take.audio))
            yield sink.take()
    yield sink.take()


def _manifest(timeline: Timeline, names: Mapping[str, str]) -> bytes:
    text = io.StringIO(newline="")
    table = csv.writer(text)
    has_cast = any(placed.part.character or placed.part.scene or placed.part.continues for placed in timeline.placed)
    table.writerow((*COLUMNS, *CAST_COLUMNS) if has_cast else COLUMNS)
    before = ""
    for placed in timeline.placed:
        part, take = placed.part, placed.take
        times = (f"{timeline.seconds(placed.start):.3f}", f"{take.seconds:.3f}")
        pause = "" if part.pause is None else part.pause
        row = (_name(part.position), part.chapter, part.text, part.voice or "", pause, take.seed, *times)
        continues = "" if part.continues is None else int(part.continues == before)
        before = part.id
        cast = (names.get(part.character or "", ""), int(part.scene) or "", continues)
        table.writerow((*row, *cast) if has_cast else row)
    return text.getvalue().encode()


def _name(position: int) -> str:
    return f"{position + 1:05}.wav"


def chapters_zipped(
    timeline: Timeline,
    files: AudioFiles,
    name: str,
    book: Tags,
    masterings: Masterings,
    standard: Standard | None = None,
    bitrate: int | None = None,
) -> Generator[bytes, None, None]:
    """Yield the zip in chunks. Each chapter is mastered separately, because shops check each file.

    ``bitrate``: as for `encoded`.
    """
    sink = Sink()
    head, tail = (standard.head, standard.tail) if standard else (0.0, 0.0)
    chapters = timeline.by_chapter(head, tail)
    digits = max(2, len(str(len(chapters))))
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for number, (chapter_title, chapter) in enumerate(chapters, start=1):
            title = chapter_title or book.title
            tags = replace(book, title=title, album=book.title, track=(number, len(chapters)), chapters=())
            mastering = None
            for step in masterings.find(chapter, files, standard) if standard else ():
                mastering = step if isinstance(step, Mastering) else None
                yield b""  # lets the caller stop here
            info = zipfile.ZipInfo(_file_name(f"{number:0{digits}}", title, name), DATE)
            with archive.open(info, "w", force_zip64=name == "wav") as file:
                for data in encoded(chapter, files, name, tags, mastering, bitrate):
                    file.write(data)
                    if piece := sink.take():
                        yield piece
    yield sink.take()


def _file_name(number: str, title: str, extension: str) -> str:
    return f"{number} {safe_file_name(title[:LONGEST_NAME], extension, 'Chapter')}"
