"""The voices that come with the studio: a folder of NAME.wav and NAME.txt, put into the library once each.

aliases.json there says which of them the default voice and OpenAI's names mean: {"nova": ["greta", "clara"], …}.
facts.json says what there is to say of each: {"Clara": {"gender": "female", "accent": "American", …}, …}.
"""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from studio.errors import Changed, InvalidRequest, NameTaken, NotFound, SettingsError
from studio.library import Library, NewSample, VoiceChanges, VoiceDraft
from studio.unicode_text import text_of
from studio.voices.intake import take_in

log = logging.getLogger(__name__)

EVENT = "voice.bundled"
DESCRIBED = "voice.described"
ALIASES = "aliases.json"
FACTS = "facts.json"


class Facts(BaseModel):
    """What the folder says of one of its voices, as the library keeps it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    description: str = ""
    tags: tuple[str, ...] = ()
    language: str = ""
    gender: str = ""
    accent: str = ""
    colour: str = ""


def read_aliases(folder: Path) -> dict[str, tuple[str, ...]]:
    """Slugs of the folder's voices that each alias prefers, the first of them first; nothing where it does not say.

    Raises SettingsError for a file that says it wrong.
    """
    file = folder / ALIASES
    if not file.is_file():
        return {}
    try:
        told = json.loads(file.read_text("utf-8"))
        for names in told.values():
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError(f"{names!r} is not a list of names")
        return {alias: tuple(names) for alias, names in told.items()}
    except (ValueError, AttributeError) as error:
        raise SettingsError(f"STUDIO_VOICES: {file} must have a list of voices for each alias: {error}") from error


def read_facts(folder: Path) -> dict[str, Facts]:
    """By the names of the folder's files; nothing where it does not say. Raises SettingsError."""
    file = folder / FACTS
    if not file.is_file():
        return {}
    try:
        return TypeAdapter(dict[str, Facts]).validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise SettingsError(
            f"STUDIO_VOICES: {file} is wrong{' at ' + where if where else ''}: {first['msg']}"
        ) from error


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
    _describe(library, {_name(stem): told for stem, told in facts.items()})


def _name(stem: str) -> str:
    return stem.replace("_", " ").replace("-", " ").title()


def _describe(library: Library, facts: dict[str, Facts]) -> None:
    """Say of each voice that was brought what is new; a field that is not as it was brought is its owner's."""
    brought = {entry.details["name"]: entry.subject for entry in library.audit.entries(event=EVENT)}
    before = {
        entry.subject: Facts.model_validate_json(str(entry.details["source"]))
        for entry in library.audit.entries(event=DESCRIBED)
    }
    for name, told in facts.items():
        if name not in brought:
            continue
        last = before.get(brought[name], Facts())
        try:
            voice = library.voices.get(brought[name])
            changes = {field: now for field, now in told if getattr(last, field) == getattr(voice, field) != now}
            if changes:
                source = told.model_dump_json()
                library.voices.edit(voice.id, VoiceChanges(**changes), voice.version, DESCRIBED, source)
        except (NotFound, Changed):  # deleted; or being changed by its owner, so that it waits for the next start
            continue
        except InvalidRequest as refusal:
            log.warning("what %s says of %s cannot be used: %s", FACTS, name, refusal)


def _bring(library: Library, name: str, sample: NewSample, source: str, voice_id: str | None) -> None:
    """As a new voice, or as the next revision of the one that was brought under this name before."""
    if voice_id is None:
        library.voices.create(VoiceDraft(name, bundled=True), [sample], EVENT, source)
    elif _is_as_brought(library, voice_id):
        library.voices.revise(voice_id, lambda _: [sample], event=EVENT, source=source)


def _is_as_brought(library: Library, voice_id: str) -> bool:
    """Whether a bundled voice is still there and nobody has recorded it anew."""
    try:
        revision = library.voices.get(voice_id).revision
    except NotFound:
        return False
    return revision == len(library.audit.entries(subject=voice_id, event=EVENT))
