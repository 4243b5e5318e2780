"""The bundled voices: a folder of NAME.wav and NAME.txt, each imported into the library once.

aliases.json maps the default voice and OpenAI's names to voices: {"nova": ["greta", "clara"], …}.
facts.json describes each voice: {"Clara": {"gender": "female", "accent": "American", …}, …}.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from audio.read import MAX_BYTES
from engine import open_regular
from studio.errors import BAD_INPUT, EditConflict, InvalidRequest, NameTaken, NotFound, SettingsError
from studio.library import Library, NewSample, VoiceFields
from studio.unicode_text import text_of
from studio.voices.intake import take_in

log = logging.getLogger(__name__)

EVENT = "voice.bundled"
DESCRIBED = "voice.described"
ALIASES = "aliases.json"
FACTS = "facts.json"
_MAX_JSON = 4 * 2**20
"""Bytes of each of these files: 10,000 described voices."""


def read_aliases(folder: Path) -> dict[str, tuple[str, ...]]:
    """Slugs of the folder's voices by alias, in order of preference; empty without the file. Raises SettingsError."""
    file = folder / ALIASES
    if not file.is_file():
        return {}
    try:
        return TypeAdapter(dict[str, tuple[str, ...]]).validate_json(_read(file))
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise SettingsError(f"STUDIO_VOICES: {file} must have a list of voices for each alias: {reason}") from error


def read_facts(folder: Path) -> dict[str, VoiceFields]:
    """Voice fields by file name; empty without the file. Raises SettingsError for a wrong type."""
    file = folder / FACTS
    if not file.is_file():
        return {}
    facts = {}
    name = ""
    try:
        for name, fields in TypeAdapter(dict[str, dict[str, Any]]).validate_json(_read(file)).items():
            try:
                facts[name] = VoiceFields(**fields)
            except InvalidRequest as refusal:
                log.warning("the facts in %s about %s are invalid and ignored: %s", FACTS, _name(name), refusal)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(str(step) for step in (name, *first["loc"])).strip(".")
        place = f" at {location}" if location else ""
        raise SettingsError(f"STUDIO_VOICES: {file} is wrong{place}: {first['msg']}") from error
    return facts


def import_bundled(library: Library, folder: Path) -> None:
    """Import voices of the folder that the library never had; a new recording becomes the next revision. Blocking.

    A deleted voice stays deleted, a voice with other recordings stays as it is, and a voice whose name the owner
    already uses is left out. A missing clip or transcript is warned of. A damaged file in the library is replaced.
    Facts fill the voice's fields, except those that its owner has changed. Raises SettingsError for invalid facts.
    """
    facts = read_facts(folder)
    entries = library.audit.entries(event=EVENT)
    known_sources = {entry.details.get("source") for entry in entries}
    imported_ids = {entry.details["name"]: entry.subject for entry in entries}
    files = [file for file in sorted(folder.glob("*")) if file.suffix.lower() == ".wav" and file.is_file()]
    clips = {_name(clip.stem): clip for clip in files}
    if not clips:
        log.warning("%s has no bundled voices: it needs a NAME.wav and a NAME.txt of each", folder)
    if missing := sorted({_name(stem) for stem in facts} - clips.keys()):
        log.warning("%s has no recordings of the bundled voices %s", folder, ", ".join(missing))
    for name, clip in clips.items():
        words = clip.with_suffix(".txt")
        if not words.is_file():
            log.warning("the bundled voice %s cannot be used: %s is missing", clip.name, words.name)
            continue
        try:
            text, data = text_of(words).strip(), _read(clip, MAX_BYTES)
            source = hashlib.sha256(text.encode() + b"\0" + data).hexdigest()
            if source in known_sources:
                if library.voices.mend(data):
                    log.warning("the recording of the bundled voice %s was damaged, and has been replaced", name)
                continue
            _import_voice(library, name, take_in(data, text).sample(text), source, imported_ids.get(name))
        except NameTaken:
            continue
        except (*BAD_INPUT, SettingsError) as refusal:
            log.warning("the bundled voice %s cannot be used: %s", clip.name, refusal)
    _describe(library, {_name(stem): fields for stem, fields in facts.items()})


def _read(path: Path, max_bytes: int = _MAX_JSON) -> bytes:
    """The content of a regular file. Raises SettingsError if it cannot be read or is larger."""
    try:
        with open_regular(path) as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise SettingsError(f"STUDIO_VOICES: {path} cannot be read: {error.strerror or error}") from error
    if len(data) > max_bytes:
        raise SettingsError(f"STUDIO_VOICES: {path} has more than {max_bytes:,} bytes; use a smaller file")
    return data


def _name(stem: str) -> str:
    return stem.replace("_", " ").replace("-", " ").title()


def _describe(library: Library, facts: dict[str, VoiceFields]) -> None:
    """Update the bundled voices whose facts have changed; a field that differs from the imported one is the owner's."""
    imported_ids = {entry.details["name"]: entry.subject for entry in library.audit.entries(event=EVENT)}
    before = {
        entry.subject: VoiceFields.model_validate_json(str(entry.details["source"]))
        for entry in library.audit.entries(event=DESCRIBED)
    }
    for name, fields in facts.items():
        if name not in imported_ids:
            continue
        last = before.get(imported_ids[name], VoiceFields())
        try:
            voice = library.voices.get(imported_ids[name])
            changes = {
                field: getattr(fields, field)
                for field in fields.model_fields_set | last.model_fields_set
                if getattr(last, field) == getattr(voice, field) != getattr(fields, field)
            }
            if changes:
                source = fields.model_dump_json(exclude_unset=True)
                library.voices.edit(voice.id, VoiceFields(**changes), voice.version, DESCRIBED, source)
        except (NotFound, EditConflict):  # deleted, or being edited by its owner: the next start tries again
            continue
        except InvalidRequest as refusal:
            log.warning("the facts in %s about %s are invalid and ignored: %s", FACTS, name, refusal)


def _import_voice(library: Library, name: str, sample: NewSample, source: str, voice_id: str | None) -> None:
    """Import a sample as a new voice, or as the next revision of the voice imported under this name before."""
    if voice_id is None:
        library.voices.create(VoiceFields(name=name, sharing="edit"), [sample], EVENT, source, bundled=True)
    elif _is_unmodified(library, voice_id):
        library.voices.revise(voice_id, lambda _: [sample], event=EVENT, source=source)


def _is_unmodified(library: Library, voice_id: str) -> bool:
    """Whether a bundled voice still exists with its bundled recordings."""
    try:
        revision = library.voices.get(voice_id).revision
    except NotFound:
        return False
    return revision == len(library.audit.entries(subject=voice_id, event=EVENT))
