"""The voices that come with the studio: a folder of NAME.wav and NAME.txt, put into the library once each.

aliases.json there says which of them the default voice and OpenAI's names mean: {"nova": ["greta", "clara"], …}.
facts.json says what there is to say of each: {"Clara": {"gender": "female", "accent": "American", …}, …}.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from studio.errors import Changed, InvalidRequest, NameTaken, NotFound, SettingsError
from studio.library import Library, NewSample, VoiceFields
from studio.unicode_text import text_of
from studio.voices.intake import take_in

log = logging.getLogger(__name__)

EVENT = "voice.bundled"
DESCRIBED = "voice.described"
ALIASES = "aliases.json"
FACTS = "facts.json"


def read_aliases(folder: Path) -> dict[str, tuple[str, ...]]:
    """Slugs of the folder's voices that each alias prefers, the first of them first; nothing where it does not say.

    Raises SettingsError for a file that says it wrong.
    """
    file = folder / ALIASES
    if not file.is_file():
        return {}
    try:
        return TypeAdapter(dict[str, tuple[str, ...]]).validate_json(file.read_bytes())
    except ValidationError as error:
        raise SettingsError(f"STUDIO_VOICES: {file} must have a list of voices for each alias: {error}") from error


def read_facts(folder: Path) -> dict[str, VoiceFields]:
    """By the names of the folder's files; nothing where it does not say. Raises SettingsError for a wrong type."""
    file = folder / FACTS
    if not file.is_file():
        return {}
    facts = {}
    name = ""
    try:
        for name, fields in TypeAdapter(dict[str, dict[str, Any]]).validate_json(file.read_bytes()).items():
            try:
                facts[name] = VoiceFields(**fields)
            except InvalidRequest as refusal:
                log.warning("what %s says of %s cannot be used: %s", FACTS, _name(name), refusal)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in (name, *first["loc"])).strip(".")
        place = f" at {where}" if where else ""
        raise SettingsError(f"STUDIO_VOICES: {file} is wrong{place}: {first['msg']}") from error
    return facts


def import_bundled(library: Library, folder: Path) -> None:
    """Put in those voices of the folder that have never been there; a new recording is the next revision. Blocking.

    One that somebody has deleted stays deleted, one that somebody has recorded anew stays as it is, and one that shares
    its name with a voice of the library's owner is left out. A clip without words, or words without a clip, is none.
    One whose file in the library is damaged gets it again. What the folder says of a voice is said in the library,
    except where its owner has said otherwise.
    Raises SettingsError for facts that say it wrong.
    """
    facts = read_facts(folder)
    entries = library.audit.entries(event=EVENT)
    known = {entry.details.get("source") for entry in entries}
    brought = {entry.details["name"]: entry.subject for entry in entries}
    for clip in sorted(folder.glob("*.wav")):
        words = clip.with_suffix(".txt")
        if not words.is_file():
            continue
        name = _name(clip.stem)
        try:
            text, data = text_of(words).strip(), clip.read_bytes()
            source = hashlib.sha256(text.encode() + b"\0" + data).hexdigest()
            if source in known:
                if library.voices.mend(data):
                    log.warning("the recording of the bundled voice %s was damaged, and has been replaced", name)
                continue
            _bring(library, name, take_in(data, text).sample(text), source, brought.get(name))
        except NameTaken:
            continue
        except InvalidRequest as refusal:
            log.warning("the bundled voice %s cannot be used: %s", clip.name, refusal)
    _describe(library, {_name(stem): fields for stem, fields in facts.items()})


def _name(stem: str) -> str:
    return stem.replace("_", " ").replace("-", " ").title()


def _describe(library: Library, facts: dict[str, VoiceFields]) -> None:
    """Set of each voice that was brought what is new; a field that is not as it was brought is its owner's."""
    brought = {entry.details["name"]: entry.subject for entry in library.audit.entries(event=EVENT)}
    before = {
        entry.subject: VoiceFields.model_validate_json(str(entry.details["source"]))
        for entry in library.audit.entries(event=DESCRIBED)
    }
    for name, fields in facts.items():
        if name not in brought:
            continue
        last = before.get(brought[name], VoiceFields())
        try:
            voice = library.voices.get(brought[name])
            changes = {
                field: getattr(fields, field)
                for field in fields.model_fields_set | last.model_fields_set
                if getattr(last, field) == getattr(voice, field) != getattr(fields, field)
            }
            if changes:
                source = fields.model_dump_json(exclude_unset=True)
                library.voices.edit(voice.id, VoiceFields(**changes), voice.version, DESCRIBED, source)
        except (NotFound, Changed):  # deleted; or being changed by its owner, so that it waits for the next start
            continue
        except InvalidRequest as refusal:
            log.warning("what %s says of %s cannot be used: %s", FACTS, name, refusal)


def _bring(library: Library, name: str, sample: NewSample, source: str, voice_id: str | None) -> None:
    """As a new voice, or as the next revision of the one that was brought under this name before."""
    if voice_id is None:
        library.voices.create(VoiceFields(name=name), [sample], EVENT, source, bundled=True)
    elif _is_as_brought(library, voice_id):
        library.voices.revise(voice_id, lambda _: [sample], event=EVENT, source=source)


def _is_as_brought(library: Library, voice_id: str) -> bool:
    """Whether a bundled voice is still there and nobody has recorded it anew."""
    try:
        revision = library.voices.get(voice_id).revision
    except NotFound:
        return False
    return revision == len(library.audit.entries(subject=voice_id, event=EVENT))
