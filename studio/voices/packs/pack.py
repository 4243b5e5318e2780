"""Voice packs: a voice as one .fishvoice file, identical bytes for the same voice, safe to open if untrusted.

A zip with manifest.json, clips/ and consent/. The manifest lists every other entry with its SHA-256; an entry that is
unlisted, too large or different is refused before anything is used. No pickle, no paths.

Packs of earlier versions also have codes. They are not used: the model must use the clip to which the speaker agreed,
and codes cannot be checked by listening.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from typing import Any

from studio.audio.read import MAX_BYTES, MEDIA_TYPES, container_of
from studio.errors import InvalidPack, InvalidRequest, NotFound
from studio.library import Cut, Library, NewConsent, NewSample, Voice, VoiceFields
from studio.library.checks import MAX_DESCRIPTION, MAX_SAMPLES, check_samples, clean_language, clean_text
from studio.unzip import InvalidArchive, opened, read_entry
from studio.voices.intake import take_in
from studio.voices.packs.manifest import FORMAT, Manifest, PackConsent, PackFile, read_manifest

MEDIA_TYPE = "application/vnd.fishvoice+zip"
MAX_PACK = (MAX_SAMPLES + 1) * MAX_BYTES + 1024 * 1024
"""Maximum bytes of a pack, and of all its unpacked entries: the same as for a voice, so that every voice of a library
can be exported and imported again. A clip and a consent's recording have at most MAX_BYTES."""
MAX_ENTRIES = 64
"""Maximum entries of a pack with codes; a pack without codes has at most two more than MAX_SAMPLES."""
MAX_CODES = 256 * 1024
"""Maximum bytes of one sample's codes, in packs with codes."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Pack:
    """A checked pack, not yet in the library."""

    fields: VoiceFields
    created: float
    """Unix time."""
    consent: NewConsent | None
    samples: tuple[NewSample, ...]

    def as_json(self) -> dict[str, object]:
        """A summary to show before an import."""
        consent = self.consent
        return self.fields.details() | {
            "created_at": int(self.created),
            "consent": None
            if consent is None
            else {
                "name": consent.name,
                "language": consent.language,
                "statement": consent.statement,
                "created_at": int(consent.created or 0),
                "recording": consent.recording is not None,
            },
            "samples": [
                {
                    "text": sample.text,
                    "speaker": sample.speaker,
                    "seconds": sample.seconds,
                    "score": sample.score,
                    "sha256": sample.clip,
                }
                for sample in self.samples
            ],
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
        return _pack(read_manifest(entries.pop("manifest.json", b"")), entries)
    except InvalidPack:
        raise
    except InvalidRequest as error:
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
    return library.voices.create(
        fields, pack.samples, "voice.import", source, created=pack.created, consent=pack.consent
    )


def _pack_sample(library: Library, voice: Voice, position: int, entries: dict[str, bytes]) -> dict[str, Any]:
    sample = voice.samples[position]
    clip = f"clips/{position}.{sample.media_type.rpartition('/')[2].removeprefix('x-')}"
    entries[clip] = library.voices.clip(sample)
    return {
        "clip": _file_entry(clip, entries),
        "text": sample.text,
        "speaker": sample.speaker,
        "cut": [sample.cut.start, sample.cut.end, sample.cut.gain_db, sample.cut.channel],
        "codes": [],  # earlier versions require the field
    }


def _pack_consent(library: Library, voice: Voice, entries: dict[str, bytes]) -> dict[str, Any] | None:
    if voice.consent is None:
        return None
    consent = library.consents.get(voice.consent)
    file = None
    if consent.recording:
        entries["consent/recording"] = library.files.read(consent.recording)
        file = _file_entry("consent/recording", entries)
    return {
        "name": consent.name,
        "language": consent.language,
        "statement": consent.statement,
        "created": consent.created,
        "recording": file,
    }


def _file_entry(name: str, entries: dict[str, bytes]) -> dict[str, Any]:
    data = entries[name]
    return {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


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


def _pack(manifest: Manifest, entries: dict[str, bytes]) -> Pack:
    claimed: set[str] = set()
    samples = []
    for sample in manifest.samples:
        data = _claim(sample.clip, entries, claimed, MAX_BYTES)
        samples.append(take_in(data, sample.text, Cut(*sample.cut)).sample(sample.text, sample.speaker))
        for codes in sample.codes:
            _claim(codes.file, entries, claimed, MAX_CODES)
    check_samples(samples)
    consent = _consent(manifest.consent, entries, claimed)
    if claimed != set(entries):
        raise InvalidPack("the pack has entries that its manifest does not name", "file")
    return Pack(manifest.fields, manifest.created, consent, tuple(samples))


def _consent(consent: PackConsent | None, entries: dict[str, bytes], claimed: set[str]) -> NewConsent | None:
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


def _claim(file: PackFile, entries: dict[str, bytes], claimed: set[str], limit: int) -> bytes:
    if file.name not in entries or file.name in claimed:
        raise InvalidPack(f"the pack's entry {file.name[:80]!r} is missing, or named twice", "file")
    data = entries[file.name]
    if len(data) > limit or len(data) != file.size or hashlib.sha256(data).hexdigest() != file.sha256:
        raise InvalidPack(f"the pack's entry {file.name[:80]!r} is too large or does not match the manifest", "file")
    claimed.add(file.name)
    return data
