"""Voices from a folder as fish-speech keeps them: NAME/ with recordings, and beside each its words in a .lab file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from studio.audio.read import MAX_BYTES
from studio.errors import InvalidPack, InvalidRequest, NameTaken, TooCostly
from studio.library import Library, NewSample, Voice, VoiceFields
from studio.library.checks import MAX_SAMPLES, MAX_SECONDS, check_words
from studio.unicode_text import check_strings
from studio.unzip import InvalidArchive, opened, read_entry
from studio.voices.intake import take_in

WORDS = ".lab"
RECORDINGS = frozenset(
    (".wav", ".mp3", ".flac", ".ogg", ".opus", ".m4a", ".mp4", ".webm", ".wma", ".aac", ".aif", ".aiff", ".aifc")
)
MAX_WORDS = 64 * 1024
"""Bytes of a .lab file."""
MAX_FILES = 2000
"""Of a folder that is sent, or an archive of one."""
MAX_UNPACKED = 512 * 1024 * 1024
"""Bytes of all that is read of an archive."""
_MANIFEST = "manifest.json"

Files = Mapping[str, Callable[[int], bytes]]
"""What reads each file, at most so many bytes of it and one more, by its path; of that the last two parts count."""


@dataclass(frozen=True, slots=True)
class ImportedReferences:
    """The voices of a folder that are in the library now, and why the rest is not, by path."""

    voices: list[Voice] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def words(self) -> str:
        """What was refused, as one text."""
        return "; ".join(f"{path}: {why}" for path, why in self.refused.items())


def is_reference_archive(data: bytes) -> bool:
    """Whether it is a zip of such a folder, and not a voice pack. Blocking."""
    try:
        with opened(data, MAX_FILES) as archive:
            names = archive.namelist()
    except InvalidArchive:
        return False
    return _MANIFEST not in names and any(_place(name) for name in names)


def import_archive(library: Library, data: bytes) -> ImportedReferences:
    """The voices of a zip of such a folder. Blocking. Raises as `import_references`."""
    left = MAX_UNPACKED

    try:
        with opened(data, MAX_FILES) as archive:

            def read(name: str, limit: int) -> bytes:
                nonlocal left
                if left <= 0:
                    raise InvalidArchive(f"all before it unpacks to more than {MAX_UNPACKED >> 20} MiB")
                content = read_entry(archive, archive.getinfo(name), limit)
                left -= len(content)
                return content

            return import_references(library, {name: partial(read, name) for name in archive.namelist()})
    except InvalidArchive as error:
        raise InvalidPack(f"this file is not a readable zip of a folder with recordings: {error}", "file") from error


def import_folder(library: Library, folder: Path) -> ImportedReferences:
    """The voices of a folder of this machine, or the one voice of a folder that has recordings itself.

    Blocking. Raises as `import_references`, and InvalidRequest for what is not a folder.
    """
    if not folder.is_dir():
        raise InvalidRequest(f"{folder} is not a folder", "folder")
    folder = folder.resolve()
    found = sorted(path for pattern in ("*", "*/*") for path in folder.glob(pattern) if path.is_file())

    def read(path: Path, limit: int) -> bytes:
        with path.open("rb") as file:
            return file.read(limit + 1)

    return import_references(
        library, {path.relative_to(folder.parent).as_posix(): partial(read, path) for path in found}
    )


def import_references(library: Library, files: Files) -> ImportedReferences:
    """A voice of each folder with recordings. What cannot be used is left out, and the rest goes on.

    A voice that is there already is refused: what is imported twice would be there twice. Blocking. Raises InvalidPack
    where nothing can be used.
    """
    folders: dict[str, list[str]] = {}
    for path in sorted(files):
        if _place(path):
            folders.setdefault(str(_posix(path).parent), []).append(path)
    imported = ImportedReferences()
    for folder, paths in folders.items():
        try:
            imported.voices.append(_voice(library, PurePosixPath(folder).name, paths, files, imported.refused))
        except TooCostly as error:  # so it is for each that follows
            later = list(folders)[list(folders).index(folder) :]
            imported.refused.update(dict.fromkeys(later, str(error)))
            break
        except InvalidRequest as error:
            imported.refused[folder] = str(error)
    if not imported.voices:
        why = imported.words() or f"there are no recordings in folders, with their words in {WORDS} files"
        raise InvalidPack(f"no voice was imported: {why}", "file")
    return imported


def _place(path: str) -> bool:
    """Whether a file is a recording in a folder, and no system's own."""
    parts = _posix(path).parts
    return (
        len(parts) > 1
        and not any(part.startswith(".") or part == "__MACOSX" for part in parts)
        and _posix(path).suffix.lower() in RECORDINGS
    )


def _posix(path: str) -> PurePosixPath:
    """As archives and browsers of Windows write it, too."""
    return PurePosixPath(path.replace("\\", "/"))


def _voice(library: Library, name: str, paths: list[str], files: Files, refused: dict[str, str]) -> Voice:
    """Raises InvalidRequest, and TooCostly where the time for all of them is over."""
    new = VoiceFields(name=name)
    if library.voices.exists(new.name):
        raise NameTaken(f"a voice named {new.name!r} already exists; rename the folder", "name")
    samples: list[NewSample] = []
    for path in paths:
        try:
            if len(samples) == MAX_SAMPLES:
                raise InvalidRequest(f"a voice may have at most {MAX_SAMPLES} recordings")
            sample = _sample(path, files)
            if sum(each.seconds for each in samples) + sample.seconds > MAX_SECONDS:
                raise InvalidRequest(f"a voice's recordings may last at most {MAX_SECONDS:g} s together")
        except TooCostly:
            raise  # the voice would have some of its recordings only
        except (InvalidRequest, InvalidArchive, OSError) as error:
            refused[path] = str(error)
        else:
            samples.append(sample)
    if not samples:
        raise InvalidRequest("none of its recordings can be used")
    return library.voices.create(new, samples, "voice.import")


def _sample(path: str, files: Files) -> NewSample:
    """Raises InvalidRequest, InvalidArchive, OSError."""
    words = path[: -len(_posix(path).suffix)] + WORDS
    if words not in files:
        raise InvalidRequest(f"its words are missing: {_posix(words).name}")
    text = _words(_whole(files[words], MAX_WORDS))
    return take_in(_whole(files[path], MAX_BYTES), text).sample(text)


def _whole(read: Callable[[int], bytes], limit: int) -> bytes:
    data = read(limit)
    if len(data) > limit:
        raise InvalidRequest(f"the file is too large; at most {limit / 2**20:.4g} MiB are allowed")
    return data


def _words(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest(f"its {WORDS} file is not UTF-8 text; save it as UTF-8") from None
    check_strings(text, WORDS)
    check_words(text, WORDS)
    return text
