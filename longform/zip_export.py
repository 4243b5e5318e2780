"""Streams a project as a zip: a WAV per part with a manifest, a tagged file per chapter, or tracks for audio editors.

Tracks are by character or voice, of equal length, with labels.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from audio.compress import Sink
from audio.mastering import Standard
from longform.library.project_records import Part
from longform.render import Masterings, check_wav, encoded, take_file
from longform.tags import Tags
from longform.timeline import Placed, Timeline
from manuscript.table import file_of, write_rows
from speechtext.characters import normalize
from speechtext.errors import check_job
from studio.library.audio_files import AudioFiles
from studio.unicode_text import safe_file_name

COLUMNS = ("file", "chapter", "text", "voice", "pause", "seed", "start", "seconds")
CAST_COLUMNS = ("character", "scene", "continues")  # only for a project that uses them
DATE = (1980, 1, 1, 0, 0, 0)  # fixed, so that the same takes give the same bytes
PCM_BYTES = 2  # per sample
LONGEST_NAME = 80  # characters of a chapter's title in a file name
TRACK_FORMATS = ("flac", "wav")
MAX_TRACKS = 32  # silence takes time to encode and, in a WAV, space
OTHERS = "Others"
"""The track shared by the tracks with the fewest samples if there are more than MAX_TRACKS."""
NARRATOR = "Narrator"  # the track of parts without a character, in a project with a cast
LONGEST_LABEL = 60  # characters

NameTrack = Callable[[Placed], str]  # names the track of a take


def zipped(
    timeline: Timeline,
    files: AudioFiles,
    names: Mapping[str, str],
    texts: Mapping[str, str] | None = None,
    table: Sheet | None = None,
) -> Generator[bytes, None, None]:
    """Yield the zip in chunks, with one part in memory at a time. Its manifest.csv can be imported as a project.

    ``names``: of the characters, by id; ``texts``: texts to add, by file name; ``table``: of a project from a table.
    """
    named = _file_names(timeline, table)
    with _archive() as (archive, sink):
        archive.writestr(zipfile.ZipInfo("manifest.csv", DATE), _manifest(timeline, names, named, table))
        for name, text in (texts or {}).items():
            archive.writestr(zipfile.ZipInfo(name, DATE), text)
        for placed in timeline.placed if table is None else table.chosen(timeline):
            archive.writestr(zipfile.ZipInfo(named[placed.part.id], DATE), take_file(placed, files).read_bytes())
            yield sink.take()
    yield sink.take()


@dataclass(frozen=True, slots=True)
class Sheet:
    """The table of a project: all its parts, and the roles of the columns."""

    parts: Sequence[Part]
    columns: Mapping[str, str]
    only_changed: bool = False
    """Whether only takes are written that no zip has had; the manifest has all lines."""

    def chosen(self, timeline: Timeline) -> list[Placed]:
        """The takes to be written."""
        return [placed for placed in timeline.placed if not self.only_changed or placed.take.id != placed.part.sent]


def _file_names(timeline: Timeline, table: Sheet | None) -> dict[str, str]:
    """The names of the parts' files, by the parts' ids: the table's, else numbers; no two are equal on any system."""
    named, taken, numbers = dict[str, str](), set[str](), Counter[str]()
    placed_parts = [placed.part for placed in timeline.placed]
    for part in sorted(placed_parts, key=lambda part: not part.name):  # a number gives way to a name
        cells = json.loads(part.cells) if part.cells and table else {}
        own = (file_of(cells, table.columns) if table else "") or part.name
        base = (safe_file_name(own, "wav") if own else _name(part.position)).removesuffix(".wav")
        name, same = f"{base}.wav", normalize("NFC", base).casefold()  # in a table of scenes, thousands have one name
        while (folded := normalize("NFC", name).casefold()) in taken:
            numbers[same] += 1
            name = f"{base} {numbers[same] + 1}.wav"
        taken.add(folded)
        named[part.id] = name
    return named


def _manifest(timeline: Timeline, names: Mapping[str, str], named: Mapping[str, str], table: Sheet | None) -> bytes:
    """``named``: the names of the files. Of a table, lines without a take are listed too, and the table's columns."""
    placed_parts = {placed.part.id: placed for placed in timeline.placed}
    parts = table.parts if table else [placed.part for placed in timeline.placed]
    written = {placed.part.id for placed in table.chosen(timeline)} if table else placed_parts.keys()
    has_cast = any(part.character or part.scene or part.continues for part in parts)
    own = _own_columns(table)
    rows: list[tuple[object, ...]] = [
        (*COLUMNS, *(CAST_COLUMNS if has_cast else ()), *(("id",) if table else ()), *own)
    ]
    before, keys = -1, set[str]()
    for part in parts:
        placed, cells = placed_parts.get(part.id), json.loads(part.cells or "{}")
        times = (f"{timeline.seconds(placed.start):.3f}", f"{placed.take.seconds:.3f}") if placed else ("", "")
        pause, seed = "" if part.pause is None else part.pause, placed.take.seed if placed else ""
        file = named[part.id] if part.id in written else ""
        row = (file, part.chapter, part.text, part.voice or "", pause, seed, *times)
        continues = "" if part.continues is None else int(part.continues and part.position == before + 1)
        before = part.position
        cast = (names.get(part.character or "", ""), int(part.scene) or "", continues)
        key = part.id if part.name.casefold() in keys else part.name or part.id  # an id for each row, for an update
        keys.add(key.casefold())
        line = (key, *(cells.get(column, "") for column in own)) if table else ()
        rows.append((*row, *(cast if has_cast else ()), *line))
    return write_rows(rows).encode()


def _own_columns(table: Sheet | None) -> list[str]:
    """The columns of the table that the manifest has no column for."""
    first = next((part.cells for part in table.parts if part.cells), "") if table else ""
    cells: dict[str, str] = json.loads(first or "{}")
    usual, roles = {*COLUMNS, *CAST_COLUMNS, "id", ""}, table.columns if table else {}
    return [name for name in cells if name.casefold() not in usual and roles.get(name) not in usual - {"", "file"}]


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
    head, tail = (standard.head, standard.tail) if standard else (0.0, 0.0)
    chapters = timeline.by_chapter(head, tail)
    digits = max(2, len(str(len(chapters))))
    with _archive() as (archive, sink):
        for number, (chapter_title, chapter) in enumerate(chapters, start=1):
            title = chapter_title or book.title
            tags = replace(book, title=title, album=book.title, track=(number, len(chapters)), chapters=())
            mastering = yield from masterings.find(chapter, files, standard)
            file_name = f"{number:0{digits}} {safe_file_name(title[:LONGEST_NAME], name, 'Chapter')}"
            for _ in add_sound(archive, file_name, chapter, encoded(chapter, files, name, tags, mastering, bitrate)):
                if piece := sink.take():
                    yield piece
    yield sink.take()


@contextmanager
def _archive() -> Iterator[tuple[zipfile.ZipFile, Sink]]:
    sink = Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        yield archive, sink


def add_sound(archive: zipfile.ZipFile, name: str, sound: Timeline, pieces: Iterable[bytes]) -> Iterator[None]:
    """Write the pieces of a file with this sound into the archive, and yield after each."""
    # The header before the file must say whether it may need Zip64, which not all programs read. An encoded file is
    # smaller than its 16-bit samples, so twice their size also has room for tags and a cover.
    may_be_large = 2 * PCM_BYTES * sound.samples > zipfile.ZIP64_LIMIT
    with archive.open(zipfile.ZipInfo(name, DATE), "w", force_zip64=may_be_large) as file:
        for data in pieces:
            file.write(data)
            yield


def speaker_in(characters: Mapping[str, str]) -> NameTrack:
    """Tracks by character, from the names by id; by voice for a project without a cast."""
    if not characters:
        return lambda placed: placed.take.label or "default"
    return lambda placed: characters.get(placed.part.character or "", NARRATOR)


def _tracks_of(timeline: Timeline, name: NameTrack) -> dict[str, Timeline]:
    """Tracks as long as the whole, by name, in order of their first words. Their sum is the whole."""
    names = [name(placed) for placed in timeline.placed]
    lengths = Counter[str]()
    for track, placed in zip(names, timeline.placed, strict=True):
        lengths[track] += placed.end - placed.start
    if len(lengths) > MAX_TRACKS:
        largest = {track for track, _ in lengths.most_common(MAX_TRACKS - 1)}
        names = [track if track in largest else OTHERS for track in names]
    parts: dict[str, set[str]] = {}
    for track, placed in zip(names, timeline.placed, strict=True):
        parts.setdefault(track, set()).add(placed.part.id)
    return {track: timeline.only(ids) for track, ids in parts.items()}


def tracks_zipped(
    timeline: Timeline, files: AudioFiles, name: str, album: str, name_track: NameTrack
) -> Generator[bytes, None, None]:
    """Yield the zip in chunks: a file per track, labels.txt with a label per part, and chapters.txt.

    ``name``: one of TRACK_FORMATS. Raises InvalidRequest if the tracks are too long for WAV files.
    """
    if name == "wav":
        check_wav(timeline)
    with _archive() as (archive, sink):
        labels = []
        for placed in timeline.placed:
            check_job()
            labels.append(_label(timeline, placed.start, placed.end, f"{name_track(placed)}: {placed.part.text}"))
        archive.writestr(zipfile.ZipInfo("labels.txt", DATE), "".join(labels))
        if timeline.chapters:
            chapters = "".join(_label(timeline, start, end, title) for title, start, end in timeline.chapters)
            archive.writestr(zipfile.ZipInfo("chapters.txt", DATE), chapters)
        for number, (track, sound) in enumerate(_tracks_of(timeline, name_track).items(), start=1):
            file_name = safe_file_name(f"{number:02} {track[:LONGEST_NAME]}", name)
            for _ in add_sound(archive, file_name, sound, encoded(sound, files, name, Tags(track, album=album))):
                yield sink.take()
    yield sink.take()


def _label(timeline: Timeline, start: int, end: int, text: str) -> str:
    """A line of an Audacity label file."""
    words = " ".join(text[: 4 * LONGEST_LABEL].split())
    words = words if len(words) <= LONGEST_LABEL else f"{words[:LONGEST_LABEL].rstrip()}…"
    return f"{timeline.seconds(start):.6f}\t{timeline.seconds(end):.6f}\t{words}\n"
