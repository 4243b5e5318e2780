"""Streams a project as a zip of tracks for an audio editor: by character or voice, of equal length, with labels."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping

from studio.audio.sink import Sink
from studio.audio.tags import Tags
from studio.library.audio_files import AudioFiles
from studio.projects.exports.concatenation import check_wav
from studio.projects.exports.render import encoded
from studio.projects.exports.zip_export import DATE, LONGEST_NAME
from studio.projects.timeline import Placed, Timeline
from studio.unicode_text import safe_file_name
from studio.work.job import check_job

TRACK_FORMATS = ("flac", "wav")
MAX_TRACKS = 32
"""Maximum number of tracks, because silence takes time to encode and, in a WAV, space."""
OTHERS = "Others"
"""The track shared by the tracks with the fewest samples if there are more than MAX_TRACKS."""
NARRATOR = "Narrator"
"""The track of parts without a character, in a project with a cast."""
LONGEST_LABEL = 60
"""Characters."""

NameTrack = Callable[[Placed], str]
"""Names the track of a take."""


def voice_of(placed: Placed) -> str:
    """Tracks by voice."""
    return placed.take.label or "default"


def speaker_in(characters: Mapping[str, str]) -> NameTrack:
    """Tracks by character, from the names by id; by voice for a project without a cast."""
    if not characters:
        return voice_of
    return lambda placed: characters.get(placed.part.character or "", NARRATOR)


def tracks_of(timeline: Timeline, name: NameTrack) -> dict[str, Timeline]:
    """Tracks as long as the whole, by name, in order of their first words. Their sum is the whole."""
    lengths: Counter[str] = Counter()
    names: list[str] = []
    for placed in timeline.placed:
        names.append(name(placed))
        lengths[names[-1]] += placed.end - placed.start
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
    sink = Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        archive.writestr(zipfile.ZipInfo("labels.txt", DATE), "".join(_labels(timeline, name_track)))
        if timeline.chapters:
            chapters = "".join(_label(timeline, start, end, title) for title, start, end in timeline.chapters)
            archive.writestr(zipfile.ZipInfo("chapters.txt", DATE), chapters)
        for number, (track, sound) in enumerate(tracks_of(timeline, name_track).items(), start=1):
            file_name = safe_file_name(f"{number:02} {track[:LONGEST_NAME]}", name)
            tags = Tags(track, album=album)
            with archive.open(zipfile.ZipInfo(file_name, DATE), "w", force_zip64=name == "wav") as file:
                for data in encoded(sound, files, name, tags):
                    file.write(data)
                    yield sink.take()
    yield sink.take()


def _labels(timeline: Timeline, name_track: NameTrack) -> Iterator[str]:
    """Lines of an Audacity label file: start, end, speaker and text."""
    for placed in timeline.placed:
        check_job()
        yield _label(timeline, placed.start, placed.end, f"{name_track(placed)}: {placed.part.text}")


def _label(timeline: Timeline, start: int, end: int, text: str) -> str:
    words = " ".join(text[: 4 * LONGEST_LABEL].split())
    words = words if len(words) <= LONGEST_LABEL else f"{words[:LONGEST_LABEL].rstrip()}…"
    return f"{timeline.seconds(start):.6f}\t{timeline.seconds(end):.6f}\t{words}\n"
