"""Voices from a folder in fish-speech's layout: NAME/ with recordings, each with its transcript in a .lab file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath

from audio.read import MAX_BYTES
from manuscript.untrusted import InvalidArchive, opened, read_entry
from studio.errors import BAD_INPUT, InvalidPack, InvalidRequest, NameTaken, TooCostly
from studio.library import Library, NewSample, Voice, VoiceFields
from studio.library.checks import MAX_SAMPLES, MAX_SECONDS, check_words
from studio.unicode_text import check_strings
from studio.voices.intake import take_in

WORDS = ".lab"
RECORDINGS = frozenset(
    (".wav", ".mp3", ".flac", ".ogg", ".opus", ".m4a", ".mp4", ".webm", ".wma", ".aac", ".aif", ".aiff", ".aifc")
)
MAX_WORDS = 64 * 1024
"""Maximum bytes of a .lab file."""
MAX_FILES = 2000
"""Maximum number of files in an uploaded folder or its archive."""
MAX_UNPACKED = 512 * 1024 * 1024
"""Maximum unpacked bytes read from an archive."""
_MANIFEST = "manifest.json"

Files = Mapping[str, Callable[[int], bytes]]
"""A reader for each path, which returns at most one more byte than its argument; a path's last two parts count."""


@dataclass(frozen=True, slots=True)
class ImportedReferences:
    """The imported voices of a folder, and the reasons for those left out, by path."""

    voices: list[Voice] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def words(self) -> str:
        """All refusals as one text."""
        return "; ".join(f"{path}: {reason}" for path, reason in self.refused.items())


def is_reference_archive(data: bytes) -> bool:
    """Whether the data is a zip of such a folder and not a voice pack. Blocking."""
    try:
        with opened(data, MAX_FILES) as archive:
            names = archive.namelist()
    except InvalidArchive:
        return False
    return _MANIFEST not in names and any(_is_recording(name) for name in names)


def import_archive(library: Library, data: bytes) -> ImportedReferences:
    """Import a zip of such a folder. Blocking. Raises the errors of `import_references`."""
    remaining = MAX_UNPACKED
    try:
        with opened(data, MAX_FILES) as archive:

            def read(name: str, limit: int) -> bytes:
                nonlocal remaining
                if remaining <= 0:
                    raise InvalidArchive(f"the entries before it unpack to more than {MAX_UNPACKED >> 20} MiB")
                content = read_entry(archive, archive.getinfo(name), limit)
                remaining -= len(content)
                return content

            return import_references(library, {name: partial(read, name) for name in archive.namelist()})
    except InvalidArchive as error:
        raise InvalidPack(f"this file is not a readable zip of a folder with recordings: {error}", "file") from error


def import_references(library: Library, files: Files, refused: Mapping[str, str] | None = None) -> ImportedReferences:
    """Import one voice per folder with recordings. Voices and recordings that cannot be used are left out, as are
    those that are ``refused`` already.

    A voice with an existing name is refused, so that a second import creates no duplicates. Blocking. Raises
    InvalidPack if nothing can be used.
    """
    folders: dict[str, list[str]] = {}
    for path in sorted(files):
        if _is_recording(path):
            folders.setdefault(str(_posix(path).parent), []).append(path)
    imported = ImportedReferences(refused=dict(refused or {}))
    for folder, paths in folders.items():
        try:
            imported.voices.append(_voice(library, PurePosixPath(folder).name, paths, files, imported.refused))
        except TooCostly as error:  # the remaining folders would fail too
            remaining = list(folders)[list(folders).index(folder) :]
            imported.refused.update(dict.fromkeys(remaining, str(error)))
            break
        except BAD_INPUT as error:
            imported.refused[folder] = str(error)
    if not imported.voices:
        reason = imported.words() or f"there are no folders with recordings and their transcripts in {WORDS} files"
        raise InvalidPack(f"no voice was imported: {reason}", "file")
    return imported


def _is_recording(path: str) -> bool:
    """Whether a path is a recording in a folder and not a hidden or system file."""
    file = _posix(path)
    is_hidden = any(part.startswith(".") or part == "__MACOSX" for part in file.parts)
    return len(file.parts) > 1 and not is_hidden and file.suffix.lower() in RECORDINGS


def _posix(path: str) -> PurePosixPath:
    """A path as written by archives and browsers of any system, Windows too."""
    return PurePosixPath(path.replace("\\", "/"))


def _voice(library: Library, name: str, paths: list[str], files: Files, refused: dict[str, str]) -> Voice:
    """Raises InvalidRequest, and TooCostly when the time for the whole import is over."""
    fields = VoiceFields(name=name)
    if library.voices.exists(fields.name):
        raise NameTaken(f"a voice named {fields.name!r} already exists; rename the folder", "name")
    samples: list[NewSample] = []
    for path in paths:
        try:
            if len(samples) == MAX_SAMPLES:
                raise InvalidRequest(f"a voice may have at most {MAX_SAMPLES} recordings")
            sample = _sample(path, files)
            if sum(other.seconds for other in samples) + sample.seconds > MAX_SECONDS:
                raise InvalidRequest(f"a voice's recordings may be at most {MAX_SECONDS:g} s long in total")
        except TooCostly:
            raise  # else the voice would have only some of its recordings
        except (*BAD_INPUT, InvalidArchive, OSError) as error:
            refused[path] = str(error)
        else:
            samples.append(sample)
    if not samples:
        raise InvalidRequest("none of its recordings can be used")
    return library.voices.create(fields, samples, "voice.import")


def _sample(path: str, files: Files) -> NewSample:
    """Raises InvalidRequest, InvalidArchive, OSError."""
    words = path[: -len(_posix(path).suffix)] + WORDS
    if words not in files:
        raise InvalidRequest(f"the transcript is missing: {_posix(words).name}")
    text = _words(_read_all(files[words], MAX_WORDS))
    return take_in(_read_all(files[path], MAX_BYTES), text).sample(text)


def _read_all(read: Callable[[int], bytes], limit: int) -> bytes:
    data = read(limit)
    if len(data) > limit:
        raise InvalidRequest(f"the file is too large; at most {limit / 2**20:.4g} MiB are allowed")
    return data


def _words(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest(f"the {WORDS} file is not UTF-8 text; save it as UTF-8") from None
    check_strings(text, WORDS)
    check_words(text, WORDS)
    return text
