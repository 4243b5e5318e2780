"""Voice packs: a voice as one .fishvoice file, the same bytes for the same voice, safe to open from a stranger.

A zip with manifest.json, clips/, codes/ and consent/. Everything but the manifest is named in it with its SHA-256;
what is not named, too large or not as it says is refused before anything of it is used. No pickle, no paths.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from studio.audio.read import MAX_BYTES, MEDIA_TYPES, container_of
from studio.errors import InvalidPack, InvalidRequest
from studio.intake import take_in
from studio.library import Cut, Library, NewConsent, NewSample, Voice, VoiceDraft
from studio.library.checks import (
    MAX_DESCRIPTION,
    check_samples,
    clean_defaults,
    clean_language,
    clean_tags,
    clean_text,
)
from studio.library.names import clean_name

FORMAT = "fishvoice/1"
MEDIA_TYPE = "application/vnd.fishvoice+zip"
MAX_PACK = 64 * 1024 * 1024
"""Bytes of a pack, and of everything in it together."""
MAX_ENTRIES = 64
MAX_MANIFEST = 256 * 1024
MAX_CODES = 256 * 1024
"""Bytes of one sample's codes; 30 s of S2 Pro's take 13 KB."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class PackedCodes:
    """The codes of one sample by one codec: int16 (codebooks, frames)."""

    sample: int
    codec: str
    codes: np.ndarray = field(repr=False)


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack that was read and checked; nothing of it is in the library yet."""

    draft: VoiceDraft
    samples: tuple[NewSample, ...]
    codes: tuple[PackedCodes, ...]

    def as_json(self) -> dict[str, object]:
        """What there is to know before an import."""
        consent = self.draft.consent
        return {
            "name": self.draft.name,
            "description": self.draft.description,
            "tags": list(self.draft.tags),
            "language": self.draft.language,
            "licence": self.draft.licence,
            "defaults": self.draft.defaults,
            "created_at": int(self.draft.created or 0),
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
                    "text": new.text,
                    "speaker": new.speaker,
                    "seconds": new.seconds,
                    "score": new.score,
                    "sha256": new.clip,
                }
                for new in self.samples
            ],
            "codecs": sorted({packed.codec for packed in self.codes}),
        }


def export_voice(library: Library, reference: str) -> bytes:
    """The pack of a voice in a revision. Blocking. Raises NotFound, StudioError for a damaged library."""
    voice = library.voices.get(reference)
    entries: dict[str, bytes] = {}
    manifest = _described(voice) | {
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
    """Check a stranger's pack and take its clips in. Blocking. Raises InvalidPack."""
    if len(data) > MAX_PACK:
        raise InvalidPack(f"the pack has {len(data)} bytes; at most {MAX_PACK} are allowed", "file")
    entries = _entries(data)
    manifest = _manifest(entries.pop("manifest.json", b""))
    try:
        return _pack(manifest, entries)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InvalidPack(f"the pack's manifest lacks something or has it wrong: {error}", "file") from error
    except InvalidPack:
        raise
    except InvalidRequest as error:
        raise InvalidPack(f"the pack has something that cannot be used: {error}", "file") from error


def import_pack(library: Library, data: bytes, name: str | None = None) -> Voice:
    """Put a pack into the library, as ``name`` if given. Blocking. Raises InvalidPack, InvalidRequest, NameTaken."""
    pack = read_pack(data)
    draft = replace(pack.draft, name=name) if name else pack.draft
    source = hashlib.sha256(data).hexdigest()
    voice = library.voices.create(draft, pack.samples, "voice.import", source=source)
    for packed in pack.codes:
        library.codes.put(voice.samples[packed.sample].cut_key, packed.codec, packed.codes)
    return voice


def _described(voice: Voice) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": voice.name,
        "description": voice.description,
        "tags": list(voice.tags),
        "language": voice.language,
        "licence": voice.licence,
        "defaults": voice.defaults,
        "created": voice.created,
    }


def _pack_sample(library: Library, voice: Voice, position: int, entries: dict[str, bytes]) -> dict[str, Any]:
    sample = voice.samples[position]
    clip = f"clips/{position}.{sample.media_type.rpartition('/')[2].removeprefix('x-')}"
    entries[clip] = library.files.read(sample.clip)
    packed = []
    for codec in library.codes.codecs(sample.cut_key):
        codes = library.codes.get(sample.cut_key, codec)
        if codes is None:
            continue
        file = f"codes/{position}-{codec}.i16"
        entries[file] = np.ascontiguousarray(codes, "<i2").tobytes()
        packed.append({"file": _named(file, entries), "codec": codec, "shape": list(codes.shape)})
    return {
        "clip": _named(clip, entries),
        "text": sample.text,
        "speaker": sample.speaker,
        "cut": [sample.cut.start, sample.cut.end, sample.cut.gain_db, sample.cut.channel],
        "codes": packed,
    }


def _pack_consent(library: Library, voice: Voice, entries: dict[str, bytes]) -> dict[str, Any] | None:
    if voice.consent_id is None:
        return None
    consent = library.consents.get(voice.consent_id)
    file = None
    if consent.recording:
        entries["consent/recording"] = library.files.read(consent.recording)
        file = _named("consent/recording", entries)
    return {
        "name": consent.name,
        "language": consent.language,
        "statement": consent.statement,
        "created": consent.created,
        "recording": file,
    }


def _named(name: str, entries: dict[str, bytes]) -> dict[str, Any]:
    data = entries[name]
    return {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _entries(data: bytes) -> dict[str, bytes]:
    """What is in the zip, unpacked up to the limits."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if len(infos) > MAX_ENTRIES:
                raise InvalidPack(f"the pack has {len(infos)} entries; at most {MAX_ENTRIES} are allowed", "file")
            if len({info.filename for info in infos}) < len(infos):
                raise InvalidPack("the pack has two entries with one name", "file")
            left, entries = MAX_PACK, {}
            for info in infos:
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
                    raise InvalidPack("the pack is encrypted or packed in an unusual way", "file")
                with archive.open(info) as entry:  # what it unpacks to is counted, not believed
                    entries[info.filename] = entry.read(left + 1)
                left -= len(entries[info.filename])
                if left < 0:
                    raise InvalidPack(f"the pack unpacks to more than {MAX_PACK} bytes", "file")
            return entries
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError, RuntimeError) as error:
        raise InvalidPack(f"this is no voice pack that can be read: {error}", "file") from error


def _manifest(text: bytes) -> dict[str, Any]:
    if not text or len(text) > MAX_MANIFEST:
        raise InvalidPack("the pack has no manifest.json, or one that is too large", "file")
    try:
        manifest = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InvalidPack("the pack's manifest.json is no valid JSON", "file") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InvalidPack(f"the pack's format is not {FORMAT}", "file")
    return manifest


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _pack(manifest: dict[str, Any], entries: dict[str, bytes]) -> Pack:
    claimed: set[str] = set()
    samples, codes = [], list[PackedCodes]()
    for position, told in enumerate(manifest["samples"]):
        data = _claim(told["clip"], entries, claimed, MAX_BYTES)
        cut = Cut(*told["cut"])
        samples.append(take_in(data, told["text"], cut).sample(told["text"], int(told["speaker"])))
        codes.extend(_codes(position, told["codes"], entries, claimed))
    check_samples(samples)
    consent = _read_consent(manifest["consent"], entries, claimed)
    if claimed != set(entries):
        raise InvalidPack("the pack has entries that its manifest does not name", "file")
    draft = VoiceDraft(
        name=clean_name(manifest["name"]),
        description=clean_text("description", manifest["description"], MAX_DESCRIPTION),
        tags=clean_tags(manifest["tags"]),
        language=clean_language(manifest["language"]),
        licence=clean_text("licence", manifest["licence"], MAX_DESCRIPTION),
        consent=consent,
        defaults=clean_defaults(manifest["defaults"]),
        created=_time(manifest["created"]),
    )
    return Pack(draft, tuple(samples), tuple(codes))


def _read_consent(told: dict[str, Any] | None, entries: dict[str, bytes], claimed: set[str]) -> NewConsent | None:
    if told is None:
        return None
    recording = None if told["recording"] is None else _claim(told["recording"], entries, claimed, MAX_BYTES)
    return NewConsent(
        name=clean_text("name", told["name"], 200),
        language=clean_language(told["language"]),
        statement=clean_text("statement", told["statement"], MAX_DESCRIPTION),
        recording=recording,
        media_type="" if recording is None else MEDIA_TYPES[container_of(recording)],
        created=_time(told["created"]),
    )


def _time(told: Any) -> float:
    if not 0 < float(told) < 1e11:
        raise ValueError("a time is none")
    return float(told)


def _claim(told: dict[str, Any], entries: dict[str, bytes], claimed: set[str], limit: int) -> bytes:
    name = told["name"]
    if name not in entries or name in claimed:
        raise InvalidPack(f"the pack's entry {str(name)[:80]!r} is missing, or named twice", "file")
    data = entries[name]
    if len(data) > limit or len(data) != told["size"] or hashlib.sha256(data).hexdigest() != told["sha256"]:
        raise InvalidPack(f"the pack's entry {name[:80]!r} is too large or not what the manifest says", "file")
    claimed.add(name)
    return data


def _codes(position: int, told: list[Any], entries: dict[str, bytes], claimed: set[str]) -> Iterator[PackedCodes]:
    for each in told:
        data = _claim(each["file"], entries, claimed, MAX_CODES)
        codebooks, frames = (int(size) for size in each["shape"])
        codes = np.frombuffer(data, "<i2").reshape(codebooks, frames).astype(np.int16)
        if codebooks < 1 or frames < 1 or codes.min() < 0 or len(str(each["codec"])) > 64:
            raise InvalidPack("the pack has codes that no codec makes", "file")
        yield PackedCodes(position, str(each["codec"]), codes)
