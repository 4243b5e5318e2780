"""Packs a project as an EPUB 3 that is read along; `timed_text` writes the text and paragraphs of its chapters."""

from __future__ import annotations

import uuid
import zipfile
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

from audio.mastering import Mastering
from longform.library.project_records import Project
from longform.render import encoded, unnamed_file
from longform.tags import Tags
from longform.timed_text import ReadAlongPage, WordTimes, language_attributes, rendered
from longform.timeline import Timeline
from longform.zip_export import DATE, add_sound
from studio.library.audio_files import AudioFiles
from studio.library.disk_reserve import check_spare

EPUB_TYPE = "application/epub+zip"
BITRATE = 64  # default kbit/s of its MP3 files: 29 MB per hour


class _Chapter(NamedTuple):
    name: str  # of its files, without an extension
    title: str
    duration: int  # milliseconds


def write_epub(
    timeline: Timeline,
    files: AudioFiles,
    word_times: WordTimes,
    project: Project,
    tags: Tags,
    folder: Path,
    mastering: Mastering | None = None,
    bitrate: int | None = None,
) -> Generator[BinaryIO, None, None]:
    """Write the EPUB. Yields the same file after each chunk; the last is complete.

    It cannot be streamed: readers expect the sizes of its entries before them. One chapter's text is in memory at a
    time. Blocking. Raises OSError, for example if the disk is full.
    """
    with unnamed_file(folder) as output, zipfile.ZipFile(output, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, "mimetype", EPUB_TYPE, zipfile.ZIP_STORED)
        _add(archive, "META-INF/container.xml", rendered("container.xml"))
        _add(archive, "EPUB/style.css", rendered("style.css"))
        if tags.cover:
            _add(archive, f"EPUB/{tags.cover.file_name}", tags.cover.image, zipfile.ZIP_STORED)
        chapters: list[_Chapter] = []
        sounds = timeline.by_chapter(tail=project.settings.chapter_pause)
        for number, (chapter_title, chapter) in enumerate(sounds, start=1):
            title = chapter_title or tags.title
            page = ReadAlongPage(title, tags.language, chapter, word_times)
            name = f"c{number:05}"
            chapters.append(_Chapter(name, title, page.clips[-1].end))
            _add(archive, f"EPUB/{name}.xhtml", page.xhtml)
            _add(archive, f"EPUB/{name}.smil", page.smil(name))
            chapter_tags = Tags(title, tags.author, tags.narrator)
            pieces = encoded(chapter, files, "mp3", chapter_tags, mastering, bitrate or BITRATE)
            for _ in add_sound(archive, f"EPUB/{name}.mp3", chapter, pieces):
                check_spare(folder)
                yield output
        language = language_attributes(tags.language)
        _add(archive, "EPUB/nav.xhtml", rendered("nav.xhtml", tags=tags, chapters=chapters, language=language))
        direction = ' page-progression-direction="rtl"' if language.endswith('dir="rtl"') else ""
        book_id, changed = uuid.uuid5(uuid.NAMESPACE_URL, project.id), datetime.fromtimestamp(project.changed, UTC)
        about = {"tags": tags, "chapters": chapters, "direction": direction, "id": book_id, "changed": changed}
        _add(archive, "EPUB/package.opf", rendered("package.opf", **about))
    yield output


def _add(archive: zipfile.ZipFile, name: str, content: str | bytes, kind: int = zipfile.ZIP_DEFLATED) -> None:
    archive.writestr(zipfile.ZipInfo(name, DATE), content, kind)
