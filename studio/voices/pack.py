"""Voice packs: a voice as one .fishvoice file, identical bytes for the same voice, safe to open if untrusted.

A zip with manifest.json, clips/, consent/ and pronunciations.csv. The manifest lists every other entry with its
SHA-256; an entry that is unlisted, too large or different is refused before anything is used. No pickle, no paths, and
no codes: the model must use the clip to which the speaker agreed, and codes cannot be checked by listening.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError
from pydantic_core import from_json

from audio import Cut
from audio.read import MAX_BYTES, MEDIA_TYPES, container_of
from manuscript.untrusted import InvalidArchive, opened, read_entry
from studio.errors import BAD_INPUT, InvalidPack, InvalidRequest, NotFound
from studio.library import Library, NewConsent, NewSample, Voice, VoiceFields
from studio.library.checks import MAX_DESCRIPTION, MAX_SAMPLES, check_samples, clean_language, clean_text
from studio.library.pronunciation_repository import MAX_DICTIONARY, read_dictionary, write_dictionary
from studio.library.records import DictionaryScope, Pronunciation
from studio.library.voice import OF_THIS_LIBRARY
from studio.voices.intake import take_in

MEDIA_TYPE = "application/vnd.fishvoice+zip"
MAX_PACK = (MAX_SAMPLES + 1) * MAX_BYTES + 1024 * 1024
"""Maximum bytes of a pack, and of all its unpacked entries: the same as for a voice, so that every voice of a library
can be exported and imported again. A clip and a consent's recording have at most MAX_BYTES."""
MAX_ENTRIES = MAX_SAMPLES + 3  # the manifest, the clips, the recording of a consent, and the dictionary
_EPOCH = (1980, 1, 1, 0, 0, 0)
FORMAT = "fishvoice/1"
_MAX_MANIFEST = 256 * 1024  # bytes

_Time = Annotated[float, Field(gt=0, lt=1e11, description="Seconds since 1970.")]


class _PackPart(BaseModel):
    """Unknown fields are ignored, since a later version may have them."""

    model_config = ConfigDict(strict=True, frozen=True)


class _PackFile(_PackPart):
    """A file of the pack."""

    name: str
    size: int
    sha256: str


class _PackSample(_PackPart):
    """A clip, its transcript, and its cut: start, end, gain in decibels, channel."""

    clip: _PackFile
    text: str
    speaker: int
    cut: Annotated[tuple[float, float | None, float, int | None], Strict(False)]


class _PackConsent(_PackPart):
    """The person who agreed to the use of the voice, the wording, and possibly a recording of it."""

    name: str
    language: str
    statement: str
    created: _Time
    recording: _PackFile | None


class _Manifest(_PackPart):
    """The contents of a pack: a voice's fields, checked, and the typed list of everything else."""

    created: _Time
    samples: list[_PackSample]
    consent: _PackConsent | None
    pronunciations: _PackFile | None = None
    fields: VoiceFields


@dataclass(frozen=True, slots=True)
class Pack:
    """A checked pack, not yet in the library."""

    fields: VoiceFields
    created: float  # Unix time
    consent: NewConsent | None
    samples: tuple[NewSample, ...]
    dictionary: tuple[Pronunciation, ...]

    def as_json(self) -> dict[str, object]:
        """A summary to show before an import."""
        consent = self.consent
        return self.fields.details() | {
            "created_at": int(self.created),
            "consent": consent
            and {
                "name": consent.name,
                "language": consent.language,
                "statement": consent.statement,
                "created_at": int(consent.created or 0),
                "recording": consent.recording is not None,
            },
            "samples": [
                {name: getattr(one, name) for name in ("text", "speaker", "seconds", "score")} | {"sha256": one.clip}
                for one in self.samples
            ],
            "pronunciations": len(self.dictionary),
        }


def export_voice(library: Library, reference: str) -> bytes:
    """The pack of a voice or of its revision. Blocking. Raises NotFound, StudioError for a damaged library."""
    voice = library.voices.get(reference)
    entries: dict[str, bytes] = {}
    manifest = voice.details() | {
        "format": FORMAT,
        "created": voice.created,
        "samples": [_pack_sample(library, voice, position, entries) for position in range(len(voice.samples))],
        "consent": _pack_consent(library, voice, entries),
    }
    if dictionary := library.pronunciations.entries(DictionaryScope("voice", voice.id)):
        entries["pronunciations.csv"] = write_dictionary(dictionary).encode()
        manifest["pronunciations"] = _file_entry("pronunciations.csv", entries)
    text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in [("manifest.json", text), *sorted(entries.items())]:
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, data)
    library.voices.note_export(voice)
    return buffer.getvalue()


def read_pack(data: bytes) -> Pack:
    """Read and check an untrusted pack and its clips. Blocking. Raises InvalidPack."""
    if len(data) > MAX_PACK:
        raise InvalidPack(f"the pack has {len(data)} bytes; at most {MAX_PACK} are allowed", "file")
    entries = _entries(data)
    try:
        return _pack(_read_manifest(entries.pop("manifest.json", b"")), entries)
    except InvalidPack:
        raise
    except BAD_INPUT as error:
        raise InvalidPack(f"the pack has contents that cannot be used: {error}", "file") from error


def import_pack(library: Library, data: bytes, name: str | None = None, replaces: str | None = None) -> Voice:
    """Import a pack into the library, as ``name`` if given. Blocking.

    With ``replaces`` the pack's clips become the next revision of that voice, which keeps its name, description and
    consent. Raises InvalidPack, InvalidRequest, NameTaken, and NotFound for the voice to replace.
    """
    if name and replaces:
        raise InvalidRequest("send either name, for a new voice, or replaces, for a new revision", "replaces")
    pack = read_pack(data)
    source = hashlib.sha256(data).hexdigest()
    if replaces:
        try:
            return library.voices.revise(replaces, lambda _: pack.samples, event="voice.import", source=source)
        except NotFound as error:
            raise NotFound(error.message, "replaces", error.code) from None
    fields = VoiceFields(**pack.fields.details() | ({"name": name} if name else {}))
    voice = library.voices.create(
        fields, pack.samples, "voice.import", source, created=pack.created, consent=pack.consent
    )
    library.pronunciations.merge(DictionaryScope("voice", voice.id), pack.dictionary, False)
    return voice


def _pack_sample(library: Library, voice: Voice, position: int, entries: dict[str, bytes]) -> dict[str, Any]:
    sample = voice.samples[position]
    clip = f"clips/{position}.{sample.media_type.rpartition('/')[2].removeprefix('x-')}"
    entries[clip] = library.voices.clip(sample)
    cut = [sample.cut.start, sample.cut.end, sample.cut.gain_db, sample.cut.channel]
    return {"clip": _file_entry(clip, entries), "text": sample.text, "speaker": sample.speaker, "cut": cut}


def _pack_consent(library: Library, voice: Voice, entries: dict[str, bytes]) -> dict[str, Any] | None:
    if voice.consent is None:
        return None
    consent = library.consents.get(voice.consent)
    file = None
    if consent.recording:
        entries["consent/recording"] = library.files.read(consent.recording)
        file = _file_entry("consent/recording", entries)
    words = {"name": consent.name, "language": consent.language, "statement": consent.statement}
    return words | {"created": consent.created, "recording": file}


def _file_entry(name: str, entries: dict[str, bytes]) -> dict[str, Any]:
    data = entries[name]
    return {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _read_manifest(text: bytes) -> _Manifest:
    """Raises InvalidPack naming the first field that is missing or wrong, and the errors of VoiceFields."""
    if not text or len(text) > _MAX_MANIFEST:
        raise InvalidPack("the pack has no manifest.json, or one that is too large", "file")
    try:
        manifest = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidPack("the pack's manifest.json is not valid JSON", "file") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InvalidPack(f"the pack's format is not {FORMAT}", "file")
    try:
        names = (VoiceFields.model_fields.keys() - OF_THIS_LIBRARY) & manifest.keys()
        fields = {name: manifest[name] for name in names}
        return _Manifest.model_validate(manifest | {"fields": VoiceFields.model_validate(fields)})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(step) for step in first["loc"])[:80]
        raise InvalidPack(f"the pack's manifest is wrong at {field}: {first['msg']}", "file") from error


def _entries(data: bytes) -> dict[str, bytes]:
    """The zip's entries, unpacked within the limits."""
    try:
        with opened(data, MAX_ENTRIES) as archive:
            infos = archive.infolist()
            if len({info.filename for info in infos}) < len(infos):
                raise InvalidPack("the pack has two entries of the same name", "file")
            remaining, entries = MAX_PACK, {}
            for info in infos:
                entries[info.filename] = read_entry(archive, info, remaining)
                remaining -= len(entries[info.filename])
            return entries
    except InvalidArchive as error:
        raise InvalidPack(f"this file is not a readable voice pack: {error}", "file") from error


def _pack(manifest: _Manifest, entries: dict[str, bytes]) -> Pack:
    claimed: set[str] = set()
    samples = []
    for sample in manifest.samples:
        data = _claim(sample.clip, entries, claimed, MAX_BYTES)
        samples.append(take_in(data, sample.text, Cut(*sample.cut)).sample(sample.text, sample.speaker))
    check_samples(samples)
    consent, file = _consent(manifest.consent, entries, claimed), manifest.pronunciations
    dictionary = read_dictionary(_claim(file, entries, claimed, MAX_DICTIONARY)) if file else ()
    if claimed != set(entries):
        raise InvalidPack("the pack has entries that its manifest does not name", "file")
    return Pack(manifest.fields, manifest.created, consent, tuple(samples), tuple(dictionary))


def _consent(consent: _PackConsent | None, entries: dict[str, bytes], claimed: set[str]) -> NewConsent | None:
    if consent is None:
        return None
    recording = None if consent.recording is None else _claim(consent.recording, entries, claimed, MAX_BYTES)
    return NewConsent(
        name=clean_text("name", consent.name, 200),
        language=clean_language(consent.language),
        statement=clean_text("statement", consent.statement, MAX_DESCRIPTION),
        recording=recording,
        media_type="" if recording is None else MEDIA_TYPES[container_of(recording)],
        created=consent.created,
    )


def _claim(file: _PackFile, entries: dict[str, bytes], claimed: set[str], limit: int) -> bytes:
    if file.name not in entries or file.name in claimed:
        raise InvalidPack(f"the pack's entry {file.name[:80]!r} is missing, or named twice", "file")
    data = entries[file.name]
    if len(data) > limit or len(data) != file.size or hashlib.sha256(data).hexdigest() != file.sha256:
        raise InvalidPack(f"the pack's entry {file.name[:80]!r} is too large or does not match the manifest", "file")
    claimed.add(file.name)
    return data
