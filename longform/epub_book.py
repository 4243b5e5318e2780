"""Packs a project as an EPUB 3 that is read along; `timed_text` writes the text and paragraphs of its chapters."""

from __future__ import annotations

import uuid
import zipfile
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

from audio.mastering import Mastering
from longform.library.project_records import Project
from longform.render import encoded, unnamed_file
from longform.tags import Tags
from longform.timed_text import ReadAlongPage, WordTimes, language_attributes, seconds, xml
from longform.timeline import Timeline
from longform.zip_export import DATE, add_sound
from studio.library.audio_files import AudioFiles

EPUB_TYPE = "application/epub+zip"
BITRATE = 64  # default kbit/s of its MP3 files: 29 MB per hour
_ACTIVE = "-epub-media-overlay-active"
_STYLE = f"""html {{ line-height: 1.5; }}
body {{ margin: 5%; }}
h1 {{ margin: 2em 0 1em; text-align: center; }}
p {{ margin: 0 0 .8em; }}
hr {{ margin: 2em auto; width: 30%; }}
.{_ACTIVE} {{ background-color: #ffe28a; color: #000; }}
"""
_CONTAINER = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="EPUB/package.opf" media-type="application/oebps-package+xml"/></rootfiles></container>\n'
)
_ACCESSIBLE = (
    ("accessMode", "textual"),
    ("accessMode", "auditory"),
    ("accessModeSufficient", "textual"),
    ("accessModeSufficient", "auditory"),
    ("accessibilityFeature", "synchronizedAudioText"),
    ("accessibilityFeature", "tableOfContents"),
    ("accessibilityHazard", "none"),
)


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
        _add(archive, "META-INF/container.xml", _CONTAINER)
        _add(archive, "EPUB/style.css", _STYLE)
        if tags.cover:
            _add(archive, f"EPUB/{_cover_name(tags)}", tags.cover.image, zipfile.ZIP_STORED)
        chapters: list[_Chapter] = []
        sounds = timeline.by_chapter(tail=project.settings.chapter_pause)
        for number, (chapter_title, chapter) in enumerate(sounds, start=1):
            title = chapter_title or tags.title
            page = ReadAlongPage(title, tags.language, chapter, word_times)
            name = f"c{number:05}"
            chapters.append(_Chapter(name, title, page.clips[-1].end))
            _add(archive, f"EPUB/{name}.xhtml", page.xhtml)
            _add(archive, f"EPUB/{name}.smil", page.smil(f"{name}.xhtml", f"{name}.mp3"))
            chapter_tags = Tags(title, tags.author, tags.narrator)
            pieces = encoded(chapter, files, "mp3", chapter_tags, mastering, bitrate or BITRATE)
            for _ in add_sound(archive, f"EPUB/{name}.mp3", chapter, pieces):
                yield output
        _add(archive, "EPUB/nav.xhtml", _contents(tags, chapters))
        _add(archive, "EPUB/package.opf", _package(project, tags, chapters))
    yield output


def _add(archive: zipfile.ZipFile, name: str, content: str | bytes, kind: int = zipfile.ZIP_DEFLATED) -> None:
    archive.writestr(zipfile.ZipInfo(name, DATE), content, kind)


def _cover_name(tags: Tags) -> str:
    assert tags.cover is not None
    return "cover.png" if tags.cover.media_type == "image/png" else "cover.jpg"


def _contents(tags: Tags, chapters: list[_Chapter]) -> str:
    lines = "\n".join(f'<li><a href="{chapter.name}.xhtml">{xml(chapter.title)}</a></li>' for chapter in chapters)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"'
        f"{language_attributes(tags.language)}>\n<head><title>{xml(tags.title)}</title></head>\n"
        f'<body><nav epub:type="toc"><h1>{xml(tags.title)}</h1><ol>\n{lines}\n</ol></nav></body>\n</html>\n'
    )


def _package(project: Project, tags: Tags, chapters: list[_Chapter]) -> str:
    spine = "".join(f'<itemref idref="{chapter.name}"/>' for chapter in chapters)
    is_backward = language_attributes(tags.language).endswith('dir="rtl"')
    direction = ' page-progression-direction="rtl"' if is_backward else ""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">\n'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">\n{chr(10).join(_metadata(project, tags, chapters))}\n'
        f"</metadata>\n<manifest>\n{chr(10).join(_manifest(tags, chapters))}\n</manifest>\n"
        f"<spine{direction}>{spine}</spine>\n</package>\n"
    )


def _metadata(project: Project, tags: Tags, chapters: list[_Chapter]) -> Iterator[str]:
    yield f'<dc:identifier id="id">urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, project.id)}</dc:identifier>'
    yield f"<dc:title>{xml(tags.title)}</dc:title>"
    yield f"<dc:language>{xml(tags.language) or 'und'}</dc:language>"
    if tags.author:
        yield f"<dc:creator>{xml(tags.author)}</dc:creator>"
    if tags.year is not None:
        yield f"<dc:date>{tags.year:04}</dc:date>"
    if tags.narrator:
        yield f'<dc:contributor id="narrator">{xml(tags.narrator)}</dc:contributor>'
        yield '<meta refines="#narrator" property="role" scheme="marc:relators">nrt</meta>'
        yield f'<meta property="media:narrator">{xml(tags.narrator)}</meta>'
    modified = datetime.fromtimestamp(project.changed, UTC)
    yield f'<meta property="dcterms:modified">{modified:%Y-%m-%dT%H:%M:%SZ}</meta>'
    for name, value in _ACCESSIBLE:
        yield f'<meta property="schema:{name}">{value}</meta>'
    yield f'<meta property="media:active-class">{_ACTIVE}</meta>'
    yield f'<meta property="media:duration">{seconds(sum(chapter.duration for chapter in chapters))}</meta>'
    for chapter in chapters:
        yield f'<meta property="media:duration" refines="#{chapter.name}-smil">{seconds(chapter.duration)}</meta>'


def _manifest(tags: Tags, chapters: list[_Chapter]) -> Iterator[str]:
    yield '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
    yield '<item id="style" href="style.css" media-type="text/css"/>'
    if tags.cover:
        name, kind = _cover_name(tags), tags.cover.media_type
        yield f'<item id="cover" href="{name}" media-type="{kind}" properties="cover-image"/>'
    for chapter in chapters:
        name = chapter.name
        overlay = f'media-overlay="{name}-smil"'
        yield f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml" {overlay}/>'
        yield f'<item id="{name}-smil" href="{name}.smil" media-type="application/smil+xml"/>'
        yield f'<item id="{name}-audio" href="{name}.mp3" media-type="audio/mpeg"/>'
